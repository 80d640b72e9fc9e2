"""Everything within a radius, on the card."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.gpu import finding
from lookalike.gpu.finding import (
    Hits,
    Queries,
    Question,
    Span,
    distances,
    find,
    positions,
    queries_of,
)
from lookalike.gpu.tiles import Tiles

Found = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]
"""The query, position and distance of each hit, in that order."""

Part = tuple[Tiles, Any]
"""Some signatures, with the bits of those that may be found; None: all of them."""


class TooMany(Exception):
    """There are more hits than were asked for."""


def find_all(question: Question, limit: int) -> Hits:
    """Return all hits, with as much room as they need, or raise `TooMany`.

    The first time there may be too little room; then it is known how much would do.
    """
    hits = find(question, finding.ROOM)
    while not hits.complete:
        if len(hits.keys) > limit:
            raise TooMany
        hits = find(question, hits.needed)
    if len(hits.keys) > limit:
        raise TooMany
    return hits


def within(parts: Iterable[Part], queries: Queries, radius: int, limit: int) -> Iterator[Found]:
    """Yield the hits of each part, which comes with the bits of what is allowed in it."""
    for tiles, allowed in parts:
        cuts = tiles.card.xp.full(len(queries), radius, np.int32)
        hits = find_all(Question(tiles, Span(0, tiles.tiles), queries, cuts, allowed), limit)
        limit -= len(hits.keys)
        host = tiles.card.host
        yield host(queries_of(hits.keys)), host(positions(hits.keys)), host(distances(hits.keys))
