"""One question to the card: what is at most so far from each query?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.gpu.card import Card
from lookalike.gpu.layout import Layout
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
