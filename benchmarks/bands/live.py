"""Inserting and searching a million MinHash rows, beside datasketch, with one thread.

Rows are random values, 128 each. A query is one of them of which every value was kept with a chance
that is its similarity: drawn evenly from the threshold up, and for the last figure exactly at it.
That is what MinHash gives for documents of that similarity, so it is known who should be found.
Rows are made before the clock starts, for datasketch as its own objects. Python's collector of
cycles is switched off for both: with millions of sets it takes datasketch twice as long.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from importlib import import_module
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lookalike as la
from benchmarks.harness import Measurement, Result, Verdict
from lookalike.compat.datasketch import MinHash as StandIn
from lookalike.compat.datasketch import MinHashLSH as StandInLSH

__all__ = ["CASES", "run_bands"]

CASES = ("bands-live", "bands-live-0.5")

COUNT, PERMUTATIONS, BATCH, QUERIES = 1_000_000, 128, 10_000, 20_000


def run_bands(names: Sequence[str], *, part: int) -> Iterator[Result]:
    """Run cases one after the other, of which only a `part`-th is used."""
    for name in names:
        threshold = float(name.rpartition("-")[2]) if name[-1].isdigit() else 0.8
        yield _Case(name, threshold, COUNT // part).run()


class _Case:
    def __init__(self, name: str, threshold: float, count: int) -> None:
        self.name, self.threshold, self.count = name, threshold, count
        random = np.random.default_rng(7)
        self.rows: NDArray[np.uint32] = random.integers(
            0, 2**32 - 1, (count, PERMUTATIONS), dtype=np.uint32
        )
        self.sources = random.integers(0, count, QUERIES)
        similar = random.uniform(threshold, 1, (QUERIES, 1))
        self.queries = self._changed(random, similar)
        self.at_threshold = self._changed(random, np.full((QUERIES, 1), threshold))
        self.times: dict[str, list[float]] = {}

    def _changed(
        self, random: np.random.Generator, similar: NDArray[np.float64]
    ) -> NDArray[np.uint32]:
        queries: NDArray[np.uint32] = self.rows[self.sources]
        changed = random.random(queries.shape) >= similar
        queries[changed] = random.integers(0, 2**32 - 1, int(changed.sum()), dtype=np.uint32)
        return queries

    def run(self) -> Result:
        gc.disable()
        try:
            index, facts = self._ours()
            single = self._ours_one_by_one(index)
            del index
            recalls = {"datasketch": self._peer()}
            recalls["stand-in"] = self._stand_in()
        finally:
            gc.enable()
        measured = [_measurement(name, times) for name, times in self.times.items()]
        best = {each.name: each.best for each in measured}
        ours = f"threshold {self.threshold}, 1 thread"
        ratios = {
            what: best[f"datasketch, {what}"] / best[f"lookalike, {what}"]
            for what in ("insert", "search")
        }
        verdicts = [
            _at_most(f"insert a row, {ours}", best["lookalike, insert"], 1e-6),
            _at_most(f"search once, {ours}", best["lookalike, search"], 5e-6),
            *(
                Verdict(
                    f"{what}, {ours}: datasketch / ours", ">= 10 x", f"{ratio:.1f} x", ratio >= 10
                )
                for what, ratio in ratios.items()
            ),
            *(
                Verdict(f"recall, {which}, {ours}", ">= 0.99", f"{recall:.4f}", recall >= 0.99)
                for which, recall in facts["recall"].items()
            ),
        ]
        title = (
            f"{self.count:,} rows of {PERMUTATIONS} values at {self.threshold}, time of one row; "
            f"{facts['bytes']:.0f} bytes a row beside the keys; single calls: "
            f"{1e6 * single[0]:.1f} µs to insert, {1e6 * single[1]:.1f} to search; "
            + ", ".join(f"recall of {name} {recall:.3f}" for name, recall in recalls.items())
        )
        return Result(self.name, title, measured, verdicts)

    def _time(self, name: str, seconds: float) -> None:
        self.times.setdefault(name, []).append(seconds)

    def _ours(self) -> tuple[la.BandIndex, dict[str, Any]]:
        """Insert everything, twice: memory that the process had before is quicker to get."""
        for _ in range(2):
            index = la.BandIndex(self.threshold, PERMUTATIONS)
            start = perf_counter()
            for begin in range(0, self.count, BATCH):
                keys = range(begin, begin + BATCH)
                index.insert_many(keys, self.rows[begin : begin + BATCH], threads=1)
            self._time("lookalike, insert", (perf_counter() - start) / self.count)
        for _ in range(5):
            start = perf_counter()
            found = index.query_many(self.queries, threads=1)
            keys_found = found.keys
            self._time("lookalike, search", (perf_counter() - start) / QUERIES)
        above = self._recall(found.offsets, np.array(keys_found))
        exactly = index.query_many(self.at_threshold, threads=1)
        recalls = {
            "similarities from the threshold up": above,
            "all at the threshold": self._recall(exactly.offsets, np.array(exactly.keys)),
        }
        return index, {"recall": recalls, "bytes": index.memory_bytes / self.count}

    def _recall(self, offsets: NDArray[np.int64], keys: NDArray[np.int64]) -> float:
        wanted = np.repeat(self.sources, np.diff(offsets))
        return float((keys == wanted).sum()) / QUERIES

    def _ours_one_by_one(self, index: la.BandIndex) -> tuple[float, float]:
        some = 5000
        start = perf_counter()
        for number in range(some):
            index.insert(("new", number), self.queries[number])
        inserted = (perf_counter() - start) / some
        start = perf_counter()
        for number in range(some):
            index.query(self.queries[number])
        return inserted, (perf_counter() - start) / some

    def _stand_in(self) -> float:
        return self._lsh("stand-in for datasketch", StandInLSH, StandIn)

    def _peer(self) -> float:
        peer = import_module("datasketch")
        return self._lsh("datasketch", peer.MinHashLSH, peer.MinHash)

    def _lsh(self, name: str, kind: Any, minhash: Any) -> float:
        """Insert everything one by one, as it is called; return the recall."""
        lsh = kind(threshold=self.threshold, num_perm=PERMUTATIONS)
        some = minhash(PERMUTATIONS, scheme="legacy")
        shared = {"permutations": some.permutations, "scheme": "legacy", "seed": 1}

        def objects(rows: NDArray[np.uint32]) -> list[Any]:
            return [minhash(hashvalues=row.astype(np.uint64), **shared) for row in rows]

        spent = 0.0
        for begin in range(0, self.count, BATCH):
            batch = objects(self.rows[begin : begin + BATCH])
            start = perf_counter()
            for number, one in enumerate(batch, begin):
                lsh.insert(number, one)
            spent += perf_counter() - start
        self._time(f"{name}, insert", spent / self.count)
        asked = objects(self.queries)
        for _ in range(2):
            start = perf_counter()
            found = [lsh.query(one) for one in asked]
            self._time(f"{name}, search", (perf_counter() - start) / QUERIES)
        hits = sum(
            source in keys for source, keys in zip(self.sources.tolist(), found, strict=True)
        )
        return hits / QUERIES


def _at_most(title: str, seconds: float, target: float) -> Verdict:
    measured, wanted = f"{1e6 * seconds:.2f} µs", f"<= {1e6 * target:g} µs"
    return Verdict(title, wanted, measured, seconds <= target)


def _measurement(name: str, times: Sequence[float]) -> Measurement:
    ordered = sorted(times)
    median = ordered[len(ordered) // 2]
    return Measurement(name, ordered[0], median, len(times), times, 1.0, is_rival=True)
