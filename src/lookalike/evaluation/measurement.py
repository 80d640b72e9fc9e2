"""Measurement: what one index with one setting did for some queries."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np
from numpy.typing import NDArray

from lookalike.evaluation.measures import (
    cumulative_distance_ratio,
    near_duplicate_recall,
    nearest_hit_rate,
    recall_at_k,
    recall_by_distance,
    top_in_top,
)
from lookalike.evaluation.questions import Answers, Questions
from lookalike.indexes import ClusterIndex, PrefixIndex, SliceIndex
from lookalike.planning.trial import sampling_error
from lookalike.signatures import hamming

__all__ = [
    "Measurement",
    "measure_clusters",
    "measure_prefixes",
    "measure_scan",
    "measure_slices",
    "near_radius",
]

NEAR = 0.1
"""Signatures that differ in at most this share of their bits are near-duplicates here."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One setting: what it costs and how good its answers are, on average over the queries.

    All but times and bytes is the same in every run with the same data and seed.
    """

    count: int
    """Signatures in the collection."""
    slice_bits: int | None
    """The slice width; None for the exhaustive scan, and for orders of permuted bits."""
    expand: int | None
    admit: int | None
    milliseconds: float
    """For one query, asked alone."""
    batch_milliseconds: float
    """For one query, all asked at once."""
    build_seconds: float
    bytes_per_signature: float
    """Signature and lists."""
    cdr: float
    """The cumulative distance ratio of the k nearest."""
    recall: float
    """The share of the true k that was found, by id."""
    recall_by_distance: float
    """The share that was found if any signature as near as the true k-th will do."""
    nearest_hit_rate: float
    """For which share of the queries a nearest signature came first."""
    near_duplicate_recall: float | None
    """The share found of all that differ in at most a tenth of the bits, at most k a query;
    None if the queries have no such neighbours."""
    top_10_in_10: float
    """The share of the first ten found that are true first ten."""
    top_10_in_100: float
    """The share of the first ten found that are among the true first hundred."""
    lists: float
    """Lists read for one query."""
    touched: float
    """The share of the collection that became candidates."""
    cdr_error: float = 0.0
    """How far the CDR of all queries of this sort may be off, 19 times out of 20."""
    recall_error: float = 0.0
    """The same of the recall."""
    rerank: int | None = None
    """How many got their true distance, where that was said; 0: the best by score were taken."""
    orders: int | None = None
    """How many random permutations a `PrefixIndex` has; None for others."""
    clusters: int | None = None
    """How many groups a `ClusterIndex` has; None for others."""
    probe: int | None = None
    """How many of them were read."""
    asked_clusters: int | None = None
    """How many groups were asked for; large ones are split."""


def near_radius(bits: int) -> int:
    """Return how many bits two near-duplicates may differ in: a tenth, rounded down."""
    return int(bits * NEAR)


def measure_scan(questions: Questions, count: int, bits: int) -> Measurement:
    """Return what the exhaustive scan did, which is what everything else is compared with."""
    return _measurement(questions, questions.scan, count, bits)


def measure_slices(
    questions: Questions,
    signatures: NDArray[np.uint8],
    slice_bits: int,
    settings: Iterable[tuple[int, int]],
    reranks: Sequence[int | None] = (None,),
) -> Iterator[Measurement]:
    """Build one index and yield what it does with each (expand, admit), and each rerank."""
    start = time.perf_counter()
    index = SliceIndex(signatures, slice_bits, threads=questions.threads)
    built = time.perf_counter() - start
    # A query that is taken from the collection is looked for, too, and then left out.
    more = 0 if questions.members is None else 1
    for (expand, admit), rerank in product(settings, reranks):
        search = partial(
            index.search,
            expand=expand,
            admit=admit,
            rerank=rerank + more if rerank else rerank,
            threads=questions.threads,
        )
        answers = questions.ask(search)
        if rerank == 0:
            answers = _with_distances(answers, questions, signatures)
        yield replace(
            _measurement(questions, answers, len(index), index.bits),
            slice_bits=slice_bits,
            expand=expand,
            admit=admit,
            rerank=rerank,
            build_seconds=built,
            bytes_per_signature=index.memory_bytes / len(index),
        )


def measure_prefixes(
    questions: Questions, signatures: NDArray[np.uint8], orders: int
) -> Measurement:
    """Build a `PrefixIndex` and return what it does."""
    start = time.perf_counter()
    index = PrefixIndex(signatures, orders, threads=questions.threads)
    built = time.perf_counter() - start
    search = partial(index.search, threads=questions.threads)
    return replace(
        _measurement(questions, questions.ask(search), len(index), index.bits),
        orders=orders,
        build_seconds=built,
        bytes_per_signature=index.memory_bytes / len(index),
    )


def measure_clusters(
    questions: Questions, signatures: NDArray[np.uint8], clusters: int, probes: Iterable[int | None]
) -> Iterator[Measurement]:
    """Build a `ClusterIndex` and yield what it does with each number of groups that are read.

    Ends behind the first that reads all of them.
    """
    start = time.perf_counter()
    index = ClusterIndex(signatures, clusters, threads=questions.threads)
    built = time.perf_counter() - start
    for number in probes:
        probe = index.stats()["probe"] if number is None else number
        search = partial(index.search, probe=probe, threads=questions.threads)
        yield replace(
            _measurement(questions, questions.ask(search), len(index), index.bits),
            clusters=index.clusters,
            probe=min(probe, index.clusters),
            asked_clusters=clusters,
            build_seconds=built,
            bytes_per_signature=index.memory_bytes / len(index),
        )
        if number is not None and number >= index.clusters:
            return


def _with_distances(
    answers: Answers, questions: Questions, signatures: NDArray[np.uint8]
) -> Answers:
    """Return what was found by score alone with its true distances, which nobody waited for."""
    ids = answers.neighbors.ids
    distances = np.stack(
        [
            hamming(query, signatures[own], threads=1)
            for query, own in zip(questions.queries, ids, strict=True)
        ]
    )
    known = np.where(ids >= 0, distances, -1).astype(np.int32)
    return replace(answers, neighbors=replace(answers.neighbors, distances=known))


def _measurement(questions: Questions, answers: Answers, count: int, bits: int) -> Measurement:
    """Return what was measured, as that of the scan, which has no lists."""
    found, truth, k = answers.neighbors, questions.truth, questions.k
    true_ids, true_distances = truth.ids[:, :k], truth.distances[:, :k]
    work = found.explanation
    cdr = cumulative_distance_ratio(found.distances, true_distances)
    recall = recall_at_k(found.ids, true_ids)
    return Measurement(
        count=count,
        slice_bits=None,
        expand=None,
        admit=None,
        milliseconds=1e3 * answers.seconds,
        batch_milliseconds=1e3 * answers.batch_seconds,
        build_seconds=0.0,
        bytes_per_signature=bits / 8,
        cdr=float(cdr.mean()),
        recall=float(recall.mean()),
        recall_by_distance=float(recall_by_distance(found.distances, true_distances).mean()),
        nearest_hit_rate=nearest_hit_rate(found.distances, true_distances),
        near_duplicate_recall=near_duplicate_recall(found, truth, near_radius(bits)),
        top_10_in_10=float(top_in_top(found.ids, truth.ids, min(k, 10), 10).mean()),
        top_10_in_100=float(top_in_top(found.ids, truth.ids, min(k, 10), 100).mean()),
        lists=float(work.lists.mean()) if work else 0.0,
        touched=float(work.candidates.mean() / count) if work else 1.0,
        cdr_error=sampling_error(cdr) if work else 0.0,
        recall_error=sampling_error(recall) if work else 0.0,
    )
