"""Signatures that a search has found, before they become documents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookalike.collection.answers import Work

__all__ = ["Found"]


@dataclass(frozen=True)
class Found:
    """Every signature up to the distance `bound`, nearest first."""

    numbers: NDArray[np.int64]
    distances: NDArray[np.int32]
    bound: int
    work: Work

    @classmethod
    def of(
        cls, numbers: NDArray[np.int64], distances: NDArray[np.int32], bound: int, work: Work
    ) -> Found:
        """Return them sorted by (distance, number)."""
        order = np.lexsort((numbers, distances))
        return cls(numbers[order], distances[order], bound, work)

    def __len__(self) -> int:
        return len(self.numbers)

    def without_last(self) -> Found:
        """Return the k nearest without those as far as the last, of which there may be more."""
        bound = int(self.distances[-1]) - 1
        kept = int(np.searchsorted(self.distances, bound, side="right"))
        return Found(self.numbers[:kept], self.distances[:kept], bound, self.work)

    def beyond(self, distance: int) -> Found:
        """Return those farther than `distance`."""
        begin = int(np.searchsorted(self.distances, distance, side="right"))
        return Found(self.numbers[begin:], self.distances[begin:], self.bound, self.work)
