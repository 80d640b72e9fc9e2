"""What an index of parts must answer, from dictionaries and comparing each with each."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["PartOracle"]

Found = list[tuple[Any, int, int, float, list[tuple[int, int, int]]]]


@dataclass
class PartOracle:
    """Items and their parts, as added."""

    items: dict[Any, tuple[NDArray[np.uint8], list[int]]] = field(default_factory=dict)

    def near(
        self, row: NDArray[np.uint8], radius: int | None, neighbors: int | None
    ) -> list[tuple[Any, int, int]]:
        """Return item, part and distance of all parts near a signature."""
        all_parts = [
            (item, part, int(np.bitwise_count(own ^ row).sum()), own.tobytes())
            for item, (rows, _) in self.items.items()
            for part, own in enumerate(rows)
        ]
        if radius is not None:
            return [found[:3] for found in all_parts if found[2] <= radius]
        nearest = sorted({(distance, own) for _, _, distance, own in all_parts})[:neighbors]
        return [found[:3] for found in all_parts if found[2:] in set(nearest)]

    def search(
        self,
        rows: NDArray[np.uint8],
        positions: list[int],
        *,
        radius: int | None,
        neighbors: int | None = None,
        tolerance: int = 0,
        k: int = 10,
        min_votes: int = 1,
        most_near: int = 10**9,
        rarity: bool = False,
        nearness: bool = False,
    ) -> tuple[Found, int]:
        """Return items by votes, and how many parts of the query were left out."""
        near = [self.near(row, radius, neighbors) for row in rows]
        spent, voters = 0, []
        for part in sorted(range(len(rows)), key=lambda part: (len(near[part]), part)):
            spent += len(near[part])
            if spent <= most_near:
                voters.append(part)
        votes: dict[Any, list[tuple[int, int, int, int]]] = defaultdict(list)
        for query_part in voters:
            for item, part, distance in near[query_part]:
                difference = self.items[item][1][part] - positions[query_part]
                votes[item].append((difference, query_part, part, distance))
        vote = radius + 1 if nearness and radius is not None else 10**6
        found = []
        for number, item in enumerate(self.items):
            if inside := _best(votes[item], tolerance, vote, min_votes):
                found.append((*_told(inside, vote), number, item))
        count = sum(len(own) for own, _ in self.items.values())
        weights = [len(f"{count // max(1, len(one)):b}") if rarity else 1 for one in near]
        found.sort(
            key=lambda one: (
                -sum(weights[part[0]] for part in one[1]),
                sum(part[2] for part in one[1]),
                one[2],
            )
        )
        answers: Found = [
            (item, offset, len(parts), len(parts) / len(voters), parts)
            for offset, parts, _, item in found[:k]
        ]
        return answers, len(rows) - len(voters)


Vote = tuple[int, int, int, int]
"""Difference of positions, part of the query, part of the item, distance."""


def _best(votes: list[Vote], tolerance: int, vote: int, least: int = 1) -> list[Vote]:
    """Return the votes in the window that is worth most, each `vote` less its distance."""
    windows = [
        [vote for vote in votes if first <= vote[0] <= first + tolerance]
        for first in sorted({vote[0] for vote in votes})
    ]
    windows = [one for one in windows if len({vote[1] for vote in one}) >= least]
    return max(windows, key=lambda window: _worth(window, vote), default=[])


def _worth(window: list[Vote], vote: int) -> int:
    nearest: dict[int, int] = {}
    for _, query_part, _, distance in window:
        nearest[query_part] = min(distance, nearest.get(query_part, distance))
    return sum(vote - distance for distance in nearest.values())


def _told(inside: list[Vote], vote: int) -> tuple[int, list[tuple[int, int, int]]]:
    """Return the offset most query parts agree on, and the nearest part for each of them."""
    offset = _best(inside, 0, vote)[0][0]
    matched: dict[int, tuple[int, int, int]] = {}
    for difference, query_part, part, distance in inside:
        rank = distance, abs(difference - offset), part
        matched[query_part] = min(rank, matched.get(query_part, rank))
    return offset, [(one, matched[one][2], matched[one][0]) for one in sorted(matched)]
