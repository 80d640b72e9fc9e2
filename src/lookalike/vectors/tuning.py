"""How many candidates and groups a search takes, and how many reach a recall."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import LARGEST, share, whole_number
from lookalike.errors import ArgumentError, Said

__all__ = ["SAMPLE", "Effort", "VectorTuning", "effort_for", "ladder", "usual_effort"]

SAMPLE = 400
"""Vectors of the index that are searched for to tune it, unless told."""

_LEAST_CANDIDATES, _PER_NEIGHBOR = 256, 16
_LEAST_GROUPS, _GROUP_SHARE = 32, 6
_COMPARE, _RERANK = 1.4e-3, 500.0
"""What comparing one bit of a signature costs, and one more candidate, in nanoseconds: measured
once, and only their relation counts. With fixed numbers the same index is tuned to the same."""


@dataclass(frozen=True)
class Effort:
    """How much a search looks at."""

    candidates: int
    """Vectors whose true cosine is computed, those with the nearest signatures."""
    probe: int
    """Groups of signatures that are read to find these."""


@dataclass(frozen=True)
class VectorTuning:
    """What it takes to find a share of the most similar, measured on a sample."""

    k: int
    target: float
    """The share asked for."""
    candidates: int
    """Vectors whose cosine is computed for each query."""
    probe: int
    """Groups of signatures that are read for each query."""
    recall: float
    """The share of the k most similar that they find in the sample: the target and two standard
    errors, so as to reach it for other queries too; less if nothing does."""
    queries: int
    """How many queries the sample had."""

    @classmethod
    def restored(cls, saved: dict[str, Any]) -> VectorTuning:
        """Return what was saved as plain values; raises KeyError, TypeError or ValueError."""
        whole = [int(saved[name]) for name in ("k", "candidates", "probe", "queries")]
        if min(whole) < 1:
            raise ValueError(f"a tuning of {whole}")
        k, candidates, probe, queries = whole
        return cls(k, float(saved["target"]), candidates, probe, float(saved["recall"]), queries)


def usual_effort(k: int, groups: int) -> Effort:
    """Return what a search looks at unless told."""
    probe = max(_LEAST_GROUPS, -(-groups // _GROUP_SHARE))
    return Effort(max(_LEAST_CANDIDATES, _PER_NEIGHBOR * k), probe)


def effort_for(
    candidates: SupportsIndex | None,
    probe: SupportsIndex | None,
    recall: SupportsFloat | None,
    k: int,
    groups: int,
    tunings: Iterable[VectorTuning],
) -> Effort:
    """Return what is looked at: as told, as tuned, or as usual."""
    if recall is not None and (candidates is not None or probe is not None):
        raise ArgumentError(
            Said("recall"), " says how many neighbours are found, and ", Said("candidates"),
            " and ", Said("probe"), " how much is looked at; expected one or the other"
        )  # fmt: skip
    if recall is not None:
        target = share("recall", recall)
        if target == 1:
            return Effort(LARGEST, max(1, groups))  # no sample proves that fewer find all
        enough = [each for each in tunings if each.k >= k and each.target >= target]
        if not enough:
            raise ArgumentError(
                Said("recall"),
                f" is {target:g}, and nobody has found out what that takes for k={k}; ",
                Said(
                    f"call tune({k}, {target:g}) before",
                    "`lookalike index --recall` does, for 10 neighbours or fewer",
                ),
                ", or say ",
                Said("candidates"),
            )
        best = min(enough, key=lambda each: (each.target, each.k))
        return Effort(max(k, best.candidates), best.probe)
    usual = usual_effort(k, groups)
    if candidates is not None:
        usual = Effort(whole_number("candidates", candidates, at_least=1), usual.probe)
    if probe is not None:
        usual = Effort(usual.candidates, whole_number("probe", probe, at_least=1))
    if usual.candidates < k:
        raise ArgumentError(
            Said("candidates"), f" is {usual.candidates}, fewer than k={k}; expected {k} at least"
        )
    return usual


def ladder(first: int, last: int) -> list[int]:
    """Return numbers from the first to the last, each some 1.4 times the one before."""
    steps = [first]
    while steps[-1] < last:
        steps.append(min(last, max(steps[-1] + 1, math.ceil(steps[-1] * math.sqrt(2)))))
    return steps


def cost(candidates: int, probe: int, groups: int, count: int, bits: int) -> float:
    """Return what a query costs about, in nanoseconds."""
    return probe / max(1, groups) * count * bits * _COMPARE + candidates * _RERANK


def recalls_by_candidates(
    candidates: NDArray[np.int64], truth: NDArray[np.int64], steps: list[int]
) -> list[float]:
    """Return the share of each query's true places that is among its first candidates.

    `candidates` are places in the order of signatures, so that the first n are those of a search
    with n candidates. Places that are -1 do not count.
    """
    ranks = np.full(truth.shape, np.iinfo(np.int64).max)
    for row, (places, wanted) in enumerate(zip(candidates, truth, strict=True)):
        order = np.argsort(places, kind="stable")
        at = np.searchsorted(places, wanted, sorter=order).clip(max=len(places) - 1)
        ranks[row] = np.where(places[order[at]] == wanted, order[at], ranks[row])
    there = truth >= 0
    return [float(np.mean(ranks[there] < step)) if there.any() else 1.0 for step in steps]
