"""Kind "vectors": rows are compared by the cosine of the vectors in one of their columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import flag, share, thread_count, whole_number
from lookalike.corpora import Corpus, Problems, open_corpus
from lookalike.corpora.base import pa
from lookalike.corpora.columns import id_column, id_strings
from lookalike.dedup.decide import decide, rule_ranks
from lookalike.dedup.pairs import Floats, Ints, VerifiedPairs
from lookalike.dedup.result import DedupCounts, VectorResult
from lookalike.dedup.settings import DedupSettings
from lookalike.errors import ArgumentError, DocumentError, Said
from lookalike.jobs.context import JobProgress
from lookalike.jobs.documents import comparable, dense_ranks
from lookalike.operation import in_batches
from lookalike.progress import Progress, listener
from lookalike.shown import brief
from lookalike.vectors import VectorIndex
from lookalike.vectors.given import as_vectors, in_single_precision

THRESHOLD, RECALL = 0.95, 0.999
_GUESSES = ("embedding", "embeddings", "vector", "vectors", "emb")
_COSINES_AT_A_TIME = 1 << 16


def run_vector_job(
    source: Any,
    *,
    vectors: str | None,
    threshold: SupportsFloat | None,
    recall: SupportsFloat | None,
    exact: bool,
    id: str | None,
    format: str | None,
    encoding: str | None,
    grouping: str,
    keep: Any,
    max_group: SupportsIndex,
    threads: SupportsIndex | None,
    progress: Progress | bool | None,
) -> VectorResult:
    """Find rows whose vectors have a cosine of `threshold` or more, and choose which are kept.

    Signatures propose pairs, the true cosine decides. Rows without a vector, or with a zero vector,
    are kept.
    """
    least = share("threshold", THRESHOLD if threshold is None else threshold)
    chance = share("recall", RECALL if recall is None else recall)
    every, workers = flag("exact", exact), thread_count(threads)
    most = whole_number("max_group", max_group, at_least=2)
    settings = DedupSettings(threshold=least, grouping=grouping, keep=keep, max_group=most)
    if callable(keep) or keep in ("longest", "shortest"):
        raise ArgumentError(
            Said("keep"),
            f" is {keep!r}, which needs texts; expected first, last, none, max:COLUMN or "
            "min:COLUMN for vectors",
        )
    steps = JobProgress(listener(progress))
    corpus = open_corpus(source, format, encoding=encoding)
    identity = corpus.identity()
    with steps.timed("read"):
        given, column = read_embeddings(corpus, vectors, id, settings.keep_column)
        first = _first_equal(given)
    with steps.timed("index"):
        different = np.flatnonzero(first[given.rows] == given.rows)
        index = VectorIndex(given.vectors[different], given.rows[different], threads=workers)
    with steps.timed("pairs"):
        found = index.pairs(least, recall=None if every else chance, threads=workers)
        none = np.full(len(found), -1, np.int32)
        pairs = VerifiedPairs(found.left, found.right, found.similarities, none)
    with steps.timed("group"):
        rank = rule_ranks(settings, given.count, order=given.order)
        decision = decide(pairs, rank, settings, first=first)
        cosines = _cosines(given, decision.duplicate_of, workers)
        decision = replace(decision, similarity=cosines)
    return VectorResult(
        threshold=least,
        recall=1.0 if every else chance,
        column=column,
        id_column=id_column(corpus, id),
        settings=settings,
        dimensions=given.vectors.shape[1] if len(given.rows) else 0,
        keep=decision.duplicate_of < 0,
        group_of=decision.group_of,
        duplicate_of=decision.duplicate_of,
        similarity=cosines,
        pairs=pairs,
        counts=DedupCounts.of(
            decision,
            first,
            threshold=least,
            keep=settings.keep,
            without_features=given.count - len(given.rows),
            verified_pairs=len(pairs),
        ),
        seconds=steps.seconds,
        warnings=list(decision.warnings),
        names=given.ids,
        first_equal=first,
        source=corpus,
        source_identity=identity,
    )


def _first_equal(given: Embeddings) -> Ints:
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


def _cosines(given: Embeddings, duplicate_of: Ints, threads: int) -> Floats:
    """Return the cosine of each dropped row with the kept one."""
    from lookalike.vectors.search import Store

    similarity = np.full(len(duplicate_of), np.nan)
    dropped = np.flatnonzero(duplicate_of >= 0)
    store = Store(given.vectors, given.vectors[:0])
    for start in range(0, len(dropped), _COSINES_AT_A_TIME):
        own = dropped[start : start + _COSINES_AT_A_TIME]
        here, there = (np.searchsorted(given.rows, one) for one in (own, duplicate_of[own]))
        measured = np.empty(len(own), np.float64)
        queries = in_single_precision(given.vectors[here])
        store.native.cosines(queries, np.arange(len(own)), there, threads, measured)
        similarity[own] = measured
    return similarity


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Vectors of rows of a corpus."""

    count: int
    """The number of rows, with a vector or not."""
    rows: Ints
    """The rows that have a vector."""
    vectors: NDArray[Any]
    ids: Sequence[str] | None
    """Of all rows; None where positions are ids."""
    order: Ints | None
    """Of all rows: the rank of the value to keep by; -1 without a value."""


