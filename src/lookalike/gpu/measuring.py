"""How quick a card is: for plans, and for `lookalike bench --gpu`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from lookalike.gpu.card import Card
from lookalike.gpu.finding import Queries, Question, Span, find
from lookalike.gpu.layout import PIECE, Layout
from lookalike.gpu.tiles import Tiles

QUERIES = 256
"""A batch that shares one pass over the collection."""

_TIMES = 5
_PIECES = 64 * 2**20


@dataclass(frozen=True)
class Speed:
    """What takes how long, for signatures of one width."""

    bytes_read: float
    """Bytes of signatures a second, for one query."""
    compared: float
    """Queries times signatures a second, in a batch."""
    overhead: float
    """Seconds of a question whose answer needs no looking."""


def speed(card: Card, layout: Layout, count: int | None = None) -> Speed:
    """Return how quick questions are, by some to a collection that is larger than caches."""
    with card:
        rows = count or 2**30 // layout.stored
        tiles = random_tiles(card, layout, rows)
        seconds = [
            timed(card, partial(everything_near, tiles, span, asked, 0))
            for span, asked in (
                (Span(0, 0), random_queries(card, layout, 1)),
                (Span(0, tiles.tiles), random_queries(card, layout, 1)),
                (Span(0, tiles.tiles), random_queries(card, layout, QUERIES)),
            )
        ]
        least = 1e-7  # a clock that did not move is no infinite speed
        reading, comparing = (max(least, more - seconds[0]) for more in seconds[1:])
        return Speed(rows * layout.stored / reading, QUERIES * rows / comparing, seconds[0])


def timed(card: Card, action: Callable[[], Any], times: int = _TIMES) -> float:
    """Return the median seconds that a caller waits, after a first call that is not counted."""
    action()
    seconds = []
    for _ in range(times):
        card.synchronize()
        begin = time.perf_counter()
        action()
        card.synchronize()
        seconds.append(time.perf_counter() - begin)
    return float(np.median(seconds))


def everything_near(tiles: Tiles, span: Span, queries: Queries, radius: int) -> Any:
    """Return what is within a radius: one pass over these tiles."""
    cuts = tiles.card.xp.full(len(queries), radius, np.int32)
    return find(Question(tiles, span, queries, cuts), 1 << 20).keys


def random_queries(card: Card, layout: Layout, count: int, seed: int = 2) -> Queries:
    """Return queries that resemble nothing."""
    rows = np.random.default_rng(seed).integers(0, 256, (count, layout.bytes), np.uint8)
    return Queries.of(card, layout, rows)


def random_tiles(card: Card, layout: Layout, count: int, seed: int = 1) -> Tiles:
    """Return random signatures, made on the card piece by piece."""
    xp = card.xp
    tiles, random = Tiles(card, layout, count), xp.random.default_rng(seed)
    step = max(1, _PIECES // (layout.bytes * PIECE)) * PIECE
    for begin in range(0, count, step):
        size = min(step, count - begin)
        words = random.integers(0, 2**32, size * layout.bytes // 4 + 1, dtype=xp.uint32)
        rows = words.view(xp.uint8)[: size * layout.bytes].reshape(size, layout.bytes)
        tiles.fill(begin, begin + size, rows)
    return tiles
