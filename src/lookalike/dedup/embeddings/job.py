"""Rows whose vectors point the same way: who belongs together, and who stays."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import callback, flag, share, thread_count, whole_number
from lookalike.corpora import open_corpus
from lookalike.dedup.decide import decide, rule_ranks
from lookalike.dedup.embeddings.read import Embeddings, read_embeddings
from lookalike.dedup.embeddings.result import VectorDedupCounts, VectorDedupResult
from lookalike.dedup.pairs import VerifiedPairs
from lookalike.dedup.settings import DedupSettings
from lookalike.errors import ArgumentError, Said
from lookalike.vectors import VectorIndex
from lookalike.vectors.given import in_single_precision

__all__ = ["STEPS", "THRESHOLD", "dedup_vectors"]

STEPS = ("read", "index", "pairs", "cluster")
THRESHOLD, RECALL = 0.95, 0.999
_MOST_EQUAL = 1 << 16


def dedup_vectors(
    source: Any,
    column: str | None = None,
    *,
    threshold: SupportsFloat = THRESHOLD,
    recall: SupportsFloat = RECALL,
    exact: bool = False,
    id: str | None = None,
    format: str | None = None,
    cluster: str = "star",
    keep: str = "first",
    max_cluster: SupportsIndex = 1000,
    threads: SupportsIndex | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> VectorDedupResult:
    """Find rows whose vectors have a cosine of `threshold` or more, and choose who stays.

    `source`: Parquet files, or whatever `la.dedup` reads whose `column` has lists of numbers, such
    as an Arrow table; all have the same length. Signatures propose pairs, the true cosine decides:
    a pair at the threshold is found with a chance of `recall` at least, and with `exact=True` every
    pair is, by comparing each with each. Rows without a vector, or with a zero vector, stay.

    `cluster` and `max_cluster` are those of `la.dedup`; `keep` is "first", "last", "none",
    "max:COLUMN" or "min:COLUMN". With "star" every row that goes has a cosine of the threshold or
    more with the one that stands for it, which stays. The same input gives the same survivors, for
    any number of threads.
    """
    least, chance = share("threshold", threshold), share("recall", recall)
    every, workers = flag("exact", exact), thread_count(threads)
    most = whole_number("max_cluster", max_cluster, at_least=2)
    settings = DedupSettings(threshold=least, cluster=cluster, keep=keep, max_cluster=most)
    _check_keep(settings)
    clock = _Clock(callback("progress", progress))
    corpus = open_corpus(source, format)
    identity = corpus.identity()
    with clock.step("read"):
        given, name = read_embeddings(corpus, column, id, settings.keep_column)
        first = _first_equal(given)
    with clock.step("index"):
        different = np.flatnonzero(first[given.rows] == given.rows)
        index = VectorIndex(given.vectors[different], given.rows[different], threads=workers)
    with clock.step("pairs"):
        found = index.pairs(least, recall=None if every else chance, threads=workers)
        none = np.full(len(found), -1, np.int32)
        pairs = VerifiedPairs(found.left, found.right, found.similarities, none)
    with clock.step("cluster"):
        rank = rule_ranks(settings, given.count, order=given.order)
        decision = decide(pairs, rank, settings, first=first)
        duplicate_of = decision.duplicate_of
        similarity = _cosines(given, duplicate_of, workers)
    dropped = duplicate_of >= 0
    sizes = np.bincount(decision.clusters, minlength=1)
    named = np.where(dropped, duplicate_of, 0)
    below = dropped & (first != first[named]) & (similarity < least)
    exact_duplicates = int((first != np.arange(given.count)).sum())
    if settings.keep == "none":  # the first of equal vectors is dropped, too
        exact_duplicates = int((np.bincount(first, minlength=given.count)[first] > 1).sum())
    counts = VectorDedupCounts(
        documents=given.count,
        dimensions=given.vectors.shape[1] if len(given.rows) else 0,
        kept=int((~dropped).sum()),
        exact_duplicates=exact_duplicates,
        near_duplicates=int(dropped.sum()) - exact_duplicates,
        below_threshold=int(below.sum()),
        lowest_similarity=float(similarity[dropped].min()) if dropped.any() else None,
        clusters=int((sizes > 1).sum()),
        largest_cluster=int(sizes.max()) if (sizes > 1).any() else 0,
        without_vector=given.count - len(given.rows),
        verified_pairs=len(pairs),
    )
    return VectorDedupResult(
        threshold=least,
        recall=1.0 if every else chance,
        column=name,
        keep=~dropped,
        clusters=decision.clusters,
        duplicate_of=duplicate_of,
        similarity=similarity,
        pairs=pairs,
        counts=counts,
        seconds=clock.seconds,
        warnings=list(decision.warnings),
        ids=given.ids,
        first_equal=first,
        source=corpus,
        source_identity=identity,
    )


def _check_keep(settings: DedupSettings) -> None:
    if callable(settings.keep) or settings.keep in ("longest", "shortest"):
        raise ArgumentError(
            Said("keep"),
            f" is {settings.keep!r}, which goes by texts; of vectors expected first, last, none, "
            "max:COLUMN or min:COLUMN",
        )


def _first_equal(given: Embeddings) -> NDArray[np.int64]:
    """Return for each row the first with the same vector, number by number; zeros are alone."""
    first = np.arange(given.count)
    rows = np.ascontiguousarray(given.vectors + 0)  # so that there is no -0
    if not len(rows):
        return first
    keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).reshape(-1)
    _, places, which = np.unique(keys, return_index=True, return_inverse=True)
    there = rows.any(axis=1)
    first[given.rows[there]] = given.rows[places[which.reshape(-1)]][there]
    return first


def _cosines(
    given: Embeddings, duplicate_of: NDArray[np.int64], threads: int
) -> NDArray[np.float64]:
    """Return the cosine of each row that goes with the one that stands for it."""
    from lookalike.vectors.store import Store

    similarity = np.full(len(duplicate_of), np.nan)
    dropped = np.flatnonzero(duplicate_of >= 0)
    store = Store(given.vectors, given.vectors[:0])
    for start in range(0, len(dropped), _MOST_EQUAL):
        own = dropped[start : start + _MOST_EQUAL]
        here, there = (np.searchsorted(given.rows, one) for one in (own, duplicate_of[own]))
        measured = np.empty(len(own), np.float64)
        queries = in_single_precision(given.vectors[here])
        store.native.cosines(queries, np.arange(len(own)), there, threads, measured)
        similarity[own] = measured
    return similarity


class _Clock:
    def __init__(self, tell: Callable[[str, float], None] | None) -> None:
        self.seconds: dict[str, float] = {}
        self._tell = tell

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time a step, and say that it begins and ends."""
        if self._tell is not None:
            self._tell(name, 0.0)
        start = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - start
        if self._tell is not None:
            self._tell(name, 1.0)
