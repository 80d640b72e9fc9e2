"""Signatures within a radius of each other, all of them, or the best where there are too many."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.dedup.work_folder import release
from lookalike.errors import ResultTooLargeError
from lookalike.indexes.all_pairs import pairs_of_rows, seconds_for_all
from lookalike.indexes.base import DEFAULT_LIMIT
from lookalike.indexes.results import Pairs, as_int64

__all__ = ["CHANCE", "NearbyRows", "may_be_drawn", "most_pairs", "of_crowds"]

CHANCE, PATIENCE = 0.99, 10.0
LEADERS = 16
NEAREST = 32
_ROWS_AT_A_TIME = 256
_MATCHES_AT_A_TIME = 1 << 23

Batch = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]


def most_pairs(signatures: int, most: int) -> int:
    """Return how many pairs there may be before those of crowds are left out."""
    return min(DEFAULT_LIMIT, most * signatures)


def may_be_drawn(signatures: int, width: int) -> bool:
    """Return whether so many signatures of `width` bytes may be compared by bits that are drawn."""
    return seconds_for_all(signatures, width) > PATIENCE


class NearbyRows:
    """Pairs of signatures that differ in at most `radius` bits, with their distances.

    Of equal signatures, the one of best rank stands for the others, which are paired with it alone.
    If there are more than `most` pairs a signature on the whole, or more than `limit` in all, those
    that have more than `most` others of better rank within the radius are paired with the `LEADERS`
    best of these, and with the `NEAREST` nearest, so that there are not as many pairs as the square
    of signatures. `crowded` counts them.

    Where comparing each with each would take more than some `PATIENCE` seconds of one thread, only
    those are compared that agree in some bits, which are drawn: each pair within the radius is
    found with a chance of `CHANCE` at least. `drawn` says whether that was so.
    """

    def __init__(
        self,
        signatures: NDArray[np.uint8],
        rank: NDArray[np.int64],
        radius: int,
        *,
        most: int,
        limit: int | None,
        threads: int,
        device: str = "cpu",
    ) -> None:
        self._signatures = signatures
        self._rank = rank
        self._radius = radius
        self._most = most
        self._limit = min(most_pairs(len(signatures), most), limit or DEFAULT_LIMIT)
        self._threads = threads
        self._device = device
        self.crowded = 0
        self.drawn = False

    def pairs(self, progress: Callable[[float], None]) -> Iterator[Batch]:
        """Yield pairs of rows, the one of better rank first; `progress` hears the share done."""
        by_rank = np.argsort(self._rank, kind="stable")
        places = np.empty(len(by_rank), np.int64)
        places[by_rank] = np.arange(len(by_rank))
        try:
            found = self._found(places)
        except ResultTooLargeError:
            for left, right, distances in self._some_pairs(by_rank, progress):
                yield by_rank[left], by_rank[right], distances
        else:
            self.drawn = not found.exact
            yield by_rank[found.left], by_rank[found.right], found.distances

    def _found(self, ids: NDArray[np.int64]) -> Pairs:
        """Return pairs of these ids: each with each on a card, else in the way that is quickest."""
        if self._device == "gpu":
            from lookalike.gpu import GpuIndex

            index = GpuIndex(self._signatures, ids)
            return index.pairs(self._radius, limit=self._limit, collapse=True)
        return pairs_of_rows(
            self._signatures,
            ids,
            self._radius,
            self._limit,
            True,
            self._threads,
            recall=CHANCE if may_be_drawn(*self._signatures.shape) else None,
        )

    def _some_pairs(
        self, by_rank: NDArray[np.int64], progress: Callable[[float], None]
    ) -> Iterator[Batch]:
        """Yield pairs of places in the order of ranks, left before right."""
        rows = self._signatures[by_rank]
        release(self._signatures)
        equal, offsets = _native.equal_rows(rows)
        groups = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        best = np.minimum.reduceat(equal, offsets[:-1]) if len(equal) else equal
        others = equal != best[groups]
        yield best[groups][others], equal[others], np.zeros(int(others.sum()), np.int32)
        alone = np.ones(len(rows), bool)
        alone[equal[others]] = False
        kept = np.flatnonzero(alone)
        rows = rows[kept]
        begin, count = 0, _ROWS_AT_A_TIME
        while begin < len(rows):
            end = min(len(rows), begin + count)
            limit = max(_MATCHES_AT_A_TIME, end)  # one row is never too many
            try:
                matches = _native.scan_within(
                    rows[:end], None, True, rows[begin:end], self._radius, limit, self._threads
                )
            except _native.TooManyResults:
                count //= 2
                continue
            left, right, distances = self._chosen(begin, *matches)
            yield kept[left], kept[right], distances
            begin, count = end, min(_ROWS_AT_A_TIME, 2 * count)
            progress(begin / len(rows))

    def _chosen(
        self,
        begin: int,
        offsets: NDArray[np.int64],
        ids: NDArray[np.int64],
        distances: NDArray[np.int32],
    ) -> Batch:
        """Return the matches of rows from `begin` on that become pairs: by (distance, id)."""
        rows = begin + np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        better = as_int64(ids) < rows
        left, right, distances = as_int64(ids)[better], rows[better], distances[better]
        counts = np.bincount(right - begin, minlength=len(offsets) - 1)
        wanted, crowded = of_crowds(left, right - begin, counts, counts, self._most)
        self.crowded += crowded
        return left[wanted], right[wanted], distances[wanted]


def of_crowds(
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    known: NDArray[np.int64],
    counts: NDArray[np.int64],
    most: int,
) -> tuple[NDArray[np.bool_], int]:
    """Return which matches become pairs, and how many rows have too many for all to.

    Row r of `right`, which ascends, has `known[r]` matches here, by (distance, left), and
    `counts[r]` in all; of more than `most`, the `LEADERS` least `left` and the `NEAREST` nearest
    become pairs.
    """
    crowded = counts > most
    by_distance = np.arange(len(left)) - np.repeat(np.cumsum(known) - known, known)
    by_rank = np.empty(len(left), np.int64)
    by_rank[np.lexsort((left, right))] = by_distance
    wanted = ~crowded[right] | (by_rank < LEADERS) | (by_distance < NEAREST)
    return wanted, int(crowded.sum())
