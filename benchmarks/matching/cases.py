"""Blocks and flips: which cases there are, and of what size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import faiss

from benchmarks.harness import Result
from benchmarks.matching.attempts import AttemptsResult, attempts, attempts_table
from benchmarks.matching.batch import batch
from benchmarks.matching.exact import within
from benchmarks.matching.online import growth, online
from benchmarks.quality import QualityResult, quality_table

__all__ = ["CASES", "matching_table", "run_matching"]

MILLION = 1_000_000
QUERIES = 100_000

CASES = (
    "blocks-within-64",
    "flips-online-1M",
    "flips-online-10M",
    "flips-online-60M",
    "flips-growth",
    "flips-batch",
    "flips-attempts",
)


def run_matching(names: Sequence[str], folder: Path | None, *, part: int) -> Iterator[Result]:
    """Run cases one after the other, on collections of which only a `part`-th is used."""
    faiss.omp_set_num_threads(1)
    asked = QUERIES // part
    runs: dict[str, Callable[[str], Result]] = {
        "blocks-within-64": partial(within, count=5 * MILLION // part, asked=1000),
        "flips-online-1M": partial(
            online, count=MILLION // part, asked=asked, gates=False, many_tables=True
        ),
        "flips-online-10M": partial(
            online, count=10 * MILLION // part, asked=asked, gates=False, many_tables=True
        ),
        "flips-online-60M": partial(
            online, count=60 * MILLION // part, asked=asked, gates=True, many_tables=False
        ),
        "flips-growth": partial(
            growth, counts=[MILLION // part, 10 * MILLION // part, 60 * MILLION // part],
            asked=asked,
        ),
        "flips-batch": partial(batch, count=10 * MILLION // part, asked=MILLION // part),
        "flips-attempts": partial(attempts, folder=folder),
    }  # fmt: skip
    for name in names:
        yield runs[name](name)


def matching_table(result: Result) -> str:
    """Return what came out of a case as text."""
    if isinstance(result, AttemptsResult):
        return attempts_table(result)
    if isinstance(result, QualityResult):
        return quality_table(result)
    raise TypeError(f"{result.name} has no table")
