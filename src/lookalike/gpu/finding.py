"""Questions to the card: what is within a distance, what is nearest, which pairs are near?

For the k nearest, a sample gives each query a distance within which k are known to lie; then the
collection is read once, for all that is no farther. Where copies and ties make that too many, it is
read part by part in the order of positions: later ones as far as the k-th so far are not wanted.
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

QUERY, DISTANCE = 48, 35
"""Where the query and the distance of a hit begin; rows.cu writes them."""

ROOM = 1 << 24
"""Hits that a question has room for at first: 256 MB with their notes."""

MOST_QUERIES = 1 << 64 - QUERY
"""At once: a hit has 16 bits for the query."""

MOST_SIGNATURES = 1 << DISTANCE
"""On one card, for the same reason."""


class Queries:
    """Queries on the card: uint8[count, stored], and how many ones each has."""

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
    """Tiles to look at: so many from the first on, one in `step`."""

    first: int
    count: int
    step: int = 1


@dataclass(frozen=True)
class Question:
    """What is to be found."""

    tiles: Tiles
    span: Span
    queries: Queries
    cuts: Any
    """int32: the largest distance for each query; -1: nothing."""
    allowed: Any = None
    """uint32: a bit for each position; None: all."""
    behind: Any = None
    """uint64: for each query, what has to lie behind this position; None: nothing."""


@dataclass(frozen=True)
class Hits:
    """What was found, if there was room for all."""

    keys: Any
    """uint64, sorted by query, distance and position; what fitted, where that was not all."""
    needed: int
    """The room that the same question would need, at least."""
    complete: bool


def find(question: Question, room: int) -> Hits:
    """Return all hits, if they are no more than `room`."""
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
"""The query, position and distance of each hit, in that order."""

Part = tuple[Tiles, Any]
"""Some signatures, with the bits of those that may be found; None: all of them."""


def find_all(question: Question, limit: int) -> Hits:
    """Return all hits, with as much room as they need, or raise `TooManyResults`."""
    hits = find(question, ROOM)
    while not hits.complete and len(hits.keys) <= limit:
        hits = find(question, hits.needed)  # the first time there may be too little room
    if len(hits.keys) > limit:
        raise _native.TooManyResults
    return hits


def within(parts: Iterable[Part], queries: Queries, radius: int, limit: int) -> Iterator[Found]:
    """Yield the hits of each part, which comes with the bits of what is allowed in it."""
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
    """Return for how many queries a piece of the collection always fits into the room."""
    most = ROOM // max(1, min(count, PIECE), 2 * k)
    return max(1, min(most, MOST_QUERIES))


class Nearest:
    """The k nearest of each query so far, over parts that come in the order of positions."""

    def __init__(self, tiles: Tiles, queries: Queries, k: int) -> None:
        self._queries, self._k = queries, k
        self._xp, self._host = tiles.card.xp, tiles.card.host
        self._room = max(ROOM, 2 * k, PIECE)
        self._best = self._xp.full((len(queries), k), _NOTHING)
        self._cuts = self._xp.full(len(queries), 8 * tiles.layout.bytes, np.int32)

    def sample(self, tiles: Tiles, allowed: Any = None) -> None:
        """Lower the cuts by ever larger samples, each spread over the whole."""
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
        """Look at all of a part, which lies behind those before."""
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
        """Want nothing farther than the k-th known, or than so much less."""
        near = self._xp.minimum(self._cuts, distances(kth) - np.int32(less))
        self._cuts = self._xp.where(kth == _NOTHING, self._cuts, near)


def _levels(least: int, most: int, growth: int) -> Iterator[int]:
    """Yield sizes of samples, each at most `growth` times the last, before all of `most`."""
    levels, reached = 1, least * growth
    while reached < most:
        levels, reached = levels + 1, reached * growth
    for level in range(levels):
        yield int(least * (most / least) ** (level / levels))


def near_pairs(
    strips: Tiles, others: Tiles, radius: int, limit: int, wanted: NDArray[np.bool_] | None
) -> Iterable[Found]:
    """Yield the pairs of one part with what lies behind in another, or in itself.

    Raises `TooManyResults` beyond the limit. `wanted`: by position in the collection, what is
    compared at all; None: everything.
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
    """Return True and False as bits of uint32 on the card."""
    packed = np.packbits(mask, bitorder="little")
    words = np.zeros(-(-len(packed) // 4) * 4, np.uint8)
    words[: len(packed)] = packed
    return card.put(words.view("<u4"))
