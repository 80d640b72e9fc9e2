"""Comparing queries with all rows of a segment, those left out that were removed."""

from __future__ import annotations

from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.indexes.merging import padded
from lookalike.indexes.results import (
    NO_LIMIT,
    Matches,
    Neighbors,
    as_int64,
    too_many_matches,
)
from lookalike.indexes.slices.segments import Segment

__all__ = ["scan_nearest", "scan_within"]


def scan_nearest(
    segment: Segment,
    queries: NDArray[np.uint8],
    k: int,
    threads: int,
    masks: NDArray[np.uint8] | None = None,
) -> Neighbors:
    """Return the k nearest of each query, by the bits of its mask if there are masks; exact."""
    rows, found = segment.rows, min(k, segment.alive)
    ids = np.empty((len(queries), found), np.int64)
    distances = np.empty((len(queries), found), np.int32)
    if masks is not None:
        unmasked = np.empty_like(distances)
        _native.scan_nearest_masked(
            rows.signatures,
            rows.ids,
            rows.ascending,
            queries,
            masks,
            found,
            threads,
            ids,
            distances,
            unmasked,
            segment.removed,
        )
        ids, distances, unmasked = (padded(array, k) for array in (ids, distances, unmasked))
        return Neighbors(ids, distances, exact=True, unmasked=unmasked)
    _native.scan_nearest(
        rows.signatures,
        rows.ids,
        rows.ascending,
        queries,
        found,
        threads,
        ids,
        distances,
        segment.removed,
    )
    return Neighbors(padded(ids, k), padded(distances, k), exact=True)


def scan_within(
    segment: Segment,
    queries: NDArray[np.uint8],
    radius: int,
    limit: int,
    threads: int,
    asked: SupportsIndex,
    masks: NDArray[np.uint8] | None = None,
) -> Matches:
    """Return everything within the radius, which is `asked` in the words of the caller; exact.

    By the bits of each query's mask, if there are masks.
    """
    rows = segment.rows
    try:
        if masks is not None:
            offsets, ids, distances, unmasked = _native.scan_within_masked(
                rows.signatures,
                rows.ids,
                rows.ascending,
                queries,
                masks,
                radius,
                min(limit, NO_LIMIT),
                threads,
                segment.removed,
            )
            return Matches(as_int64(offsets), as_int64(ids), distances, True, unmasked=unmasked)
        offsets, ids, distances = _native.scan_within(
            rows.signatures,
            rows.ids,
            rows.ascending,
            queries,
            radius,
            min(limit, NO_LIMIT),
            threads,
            segment.removed,
        )
    except _native.TooManyResults:
        raise too_many_matches(limit, asked, len(queries)) from None
    return Matches(as_int64(offsets), as_int64(ids), distances, exact=True)
