"""Votes of the parts of a query, counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.indexes.results import as_int64
from lookalike.parts.answers import PartAnswer, PartMatch
from lookalike.parts.given import Item
from lookalike.parts.near import Indexed, NearParts, NearWords, Reach, near_parts, near_words
from lookalike.parts.segment import distinct

__all__ = ["Ballot", "ballots"]


@dataclass(frozen=True, eq=False)
class Ballot:
    """The parts of a query that vote, and all parts that are near them."""

    segments: Sequence[Indexed]
    near: NearParts
    """Positions of items minus positions of the query, in place of offsets."""
    query_parts: int
    voters: int
    exact: bool

    def answer(self, tolerance: int, k: int, least: int | None) -> PartAnswer:
        """Return the k items with the most votes, of at least so many."""
        near = self.near
        items, offsets, votes, begins, query_parts, parts, distances = _native.part_votes(
            near.query_parts,
            near.items,
            near.offsets,
            near.parts,
            near.distances,
            self.query_parts,
            tolerance,
            least or min(2, max(1, self.query_parts)),
            k,
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
    places: Sequence[NDArray[np.int64]],
    reach: Reach,
    most_near: int,
    threads: int,
) -> list[Ballot]:
    """Return who votes of each of some queries: signatures of their parts, and where these are.

    Those vote that have fewest parts near them, as long as these are `most_near` at most together.
    """
    if not queries:
        return []
    asked, which = distinct(np.concatenate(queries))
    found = near_words(segments, asked, reach, threads)
    near = np.zeros(len(asked), np.int64)
    for one, words in zip(segments, found, strict=True):
        before = np.concatenate([[0], np.cumsum(one.segment.living_counts[words.words])])
        near += before[words.offsets[1:]] - before[words.offsets[:-1]]
    result, begin = [], 0
    for at in places:
        own = which[begin : begin + len(at)]
        begin += len(at)
        result.append(_ballot(segments, found, own, at, near[own], most_near))
    return result


def _ballot(
    segments: Sequence[Indexed],
    found: Sequence[NearWords],
    queries: NDArray[np.int64],
    positions: NDArray[np.int64],
    near: NDArray[np.int64],
    most_near: int,
) -> Ballot:
    """Return who votes of the parts of a query: which they are of those asked, where they are, and
    how many parts are near each.
    """
    rarest = np.argsort(near, kind="stable")
    voters = np.sort(rarest[np.cumsum(near[rarest]) <= most_near])
    pairs = near_parts(segments, found, voters, queries[voters])
    differences = NearParts(
        pairs.query_parts,
        pairs.items,
        pairs.offsets - positions[pairs.query_parts],
        pairs.parts,
        pairs.distances,
    )
    exact = all(words.exact for words in found)
    return Ballot(segments, differences, len(queries), len(voters), exact)


def _item_at(segments: Sequence[Indexed], item: int) -> tuple[Item, int]:
    """Return an item, and the number of its first part, by its number among all."""
    for one in segments:
        own = item - one.first_item
        if own < len(one.segment.ids):
            break
    return one.segment.ids[own], one.first_part + int(one.segment.begins[own])
