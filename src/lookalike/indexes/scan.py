"""ScanIndex: every signature, every time. The truth that other indexes are measured by."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import neighbor_count, thread_count, whole_number
from lookalike.indexes.base import DEFAULT_LIMIT, RowsIndex
from lookalike.indexes.filters import Among, Chosen, as_masks, worth_copying
from lookalike.indexes.results import Matches, Neighbors
from lookalike.indexes.rows import Rows
from lookalike.indexes.segments import Segment, chosen_of, scan_nearest, scan_within
from lookalike.signatures import as_queries

if TYPE_CHECKING:
    pass

__all__ = ["ScanIndex"]


class ScanIndex(RowsIndex):
    """Exhaustive search, always exact, nothing to build.

    One query reads the collection once, at the speed of memory; a batch is compared tile by tile,
    so that what was read serves all its queries. Costs no memory beside the signatures. `pairs`
    compares each signature with each.
    """

    kind = "scan"
    _each_with_each = True

    def __init__(self, signatures: ArrayLike, ids: ArrayLike | None = None) -> None:
        self._rows = Rows.of(signatures, ids)

    @property
    def signatures(self) -> NDArray[np.uint8]:
        """The signatures, where the caller has them."""
        self._verify_rest()
        return self._rows.signatures

    @property
    def ids(self) -> NDArray[np.int64] | None:
        """The caller's ids; None if positions are the ids."""
        self._verify_rest()
        return self._rows.ids

    @property
    def takes_masks(self) -> bool:
        """Whether queries may have masks: yes."""
        return True

    def search(
        self,
        queries: ArrayLike,
        k: SupportsIndex,
        *,
        among: Among | None = None,
        masks: ArrayLike | None = None,
        threads: SupportsIndex | None = None,
    ) -> Neighbors:
        """Return the k nearest signatures of each query, nearest first, ties by id; exact.

        `among`: only these ids are searched, or those whose place in a mask is True. `masks`, one
        for each query and as wide: only bits that are 1 there are compared. `distances` count
        these, and ties are broken by the distance over all bits, then by id.
        """
        rows = as_queries(queries, self.bits)
        wanted = neighbor_count(k, len(rows), len(self))
        counting = None if masks is None else as_masks(masks, self.bits, len(rows))
        part = self._among(among, len(rows))
        return scan_nearest(part, rows, wanted, thread_count(threads), counting)

    def within(
        self,
        queries: ArrayLike,
        radius: SupportsIndex,
        *,
        limit: SupportsIndex = DEFAULT_LIMIT,
        among: Among | None = None,
        masks: ArrayLike | None = None,
        threads: SupportsIndex | None = None,
    ) -> Matches:
        """Return every signature at distance `radius` or less from each query; exact.

        `among` and `masks` as for `search`. More than `limit` matches in all raise
        `ResultTooLargeError`, before memory runs out.
        """
        rows = as_queries(queries, self.bits)
        most, near = whole_number("limit", limit, at_least=0), self._radius(radius)
        counting = None if masks is None else as_masks(masks, self.bits, len(rows))
        part = self._among(among, len(rows))
        return scan_within(part, rows, near, most, thread_count(threads), radius, counting)

    @cached_property
    def _segment(self) -> Segment:
        return Segment(self._rows, 1)  # without lists, so that the width does not matter

    def _among(self, among: Among | None, queries: int) -> Segment:
        """Return what is to be searched."""
        if among is None:
            return self._segment
        chosen = Chosen.of(among, self.next_id)
        (part,) = chosen_of([self._segment], chosen, worth_copying(len(self), self.bits, queries))
        return part

    def _radius(self, radius: SupportsIndex) -> int:
        return min(whole_number("radius", radius, at_least=0), self.bits)
