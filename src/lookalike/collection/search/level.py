"""Signatures that a search has found, before they become documents."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookalike.collection.answers import Work


class MaskedDistances:
    """Distances over some bits and over all, as one number that is ordered by both."""

    def __init__(self, bits: int) -> None:
        self._all = bits + 1

    def joined(self, masked: NDArray[np.int32], unmasked: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return a number for each pair of distances."""
        return masked.astype(np.int64) * self._all + unmasked

    def within(self, radius: int) -> int:
        """Return the largest number of a pair whose masked distance is at most the radius."""
        return radius * self._all + self._all - 1

    def apart(self, joined: int) -> tuple[int, int]:
        """Return the masked distance and that over all bits."""
        return divmod(joined, self._all)


@dataclass(slots=True)  # not frozen: that would take twice as long to make
class Level:
    """Every signature up to the distance `bound`, nearest first.

    Of a query with a mask, distances are those of `MaskedDistances`.
    Lists and not arrays: most searches find a handful, and become documents one by one.
    """

    numbers: list[int]
    distances: list[int]
    bound: int
    work: Work | None = None

    @classmethod
    def of(
        cls,
        numbers: NDArray[np.int64],
        distances: NDArray[np.int32] | NDArray[np.int64],
        bound: int,
        work: Work | None = None,
    ) -> Level:
        """Return them sorted by distance."""
        order = np.argsort(distances, kind="stable")
        return cls(numbers[order].tolist(), distances[order].tolist(), bound, work)

    def without_last(self) -> Level:
        """Return the k nearest without those as far as the last, of which there may be more."""
        bound = self.distances[-1] - 1
        kept = bisect_right(self.distances, bound)
        return Level(self.numbers[:kept], self.distances[:kept], bound, self.work)
