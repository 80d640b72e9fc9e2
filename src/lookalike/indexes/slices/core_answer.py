"""What the core tells about a search of slice lists, before it becomes `Neighbors`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.indexes.results import Explanation

__all__ = ["CoreAnswer", "nearest_of", "padded"]


class CoreAnswer:
    """What the core tells about a search, one row a query."""

    def __init__(self, queries: int, k: int, alive: int) -> None:
        self.alive = alive
        """How many signatures there were to be found."""
        self.ids = np.full((queries, k), -1, np.int64)
        self.distances = np.full((queries, k), -1, np.int32)
        self.scores = np.full((queries, k), -1, np.int32)
        self.rest = np.empty(queries, np.int32)
        self.proven = np.empty(queries, np.uint8)
        self.work = np.zeros((5, queries), np.int64)

    def native(self) -> _native.NearestAnswer:
        """Return the arrays as the core takes them, to write to."""
        return _native.NearestAnswer(
            ids=self.ids,
            distances=self.distances,
            scores=self.scores,
            rest=self.rest,
            proven=self.proven,
            work=self.work,
        )

    def explanation(self, bits: int, slice_bits: int, k: int) -> Explanation:
        """Return what was read, and the bounds that each result's score allows."""
        lists, postings, candidates, reranked, expanded = self.work
        optimistic = np.full(self.scores.shape, -1, np.int32)
        for expand in np.unique(expanded):
            table = _native.optimistic_distances(bits, slice_bits, int(expand))
            chosen = expanded == expand
            optimistic[chosen] = table[self.scores[chosen].clip(0)]
        pessimistic = (bits - self.scores).astype(np.int32)
        missing = self.ids < 0
        optimistic[missing] = pessimistic[missing] = -1
        return Explanation(
            self.proven.astype(bool),
            lists,
            postings,
            candidates,
            reranked,
            expanded,
            padded(optimistic, k),
            padded(pessimistic, k),
        )


def padded(array: NDArray[Any], k: int) -> NDArray[Any]:
    """Return the array with k columns, the new ones -1."""
    if array.shape[1] == k:
        return array
    return np.pad(array, ((0, 0), (0, k - array.shape[1])), constant_values=-1)


def nearest_of(
    ids: NDArray[Any], distances: NDArray[Any], k: int, *others: NDArray[Any]
) -> tuple[NDArray[Any], ...]:
    """Return the k nearest of each row, by (distance, id), and the same places of other arrays."""
    last = np.iinfo(np.int32).max
    order = np.lexsort((ids, np.where(ids >= 0, distances, last)), axis=1)[:, :k]
    arrays: tuple[NDArray[Any], ...] = (ids, distances, *others)
    return tuple(padded(np.take_along_axis(array, order, axis=1), k) for array in arrays)
