"""The table of `lookalike bench --gpu`: what a card does with large collections."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from lookalike.gpu.card import Card
from lookalike.gpu.finding import Queries, Span
from lookalike.gpu.layout import PIECE, Layout
from lookalike.gpu.measuring import (
    QUERIES,
    everything_near,
    random_queries,
    random_tiles,
    timed,
)
from lookalike.gpu.nearest import Nearest
from lookalike.gpu.pairs import near_pairs
from lookalike.gpu.tiles import Tiles
from lookalike.gpu.within import within

_SPARE = 2 * 2**30
"""Bytes of a card that searches need beside the collection."""

_CHECKED = 4
"""Queries of each batch whose answers are found once more, by counting bits."""


@dataclass(frozen=True)
class Line:
    """One case, measured."""

    case: str
    signatures: int
    bits: int
    queries: int
    seconds: float
    """That a caller waits: the median of five."""
    pass_seconds: float | None
    """Of them, one pass over the collection by itself."""
    rate: float
    """Queries a second; of pairs, comparisons a second."""
    checked: bool
    """Whether the answers that were found once more, by counting bits, are the same."""


def lines(card: Card, count: int) -> Iterator[Line]:
    """Yield all cases for `count` signatures of 1024 bits, or as many as the card has memory for.

    A fifth as many of 64 bits, a fiftieth for pairs.
    """
    with card:
        wide, narrow = Layout.of(1024), Layout.of(64)
        tiles = random_tiles(card, wide, _fitting(card, wide, count))
        for asked in (1, 64, QUERIES, 4 * QUERIES):
            yield _search(tiles, random_queries(card, wide, asked, asked))
        del tiles
        yield _within(random_tiles(card, narrow, _fitting(card, narrow, count // 5)))
        yield _pairs(random_tiles(card, wide, _fitting(card, wide, count // 50)))


def _fitting(card: Card, layout: Layout, count: int) -> int:
    """Return so many signatures, or as many as there is memory for: whole pieces, one at least."""
    each = layout.bytes_of(PIECE)
    return PIECE * max(1, min(count, PIECE * ((card.free_bytes() - _SPARE) // each)) // PIECE)


def _search(tiles: Tiles, queries: Queries, k: int = 10) -> Line:
    seconds = timed(tiles.card, lambda: _nearest(tiles, queries, k))
    alone = timed(
        tiles.card, lambda: everything_near(tiles, Span(0, tiles.tiles), _some(queries, QUERIES), 0)
    )
    found = _nearest(tiles, queries, k)
    same = True
    for at in range(min(_CHECKED, len(queries))):
        again = _nearest(tiles, _some(queries, at + 1, at), k)
        same &= all(np.array_equal(a[at], b[0]) for a, b in zip(found, again, strict=True))
    case = f"the {k} nearest"
    return _line(tiles, case, len(queries), seconds, alone, len(queries) / seconds, same)


def _within(tiles: Tiles, radius: int = 3, asked: int = 1024) -> Line:
    queries = random_queries(tiles.card, tiles.layout, asked)

    def ask(queries: Queries) -> list[Any]:
        return list(within(iter([(tiles, None)]), queries, radius, 10**8))

    seconds = timed(tiles.card, lambda: ask(queries))
    alone = timed(tiles.card, lambda: everything_near(tiles, Span(0, tiles.tiles), queries, radius))
    ((query, found, far),) = ask(queries)
    same = True
    for at in range(_CHECKED):
        ((_, positions, distances),) = ask(_some(queries, at + 1, at))
        own = query == at
        same &= np.array_equal(found[own], positions) and np.array_equal(far[own], distances)
    return _line(tiles, f"all within {radius}", asked, seconds, alone, asked / seconds, same)


def _pairs(tiles: Tiles, radius: int = 102) -> Line:
    begin = time.perf_counter()
    found = sum(len(part[0]) for part in near_pairs(tiles, tiles, radius, 10**8, None))
    seconds = time.perf_counter() - begin
    compared = tiles.count * (tiles.count - 1) / 2
    # Random signatures are nowhere near: what can be checked is that none is found.
    return _line(tiles, f"pairs within {radius}", 0, seconds, None, compared / seconds, found == 0)


def _line(
    tiles: Tiles,
    case: str,
    asked: int,
    seconds: float,
    alone: float | None,
    rate: float,
    same: bool,
) -> Line:
    return Line(case, tiles.count, 8 * tiles.layout.bytes, asked, seconds, alone, rate, same)


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
