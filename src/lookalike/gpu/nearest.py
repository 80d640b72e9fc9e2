"""The k nearest on the card.

A sample gives each query a distance within which k are known to lie; then the collection is read
once, for all that is no farther. Where copies and ties make that too many, it is read part by part
in the order of positions: of those as far as the k-th so far, later ones are not wanted any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.gpu import finding
from lookalike.gpu.finding import (
    MOST_QUERIES,
    Queries,
    Question,
    Span,
    distances,
    find,
    positions,
    starts,
)
from lookalike.gpu.layout import PIECE
from lookalike.gpu.tiles import Tiles

_LEAST = 2048
"""Signatures of a sample, at least."""

_WRITTEN = 1 << 18
"""Hits that a sample may bring, and so the next one: more take longer than another sample does."""

_NOTHING = np.uint64(2**64 - 1)
"""Stands where fewer than k were found; no hit is so large."""


def queries_at_once(count: int, k: int) -> int:
    """Return for how many queries a piece of the collection always fits into the room."""
    most = finding.ROOM // max(1, min(count, PIECE), 2 * k)
    return max(1, min(most, MOST_QUERIES))


class Nearest:
    """The k nearest of each query so far, over parts that come in the order of positions."""

    def __init__(self, tiles: Tiles, queries: Queries, k: int) -> None:
        self._queries, self._k = queries, k
        self._xp, self._host = tiles.card.xp, tiles.card.host
        self._room = max(finding.ROOM, 2 * k, PIECE)
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
