"""Number of candidates and groups of a vector search: default, or tuned to a recall."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
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
    sufficient,
)
from lookalike.signatures.random import random_words
from lookalike.vectors.given import in_single_precision
from lookalike.vectors.search import Parts, all_compared, proposed

_MARGIN = 2.5
"""Standard errors by which a recall has to exceed the target. The cheapest of many settings is
chosen, so that two would promise too much."""
_PARTS = 8  # of a step of the ladder of groups
SAMPLE = 1000  # default number of vectors of the index that tuning searches for
_MOST_CANDIDATES, _MOST_PER_NEIGHBOR = 2048, 32
_LEAST_CANDIDATES, _PER_NEIGHBOR = 64, 4
_LEAST_GROUPS, _GROUP_SHARE = 32, 8
_BITS_CANDIDATES, _BITS_PER_NEIGHBOR, _BITS_GROUP_SHARE = 128, 8, 6
_ROW, _VALUE, _GROUP = 1.0, 0.025, 20.0
_CANDIDATE, _CANDIDATE_VALUE = 60.0, 1.5
"""What a row, a value of its sketch and a group cost, and a candidate and a value of its vector, in
nanoseconds: measured once, and only their relation counts. With fixed numbers the same index is
tuned to the same."""


@dataclass(frozen=True)
class Effort:
    """Number of candidates and groups of a search."""

    candidates: int  # number of vectors whose cosine is computed, nearest sketches first
    probe: int  # number of groups of sketches to read


def usual_effort(k: int, groups: int) -> Effort:
    """Return the default effort."""
    probe = max(_LEAST_GROUPS, -(-groups // _GROUP_SHARE))
    return Effort(max(_LEAST_CANDIDATES, _PER_NEIGHBOR * k), probe)


def usual_effort_for_bits(k: int, groups: int) -> Effort:
    """Return the default effort if only bits are stored."""
    probe = max(_LEAST_GROUPS, -(-groups // _BITS_GROUP_SHARE))
    return Effort(max(_BITS_CANDIDATES, _BITS_PER_NEIGHBOR * k), probe)


def effort_for(
    candidates: SupportsIndex | None,
    probe: SupportsIndex | None,
    recall: SupportsFloat | None,
    k: int,
    groups: int,
    tunings: Iterable[Tuning[Option]],
    *,
    only_bits: bool = False,
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
    usual = (usual_effort_for_bits if only_bits else usual_effort)(k, groups)
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
    sketches = parts.sketches(threads)
    store, seed = parts.store, parts.signer.seed
    by_place = replace(store, ids=None)
    own = None
    if queries is None:
        # From the end: sketches train their centers with the first ones in this order, which are
        # nearer to their centers than other vectors are.
        drawn = np.argsort(random_words(seed, len(store.places)))[::-1][:sample]
        own = store.places[drawn]
        queries = in_single_precision(store.rows(own))
    itself = int(own is not None)
    if not len(queries) or store.alive <= itself:
        raise ArgumentError("there is nothing to tune with; expected queries and vectors")
    near = min(k + itself, store.alive)
    truth = all_compared(by_place, None, queries, near, threads, sketches).ids
    if own is not None:  # which is found in any case
        truth = truth[other_columns(truth, own)].reshape(len(truth), -1)
    groups = parts.groups

    def reached(candidates: int, probe: int, recall: float) -> Tuning[Option]:
        settings = {"candidates": candidates, "probe": probe}
        asked = {"target": target, "k": k, "queries": len(queries)}
        return own_tuning("vectors", settings, recall, **asked)

    everything = reached(max(1, store.alive), groups, 1.0)
    if target == 1 or sketches is None:  # no sample proves that fewer find all
        return everything
    most = min(store.alive, max(_MOST_CANDIDATES, _MOST_PER_NEIGHBOR * k))
    steps = _ladder(min(k, most), most)
    best: tuple[float, Tuning[Option]] | None = None

    def try_probes(probes: Iterable[int]) -> None:
        nonlocal best
        for probe in probes:
            least = _cost(steps[0], probe, groups, *store.shape)
            if best is not None and least >= best[0]:
                break
            found = proposed(store, sketches, queries, Effort(most, probe), threads)
            shares = _shares_by_candidates(found, truth, steps, len(sketches))
            for candidates, share_found in zip(steps, shares, strict=True):
                recall, error = float(share_found.mean()), float(share_found.std())
                if recall - _MARGIN * error / math.sqrt(len(share_found)) < target:
                    continue
                price = _cost(candidates, probe, groups, *store.shape)
                if best is None or price < best[0]:
                    best = price, reached(candidates, probe, recall)
                break

    ladder = _ladder(1, groups)
    try_probes(ladder)
    if best is None:
        return everything
    # Fewer groups may do than those of the step that was chosen.
    last = best[1].search_settings["probe"]
    first = max([1, *(probe for probe in ladder if probe < last)])
    try_probes(sorted({first + (last - first) * part // _PARTS for part in range(1, _PARTS)}))
    return best[1]


def _ladder(first: int, last: int) -> list[int]:
    """Return numbers from the first to the last, each about 1.4 times the one before."""
    steps = [first]
    while steps[-1] < last:
        steps.append(min(last, max(steps[-1] + 1, math.ceil(steps[-1] * math.sqrt(2)))))
    return steps


def _cost(candidates: int, probe: int, groups: int, count: int, dimensions: int) -> float:
    """Return the estimated nanoseconds of a query."""
    rows = groups + probe / groups * count
    read = rows * (_ROW + _VALUE * dimensions) + probe * _GROUP
    return read + candidates * (_CANDIDATE + _CANDIDATE_VALUE * dimensions)


def _shares_by_candidates(
    candidates: NDArray[np.int64], truth: NDArray[np.int64], steps: list[int], sketched: int
) -> Iterator[NDArray[np.float64]]:
    """Yield the share of each query's nearest that is found, for each number of candidates.

    What has no sketch is always compared.
    """
    ranks = np.full(truth.shape, np.iinfo(np.int64).max)
    for row, (places, wanted) in enumerate(zip(candidates, truth, strict=True)):
        order = np.argsort(places, kind="stable")
        at = np.searchsorted(places, wanted, sorter=order).clip(max=len(places) - 1)
        ranks[row] = np.where(places[order[at]] == wanted, order[at], ranks[row])
    ranks[truth >= sketched] = 0
    there = (truth >= 0).sum(axis=1).clip(min=1)
    for step in steps:
        yield ((ranks < step) & (truth >= 0)).sum(axis=1) / there
