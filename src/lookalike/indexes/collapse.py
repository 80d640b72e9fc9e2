"""All pairs within a radius, with equal signatures taken together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.errors import ResultTooLargeError
from lookalike.indexes.results import NO_LIMIT, Pairs, as_int64

__all__ = ["pairs_of_rows"]

_TABLE_BITS = 20


def pairs_of_rows(
    signatures: NDArray[np.uint8],
    ids: NDArray[np.int64],
    radius: int,
    limit: int,
    collapse: bool,
    threads: int,
) -> Pairs:
    """Return the pairs of distinct ids within the radius, each once; see `SliceIndex.pairs`.

    Equal signatures form a group; one of each group is compared with those of other groups, by
    blocks where that is cheaper than each with each. Time beside that: sorting, and the output.
    """
    groups = _groups(signatures, ids)
    sizes = np.diff(groups.offsets)
    inside = sizes - 1 if collapse else sizes * (sizes - 1) // 2
    within_groups = int(inside.sum())  # less than 2**63 for fewer than 2**32 signatures
    if within_groups > limit:
        raise _too_many(limit, radius, len(ids))
    left, right, distances = _compare(signatures[groups.first], radius, limit, threads)
    if collapse:
        parts = [
            _star(groups, sizes),
            (groups.ids[groups.offsets[left]], groups.ids[groups.offsets[right]], distances),
        ]
    else:
        if within_groups + int((sizes[left] * sizes[right]).sum()) > limit:
            raise _too_many(limit, radius, len(ids))
        parts = [_cliques(groups, sizes), _products(groups, sizes, left, right, distances)]
    one, two, far = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    one, two = np.minimum(one, two), np.maximum(one, two)
    if len(one) > limit:
        raise _too_many(limit, radius, len(ids))
    order = np.lexsort((two, one))
    return Pairs(one[order], two[order], far[order].astype(np.int32), exact=True)


class _Groups:
    """Equal signatures: group g has the ids at offsets[g] to offsets[g + 1], ascending."""

    def __init__(
        self, ids: NDArray[np.int64], offsets: NDArray[np.int64], first: NDArray[np.int64]
    ) -> None:
        self.ids = ids
        self.offsets = offsets
        self.first = first
        """A row of each group."""


Columns = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]


def _groups(signatures: NDArray[np.uint8], ids: NDArray[np.int64]) -> _Groups:
    if not len(signatures):
        none = np.empty(0, np.int64)
        return _Groups(none, np.zeros(1, np.int64), none)
    keys = _keys(np.ascontiguousarray(signatures))
    ordered = np.sort(keys)
    repeated = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    if not len(repeated):
        return _Groups(ids, np.arange(len(ids) + 1), np.arange(len(ids)))
    # Most signatures stand alone; only the others have to be put in order, by key and id. A table
    # of the keys' upper bits tells most of them apart without looking each one up.
    table = np.zeros(1 << _TABLE_BITS, bool)
    table[repeated >> np.uint64(64 - _TABLE_BITS)] = True
    likely = np.flatnonzero(table[keys >> np.uint64(64 - _TABLE_BITS)])
    places = np.searchsorted(repeated, keys[likely]).clip(max=len(repeated) - 1)
    members = likely[repeated[places] == keys[likely]]
    several = np.zeros(len(keys), bool)
    several[members] = True
    alone = np.flatnonzero(~several)
    members = members[np.lexsort((ids[members], keys[members]))]
    begins = np.flatnonzero(np.append(True, keys[members][1:] != keys[members][:-1]))
    starts = np.concatenate([np.arange(len(alone)), len(alone) + begins])
    order = np.concatenate([alone, members])
    return _Groups(ids[order], np.append(starts, len(ids)), order[starts])


def _keys(signatures: NDArray[np.uint8]) -> NDArray[Any]:
    """Return numbers that are equal for equal signatures only: mixed, or hashes."""
    if signatures.shape[1] == 8:
        return signatures.view(np.uint64)[:, 0] * np.uint64(0x9E3779B97F4A7C15)  # no two become one
    hashes = np.empty(len(signatures), np.uint64)
    _native.hash_rows(signatures, hashes)
    order = np.argsort(hashes)
    same = np.flatnonzero(hashes[order][1:] == hashes[order][:-1])
    if (signatures[order[same]] == signatures[order[same + 1]]).all():
        return hashes
    # Two that differ have the same hash: number the signatures themselves.
    whole = signatures.view(f"V{signatures.shape[1]}")[:, 0]
    return np.unique(whole, return_inverse=True)[1].astype(np.uint64)


def _compare(signatures: NDArray[np.uint8], radius: int, limit: int, threads: int) -> Columns:
    """Return the pairs of distinct signatures, by position."""
    rows = np.ascontiguousarray(signatures)
    try:
        found = _native.block_pairs(rows, radius, min(limit, NO_LIMIT), threads)
        if found is None:
            found = _native.scan_pairs(rows, None, True, radius, min(limit, NO_LIMIT), threads)
    except _native.TooManyResults:
        raise _too_many(limit, radius, len(rows)) from None
    left, right, distances = found
    return as_int64(left), as_int64(right), distances


def _star(groups: _Groups, sizes: NDArray[np.int64]) -> Columns:
    """Pair the members of each group with its first."""
    firsts = np.repeat(groups.ids[groups.offsets[:-1]], sizes)
    others = np.ones(len(groups.ids), bool)
    others[groups.offsets[:-1]] = False
    return firsts[others], groups.ids[others], np.zeros(int(others.sum()), np.int32)


def _cliques(groups: _Groups, sizes: NDArray[np.int64]) -> Columns:
    """Pair the members of each group with each other."""
    left, right = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for size in np.unique(sizes[sizes > 1]):
        members = groups.ids[groups.offsets[:-1][sizes == size][:, None] + np.arange(size)]
        one, two = np.triu_indices(size, 1)
        left.append(members[:, one].reshape(-1))
        right.append(members[:, two].reshape(-1))
    return np.concatenate(left), np.concatenate(right), np.zeros(sum(map(len, left)), np.int32)


def _products(
    groups: _Groups,
    sizes: NDArray[np.int64],
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    distances: NDArray[np.int32],
) -> Columns:
    """Pair every member of one group with every member of the other."""
    counts = sizes[left] * sizes[right]
    pair = np.repeat(np.arange(len(left)), counts)
    place = np.arange(len(pair)) - np.repeat(np.cumsum(counts) - counts, counts)
    width = sizes[right][pair]
    one = groups.ids[groups.offsets[left][pair] + place // width]
    two = groups.ids[groups.offsets[right][pair] + place % width]
    return one, two, distances[pair]


def _too_many(limit: int, radius: int, count: int) -> ResultTooLargeError:
    return ResultTooLargeError(
        f"more than limit={limit} pairs within radius {radius} among {count} signatures; ask with "
        "a smaller radius, pair equal signatures only once with collapse=True, or raise the limit"
    )
