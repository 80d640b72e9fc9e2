"""`lookalike clean` on Spark: `lookalike.spark.repeats` finds what is removed from rows.

Rows that lose nothing are written where they are read. Only changed ones are shuffled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, SupportsIndex

import numpy as np

from lookalike import _native
from lookalike.checks import whole_number
from lookalike.cleaning.result import CleanCounts, CleanedTexts, RemovedUnit, unit_text
from lookalike.cleaning.settings import UNITS, CleanSettings
from lookalike.common_passages.results import word_places
from lookalike.corpora.base import native_documents, pa
from lookalike.corpora.columns import Columns
from lookalike.dedup.kinds import chosen
from lookalike.dedup.pairs import Ints
from lookalike.display import Records
from lookalike.features import Words
from lookalike.spark.files import check_added, with_texts
from lookalike.spark.packed import Batches, as_columns, map_arrow, rows_of, sql, table_of
from lookalike.spark.positions import (
    Numbering,
    PositionSet,
    collect_positions,
    numbered_columns,
    packed_positions,
    pieces_of,
)
from lookalike.spark.repeats import (
    PIECE,
    RECORD,
    UNIT_ROWS,
    UNITS_SCHEMA,
    RepeatPlan,
    RepeatRounds,
)
from lookalike.spark.signing import documents_of, texts_of
from lookalike.spark.sources import deciding_column, find_columns, frame_of, order_frame
from lookalike.spark.verify import select_rows
from lookalike.spark.work import HeldFrames, SparkWork

ADDED = ("removed_words", "removed_ranges", "kept")
"""The columns that annotated rows have more than others."""
_COUNTED = "file string, start long, partition long, row long, key long, count long, bytes long"
_CLEANED = (
    "position long, left long, removed_words long, ranges long, bytes long, removed_ranges string, "
    "new string"
)
_PIECES = (
    "position long, round int, begin long, end long, words long, copy long, first long, "
    "last long, text string"
)
_COPIES = "copy long, round int, first long, last long, copy_begin long, copy_end long"
_ASKED = "bucket int, kind int, position long, round int, first long, last long, text string"
_TEXT, _RANGE, _PLACE = range(3)


def clean(
    frame: Any,
    *,
    words: SupportsIndex | None = None,
    unit: str | None = None,
    max_documents: SupportsIndex | None = None,
    remove: str = "copies",
    boundary: str | None = None,
    keep: str = "first",
    min_left: SupportsIndex = 1,
    text: str | None = None,
    id: str | None = None,
    order: str | None = None,
    work: str | None = None,
) -> SparkClean:
    """Remove text that occurs again in the rows of a DataFrame, as `la.clean` does.

    The cleaned texts, removed ranges and counts are those of the local job on the same rows in the
    same order, whatever the partitions. Runs of words are equal if their fingerprints of 122 bits
    are. Their key is drawn for each job, so no text can be made to have that of another. Two runs
    of n words that differ have the same one with a probability of about (n / 2^61)^2.

    Texts are read three times for each round, and not shuffled, except those that may lose
    something. Text that very many rows have takes a record of each batch of rows that has it.

    Args:
        frame: The DataFrame. Rows are in the order of the files they come from and of the lines
            there, or of the partitions.
        words: The least number of words of a repeated run (default: 50), or of a unit (default: 1).
        unit: "line", "sentence" or "paragraph" (default: runs of words).
        max_documents: The number of documents that may have a unit (default: 1).
        remove: "copies", or "all" to remove first copies, too.
        boundary: Where runs are cut: "word", "auto" (the default), "line", "sentence", "paragraph".
        keep: Which copy is the first: that in the "first", "last", "longest" or "shortest" row, or
            by "max:COLUMN" or "min:COLUMN" of numbers, dates or times.
        min_left: Drop rows that are left with fewer words, of those that lost some.
        text: The column with the document text (default: detected).
        id: The column with ids (default: detected, or the positions of rows).
        order: A column of unique values to sort by, for a frame without an order of its own.
        work: A folder that all workers can reach, for what lasts between steps. Without it, workers
            hold that.

    Returns:
        A `SparkClean`, with frames of the cleaned rows, of annotated rows and of removed ranges.

    Raises:
        ArgumentError: An option has a value that is not allowed, or `frame` is not a DataFrame.
    """
    settings = CleanSettings(**chosen(locals(), CleanSettings))
    frame = frame_of("frame", frame)
    space = SparkWork(frame.sparkSession, work)
    try:
        if order is not None:
            frame = space.keep(order_frame(frame, order))
        found = find_columns(frame, text, id, settings.order.keep_column)
        with space.timed("read"):
            column = sql.col(f"`{found.text}`").cast("string")
            rows = numbered_columns(frame, [column])
            told = map_arrow(rows, _count, _COUNTED).toArrow()
            numbering, size = Numbering.told(told), sum(told["bytes"].to_pylist())
            documents = numbering.documents
        with space.timed("find"):
            sent = space.send(numbering)
            plan = RepeatPlan.of(settings, sent, documents, size, space.cores)
            columns = [column, *deciding_column(frame, settings.order, found)]
            rounds = RepeatRounds(space, plan, frame, columns)
            rounds.find()
        with space.timed("count"):
            rows_cleaned = _CleanedRows(space, frame, found, plan, rounds)
            counts = rows_cleaned.counts(documents, size)
        return SparkClean(
            settings=settings,
            seconds=dict(space.seconds),
            warnings=[],
            columns=found,
            _counts=counts,
            _rows=rows_cleaned,
        )
    except BaseException:
        space.close()
        raise


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SparkClean(CleanedTexts, HeldFrames):
    """The cleaned rows, and what was removed from them. Its frames can be read until `close`."""

    _counts: CleanCounts
    _rows: _CleanedRows

    @property
    def counts(self) -> CleanCounts:
        """How much was removed."""
        return self._counts

    @property
    def unit_count(self) -> int:
        """The number of different units that were removed."""
        return self._rows.unit_count

    @cached_property
    def documents(self) -> Any:
        """The rows with cleaned texts and all their columns, without the dropped ones."""
        return self._rows.cleaned()

    @cached_property
    def annotated(self) -> Any:
        """All rows unchanged, with `removed_words`, `removed_ranges` and `kept`."""
        return self._rows.annotated()

    @cached_property
    def removed(self) -> Any:
        """A row for each removed range, with the columns of the local job."""
        return self._rows.removed(with_text=False)

    @cached_property
    def removed_with_text(self) -> Any:
        """The same, with the removed `text`."""
        return self._rows.removed(with_text=True)

    def units(self, limit: SupportsIndex = 1000) -> Records[RemovedUnit]:
        """Return the removed units with their counts, at most `limit`; the most frequent first."""
        return Records(
            RemovedUnit, self._rows.frequent_units(whole_number("limit", limit, at_least=0))
        )


def _count(batches: Batches) -> Iterator[Any]:
    for (file, start, partition), row, batch, key in pieces_of(batches):
        _, ends = texts_of(batch.column(0))
        place = {"file": [file], "start": start, "partition": partition, "row": row, "key": key}
        yield rows_of(_COUNTED, **place, count=len(batch), bytes=int(ends[-1] - ends[0]))


@dataclass(frozen=True, eq=False)
class _CleanedRows:
    """The rows of a frame, and what was found in them."""

    work: SparkWork
    frame: Any
    columns: Columns
    plan: RepeatPlan
    rounds: RepeatRounds

    @cached_property
    def _changed(self) -> Any | None:
        """What is left of changed rows, as `_CLEANED`."""
        if self.rounds.changed is None:
            return None
        return self.work.keep(map_arrow(self.rounds.changed, _clean_texts, _CLEANED))

    @cached_property
    def _positions(self) -> Any:
        """The positions of changed rows, sent to workers."""
        return self.work.send(self.rounds.positions or PositionSet.of([], self.plan.documents))

    @cached_property
    def unit_count(self) -> int:
        """The number of different units that were removed."""
        if self.rounds.units is None:
            return 0
        (size,) = self.rounds.units.agg(sql.sum(sql.length("data"))).first()
        return int(size) // RECORD.itemsize

    def counts(self, documents: int, size: int) -> CleanCounts:
        """Return how much was removed."""
        sums: Any = (0, 0, 0, 0, 0)
        if self._changed is not None:
            dropped = sql.count(sql.when(sql.col("left") < int(self.plan.settings.min_left), 1))
            named = [sql.sum(name) for name in ("ranges", "removed_words", "bytes")]
            sums = self._changed.agg(sql.count("*"), dropped, *named).first()
        changed, dropped, ranges, words, removed = sums
        rounds = len(self.rounds.found)
        return CleanCounts(
            documents=documents,
            changed=changed,
            dropped=dropped,
            ranges=ranges,
            words=words,
            bytes=size,
            bytes_removed=removed,
            rounds=rounds,
        )

    @property
    def _names(self) -> list[Any]:
        """The columns of the user, from what they are called in between."""
        names = self.frame.columns
        return [sql.col(f"{_MINE}{at}").alias(name) for at, name in enumerate(names)]

    def _sides(self) -> tuple[Any, Any | None]:
        """Return the rows that lost nothing, and the others with `_CLEANED`."""
        names = enumerate(self.frame.columns)
        columns = [sql.col(f"`{name}`").alias(f"{_MINE}{at}") for at, name in names]
        how = self.frame, columns, self.plan.numbering, self._positions
        rest = select_rows(*how, others=True).select(*self._names)
        if self._changed is None:
            return rest, None
        mine = {name: f"{_MINE}{name}" for name in self._changed.columns if name != "position"}
        return rest, select_rows(*how).join(self._changed.withColumnsRenamed(mine), "position")

    def cleaned(self) -> Any:
        """Return the rows with cleaned texts, without the dropped ones."""
        rest, changed = self._sides()
        if changed is None:
            return rest
        changed = changed.where(f"{_MINE}left >= {int(self.plan.settings.min_left)}")
        rows = changed.select(*self._names, f"{_MINE}new")
        return rest.union(map_arrow(rows, _with_new, self.frame.schema, self.columns.text))

    def annotated(self) -> Any:
        """Return all rows, with what would be removed."""
        check_added(self.frame, ADDED)
        rest, changed = self._sides()
        values = (sql.lit(0).cast("long"), sql.lit(""), sql.lit(True))
        rest = rest.select("*", *(one.alias(name) for one, name in zip(values, ADDED, strict=True)))
        if changed is None:
            return rest
        kept = sql.col(f"{_MINE}left") >= int(self.plan.settings.min_left)
        found = [sql.col(f"{_MINE}{name}").alias(name) for name in ADDED[:2]]
        return rest.union(changed.select(*self._names, *found, kept.alias(ADDED[2])))

    def removed(self, with_text: bool) -> Any:
        """Return the removed ranges, with ids."""
        names = ["id", "begin", "end", "words", "copy_of", "copy_begin", "copy_end"]
        if with_text:
            names.append("text")
        if not self.rounds.found:
            kind = "long" if self.columns.id is None else "string"
            kinds = {"id": kind, "copy_of": kind, "text": "string"}
            schema = ", ".join(f"{name} {kinds.get(name, 'long')}" for name in names)
            return self.work.spark.createDataFrame([], schema)
        found = self.rounds.found[0]
        for more in self.rounds.found[1:]:
            found = found.union(more)
        pieces = self.work.keep(map_arrow(found, _piece_rows, _PIECES))
        on = ["copy", "round", "first", "last"]
        asked = self.work.keep(pieces.select(*on).distinct())
        copies = collect_positions(asked, ["copy"], self.plan.documents)
        rows = pieces.join(self._copies(asked, self.work.send(copies)), on)
        return self._named(rows, copies).select(*names)

    def _copies(self, asked: Any, copies: Any) -> Any:
        """Return the characters of first copies, as `_COPIES`; `copies` are their documents."""
        plan, nothing = self.plan, sql.lit(None)
        text = sql.col(f"`{self.columns.text}`").cast("string")
        texts = select_rows(self.frame, [text.alias("text")], plan.numbering, copies)
        # In words as they were before a round: what earlier ones have removed is not counted.
        ranges = map_arrow(self._own_ranges(), _of_copies, _RANGES, copies)
        bucket = sql.expr(f"cast(position * {plan.buckets} div {plan.documents} as int)")
        absent = [nothing.cast("long").alias(name) for name in ("first", "last")]
        none, text = nothing.cast("int").alias("round"), nothing.cast("string").alias("text")
        asked = asked.withColumnRenamed("copy", "position")
        rows = texts.select("position", none, *absent, "text", sql.lit(_TEXT).alias("kind"))
        for kind, frame in ((_RANGE, ranges), (_PLACE, asked)):
            rows = rows.union(frame.select("*", text, sql.lit(kind).alias("kind")))
        rows = rows.withColumn("bucket", bucket)
        rows = rows.repartitionById(plan.buckets, "bucket")
        return map_arrow(rows.select(*_ASKED_NAMES), _copy_places, _COPIES, plan.unit_name)

    def _own_ranges(self) -> Any:
        """Return the ranges of bytes that each round removed, as `_RANGES`."""
        found = self.rounds.found
        frames = [map_arrow(one, _range_rows, _RANGES) for one in found[: len(found) - 1]]
        made = self.work.spark.createDataFrame([], _RANGES)
        for one in frames:
            made = made.union(one)
        return made

    def _named(self, rows: Any, copies: PositionSet) -> Any:
        """Return rows with the ids of documents and of their copies."""
        columns = {"id": "position", "copy_of": "copy"}
        if self.columns.id is None:
            return rows.withColumnsRenamed({column: name for name, column in columns.items()})
        needed = self.work.send(self._positions.value | copies)
        own = sql.col(f"`{self.columns.id}`").cast("string").alias("id")
        ids = select_rows(self.frame, [own], self.plan.numbering, needed)
        known = sql.coalesce("id", sql.col("position").cast("string"))
        ids = self.work.keep(ids.select("position", known.alias("name")))
        for name, column in columns.items():
            rows = rows.join(ids.toDF("named", name), sql.col(column) == sql.col("named"))
            rows = rows.drop("named")
        return rows

    def frequent_units(self, most: int) -> list[RemovedUnit]:
        """Return the removed units in most places."""
        if self.rounds.units is None or not most:
            return []
        every = map_arrow(self.rounds.units, as_columns, UNITS_SCHEMA, RECORD, UNIT_ROWS)
        order = [sql.col("places").desc(), "document", "word"]
        units = every.orderBy(*order).limit(most).toArrow().to_pylist()
        firsts = np.array([one["document"] for one in units], np.int64)
        needed = PositionSet.of([packed_positions(firsts)], self.plan.documents)
        text = sql.col(f"`{self.columns.text}`").cast("string").alias("text")
        how = self.plan.numbering, self.work.send(needed)
        rows = select_rows(self.frame, [text], *how).toArrow()
        texts = dict(zip(*(column.to_pylist() for column in rows.columns), strict=True))
        made = []
        for one in units:
            document = native_documents(pa.array([texts[one["document"]]], pa.large_string()))
            unit = unit_text(document, self.plan.unit, one["word"])
            made.append(RemovedUnit(unit, one["documents"], one["places"]))
        return made


_MINE = "lookalike_"
_ASKED_NAMES = tuple(part.split()[0] for part in _ASKED.split(", "))
_RANGES = "position long, round int, first long, last long"


def _clean_texts(batches: Batches) -> Iterator[Any]:
    """Return changed texts without what was removed, as `_CLEANED`."""
    for batch in batches:
        documents, _ = documents_of(batch.column("text"))
        parts = batch.column("ranges").to_pylist()
        ranges = np.frombuffer(b"".join(parts), np.int64).reshape(-1, 2)
        counts = np.array([len(part) // 16 for part in parts], np.int64)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]).astype(np.int64)
        begins, lasts = (np.ascontiguousarray(one) for one in ranges.T)
        data, places = _native.without_ranges(documents, offsets, begins, lasts)
        buffers = [None, pa.py_buffer(places), pa.py_buffer(data)]
        new = pa.Array.from_buffers(pa.large_string(), len(batch), buffers)
        numbers = np.repeat(np.arange(len(batch)), 2 * counts)
        shown = _native.characters_at(documents, numbers, np.ascontiguousarray(ranges.reshape(-1)))
        listed = [f"{one}-{two}" for one, two in shown.reshape(-1, 2).tolist()]
        words = batch.column("words").to_numpy()
        left = np.asarray(Words().counts(documents)).astype(np.int64) - words
        sizes = np.add.reduceat(lasts - begins, offsets[:-1]) if len(batch) else counts
        yield pa.record_batch(
            {
                "position": batch.column("position"),
                "left": pa.array(left),
                "removed_words": pa.array(words),
                "ranges": pa.array(counts),
                "bytes": pa.array(sizes),
                "removed_ranges": pa.array(
                    [",".join(listed[begin:end]) for begin, end in pairwise(offsets.tolist())],
                    pa.string(),
                ),
                "new": new.cast(pa.string()),
            }
        )


def _with_new(text: str, batches: Batches) -> Iterator[Any]:
    for batch in batches:
        rows = batch.drop_columns([f"{_MINE}new"])
        new = batch.column(f"{_MINE}new")
        yield with_texts(rows, text, np.ones(len(batch), np.bool_), new)


def _pieces(batch: Any) -> tuple[np.ndarray[Any, Any], Ints]:
    """Return the pieces of changed rows, and the row of each."""
    parts = batch.column("pieces").to_pylist()
    counts = [len(part) // PIECE.itemsize for part in parts]
    return np.frombuffer(b"".join(parts), PIECE), np.repeat(np.arange(len(parts)), counts)


def _piece_rows(batches: Batches) -> Iterator[Any]:
    """Yield the removed ranges of changed rows, as `_PIECES`."""
    for batch in batches:
        pieces, rows = _pieces(batch)
        if not len(pieces):
            continue
        texts, starts = texts_of(batch.column("text"))
        both = np.stack([pieces["begin"], pieces["end"]], axis=1)
        places = _native.characters_at(
            native_documents(texts), np.repeat(rows, 2), both.reshape(-1)
        ).reshape(-1, 2)
        data = memoryview(texts.buffers()[2])
        removed = [
            str(data[begin:end], "utf-8") for begin, end in (both + starts[rows][:, None]).tolist()
        ]
        columns = {"begin": places[:, 0], "end": places[:, 1], "words": pieces["words"]}
        columns |= {"copy": pieces["copy"], "first": pieces["copy_begin"]}
        columns |= {"last": pieces["copy_end"]}
        at = pa.array(rows)
        yield pa.record_batch(
            {
                "position": batch.column("position").take(at),
                "round": batch.column("round").take(at),
                **{name: pa.array(np.array(column)) for name, column in columns.items()},
                "text": pa.array(removed, pa.string()),
            }
        )


def _range_rows(batches: Batches) -> Iterator[Any]:
    for batch in batches:
        pieces, rows = _pieces(batch)
        at = pa.array(rows)
        yield pa.record_batch(
            {
                "position": batch.column("position").take(at),
                "round": batch.column("round").take(at),
                "first": pa.array(np.ascontiguousarray(pieces["begin"])),
                "last": pa.array(np.ascontiguousarray(pieces["end"])),
            }
        )


def _of_copies(copies: Any, batches: Batches) -> Iterator[Any]:
    for batch in batches:
        yield batch.filter(pa.array(copies.value.has(batch.column("position").to_numpy())))


def _copy_places(unit: str | None, batches: Batches) -> Iterator[Any]:
    """Yield where words and units of documents are, in characters; see `_ASKED`."""
    table = table_of(batches)
    if table is None:
        return
    rows = table.sort_by([("position", "ascending"), ("kind", "ascending")])
    columns = [rows[name].to_pylist() for name in _ASKED_NAMES[1:]]
    document = _Places("")
    made: dict[str, list[int]] = {name.split()[0]: [] for name in _COPIES.split(", ")}
    for kind, position, number, first, last, text in zip(*columns, strict=True):
        if kind == _TEXT:
            document = _Places(text or "")
        elif kind == _RANGE:
            document.gone.append((number, first, last))
        else:
            if unit is None:
                place = document.words(number, first, last)
            else:
                place = document.unit(UNITS.index(unit), first)
            for name, value in zip(made, (position, number, first, last, *place), strict=True):
                made[name].append(value)
    yield rows_of(_COPIES, **made)


class _Places:
    """Where words and units of a text are, in characters."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._data = np.frombuffer(text.encode(), np.uint8)
        self._starts = np.flatnonzero(self._data & 0xC0 != 0x80)
        self.gone: list[tuple[int, int, int]] = []
        """A round, and the bytes that it removed."""
        self._words: dict[int, tuple[Ints, Ints]] = {}
        self._units: Ints | None = None
        """Where they begin, and the end, in bytes."""

    def words(self, number: int, first: int, last: int) -> tuple[int, int]:
        """Return the place of words, numbered as before a round."""
        if number not in self._words:
            begins, ends = word_places(self._text)
            removed = np.zeros(len(self._data), np.bool_)
            for of, begin, end in self.gone:
                removed[begin:end] |= of < number
            left = ~removed[self._starts[begins]]
            self._words[number] = begins[left], ends[left]
        begins, ends = self._words[number]
        return int(begins[first]), int(ends[last - 1])

    def unit(self, unit: int, byte: int) -> tuple[int, int]:
        """Return the place of the unit that begins at a byte."""
        if self._units is None:
            document = native_documents(pa.array([self._text], pa.large_string()))
            self._units = np.append(_native.units(document, unit), len(self._data))
        end = self._units[np.searchsorted(self._units, byte, "right")]
        begin, after = np.searchsorted(self._starts, [byte, end]).tolist()
        return begin, after
