"""Which bits of queries count, and how answers by some bits are put in order.

The contract, for `search` and `within` of every index that takes masks: `distances` count the bits
that differ where the query's mask is 1; results are in the order of (masked distance, unmasked
distance, id); and they are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.errors import ArgumentError, Said
from lookalike.indexes.merging import padded
from lookalike.indexes.results import Matches, Neighbors
from lookalike.signatures import as_queries

if TYPE_CHECKING:
    from lookalike.indexes.base import Index

__all__ = ["as_masks", "merged_masked_matches", "nearest_masked", "no_masks", "without_settings"]


def as_masks(masks: ArrayLike, bits: int, queries: int) -> NDArray[np.uint8]:
    """Return a mask for each of the queries, or say what is wrong with them."""
    rows = as_queries(masks, bits, "masks")
    if len(rows) != queries:
        raise ArgumentError(
            f"masks are {len(rows)}, and there are {queries} queries; expected one for each, as "
            "sign(..., mask=True) gives"
        )
    return rows


def no_masks(index: Index, masks: object) -> None:
    """Raise if there are masks, of an index that compares whole signatures only."""
    if masks is not None:
        raise ArgumentError(
            f"masks are given, and {type(index).__name__} finds signatures by bits that all have "
            "to count; use ScanIndex or SliceIndex"
        )


def without_settings(**settings: object) -> None:
    """Raise if one of the settings is given that choose what of an answer may be missing."""
    for name, value in settings.items():
        if value is not None:
            raise ArgumentError(
                Said(name),
                " says what a search may miss, and a search with masks is always exact; leave it "
                "out",
            )


def nearest_masked(
    ids: Sequence[NDArray[np.int64]], parts: Sequence[Neighbors], k: int, *, exact: bool
) -> Neighbors:
    """Return the k nearest of all parts, whose ids are these."""
    every = np.concatenate(ids, axis=1)
    distances = np.concatenate([part.distances for part in parts], axis=1)
    unmasked = np.concatenate([_unmasked(part) for part in parts], axis=1)
    order = np.lexsort((every, unmasked, distances, every < 0), axis=1)[:, :k]
    every, distances, unmasked = (
        padded(np.take_along_axis(array, order, axis=1), k)
        for array in (every, distances, unmasked)
    )
    return Neighbors(every, distances, exact, unmasked=unmasked)


def merged_masked_matches(
    ids: Sequence[NDArray[np.int64]], parts: Sequence[Matches], queries: int, *, exact: bool
) -> Matches:
    """Return the matches of all parts, whose ids are these."""
    every = np.concatenate(ids)
    query = np.concatenate([part.columns()["query"] for part in parts])
    distances = np.concatenate([part.distances for part in parts])
    unmasked = np.concatenate([_unmasked(part) for part in parts])
    order = np.lexsort((every, unmasked, distances, query))
    offsets = np.zeros(queries + 1, np.int64)
    np.cumsum(np.bincount(query, minlength=queries), out=offsets[1:])
    return Matches(offsets, every[order], distances[order], exact, unmasked=unmasked[order])


def _unmasked(part: Neighbors | Matches) -> NDArray[np.int32]:
    if part.unmasked is None:
        raise RuntimeError("a search with masks has to tell unmasked distances")
    return part.unmasked
