"""Which parts are near the parts of a query, segment by segment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.errors import ArgumentError, Said
from lookalike.parts.segment import Segment, distinct, spread
from lookalike.shown import brief

__all__ = ["Indexed", "NearParts", "NearWords", "Reach", "near_parts", "near_words"]


@dataclass(frozen=True)
class Reach:
    """How far is near: within a radius, or so many nearest signatures."""

    radius: int | None
    neighbors: int | None


@dataclass(frozen=True, eq=False)
class Indexed:
    """A segment, the index of its signatures, and where its items and parts are among all."""

    segment: Segment
    index: Any
    """None where there is no signature."""
    first_item: int
    first_part: int


@dataclass(frozen=True, eq=False)
class NearWords:
    """Signatures of one segment that are near each of some queries, as `la.Matches` has them."""

    offsets: NDArray[np.int64]
    words: NDArray[np.int64]
    distances: NDArray[np.int32]
    exact: bool


@dataclass(frozen=True, eq=False)
class NearParts:
    """Parts of a query and of items that are near each other."""

    query_parts: NDArray[np.int64]
    items: NDArray[np.int64]
    offsets: NDArray[np.int64]
    parts: NDArray[np.int64]
    distances: NDArray[np.int32]


def near_words(
    segments: Sequence[Indexed], queries: NDArray[np.uint8], reach: Reach, threads: int
) -> list[NearWords]:
    """Return signatures of each segment near each query that items have which are there."""
    found = [_asked(one, queries, reach, threads) for one in segments]
    if reach.neighbors is not None and len(segments) > 1:
        return _nearest(segments, found, reach.neighbors)
    return found


def near_parts(
    segments: Sequence[Indexed],
    found: Sequence[NearWords],
    query_parts: NDArray[np.int64],
    queries: NDArray[np.int64],
) -> NearParts:
    """Return all parts near some parts of a query, which are these of the queries asked."""
    each = [
        _spread_out(one, words, query_parts, queries)
        for one, words in zip(segments, found, strict=True)
    ]
    return NearParts(
        *(
            np.concatenate([np.empty(0, dtype), *(getattr(part, name) for part in each)])
            for name, dtype in (
                *((name, np.int64) for name in ("query_parts", "items", "offsets", "parts")),
                ("distances", np.int32),
            )
        )
    )


def _asked(one: Indexed, queries: NDArray[np.uint8], reach: Reach, threads: int) -> NearWords:
    if one.index is None or len(queries) == 0:
        none = np.empty(0, np.int64)
        return NearWords(np.zeros(len(queries) + 1, np.int64), none, none.astype(np.int32), True)
    segment = one.segment
    there = None if segment.removed is None else segment.living_counts > 0
    only = {} if there is None or there.all() else {"among": there}
    if reach.radius is not None:
        ask = _method(one.index, "within")
        matches = ask(queries, reach.radius, threads=threads, **only)
        return NearWords(matches.offsets, matches.ids, matches.distances, matches.exact)
    ask = _method(one.index, "search")
    nearest = ask(queries, min(reach.neighbors or 1, len(segment.words)), threads=threads, **only)
    kept = nearest.ids >= 0
    offsets = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    return NearWords(offsets, nearest.ids[kept], nearest.distances[kept], nearest.exact)


def _method(index: Any, name: str) -> Any:
    method = getattr(index, name, None)
    if method is None:
        other = "neighbors" if name == "within" else "radius"
        raise ArgumentError(
            f"the index of signatures, {brief(index)}, has no method {name}; ask with ",
            Said(other),
        )
    return method


def _nearest(
    segments: Sequence[Indexed], found: Sequence[NearWords], neighbors: int
) -> list[NearWords]:
    """Leave of each query's signatures the nearest over all segments, of equals the smallest."""
    words = [
        np.ascontiguousarray(one.segment.words[near.words])
        for one, near in zip(segments, found, strict=True)
    ]
    rank = distinct(np.concatenate(words))[1]
    query = np.concatenate([_queries(near) for near in found])
    distance = np.concatenate([near.distances for near in found])
    order = np.lexsort((rank, distance, query))
    new_word = np.ones(len(order), bool)  # and not the same in another segment
    new_word[1:] = (np.diff(query[order]) != 0) | (np.diff(rank[order]) != 0)
    counted = np.cumsum(new_word)
    new_query = np.ones(len(order), bool)
    new_query[1:] = np.diff(query[order]) != 0
    before = np.repeat(counted[new_query] - 1, np.diff(np.flatnonzero([*new_query, True])))
    kept = np.empty(len(order), bool)
    kept[order] = counted - before <= neighbors
    result, begin = [], 0
    for near in found:
        own = kept[begin : begin + len(near.words)]
        begin += len(near.words)
        offsets = np.concatenate([[0], np.cumsum(own)])[near.offsets]
        result.append(NearWords(offsets, near.words[own], near.distances[own], near.exact))
    return result


def _queries(near: NearWords) -> NDArray[np.int64]:
    return np.repeat(np.arange(len(near.offsets) - 1), np.diff(near.offsets))


def _spread_out(
    one: Indexed, near: NearWords, query_parts: NDArray[np.int64], queries: NDArray[np.int64]
) -> NearParts:
    """Return the parts that have the signatures near each query."""
    segment = one.segment
    counts = near.offsets[queries + 1] - near.offsets[queries]
    places = spread(near.offsets[queries], counts)
    words = near.words[places]
    many = segment.word_begins[words + 1] - segment.word_begins[words]
    parts = segment.word_parts[spread(segment.word_begins[words], many)].astype(np.int64)
    asked = np.repeat(np.repeat(query_parts, counts), many)
    distances = np.repeat(near.distances[places], many)
    items = segment.part_items[parts]
    if segment.removed is not None:
        there = ~segment.removed[items]
        parts, asked, items = (array[there] for array in (parts, asked, items))
        distances = distances[there]
    return NearParts(
        asked,
        items + one.first_item,
        segment.offsets[parts],
        parts + one.first_part,
        distances,
    )
