"""How indexes are asked in the cases of slice lists: with one thread, and what is judged."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.answers import Matched, Nearest, difference
from benchmarks.harness import Effort, WrongAnswerError
from benchmarks.quality import Entry, Quality, nearest_quality
from benchmarks.slices.peers import Built

__all__ = [
    "EFFORT",
    "EXPAND",
    "FEW",
    "FEWER",
    "FLAT",
    "K",
    "entry",
    "equal_to",
    "exact",
    "hnsw",
    "ivf",
    "ours",
    "ours_singly",
    "ours_within",
    "theirs",
]

Signatures = NDArray[np.uint8]
Distances = NDArray[np.int32]

K = 10
FEW, FEWER = 200, 50
"""How many queries slow contenders get, and slow ones that are asked with one after the other."""
EFFORT = Effort(rounds=5, seconds=3.0)

EXPAND = [f"slices, expand {expand}" for expand in range(4)]
FLAT = "faiss Flat"


def ours(
    built: Built, queries: Signatures, truth: Distances, expand: int, name: str | None = None
) -> Entry:
    """Ask our index, with all queries at once."""
    run = partial(_search, built, queries, expand)
    return entry(name or EXPAND[expand], built, run, len(queries), nearest_quality(truth))


def ours_singly(built: Built, queries: Signatures, truth: Distances, expand: int) -> Entry:
    """Ask our index with one query after the other."""

    def run() -> Nearest:
        answers = [_search(built, queries[i], expand) for i in range(len(queries))]
        return Nearest(
            np.concatenate([each.ids for each in answers]),
            np.concatenate([each.distances for each in answers]),
        )

    name = f"{EXPAND[expand]}, one by one"
    return entry(name, built, run, len(queries), nearest_quality(truth))


def ours_within(built: Built, queries: Signatures, radius: int) -> Matched:
    """Ask our index for all within a radius."""
    found = built.index.within(queries, radius, threads=1)
    return Matched(found.offsets, found.ids, found.distances)


def theirs(
    name: str,
    built: Built,
    queries: Signatures,
    truth: Distances,
    settings: Callable[[Any], None] | None = None,
) -> Entry:
    """Ask an index of faiss, with all queries at once."""
    run = partial(built.search, queries, K, settings)
    return entry(name, built, run, len(queries), nearest_quality(truth))


def ivf(built: Built, queries: Signatures, truth: Distances, probes: int) -> Entry:
    """Ask an inverted file; more lists read are slower and better."""

    def settings(index: Any) -> None:
        index.nprobe = probes

    return theirs(f"faiss IVF, nprobe {probes}", built, queries, truth, settings)


def hnsw(built: Built, queries: Signatures, truth: Distances, width: int) -> Entry:
    """Ask a graph; more candidates kept are slower and better."""

    def settings(index: Any) -> None:
        index.hnsw.efSearch = width

    return theirs(f"faiss HNSW, efSearch {width}", built, queries, truth, settings)


def exact(
    name: str,
    built: Built,
    search: Callable[[Signatures, int], Nearest],
    queries: Signatures,
    truth: Distances,
) -> Entry:
    """Ask an index that has to find the truth."""
    measured, expected = nearest_quality(truth), equal_to(Nearest(truth, truth))

    def judge(answer: Nearest) -> Quality:
        expected(answer)
        return measured(answer)

    return entry(name, built, partial(search, queries, K), len(queries), judge)


def equal_to(expected: object) -> Callable[[Any], Quality]:
    """Return what raises `WrongAnswerError` unless an answer is as expected."""

    def judge(answer: object) -> Quality:
        problem = difference(expected, answer)
        if problem:
            raise WrongAnswerError(problem)
        return {}

    return judge


def _search(built: Built, queries: Signatures, expand: int) -> Nearest:
    found = built.index.search(queries, K, expand=expand, threads=1)
    return Nearest(found.ids, found.distances)


def entry(
    name: str,
    built: Built,
    run: Callable[[], Any],
    queries: int,
    judge: Callable[[Any], Quality],
) -> Entry:
    """Return a contender that asks an index."""
    return Entry(name, run, queries, judge, built.seconds, built.bytes_per_signature)
