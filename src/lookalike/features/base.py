"""The base of all kinds of features: from documents to sources that the core reads."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from importlib import import_module
from inspect import signature
from itertools import islice
from typing import Any, ClassVar, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.checks import flag, instance, one_of, optional_module, thread_count
from lookalike.errors import ArgumentError, DocumentError

BATCH = 8192
"""Documents of a batch. Vocabularies may depend on it, so it never changes."""
_LATER = {"Links": "lookalike.features.links"}  # kinds that are imported when they are used
_SPARE_BYTES = 4 << 20


class FeatureKind(ABC):
    """Base class of features: read features from documents.

    Equal kinds read equal features on every machine.
    """

    _kinds: ClassVar[dict[str, type[FeatureKind]]] = {}

    usual_threshold: ClassVar[float] = 0.8
    """The default threshold of `dedup` for documents that are compared by these features."""
    memory_factor: ClassVar[int] = 1
    """How many times as much memory as words its features take, for a text of equal length."""
    reads_links: ClassVar[bool] = False
    """Whether it reads the marks of links, which a corpus of pages can keep in its texts."""

    def __init_subclass__(cls, *, abstract: bool = False) -> None:
        if not abstract:
            FeatureKind._kinds[cls.__name__] = cls

    @abstractmethod
    def sources(self, documents: Any, size: int | None = BATCH) -> Iterator[_native.Source]:
        """Yield the documents in batches of `size` (None: all at once), as the core reads them.

        Raises `DocumentError` with the position of the first value that is not a document.
        """

    @abstractmethod
    def is_document(self, value: Any) -> bool:
        """Return whether a value is one document, and not several."""

    def settings(self) -> dict[str, Any]:
        """Return the arguments of the constructor, in plain values."""
        return made_with(self)

    def source(self, documents: Any) -> _native.Source:
        """Return all documents at once."""
        return next(self.sources(documents, None))

    def batch_source(self, batch: _native.Documents, position: int) -> _native.Source:
        """Return texts as the core reads them; `position` is that of the first, for messages."""
        return self.source(batch)

    def check_persistent(self) -> None:
        """Raise unless equal descriptions mean equal features, also in another program."""
        return  # they do, unless a function of the caller's finds them

    def counts(
        self, documents: Any, *, distinct: bool = False, threads: SupportsIndex | None = None
    ) -> NDArray[np.int64]:
        """Return how many features each document has; with `distinct`, each counts once."""
        count = _native.count_distinct if flag("distinct", distinct) else _native.count_features
        threads = thread_count(threads)
        counts = GrowingArray((), np.int64, documents)
        for source in self.sources(documents):
            count(source, threads, counts.block(len(source)))
        return counts.take()

    def to_dict(self) -> dict[str, Any]:
        """Return a plain description; `feature_kind_from_dict` is its inverse."""
        return {"kind": type(self).__name__, **self.settings()}

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> FeatureKind:
        """Return the kind that has these `settings`."""
        return cls(**settings)

    def _key(self) -> object:
        """Return a value that is equal for equal kinds."""
        return self.to_dict()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FeatureKind) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.settings().items())
        return f"{type(self).__name__}({arguments})"

    def __reduce__(self) -> tuple[Any, ...]:
        # What the core has is made again.
        return feature_kind_from_dict, (self.to_dict(),)


def made_with(thing: object) -> dict[str, Any]:
    """Return the constructor's arguments, kept as attributes of the same names, as plain values."""
    values = {name: getattr(thing, name) for name in signature(type(thing)).parameters}
    return {name: _plain(value) for name, value in values.items()}


def _plain(value: Any) -> Any:
    if hasattr(value, "to_dict"):
        return value.to_dict()
    return list(value) if isinstance(value, tuple) else value


def as_features(features: object) -> FeatureKind:
    """Return a kind of features, or raise; a function becomes a `FeatureFunction`."""
    if callable(features) and not isinstance(features, FeatureKind | type):
        from lookalike.features.ready import FeatureFunction  # derives from what is here

        return FeatureFunction(features)
    what = (
        "la.Words(), la.Chars(), la.features.Features(), or a function from a text to its features"
    )
    return instance("features", features, FeatureKind, what)


def reads_links(kind: FeatureKind) -> bool:
    """Return whether features are links, or have links among them."""
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


