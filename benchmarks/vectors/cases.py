"""VectorIndex beside faiss flat and HNSW: recall@10 and time, by bits and by effort."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lookalike as la
from benchmarks.harness import Effort, Verdict, processor_time
from benchmarks.quality import Entry, Quality, QualityResult, at_least, ratio_verdict, run_entries
from benchmarks.vectors.collection import Vectors, phrases, words
from benchmarks.vectors.peers import Peer, flat, graph, graph_file, unit

__all__ = ["CASES", "run_vectors"]

CASES = ("vectors-words", "vectors-graph", "vectors-million")

COUNT, QUERIES, K = 1_000_000, 1000, 10
GRAPH_COUNT = 100_000
"""Phrases that a graph is built of, which takes a minute. Of a million it takes ten, or more: it is
built if `LOOKALIKE_GRAPH` is set, and is there from then on.
"""
FLAT_QUERIES, SINGLY = 200, 20
"""Queries that a flat index gets in a batch, and everybody one by one."""
BITS = (128, 256, 512, 1024)
WIDTHS = (32, 64, 128, 256, 512, 1024)
TARGET = 0.95
EFFORT = Effort(rounds=3, seconds=1.0)


def run_vectors(
    names: Sequence[str], folder: Path | None, cache: Path, *, part: int
) -> Iterator[QualityResult]:
    """Run cases one after the other."""
    for name in names:
        if name == "vectors-words":
            yield _compared(words(folder, QUERIES, part=part), cache, name)
        elif name == "vectors-graph":
            yield _compared(phrases(folder, GRAPH_COUNT // part, QUERIES), cache, name)
        else:
            vectors = phrases(folder, COUNT // part, QUERIES)
            known = graph_file(vectors, cache).exists() or "LOOKALIKE_GRAPH" in os.environ
            yield _compared(vectors, cache if known else None, name, target=5)


@dataclass(frozen=True, eq=False)
class _Ours:
    index: la.VectorIndex
    seconds: float
    bytes_each: float

    def entries(self, queries: NDArray[Any], judge: Any) -> list[Entry]:
        """Return searches with what was tuned: in a batch, and one by one, with both threads."""
        bits, found = self.index.bits, []
        for threads in (1, 2):
            for few in (QUERIES, SINGLY):

                def run(asked: Any = queries[:few], threads: int = threads) -> Any:
                    if len(asked) > SINGLY:
                        return self.index.search(asked, K, recall=TARGET, threads=threads).ids
                    each = [
                        self.index.search(one[None], K, recall=TARGET, threads=threads).ids
                        for one in asked
                    ]
                    return np.concatenate(each)

                name = f"VectorIndex, {bits} bits{_how(few, threads)}"
                found.append(Entry(name, run, few, judge, self.seconds, self.bytes_each))
        return found


def _how(queries: int, threads: int) -> str:
    single = ", one by one" if queries == SINGLY else ""
    return single + (", 2 threads" if threads == 2 else "")


def _build(vectors: Vectors, bits: int) -> _Ours:
    start = perf_counter()
    index = la.VectorIndex(vectors.rows, bits=bits, threads=2)
    seconds = perf_counter() - start
    index.tune(K, TARGET, threads=2)
    return _Ours(index, seconds, index.memory_bytes / len(index))


def _peer(
    peer: Peer, queries: NDArray[np.float32], judge: Any, batch: int, width: int = 0
) -> list[Entry]:
    entries = []
    for threads in (1, 2):
        for few in (batch, SINGLY):

            def run(asked: Any = queries[:few], threads: int = threads) -> Any:
                if len(asked) > SINGLY:
                    return peer.search(asked, K, threads, width)
                return np.concatenate([peer.search(one[None], K, threads, width) for one in asked])

            with_width = f", efSearch {width}" if width else ""
            name = f"{peer.name}{with_width}{_how(few, threads)}"
            entries.append(Entry(name, run, few, judge, peer.seconds))
    return entries


def _compared(
    vectors: Vectors, cache: Path | None, name: str, target: float | None = None
) -> QualityResult:
    """Compare with flat, and, where there is a cache for it, with a graph."""
    ours = [_build(vectors, bits) for bits in BITS]
    truth = ours[0].index.search(vectors.queries, K, exact=True).ids
    judge = _recall(truth)
    asked = unit(vectors.queries)
    own = [entry for each in ours for entry in each.entries(vectors.queries, judge)]
    exact = [
        Entry(
            f"VectorIndex, exact{_how(FLAT_QUERIES, threads)}",
            lambda threads=threads: (
                ours[0]
                .index.search(  # type: ignore[misc]
                    vectors.queries[:FLAT_QUERIES], K, exact=True, threads=threads
                )
                .ids
            ),
            FLAT_QUERIES,
            judge,
        )
        for threads in (1, 2)
    ]
    rivals = _peer(flat(vectors), asked, judge, FLAT_QUERIES)
    if cache is not None:
        links = graph(vectors, cache)
        for width in WIDTHS:
            rivals += _peer(links, asked, judge, QUERIES, width)
    title = (
        f"{K} nearest of {len(vectors.rows):,} x {vectors.rows.shape[1]}, {vectors.origin}; "
        f"tuned for a recall of {TARGET}"
    )
    tuned = [each.index.tunings[-1].chosen for each in ours]
    notes = [
        f"{each.index.bits} bits: {tuning.get('candidates')} candidates of "
        f"{tuning.get('probe')} of {each.index.clusters} groups"
        for each, tuning in zip(ours, tuned, strict=True)
    ]
    result = run_entries(name, title, [*own, *exact, *rivals], QUERIES, EFFORT, notes=notes)
    single = {
        entry.name: {"processor µs": 1e6 * processor_time(entry.run, 2) / entry.queries}
        for entry in (*own, *exact, *rivals)
        if "2 threads" not in entry.name
    }
    quality = {key: {**value, **single.get(key, {})} for key, value in result.quality.items()}
    result = replace(result, quality=quality)
    times = result.times()
    verdicts: list[Verdict] = []
    for threads in (1, 2):
        for few in (QUERIES, SINGLY):
            how = _how(few, threads)
            mine = f"VectorIndex, 512 bits{how}"
            gate = f"90{'abcd'[2 * (threads - 1) + (few == SINGLY)]}. {len(vectors.rows):,}{how}"
            if target is not None:
                verdicts.append(
                    ratio_verdict(
                        f"{gate}: faiss flat / ours",
                        times,
                        f"faiss flat{how}",
                        mine,
                        target,
                    )
                )
    best = result.quality["VectorIndex, 512 bits"]["recall@10"]
    verdicts.append(at_least(f"91. {name}: recall@10, 512 bits", best, TARGET, digits=3))
    return replace(result, verdicts=verdicts)


def _recall(truth: NDArray[np.int64]) -> Callable[[NDArray[np.int64]], Quality]:
    def judge(found: NDArray[np.int64]) -> Quality:
        shares = [
            len({*a} & {*b}) / K for a, b in zip(found.tolist(), truth.tolist(), strict=False)
        ]
        return {"recall@10": float(np.mean(shares))}

    return judge
