"""Searching groups, and the rows that are in none of them yet."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.indexes.clusters.state import State
from lookalike.indexes.merging import merged_matches, nearest_of, padded
from lookalike.indexes.results import NO_LIMIT, Explanation, Matches, Neighbors, as_int64
from lookalike.indexes.scanning import scan_nearest, scan_within
from lookalike.indexes.slices.change import Segments

__all__ = ["nearest_in", "within_in"]


def nearest_in(
    state: State, parts: Segments, queries: NDArray[np.uint8], k: int, probe: int, threads: int
) -> Neighbors:
    """Return the nearest in parts of the state: by groups where these are theirs, else in all."""
    asked = len(queries)
    found, proven, work = [], np.ones(asked, bool), np.zeros((2, asked), np.int64)
    for part in parts:
        if part.rows is not state.groups.rows or not part.alive:
            found.append(scan_nearest(part, queries, min(k, max(1, part.alive)), threads))
            work[1] += part.alive
            continue
        shape = asked, min(k, part.alive)
        ids, distances = np.full(shape, -1, np.int64), np.full(shape, -1, np.int32)
        marks = np.zeros(asked, np.uint8)
        state.groups.native().nearest(
            part.removed, queries, probe, threads, ids, distances, marks, work
        )
        proven &= marks.astype(bool)
        found.append(Neighbors(ids, distances, False))
    ids, distances = found[0].ids, found[0].distances
    if len(found) > 1:
        ids, distances = nearest_of(
            np.concatenate([one.ids for one in found], axis=1),
            np.concatenate([one.distances for one in found], axis=1),
            k,
        )
    told = _explained(proven, work)
    return Neighbors(padded(ids, k), padded(distances, k), bool(proven.all()), told)


def within_in(
    state: State, parts: Segments, queries: NDArray[np.uint8], radius: int, limit: int, threads: int
) -> Matches:
    """Return all within a radius in parts of the state; raises where they are too many."""
    work = np.zeros((2, len(queries)), np.int64)
    found = []
    for part in parts:
        if part.rows is not state.groups.rows or not part.alive:
            found.append(scan_within(part, queries, radius, limit, threads, radius))
            work[1] += part.alive
            continue
        offsets, ids, distances = state.groups.native().within(
            part.removed, queries, radius, min(limit, NO_LIMIT), threads, work
        )
        found.append(Matches(as_int64(offsets), as_int64(ids), distances, True))
    whole = found[0]
    if len(found) > 1:
        if sum(len(one.ids) for one in found) > limit:
            raise _native.TooManyResults
        columns = ((one.columns()["query"], one.ids, one.distances) for one in found)
        whole = merged_matches(len(queries), columns, exact=True)
    told = _explained(np.ones(len(queries), bool), work)
    return Matches(whole.offsets, whole.ids, whole.distances, True, told)


def _explained(proven: NDArray[np.bool_], work: NDArray[np.int64]) -> Explanation:
    """Return groups read as lists, rows compared as all else."""
    return Explanation(proven, work[0], work[1], work[1], work[1])
