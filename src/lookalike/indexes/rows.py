"""Signatures with their ids, and arrays in huge pages."""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from lookalike.checks import as_array
from lookalike.errors import ArgumentError, CorruptIndexError
from lookalike.signatures import as_signatures
from lookalike.signatures.arrays import MAX_BITS
from lookalike.storage.container import Container

Signatures = NDArray[np.uint8]  # uint8[n, bits // 8]


@dataclass(frozen=True, eq=False, slots=True)
class Rows:
    """Signatures and, unless ids are positions, the ids. Nothing is copied."""

    signatures: Signatures
    ids: NDArray[np.int64] | None = None
    ascending: bool = True  # whether ids ascend with position

    @classmethod
    def of(cls, signatures: ArrayLike, ids: ArrayLike | None = None) -> Rows:
        """Return validated rows, or raise an error that says what is wrong."""
        rows = as_signatures(signatures)
        if ids is None:
            return cls(rows)
        return cls(rows, *check_ids(ids, len(rows)))

    def __len__(self) -> int:
        return len(self.signatures)

    @property
    def bits(self) -> int:
        """Number of bits of a signature."""
        return 8 * int(self.signatures.shape[1])

    @property
    def next_id(self) -> int:
        """One more than the largest id."""
        return len(self) if self.ids is None else int(self.ids.max(initial=-1)) + 1

    def all_ids(self) -> NDArray[np.int64]:
        """Return the ids; positions if the caller gave none."""
        return np.arange(len(self), dtype=np.int64) if self.ids is None else self.ids

    def take(self, places: NDArray[np.int64]) -> Rows:
        """Return copies of the rows at ascending positions."""
        ids = places if self.ids is None else self.ids[places]
        return Rows(self.signatures[places], ids, self.ascending)

    def arrays(self, prefix: str = "") -> dict[str, NDArray[Any]]:
        """Return the arrays to save, by name."""
        arrays: dict[str, NDArray[Any]] = {f"{prefix}signatures": self.signatures}
        if self.ids is not None:
            arrays[f"{prefix}ids"] = self.ids
        return arrays

    @classmethod
    def restored(cls, container: Container, ascending: bool, prefix: str = "") -> Rows:
        """Return the rows that `arrays` saved, memory-mapped."""
        signatures = container.array(f"{prefix}signatures", np.uint8, 2)
        if not 1 <= signatures.shape[1] <= MAX_BITS // 8:
            raise CorruptIndexError(
                f"{container.path} holds signatures of {signatures.shape[1]} bytes; it is damaged"
            )
        ids = None
        if f"{prefix}ids" in container:
            ids = container.array(f"{prefix}ids", np.int64, 1)
            if len(ids) != len(signatures):
                raise CorruptIndexError(
                    f"{container.path} holds {len(signatures)} signatures and {len(ids)} ids; "
                    "it is damaged"
                )
        return cls(signatures, ids, ascending)


def as_ids(ids: NDArray[Any]) -> NDArray[np.int64]:
    """Return ids as int64, or raise."""
    if ids.ndim != 1:
        raise ArgumentError(f"ids have shape {ids.shape}; expected one dimension")
    if not len(ids):
        return np.empty(0, np.int64)
    if ids.dtype.kind not in "iu":
        raise ArgumentError(f"ids are {ids.dtype}; expected whole numbers (int64)")
    if ids.dtype == np.uint64 and ids.max() > np.iinfo(np.int64).max:
        raise ArgumentError(f"the largest id is {ids.max()}; int64 ends at 2**63 - 1")
    values = np.ascontiguousarray(ids, dtype=np.int64)
    if values.min() < 0:
        raise ArgumentError(
            f"the smallest id is {values.min()}; expected 0 or more, because -1 marks empty places"
        )
    return values


def find_ids(
    wanted: NDArray[np.int64],
    ids: NDArray[np.int64] | None,
    count: int,
    order: NDArray[np.int64] | None,
    removed: NDArray[np.uint8] | None,
) -> NDArray[np.int64]:
    """Return the position of each wanted id, or -1 if missing or removed; `order` sorts the ids."""
    if not count:
        return np.full(len(wanted), -1)
    if ids is None:
        found = np.where((wanted >= 0) & (wanted < count), wanted, -1)
    else:
        # Only the last position of an id can be that of a row that was not removed.
        places = (np.searchsorted(ids, wanted, side="right", sorter=order) - 1).clip(min=0)
        positions = places if order is None else order[places]
        found = np.where(ids[positions] == wanted, positions, -1)
    if removed is not None:
        found = np.where((found >= 0) & (removed[found] == 0), found, -1)
    return found


def check_ids(ids: ArrayLike, count: int) -> tuple[NDArray[np.int64], bool]:
    """Return validated ids, and whether they ascend."""
    array = as_array("ids", ids)
    if array.ndim != 1 or len(array) != count:
        raise ArgumentError(
            f"ids have shape {array.shape}, but there are {count} signatures; expected ({count},)"
        )
    values = as_ids(array)
    if bool((values[1:] > values[:-1]).all()):
        return values, True
    ordered = np.sort(values)
    repeated = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(repeated):
        raise ArgumentError(f"the id {repeated[0]} is given more than once; ids must be distinct")
    return values, False


_PAGE = 1 << 21


def empty_in_large_pages(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return an uninitialized array, in huge pages of 2 MB where the system has them."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    if size < _PAGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.empty(shape, dtype)
    try:
        memory = mmap.mmap(-1, size + _PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory.madvise(mmap.MADV_HUGEPAGE)
    except OSError:  # a system without them, or without memory: NumPy says so
        return np.empty(shape, dtype)
    whole = np.frombuffer(memory, np.uint8)
    begin = -whole.ctypes.data % _PAGE
    return whole[begin : begin + size].view(dtype).reshape(shape)
