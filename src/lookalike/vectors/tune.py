"""Finding out on a sample what a recall takes."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lookalike.errors import ArgumentError
from lookalike.signatures import Projection
from lookalike.signatures.random import random_words
from lookalike.vectors.given import in_single_precision
from lookalike.vectors.search import Parts, all_compared, check_places, proposed
from lookalike.vectors.tuning import (
    Effort,
    VectorTuning,
    cost,
    ladder,
    recalls_by_candidates,
)

__all__ = ["tuned"]

_MOST_CANDIDATES, _MOST_PER_NEIGHBOR = 2048, 32
_FIRST_PROBE = 8


def tuned(
    parts: Parts,
    signer: Projection,
    k: int,
    target: float,
    queries: NDArray[np.float32] | None,
    sample: int,
    threads: int,
) -> VectorTuning:
    """Return the cheapest of some candidates and groups that reach the target."""
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
        truth = _without(truth, own)
    groups = max(1, inner.clusters)  # none where there was nothing at first
    if target == 1:  # no sample proves that fewer find all
        return VectorTuning(k, target, max(1, store.alive), groups, 1.0, len(queries))
    # Neighbours of one query are found together, so that a query counts, and not each of them.
    wanted = min(1.0, target + 2 * math.sqrt(target * (1 - target) / len(queries)))
    most = min(store.alive, max(_MOST_CANDIDATES, _MOST_PER_NEIGHBOR * k))
    steps = ladder(min(k, most), most)
    best: tuple[float, VectorTuning] | None = None
    for probe in ladder(min(_FIRST_PROBE, groups), groups)[::2]:
        least = cost(steps[0], probe, groups, len(inner), inner.bits)
        if best is not None and least >= best[0]:
            break
        found = proposed(parts, signer, queries, Effort(most, probe), None, threads).ids
        check_places(store, found)
        for candidates, recall in zip(
            steps, recalls_by_candidates(found, truth, steps), strict=True
        ):
            if recall < wanted:
                continue
            price = cost(candidates, probe, groups, len(inner), inner.bits)
            if best is None or price < best[0]:
                tuning = VectorTuning(k, target, candidates, probe, recall, len(queries))
                best = price, tuning
            break
    if best is not None:
        return best[1]
    return VectorTuning(k, target, max(1, store.alive), groups, 1.0, len(queries))


def _without(places: NDArray[np.int64], own: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return each row without its own place, or, where that is not there, without the last."""
    hit = places == own[:, None]
    hit[~hit.any(axis=1), -1] = True
    others: NDArray[np.int64] = places[~hit].reshape(len(places), -1)
    return others
