"""The base class of binary indexes with the Python API of faiss, selectors, and files."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NoReturn, Self, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import as_array, file_path, thread_count, whole_number
from lookalike.errors import ArgumentError, CorruptIndexError, FileError, FormatError
from lookalike.indexes.results import Matches, Neighbors
from lookalike.shown import brief
from lookalike.signatures.simhash import signature_bits
from lookalike.storage.container import (
    Container,
    container_bytes,
    container_in,
    open_container,
    write_container,
)

__all__ = [
    "FaissError",
    "IDSelector",
    "IDSelectorAll",
    "IDSelectorAnd",
    "IDSelectorArray",
    "IDSelectorBatch",
    "IDSelectorBitmap",
    "IDSelectorNot",
    "IDSelectorOr",
    "IDSelectorRange",
    "IDSelectorTranslated",
    "IDSelectorXOr",
    "IndexBinary",
    "SearchParameters",
    "clone_binary_index",
    "deserialize_index_binary",
    "downcast_IndexBinary",
    "omp_get_max_threads",
    "omp_set_num_threads",
    "read_index_binary",
    "serialize_index_binary",
    "vector_to_array",
    "write_index_binary",
]

Mask = NDArray[np.bool_]


def as_int64(name: str, values: ArrayLike) -> NDArray[np.int64]:
    """Return whole numbers as one dimension of int64, or say what came instead."""
    array = as_array(name, values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ArgumentError(
            f"{name} are {array.dtype} of shape {array.shape}; expected whole numbers in one "
            "dimension"
        )
    return np.ascontiguousarray(array, np.int64)


class IDSelector(ABC):
    """A set of ids."""

    @abstractmethod
    def _members(self, ids: NDArray[np.int64]) -> Mask:
        """Return which of the ids are in the set."""

    def is_member(self, id: SupportsIndex) -> bool:
        """Return whether an id is in the set."""
        return bool(self._members(np.array([id.__index__()], np.int64))[0])


class IDSelectorAll(IDSelector):
    """Every id."""

    def _members(self, ids: NDArray[np.int64]) -> Mask:
        return np.ones(len(ids), bool)


class IDSelectorArray(IDSelector):
    """The ids of an array."""

    def __init__(self, ids: ArrayLike) -> None:
        self.ids = as_int64("ids", ids)

    def _members(self, ids: NDArray[np.int64]) -> Mask:
        return np.isin(ids, self.ids)


class IDSelectorBatch(IDSelectorArray):
    """The same; in faiss a hash table, where the other is a list."""


class IDSelectorRange(IDSelector):
    """Ids from `imin` up to, and without, `imax`."""

    def __init__(
        self, imin: SupportsIndex, imax: SupportsIndex, assume_sorted: bool = False
    ) -> None:
        self.imin, self.imax = imin.__index__(), imax.__index__()
        self.assume_sorted = assume_sorted

    def _members(self, ids: NDArray[np.int64]) -> Mask:
        return (ids >= self.imin) & (ids < self.imax)


class IDSelectorBitmap(IDSelector):
    """Ids whose bit is set: bit `id % 8` of byte `id // 8`."""

    def __init__(self, bitmap: ArrayLike) -> None:
        array = as_array("bitmap", bitmap)
        if array.ndim != 1 or array.dtype != np.uint8:
            raise ArgumentError(f"bitmap is {brief(bitmap)}; expected uint8 in one dimension")
        self._set = np.unpackbits(array, bitorder="little").astype(bool)

    def _members(self, ids: NDArray[np.int64]) -> Mask:
        inside = (ids >= 0) & (ids < len(self._set))
        found = np.zeros(len(ids), bool)
        found[inside] = self._set[ids[inside]]
        return found


class IDSelectorNot(IDSelector):
    """What is not in another set."""

    def __init__(self, sel: IDSelector) -> None:
        self.sel = sel

    def _members(self, ids: NDArray[np.int64]) -> Mask:
        return ~self.sel._members(ids)


class _Both(IDSelector):
    _combined: ClassVar[np.ufunc]

    def __init__(self, lhs: IDSelector, rhs: IDSelector) -> None:
        self.lhs, self.rhs = lhs, rhs

    def _members(self, ids: NDArray[np.int64]) -> Mask:
        found: Mask = self._combined(self.lhs._members(ids), self.rhs._members(ids))
        return found


class IDSelectorAnd(_Both):
    """What is in both sets."""

    _combined = np.logical_and


class IDSelectorOr(_Both):
    """What is in one of two sets, or both."""

    _combined = np.logical_or


class IDSelectorXOr(_Both):
    """What is in one of two sets and not in both."""

    _combined = np.logical_xor


class IDSelectorTranslated(IDSelector):
    """Positions whose id, `id_map[position]`, is in another set."""

    def __init__(self, id_map: ArrayLike, sel: IDSelector) -> None:
        self.id_map, self.sel = as_int64("id_map", id_map), sel

    def _members(self, ids: NDArray[np.int64]) -> Mask:
        return self.sel._members(self.id_map[ids])


class SearchParameters:
    """Options of a search: `sel`, the ids that it may return."""

    def __init__(self, sel: IDSelector | None = None, **others: Any) -> None:
        if others:
            raise ArgumentError(f"{sorted(others)} are not supported; expected only sel")
        if sel is not None and not isinstance(sel, IDSelector):
            raise ArgumentError(f"sel is {brief(sel)}; expected an IDSelector or None")
        self.sel = sel


_KIND = "compat.faiss"
_FARTHEST = np.iinfo(np.int32).max

State = tuple[dict[str, Any], dict[str, NDArray[Any]]]

_threads: int | None = None


class FaissError(ArgumentError, RuntimeError):
    """What faiss throws."""


def omp_set_num_threads(n: SupportsIndex) -> None:
    """Set the number of threads of searches."""
    global _threads
    _threads = whole_number("n", n, at_least=1)


def omp_get_max_threads() -> int:
    """Return the number of threads of searches."""
    return thread_count(_threads)


def vector_to_array(v: ArrayLike) -> NDArray[Any]:
    """Return a copy of `index.xb` or `index.id_map`, which are arrays here already."""
    return np.array(v)


class IndexBinary(ABC):
    """Signatures of `d` bits with labels (default: their positions)."""

    metric_type: ClassVar[int] = 1
    is_trained: ClassVar[bool] = True
    thisown: ClassVar[bool] = True
    _classes: ClassVar[dict[str, type[IndexBinary]]] = {}

    def __init_subclass__(cls) -> None:
        cls._classes[cls.__name__] = cls  # files name them

    def __init__(self, d: SupportsIndex) -> None:
        try:
            self.d = signature_bits(d)
        except ArgumentError as error:
            raise FaissError(f"d: {error}") from None
        self.verbose = False

    @property
    def code_size(self) -> int:
        """The number of bytes of a signature."""
        return self.d // 8

    @property
    @abstractmethod
    def ntotal(self) -> int:
        """The number of signatures."""

    def train(self, x: ArrayLike) -> None:
        """Do nothing: these indexes have nothing to learn."""
        self._rows("x", x)

    def add(self, x: ArrayLike) -> None:
        """Add signatures, whose labels are the next positions."""
        self._add(self._rows("x", x), None)

    def add_with_ids(self, x: ArrayLike, ids: ArrayLike) -> None:
        """Add signatures with labels: any int64, also repeated."""
        rows, labels = self._rows("x", x), as_int64("ids", ids)
        if len(labels) != len(rows):
            raise FaissError(f"there are {len(rows)} signatures and {len(labels)} ids")
        self._add(rows, labels)

    def search(
        self, x: ArrayLike, k: SupportsIndex, *, params: SearchParameters | None = None
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return distances and labels of the k nearest; 2147483647 and -1 in empty places."""
        found = self._search(self._rows("x", x), self._count("k", k), self._selector(params))
        distances = np.where(found.ids >= 0, found.distances, np.int32(_FARTHEST))
        return distances, self._labels(found.ids)

    def assign(
        self, x: ArrayLike, k: SupportsIndex = 1, labels: NDArray[np.int64] | None = None
    ) -> NDArray[np.int64]:
        """Return the labels that `search` does, in `labels` if given."""
        found = self.search(x, k)[1]
        if labels is None:
            return found
        labels[...] = found
        return labels

    def range_search(
        self, x: ArrayLike, thresh: SupportsIndex, *, params: SearchParameters | None = None
    ) -> tuple[NDArray[np.uint64], NDArray[np.float32], NDArray[np.int64]]:
        """Return everything nearer than `thresh`: limits, distances and labels of each query."""
        queries = self._rows("x", x)
        radius = self._count("thresh", thresh, at_least=None) - 1
        if radius < 0:
            nothing = np.zeros(len(queries) + 1, np.uint64)
            return nothing, np.empty(0, np.float32), np.empty(0, np.int64)
        found = self._within(queries, min(radius, self.d), self._selector(params))
        offsets, distances = found.offsets.astype(np.uint64), found.distances.astype(np.float32)
        return offsets, distances, self._labels(found.ids)

    def remove_ids(self, x: IDSelector | ArrayLike) -> int:
        """Remove the labels of an array or a selector; return the number of signatures removed."""
        selector = x if isinstance(x, IDSelector) else IDSelectorBatch(as_int64("x", x))
        return self._remove(selector)

    def reconstruct(self, key: SupportsIndex) -> NDArray[np.uint8]:
        """Return the signature with this label."""
        return self._signature(self._count("key", key, at_least=None))

    def reconstruct_n(
        self, n0: SupportsIndex = 0, ni: SupportsIndex = -1, x: NDArray[np.uint8] | None = None
    ) -> NDArray[np.uint8]:
        """Return `ni` signatures from label `n0` on (all the rest: -1), in `x` if given."""
        first = self._count("n0", n0, at_least=0)
        count = self._count("ni", ni, at_least=-1)
        last = self.ntotal if count == -1 else first + count
        rows = [self._signature(key) for key in range(first, last)]
        found = np.array(rows, np.uint8).reshape(-1, self.code_size)
        if x is None:
            return found
        x[...] = found
        return x

    @abstractmethod
    def reset(self) -> None:
        """Remove everything."""

    def sa_code_size(self) -> int:
        """Return the number of bytes of a signature."""
        return self.code_size

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.ntotal} signatures of {self.d} bits)"

    def __reduce__(self) -> tuple[Any, ...]:
        return deserialize_index_binary, (serialize_index_binary(self),)

    # What each kind answers

    @abstractmethod
    def _add(self, rows: NDArray[np.uint8], labels: NDArray[np.int64] | None) -> None: ...

    @abstractmethod
    def _search(self, rows: NDArray[np.uint8], k: int, chosen: IDSelector | None) -> Neighbors:
        """Return positions, by (distance, position)."""

    @abstractmethod
    def _within(self, rows: NDArray[np.uint8], radius: int, chosen: IDSelector | None) -> Matches:
        """Return positions at distance `radius` or less."""

    @abstractmethod
    def _state(self) -> State:
        """Return what a file has to hold."""

    @classmethod
    @abstractmethod
    def _restored(cls, container: Container) -> Self:
        """Return the index whose `_state` a file holds; raise what tells that it is none."""

    def _labels(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the labels of positions; -1 stays."""
        return positions

    def _remove(self, selector: IDSelector) -> int:
        self._cannot("remove_ids")

    def _signature(self, label: int) -> NDArray[np.uint8]:
        self._cannot("reconstruct")

    def _cannot(self, call: str) -> NoReturn:
        raise FaissError(f"{call} not implemented for {type(self).__name__}, as in faiss")

    # Checks

    def _rows(self, name: str, x: ArrayLike) -> NDArray[np.uint8]:
        rows = as_array(name, x)
        if rows.dtype != np.uint8 or rows.ndim != 2 or rows.shape[1] != self.code_size:
            raise FaissError(
                f"{name} is {rows.dtype} of shape {rows.shape}; expected uint8 of shape "
                f"(count, {self.code_size}), for d={self.d}"
            )
        return np.ascontiguousarray(rows)

    def _count(self, name: str, number: SupportsIndex, at_least: int | None = 1) -> int:
        try:
            value = number.__index__()
        except (AttributeError, TypeError):
            raise FaissError(f"{name} is {brief(number)}; expected a whole number") from None
        if at_least is not None and value < at_least:
            raise FaissError(f"{name} is {value}; expected {at_least} or more")
        return value

    def _selector(self, params: SearchParameters | None) -> IDSelector | None:
        if params is None:
            return None
        if not isinstance(params, SearchParameters):
            raise FaissError(f"params is {brief(params)}; expected SearchParameters")
        return params.sel


def write_index_binary(index: IndexBinary, fname: str | os.PathLike[str]) -> None:
    """Write an index to a file of lookalike's, whole or not at all."""
    write_container(file_path("fname", fname), *_contents(index))


def read_index_binary(fname: str | os.PathLike[str]) -> IndexBinary:
    """Read an index that `write_index_binary` wrote, its signatures mapped, and verified."""
    path = file_path("fname", fname)
    try:
        return index_in(open_container(path))
    except FormatError as error:
        with open(path, "rb") as file:
            raise _foreign(file.read(4), str(path)) or error from None


def serialize_index_binary(index: IndexBinary) -> NDArray[np.uint8]:
    """Return what `write_index_binary` would write."""
    return np.frombuffer(container_bytes(*_contents(index)), np.uint8)


def deserialize_index_binary(data: NDArray[np.uint8] | bytes) -> IndexBinary:
    """Return the index that `serialize_index_binary` turned to bytes."""
    raw = data.tobytes() if isinstance(data, np.ndarray) else data
    try:
        return index_in(container_in(raw))
    except FormatError as error:
        raise _foreign(bytes(raw[:4]), "the bytes") or error from None


def clone_binary_index(index: IndexBinary) -> IndexBinary:
    """Return a copy."""
    return deserialize_index_binary(serialize_index_binary(index))


def downcast_IndexBinary(index: IndexBinary) -> IndexBinary:  # noqa: N802
    """Return the index: here it is of its own class already."""
    return index


def index_in(container: Container) -> IndexBinary:
    """Return the index that a container holds."""
    name = container.meta.get("class")
    if container.meta.get("kind") != _KIND or name not in IndexBinary._classes:
        raise FormatError(
            f"{container.path} does not have an index that lookalike.compat.faiss wrote"
        )
    try:
        return IndexBinary._classes[name]._restored(container)
    except (KeyError, ArgumentError, RecursionError) as error:
        raise CorruptIndexError(
            f"{container.path}: the description of the index cannot be used: {error!r}"
        ) from error


def _contents(index: IndexBinary) -> State:
    if not isinstance(index, IndexBinary):
        raise FaissError(f"index is {brief(index)}; expected one of lookalike.compat.faiss")
    meta, arrays = index._state()
    return {"kind": _KIND, "class": type(index).__name__, **meta}, arrays


def _foreign(begin: bytes, name: str) -> FileError | None:
    """Return an error that says what to do with bytes of faiss' own, if these are some."""
    if begin[:2] != b"IB":  # their binary indexes: IBxF, IBMp, IBM2, IBHh, IBHm, ...
        return None
    return FormatError(
        f"{name} was written by faiss (it begins with {begin!r}), and lookalike reads only its own "
        "files. Read it with faiss, and add "
        "faiss.vector_to_array(index.xb).reshape(-1, index.code_size) to a new index"
    )
