"""ScanIndex: every signature, every time. The truth that other indexes are measured by."""

from __future__ import annotations

from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike import _native
from lookalike.checks import thread_count, whole_number
from lookalike.errors import ResultTooLargeError
from lookalike.indexes.base import DEFAULT_LIMIT, Index
from lookalike.indexes.results import Matches, Neighbors, Pairs
from lookalike.signatures import as_queries

__all__ = ["ScanIndex"]

_NO_LIMIT = 2**63 - 1


class ScanIndex(Index):
    """Exhaustive search, always exact, nothing to build.

    One query reads the collection once, at the speed of memory; a batch is compared tile by tile,
    so that what was read serves all its queries. Costs no memory beside the signatures.
    """

    kind = "scan"

    def search(
        self, queries: ArrayLike, k: SupportsIndex, *, threads: SupportsIndex | None = None
    ) -> Neighbors:
        """Return the k nearest signatures of each query, nearest first, ties by id; exact."""
        rows = as_queries(queries, self.bits)
        wanted = whole_number("k", k, at_least=1)
        found = min(wanted, len(self))
        ids = np.empty((len(rows), found), np.int64)
        distances = np.empty((len(rows), found), np.int32)
        _native.scan_top(
            self.signatures,
            self.ids,
            self._ascending,
            rows,
            found,
            thread_count(threads),
            ids,
            distances,
        )
        if found < wanted:
            missing = ((0, 0), (0, wanted - found))
            ids = np.pad(ids, missing, constant_values=-1)
            distances = np.pad(distances, missing, constant_values=-1)
        return Neighbors(ids, distances, exact=True)

    def within(
        self,
        queries: ArrayLike,
        radius: SupportsIndex,
        *,
        limit: SupportsIndex = DEFAULT_LIMIT,
        threads: SupportsIndex | None = None,
    ) -> Matches:
        """Return every signature at distance `radius` or less from each query; exact.

        More than `limit` matches in all raise `ResultTooLargeError`, before memory runs out.
        """
        rows = as_queries(queries, self.bits)
        most = whole_number("limit", limit, at_least=0)
        try:
            offsets, ids, distances = _native.scan_within(
                self.signatures,
                self.ids,
                self._ascending,
                rows,
                self._radius(radius),
                min(most, _NO_LIMIT),
                thread_count(threads),
            )
        except _native.TooManyResults:
            raise ResultTooLargeError(
                f"more than limit={most} matches within radius {radius} of {len(rows)} queries; "
                "ask with a smaller radius or fewer queries at once, or raise the limit"
            ) from None
        return Matches(_as_int64(offsets), _as_int64(ids), distances, exact=True)

    def pairs(
        self,
        radius: SupportsIndex,
        *,
        limit: SupportsIndex = DEFAULT_LIMIT,
        threads: SupportsIndex | None = None,
    ) -> Pairs:
        """Return every pair of the collection at distance `radius` or less, each once; exact.

        Compares n·(n-1)/2 pairs. More than `limit` found raise `ResultTooLargeError`.
        """
        most = whole_number("limit", limit, at_least=0)
        try:
            left, right, distances = _native.scan_pairs(
                self.signatures,
                self.ids,
                self._ascending,
                self._radius(radius),
                min(most, _NO_LIMIT),
                thread_count(threads),
            )
        except _native.TooManyResults:
            raise ResultTooLargeError(
                f"more than limit={most} pairs within radius {radius} among {len(self)} "
                "signatures; ask with a smaller radius, leave exact duplicates out first "
                "(np.unique(signatures, axis=0)), or raise the limit"
            ) from None
        return Pairs(_as_int64(left), _as_int64(right), distances, exact=True)

    def _radius(self, radius: SupportsIndex) -> int:
        return min(whole_number("radius", radius, at_least=0), self.bits)


def _as_int64(array: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return NumPy's own int64; the core gives C's `long long`, which prints differently."""
    return array.view(np.int64)
