"""What every kind of features is: a way from documents to sources that the core can read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from importlib import import_module
from inspect import signature
from typing import Any, ClassVar, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.checks import flag, instance, one_of, thread_count
from lookalike.errors import ArgumentError
from lookalike.features.growing import GrowingArray

__all__ = [
    "BATCH",
    "FeatureKind",
    "as_features",
    "feature_kind_from_dict",
    "made_with",
    "reads_links",
]

BATCH = 8192
"""Documents that are read at a time; what is learnt may depend on it, so it never changes."""


_LATER = {"Links": "lookalike.features.links"}
"""Kinds that are imported when one is asked for."""


class FeatureKind(ABC):
    """A way to read features from documents. Equal kinds read equal features, on every machine."""

    _kinds: ClassVar[dict[str, type[FeatureKind]]] = {}

    reads_links: ClassVar[bool] = False
    """Whether it wants texts in which links are marked, where a corpus has them."""

    def __init_subclass__(cls, *, abstract: bool = False) -> None:
        if not abstract:
            FeatureKind._kinds[cls.__name__] = cls

    @abstractmethod
    def sources(self, documents: Any, size: int | None = BATCH) -> Iterator[_native.Source]:
        """Yield the documents in batches of `size` (None: all at once), as the core reads them.

        Raises `DocumentError`, naming the position, at the first document that is none.
        """

    @abstractmethod
    def is_document(self, value: Any) -> bool:
        """Return whether this is one document, and not several."""

    def settings(self) -> dict[str, Any]:
        """Return what this kind was made with, in plain values."""
        return made_with(self)

    def source(self, documents: Any) -> _native.Source:
        """Return all documents at once."""
        return next(self.sources(documents, None))

    def batch_source(self, batch: _native.Documents, position: int) -> _native.Source:
        """Return texts as the core reads them, of a kind that takes texts; messages count them from
        `position` on, where it knows how.
        """
        return self.source(batch)

    def check_lasting(self) -> None:
        """Raise unless equal descriptions mean equal features, now and in another program."""
        return  # they do, unless a function of the caller's finds them

    def counts(
        self, documents: Any, *, distinct: bool = False, threads: SupportsIndex | None = None
    ) -> NDArray[np.int64]:
        """Return how many features each document has, repetitions included unless `distinct`.

        With them it is the plain reading pass, the least that any signer can cost.
        """
        count = _native.count_distinct if flag("distinct", distinct) else _native.count_features
        counts = GrowingArray((), np.int64, documents)
        for source in self.sources(documents):
            count(source, thread_count(threads), counts.block(len(source)))
        return counts.take()

    def to_dict(self) -> dict[str, Any]:
        """Return a plain description; `feature_kind_from_dict` is its inverse."""
        return {"kind": type(self).__name__, **self.settings()}

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> FeatureKind:
        """Return the kind that has these `settings`."""
        return cls(**settings)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FeatureKind) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.settings().items())
        return f"{type(self).__name__}({arguments})"

    def __reduce__(self) -> tuple[Any, ...]:
        # What the core has is made again.
        return feature_kind_from_dict, (self.to_dict(),)


def made_with(thing: object) -> dict[str, Any]:
    """Return the arguments that something was made with, which it has as attributes of the same
    names, in plain values.
    """
    values = {name: getattr(thing, name) for name in signature(type(thing)).parameters}
    return {name: _plain(value) for name, value in values.items()}


def _plain(value: Any) -> Any:
    if hasattr(value, "to_dict"):
        return value.to_dict()
    return list(value) if isinstance(value, tuple) else value


def as_features(features: object) -> FeatureKind:
    """Return features if they are some, or raise an error that says what came instead.

    A function is taken for one that finds them in a text.
    """
    if callable(features) and not isinstance(features, FeatureKind | type):
        from lookalike.features.function import FeatureFunction  # derives from what is here

        return FeatureFunction(features)
    what = "la.Words(), la.Chars(), la.Features(), or a function from a text to its features"
    return instance("features", features, FeatureKind, what)


def reads_links(kind: FeatureKind) -> bool:
    """Return whether features are links, or have some among them."""
    values = [one if isinstance(one, list | tuple) else [one] for one in vars(kind).values()]
    parts = [part for several in values for part in several if isinstance(part, FeatureKind)]
    return kind.reads_links or any(map(reads_links, parts))


def feature_kind_from_dict(description: dict[str, Any]) -> FeatureKind:
    """Return the features that `FeatureKind.to_dict` described."""
    settings = dict(instance("the description of features", description, dict, "a dict"))
    if settings.get("kind") in _LATER:
        import_module(_LATER[settings["kind"]])
    name = one_of("the kind of features", settings.pop("kind", None), sorted(FeatureKind._kinds))
    try:
        return FeatureKind._kinds[name].from_settings(settings)
    except TypeError as error:
        raise ArgumentError(f"the description of {name} cannot be used: {error}") from error
