"""Votes: which parts of items are near the parts of a query, and which items these belong to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.display import Displayed, TableColumns, Tabular, record_columns
from lookalike.errors import ArgumentError, Said
from lookalike.indexes.results import as_int64
from lookalike.parts.segment import Integers, Item, Segment, distinct, spread
from lookalike.shown import brief

_COUNTED = 1 << 30  # what a vote is worth if only votes count, far above all distances


@dataclass(frozen=True, eq=False, repr=False)
class PartMatch(Displayed):
    """An item that parts of the query voted for, and the place in it that they agree on."""

    _SHOWN: ClassVar[tuple[str, ...]] = ("item", "offset", "votes", "score")

    item: str | int
    offset: int
    """Position in the item minus position in the query, as most of the votes have it."""
    votes: int
    """Parts of the query that are near a part of the item at this offset, within the tolerance."""
    score: float
    """Votes as a share of the parts of the query that voted, from 0 to 1."""
    query_parts: Integers
    """int64[votes]: which parts of the query voted, ascending, counted from 0."""
    item_parts: Integers
    """int64[votes]: the part of the item that each of them is near, counted from 0."""
    distances: NDArray[np.int32]
    """int32[votes]"""

    @property
    def parts(self) -> list[tuple[int, int, int]]:
        """The matched parts: (part of the query, part of the item, distance)."""
        columns = self.query_parts.tolist(), self.item_parts.tolist(), self.distances.tolist()
        return list(zip(*columns, strict=True))

    def _values(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self._SHOWN}


@dataclass(frozen=True, eq=False, repr=False)
class PartAnswer(Tabular):
    """Items by votes, most first; ties by the sum of distances, then by when they were added.

    The table has a row per item: `item`, `offset`, `votes` and `score`.
    """

    matches: tuple[PartMatch, ...]
    query_parts: int
    """Parts of the query."""
    left_out: int
    """Parts of the query that did not vote, because too many parts are near them."""
    exact: bool
    """Whether all parts near those that voted were found."""

    def __len__(self) -> int:
        return len(self.matches)

    @overload
    def __getitem__(self, index: int) -> PartMatch: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[PartMatch]: ...
    def __getitem__(self, index: int | slice) -> PartMatch | Sequence[PartMatch]:
        return self.matches[index]

    def __iter__(self) -> Iterator[PartMatch]:
        return iter(self.matches)

    def _values(self) -> dict[str, object]:
        told = ("query_parts", "left_out", "exact")
        return {"items": len(self), **{name: getattr(self, name) for name in told}}

    def _columns(self, begin: int, end: int) -> TableColumns:
        return record_columns(PartMatch, self.matches[begin:end])

    def _row_count(self) -> int:
        return len(self)


@dataclass(frozen=True)
class Reach:
    """What is near: signatures within a radius, or a number of nearest signatures."""

    radius: int | None
    neighbors: int | None


@dataclass(frozen=True, eq=False)
class Indexed:
    """A segment, the index of its signatures, and the numbers of its first item and part."""

    segment: Segment
    index: Any  # none if there are no signatures
    first_item: int
    first_part: int


@dataclass(frozen=True, eq=False)
class _NearWords:
    """Signatures of one segment that are near each of some queries, as in `la.results.Matches`."""

    offsets: Integers
    words: Integers
    distances: NDArray[np.int32]
    exact: bool


class _NearParts(NamedTuple):
    """Parts of a query and of items that are near each other."""

    query_parts: Integers
    items: Integers
    offsets: Integers  # positions in items minus positions in the query
    parts: Integers
    distances: NDArray[np.int32]


def _near_words(one: Indexed, queries: NDArray[np.uint8], reach: Reach, threads: int) -> _NearWords:
    """Return signatures of a segment near each query, those of removed items left out."""
    if one.index is None or len(queries) == 0:
        none = np.empty(0, np.int64)
        return _NearWords(np.zeros(len(queries) + 1, np.int64), none, none.astype(np.int32), True)
    segment = one.segment
    there = None if segment.removed is None else segment.living_counts > 0
    only = {} if there is None or there.all() else {"among": there}
    if reach.radius is not None:
        ask = _method(one.index, "within")
        matches = ask(queries, reach.radius, threads=threads, **only)
        return _NearWords(matches.offsets, matches.ids, matches.distances, matches.exact)
    ask = _method(one.index, "search")
    nearest = ask(queries, min(reach.neighbors or 1, len(segment.words)), threads=threads, **only)
    kept = nearest.ids >= 0
    offsets = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    return _NearWords(offsets, nearest.ids[kept], nearest.distances[kept], nearest.exact)


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
    segments: Sequence[Indexed], found: Sequence[_NearWords], neighbors: int
) -> list[_NearWords]:
    """Keep the nearest signatures of each query over all segments; ties by their bytes."""
    words = [
        np.ascontiguousarray(one.segment.words[near.words])
        for one, near in zip(segments, found, strict=True)
    ]
    rank = distinct(np.concatenate(words))[1]
    query = np.concatenate(
        [np.repeat(np.arange(len(near.offsets) - 1), np.diff(near.offsets)) for near in found]
    )
    distance = np.concatenate([near.distances for near in found])
    order = np.lexsort((rank, distance, query))
    new_query = np.ones(len(order), bool)
    new_query[1:] = np.diff(query[order]) != 0
    new_word = new_query.copy()  # and not the same word in another segment
    new_word[1:] |= np.diff(rank[order]) != 0
    counted = np.cumsum(new_word)
    before = np.repeat(counted[new_query] - 1, np.diff(np.flatnonzero([*new_query, True])))
    kept = np.empty(len(order), bool)
    kept[order] = counted - before <= neighbors
    result, begin = [], 0
    for near in found:
        own = kept[begin : begin + len(near.words)]
        begin += len(near.words)
        offsets = np.concatenate([[0], np.cumsum(own)])[near.offsets]
        result.append(_NearWords(offsets, near.words[own], near.distances[own], near.exact))
    return result


def _near_parts(
    one: Indexed, near: _NearWords, voters: Integers, queries: Integers, positions: Integers
) -> _NearParts:
    """Return the parts of a segment near the voters of a query.

    `queries` are the voters' numbers among the signatures that were asked, `positions` those of all
    parts of the query.
    """
    segment = one.segment
    counts = near.offsets[queries + 1] - near.offsets[queries]
    places = spread(near.offsets[queries], counts)
    words = near.words[places]
    many = segment.word_begins[words + 1] - segment.word_begins[words]
    parts = segment.word_parts[spread(segment.word_begins[words], many)].astype(np.int64)
    asked = np.repeat(np.repeat(voters, counts), many)
    distances = np.repeat(near.distances[places], many)
    items = segment.part_items[parts]
    if segment.removed is not None:
        there = ~segment.removed[items]
        parts, asked, items = (array[there] for array in (parts, asked, items))
        distances = distances[there]
    offsets = segment.offsets[parts] - positions[asked]
    return _NearParts(asked, items + one.first_item, offsets, parts + one.first_part, distances)


@dataclass(frozen=True, eq=False)
class Ballot:
    """The parts of a query that vote, and all parts that are near them."""

    segments: Sequence[Indexed]
    near: _NearParts
    weights: Integers  # of each part of the query: the rarer it is, the more
    voters: int
    exact: bool
    radius: int | None  # in which parts are near

    @property
    def query_parts(self) -> int:
        """The number of parts of the query."""
        return len(self.weights)

    def answer(
        self,
        tolerance: int,
        k: int,
        least: int | None,
        *,
        rarity: bool = False,
        nearness: bool = False,
    ) -> PartAnswer:
        """Return the k items with the most votes, `least` or more, or with the rarest votes.

        With `nearness`, the place in an item is the one that the nearest parts vote for.
        """
        weights = self.weights if rarity else self.weights[:0]
        vote = self.radius + 1 if nearness and self.radius is not None else _COUNTED
        items, offsets, votes, begins, query_parts, parts, distances = _native.part_votes(
            *self.near,
            self.query_parts,
            weights,
            tolerance,
            least or min(2, max(1, self.query_parts)),
            k,
            vote,
        )
        matches = []
        for place, item in enumerate(items.tolist()):
            own = slice(int(begins[place]), int(begins[place + 1]))
            name, first = _item_at(self.segments, item)
            matches.append(
                PartMatch(
                    name,
                    int(offsets[place]),
                    int(votes[place]),
                    int(votes[place]) / self.voters,
                    as_int64(query_parts[own]),
                    as_int64(parts[own]) - first,
                    distances[own],
                )
            )
        left_out = self.query_parts - self.voters
        return PartAnswer(tuple(matches), self.query_parts, left_out, self.exact)


def ballots(
    segments: Sequence[Indexed],
    queries: Sequence[NDArray[np.uint8]],
    places: Sequence[Integers],
    reach: Reach,
    most_near: int,
    threads: int,
) -> list[Ballot]:
    """Return the voters of each of some queries, given by signatures and positions of their parts.

    Parts with the fewest near parts vote, as long as these are `most_near` at most together.
    """
    if not queries:
        return []
    asked, which = distinct(np.concatenate(queries))
    found = [_near_words(one, asked, reach, threads) for one in segments]
    if reach.neighbors is not None and len(segments) > 1:
        found = _nearest(segments, found, reach.neighbors)
    exact = all(words.exact for words in found)
    near = np.zeros(len(asked), np.int64)
    for one, words in zip(segments, found, strict=True):
        before = np.concatenate([[0], np.cumsum(one.segment.living_counts[words.words])])
        near += before[words.offsets[1:]] - before[words.offsets[:-1]]
    parts = sum(one.segment.living_parts for one in segments)
    weights = _bits_in(parts // np.maximum(near, 1))
    nothing = np.empty(0, np.int64)
    empty = _NearParts(nothing, nothing, nothing, nothing, nothing.astype(np.int32))
    result, begin = [], 0
    for positions in places:
        own = which[begin : begin + len(positions)]
        begin += len(positions)
        rarest = np.argsort(near[own], kind="stable")
        voters = np.sort(rarest[np.cumsum(near[own][rarest]) <= most_near])
        each = [
            _near_parts(one, words, voters, own[voters], positions)
            for one, words in zip(segments, found, strict=True)
        ]
        pairs = _NearParts(*map(np.concatenate, zip(empty, *each, strict=True)))
        result.append(Ballot(segments, pairs, weights[own], len(voters), exact, reach.radius))
    return result


def _bits_in(numbers: Integers) -> Integers:
    """Return how many bits each number has, at least 1, counted without rounding."""
    return np.maximum(1, np.searchsorted(2 ** np.arange(62), numbers, side="right"))


def _item_at(segments: Sequence[Indexed], item: int) -> tuple[Item, int]:
    """Return an item, and the number of its first part, by its number among all."""
    for one in segments:
        own = item - one.first_item
        if own < len(one.segment.ids):
            break
    return one.segment.ids[own], one.first_part + int(one.segment.begins[own])
