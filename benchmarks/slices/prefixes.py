"""Orders by random permutations of the bits (Charikar) beside slice lists and the scan."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

import lookalike as la
from benchmarks.answers import Nearest
from benchmarks.quality import Entry, Quality, QualityResult, at_least, ratio_informs, run_entries
from benchmarks.slices.enlarged import BITS
from benchmarks.slices.entries import EFFORT, EXPAND, FEW, K, entry, ours
from benchmarks.slices.peers import Built, build_prefixes
from benchmarks.slices.wide import NEAR, WideCases
from lookalike.advice.measures import near_duplicate_recall, recall_at_k

__all__ = ["near_by_prefixes"]

ORDERS = (8, 16, 32)
EXAMINED = (200, 1000)
SCAN = "scan"


def near_by_prefixes(name: str, cases: WideCases) -> QualityResult:
    """Search for near-duplicates, with queries that have some; and what is found of the rest."""
    signatures = cases.collection.signatures
    scan = la.ScanIndex(signatures)
    held_out = cases.collection.near_queries
    queries = held_out[scan.search(held_out, 1).distances[:, 0] <= NEAR][: cases.queries]
    truth = scan.search(queries, K)

    def found(answer: Nearest) -> Quality:
        part = la.results.Neighbors(answer.ids, answer.distances.astype(np.int32), False)
        first = la.results.Neighbors(truth.ids[: len(part)], truth.distances[: len(part)], True)
        recall = float(recall_at_k(part.ids, first.ids).mean())
        return {"near found": near_duplicate_recall(part, first, NEAR) or 0.0, "recall": recall}

    def asked(built: Built, examine: int) -> Entry:
        run = partial(_search, built.index, queries, examine)
        title = f"{built.index.orders} orders, {examine} examined"
        return entry(title, built, run, len(queries), found)

    whole = Built(scan, 0.0, BITS / 8)
    slices = cases.slices
    entries = [
        *(asked(build_prefixes(signatures, n), most) for n in ORDERS for most in EXAMINED),
        *(replace(ours(slices, queries, truth.distances, one), judge=found) for one in (0, 1)),
        entry(SCAN, whole, partial(_scan, scan, queries[:FEW]), FEW, found),
    ]
    title = f"{cases.count:,} x {BITS} bits, {len(queries):,} queries with near-duplicates"
    result = run_entries(name, title, entries, len(queries), EFFORT)
    best = f"{ORDERS[1]} orders, {EXAMINED[1]} examined"
    quick = f"{ORDERS[1]} orders, {EXAMINED[0]} examined"
    share = 100 * result.quality[best]["near found"]
    return replace(
        result,
        verdicts=[
            at_least(f"18a. within {NEAR} bits, {best}: found", share, 99.9, "%", 2),
            ratio_informs(f"18b. {EXPAND[0]} / {quick}", result.times(), EXPAND[0], quick),
            ratio_informs(f"18c. {SCAN} / {best}", result.times(), SCAN, best),
        ],
    )


def _search(index: la.PrefixIndex, queries: NDArray[np.uint8], examine: int) -> Nearest:
    found = index.search(queries, K, examine=examine, threads=1)
    return Nearest(found.ids, found.distances)


def _scan(index: la.ScanIndex, queries: NDArray[np.uint8]) -> Nearest:
    found = index.search(queries, K, threads=1)
    return Nearest(found.ids, found.distances)
