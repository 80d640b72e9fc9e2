"""Number of candidates and groups of a vector search: default, or tuned to a recall."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import LARGEST, share, whole_number
from lookalike.errors import ArgumentError, Said
from lookalike.indexes.tuning import (
    Option,
    Tuning,
    other_columns,
    own_tuning,
    share_to_reach,
    sufficient,
)
from lookalike.signatures.random import random_words
from lookalike.vectors.given import in_single_precision
from lookalike.vectors.search import Parts, all_compared, check_places, proposed

SAMPLE = 400  # default number of vectors of the index that tuning searches for
_MOST_CANDIDATES, _MOST_PER_NEIGHBOR = 2048, 32
_FIRST_PROBE = 8
_LEAST_CANDIDATES, _PER_NEIGHBOR = 256, 16
_LEAST_GROUPS, _GROUP_SHARE = 32, 6
_COMPARE, _RERANK = 1.4e-3, 500.0
"""What comparing one bit of a signature costs, and one more candidate, in nanoseconds: measured
once, and only their relation counts. With fixed numbers the same index is tuned to the same."""


@dataclass(frozen=True)
class Effort:
    """Number of candidates and groups of a search."""

    candidates: int  # number of vectors whose cosine is computed, nearest signatures first
    probe: int  # number of groups of signatures to read


def usual_effort(k: int, groups: int) -> Effort:
    """Return the default effort."""
    probe = max(_LEAST_GROUPS, -(-groups // _GROUP_SHARE))
    return Effort(max(_LEAST_CANDIDATES, _PER_NEIGHBOR * k), probe)


def effort_for(
    candidates: SupportsIndex | None,
    probe: SupportsIndex | None,
    recall: SupportsFloat | None,
    k: int,
    groups: int,
    tunings: Iterable[Tuning[Option]],
) -> Effort:
    """Return the effort of a search: as given, as tuned, or the default."""
    if recall is not None and (candidates is not None or probe is not None):
        raise ArgumentError(
            Said("recall"), " excludes ", Said("candidates"), " and ", Said("probe")
        )
    if recall is not None:
        target = share("recall", recall)
        if target == 1:
            return Effort(LARGEST, max(1, groups))  # no sample proves that fewer find all
        enough = sufficient(tunings, k, target)
        if not enough:
            raise ArgumentError(
                Said("recall"),
                f" is {target:g}, and the index was not tuned to it for k={k}. ",
                Said(
                    f"Call tune({k}, {target:g}) first",
                    "`lookalike index --recall` does, for 10 neighbors or fewer",
                ),
                ", or pass ",
                Said("candidates"),
            )
        best = min(enough, key=lambda each: (each.target, each.k)).search_settings
        return Effort(max(k, best["candidates"]), best["probe"])
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


def tuned(
    parts: Parts,
    k: int,
    target: float,
    queries: NDArray[np.float32] | None,
    sample: int,
    threads: int,
) -> Tuning[Option]:
    """Return the cheapest effort that reaches the target."""
    store, inner = parts.store, parts.signatures
    by_place = replace(store, ids=None)
    own = None
    if queries is None:
        drawn = np.argsort(random_words(inner.seed, len(store.places)))[:sample]
        own = store.places[drawn]
        queries = in_single_precision(store.rows(own))
    itself = int(own is not None)
    if not len(queries) or store.alive <= itself:
        raise ArgumentError("there is nothing to tune with; expected queries and vectors")
    near = min(k + itself, store.alive)
    truth = all_compared(by_place, by_place.places, queries, near, threads).ids
    if own is not None:  # which is found in any case
        truth = truth[other_columns(truth, own)].reshape(len(truth), -1)
    groups = max(1, inner.clusters)  # none where there was nothing at first

    def reached(candidates: int, probe: int, recall: float) -> Tuning[Option]:
        settings = {"candidates": candidates, "probe": probe}
        asked = {"target": target, "k": k, "queries": len(queries)}
        return own_tuning("vectors", settings, recall, **asked)

    everything = reached(max(1, store.alive), groups, 1.0)
    if target == 1:  # no sample proves that fewer find all
        return everything
    wanted = share_to_reach(target, len(queries))
    most = min(store.alive, max(_MOST_CANDIDATES, _MOST_PER_NEIGHBOR * k))
    steps = _ladder(min(k, most), most)
    best: tuple[float, Tuning[Option]] | None = None
    for probe in _ladder(min(_FIRST_PROBE, groups), groups)[::2]:
        least = _cost(steps[0], probe, groups, len(inner), inner.bits)
        if best is not None and least >= best[0]:
            break
        found = proposed(parts, queries, Effort(most, probe), None, threads).ids
        check_places(store, found)
        for candidates, recall in zip(
            steps, _recalls_by_candidates(found, truth, steps), strict=True
        ):
            if recall < wanted:
                continue
            price = _cost(candidates, probe, groups, len(inner), inner.bits)
            if best is None or price < best[0]:
                best = price, reached(candidates, probe, recall)
            break
    return everything if best is None else best[1]


def _ladder(first: int, last: int) -> list[int]:
    """Return numbers from the first to the last, each about 1.4 times the one before."""
    steps = [first]
    while steps[-1] < last:
        steps.append(min(last, max(steps[-1] + 1, math.ceil(steps[-1] * math.sqrt(2)))))
    return steps


def _cost(candidates: int, probe: int, groups: int, count: int, bits: int) -> float:
    """Return the estimated nanoseconds of a query."""
    return probe / max(1, groups) * count * bits * _COMPARE + candidates * _RERANK


def _recalls_by_candidates(
    candidates: NDArray[np.int64], truth: NDArray[np.int64], steps: list[int]
) -> list[float]:
    """Return the recall for each number of candidates."""
    ranks = np.full(truth.shape, np.iinfo(np.int64).max)
    for row, (places, wanted) in enumerate(zip(candidates, truth, strict=True)):
        order = np.argsort(places, kind="stable")
        at = np.searchsorted(places, wanted, sorter=order).clip(max=len(places) - 1)
        ranks[row] = np.where(places[order[at]] == wanted, order[at], ranks[row])
    there = truth >= 0
    return [float(np.mean(ranks[there] < step)) if there.any() else 1.0 for step in steps]
