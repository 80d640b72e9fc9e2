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
from lookalike.parts.near import Indexed, NearWords, near_parts

__all__ = ["Voting"]


@dataclass(frozen=True)
class Voting:
    """How votes are counted."""

    tolerance: int
    k: int
    least: int | None
    most_near: int

    def answer(
        self,
        segments: Sequence[Indexed],
        found: Sequence[NearWords],
        queries: NDArray[np.int64],
        positions: NDArray[np.int64],
        near: NDArray[np.int64],
    ) -> PartAnswer:
        """Return what the parts of a query vote for: which they are of those asked, where they are,
        and how many parts are near each.
        """
        rarest = np.argsort(near, kind="stable")
        voters = np.sort(rarest[np.cumsum(near[rarest]) <= self.most_near])
        pairs = near_parts(segments, found, voters, queries[voters])
        least = self.least or min(2, max(1, len(queries)))
        items, offsets, votes, begins, query_parts, parts, distances = _native.part_votes(
            pairs.query_parts,
            pairs.items,
            pairs.offsets - positions[pairs.query_parts],
            pairs.parts,
            pairs.distances,
            len(queries),
            self.tolerance,
            least,
            self.k,
        )
        matches = []
        for place, item in enumerate(items.tolist()):
            own = slice(int(begins[place]), int(begins[place + 1]))
            name, first = _item_at(segments, item)
            matches.append(
                PartMatch(
                    name,
                    int(offsets[place]),
                    int(votes[place]),
                    int(votes[place]) / len(voters),
                    as_int64(query_parts[own]),
                    as_int64(parts[own]) - first,
                    distances[own],
                )
            )
        exact = all(words.exact for words in found)
        return PartAnswer(tuple(matches), len(queries), len(queries) - len(voters), exact)


def _item_at(segments: Sequence[Indexed], item: int) -> tuple[Item, int]:
    """Return an item, and the number of its first part, by its number among all."""
    for one in segments:
        own = item - one.first_item
        if own < len(one.segment.ids):
            break
    return one.segment.ids[own], one.first_part + int(one.segment.begins[own])
