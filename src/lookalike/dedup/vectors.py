"""Kind "vectors": rows are compared by the cosine of the vectors in one of their columns."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import file_path, flag, instance, share, thread_count, whole_number
from lookalike.corpora import Corpus, Problems, open_corpus
from lookalike.corpora.base import limited, pa
from lookalike.corpora.columns import id_column, id_strings
from lookalike.corpora.formats import format_of
from lookalike.dedup.decide import GroupChoices, decide, rule_ranks, split_old
from lookalike.dedup.old import is_saved
from lookalike.dedup.pairs import Floats, Ints, VerifiedPairs, count_with_copies, in_order
from lookalike.dedup.result import DedupCounts, VectorResult
from lookalike.dedup.settings import DedupSettings
from lookalike.dedup.vector_rows import (
    DiskRows,
    MemoryRows,
    blocks,
    file_identity,
    too_many_pairs,
    write_array,
)
from lookalike.errors import ArgumentError, DocumentError, ResultTooLargeError, Said
from lookalike.indexes.base import DEFAULT_LIMIT
from lookalike.indexes.kinds import load_index
from lookalike.jobs.context import JobProgress, memory_bytes
from lookalike.jobs.documents import StringsOnDisk, comparable, dense_ranks
from lookalike.jobs.work_folder import WorkFolder, digest, release
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
    work: str | os.PathLike[str] | None = None,
    memory_limit: SupportsIndex | None = None,
) -> VectorResult:
    """Find rows whose vectors have a cosine of `threshold` or more, and choose which are kept.

    Signatures propose pairs, the true cosine decides. Rows without a vector, or with a zero vector,
    are kept. Rows of `against` are old: a row that is similar to one of them is dropped.

    Vectors are held in memory; with `work` or `memory_limit`, they are in a work folder. There, an
    earlier job with the same input needs not read it again, nor look for pairs with the same
    settings.
    """
    least = share("threshold", THRESHOLD if threshold is None else threshold)
    chance = share("recall", RECALL if recall is None else recall)
    every, workers = flag("exact", exact), thread_count(threads)
    most = whole_number("max_group", max_group, at_least=2)
    settings = DedupSettings(threshold=least, grouping=grouping, keep=keep, max_group=most)
    steps, limit = JobProgress(listener(progress)), memory_bytes(memory_limit)
    corpus = open_corpus(source, format, encoding=encoding)
    identity = corpus.identity()
    with ExitStack() as left:
        folder = None
        if work is not None or limit is not None:
            folder = WorkFolder(None if work is None else file_path("work", work))
            left.callback(folder.close)
            left.enter_context(limited(None if limit is None else limit // 2, workers))
        column, id_name = _columns(corpus, vectors, id, settings.keep_column)
        known = _KnownSteps(folder, limit, steps)
        with steps.timed("read"):
            before = None
            if against is not None:
                before = _opened_old(against, format, encoding, column, id_name)
            given = known.read(corpus, identity, column, id_name, settings.keep_column, before)
        old = given.old
        first, pairs = known.pairs(given, least, None if every else chance, workers)
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
    new_vectors = int(np.count_nonzero(given.rows >= old))
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
            without_features=given.count - old - new_vectors,
            verified_pairs=count_with_copies(pairs, first, old),
        ),
        seconds=steps.seconds,
        reused=tuple(steps.reused),
        warnings=list(decision.warnings),
        names=given.ids,
        old=old,
        old_names=given.old_ids,
        first_equal=first,
        source=corpus,
        source_identity=identity,
    )


@dataclass(frozen=True, eq=False)
class _OldVectors:
    """Old vectors: a corpus with its columns, or the vectors of an index and their ids."""

    corpus: Corpus | None
    column: str = ""
    id: str | None = None
    index: VectorIndex | None = None
    file: Path | None = None
    """That of the index."""

    def identity(self) -> list[Any] | None:
        """Return what changes with them; None if that is not known."""
        if self.corpus is not None:
            known = self.corpus.identity()
            return None if known is None else [known, self.column, self.id]
        return None if self.file is None else file_identity(self.file)


def _opened_old(
    against: Any, format: str | None, encoding: str | None, column: str, id: str | None
) -> _OldVectors:
    """Return an old corpus or index, with the columns of the new one if it has them.

    An index is a `VectorIndex`, or the file that one was saved to.
    """
    is_path = isinstance(against, str | os.PathLike)
    file = None
    if is_saved(against):
        file, against = Path(against), load_index(against)
        if not isinstance(against, VectorIndex):
            raise ArgumentError(
                Said("against"),
                f" is a file with a {type(against).__name__}; expected one with a VectorIndex, or "
                "a corpus with vectors",
            )
    if isinstance(against, VectorIndex):
        return _OldVectors(None, index=against, file=file)
    # The given format is that of the source; the extension of an old file may be another.
    unnamed = is_path and format_of(Path(against)) is None
    corpus = open_corpus(against, format if unnamed else None, encoding=encoding)
    known = corpus.columns()
    named, id = (one if one in known else None for one in (column, id))
    return _OldVectors(corpus, *_columns(corpus, named, id, None))


@dataclass(frozen=True, eq=False)
class _Given:
    """The vectors of an old corpus and of the new one after it."""

    count: int
    """The number of rows, with a vector or not."""
    old: int
    """How many of them are old."""
    rows: Ints
    """The rows that have a vector."""
    vectors: NDArray[Any]
    ids: Sequence[str] | None
    """Of the new rows; None where positions are ids."""
    old_ids: Sequence[str] | None
    order: Ints | None
    """Of all rows: the rank of the value to keep by; -1 without a value."""
    place: MemoryRows
    key: str | None
    """Changes with all of this; None if that is not known."""


@dataclass
class _KnownSteps:
    """The steps of a job, which a work folder may have done already."""

    work: WorkFolder | None
    limit: int | None
    progress: JobProgress

    def read(
        self,
        corpus: Corpus,
        identity: list[Any] | None,
        column: str,
        id: str | None,
        order: str | None,
        before: _OldVectors | None,
    ) -> _Given:
        """Read the vectors of an old corpus, if there is one, and those of the new one."""
        old_identity = [] if before is None else before.identity()
        key = None
        if identity is not None and old_identity is not None:
            told = [identity, corpus.format, column, id, order, old_identity]
            key = digest("read vectors", told)
        found = self._known("read", key)
        if self.work is not None and found is not None:
            self.progress.reuse("read")
            return self._restored(self.work, found, key)
        place = MemoryRows() if self.work is None else DiskRows(self.work, self.limit)
        try:
            old = None if before is None else _old_embeddings(before, place)
            new = _read_columns(corpus, column, id, order, place, number=1)
            given = _together(old, new, place, key)
        finally:
            place.close()
        if self.work is not None:
            self._keep(self.work, given)
        return given

    def _known(self, step: str, key: str | None) -> dict[str, Any] | None:
        return None if self.work is None or key is None else self.work.facts(step, key)

    def _keep(self, work: WorkFolder, given: _Given) -> None:
        if given.key is None or work.temporary:
            return
        files = ["vectors", write_array(work, "rows", given.rows)]
        if given.order is not None:
            files.append(write_array(work, "order", given.order))
        named = [given.old_ids, given.ids]
        ids = [number for number, one in enumerate(named) if isinstance(one, StringsOnDisk)]
        files += [f"ids{number}.{part}" for number in ids for part in ("bytes", "ends")]
        facts = {
            "count": given.count,
            "old": given.old,
            "width": given.vectors.shape[1],
            "ordered": given.order is not None,
            "ids": ids,
        }
        work.complete("read", given.key, facts, files)

    def _restored(self, work: WorkFolder, facts: dict[str, Any], key: str | None) -> _Given:
        rows = np.array(work.array("rows", np.int64))
        place = DiskRows.known(work, self.limit, len(rows), facts["width"])
        place.check(facts["count"])
        old_ids, ids = (
            StringsOnDisk(work, f"ids{number}") if number in facts["ids"] else None
            for number in (0, 1)
        )
        return _Given(
            facts["count"],
            facts["old"],
            rows,
            place.array(),
            ids,  # type: ignore[arg-type]
            old_ids,  # type: ignore[arg-type]
            np.array(work.array("order", np.int64)) if facts["ordered"] else None,
            place,
            key,
        )

    def pairs(
        self, given: _Given, least: float, recall: float | None, threads: int
    ) -> tuple[Ints, VerifiedPairs]:
        """Return the first row with the same vector, for each row, and the pairs of others."""
        key = None if given.key is None else digest("pairs of vectors", given.key, least, recall)
        if self.work is not None and self._known("pairs", key) is not None:
            self.progress.reuse("index", "pairs")
            first = np.array(self.work.array("first", np.int64))
            left, right = (np.array(self.work.array(name, np.int64)) for name in ("left", "right"))
            return first, _verified(left, right, np.array(self.work.array("cosines", np.float64)))
        with self.progress.timed("index"):
            first = _first_equal(given)
            found = _Searched.of(given, first, threads)
        with self.progress.timed("pairs"):
            try:
                pairs = found.pairs(least, recall, threads)
            except ResultTooLargeError as error:
                raise too_many_pairs(self.limit, error) from error
        if self.work is not None and key is not None and not self.work.temporary:
            self.work.begin("pairs")
            arrays = (first, pairs.left, pairs.right, pairs.similarity)
            names = [
                write_array(self.work, name, array)
                for name, array in zip(("first", "left", "right", "cosines"), arrays, strict=True)
            ]
            self.work.complete("pairs", key, {}, names)
        return first, pairs


@dataclass(frozen=True, eq=False)
class _Searched:
    """Different vectors, in which pairs are looked for; rows of new ones, and their vectors."""

    old: VectorIndex | None
    new: VectorIndex
    rows: Ints
    vectors: NDArray[Any]
    room: tuple[int, int] | None
    """How many pairs, and proposed pairs, fit into memory."""

    @classmethod
    def of(cls, given: _Given, first: Ints, threads: int) -> _Searched:
        """Return indexes of the first of equal vectors, old and new ones."""
        different = np.flatnonzero(first[given.rows] == given.rows)
        is_old = given.rows[different] < given.old
        indexes: list[VectorIndex | None] = [None]
        for name, part in (("old", different[is_old]), ("new", different[~is_old])):
            rows = given.rows[part]
            if name == "new" or len(part):
                vectors = given.place.take(given.vectors, part, name)
                indexes.append(VectorIndex(vectors, rows, threads=threads))
                release(vectors)
        new = indexes[-1]
        if new is None:
            raise TypeError("there is no index of new vectors")
        return cls(indexes[-2], new, rows, vectors, given.place.most_pairs(given.count))

    def pairs(self, least: float, recall: float | None, threads: int) -> VerifiedPairs:
        """Return the pairs of new vectors, and of old and new ones."""
        limit = DEFAULT_LIMIT if self.room is None else min(self.room[0], DEFAULT_LIMIT)
        most = None if self.room is None else self.room[1]
        found = self.new.pairs(least, recall=recall, limit=limit, candidates=most, threads=threads)
        pairs = [_verified(found.left, found.right, found.similarities)]
        if self.old is not None:
            for own in blocks(len(self.vectors), self.vectors.shape[1]):
                near = self.old.within(
                    self.vectors[own], least, recall=recall, limit=limit, threads=threads
                )
                right = np.repeat(self.rows[own], np.diff(near.offsets))
                pairs.append(_verified(near.ids, right, near.similarities))
                release(self.vectors)
                limit -= len(right)
        return in_order(pairs)


def _old_embeddings(before: _OldVectors, place: MemoryRows) -> Embeddings:
    """Read the vectors of an old corpus or index."""
    if before.corpus is not None:
        return _read_columns(before.corpus, before.column, before.id, None, place, number=0)
    index = instance("against", before.index, VectorIndex, "a VectorIndex")
    place.check(len(index))
    vectors, ids = index.living()
    if len(ids):
        place.add(vectors)
    names = place.names(0)
    names.add(pa.array([str(one) for one in ids.tolist()], pa.large_string()))
    return Embeddings(len(ids), np.arange(len(ids)), vectors, names.finish(), None)


def _together(
    old: Embeddings | None, new: Embeddings, place: MemoryRows, key: str | None
) -> _Given:
    """Return the vectors of an old corpus and of the new one after it."""
    if old is None:
        return _Given(new.count, 0, new.rows, place.array(), new.ids, None, new.order, place, key)
    order = new.order
    if order is not None:
        order = np.concatenate([np.full(old.count, -1), order])
    return _Given(
        old.count + new.count,
        old.count,
        np.concatenate([old.rows, old.count + new.rows]),
        place.array(),
        new.ids,
        old.ids,
        order,
        place,
        key,
    )


def _verified(left: Ints, right: Ints, cosines: Floats) -> VerifiedPairs:
    return VerifiedPairs(left, right, cosines, np.full(len(left), -1, np.int32))


def _first_equal(given: _Given) -> Ints:
    """Return for each row the first with the same vector, number by number; zeros are alone."""
    first, vectors = np.arange(given.count), given.vectors
    digests = np.empty((len(vectors), 2), np.uint64)
    there = np.empty(len(vectors), bool)
    for own in blocks(len(vectors), vectors.shape[1]):
        rows = np.ascontiguousarray(vectors[own] + 0)  # so that there is no -0
        there[own] = rows.any(axis=1)
        hashed = b"".join(blake2b(row, digest_size=16).digest() for row in rows)
        digests[own] = np.frombuffer(hashed, np.uint64).reshape(-1, 2)
        release(vectors)
    order = np.lexsort((np.arange(len(vectors)), digests[:, 1], digests[:, 0]))
    new = np.ones(len(order), bool)
    new[1:] = (digests[order[1:]] != digests[order[:-1]]).any(axis=1)
    begins = np.flatnonzero(new)
    places = np.empty(len(order), np.int64)
    places[order] = np.repeat(order[begins], np.diff([*begins, len(order)]))
    first[given.rows[there]] = given.rows[places][there]
    return first


def _cosines(given: _Given, duplicate_of: Ints, threads: int) -> Floats:
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
    name, id_name = _columns(corpus, column, id, order)
    return _read_columns(corpus, name, id_name, order, MemoryRows()), name


def _columns(
    corpus: Corpus, column: str | None, id: str | None, order: str | None
) -> tuple[str, str | None]:
    """Return the names of the columns of vectors and ids."""
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
    return name, id_name


def _read_columns(
    corpus: Corpus,
    name: str,
    id_name: str | None,
    order: str | None,
    place: MemoryRows,
    number: int = 0,
) -> Embeddings:
    """Read the vectors of a corpus, the `number`-th that goes to this place."""
    others = [one for one in (id_name, order) if one is not None]
    begin, width_before = place.count, place.width
    count, rows, width = 0, list[Ints](), None
    names, deciding = place.names(number) if id_name is not None else None, list[Any]()
    for batch in in_batches(corpus.read([name, *others], Problems()), lambda: corpus.done):
        vectors = batch.column(0)
        there = np.flatnonzero(vectors.is_valid().to_numpy(zero_copy_only=False))
        place.check(begin + count + len(batch), corpus.done)
        if len(there):
            rows.append(count + there)
            made = _of_batch(vectors.drop_null(), rows[-1], corpus, name, width)
            width = made.shape[1]
            if width_before is not None and width != width_before:
                raise ArgumentError(
                    Said("against"),
                    f" has vectors of {width_before:,} dimensions, and the source has {width:,}; "
                    "expected the same",
                )
            place.add(made)
        if names is not None:
            names.add(id_strings(batch.column(1), count))
        if order is not None:
            deciding.append(comparable(batch.column(len(others))))
        count += len(batch)
    return Embeddings(
        count,
        np.concatenate([np.empty(0, np.int64), *rows]),
        place.array() if not place.disk else np.empty((0, 1), np.float32),
        None if names is None else names.finish(),
        dense_ranks(pa.chunked_array(deciding or [pa.nulls(0)])) if order is not None else None,
    )


def _of_batch(
    column: Any, rows: Ints, corpus: Corpus, name: str, width: int | None
) -> NDArray[Any]:
    kind = column.type
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
