"""Searches on the GPU: within a distance, nearest neighbors, and near pairs.

For the k nearest, a sample gives each query a distance that contains k signatures. Then the
collection is read once for everything within it. If ties make that too many results, it is read
part by part in the order of positions, so that later ties can be skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.gpu.card import PIECE, Card, Layout
from lookalike.gpu.tiles import Tiles

QUERY, DISTANCE = 48, 35  # where the query and the distance of a hit begin; rows.cu writes them
ROOM = 1 << 24  # initial space for hits: 256 MB with their notes
MOST_QUERIES = 1 << 64 - QUERY  # maximum number of queries at once: a hit has 16 bits for the query
MOST_SIGNATURES = 1 << DISTANCE  # maximum number of signatures on one GPU, for the same reason


class Queries:
    """Queries on the GPU: uint8[count, stored], and the number of ones of each."""

    def __init__(self, rows: Any, ones: Any) -> None:
        self.rows, self.ones = rows, ones

    @classmethod
    def of(cls, card: Card, layout: Layout, rows: NDArray[np.uint8]) -> Queries:
        """Return signatures as queries."""
        stored = np.zeros((len(rows), layout.stored), np.uint8)
        stored[:, : rows.shape[1]] = rows
        ones = np.bitwise_count(stored).sum(axis=1, dtype=np.int32)
        return cls(card.put(stored), card.put(ones))

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class Span:
    """Range of tiles to search: `count` tiles from the first, one in `step`."""

    first: int
    count: int
    step: int = 1


@dataclass(frozen=True)
class Question:
    """What to search for."""

    tiles: Tiles
    span: Span
    queries: Queries
    cuts: Any  # int32: largest distance for each query; -1: nothing
    allowed: Any = None  # uint32: a bit per position; None: all
    behind: Any = None  # uint64: for each query, only positions after this one are found; None: all


@dataclass(frozen=True)
class Hits:
    """Results, if there was space for all."""

    keys: Any  # uint64, sorted by query, distance and position; incomplete if `complete` is False
    needed: int  # space that the same search needs, at least
    complete: bool


def find(question: Question, room: int) -> Hits:
    """Return all hits, if they are at most `room`."""
    card = question.tiles.card
    xp = card.xp
    found, notes = xp.empty(room, xp.uint64), xp.empty(room, xp.uint64)
    counts = xp.zeros(2, xp.uint64)
    card.kernels(question.tiles.layout).near(question, found, notes, counts)
    noted, taken = (int(count) for count in card.host(counts))
    needed = max(noted, taken)
    return Hits(xp.sort(found[: min(taken, room)]), needed, needed <= room)


def distances(keys: Any) -> Any:
    """Return the distances of hits."""
    return (keys >> np.uint64(DISTANCE) & np.uint64((1 << QUERY - DISTANCE) - 1)).astype(np.int32)


def positions(keys: Any) -> Any:
    """Return the positions of hits."""
    return (keys & np.uint64((1 << DISTANCE) - 1)).astype(np.int64)


def queries_of(keys: Any) -> Any:
    """Return the numbers of the queries of hits."""
    return (keys >> np.uint64(QUERY)).astype(np.int64)


def starts(xp: Any, keys: Any, count: int) -> Any:
    """Return where the hits of each query begin, and where the last one's end."""
    return xp.searchsorted(keys >> np.uint64(QUERY), xp.arange(count + 1, dtype=xp.uint64))


Found = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]
"""Query, position and distance of each hit."""

Part = tuple[Tiles, Any]  # some signatures, with a bit per position that may be found; None: all


def find_all(question: Question, limit: int) -> Hits:
    """Return all hits with as much space as they need, or raise `TooManyResults`."""
    hits = find(question, ROOM)
    while not hits.complete and len(hits.keys) <= limit:
        hits = find(question, hits.needed)  # the first time there may be too little room
    if len(hits.keys) > limit:
        raise _native.TooManyResults
    return hits


def within(parts: Iterable[Part], queries: Queries, radius: int, limit: int) -> Iterator[Found]:
    """Yield the hits of each part."""
    for tiles, allowed in parts:
        cuts = tiles.card.xp.full(len(queries), radius, np.int32)
        hits = find_all(Question(tiles, Span(0, tiles.tiles), queries, cuts, allowed), limit)
        limit -= len(hits.keys)
        host = tiles.card.host
        yield host(queries_of(hits.keys)), host(positions(hits.keys)), host(distances(hits.keys))


_LEAST = 2048  # signatures of a sample, at least
_WRITTEN = 1 << 18  # hits of a sample: more take longer than another sample
_NOTHING = np.uint64(2**64 - 1)  # stands where fewer than k were found; no hit is so large


def queries_at_once(count: int, k: int) -> int:
    """Return the number of queries for which a piece of the collection always fits."""
    most = ROOM // max(1, min(count, PIECE), 2 * k)
    return max(1, min(most, MOST_QUERIES))


