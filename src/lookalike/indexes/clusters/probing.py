"""How many groups a search reads, and how many reach a recall."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.checks import share, whole_number
from lookalike.errors import ArgumentError, Said
from lookalike.indexes.clusters.groups import Groups

__all__ = ["SAMPLE", "ProbeTuning", "groups_to_read", "least_probe", "probes_needed", "usual_probe"]

SAMPLE = 1000
"""Signatures of the index that are searched for to tune it, unless told."""

_SHARE, _LEAST = 12, 16


def least_probe(groups: int) -> int:
    """Return how many of so many groups are read at least unless told."""
    return max(_LEAST, -(-groups // _SHARE))


def usual_probe(groups: Groups) -> int:
    """Return how many groups are read unless told.

    So many that of near-duplicates, which differ in a tenth of the bits at most, 99.9% are found.
    """
    return max(least_probe(len(groups)), groups.near_probe)


@dataclass(frozen=True)
class ProbeTuning:
    """How many groups it takes to find a share of the nearest, measured on a sample."""

    k: int
    target: float
    """The share asked for."""
    probe: int
    """The least number that reaches it in the sample by two standard errors, so as to reach it for
    other queries too.
    """
    recall: float
    """The share of the k nearest that they find in the sample."""
    queries: int
    """How many queries the sample had."""

    @classmethod
    def of(cls, needed: NDArray[np.int64], k: int, target: float, queries: int) -> ProbeTuning:
        """Return what follows from how many groups each neighbour takes."""
        ordered = np.sort(needed, axis=None)
        if not len(ordered):
            return cls(k, target, 1, 1.0, queries)
        # Neighbours of one query are found together, so that a query counts, and not each of them.
        margin = 2 * math.sqrt(target * (1 - target) / max(1, queries))
        wanted = min(1.0, target + margin)
        probe = int(ordered[math.ceil(wanted * len(ordered)) - 1])
        return cls(k, target, probe, float(np.mean(ordered <= probe)), queries)

    @classmethod
    def restored(cls, saved: dict[str, Any]) -> ProbeTuning:
        """Return what was saved as plain values; raises KeyError, TypeError or ValueError."""
        k, probe = int(saved["k"]), int(saved["probe"])
        if k < 1 or probe < 1:
            raise ValueError(f"{probe} groups for {k} neighbours")
        target, recall = float(saved["target"]), float(saved["recall"])
        return cls(k, target, probe, recall, int(saved["queries"]))


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
    tunings: Iterable[ProbeTuning],
) -> int:
    """Return how many of the groups are read: as told, as tuned, or as usual."""
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
    enough = [each for each in tunings if each.k >= k and each.target >= target]
    if not enough:
        raise ArgumentError(
            Said("recall"),
            f" is {target:g}, and nobody has found out how many groups that takes for k={k}; "
            f"call tune_probes({k}, {target:g}) before, or say ",
            Said("probe"),
        )
    return min(each.probe for each in enough)
