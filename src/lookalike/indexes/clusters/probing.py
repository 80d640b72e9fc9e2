"""How many groups a search reads: by default, for near-duplicates, and to reach a recall."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.checks import share, whole_number
from lookalike.errors import ArgumentError, Said
from lookalike.indexes.tuning import Option, Tuning, least_enough, own_tuning, sufficient
from lookalike.signatures.random import random_words

if TYPE_CHECKING:
    from lookalike.indexes.clusters.groups import Groups

SAMPLE = 1000
"""Signatures of the index that are searched for to tune it, by default."""

_SHARE, _LEAST = 12, 16


def least_probe(groups: int) -> int:
    """Return the least number of groups that are read by default."""
    return max(_LEAST, -(-groups // _SHARE))


def usual_probe(groups: Groups) -> int:
    """Return how many groups are read by default: enough to find 99.9% of near-duplicates."""
    return max(least_probe(len(groups)), groups.near_probe)


def probe_tuning(needed: NDArray[np.int64], k: int, target: float, queries: int) -> Tuning[Option]:
    """Return the tuning that follows from how many groups each neighbor takes."""
    probe, recall = least_enough(needed, target, queries, none=1)
    return own_tuning("clusters", {"probe": probe}, recall, target=target, k=k, queries=queries)


def probes_needed(
    groups: Groups, queries: NDArray[np.uint8], places: NDArray[np.int64], threads: int
) -> NDArray[np.int64]:
    """Return, for the rows at some places for each query, how many groups are read until theirs."""
    distances = np.empty((len(queries), len(groups)), np.int32)
    _native.scan_all(queries, groups.centres, threads, distances)
    ranks = np.empty(distances.shape, np.int64)
    order = np.argsort(distances, axis=1, kind="stable")  # ties by number
    numbers = np.broadcast_to(np.arange(1, len(groups) + 1), distances.shape)
    np.put_along_axis(ranks, order, numbers, axis=1)
    return np.take_along_axis(ranks, groups.group_of(places), axis=1)


def groups_to_read(
    probe: SupportsIndex | None,
    recall: SupportsFloat | None,
    k: int,
    groups: Groups,
    tunings: Iterable[Tuning[Option]],
) -> int:
    """Return how many of the groups are read: as given, as tuned, or by default."""
    if probe is not None and recall is not None:
        raise ArgumentError(
            Said("probe"), " says how many groups are read, and ", Said("recall"), " how many "
            "neighbours are found; expected one of them"
        )  # fmt: skip
    if probe is not None:
        return whole_number("probe", probe, at_least=1)
    if recall is None:
        return usual_probe(groups)
    target = share("recall", recall)
    if target == 1:
        return len(groups)  # no sample proves that fewer find all
    enough = sufficient(tunings, k, target)
    if not enough:
        raise ArgumentError(
            Said("recall"),
            f" is {target:g}, and the index was not tuned to it for k={k}; "
            f"call tune_probes({k}, {target:g}) before, or say ",
            Said("probe"),
        )
    return min(int(each.search_settings["probe"]) for each in enough)


# Near-duplicates

_SAMPLED = 1 << 14
_AT_ONCE = 256
_TENTH = (1 << 16) // 10  # of what 16 bits can be
_FOUND = 0.9995  # more than the 99.9% that is promised, because a sample is not exact


def groups_until_near(
    signatures: NDArray[np.uint8], offsets: NDArray[np.int64], centres: NDArray[np.uint8]
) -> int:
    """Return how many groups are read until that of a near-duplicate, for nearly all of them.

    Where signatures form groups, a near-duplicate is nearest to the same center, or nearly. Where
    they do not, as with random bits, a few bits decide. So it is measured: signatures are changed
    in up to a tenth of their bits and searched for. The same groups give the same number.
    """
    if len(centres) < 2:
        return len(centres)
    count = min(_SAMPLED, len(signatures))
    places = (random_words(3, count) % np.uint64(len(signatures))).astype(np.int64)
    own = np.searchsorted(offsets, places, side="right") - 1
    read = np.empty(count, np.int64)
    distances = np.empty((_AT_ONCE, len(centres)), np.int32)
    numbers = np.arange(len(centres))
    for begin in range(0, count, _AT_ONCE):
        asked = _changed(signatures[places[begin : begin + _AT_ONCE]], begin)
        far, mine = distances[: len(asked)], own[begin : begin + _AT_ONCE, None]
        _native.scan_all(asked, centres, 1, far)
        to_own = np.take_along_axis(far, mine, axis=1)
        before = (far < to_own) | ((far == to_own) & (numbers < mine))  # ties by number
        read[begin : begin + len(asked)] = before.sum(axis=1) + 1
    read.sort()
    return int(read[math.ceil(_FOUND * count) - 1])


def _changed(rows: NDArray[np.uint8], seed: int) -> NDArray[np.uint8]:
    """Return signatures each of which is changed in a share of its bits, from none to a tenth."""
    bits = 8 * rows.shape[1]
    drawn = random_words(seed, len(rows) * (1 + bits // 4)).reshape(len(rows), -1)
    share = (drawn[:, :1] % np.uint64(_TENTH)).astype(np.uint16)
    flips = np.ascontiguousarray(drawn[:, 1:]).view(np.uint16) < share
    changed: NDArray[np.uint8] = rows ^ np.packbits(flips, axis=1)
    return changed
