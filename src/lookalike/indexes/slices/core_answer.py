"""What the core tells about a search of slice lists, before it becomes `Neighbors`."""

from __future__ import annotations

import numpy as np

from lookalike import _native
from lookalike.indexes.merging import padded
from lookalike.indexes.results import Explanation

__all__ = ["CoreAnswer"]


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
