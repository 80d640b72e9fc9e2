"""Candidates by signatures, cosines of these; or of all."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.errors import CorruptIndexError, ResultTooLargeError, Said
from lookalike.indexes import ClusterIndex
from lookalike.indexes.among import Chosen
from lookalike.indexes.results import NO_LIMIT, Explanation, as_int64
from lookalike.signatures import Projection
from lookalike.vectors.answers import VectorMatches, VectorNeighbors, VectorPairs
from lookalike.vectors.given import in_single_precision
from lookalike.vectors.store import Store

if TYPE_CHECKING:
    from lookalike.vectors.tuning import Effort

__all__ = [
    "Parts",
    "all_compared",
    "all_pairs",
    "among_candidates",
    "everything_near",
    "near_by_signatures",
    "pairs_by_signatures",
    "radius_for",
]

Queries = NDArray[np.float32]

_BLOCK = 4096
"""Queries whose candidates are held at a time."""
_LISTED, _LISTED_SHARE = 1 << 22, 8
"""Places that are listed for queries at a time, if they are no more than this share of all."""
_PAIRS = 1 << 18
"""Pairs whose vectors are copied at a time."""


class Parts:
    """Signatures and vectors that belong together. Vectors are there before their signatures are,
    so that whoever has a place from the signatures finds it in the store.
    """

    def __init__(self, signatures: ClusterIndex, store: Store) -> None:
        self.signatures = signatures
        self.store = store


def radius_for(similarity: float, bits: int, recall: float) -> int:
    """Return within how many bits the signatures are, with that chance, of two vectors of a cosine.

    Each bit differs with the probability angle / pi, by the choice of the projection.
    """
    chance = math.acos(max(-1.0, min(1.0, similarity))) / math.pi
    if chance <= 0 or chance >= 1:
        return bits if chance >= 1 else 0
    total = 0.0
    for radius in range(bits + 1):
        total += math.exp(
            math.lgamma(bits + 1)
            - math.lgamma(radius + 1)
            - math.lgamma(bits - radius + 1)
            + radius * math.log(chance)
            + (bits - radius) * math.log1p(-chance)
        )
        if total >= recall:
            return radius
    return bits


def empty_answer(queries: int, k: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return ids and cosines of nothing."""
    return np.full((queries, k), -1, np.int64), np.full((queries, k), np.nan)