class TextKind(FeatureKind, abstract=True):
    """A kind whose documents are texts."""

    def is_document(self, value: Any) -> bool:
        """Return whether a value is one text."""
        return isinstance(value, str)

    def sources(self, documents: Any, size: int | None = BATCH) -> Iterator[_native.Source]:
        """Yield batches of documents; see `FeatureKind.sources`."""
        position = 0
        for batch in text_batches(documents, size):
            yield self.batch_source(batch, position)
            position += len(batch)

    @abstractmethod
    def batch_source(self, batch: _native.Documents, position: int) -> _native.Source:
        """Return texts as the core reads them; `position` is that of the first, for messages."""


def text_batches(documents: Any, size: int | None) -> Iterator[_native.Documents]:
    """Yield the documents in batches of `size`; None: one batch, even if there are none.

    Columns with the Arrow C interface (pyarrow, pandas, polars) are not copied. Of an iterable, one
    batch is held.
    """
    column = documents if isinstance(documents, _native.Documents) else _arrow_column(documents)
    if column is not None:
        for begin in range(0, len(column), size) if size else [0]:
            yield column.part(begin, begin + (size or len(column)))
        return
    for position, batch in list_batches(documents, size):
        try:
            texts = _native.Documents.from_list(batch, position)
        except ValueError as error:
            raise DocumentError(str(error)) from None
        yield texts


def list_batches(documents: Any, size: int | None) -> Iterator[tuple[int, list[Any]]]:
    """Yield lists of `size` documents with the position of the first; None: one list."""
    position = 0
    iterator = iterate(documents)
    while True:
        batch: list[Any] = []
        try:
            batch.extend(islice(iterator, size))
        except Exception as error:
            error.add_note(f"raised where document {position + len(batch)} was to come")
            raise
        if batch or size is None:
            yield position, batch
        if size is None or len(batch) < size:
            return
        position += size


def iterate(documents: Any) -> Iterator[Any]:
    """Return an iterator over documents, or raise."""
    if isinstance(documents, str | bytes | bytearray):
        raise DocumentError(
            f"documents are one {type(documents).__name__}; expected a list or column of str: "
            "for a single document pass [text]"
        )
    try:
        return iter(documents)
    except TypeError:
        raise DocumentError(
            f"documents are of type {type(documents).__name__}; expected a list of str, an Arrow "
            "string column (pyarrow, pandas, polars) or any iterable of str"
        ) from None


def _arrow_column(documents: Any) -> _native.Documents | None:
    """Return an Arrow column, or None if `documents` are not one."""
    if not hasattr(documents, "__arrow_c_stream__"):
        if not hasattr(documents, "__arrow_c_array__"):
            return None
        # pyarrow's arrays are not streams.
        pyarrow = optional_module("pyarrow", "an Arrow array without a stream", extra="")
        documents = pyarrow.chunked_array([pyarrow.array(documents)])
    try:
        return _native.Documents.from_arrow(documents.__arrow_c_stream__())
    except ValueError as error:
        raise DocumentError(str(error)) from None


def none_below_zero(sources: Iterable[_native.Source]) -> Iterator[_native.Source]:
    """Yield batches of documents that are compared as sets; raise at a weight below 0."""
    position = 0
    for source in sources:
        refuse_below_zero(source, position)
        yield source
        position += len(source)


def refuse_below_zero(source: _native.Source, first_position: int = 0) -> None:
    """Raise if a document has a feature of a weight below 0, which sets cannot have."""
    found = source.first_below_zero
    if found >= 0:
        raise DocumentError(
            f"document {first_position + found} has a feature with a negative weight, which sets "
            "cannot have. Leave it out, or use la.SimHash, la.TopSig or la.cosine"
        )


class GrowingArray:
    """Rows appended block by block, in one piece of memory.

    It is allocated for the length of `source`, if that has one. Otherwise it grows by moving pages
    where the system can, without the second copy that joining a list of blocks would make.
    """

    def __init__(self, shape: tuple[int, ...], dtype: type[np.generic], source: Any = ()) -> None:
        try:
            length = len(source)
        except TypeError:
            length = 0
        self._array: NDArray[Any] = np.empty((length, *shape), dtype)
        self._count = 0
        self._row = math.prod(shape)

    def block(self, rows: int) -> NDArray[Any]:
        """Return a view of new rows, to be filled before the next call."""
        total = self._count + rows
        if total > len(self._array):
            spare = max(1, _SPARE_BYTES // max(1, self._array.itemsize * self._row))
            room = max(total, min(len(self._array) * 5 // 4, total + spare))
            self._array.resize((room, *self._array.shape[1:]), refcheck=False)
        block = self._array[self._count : total]
        self._count = total
        return block

    def take(self) -> NDArray[Any]:
        """Return all rows; nothing may be appended afterwards."""
        if len(self._array) != self._count:
            self._array.resize((self._count, *self._array.shape[1:]), refcheck=False)
        return self._array
