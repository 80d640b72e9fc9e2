"""What slice lists cost: time and memory of building, and how searching gets slower with size."""

from __future__ import annotations

from dataclasses import replace
from math import log

import lookalike as la
from benchmarks.harness import Contender, Effort, Measurement, measure
from benchmarks.quality import QualityResult, at_least, at_most, ratio_verdict, run_entries
from benchmarks.slices.enlarged import BITS
from benchmarks.slices.entries import EFFORT, FEW, K, ours
from benchmarks.slices.peers import build_slices
from benchmarks.slices.wide import WIDTH, WideCases
from lookalike.indexes.slices.lists import slice_width

__all__ = ["build", "growth"]

DOUBLINGS = 10


def build(name: str, cases: WideCases) -> QualityResult:
    """Build with one and two threads; HNSW was built of fewer, its time is scaled."""
    signatures = cases.collection.signatures
    contenders = [
        Contender("slices", lambda: build_slices(signatures, WIDTH).seconds),
        Contender("slices, two threads", lambda: build_slices(signatures, WIDTH, 2).seconds),
    ]
    measured = measure(contenders, Effort(rounds=3, seconds=20.0))
    small = cases.graph_count
    scale = cases.count * log(cases.count) / (small * log(small))
    seconds = scale * cases.graph.seconds
    measured.append(Measurement("faiss HNSW", seconds, seconds, 1, [seconds], scale, is_rival=True))
    times = {each.name: each for each in measured}
    postings = cases.count * cases.slices.index.slices
    size = cases.slices.index.memory_bytes - signatures.nbytes
    allowed = 4 * (postings + (1 << WIDTH) * cases.slices.index.slices)
    graph_bytes = cases.graph.bytes_per_signature
    return QualityResult(
        name,
        f"building of {cases.count:,} x {BITS} bits, slices of {WIDTH}",
        measured,
        [
            ratio_verdict(
                f"13a. building {cases.size} 1 thread: faiss HNSW / ours",
                times,
                "faiss HNSW",
                "slices",
                50,
            ),
            at_least(
                "13b. building with 2 threads: million postings a second",
                postings / times["slices, two threads"].best / 1e6,
                20,
            ),
            at_most("14.  bytes beside the signatures", size, allowed, digits=0),
        ],
        cases.count,
        dict.fromkeys(times),
        {
            **dict.fromkeys(times, cases.slices.bytes_per_signature),
            "faiss HNSW": graph_bytes,
        },
        {each: {} for each in times},
        [f"faiss HNSW was built of {small:,}, in {cases.graph.seconds:.1f} s; time as n log n"],
        "signature",
    )


def growth(name: str, cases: WideCases) -> QualityResult:
    """Search collections from a thousandth to all, with slices as wide as the rule says."""
    queries = cases.collection.queries[:FEW]
    entries = []
    for doublings in range(DOUBLINGS + 1):
        signatures = cases.collection.signatures[: cases.count >> (DOUBLINGS - doublings)]
        truth = la.ScanIndex(signatures).search(queries, K).distances
        built = build_slices(signatures, slice_width(len(signatures), BITS))
        entries.append(
            replace(
                ours(built, queries, truth, 2),
                name=f"{len(signatures):,} signatures, slices of {built.index.slice_bits}",
            )
        )
    title = f"{K} nearest of more and more x {BITS} bits, expand 2, {len(queries)} queries"
    result = run_entries(name, title, entries, len(queries), EFFORT)
    first, last = result.measurements[0], result.measurements[-1]
    verdict = at_most(
        f"17.  {1 << DOUBLINGS} times as many signatures, expand 2: time grows",
        last.times_as_long_as(first),
        10,
        " x",
        2,
    )
    return replace(result, verdicts=[verdict])
