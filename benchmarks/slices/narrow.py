"""Cases of slice lists on narrow signatures: millions of 64 bits, near-duplicates, all exact."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lookalike as la
from benchmarks.answers import Matched
from benchmarks.floor import Floor, share_of_floor
from benchmarks.harness import Effort, WrongAnswerError
from benchmarks.quality import (
    Entry,
    Quality,
    QualityResult,
    ratio_informs,
    ratio_verdict,
    run_entries,
)
from benchmarks.scan.signatures import flip_bits, uniform
from benchmarks.slices.entries import entry, equal_to, ours_within
from benchmarks.slices.peers import build_flat, build_multi_hash, build_slices

__all__ = [
    "BITS",
    "RADIUS",
    "best_of",
    "hash_tables",
    "in_batches",
    "pairs",
    "planted",
    "within",
]

Signatures = NDArray[np.uint8]

SEED = 50
BITS = 64
RADIUS = 3
PLANTED_SHARE = 0.1
MOST_FLIPS = 2 * RADIUS
"""Planted signatures are copies with up to so many bits changed: some near enough, some not."""
BATCHES = 10
"""One batch is searched in milliseconds; asked again it would find its answers in the cache."""
FEW = 100
PAIRS_SHARE = 0.1
"""Of the floor that pairs have to reach."""
EFFORT = Effort(rounds=5, seconds=3.0)

TABLES = ((4, 16, 0), (3, 21, 1), (2, 32, 1))
"""Ways in which hash tables find all within 3: (tables, bits of each, bits flipped in look-ups)."""


def within(name: str, count: int, asked: int) -> QualityResult:
    """Search for all within 3; faiss's hash tables in each way that is exact, the best judged."""
    signatures, queries = planted(count, BATCHES * asked)
    scan = la.ScanIndex(signatures)
    truth = scan.within(queries, RADIUS)
    judge = equal_to(Matched(truth.offsets, truth.ids, truth.distances))
    slices, flat = build_slices(signatures, None), build_flat(signatures)
    few = queries[:FEW]
    ask = partial(in_batches, partial(ours_within, slices), queries, asked)
    first = entry(f"slices of {slices.index.slice_bits}", slices, ask, len(queries), judge)
    hashes = hash_tables(signatures, queries, asked, judge)
    scans = [
        Entry("lookalike ScanIndex", partial(_scan_within, scan, few), len(few), judge),
        entry("faiss Flat", flat, partial(flat.within, few, RADIUS), len(few), judge),
    ]
    title = (
        f"within {RADIUS} of {count:,} x {BITS} bits, uniform with near-duplicates, "
        f"{BATCHES} batches of {asked:,} queries, 1 thread"
    )
    result = run_entries(name, title, [first, *hashes, *scans], len(queries), EFFORT)
    best = best_of(result, hashes)
    title = f"15.  within {RADIUS} of {count:,} x {BITS}, batch, 1 thread: {best} / ours"
    verdict = ratio_verdict(title, result.times(), best, first.name, 8)
    return replace(result, verdicts=[verdict], notes=[f"{len(truth.ids):,} matches"])


