"""merge_neighbors: one answer from those of shards that are elsewhere, on other machines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import instances, whole_number
from lookalike.errors import ArgumentError
from lookalike.indexes.masks import nearest_masked
from lookalike.indexes.merging import best_of, nearest_of
from lookalike.indexes.results import Neighbors
from lookalike.indexes.slices.search import rerank_count
from lookalike.shown import brief

__all__ = ["merge_neighbors"]


def merge_neighbors(
    results: Iterable[Neighbors],
    k: SupportsIndex | None = None,
    *,
    rerank: SupportsIndex | None = None,
    starts: Iterable[SupportsIndex] | None = None,
) -> Neighbors:
    """Return the answer of all shards together, from what each of them found for the same queries.

    k is what the shards were asked for unless told, and no more than that. Without `rerank` these
    are the k nearest of all; where distances were not computed (shards were searched with
    `rerank=0`), the k best by (score, id). With `rerank`, the paper's way: of the best so many by
    score over all shards, the k nearest. Shards of slices are asked for that with the same
    `expand`, as `search(queries, rerank, expand=3, rerank=rerank)`, and the answer is that of one
    index over everything, `search(queries, k, expand=3, rerank=rerank)`.

    Of shards that were searched with masks, ties are broken by all bits, as they are in one index.

    `starts` are added to the ids of each shard, for those whose ids are positions; ids must be
    distinct over all shards. `exact` is True if all shards' were, without `rerank`.
    """
    parts = instances("results", results, Neighbors, "what the search of an index returned")
    if not parts:
        raise ArgumentError("there are no results to merge; expected at least one")
    asked = sorted({len(part) for part in parts})
    if len(asked) > 1:
        raise ArgumentError(f"results are of {asked} queries; expected the same queries for all")
    least = min(part.ids.shape[1] for part in parts)
    wanted = least if k is None else whole_number("k", k, at_least=1)
    best = None if rerank is None else rerank_count(rerank, wanted)
    _expect_enough(wanted, best, least)
    numbered = _numbered(parts, starts)
    ids = np.concatenate(numbered, axis=1)
    _refuse_repeated(ids)
    if any(part.unmasked is not None for part in parts):
        return _of_masked(parts, numbered, wanted, best)
    distances = np.concatenate([part.distances for part in parts], axis=1)
    scored = [part.scores for part in parts if part.scores is not None]
    scores = np.concatenate(scored, axis=1) if len(scored) == len(parts) else None
    unknown = bool(((ids >= 0) & (distances < 0)).any())
    if best is None and not unknown:
        more = () if scores is None else (scores,)
        ids, distances, *rest = nearest_of(ids, distances, wanted, *more)
        exact = all(part.exact for part in parts)
        return Neighbors(ids, distances, exact, None, rest[0] if rest else None)
    if scores is None:
        raise ArgumentError(
            "some results have no scores; expected those of SliceIndex, or of a ShardedIndex of "
            "such, to be merged by score"
        )
    if not best:  # by score alone
        ids, scores, distances = best_of(ids, scores, wanted, distances)
        return Neighbors(ids, distances, False, None, scores)
    if unknown:
        raise ArgumentError(
            f"rerank is {best}, and distances were not computed: search the shards with "
            f"k={best} and rerank={best}, and not with rerank=0"
        )
    ids, scores, distances = best_of(ids, scores, best, distances)
    ids, distances, scores = nearest_of(ids, distances, wanted, scores)
    return Neighbors(ids, distances, False, None, scores)


def _of_masked(
    parts: list[Neighbors], ids: list[NDArray[np.int64]], k: int, rerank: int | None
) -> Neighbors:
    """Return the nearest by the bits that count, ties by all bits and then by id."""
    if rerank is not None:
        raise ArgumentError(
            f"rerank is {rerank}, and the shards were searched with masks, which needs no scores; "
            "leave it out"
        )
    if any(part.unmasked is None for part in parts):
        raise ArgumentError(
            "some results are of a search with masks and some are not; expected the same of all"
        )
    return nearest_masked(ids, parts, k, exact=all(part.exact for part in parts))


def _expect_enough(k: int, rerank: int | None, least: int) -> None:
    """Raise if a shard was asked for fewer than are wanted: others would be missing then."""
    name, number = ("rerank", rerank) if rerank else ("k", k)
    if number is not None and number > least:
        raise ArgumentError(
            f"{name} is {number}, and a shard was asked for {least} neighbours a query; expected "
            f"at most {least}: ask all shards for {number}"
        )


def _numbered(
    parts: list[Neighbors], starts: Iterable[SupportsIndex] | None
) -> list[NDArray[np.int64]]:
    """Return the ids of each shard, in the numbers of all together."""
    if starts is None:
        return [part.ids for part in parts]
    try:
        given = list(starts)
    except TypeError:
        raise ArgumentError(
            f"starts are {brief(starts)}; expected a number for each result"
        ) from None
    shifts = [whole_number("starts", start, at_least=0, at_most=2**62) for start in given]
    if len(shifts) != len(parts):
        raise ArgumentError(
            f"there are {len(parts)} results and {len(shifts)} starts; expected one for each"
        )
    for part, shift in zip(parts, shifts, strict=True):
        largest = int(part.ids.max(initial=-1))
        if largest + shift >= 2**63:
            raise ArgumentError(
                f"starts has {shift}, and a shard the id {largest}: together beyond int64, which "
                "ends at 2**63 - 1; ids of your own need no starts"
            )
    return [
        np.where(part.ids >= 0, part.ids + shift, -1)
        for part, shift in zip(parts, shifts, strict=True)
    ]


def _refuse_repeated(ids: NDArray[np.int64]) -> None:
    ordered = np.sort(ids, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    if twice.any():
        raise ArgumentError(
            f"the id {ordered[:, 1:][twice][0]} is in more than one result; ids must be distinct "
            "over all shards: give these ids of your own, or say where the numbers of each begin "
            "(starts=[0, 1000, ...])"
        )
