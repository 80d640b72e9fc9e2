"""Speed of a GPU, for plans and `lookalike bench --device gpu`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from lookalike.gpu.card import PIECE, Card, Layout
from lookalike.gpu.finding import Nearest, Queries, Question, Span, find, near_pairs, within
from lookalike.gpu.tiles import Tiles

QUERIES = 256  # batch size that shares one pass over the collection
_BATCHES = (1, 64, QUERIES, 4 * QUERIES)
CASES = len(_BATCHES) + 2
_TIMES = 5
_PIECES = 64 * 2**20


@dataclass(frozen=True)
class Speed:
    """Speed for signatures of one width."""

    bytes_read: float  # bytes of signatures per second, for one query
    compared: float  # comparisons per second, in a batch
    overhead: float  # seconds of an empty search


def speed(card: Card, layout: Layout, count: int | None = None) -> Speed:
    """Measure the speed on a collection larger than the caches."""
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
    """Return the median seconds of an action, after one warm-up."""
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
    """Return everything within a radius: one pass over these tiles."""
    cuts = tiles.card.xp.full(len(queries), radius, np.int32)
    return find(Question(tiles, span, queries, cuts), 1 << 20).keys


def random_queries(card: Card, layout: Layout, count: int, seed: int = 2) -> Queries:
    """Return random queries."""
    rows = np.random.default_rng(seed).integers(0, 256, (count, layout.bytes), np.uint8)
    return Queries.of(card, layout, rows)


def random_tiles(card: Card, layout: Layout, count: int, seed: int = 1) -> Tiles:
    """Return random signatures, made on the GPU."""
    xp = card.xp
    tiles, random = Tiles(card, layout, count), xp.random.default_rng(seed)
    step = max(1, _PIECES // (layout.bytes * PIECE)) * PIECE
    for begin in range(0, count, step):
        size = min(step, count - begin)
        words = random.integers(0, 2**32, size * layout.bytes // 4 + 1, dtype=xp.uint32)
        rows = words.view(xp.uint8)[: size * layout.bytes].reshape(size, layout.bytes)
        tiles.fill(begin, begin + size, rows)
    return tiles


_SPARE = 2 * 2**30  # bytes of a card that searches need beside the collection
_CHECKED = 4  # queries of each batch whose answers are found once more, by counting bits


@dataclass(frozen=True)
class Line:
    """One measured case."""

    case: str
    signatures: int
    bits: int
    queries: int
    seconds: float  # median of five runs
    pass_seconds: float | None  # seconds of one pass over the collection
    rate: float  # queries per second; for pairs, comparisons per second
    checked: bool  # whether repeated searches returned the same


def lines(card: Card, count: int) -> Iterator[Line]:
    """Yield all cases for `count` signatures of 1024 bits, or as many as fit.

    A fifth as many of 64 bits, and a fiftieth for pairs.
    """
    with card:
        wide, narrow = Layout.of(1024), Layout.of(64)
        tiles = random_tiles(card, wide, _fitting(card, wide, count))
        for asked in _BATCHES:
            yield _search(tiles, random_queries(card, wide, asked, asked))
        del tiles
        yield _within(random_tiles(card, narrow, _fitting(card, narrow, count // 5)))
        yield _pairs(random_tiles(card, wide, _fitting(card, wide, count // 50)))


def _fitting(card: Card, layout: Layout, count: int) -> int:
    """Return `count`, or as many signatures as fit, in whole pieces."""
    each = layout.bytes_of(PIECE)
    return PIECE * max(1, min(count, PIECE * ((card.free_bytes() - _SPARE) // each)) // PIECE)


def _search(tiles: Tiles, queries: Queries, k: int = 10) -> Line:
    seconds = timed(tiles.card, lambda: _nearest(tiles, queries, k))
    alone = _pass_seconds(tiles, _some(queries, QUERIES), 0)
    found = _nearest(tiles, queries, k)
    same = True
    for at in range(min(_CHECKED, len(queries))):
        again = _nearest(tiles, _some(queries, at + 1, at), k)
        same &= all(np.array_equal(a[at], b[0]) for a, b in zip(found, again, strict=True))
    return _line(tiles, f"the {k} nearest", len(queries), seconds, alone, same)


def _pass_seconds(tiles: Tiles, queries: Queries, radius: int) -> float:
    whole = Span(0, tiles.tiles)
    return timed(tiles.card, lambda: everything_near(tiles, whole, queries, radius))


def _within(tiles: Tiles, radius: int = 3, asked: int = 1024) -> Line:
    queries = random_queries(tiles.card, tiles.layout, asked)

    def ask(queries: Queries) -> list[Any]:
        return list(within(iter([(tiles, None)]), queries, radius, 10**8))

    seconds = timed(tiles.card, lambda: ask(queries))
    alone = _pass_seconds(tiles, queries, radius)
    ((query, found, far),) = ask(queries)
    same = True
    for at in range(_CHECKED):
        ((_, positions, distances),) = ask(_some(queries, at + 1, at))
        own = query == at
        same &= np.array_equal(found[own], positions) and np.array_equal(far[own], distances)
    return _line(tiles, f"all within {radius}", asked, seconds, alone, same)


def _pairs(tiles: Tiles, radius: int = 102) -> Line:
    begin = time.perf_counter()
    found = sum(len(part[0]) for part in near_pairs(tiles, tiles, radius, 10**8, None))
    seconds = time.perf_counter() - begin
    compared = tiles.count * (tiles.count - 1) / 2
    # Random signatures are nowhere near: what can be checked is that none is found.
    line = _line(tiles, f"pairs within {radius}", 0, seconds, None, found == 0)
    return replace(line, rate=compared / seconds)


def _line(
    tiles: Tiles, case: str, asked: int, seconds: float, alone: float | None, same: bool
) -> Line:
    bits, rate = 8 * tiles.layout.bytes, asked / seconds
    return Line(case, tiles.count, bits, asked, seconds, alone, rate, same)


def _nearest(tiles: Tiles, queries: Queries, k: int) -> tuple[Any, Any]:
    """Return positions and distances, for some hundred queries at a time."""
    parts = []
    for begin in range(0, len(queries), QUERIES):
        nearest = Nearest(tiles, _some(queries, begin + QUERIES, begin), k)
        nearest.sample(tiles)
        nearest.add(tiles)
        parts.append(nearest.result())
    positions, distances = (np.concatenate(both) for both in zip(*parts, strict=True))
    return positions, distances


def _some(queries: Queries, end: int, begin: int = 0) -> Queries:
    return Queries(queries.rows[begin:end], queries.ones[begin:end])
