"""All pairs within a radius, on the card: parts of it as queries to what lies behind them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.gpu.finding import (
    MOST_QUERIES,
    Queries,
    Question,
    Span,
    distances,
    positions,
    queries_of,
)
from lookalike.gpu.layout import PIECE
from lookalike.gpu.tiles import Tiles
from lookalike.gpu.within import find_all

Columns = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]
"""Positions of both, and their distance."""


def near_pairs(
    strips: Tiles,
    others: Tiles,
    radius: int,
    limit: int,
    wanted: NDArray[np.bool_] | None,
) -> Iterable[Columns]:
    """Yield the pairs of one part with what lies behind in another, or in itself; or `TooMany`.

    `wanted`: by position in the collection, who is compared at all; None: everybody.
    """
    card = strips.card
    xp = card.xp
    allowed = (
        None
        if wanted is None
        else allowed_bits(card, wanted[others.base : others.base + others.count])
    )
    here = None if wanted is None else card.put(wanted[strips.base : strips.base + strips.count])
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
