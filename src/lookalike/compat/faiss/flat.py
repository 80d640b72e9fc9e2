"""`IndexBinaryFlat`: every signature, every time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.compat.faiss.base import FaissError, IndexBinary, State, omp_get_max_threads
from lookalike.compat.faiss.selectors import IDSelector
from lookalike.errors import CorruptIndexError
from lookalike.indexes.results import NO_LIMIT, Matches, Neighbors
from lookalike.indexes.scan import ScanIndex

if TYPE_CHECKING:
    from lookalike.storage import Container

__all__ = ["Growing", "IndexBinaryFlat", "knn_hamming"]


class Growing:
    """Rows of an array with room for more, so that adding one at a time costs no copy each."""

    def __init__(self, empty: NDArray[np.generic]) -> None:
        self._store = empty
        self._count = len(empty)

    @property
    def rows(self) -> NDArray[np.generic]:
        """What was added so far."""
        return self._store[: self._count]

    def add(self, rows: NDArray[np.generic]) -> None:
        """Copy more rows to the end."""
        if not len(rows):
            return
        total = self._count + len(rows)
        if total > len(self._store):
            store = np.empty((max(total, 2 * self._count), *rows.shape[1:]), rows.dtype)
            store[: self._count] = self.rows
            self._store = store
        self._store[self._count : total] = rows
        self._count = total

    def keep(self, mask: NDArray[np.bool_]) -> None:
        """Let go of the others."""
        self._store = self.rows[mask]
        self._count = len(self._store)


class IndexBinaryFlat(IndexBinary):
    """Exhaustive search, exact."""

    def __init__(self, d: SupportsIndex) -> None:
        super().__init__(d)
        self.use_heap = True  # taken and not needed, as the next two
        self.query_batch_size = 32
        self.approx_topk_mode = 0
        self.reset()

    @property
    def ntotal(self) -> int:
        """How many signatures there are."""
        return len(self._growing.rows)

    @property
    def xb(self) -> NDArray[np.uint8]:
        """All signatures, one after the other."""
        return self._signatures.reshape(-1)

    @property
    def _signatures(self) -> NDArray[np.uint8]:
        rows: NDArray[np.uint8] = self._growing.rows  # type: ignore[assignment]
        return rows

    def reset(self) -> None:
        """Take out everything."""
        self._growing = Growing(np.empty((0, self.code_size), np.uint8))

    def _add(self, rows: NDArray[np.uint8], labels: NDArray[np.int64] | None) -> None:
        if labels is not None:
            self._cannot("add_with_ids")
        self._growing.add(rows)

    def _search(self, rows: NDArray[np.uint8], k: int, chosen: IDSelector | None) -> Neighbors:
        among, threads = self._among(chosen), omp_get_max_threads()
        return ScanIndex(self._signatures).search(rows, k, among=among, threads=threads)

    def _within(self, rows: NDArray[np.uint8], radius: int, chosen: IDSelector | None) -> Matches:
        among, threads = self._among(chosen), omp_get_max_threads()
        index = ScanIndex(self._signatures)
        return index.within(rows, radius, limit=NO_LIMIT, among=among, threads=threads)

    def _among(self, chosen: IDSelector | None) -> NDArray[np.bool_] | None:
        return None if chosen is None else chosen.members(np.arange(self.ntotal))

    def _remove(self, selector: IDSelector) -> int:
        gone = selector.members(np.arange(self.ntotal))
        self._growing.keep(~gone)
        return int(gone.sum())

    def _signature(self, label: int) -> NDArray[np.uint8]:
        if not 0 <= label < self.ntotal:
            raise FaissError(f"key {label} not found: there are {self.ntotal} signatures")
        return np.array(self._signatures[label])

    def _state(self) -> State:
        return {"d": self.d}, {"signatures": self._signatures}

    @classmethod
    def _restored(cls, container: Container) -> Self:
        index = cls(container.meta["d"])
        rows = container.array("signatures", np.uint8, 2)
        if rows.shape[1] != index.code_size:
            raise CorruptIndexError(f"{container.path}: signatures of {rows.shape[1]} bytes")
        index._growing = Growing(rows)
        return index


def knn_hamming(
    xq: ArrayLike, xb: ArrayLike, k: SupportsIndex, variant: str = "hc"
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return distances and positions of the k nearest of `xb`, without an index to keep."""
    if variant not in ("hc", "mc"):
        raise FaissError(f"variant is {variant!r}; expected 'hc' or 'mc', which give the same")
    rows = np.asarray(xb)
    index = IndexBinaryFlat(8 * rows.shape[1] if rows.ndim == 2 else 0)
    index._growing = Growing(index._rows("xb", rows))
    return index.search(xq, k)
