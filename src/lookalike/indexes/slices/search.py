"""Search in segments of slice lists: options, and the answer of the core."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.checks import LARGEST, one_of, whole_number
from lookalike.errors import ArgumentError, Said
from lookalike.indexes.results import NO_LIMIT, Explanation, Matches, Neighbors, as_int64, padded
from lookalike.indexes.rows import Signatures
from lookalike.indexes.segments import Segments
from lookalike.indexes.slices.lists import Cut


class CoreAnswer:
    """Answer of the core, one row per query."""

    def __init__(self, queries: int, k: int, alive: int) -> None:
        self.alive = alive  # number of signatures that could be found
        self.ids = np.full((queries, k), -1, np.int64)
        self.distances = np.full((queries, k), -1, np.int32)
        self.scores = np.full((queries, k), -1, np.int32)
        self.rest = np.empty(queries, np.int32)
        self.proven = np.empty(queries, np.uint8)
        self.work = np.zeros((5, queries), np.int64)

    def native(self) -> _native.NearestAnswer:
        """Return the arrays for the core to write to."""
        return _native.NearestAnswer(
            ids=self.ids,
            distances=self.distances,
            scores=self.scores,
            rest=self.rest,
            proven=self.proven,
            work=self.work,
        )

    def explanation(self, bits: int, slice_bits: Cut, k: int) -> Explanation:
        """Return what was read, and the distances that the score of each result allows."""
        lists, postings, candidates, reranked, expanded = self.work
        optimistic = np.full(self.scores.shape, -1, np.int32)
        for expand in np.unique(expanded):
            table = _native.optimistic_distances(bits, slice_bits, int(expand))
            chosen = expanded == expand
            optimistic[chosen] = table[self.scores[chosen].clip(0)]
        pessimistic = (bits - self.scores).astype(np.int32)
        missing = self.ids < 0
        optimistic[missing] = pessimistic[missing] = -1
        near, far = padded(optimistic, k), padded(pessimistic, k)
        proven = self.proven.astype(bool)
        return Explanation(proven, lists, postings, candidates, reranked, expanded, near, far)


_MOST_VARIANTS = 1 << 22
_USUAL_EXPAND = 3
_RULES: dict[str, _native.Cull] = {
    rule: getattr(_native.Cull, rule) for rule in ("pessimistic", "optimistic", "both")
}


class Settings(NamedTuple):
    """Validated options of a search."""

    expand: int
    admit: int
    rerank: int
    """Number of candidates whose distance is computed; 0: the best by score are the answer."""
    or_scan: bool  # whether queries are scanned if lists would take longer
    exact: bool
    explain: bool
    cull: _native.Cull


def search_settings(
    bits: int,
    slice_bits: Cut,
    k: int,
    expand: SupportsIndex | None,
    admit: SupportsIndex | None,
    rerank: SupportsIndex | None,
    exact: bool,
    explain: bool,
    cull: str | None = None,
) -> Settings:
    """Return the options of a search for k, or raise."""
    widest = _widest(bits, slice_bits)
    wide = _USUAL_EXPAND if expand is None else whole_number("expand", expand, at_least=0)
    wide = min(wide, widest)
    lists = _lists_near(widest, wide)
    if lists > _MOST_VARIANTS:
        raise ArgumentError(
            Said("expand"),
            f" is {wide}: {lists} lists for each slice of {widest} bits; expected at "
            f"most {_MOST_VARIANTS}: use a smaller expand, or ",
            Said("exact=True", "--exact"),
        )
    narrow = wide if admit is None else min(whole_number("admit", admit, at_least=0), wide)
    rule = _cull(cull, exact)
    best = usual_compared(k) if rerank is None else rerank_count(rerank, k)
    if rule == _native.Cull.both and rerank is None:
        best = LARGEST
    if not best and cull is not None:
        raise ArgumentError(
            Said("cull"),
            " chooses candidates to compare, and ",
            Said("rerank"),
            " 0 compares none; use one of them",
        )
    if exact and not best:
        raise ArgumentError(
            Said("rerank"),
            " is 0, and scores alone are not exact. Leave out ",
            Said("exact=True", "--exact"),
            ", or rerank some candidates",
        )
    # Scores of a scan are of all bits, so that they could not be compared with those of lists.
    or_scan = expand is None and best > 0
    return Settings(wide, narrow, min(best, LARGEST), or_scan, exact, explain, rule)


@lru_cache
def _widest(bits: int, slice_bits: Cut) -> int:
    return max(_native.slice_widths(bits, slice_bits))


@lru_cache
def _lists_near(width: int, expand: int) -> int:
    """Return the number of lists of one slice within this many bits."""
    return sum(math.comb(width, ones) for ones in range(expand + 1))


def _cull(cull: str | None, exact: bool) -> _native.Cull:
    """Return the rule by which candidates are chosen, or raise."""
    if cull is None:
        return _native.Cull.pessimistic
    rule = one_of("cull", cull, tuple(_RULES))
    if exact:
        raise ArgumentError(
            Said("cull"),
            " chooses candidates, and an exact search compares all that may be near enough. ",
            "Leave out one of them",
        )
    return _RULES[rule]


def usual_compared(k: int) -> int:
    """Return the default number of signatures that are compared with a query for k neighbors."""
    return max(1000, 10 * k)


def rerank_count(rerank: SupportsIndex, k: int) -> int:
    """Return the number of candidates to rerank: 0, or at least k."""
    best = whole_number("rerank", rerank, at_least=0)
    if 0 < best < k:
        raise ArgumentError(
            Said("rerank"), f" is {best}; expected at least k={k}, or 0 for the best by score"
        )
    return best


def nearest_in(
    segments: Segments, rows: Signatures, k: int, settings: Settings, threads: int
) -> CoreAnswer:
    """Return the answer of the core, for k or as many as there are."""
    alive = sum(segment.alive for segment in segments)
    count = min(k, max(1, alive))
    top = CoreAnswer(len(rows), count, alive)
    asked = _native.NearestSettings(
        k=count,
        expand=settings.expand,
        admit=settings.admit,
        rerank=settings.rerank or count,
        exact=settings.exact,
        or_scan=settings.or_scan,
        explain=settings.explain,
        by_score=not settings.rerank,
        cull=settings.cull,
    )
    parts = [segment.native for segment in segments]
    _native.slice_nearest(parts, segments[0].slice_bits, rows, asked, threads, top.native())
    return top


def within_in(
    segments: Segments,
    rows: Signatures,
    radius: int,
    limit: int,
    explain: bool,
    threads: int,
    masks: Signatures | None = None,
) -> Matches:
    """Return all matches within the radius; with masks, over the bits of each mask."""
    lists = [segment.native for segment in segments], segments[0].slice_bits
    limits, unmasked = (radius, min(limit, NO_LIMIT), threads), None
    if masks is None:
        offsets, ids, distances, work = _native.slice_within(*lists, rows, *limits)
    else:
        found = _native.slice_within_masked(*lists, rows, masks, *limits)
        offsets, ids, distances, unmasked, work = found
    explanation = _explained(work) if explain else None
    return Matches(as_int64(offsets), as_int64(ids), distances, True, explanation, unmasked)


def nearest_masked_in(
    segments: Segments, rows: Signatures, masks: Signatures, k: int, explain: bool, threads: int
) -> Neighbors:
    """Return the k nearest over the bits of each query's mask; exact."""
    ids = np.full((len(rows), k), -1, np.int64)
    distances, unmasked = (np.full((len(rows), k), -1, np.int32) for _ in range(2))
    lists = [segment.native for segment in segments], segments[0].slice_bits
    work = _native.slice_nearest_masked(*lists, rows, masks, k, threads, ids, distances, unmasked)
    explanation = _explained(work) if explain else None
    return Neighbors(ids, distances, True, explanation, unmasked=unmasked)


def _explained(work: NDArray[np.int64]) -> Explanation:
    """Return the explanation of an exact search."""
    lists, postings, verified = work.reshape(-1, 3).T
    return Explanation(np.ones(len(lists), bool), lists, postings, verified, verified)
