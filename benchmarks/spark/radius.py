"""Measures SimHash on Spark by its radius: by tables of block choices, and each with each."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tools.loopback_spark import LoopbackSpark

import lookalike as la
from benchmarks.harness import Verdict, WrongAnswerError
from benchmarks.spark.cases import _frame, _warm_up
from benchmarks.spark.cluster_cost import cost_of
from benchmarks.spark.corpora import write_corpus
from lookalike import spark as on_spark
from lookalike.spark import propose
from lookalike.spark.tables import choose_tables

__all__ = ["RADIUS", "RADIUS_SIZES", "run_radius"]

RADIUS = "spark-radius"
RADIUS_SIZES = (30_000, 100_000, 300_000, 1_000_000)
_EACH_WITH_EACH = 100_000
"""Documents up to which all signatures are compared, too."""
_SETTINGS: dict[str, Any] = {"method": "simhash", "bits": 64, "radius": 3, "threshold": 0.9}


@dataclass(frozen=True)
class Run:
    """One job."""

    documents: int
    way: str
    seconds: float
    core_seconds: float
    propose_seconds: float
    pairs: int


def run_radius(data: Path, cache: Path, output: Path, sizes: tuple[int, ...]) -> list[Verdict]:
    """Measure, print and write it; pairs that are not the local job's are an error."""
    runs = []
    with LoopbackSpark(workers=2, memory="2g") as cluster:
        session = cluster.session()
        _warm_up(session)
        _run(session, write_corpus(data, cache, sizes[0]), sizes[0], "tables")  # to warm up
        for size in sizes:
            folder = write_corpus(data, cache, size)
            local = la.dedup(str(folder / "*.parquet"), text="text", **_SETTINGS)
            ways = ("tables", "each with each") if size <= _EACH_WITH_EACH else ("tables",)
            for way in ways:
                runs.append(_run(session, folder, size, way))
                print(runs[-1], flush=True)
                if runs[-1].pairs != local.counts.verified_pairs:
                    raise WrongAnswerError(f"{runs[-1]}: not the pairs of the local job")
    output.mkdir(parents=True, exist_ok=True)
    told = [asdict(run) for run in runs]
    (output / "spark-radius.json").write_text(json.dumps(told, indent=1))
    return _verdicts([run for run in runs if run.way == "tables"])


def _run(session: Any, folder: Path, size: int, way: str) -> Run:
    choose = choose_tables if way == "tables" else _no_tables
    before, start = cost_of(session), time.perf_counter()
    with (
        patch.object(propose, "choose_tables", choose),
        on_spark.dedup(_frame(session, folder), **_SETTINGS) as found,
    ):
        seconds = time.perf_counter() - start
        spent = cost_of(session) - before
        steps, pairs = found.seconds, found.counts.verified_pairs
    return Run(size, way, seconds, spent.core_seconds, steps["propose"], pairs)


def _no_tables(*given: Any, **options: Any) -> None:
    """Choose to compare each signature with each."""


def _verdicts(runs: list[Run]) -> list[Verdict]:
    first, last = runs[0], runs[-1]
    growth = (last.core_seconds / first.core_seconds) / (last.documents / first.documents)
    return [
        Verdict(
            f"s5. Spark: SimHash within 3 bits, core-seconds from {first.documents:,} to "
            f"{last.documents:,} documents over linear",
            "<= 1.2",
            f"{growth:.2f}",
            growth <= 1.2 if last.documents > first.documents else None,
        )
    ]
