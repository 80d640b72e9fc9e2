"""One answer from several: of chunks, of shards, of the runs of a file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.indexes.results import Matches

__all__ = ["MatchColumns", "best_of", "merged_matches", "nearest_of", "padded"]

MatchColumns = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]
"""The query, id and distance of every match."""


def merged_matches(queries: int, parts: Iterable[MatchColumns], *, exact: bool) -> Matches:
    """Return all matches of so many queries, in the order of (query, distance, id)."""
    none = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int32)
    query, ids, distances = (np.concatenate(columns) for columns in zip(none, *parts, strict=True))
    order = np.lexsort((ids, distances, query))
    offsets = np.zeros(queries + 1, np.int64)
    np.cumsum(np.bincount(query, minlength=queries), out=offsets[1:])
    return Matches(offsets, ids[order], distances[order], exact)


def nearest_of(
    ids: NDArray[Any], distances: NDArray[Any], k: int, *others: NDArray[Any]
) -> tuple[NDArray[Any], ...]:
    """Return the k nearest of each row, by (distance, id), and the same places of other arrays."""
    last = np.iinfo(np.int32).max
    order = np.lexsort((ids, np.where(ids >= 0, distances, last)), axis=1)[:, :k]
    arrays: tuple[NDArray[Any], ...] = (ids, distances, *others)
    return tuple(padded(np.take_along_axis(array, order, axis=1), k) for array in arrays)


def best_of(
    ids: NDArray[Any], scores: NDArray[Any], k: int, *others: NDArray[Any]
) -> tuple[NDArray[Any], ...]:
    """Return the k best of each row, by (score, id), and the same places of other arrays."""
    order = np.lexsort((ids, -scores), axis=1)[:, :k]  # what is not there has a score of -1
    arrays: tuple[NDArray[Any], ...] = (ids, scores, *others)
    return tuple(padded(np.take_along_axis(array, order, axis=1), k) for array in arrays)


def padded(array: NDArray[Any], k: int) -> NDArray[Any]:
    """Return the array with k columns, the new ones -1."""
    if array.shape[1] == k:
        return array
    return np.pad(array, ((0, 0), (0, k - array.shape[1])), constant_values=-1)
