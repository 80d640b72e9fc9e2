"""Kind "vectors": rows are compared by the cosine of the vectors in one of their columns."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import flag, share, thread_count, whole_number
from lookalike.corpora import Corpus, Problems, open_corpus
from lookalike.corpora.base import pa
from lookalike.corpora.columns import id_column, id_strings
from lookalike.corpora.formats import format_of
from lookalike.dedup.decide import GroupChoices, decide, rule_ranks, split_old
from lookalike.dedup.pairs import Floats, Ints, VerifiedPairs, count_with_copies, in_order
from lookalike.dedup.result import DedupCounts, VectorResult
from lookalike.dedup.settings import DedupSettings
from lookalike.errors import ArgumentError, DocumentError, Said
from lookalike.indexes.kinds import load_index
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
_INDEX_SUFFIX = ".lookalike"


def run_vector_job(
    source: Any,
    *,
    against: Any,
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
    are kept. Rows of `against` are old: a row that is similar to one of them is dropped.
    """
    least = share("threshold", THRESHOLD if threshold is None else threshold)
    chance = share("recall", RECALL if recall is None else recall)
    every, workers = flag("exact", exact), thread_count(threads)
    most = whole_number("max_group", max_group, at_least=2)
    settings = DedupSettings(threshold=least, grouping=grouping, keep=keep, max_group=most)
    steps = JobProgress(listener(progress))
    corpus = open_corpus(source, format, encoding=encoding)
    identity = corpus.identity()
    with steps.timed("read"):
        new, column = read_embeddings(corpus, vectors, id, settings.keep_column)
        id_name = id_column(corpus, id)
        before = None
        if against is not None:
            before = _old_embeddings(against, format, encoding, column, id_name)
        given, old = _together(before, new)
        first = _first_equal(given)
    with steps.timed("index"):
        different = np.flatnonzero(first[given.rows] == given.rows)
        parts = different[given.rows[different] < old], different[given.rows[different] >= old]
        indexes = [
            VectorIndex(given.vectors[part], given.rows[part], threads=workers) for part in parts
        ]
    with steps.timed("pairs"):
        share_found = None if every else chance
        found = indexes[1].pairs(least, recall=share_found, threads=workers)
        pairs = _verified(found.left, found.right, found.similarities)
        if len(parts[0]):
            queries = given.vectors[parts[1]]
            near = indexes[0].within(queries, least, recall=share_found, threads=workers)
            right = np.repeat(given.rows[parts[1]], np.diff(near.offsets))
            pairs = in_order([pairs, _verified(near.ids, right, near.similarities)])
    with steps.timed("group"):
        rank = rule_ranks(settings, given.count, old=old, order=given.order)
        choices = None
        if callable(keep):
            choices = GroupChoices(
                keep, settings, first, old, lambda rows: corpus.rows_at(rows - old, skip_bad=False)
            )
        decision = decide(pairs, rank, settings, first=first, old=old, choices=choices)
        cosines = _cosines(given, decision.duplicate_of, workers)
        decision = replace(decision, similarity=cosines)
        own, matched_old, group_of = split_old(decision, old)
    return VectorResult(
        threshold=least,
        recall=1.0 if every else chance,
        column=column,
        id_column=id_name,
        settings=settings,
        dimensions=given.vectors.shape[1] if len(given.rows) else 0,
        keep=decision.duplicate_of[old:] < 0,
        group_of=group_of,
        duplicate_of=own,
        matched_old=matched_old,
        similarity=cosines[old:],
        different_pairs=pairs,
        counts=DedupCounts.of(
            decision,
            first,
            threshold=least,
            keep=settings.keep,
            old=old,
            in_old=int((matched_old >= 0).sum()),
            without_features=new.count - len(new.rows),
            verified_pairs=count_with_copies(pairs, first, old),
        ),
        seconds=steps.seconds,
        warnings=list(decision.warnings),
        names=new.ids,
        old=old,
        old_names=None if before is None else before.ids,
        first_equal=first,
        source=corpus,
        source_identity=identity,
    )


def _old_embeddings(
    against: Any, format: str | None, encoding: str | None, column: str, id: str | None
) -> Embeddings:
    """Return the vectors of an old corpus or index, with the columns of the new one if it has them.

    An index is a `VectorIndex`, or the file that one was saved to.
    """
    is_path = isinstance(against, str | os.PathLike)
    if is_path and Path(against).suffix == _INDEX_SUFFIX:
        against = load_index(against)
        if not isinstance(against, VectorIndex):
            raise ArgumentError(
                Said("against"),
                f" is a file with a {type(against).__name__}; expected one with a VectorIndex, or "
                "a corpus with vectors",
            )
    if isinstance(against, VectorIndex):
        vectors, ids = against.living()
        return Embeddings(
            len(ids), np.arange(len(ids)), vectors, [str(one) for one in ids.tolist()], None
        )
    # The given format is that of the source; the extension of an old file may be another.
    unnamed = is_path and format_of(Path(against)) is None
    corpus = open_corpus(against, format if unnamed else None, encoding=encoding)
    known = corpus.columns()
    named, id = (one if one in known else None for one in (column, id))
    return read_embeddings(corpus, named, id, None)[0]


def _together(old: Embeddings | None, new: Embeddings) -> tuple[Embeddings, int]:
    """Return the vectors of an old corpus and of the new one after it, and how many rows are old.

    Ids are those of the new rows.
    """
    if old is None or not old.count:
        return new, 0
    widths = [one.vectors.shape[1] for one in (old, new) if len(one.rows)]
    if len(set(widths)) > 1:
        raise ArgumentError(
            Said("against"),
            f" has vectors of {widths[0]:,} dimensions, and the source has {widths[1]:,}; expected "
            "the same",
        )
    order = new.order
    if order is not None:
        order = np.concatenate([np.full(old.count, -1), order])
    parts = [one.vectors for one in (old, new) if len(one.rows)]
    return Embeddings(
        old.count + new.count,
        np.concatenate([old.rows, old.count + new.rows]),
        np.concatenate(parts) if parts else new.vectors,
        new.ids,
        order,
    ), old.count


def _verified(left: Ints, right: Ints, cosines: Floats) -> VerifiedPairs:
    return VerifiedPairs(left, right, cosines, np.full(len(left), -1, np.int32))


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
