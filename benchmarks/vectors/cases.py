"""VectorIndex beside flat indexes, inverted lists and graphs: recall@10 and time of one thread."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

import lookalike as la
from benchmarks.harness import Effort, Verdict, processor_time
from benchmarks.quality import Entry, Quality, QualityResult, at_least, run_entries
from benchmarks.vectors.collection import Vectors, clustered, descriptions, phrases, words
from benchmarks.vectors.peers import (
    Peer,
    bit_graph,
    coded_lists,
    flat,
    graphs,
    inverted_lists,
    unit,
)

__all__ = ["CASES", "run_vectors"]

CASES = (
    "vectors-descriptions",
    "vectors-words",
    "vectors-graph",
    "vectors-million",
    "vectors-clusters",
    "vectors-bits",
    "vectors-bits-million",
    "vectors-recall",
)

COUNT, QUERIES, K = 1_000_000, 1000, 10
GRAPH_COUNT = 100_000
"""Phrases that graphs are built of. Of a million that takes many minutes: they are built if
`LOOKALIKE_GRAPH` is set.
"""
FLAT_QUERIES, SINGLY = 50, 200
"""Queries that a flat index gets in a batch, and everybody one by one."""
TARGETS = (0.9, 0.95, 0.98, 0.99)
SEEDS, HELD_OUT = 3, 3000
"""Indexes of the same vectors, and queries that none of them was tuned with."""
BITS, BITS_QUERIES = (256, 512, 1024), 300
EFFORT = Effort(rounds=2, seconds=0.5)
EQUAL = 0.002  # recalls that are no farther apart count as equal
_ALONE = ", one by one"


def run_vectors(
    names: Sequence[str], folder: Path | None, cache: Path, *, part: int
) -> Iterator[QualityResult]:
    """Run cases one after the other."""
    many = "LOOKALIKE_GRAPH" in os.environ
    for name in names:
        if name == "vectors-descriptions":
            yield _compared(descriptions(folder, QUERIES, part=part), name, with_graphs=True)
        elif name == "vectors-words":
            yield _compared(words(folder, QUERIES, part=part), name, with_graphs=True)
        elif name == "vectors-graph":
            yield _compared(phrases(folder, GRAPH_COUNT // part, QUERIES), name, with_graphs=True)
        elif name == "vectors-million":
            yield _compared(phrases(folder, COUNT // part, QUERIES), name, with_graphs=many)
        elif name == "vectors-bits":
            yield _bits_compared(words(folder, QUERIES, part=part), name, with_graph=True)
        elif name == "vectors-recall":
            yield _held_out(folder, name, part)
        elif name == "vectors-bits-million":
            made = phrases(folder, COUNT // part, QUERIES)
            yield _bits_compared(made, name, with_graph=many)
        else:
            yield _compared(clustered(COUNT // part, QUERIES), name, with_graphs=many)


@dataclass(frozen=True, eq=False)
class _Ours:
    index: la.VectorIndex
    seconds: float

    @classmethod
    def build(cls, vectors: Vectors) -> _Ours:
        """Return the index with its sketches, tuned on its own vectors, never on the queries."""
        start = perf_counter()
        index = la.VectorIndex(vectors.rows, threads=2)
        index.search(vectors.rows[:1], 1, threads=2)
        seconds = perf_counter() - start
        for target in TARGETS:
            index.tune(K, target, threads=2)
        return cls(index, seconds)

    def settings(self) -> Iterator[Peer]:
        """Yield searches by recall, the default, and exact."""
        size = self.index.memory_bytes / len(self.index)
        options: dict[str, dict[str, Any]] = {
            **{f"tuned for {target}": {"recall": target} for target in TARGETS},
            "default": {},
            "exact": {"exact": True},
        }
        for name, each in options.items():

            def search(queries: Any, k: int, each: Any = each) -> Any:
                return self.index.search(queries, k, threads=1, **each).ids

            yield Peer(f"VectorIndex, {name}", search, self.seconds, size)


def _entries(
    peer: Peer, queries: NDArray[Any], judge: Callable[[Any], Quality], batch: int
) -> Iterator[Entry]:
    """Yield searches in a batch and one by one."""
    alone = min(SINGLY, batch)

    def one_by_one() -> Any:
        return np.concatenate([peer.search(queries[at : at + 1], K) for at in range(alone)])

    for name, run, few in (
        (peer.name, lambda: peer.search(queries[:batch], K), batch),
        (peer.name + _ALONE, one_by_one, alone),
    ):
        yield Entry(name, run, few, judge, peer.seconds, peer.bytes_each)


def _compared(vectors: Vectors, name: str, *, with_graphs: bool) -> QualityResult:
    faiss.omp_set_num_threads(2)
    ours = _Ours.build(vectors)
    judge = _recall(ours.index.search(vectors.queries, K, exact=True).ids)
    asked = unit(vectors.queries)
    rivals = [*inverted_lists(vectors), *(graphs(vectors) if with_graphs else ())]
    every = flat(vectors)
    faiss.omp_set_num_threads(1)
    queries = vectors.queries.astype(np.float32)
    entries = [
        entry for peer in ours.settings() for entry in _entries(peer, queries, judge, QUERIES)
    ]
    entries += [entry for peer in rivals for entry in _entries(peer, asked, judge, QUERIES)]
    entries += list(_entries(every, asked, judge, FLAT_QUERIES))
    title = (
        f"{K} nearest of {len(vectors.rows):,} x {vectors.rows.shape[1]}, {vectors.origin}; one "
        "thread"
    )
    result = run_entries(name, title, entries, QUERIES, EFFORT, notes=_notes(ours))
    processor = {
        entry.name: 1e6 * processor_time(entry.run, 2) / entry.queries for entry in entries
    }
    quality = {
        key: {**value, "processor µs": processor[key]} for key, value in result.quality.items()
    }
    verdicts = [
        _against_rivals(f"90. {name}", f"VectorIndex, tuned for {target}{alone}", rivals, quality)
        for target in TARGETS
        for alone in ("", _ALONE)
    ]
    verdicts += [
        at_least(
            f"91. {name}: recall tuned for {target}",
            quality[f"VectorIndex, tuned for {target}"]["recall@10"],
            target,
            digits=3,
        )
        for target in TARGETS
    ]
    return replace(result, quality=quality, verdicts=verdicts)


def _held_out(folder: Path | None, name: str, part: int) -> QualityResult:
    """Compare the recall that was asked for with the recall of queries that were held out."""
    sets = [
        descriptions(folder, HELD_OUT, part=part),
        words(folder, HELD_OUT, part=part),
        phrases(folder, GRAPH_COUNT // part, HELD_OUT),
        clustered(GRAPH_COUNT // part, HELD_OUT),
    ]
    entries, wanted = [], {}
    for vectors in sets:
        truth = la.VectorIndex(vectors.rows, threads=2).search(vectors.queries, K, exact=True).ids
        for seed in range(SEEDS):
            index = la.VectorIndex(vectors.rows, seed=seed, threads=2)
            for target in TARGETS:
                index.tune(K, target, threads=2)

                def run(index: Any = index, target: float = target, asked: Any = vectors) -> Any:
                    return index.search(asked.queries, K, recall=target, threads=2).ids

                title = f"{vectors.origin}, seed {seed}, tuned for {target}"
                entries.append(Entry(title, run, HELD_OUT, _recall(truth)))
                wanted[title] = target
    title = f"recall of {HELD_OUT:,} queries that were held out; two threads"
    result = run_entries(name, title, entries, HELD_OUT, Effort(rounds=1, seconds=0.0))
    verdicts = [
        at_least(f"93. {title}", result.quality[title]["recall@10"], target, digits=4)
        for title, target in wanted.items()
    ]
    return replace(result, verdicts=verdicts)


def _bits_compared(vectors: Vectors, name: str, *, with_graph: bool) -> QualityResult:
    """Compare indexes of which vectors are gone, by recall and bytes."""
    faiss.omp_set_num_threads(1)
    asked = unit(vectors.queries)
    truth = la.VectorIndex(vectors.rows, threads=2).search(asked, K, exact=True).ids
    judge = _recall(truth)
    peers: list[Peer] = []
    for bits in BITS:
        start = perf_counter()
        index = la.VectorIndex(vectors.rows, bits=bits, only_bits=True, threads=2)
        seconds = perf_counter() - start

        def search(queries: Any, k: int, index: la.VectorIndex = index) -> Any:
            return index.search(queries, k, threads=1).ids

        size = index.memory_bytes / len(index)
        peers.append(Peer(f"VectorIndex, only {bits} bits", search, seconds, size))
        sign = index.signer.sign
        signatures = sign(vectors.rows.astype(np.float32))
        plain = faiss.IndexBinaryFlat(bits)
        plain.add(signatures)

        def by_bits(queries: Any, k: int, plain: Any = plain, sign: Any = sign) -> Any:
            return plain.search(sign(queries, threads=1), k)[1]

        peers.append(Peer(f"faiss binary flat, {bits} bits", by_bits, None, bits / 8))
        if with_graph and bits == BITS[1]:
            peers += bit_graph(signatures, sign)
    peers += coded_lists(vectors)
    entries = [entry for peer in peers for entry in _entries(peer, asked, judge, BITS_QUERIES)]
    title = (
        f"{K} nearest of {len(vectors.rows):,} x {vectors.rows.shape[1]}, {vectors.origin}; only "
        "codes are stored, one thread"
    )
    result = run_entries(name, title, entries, BITS_QUERIES, EFFORT)
    quality = {
        entry.name: {
            **result.quality[entry.name],
            "processor µs": 1e6 * processor_time(entry.run, 2) / entry.queries,
        }
        for entry in entries
    }
    verdicts = [
        at_least(
            f"92. {name}: recall of {bits} bits, less that of bits with bits",
            quality[f"VectorIndex, only {bits} bits"]["recall@10"]
            - quality[f"faiss binary flat, {bits} bits"]["recall@10"],
            0.05,
            digits=3,
        )
        for bits in BITS
    ]
    return replace(result, quality=quality, verdicts=verdicts)


def _against_rivals(
    title: str, mine: str, rivals: Sequence[Peer], quality: dict[str, dict[str, float]]
) -> Verdict:
    """Judge how many times as long the fastest takes that finds as much, by processor time."""
    alone = _ALONE if mine.endswith(_ALONE) else ""
    # One by one, fewer queries are asked: the recall is that of the batch.
    found = quality[mine.removesuffix(_ALONE)]["recall@10"] - EQUAL
    as_good = [each.name for each in rivals if quality[each.name]["recall@10"] >= found]
    if not as_good:
        return Verdict(f"{title}: {mine}: a rival that finds as much", ">= 1 x", "none does", True)
    best = min(as_good, key=lambda each: quality[each + alone]["processor µs"])
    ratio = quality[best + alone]["processor µs"] / quality[mine]["processor µs"]
    return at_least(f"{title}: {best} / {mine}", ratio, 1, " x", digits=2)


def _notes(ours: _Ours) -> list[str]:
    groups = ours.index.clusters
    return [
        f"tuned for {tuning.target}: {tuning.chosen.get('candidates')} candidates of "
        f"{tuning.chosen.get('probe')} of {groups} groups"
        for tuning in ours.index.tunings
    ]


def _recall(truth: NDArray[np.int64]) -> Callable[[NDArray[np.int64]], Quality]:
    def judge(found: NDArray[np.int64]) -> Quality:
        shares = [
            len({*a} & {*b}) / K for a, b in zip(found.tolist(), truth.tolist(), strict=False)
        ]
        return {"recall@10": float(np.mean(shares))}

    return judge