def pairs(name: str, count: int, asked: int) -> QualityResult:
    """Find all pairs within 3; faiss's hash tables are asked for the first signatures."""
    signatures, _ = planted(count, 0)
    slices = build_slices(signatures, None)
    queries = signatures[:asked]
    found = slices.index.pairs(RADIUS, threads=1)
    of_first = _matches_of_first(found, asked)

    def same_pairs(answer: la.results.Pairs) -> Quality:
        for expected, again in zip(
            found.to_numpy().values(), answer.to_numpy().values(), strict=True
        ):
            if not np.array_equal(expected, again):
                raise WrongAnswerError(f"{name}: the same question had another answer")
        return {}

    ask = partial(slices.index.pairs, RADIUS, threads=1)
    first = entry("slices, pairs()", slices, ask, count, same_pairs)
    hashes = hash_tables(signatures, queries, asked, equal_to(of_first))
    # Within 3, one of four blocks of bits is equal: in the order of each block every signature is
    # put in its place once, which is reading it, and read once where it then lies.
    blocks, width = RADIUS + 1, BITS // 8
    floor = Floor(blocks, 2 * blocks * width, signatures.nbytes).entry("floor", count)
    title = f"pairs within {RADIUS} of {count:,} x {BITS} bits, 1 thread"
    result = run_entries(name, title, [first, *hashes, floor], count, EFFORT, unit="signature")
    best, times = best_of(result, hashes), result.times()
    what = f"pairs within {RADIUS} of {count:,} x {BITS}, 1 thread"
    verdicts = [
        share_of_floor(
            f"16.  {what}: floor / ours", times["floor"], times[first.name], PAIRS_SHARE
        ),
        ratio_informs(f"16.  {what}: {best} / ours", times, best, first.name),
    ]
    note = f"{len(found):,} pairs; those of the first {asked:,} signatures were compared"
    return replace(result, verdicts=verdicts, notes=[note])


def planted(count: int, queries: int) -> tuple[Signatures, Signatures]:
    """Return uniform signatures of which a tenth are changed copies of others, and queries.

    Every second query is a changed copy of a signature of the collection, the others are new.
    """
    generator = np.random.default_rng(SEED)
    rows = uniform(count + queries, BITS, generator)
    copied = generator.random(len(rows)) < PLANTED_SHARE
    copied[count:] = np.arange(queries) % 2 == 0
    changed = np.flatnonzero(copied)
    copies = rows[generator.integers(count, size=len(changed))]
    flips = generator.integers(0, MOST_FLIPS, size=len(changed), endpoint=True)
    flip_bits(copies, flips, generator)
    rows[changed] = copies
    return rows[:count], rows[count:]


def hash_tables(
    signatures: Signatures, queries: Signatures, batch: int, judge: Callable[[Any], Quality]
) -> list[Entry]:
    """Ask faiss's hash tables in each way that is exact."""
    entries = []
    for tables, bits, flips in TABLES:
        built = build_multi_hash(signatures, tables, bits)
        ask = partial(in_batches, partial(built.within, flips=flips), queries, batch)
        name = f"faiss MultiHash {tables} x {bits}, nflip {flips}"
        entries.append(entry(name, built, ask, len(queries), judge))
    return entries


def in_batches(
    within: Callable[[Signatures, int], Matched], queries: Signatures, size: int
) -> Matched:
    """Ask with `size` queries at a time, and put the answers one after the other."""
    parts = [within(queries[i : i + size], RADIUS) for i in range(0, len(queries), size)]
    counts = np.concatenate([np.diff(part.offsets.astype(np.int64)) for part in parts])
    return Matched(
        np.concatenate([[0], np.cumsum(counts)]),
        np.concatenate([part.ids for part in parts]),
        np.concatenate([part.distances for part in parts]),
    )


def best_of(result: QualityResult, entries: Sequence[Entry]) -> str:
    """Return the name of the quickest."""
    times = result.times()
    return min((entry.name for entry in entries), key=lambda name: times[name].best)


def _scan_within(scan: la.ScanIndex, queries: Signatures) -> Matched:
    found = scan.within(queries, RADIUS, threads=1)
    return Matched(found.offsets, found.ids, found.distances)


def _matches_of_first(found: la.results.Pairs, asked: int) -> Matched:
    """Return what searching with the first signatures has to find: each itself, and its pairs."""
    own = np.arange(asked)
    query = np.concatenate([found.left, found.right, own])
    other = np.concatenate([found.right, found.left, own])
    distances = np.concatenate([found.distances, found.distances, np.zeros(asked, np.int32)])
    chosen = np.flatnonzero(query < asked)
    chosen = chosen[np.argsort(query[chosen], kind="stable")]
    offsets = np.searchsorted(query[chosen], np.arange(asked + 1))
    return Matched(offsets, other[chosen], distances[chosen])
