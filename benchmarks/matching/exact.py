"""Blocks beside faiss's hash tables: everything within 3, the same answers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

import lookalike as la
from benchmarks.answers import Matched
from benchmarks.harness import Effort
from benchmarks.quality import QualityResult, ratio_verdict, run_entries
from benchmarks.slices.entries import entry, equal_to, ours_within
from benchmarks.slices.narrow import BITS, RADIUS, best_of, hash_tables, in_batches, planted
from benchmarks.slices.peers import Built, build_slices

__all__ = ["within"]

BATCHES = 10
CHECKED = 100
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
    title = (
        f"within {RADIUS} of {count:,} x {BITS} bits, uniform with near-duplicates, {BATCHES} "
        f"batches of {asked:,} queries, 1 thread"
    )
    result = run_entries(name, title, [*entries, *hashes], len(queries), EFFORT)
    best = best_of(result, hashes)
    ours = best_of(result, entries[:4])
    label = f"23.  within {RADIUS} of {count:,} x {BITS}, 1 thread: {best} / {ours}"
    return replace(result, verdicts=[ratio_verdict(label, result.times(), best, ours, 40)])


def _build(signatures: NDArray[np.uint8], tables: int, compressed: bool) -> Built:
    start = perf_counter()
    index = la.BlockIndex(signatures, RADIUS, tables, compressed=compressed, threads=1)
    return Built(index, perf_counter() - start, index.memory_bytes / len(index))
