"""Blocks beside faiss's hash tables: everything within 3, the same answers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

import lookalike as la
from benchmarks.answers import Matched
from benchmarks.floor import Floor, share_of_floor
from benchmarks.harness import Effort
from benchmarks.quality import QualityResult, ratio_informs, run_entries
from benchmarks.slices.entries import entry, equal_to, ours_within
from benchmarks.slices.narrow import BITS, RADIUS, best_of, hash_tables, in_batches, planted
from benchmarks.slices.peers import Built, build_slices

__all__ = ["within"]

BATCHES = 10
CHECKED = 100
SHARE = 0.5
"""Of the floor that blocks have to reach."""
EFFORT = Effort(rounds=5, seconds=3.0)


def within(name: str, count: int, asked: int) -> QualityResult:
    """Ask blocks of 4 and 10 tables, compressed or not, and slices and faiss for the same."""
    signatures, queries = planted(count, BATCHES * asked)
    blocks = {
        f"blocks, {tables} tables{', compressed' if compressed else ''}": _build(
            signatures, tables, compressed
        )
        for tables in (10, 4)
        for compressed in (False, True)
    }
    first = next(iter(blocks.values()))
    expected = la.ScanIndex(signatures).within(queries[:CHECKED], RADIUS)
    found = in_batches(partial(ours_within, first), queries, asked)
    equal_to(found)(Matched(expected.offsets, expected.ids, expected.distances))
    judge = equal_to(found)
    entries = [
        entry(label, built, partial(in_batches, partial(ours_within, built), queries, asked),
              len(queries), judge)
        for label, built in [*blocks.items(), ("slices", build_slices(signatures, None))]
    ]  # fmt: skip
    hashes = hash_tables(signatures, queries, asked, judge)
    floors = [
        _floor(built).entry(f"floor of {label}", len(queries)) for label, built in blocks.items()
    ]
    title = (
        f"within {RADIUS} of {count:,} x {BITS} bits, uniform with near-duplicates, {BATCHES} "
        f"batches of {asked:,} queries, 1 thread"
    )
    result = run_entries(name, title, [*entries, *hashes, *floors], len(queries), EFFORT)
    best, ours, times = best_of(result, hashes), best_of(result, entries[:4]), result.times()
    what = f"within {RADIUS} of {count:,} x {BITS}, 1 thread"
    floor = times[f"floor of {ours}"]
    return replace(
        result,
        verdicts=[
            share_of_floor(f"23.  {what}: floor / {ours}", floor, times[ours], SHARE),
            ratio_informs(f"23.  {what}: {best} / {ours}", times, best, ours),
        ],
    )


def _floor(built: Built) -> Floor:
    """Return what a query reads: in each table where a bucket begins, and the bucket."""
    return Floor(2 * built.index.tables, 0, built.index.memory_bytes)


def _build(signatures: NDArray[np.uint8], tables: int, compressed: bool) -> Built:
    start = perf_counter()
    index = la.BlockIndex(signatures, RADIUS, tables, compressed=compressed, threads=1)
    return Built(index, perf_counter() - start, index.memory_bytes / len(index))
