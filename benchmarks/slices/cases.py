"""Slice lists beside faiss's binary indexes: which cases there are, and of what size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import faiss

from benchmarks.quality import QualityResult
from benchmarks.slices.costs import build, growth
from benchmarks.slices.narrow import pairs, within
from benchmarks.slices.prefixes import near_by_prefixes
from benchmarks.slices.wide import WideCases

__all__ = ["CASES", "run_slices"]

COUNT = 1_000_000
GRAPH_COUNT = 100_000
WITHIN_COUNT = 5_000_000
PAIRS_COUNT = 2_000_000
PAIRS_QUERIES = 20_000
QUERIES = 1000
NEAR_QUERIES = 4000
"""Near-duplicates held out; those that turn out to have a neighbor near enough are asked."""

CASES = (
    "slices-search-1024",
    "slices-near-1024",
    "slices-growth-1024",
    "slices-graph-1024",
    "slices-build-1024",
    "slices-within-64",
    "slices-pairs-64",
    "prefix-near-1024",
)


def run_slices(
    names: Sequence[str], folder: Path | None, cache: Path, *, part: int
) -> Iterator[QualityResult]:
    """Run cases one after the other, on collections of which only a `part`-th is used.

    Everything of faiss has one thread from here on.
    """
    faiss.omp_set_num_threads(1)
    wide = WideCases(
        folder, cache, COUNT // part, GRAPH_COUNT // part, QUERIES, NEAR_QUERIES // part, part=part
    )
    runs: dict[str, Callable[[str], QualityResult]] = {
        "slices-search-1024": wide.search,
        "slices-near-1024": wide.near,
        "slices-growth-1024": partial(growth, cases=wide),
        "slices-graph-1024": wide.search_graph,
        "slices-build-1024": partial(build, cases=wide),
        "slices-within-64": partial(within, count=WITHIN_COUNT // part, asked=QUERIES),
        "prefix-near-1024": partial(near_by_prefixes, cases=wide),
        "slices-pairs-64": partial(pairs, count=PAIRS_COUNT // part, asked=PAIRS_QUERIES // part),
    }
    for name in names:
        yield runs[name](name)
