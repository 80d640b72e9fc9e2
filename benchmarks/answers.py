"""Whether two searches gave the same answer: a fast wrong one is worth nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Matched", "Nearest", "difference"]


@dataclass(frozen=True, eq=False, slots=True)
class Nearest:
    """What a search for the k nearest gave: arrays [queries, k], of any number type."""

    ids: NDArray[Any]
    distances: NDArray[Any]


@dataclass(frozen=True, eq=False, slots=True)
class Matched:
    """What a search within a radius gave: query i has the part offsets[i] to offsets[i + 1]."""

    offsets: NDArray[Any]
    ids: NDArray[Any]
    distances: NDArray[Any]


def difference(ours: object, theirs: object) -> str | None:
    """Return how the answers differ, or None.

    `theirs` may cover only the first queries. Of the k nearest the sorted distances are compared,
    because which of several equally distant signatures come first is a matter of taste. Within a
    radius there is no such freedom, and the ids are compared too.
    """
    if isinstance(ours, Nearest) and isinstance(theirs, Nearest):
        return _nearest_difference(ours, theirs)
    if isinstance(ours, Matched) and isinstance(theirs, Matched):
        return _matched_difference(ours, theirs)
    return f"one answer is {type(ours).__name__}, the other {type(theirs).__name__}"


def _nearest_difference(ours: Nearest, theirs: Nearest) -> str | None:
    expected = np.sort(ours.distances[: len(theirs.distances)], axis=1)
    found = np.sort(theirs.distances, axis=1)
    if expected.shape != found.shape:
        return f"expected distances of shape {expected.shape}, found {found.shape}"
    wrong = np.flatnonzero((expected != found).any(axis=1))
    if not len(wrong):
        return None
    query = wrong[0]
    return f"query {query}: expected distances {expected[query]}, found {found[query]}"


def _matched_difference(ours: Matched, theirs: Matched) -> str | None:
    for query in range(len(theirs.offsets) - 1):
        expected, found = _part(ours, query), _part(theirs, query)
        if expected.shape != found.shape:
            return f"query {query}: expected {expected.shape[1]} matches, found {found.shape[1]}"
        if (expected != found).any():
            return f"query {query}: the ids or distances of its {found.shape[1]} matches differ"
    return None


def _part(answer: Matched, query: int) -> NDArray[np.int64]:
    """Return the matches of one query as two rows, distances and ids, sorted by both."""
    part = slice(int(answer.offsets[query]), int(answer.offsets[query + 1]))
    ids, distances = answer.ids[part], answer.distances[part]
    order = np.lexsort((ids, distances))
    return np.stack([distances[order], ids[order]]).astype(np.int64)
