"""How the queries of a batch find their matches in a chunk: by blocks, or by flips."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.errors import ResultTooLargeError
from lookalike.indexes.batch.chunks import Chunk, Matcher, MatchesSoFar, Numbers, Signatures
from lookalike.indexes.results import Matches, too_many_matches
from lookalike.indexes.tables.blocks import BlockIndex
from lookalike.indexes.tables.flip_sets import (
    ENOUGH,
    MOST_CHOSEN,
    MOST_FLIPS,
    all_sets,
    flips_expected,
    likely_sets,
)
from lookalike.indexes.tables.flips import FlipIndex
from lookalike.indexes.tables.sorted_table import header_width
from lookalike.indexes.tables.steps import TableSteps

__all__ = ["ByBlocks", "ByFlips", "batch_header_bits"]

_LOOKED_UP = 1 << 20
_WORTH_DROPPING = 0.75
"""Queries with a match are dropped when no more than this share is left."""


class ByBlocks(Matcher):
    """Tables over the queries, in which every signature of the file is looked up."""

    exact = True
    joins_runs = False

    def __init__(
        self, queries: Signatures, radius: int, tables: SupportsIndex | None, threads: int
    ) -> None:
        self._threads = threads
        self._index = BlockIndex(queries, radius, tables, threads=threads)

    def match(self, chunk: Chunk, found: MatchesSoFar) -> None:
        """Look up all signatures of the chunk, some at a time, whoever has a match already.

        With `first` too: a signature that has found one query may be the only match of another.
        """
        for begin in range(0, len(chunk.ids), _LOOKED_UP):
            self._look_up(chunk, begin, min(begin + _LOOKED_UP, len(chunk.ids)), found)

    def _look_up(self, chunk: Chunk, begin: int, end: int, found: MatchesSoFar) -> None:
        """Look up some; with `first` fewer at a time if they match more often than is kept."""
        most = max(found.limit, found.queries) if found.first else found.limit
        try:
            matches = self._index.within(
                chunk.signatures[begin:end], limit=most, threads=self._threads
            )
        except ResultTooLargeError:
            if not found.first:
                raise too_many_matches(found.limit, found.radius, found.queries) from None
            middle = (begin + end) // 2  # one alone matches each query once at most
            self._look_up(chunk, begin, middle, found)
            self._look_up(chunk, middle, end, found)
            return
        found.add(matches.ids, chunk.ids[begin:end][_query_of_each(matches)], matches.distances)


class ByFlips(Matcher):
    """A header table over each chunk, in which the queries are looked up.

    They are asked in the order of their upper bits, so that what one needs is in the cache for the
    next one; their likeliest sets are chosen once.
    """

    def __init__(
        self,
        queries: Signatures,
        radius: int,
        threads: int,
        weights: NDArray[Any] | None,
        flips: int | None,
        recall: float,
        first: bool,
    ) -> None:
        self._queries = queries
        self._radius = radius
        self._threads = threads
        self._weights = weights
        self._flips = flips
        self._recall = recall
        self._first = first
        self._header_bits = 0
        self._asked: NDArray[np.uint32] | None = None
        """The queries that are asked, in that order; None before the first chunk."""
        self._rows = queries
        """Their signatures, and what tells their flips: sets, weights or nothing."""
        self._behind: NDArray[Any] | None = weights
        self.exact = True

    def prepare(self, sizes: Sequence[int]) -> None:
        """Choose header bits that suit all chunks, so that sets need not be chosen again."""
        everything = self._weights is None or self._recall == 1
        self._header_bits = batch_header_bits(
            sizes,
            len(self._queries),
            8 * self._queries.shape[1],
            self._radius,
            None if everything else self._recall,
        )

    def match(self, chunk: Chunk, found: MatchesSoFar) -> None:
        """Ask whoever is left."""
        if chunk.is_sorted:
            index = FlipIndex.of_sorted(chunk.signatures, self._header_bits, self._threads)
        else:
            index = FlipIndex(chunk.signatures, self._header_bits, threads=self._threads)
        asked = self._begin(index) if self._asked is None else self._drop_found(found, self._asked)
        flips = MOST_FLIPS if self._flips is None else self._flips
        matches = index.within_checked(
            self._rows, self._behind, self._radius, flips, self._first, found.limit, self._threads
        )
        self.exact &= matches.exact
        query = asked[_query_of_each(matches)].astype(np.int64)
        found.add(query, chunk.ids[matches.ids], matches.distances)

    def _begin(self, index: FlipIndex) -> NDArray[np.uint32]:
        """Find out how many flips to try, and put the queries in order."""
        weights, every = self._weights, all_sets(self._header_bits, self._radius)
        if weights is None or (self._flips is None and self._recall == 1):
            self._flips = every if self._flips is None else self._flips
        elif self._flips is None:
            self._flips = self._flips_needed(index, weights)
        asked = np.arange(len(self._queries), dtype=np.uint32)
        if weights is None or self._flips <= MOST_CHOSEN:
            self._rows, places = np.empty_like(self._queries), np.empty_like(asked)
            _native.order_by_prefix(self._queries, self._rows, asked, places)
            if weights is not None:
                self._flips = min(self._flips, every)
                self._behind = likely_sets(
                    weights,
                    places,
                    self._header_bits,
                    index.volatility,
                    self._radius,
                    self._flips,
                    self._threads,
                )
        self._asked = asked
        return asked

    def _flips_needed(self, index: FlipIndex, weights: NDArray[Any]) -> int:
        """Return what the recall takes: as measured on this chunk, or as expected if it is poor."""
        if len(self._queries) >= ENOUGH:
            tuning = index.measured(
                self._queries, weights, self._radius, self._recall, self._first, self._threads
            )
            if (tuning.matches or 0) >= ENOUGH:
                return int(tuning.search_settings["flips"])
        bits = 8 * self._queries.shape[1]
        return flips_expected(bits, self._radius, self._header_bits, self._recall)

    def _drop_found(self, found: MatchesSoFar, asked: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Leave out queries that have their match, if so many do that it pays to copy the rest."""
        if found.left <= _WORTH_DROPPING * len(asked):
            left = found.is_open[asked]
            self._asked = asked = asked[left]
            self._rows = self._rows[left]
            self._behind = None if self._behind is None else self._behind[left]
        return asked


def batch_header_bits(
    sizes: Sequence[int], queries: int, bits: int, radius: int, recall: float | None
) -> int:
    """Return the header bits with which chunks of these sizes are the quickest to match.

    Long headers have short buckets, but large tables, which have to be made for each chunk, and
    more flips. Without a recall, all flips are tried.
    """
    count, chunks = sum(sizes), len(sizes)

    def cost(header: int) -> float:
        flips = (
            all_sets(header, radius)
            if recall is None
            else flips_expected(bits, radius, header, recall)
        )
        asked = queries * (1 + flips)
        steps = TableSteps(asked * chunks, asked * count / 2.0**header)
        written = _native.USUAL_COSTS.touch * 2.0**header * chunks
        return written + steps.usual_cost(bits // 8)

    widest = min(header_width(max(sizes, default=0)), bits)
    return min(range(widest + 1), key=cost)


def _query_of_each(matches: Matches) -> Numbers:
    """Return the query of each match; few of many queries have one."""
    counts = np.diff(matches.offsets)
    some = np.flatnonzero(counts)
    return np.repeat(some, counts[some])
