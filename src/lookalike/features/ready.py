"""Ready-made features: links, anchor texts, phrases, whatever the caller has found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from lookalike import _native
from lookalike.checks import flag, instance
from lookalike.errors import ArgumentError, DocumentError
from lookalike.features.base import BATCH, FeatureKind, TextKind, list_batches
from lookalike.shown import brief

_MOST_WEIGHT = 1e15


class Features(FeatureKind):
    """Documents that are already features.

    A document is a mapping `{feature: weight}`, a list of `(feature, weight)` pairs, or a list of
    features of weight 1. A feature is `str`, `bytes` or a whole number from 0 to 2**64 - 1, and is
    hashed by XXH64. Weights are numbers from -1e15 to 1e15; weights of a repeated feature are
    added. Sets cannot have negative weights.

    Args:
        hashed: Use whole numbers as hashes without hashing them; all 64 bits must be random.

    Examples:
        >>> la.cosine({"a": 3, "b": 4}, {"a": 3}, la.features.Features())
        0.6
    """

    def __init__(self, hashed: bool = False) -> None:
        self.hashed = flag("hashed", hashed)

    def is_document(self, value: Any) -> bool:
        """Return whether a value is one document: a mapping, or a list of features."""
        if isinstance(value, Mapping):
            return True
        if not isinstance(value, list | tuple) or not value:
            return False
        return isinstance(value[0], str | bytes | int | np.integer | tuple)

    def sources(self, documents: Any, size: int | None = BATCH) -> Iterator[_native.Source]:
        """Yield batches of documents; see `FeatureKind.sources`."""
        for position, batch in list_batches(documents, size):
            yield ready_source(batch, position, self.hashed)


def ready_source(batch: Iterable[Any], first_position: int, hashed: bool) -> _native.Source:
    """Return documents that are features; the first has this position."""
    offsets = [0]
    features: list[Any] = []
    weights: list[Any] = []
    for document in batch:
        begin = offsets[-1]
        try:
            for feature, weight in _pairs(document):
                features.append(feature)
                weights.append(weight)
            features[begin:] = feature_hashes(features[begin:], hashed)
            _check_weights(weights[begin:])
        except (TypeError, ValueError) as error:
            position = first_position + len(offsets) - 1
            raise DocumentError(f"document {position} {error}") from None
        offsets.append(len(features))
    return _native.Source.of_features(
        np.array(offsets, np.int64), np.array(features, np.uint64), np.array(weights, np.float64)
    )


def _pairs(document: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(document, Mapping):
        return document.items()
    if isinstance(document, str | bytes) or not isinstance(document, Iterable):
        raise TypeError(
            f"is of type {type(document).__name__}; expected a list of features, a list of "
            "(feature, weight) pairs or a mapping"
        )
    return [item if isinstance(item, tuple) and len(item) == 2 else (item, 1) for item in document]


def feature_hashes(features: list[Any], hashed: bool) -> list[int]:
    """Return the hash of each feature, or raise `TypeError`."""
    hashes = []
    for feature in features:
        if isinstance(feature, int | np.integer) and 0 <= feature < 2**64:
            if hashed:
                hashes.append(int(feature))
                continue
            feature = int(feature).to_bytes(8, "little")
        elif isinstance(feature, str):
            feature = feature.encode()
        if isinstance(feature, bytes):
            hashes.append(_native.xxh64(np.frombuffer(feature, np.uint8)))
        else:
            raise TypeError(
                f"has the feature {feature!r} of type {type(feature).__name__}; expected str, "
                "bytes or a whole number from 0 to 2**64 - 1"
            )
    return hashes


def _check_weights(weights: list[Any]) -> None:
    for weight in weights:
        number = isinstance(weight, int | float | np.integer | np.floating)
        if not number or not -_MOST_WEIGHT <= weight <= _MOST_WEIGHT:
            raise ValueError(f"has the weight {weight!r}; expected a number from -1e15 to 1e15")


class FeatureFunction(TextKind):
    """Features that a function of the text returns, as `la.features.Features` accepts them.

    One thread calls the function for each document. Equal texts must have equal features. A program
    that reads a file with the `name` must first create a `FeatureFunction` of this name.

    Args:
        function: Function from a text to its features.
        name: Name that identifies the function in files. Change it when the function changes.

    Examples:
        >>> lines = la.FeatureFunction(str.splitlines, name="lines")
        >>> la.jaccard("a\\nb", "b\\nc", lines)
        0.3333333333333333
    """

    _named: ClassVar[dict[str, Callable[[str], Any]]] = {}

    def __init__(
        self, function: Callable[[str], Any] | None = None, name: str | None = None
    ) -> None:
        self.name = name if name is None else instance("name", name, str, "a str or None")
        if function is None:
            function = FeatureFunction._named.get(name or "")
            if function is None:
                raise ArgumentError(
                    f"the feature function {brief(name)} is unknown. Create it first: "
                    "la.FeatureFunction(function, name='...')"
                )
        elif not callable(function):
            raise ArgumentError(
                f"function is {brief(function)}; expected one that takes a text and returns its "
                "features"
            )
        self.function = function
        if name is not None:
            FeatureFunction._named[name] = function

    def settings(self) -> dict[str, Any]:
        """Return the name of the function."""
        return {"name": self.name}

    def __reduce__(self) -> tuple[Any, ...]:
        return FeatureFunction, (self.function, self.name)  # pickled by where it can be imported

    def check_persistent(self) -> None:
        """Raise if the function has no name."""
        if self.name is None:
            raise ArgumentError(
                "the function that finds features has no name, which files need to identify it. "
                "Give it one: la.FeatureFunction(function, name='...')"
            )

    def batch_source(self, batch: _native.Documents, position: int) -> _native.Source:
        """Return the features that the function finds in texts."""
        return ready_source(self._features(batch.to_list(), position), position, hashed=False)

    def _features(self, texts: list[str], first_position: int) -> Iterator[Any]:
        for position, text in enumerate(texts, first_position):
            try:
                yield self.function(text)
            except Exception as error:
                error.add_note(f"raised by the function that finds features, of text {position}")
                raise

    def _key(self) -> object:
        return FeatureFunction, self.function if self.name is None else self.name
