"""Measures the job on Spark: core-seconds and bytes a document, growth, and MLlib's join."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tools.loopback_spark import LoopbackSpark

import lookalike as la
from benchmarks.harness import Verdict, WrongAnswerError
from benchmarks.spark.cluster_cost import Cost, cost_of
from benchmarks.spark.corpora import write_corpus
from benchmarks.spark.mllib import mllib_pairs
from lookalike import spark as on_spark
from lookalike.dedup.settings import DedupSettings
from lookalike.indexes.bands import choose_bands

__all__ = ["LARGE", "LARGE_SIZES", "NAME", "run_spark"]

NAME = "spark"
SIZES = (100_000, 300_000, 1_000_000, 3_000_000)
LARGE = "spark-large"
LARGE_SIZES = (3_000_000, 10_000_000, 30_000_000)
LOCAL_MEMORY = 8 << 30
MLLIB_SIZE, MLLIB_SECONDS = 100_000, 900.0
MLLIB_PARTITIONS = (4, 8, 16)
"""Of its shuffles, one after the other: what is compared is the best of them."""
THRESHOLD = 0.8

_PARTITIONS = "spark.sql.shuffle.partitions"


@dataclass(frozen=True)
class Run:
    """One job."""

    documents: int
    seconds: float
    core_seconds: float
    local_seconds: float
    local_core_seconds: float
    shuffled: int
    steps: dict[str, float]

    @property
    def bytes_an_entry(self) -> float:
        """All that is shuffled, over the bands of all documents."""
        bands = choose_bands(DedupSettings().permutations, THRESHOLD).bands
        return self.shuffled / (self.documents * bands)


def run_spark(
    data: Path, cache: Path, output: Path, *, sizes: tuple[int, ...], mllib_size: int, name: str
) -> list[Verdict]:
    """Measure, print and write it; an answer that is not the local one's is an error.

    MLlib is compared unless `mllib_size` is 0.
    """
    with LoopbackSpark(workers=2, memory="2g") as cluster:
        session = cluster.session()
        _warm_up(session)
        first = min(SIZES[-1], sizes[-1]) // 4
        _run(session, write_corpus(data, cache, first), first, cache)
        runs = []
        for size in sizes:
            runs.append(_run(session, write_corpus(data, cache, size), size, cache))
            _tell(runs[-1])
        told: dict[str, Any] = {"runs": [asdict(run) for run in runs]}
        verdicts = _verdicts(runs)
        if mllib_size:
            told["mllib"] = _beside_mllib(session, write_corpus(data, cache, mllib_size))
            verdicts += _verdicts_of_mllib(told["mllib"])
    output.mkdir(parents=True, exist_ok=True)
    (output / f"{name}.json").write_text(json.dumps(told, indent=1))
    return verdicts


def _warm_up(session: Any) -> None:
    """Let every worker start its Python."""
    texts = [(at, f"one two three four five six seven {at} {at} {at}") for at in range(2000)]
    frame = session.createDataFrame(texts, "id long, text string")
    with on_spark.dedup(frame) as found:
        found.kept.count()


def _frame(session: Any, folder: Path) -> Any:
    return session.read.parquet(str(folder / "*.parquet"))


def _run(session: Any, folder: Path, size: int, cache: Path) -> Run:
    began, start = os.times(), time.perf_counter()
    local = la.dedup(str(folder / "*.parquet"), text="text", threads=2, memory_limit=LOCAL_MEMORY)
    ended, local_seconds = os.times(), time.perf_counter() - start
    spent = ended.user + ended.system - began.user - began.system
    before, start = cost_of(session), time.perf_counter()
    work = (cache / "spark-work").as_uri()
    with on_spark.dedup(_frame(session, folder), work=work) as found:
        seconds = time.perf_counter() - start  # as the local job's, without writing
        cost: Cost = cost_of(session) - before
        kept = found.kept.count()
        if (kept, found.counts.verified_pairs) != (
            local.counts.kept,
            local.counts.verified_pairs,
        ):
            raise WrongAnswerError(f"of {size:,} documents, Spark keeps {kept:,}, not what we do")
    return Run(size, seconds, cost.core_seconds, local_seconds, spent, cost.shuffled, found.seconds)


def _tell(run: Run) -> None:
    print(
        f"{run.documents:>9,} documents: {run.seconds:7.1f} s, {run.core_seconds:7.1f} core-seconds"
        f" (local {run.local_seconds:.1f} s, {run.local_core_seconds:.1f}), "
        f"{run.bytes_an_entry:.1f} bytes shuffled a band entry; "
        + ", ".join(f"{step} {seconds:.1f}" for step, seconds in run.steps.items()),
        flush=True,
    )


def _beside_mllib(session: Any, folder: Path) -> dict[str, Any]:
    """Return seconds, precision and recall of ours and theirs, against every true pair."""
    exact = la.dedup(str(folder / "*.parquet"), text="text", threshold=THRESHOLD, exact=True)
    different = set(np.unique(exact.first_equal).tolist())
    both = exact.different_pairs
    true = set(zip(both.left.tolist(), both.right.tolist(), strict=True))

    def of_different(found: set[tuple[int, int]]) -> set[tuple[int, int]]:
        """Return the pairs of which neither is a copy: whose copies are told of is a matter of
        taste.
        """
        return {pair for pair in found if different.issuperset(pair)}

    frame = _frame(session, folder)
    ours, theirs = [], []
    usual = session.conf.get(_PARTITIONS)
    for partitions in MLLIB_PARTITIONS:  # in turn: Java compiles what runs again and again
        start = time.perf_counter()
        pairs = on_spark.dedup(frame, threshold=THRESHOLD, id="id").pairs.collect()
        ours.append(time.perf_counter() - start)
        session.conf.set(_PARTITIONS, partitions)
        start = time.perf_counter()
        theirs_found = mllib_pairs(frame, THRESHOLD, MLLIB_SECONDS)
        theirs.append(time.perf_counter() - start)
        session.conf.set(_PARTITIONS, usual)
    found = of_different({(int(row.left), int(row.right)) for row in pairs})
    told: dict[str, Any] = {"documents": frame.count(), "every_ours": ours, "every_theirs": theirs}
    told |= {"ours": min(ours), "theirs": min(theirs)}
    told["precision"] = len(found & true) / max(1, len(found))
    told["recall"] = len(found & true) / max(1, len(true))
    if theirs_found is not None:
        theirs_found = of_different(theirs_found)
        told["their_precision"] = len(theirs_found & true) / max(1, len(theirs_found))
        told["their_recall"] = len(theirs_found & true) / max(1, len(true))
    else:
        told["ended"] = False
    print(told, flush=True)
    return told


def _verdicts(runs: list[Run]) -> list[Verdict]:
    # Beyond start-up: among sizes of which more than one task does the work.
    first, last = runs[min(1, len(runs) - 1)], runs[-1]
    more = max(1, last.documents - first.documents) / 1e6
    ours = (last.core_seconds - first.core_seconds) / more
    local = (last.local_core_seconds - first.local_core_seconds) / more
    shuffled = max(run.bytes_an_entry for run in runs)
    middle = next((run for run in runs if run.documents >= 100_000), first)
    growth = (last.seconds / middle.seconds) / (last.documents / middle.documents)
    return [
        Verdict(
            "s1. Spark: bytes shuffled a band entry", "<= 40", f"{shuffled:.1f}", shuffled <= 40
        ),
        Verdict(
            "s2. Spark: core-seconds a million abstracts, beyond start-up, over the local job's",
            "<= 3",
            f"{ours / max(local, 1e-9):.2f} ({ours:.0f} and {local:.0f})",
            ours <= 3 * local,
        ),
        Verdict(
            f"s3. Spark: growth from {middle.documents:,} to {last.documents:,} over linear",
            "<= 1.2",
            f"{growth:.2f}",
            growth <= 1.2 if last.documents > middle.documents else None,
        ),
    ]


def _verdicts_of_mllib(told: dict[str, Any]) -> list[Verdict]:
    times = told["theirs"] / told["ours"]
    ended = "" if told.get("ended", True) else "more than "
    good = told["precision"] == 1 and told["recall"] >= 0.99
    return [
        Verdict(
            f"s4. Spark: beside MLlib's approxSimilarityJoin, {told['documents']:,} abstracts",
            ">= 10 times faster, precision 1, recall >= 0.99",
            f"{ended}{times:.1f} times, precision {told['precision']:.4f}, recall "
            f"{told['recall']:.4f}",
            times >= 10 and good,
        )
    ]