def all_compared(
    store: Store, places: NDArray[np.int64], queries: Queries, k: int, threads: int
) -> VectorNeighbors:
    """Return the k most similar of these places: each is compared with each query."""
    ids, cosines = empty_answer(len(queries), k)
    if len(places) * _LISTED_SHARE <= len(store) or len(places) <= k:
        step = max(1, _LISTED // max(1, len(places)))
        for start in range(0, len(queries) if len(places) else 0, step):
            part = slice(start, start + step)
            listed = np.ascontiguousarray(
                np.broadcast_to(places, (len(queries[part]), len(places)))
            )
            store.native.best_candidates(queries[part], listed, threads, ids[part], cosines[part])
    else:
        skip = None if len(places) == len(store) else store.skipped(places)
        store.native.best_of_all(skip, queries, threads, ids, cosines)
    every = np.full(len(queries), len(places), np.int64)
    none = np.zeros(len(queries), np.int64)
    told = Explanation(np.ones(len(queries), bool), none, none, every, every)
    return VectorNeighbors(ids, cosines, True, told)


def among_candidates(
    parts: Parts,
    signer: Projection,
    queries: Queries,
    k: int,
    effort: Effort,
    among: NDArray[np.int64] | None,
    threads: int,
) -> VectorNeighbors:
    """Return the k most similar of those whose signatures are nearest."""
    ids, cosines = empty_answer(len(queries), k)
    groups, read, reranked = (np.zeros(len(queries), np.int64) for _ in range(3))
    chosen = None if among is None else Chosen(among, None)
    for start in range(0, len(queries), _BLOCK):
        part = slice(start, start + _BLOCK)
        places = proposed(parts, signer, queries[part], effort, chosen, threads)
        store = parts.store
        check_places(store, places.ids)
        store.native.best_candidates(queries[part], places.ids, threads, ids[part], cosines[part])
        told = places.explanation
        if told is not None:
            groups[part], read[part] = told.lists, told.postings
        reranked[part] = (places.ids >= 0).sum(axis=1)
    proven = np.zeros(len(queries), bool)  # the nearest signatures prove nothing of cosines
    explained = Explanation(proven, groups, read, read, reranked)
    return VectorNeighbors(ids, cosines, not len(queries), explained)


def proposed(
    parts: Parts,
    signer: Projection,
    queries: Queries,
    effort: Effort,
    among: Chosen | None,
    threads: int,
) -> _Places:
    """Return places whose signatures are nearest, nearest first."""
    found = parts.signatures.search(
        signer.sign(queries, threads=threads),
        effort.candidates,
        probe=effort.probe,
        explain=True,
        among=among,
        threads=threads,
    )
    return _Places(np.ascontiguousarray(found.ids), found.explanation)


class _Places:
    def __init__(self, ids: NDArray[np.int64], explanation: Explanation | None) -> None:
        self.ids, self.explanation = ids, explanation


def check_places(store: Store, places: NDArray[np.int64]) -> None:
    """Raise if signatures are of places that are not there: a file may hold what it says."""
    wrong = (places < -1) | (places >= len(store))  # -1: there are no more
    if wrong.any():
        raise CorruptIndexError(
            f"a signature belongs to the vector {int(places[wrong][0])}, and there are "
            f"{len(store)}; the file of the index is damaged"
        )


# Everything that is similar enough


def everything_near(
    store: Store,
    places: NDArray[np.int64],
    queries: Queries,
    least: float,
    limit: int,
    threads: int,
) -> VectorMatches:
    """Return all of these places that are similar enough: each is compared."""
    skip = None if len(places) == len(store) else store.skipped(places)
    try:
        offsets, ids, cosines = store.native.at_least(
            skip, queries, least, min(limit, NO_LIMIT), threads
        )
    except _native.TooManyResults:
        raise _too_many(limit, least, f"{len(queries)} queries") from None
    return VectorMatches(as_int64(offsets), as_int64(ids), cosines, True)


def near_by_signatures(
    parts: Parts,
    signer: Projection,
    queries: Queries,
    least: float,
    recall: float,
    among: NDArray[np.int64] | None,
    limit: int,
    threads: int,
) -> VectorMatches:
    """Return those that are similar enough and have a signature within the radius for that."""
    radius = radius_for(least, signer.bits, recall)
    chosen = None if among is None else Chosen(among, None)
    counts, found_ids, found_cosines = [np.zeros(1, np.int64)], [], []
    for start in range(0, len(queries), _BLOCK):
        asked = queries[start : start + _BLOCK]
        signatures = signer.sign(asked, threads=threads)
        found = parts.signatures.within(
            signatures, radius, limit=NO_LIMIT, among=chosen, threads=threads
        )
        store = parts.store
        check_places(store, found.ids)
        numbers = np.repeat(np.arange(len(asked)), np.diff(found.offsets))
        cosines = np.empty(len(numbers), np.float64)
        store.native.cosines(asked, numbers, found.ids, threads, cosines)
        kept = np.flatnonzero(cosines >= least)
        ids = store.ids_of(found.ids[kept])
        order = np.lexsort((ids, -cosines[kept], numbers[kept]))
        counts.append(np.bincount(numbers[kept], minlength=len(asked)))
        found_ids.append(ids[order])
        found_cosines.append(cosines[kept][order])
        if sum(map(len, found_ids)) > limit:
            raise _too_many(limit, least, f"{len(queries)} queries")
    return VectorMatches(
        np.cumsum(np.concatenate(counts)),
        np.concatenate([np.empty(0, np.int64), *found_ids]),
        np.concatenate([np.empty(0, np.float64), *found_cosines]),
        False,
    )


def pairs_by_signatures(
    parts: Parts, signer: Projection, least: float, recall: float, limit: int, threads: int
) -> VectorPairs:
    """Return pairs that are similar enough and have signatures within the radius for that."""
    radius = radius_for(least, signer.bits, recall)
    near = parts.signatures.pairs(radius, limit=NO_LIMIT, threads=threads)
    store = parts.store
    check_places(store, near.right)
    left, right, cosines = [], [], []
    for start in range(0, len(near), _PAIRS):
        some = slice(start, start + _PAIRS)
        first, numbers = np.unique(near.left[some], return_inverse=True)
        others = np.ascontiguousarray(near.right[some])
        measured = np.empty(len(others), np.float64)
        rows = in_single_precision(store.rows(first))
        store.native.cosines(rows, numbers.astype(np.int64), others, threads, measured)
        kept = measured >= least
        left.append(near.left[some][kept])
        right.append(others[kept])
        cosines.append(measured[kept])
    if sum(map(len, left)) > limit:
        raise _too_many(limit, least, f"{store.alive} vectors with each other")
    return _sorted_pairs(store, left, right, cosines, exact=False)


def all_pairs(store: Store, least: float, limit: int, threads: int) -> VectorPairs:
    """Return every pair that is similar enough: each is compared with each."""
    places = store.places
    skip = None if len(places) == len(store) else store.skipped(places)
    by_place = replace(store, ids=None)
    left, right, cosines, total = [], [], [], 0
    for start in range(0, len(places), _BLOCK):
        own = places[start : start + _BLOCK]
        room = 2 * (limit - total) + len(own) * (len(own) + 1)
        try:
            offsets, found, measured = by_place.native.at_least(
                skip, in_single_precision(store.rows(own)), least, min(room, NO_LIMIT), threads
            )
        except _native.TooManyResults:
            raise _too_many(limit, least, f"{len(places)} vectors with each other") from None
        asked = np.repeat(own, np.diff(as_int64(offsets)))
        later = np.flatnonzero(found > asked)
        left.append(asked[later])
        right.append(as_int64(found)[later])
        cosines.append(measured[later])
        # Rows before these are not looked at again.
        skip = store.skipped(places) if skip is None else skip
        skip[own] = 1
        total += len(later)
        if total > limit:
            raise _too_many(limit, least, f"{len(places)} vectors with each other")
    return _sorted_pairs(store, left, right, cosines, exact=True)


def _sorted_pairs(
    store: Store,
    left: list[NDArray[np.int64]],
    right: list[NDArray[np.int64]],
    cosines: list[NDArray[np.float64]],
    *,
    exact: bool,
) -> VectorPairs:
    none = np.empty(0, np.int64)
    one = store.ids_of(np.concatenate([none, *left]))
    two = store.ids_of(np.concatenate([none, *right]))
    measured = np.concatenate([np.empty(0, np.float64), *cosines])
    first, second = np.minimum(one, two), np.maximum(one, two)
    order = np.lexsort((second, first))
    return VectorPairs(first[order], second[order], measured[order], exact)


def _too_many(limit: int, least: float, what: str) -> ResultTooLargeError:
    return ResultTooLargeError(
        "more than ",
        Said(f"limit={limit}", f"{limit:,}"),
        f" results of similarity {least:g} or more for {what}; ask for a larger similarity",
        Said(", or raise the limit", ""),
    )
