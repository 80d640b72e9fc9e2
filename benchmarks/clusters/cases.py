"""ClusterIndex beside faiss's graph and inverted file, and slices: each at the same CDR."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

import lookalike as la
from benchmarks.answers import Nearest
from benchmarks.harness import Verdict
from benchmarks.quality import (
    Entry,
    Quality,
    QualityResult,
    at_least,
    at_most,
    nearest_quality,
    ratio_verdict,
    run_entries,
)
from benchmarks.slices.enlarged import BITS, Collection, signed_collection
from benchmarks.slices.entries import EFFORT, FEW, K, entry, hnsw, ivf, ours
from benchmarks.slices.kept import kept
from benchmarks.slices.peers import (
    SAMPLE_PER_LIST,
    Built,
    build_clusters,
    build_hnsw,
    build_ivf,
    build_slices,
)
from lookalike.advice.measures import near_duplicate_recall

__all__ = ["CASES", "run_clusters"]

CASES = ("clusters-real-1024", "clusters-near-1024", "clusters-search-1024")

Signatures = NDArray[np.uint8]

COUNT, QUERIES, NEAR_QUERIES = 1_000_000, 1000, 4000
NEAR = BITS // 10
PROBES = (4, 8, 16, 32, 48, 64, 96, 128, 192, 256, 512)
SINGLY = ", one by one"
WIDTHS = (64, 128, 256, 512, 640, 1024)
"""Candidates that the graph keeps."""
READ = (2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 160, 192, 256, 384, 512)
"""Lists of the inverted file that are read."""
LEVELS = (0.965, 0.98, 0.99)
"""Qualities at which the inverted file is compared, at least three times as fast."""


@dataclass(frozen=True)
class Targets:
    """What has to be reached, and at which quality."""

    cdr: float
    graph: float
    """How many times as long HNSW takes."""
    slices: float | None = None
    build_seconds: float | None = None
    """With two threads."""


REAL = Targets(0.988, graph=10)
ALL = Targets(0.965, graph=15, slices=8, build_seconds=15)


def run_clusters(
    names: Sequence[str], folder: Path | None, cache: Path, *, part: int
) -> Iterator[QualityResult]:
    """Run cases one after the other, on collections of which only a `part`-th is used."""
    collection = signed_collection(
        folder, cache, COUNT // part, QUERIES, NEAR_QUERIES // part, part=part
    )
    runs: dict[str, Callable[[str], QualityResult]] = {
        "clusters-real-1024": partial(_real, collection, cache),
        "clusters-near-1024": partial(_near, collection),
        "clusters-search-1024": partial(
            _compared, collection.signatures, collection.queries, ALL, (4096 // part,), cache
        ),
    }
    for name in names:
        yield runs[name](name)


def _real(collection: Collection, cache: Path, name: str) -> QualityResult:
    """Search the documents that were not made up, some of them held out."""
    queries, rows = collection.real[:QUERIES], collection.real[QUERIES:]
    return _compared(rows, queries, REAL, (512, 1024), cache, name)


def _compared(
    rows: Signatures,
    queries: Signatures,
    targets: Targets,
    lists: Sequence[int],
    cache: Path,
    name: str,
) -> QualityResult:
    """Search with more and more effort, and compare the least that reaches the CDR."""
    truth = la.ScanIndex(rows).search(queries, K).distances
    judge, few = nearest_quality(truth), queries[:FEW]
    # Graphs take minutes: built with all threads, which is kind to them; then one for all.
    faiss.omp_set_num_threads(os.cpu_count() or 1)
    graph = kept(cache, "hnsw", rows, partial(build_hnsw, rows))
    files = [
        kept(cache, f"ivf-{number}-{SAMPLE_PER_LIST}", rows, partial(build_ivf, rows, number))
        for number in lists
    ]
    faiss.omp_set_num_threads(1)
    groups, sliced = build_clusters(rows, 2), build_slices(rows, 18, 2)
    own = [
        *(_asked(groups, queries, probe, judge) for probe in PROBES),
        *(_singly(groups, few, probe, judge) for probe in PROBES),
        *(_asked(groups, queries, probe, judge, threads=2) for probe in PROBES),
    ]
    graphs = [hnsw(graph, few, truth, width) for width in WIDTHS]
    graphs_singly = [
        _peer_singly(f"faiss HNSW, efSearch {width}", graph, _set_width, width, few, judge)
        for width in WIDTHS
    ]
    files_read = [
        replace(ivf(built, queries, truth, read), name=f"faiss IVF, nprobe {read} of {number}")
        for number, built in zip(lists, files, strict=True)
        for read in READ
        if 2 * read <= number
    ]
    files_singly = [
        _peer_singly(f"faiss IVF, nprobe {read} of {number}", built, _set_read, read, few, judge)
        for number, built in zip(lists, files, strict=True)
        for read in READ
        if 2 * read <= number
    ]
    by_slices = [ours(sliced, few, truth, expand) for expand in (1, 2, 3)]
    entries = [*own, *graphs, *graphs_singly, *files_read, *files_singly, *by_slices]
    title = f"{K} nearest of {len(rows):,} x {BITS} bits, {len(queries):,} queries at once"
    result = run_entries(name, title, entries, len(queries), EFFORT)

    def least(some: Sequence[Entry], cdr: float) -> str | None:
        """Return the quickest that is good enough."""
        good = [one.name for one in some if result.quality[one.name][f"CDR@{K}"] >= cdr]
        return min(good, key=lambda each: result.times()[each].best) if good else None

    batches, singly = own[: len(PROBES)], own[len(PROBES) : 2 * len(PROBES)]
    verdicts: list[Verdict] = []
    for letter, rival, some, mine, cdr, target in (
        ("a", "faiss HNSW", graphs, batches, targets.cdr, targets.graph),
        ("b", "faiss HNSW one by one", graphs_singly, singly, targets.cdr, 1.0),
        *(("c", "faiss IVF", files_read, batches, level, 3.0) for level in LEVELS),
        *(("c", "faiss IVF one by one", files_singly, singly, level, 3.0) for level in LEVELS),
        ("d", "slices", by_slices, batches, targets.cdr, targets.slices),
    ):
        faster, slower = least(mine, cdr), least(some, cdr)
        number = "80" if targets is ALL else "81"
        what = f"{len(rows):,} x {BITS}, CDR@{K} of {cdr:g}"
        gate = f"{number}{letter}. {what}: {rival} / ours"
        if faster is None or slower is None:
            missing = "ours" if faster is None else rival
            verdicts.append(Verdict(gate, "informs", f"{missing} does not reach it", None))
        elif target is not None:
            verdicts.append(ratio_verdict(gate, result.times(), slower, faster, target))
    builds = min(built.seconds for built in files) / groups.seconds
    verdicts.append(at_least(f"{number}h. building: faiss IVF / ours", builds, 10, " x"))
    if targets.build_seconds is not None:
        beside = 100 * (groups.bytes_per_signature / (BITS // 8) - 1)
        verdicts += [
            at_most("80e. building, 2 threads, s", groups.seconds, targets.build_seconds),
            at_least("80f. building: faiss HNSW / ours", graph.seconds / groups.seconds, 10, " x"),
            at_most("80g. memory beside the signatures", beside, 10, "%"),
        ]
    return replace(result, verdicts=verdicts)


def _near(collection: Collection, name: str) -> QualityResult:
    """Search for near-duplicates at the default, with queries that have some.

    Every second of them: with the others, the default was chosen.
    """
    scan = la.ScanIndex(collection.signatures)
    held_out = collection.near_queries
    queries = held_out[scan.search(held_out, 1).distances[:, 0] <= NEAR][1::2]
    truth = scan.search(queries, K)
    groups = build_clusters(collection.signatures, 2)

    def found(answer: Nearest) -> Quality:
        part = la.results.Neighbors(answer.ids, answer.distances.astype(np.int32), False)
        return {"near found": near_duplicate_recall(part, truth, NEAR) or 0.0}

    usual = _asked(groups, queries, None, found)
    title = f"{len(scan):,} x {BITS} bits, {len(queries):,} queries with near-duplicates"
    result = run_entries(name, title, [usual], len(queries), EFFORT)
    share = 100 * result.quality[usual.name]["near found"]
    verdict = at_least(f"82.  within {NEAR} bits, usual probe: found", share, 99.9, "%", 2)
    return replace(result, verdicts=[verdict])


def _asked(
    built: Built,
    queries: Signatures,
    probe: int | None,
    judge: Callable[[Nearest], Quality],
    threads: int = 1,
) -> Entry:
    run = partial(_search, built, queries, probe, threads)
    name = "clusters, usual probe" if probe is None else f"clusters, probe {probe}"
    more = "" if threads == 1 else f", {threads} threads"
    return entry(name + more, built, run, len(queries), judge)


def _singly(
    built: Built, queries: Signatures, probe: int, judge: Callable[[Nearest], Quality]
) -> Entry:
    def run() -> Nearest:
        return _together([_search(built, query[None], probe, 1) for query in queries])

    return entry(f"clusters, probe {probe}{SINGLY}", built, run, len(queries), judge)


def _peer_singly(
    name: str,
    built: Built,
    configure: Callable[[Any, int], None],
    value: int,
    queries: Signatures,
    judge: Callable[[Nearest], Quality],
) -> Entry:
    def run() -> Nearest:
        configure(built.index, value)
        return built.search_singly(queries, K)

    return entry(name + SINGLY, built, run, len(queries), judge)


def _set_width(graph: Any, width: int) -> None:
    graph.hnsw.efSearch = width


def _set_read(file: Any, lists: int) -> None:
    file.nprobe = lists


def _search(built: Built, queries: Signatures, probe: int | None, threads: int) -> Nearest:
    found = built.index.search(queries, K, probe=probe, threads=threads)
    return Nearest(found.ids, found.distances)


def _together(answers: Sequence[Nearest]) -> Nearest:
    return Nearest(
        np.concatenate([each.ids for each in answers]),
        np.concatenate([each.distances for each in answers]),
    )