def read_embeddings(
    corpus: Corpus, column: str | None, id: str | None, order: str | None
) -> tuple[Embeddings, str]:
    """Return the vectors of a corpus, and the name of their column."""
    name = corpus.column_for(column, _GUESSES, "vectors")
    if name is None:
        raise ArgumentError(
            f"{corpus.name} has the columns {', '.join(corpus.columns()) or 'none'}; say which one "
            "has the vectors",
            Said(" with vectors=", " with --vectors COLUMN"),
        )
    id_name = id_column(corpus, id)
    if order is not None:
        corpus.column_for(order, (), "choice of kept documents")
    others = [one for one in (id_name, order) if one is not None]
    count, rows, parts = 0, list[Ints](), list[NDArray[Any]]()
    ids, deciding = list[str](), list[Any]()
    for batch in in_batches(corpus.read([name, *others], Problems()), lambda: corpus.done):
        vectors = batch.column(0)
        there = np.flatnonzero(vectors.is_valid().to_numpy(zero_copy_only=False))
        if len(there):
            rows.append(count + there)
            parts.append(_of_batch(vectors.drop_null(), rows[-1], corpus, name, parts))
        if id_name is not None:
            ids += id_strings(batch.column(1), count).to_pylist()
        if order is not None:
            deciding.append(comparable(batch.column(len(others))))
        count += len(batch)
    found = Embeddings(
        count,
        np.concatenate([np.empty(0, np.int64), *rows]),
        np.concatenate(parts) if parts else np.empty((0, 1), np.float32),
        ids if id_name is not None else None,
        dense_ranks(pa.chunked_array(deciding or [pa.nulls(0)])) if order is not None else None,
    )
    return found, name


def _of_batch(
    column: Any, rows: Ints, corpus: Corpus, name: str, before: Sequence[Any]
) -> NDArray[Any]:
    kind = column.type
    width = before[0].shape[1] if before else None
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return written_vectors(column.to_pylist(), rows, width, corpus.place_of)
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if not any(is_kind(kind) for is_kind in lists):
        raise DocumentError(
            f"{corpus.name}: the column {name!r} is of type {kind}; expected lists of numbers, as "
            "Parquet and JSON have them"
        )
    vectors = as_vectors(column, numbers=rows)
    if width is not None and vectors.shape[1] != width:
        raise DocumentError(
            f"vector {rows[0]} has {vectors.shape[1]} dimensions, and the first has {width}; "
            "expected the same for all"
        )
    return vectors


def written_vectors(
    texts: Sequence[str],
    rows: Ints,
    dimensions: int | None,
    place_of: Callable[[int], str],
    *,
    like: str = "the first",
) -> NDArray[np.float32]:
    """Return vectors that are written as lists of numbers, all of one length.

    That is `dimensions`, as `like` has, or that of the first. A `DocumentError` names the first bad
    vector by `place_of` its row.
    """
    found: list[NDArray[np.float32]] = []
    for row, text in zip(rows.tolist(), texts, strict=True):
        try:
            found.append(_vector(text, dimensions, like))
        except _NotAVectorError as error:
            raise DocumentError(f"{place_of(row)}: the vector {error}") from None
        dimensions = len(found[-1])
    return np.stack(found) if found else np.empty((0, dimensions or 0), np.float32)


class _NotAVectorError(Exception):
    """Says why a value is not a vector."""


def _vector(text: str, dimensions: int | None, like: str) -> NDArray[np.float32]:
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    if not isinstance(value, list):
        raise _NotAVectorError(f"is {brief(value)}; expected a list of numbers")
    if not set(map(type, value)) <= {int, float}:
        other = next(one for one in value if type(one) not in (int, float))
        raise _NotAVectorError(f"has the value {brief(other)}; expected only numbers")
    if len(value) != (dimensions or len(value)) or not value:
        expected = f"{dimensions}, as {like} has" if dimensions else "one at least"
        raise _NotAVectorError(f"has {len(value)} dimensions; expected {expected}")
    try:
        wide = np.array(value, np.float64)
    except OverflowError:  # a whole number of hundreds of digits is infinite
        wide = np.array([float(str(one)) for one in value], np.float64)
    bad = np.flatnonzero(~(np.abs(wide) <= np.finfo(np.float32).max))  # NaN is neither
    if len(bad):
        what = f"has the value {wide[bad[0]]:g}; expected numbers that float32 can hold"
        raise _NotAVectorError(what)
    return wide.astype(np.float32)