class Nearest:
    """The k nearest of each query so far, over parts in the order of positions."""

    def __init__(self, tiles: Tiles, queries: Queries, k: int) -> None:
        self._queries, self._k = queries, k
        self._xp, self._host = tiles.card.xp, tiles.card.host
        self._room = max(ROOM, 2 * k, PIECE)
        self._best = self._xp.full((len(queries), k), _NOTHING)
        self._cuts = self._xp.full(len(queries), 8 * tiles.layout.bytes, np.int32)

    def sample(self, tiles: Tiles, allowed: Any = None) -> None:
        """Lower the cuts by increasing samples."""
        asked = len(self._queries)
        few = max(_LEAST, 4 * self._k, _WRITTEN // asked)
        if few * asked > self._room or tiles.count < 8 * few:
            return
        growth = max(4, _WRITTEN // (self._k * asked))
        for count in _levels(tiles.layout.tiles(few), tiles.tiles, growth):
            hits = find(
                self._question(tiles, Span(0, count, tiles.tiles // count), allowed), self._room
            )
            if not hits.complete:  # many are equally near: `add` copes with that
                return
            self._lower_to(self._first(hits.keys)[:, -1], 0)

    def add(self, tiles: Tiles, allowed: Any = None) -> None:
        """Search a part that follows the parts before."""
        piece = PIECE // tiles.layout.tile_signatures
        begin, size = 0, max(piece, tiles.tiles)
        while begin < tiles.tiles:
            count = min(size, tiles.tiles - begin)
            hits = find(self._question(tiles, Span(begin, count), allowed), self._room)
            if not hits.complete:  # never of one piece
                self._lower_to(self._first(hits.keys)[:, -1], 0)
                size = max(piece, size // 16 // piece * piece)
                continue
            both = self._xp.concatenate((self._best.ravel(), hits.keys))
            self._best = self._first(self._xp.sort(both))
            self._lower_to(self._best[:, -1], 1)
            begin, size = begin + count, 4 * size

    def result(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return positions and distances, -1 where there are fewer than k."""
        found = self._best != _NOTHING
        where = self._xp.where(found, positions(self._best), -1)
        far = self._xp.where(found, distances(self._best), -1)
        return self._host(where), self._host(far)

    def _question(self, tiles: Tiles, span: Span, allowed: Any) -> Question:
        return Question(tiles, span, self._queries, self._cuts, allowed)

    def _first(self, keys: Any) -> Any:
        """Return the first k hits of each query, of sorted ones."""
        xp = self._xp
        begins = starts(xp, keys, len(self._queries))
        places = begins[:-1, None] + xp.arange(self._k)
        if not len(keys):
            return xp.full(places.shape, _NOTHING)
        there = keys[xp.minimum(places, len(keys) - 1)]
        return xp.where(places < begins[1:, None], there, _NOTHING)

    def _lower_to(self, kth: Any, less: int) -> None:
        """Exclude everything farther than the k-th known distance, minus `less`."""
        near = self._xp.minimum(self._cuts, distances(kth) - np.int32(less))
        self._cuts = self._xp.where(kth == _NOTHING, self._cuts, near)


def _levels(least: int, most: int, growth: int) -> Iterator[int]:
    """Yield sample sizes that grow by at most `growth`."""
    levels, reached = 1, least * growth
    while reached < most:
        levels, reached = levels + 1, reached * growth
    for level in range(levels):
        yield int(least * (most / least) ** (level / levels))


def near_pairs(
    strips: Tiles, others: Tiles, radius: int, limit: int, wanted: NDArray[np.bool_] | None
) -> Iterable[Found]:
    """Yield the pairs of one part with later positions in another part, or in itself.

    `wanted` selects the positions to compare; None: all. Raises `TooManyResults` beyond the limit.
    """
    card = strips.card
    xp = card.xp
    allowed = here = None
    if wanted is not None:
        allowed = allowed_bits(card, wanted[others.base : others.base + others.count])
        here = card.put(wanted[strips.base : strips.base + strips.count])
    for begin in range(0, strips.count, MOST_QUERIES):
        slots = xp.arange(begin, min(strips.count, begin + MOST_QUERIES), dtype=xp.uint64)
        rows, places = strips.take(slots), strips.positions(slots)
        ones = xp.bitwise_count(rows).sum(axis=1, dtype=xp.int32)
        cuts = xp.full(len(slots), radius, np.int32)
        if here is not None:
            cuts[~here[places]] = -1
        behind = places + np.uint64(strips.base)
        first = begin // PIECE * PIECE if others is strips else 0
        tile = others.layout.tiles(first)
        span = Span(tile, others.tiles - tile)
        question = Question(others, span, Queries(rows, ones), cuts, allowed, behind)
        keys = find_all(question, limit).keys
        limit -= len(keys)
        left = behind[queries_of(keys)].astype(np.int64)
        yield card.host(left), card.host(positions(keys)), card.host(distances(keys))


def allowed_bits(card: Any, mask: NDArray[np.bool_]) -> Any:
    """Return booleans as bits of uint32 on the GPU."""
    packed = np.packbits(mask, bitorder="little")
    words = np.zeros(-(-len(packed) // 4) * 4, np.uint8)
    words[: len(packed)] = packed
    return card.put(words.view("<u4"))
