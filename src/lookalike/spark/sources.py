"""What a job on Spark reads: a corpus, and perhaps an old one, as frames with known columns.

Web pages become texts and unwanted documents are left out first: all later steps read a copy of the
corpus with texts in place of pages.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from lookalike.checks import instance, optional_module
from lookalike.corpora.base import Corpus, Problems, Rows, limited, pa
from lookalike.corpora.columns import Columns, FilteredCorpus, Filters, columns_for, without_urls
from lookalike.corpora.columns import find_columns as columns_of
from lookalike.corpora.formats import format_of
from lookalike.corpora.opening import with_pages
from lookalike.dedup.settings import DedupSettings
from lookalike.errors import ArgumentError, Said
from lookalike.features import FeatureKind
from lookalike.pages import PageLimits
from lookalike.pages.extract import check_installed
from lookalike.shown import escape_terminal
from lookalike.spark.files import SparkCorpus, StreamedRows
from lookalike.spark.packed import Batches, map_arrow, sql
from lookalike.spark.positions import (
    FILE,
    KEY,
    ORDER_COLUMNS,
    ROW,
    ROW_BITS,
    START,
    numbered_columns,
    piece_bounds,
)
from lookalike.spark.work import SparkWork

_WHOLE = ("tinyint", "smallint", "int", "bigint", "boolean")
_NO_COLUMNS = Columns("", None)


def frame_of(name: str, frame: Any) -> Any:
    """Return a DataFrame of PySpark, or raise."""
    module = optional_module("pyspark.sql", "lookalike.spark", extra="spark")
    frame = instance(name, frame, module.DataFrame, "a DataFrame of PySpark")
    if not hasattr(frame, "_jdf"):
        raise ArgumentError(
            f"{name} is a DataFrame of Spark Connect, which sends nothing to workers but plans; "
            "expected one of a session on a master"
        )
    return frame


def find_columns(frame: Any, text: str | None, id: str | None, order: str | None) -> Columns:
    """Return the columns to read: those named, or the only obvious ones, as the local job does."""
    columns = columns_of(StreamedRows(frame.columns), text, id, order)
    kind = dict(frame.dtypes).get(columns.text)
    if kind not in ("string", "void"):
        raise ArgumentError(
            Said("text"),
            f" is the column {escape_terminal(columns.text)!r} of type {kind}; expected text",
        )
    return columns


def deciding_column(frame: Any, settings: DedupSettings, columns: Columns) -> list[Any]:
    """Return the column, if one decides which rows are kept, as numbers in its order."""
    if columns.order is None:
        return []
    kind = dict(frame.dtypes)[columns.order]
    column = sql.col(f"`{columns.order}`")
    if kind in ("float", "double"):
        return [column.cast("double")]
    if kind == "date":
        return [sql.datediff(column, sql.lit("1970-01-01").cast("date")).cast("long")]
    if kind in ("timestamp", "timestamp_ntz"):
        return [sql.unix_micros(column.cast("timestamp"))]
    if kind in _WHOLE:
        return [column.cast("long")]
    if kind == "string":
        for number in ("bigint", "double"):
            made = column.try_cast(number)
            if frame.where(column.isNotNull() & made.isNull()).limit(1).count() == 0:
                return [made]
    raise ArgumentError(
        Said("keep"),
        f" is {settings.keep!r}, a column of {'text' if kind == 'string' else kind}; on Spark "
        "expected one of numbers, dates or times: add one that has the order you want",
    )


def order_frame(frame: Any, order: str) -> Any:
    """Return the frame in the order of a column."""
    StreamedRows(frame.columns).column_for(order, (), "order")
    repeated = frame.groupBy(f"`{order}`").count().where("count > 1").limit(1).collect()
    if repeated:
        raise ArgumentError(
            Said("order"),
            f" is {escape_terminal(order)!r}, which has {escape_terminal(str(repeated[0][0]))} "
            "more than once; expected a column of unique values: add one",
        )
    return frame.orderBy(f"`{order}`")


@dataclass(frozen=True)
class Prepared:
    """Rows that are ready to be compared."""

    frame: Any
    columns: Columns
    compared: Columns
    """The same, but with the text that is compared, if that is another one."""
    left_out: dict[str, int] = field(default_factory=dict)
    """How many rows are not wanted, or cannot be read, by kind."""

    @property
    def names(self) -> list[str]:
        """The user's columns."""
        own = (*ORDER_COLUMNS, COMPARED, LEFT_OUT)
        return [name for name in self.frame.columns if name not in own]


COMPARED, LEFT_OUT = "lookalike_compared", "lookalike_left_out"
"""Columns of prepared rows: the text that is compared; and why others are not wanted, or null."""

_NUMBERED = (FILE, START, KEY)


@dataclass(frozen=True)
class Preparation:
    """How rows are made ready: which column has pages, what these may cost, what is wanted."""

    html: str | None
    limits: PageLimits | None
    filters: Filters
    names: Sequence[str] = ()
    """The columns that rows have."""
    columns: Columns = _NO_COLUMNS
    """Of rows that are ready; the text is that which is compared."""

    def __post_init__(self) -> None:
        if self.filters.language is not None:
            check_installed()

    def for_old(self, frame: Any) -> Preparation:
        """Return what concerns an old corpus, whose pages may be texts by now."""
        has_pages = self.html is not None and self.html in frame.columns
        html, limits = (self.html, self.limits) if has_pages else (None, None)
        return Preparation(html, limits, self.filters.for_old())

    def corpus(self, batches: Iterable[Any] = ()) -> Corpus:
        """Return rows, with texts in place of pages."""
        rows = StreamedRows([*self.names, *_NUMBERED], batches)
        has_pages = self.html is not None or self.limits is not None
        return with_pages(rows, self.html, self.limits) if has_pages else rows

    @property
    def kept(self) -> list[str]:
        """The columns of rows that are ready."""
        return [name for name in self.corpus().columns() if name not in _NUMBERED]

    @property
    def own_text(self) -> bool:
        """Whether the text that is compared is not a column that is kept."""
        return self.filters.strip_urls or self.columns.text not in self.kept

    def prepared(
        self,
        work: SparkWork,
        frame: Any,
        named: tuple[str | None, str | None, str | None],
        features: FeatureKind,
        *,
        optional: bool = False,
    ) -> Prepared:
        """Return the rows of a frame as they are compared.

        The columns `named` are those for text, id, and what decides which rows are kept. With
        `optional`, they are taken if they are there.
        """
        if self.html is None and self.limits is None and not self.filters.any:
            columns = _find(frame, named, None, optional)
            return Prepared(frame, columns, columns)
        how = replace(self, names=frame.columns)
        corpus = how.corpus()
        schema = how._schema(frame)
        empty = frame.sparkSession.createDataFrame([], schema)
        columns = _find(empty, named, corpus.page_text, optional)
        how = replace(how, columns=columns_for(corpus, columns, features))
        if how.own_text:
            schema = schema.add(COMPARED, "string")
        schema = schema.add(LEFT_OUT, "string")
        for name in ORDER_COLUMNS:
            schema = schema.add(name, "string" if name == FILE else "long")
        rows = numbered_columns(frame, [f"`{name}`" for name in frame.columns])
        made = work.keep(map_arrow(rows, prepare_rows, schema, how))
        with work.timed("read"):
            told = made.where(f"{LEFT_OUT} is not null").select(LEFT_OUT, ROW).collect()
        left_out: Counter[str] = Counter()
        for reason, count in told:
            left_out[reason] += count
        compared = replace(columns, text=COMPARED) if how.own_text else columns
        return Prepared(made.where(f"{LEFT_OUT} is null"), columns, compared, dict(left_out))

    def _schema(self, frame: Any) -> Any:
        from pyspark.sql.types import ArrayType, StringType, StructField, StructType

        kinds: dict[str, Any] = dict.fromkeys(self.kept, StringType())
        reading = getattr(self.corpus(), "reading", None)
        if reading is not None:
            link = StructType([StructField(name, StringType()) for name in ("url", "text")])
            kinds[reading.names["links"]] = ArrayType(link)
        kinds |= {
            part.name: part.dataType
            for part in frame.schema.fields
            if part.name in kinds and part.name != self.html
        }
        # All may be null: rows that tell what is not wanted have no other values.
        return StructType([StructField(name, kind) for name, kind in kinds.items()])


def _find(
    frame: Any,
    named: tuple[str | None, str | None, str | None],
    page_text: str | None,
    optional: bool,
) -> Columns:
    if optional:
        text, id, order = (name if name in frame.columns else None for name in named)
    else:
        text, id, order = named
    return find_columns(frame, text or page_text, id, order)


def prepare_rows(how: Preparation, batches: Batches) -> Iterator[Any]:
    """Make the rows of a partition ready: those of `numbered_columns`.

    Rows that are wanted are numbered as if there were no others. At the end comes a row for each
    reason why some are not, with their number as `ROW` and nothing else.
    """
    corpus = how.corpus(batches)
    wanted = _WantedRows(corpus, how.columns, how.filters) if how.filters.any else corpus
    problems, numbers, schema = Problems(True), _Numbers(), None
    with limited(None, 1):  # another worker of Spark has the next core
        columns = dict.fromkeys([*how.kept, how.columns.text, *_NUMBERED])
        for batch in wanted.read(list(columns), problems):
            made = _prepared(how, batch, numbers)
            schema = made.schema
            yield made
    if schema is not None and problems.left_out:
        reasons, counts = zip(*problems.left_out.items(), strict=True)
        told = {LEFT_OUT: pa.array(reasons), ROW: pa.array(counts, pa.int64())}
        nothing = {part.name: pa.nulls(len(reasons), part.type) for part in schema}
        yield pa.record_batch(nothing | told)


def _prepared(how: Preparation, batch: Rows, numbers: _Numbers) -> Rows:
    made = {name: _plain(batch.column(name)) for name in how.kept}
    if how.own_text:
        texts = batch.column(how.columns.text).cast(pa.string())
        if how.filters.strip_urls:
            values = [None if text is None else without_urls(text) for text in texts.to_pylist()]
            texts = pa.array(values, pa.string())
        made[COMPARED] = texts
    made[LEFT_OUT] = pa.nulls(len(batch), pa.string())
    return pa.record_batch(made | numbers.of(batch))


def _plain(column: Any) -> Any:
    """Return a column in a type that Spark has."""
    kind = column.type
    if pa.types.is_large_string(kind):
        return column.cast(pa.string())
    if pa.types.is_list(kind) and pa.types.is_struct(kind.value_type):  # perhaps the links of pages
        parts = [kind.value_type.field(at) for at in range(kind.value_type.num_fields)]
        if all(pa.types.is_large_string(part.type) for part in parts):
            return column.cast(pa.list_(pa.struct([(part.name, pa.string()) for part in parts])))
    return column


class _WantedRows(FilteredCorpus):
    """Rows that are wanted, with the URLs in their texts, because they are written."""

    def _stripped(self, batch: Rows) -> Rows:
        return batch


class _Numbers:
    """Counts the rows of a partition, and those of each piece."""

    def __init__(self) -> None:
        self._piece: tuple[Any, Any] | None = None
        self._row = self._count = 0

    def of(self, batch: Rows) -> dict[str, Any]:
        """Return the columns that say which rows these are."""
        files, starts, keys = (batch.column(name) for name in _NUMBERED)
        rows = np.empty(len(batch), np.int64)
        if not len(batch):
            return {FILE: files, START: starts, KEY: keys, ROW: pa.array(rows)}
        for begin, end in pairwise(piece_bounds(batch)):
            piece = files[begin].as_py(), starts[begin].as_py()
            if piece != self._piece:
                self._piece, self._row = piece, 0
            rows[begin:end] = np.arange(self._row, self._row + end - begin)
            self._row += end - begin
        first = (keys[0].as_py() >> ROW_BITS << ROW_BITS) + self._count
        self._count += len(batch)
        keys = pa.array(np.arange(first, first + len(batch)))
        return {FILE: files, START: starts, KEY: keys, ROW: pa.array(rows)}


_TEXT, _NAME = "lookalike_text", "lookalike_name"


@dataclass(frozen=True, eq=False)
class Sources:
    """A corpus to be de-duplicated, and all documents that are compared."""

    corpus: Prepared
    documents: Any
    """The corpus, or an old one and the corpus: a frame that tells where its rows come from."""
    compared: Columns
    """Of the documents."""
    left_out: dict[str, int]
    """Rows that were left out, by kind."""
    has_old: bool = False

    @classmethod
    def of(cls, corpus: Prepared, old: Prepared | None) -> Sources:
        """Return a corpus, and an old one if there is one."""
        if old is None:
            return cls(corpus, corpus.frame, corpus.compared, corpus.left_out)

        def strings(named: Columns) -> list[Any]:
            name = sql.lit(None) if named.id is None else sql.col(f"`{named.id}`")
            text = sql.col(f"`{named.text}`")
            return [text.cast("string").alias(_TEXT), name.cast("string").alias(_NAME)]

        kinds = {part.name: part.dataType for part in corpus.frame.schema.fields}
        absent = [sql.lit(None).cast(kinds[name]).alias(name) for name in corpus.names]
        present = [sql.col(f"`{name}`") for name in corpus.names]
        sides = [
            numbered_columns(old.frame, [*absent, *strings(old.compared)], old=True),
            numbered_columns(corpus.frame, [*present, *strings(corpus.compared)]),
        ]
        if any(ROW in side.columns for side in sides):
            sides = [
                side if ROW in side.columns else side.withColumn(ROW, sql.lit(None).cast("long"))
                for side in sides
            ]
        compared = Columns(_TEXT, _NAME, corpus.columns.order)
        left_out = dict(Counter(corpus.left_out) + Counter(old.left_out))
        return cls(corpus, sides[0].union(sides[1]), compared, left_out, has_old=True)

    @property
    def plain_names(self) -> bool:
        """Whether all documents have their ids from a column of the corpus."""
        return self.corpus.columns.id is not None and not self.has_old


_SIGNATURES = ".lookalike"


@dataclass
class OldFiles:
    """Files of an old corpus; `format` is for names that tell none, `bad` counts lines left out."""

    path: str
    format: str | None = None
    skip_bad: bool = False
    bad: int = 0

    def frame(self, spark: Any, new: Columns, html: str | None) -> Any:
        """Return the columns named as in the new corpus, or obvious ones; all if one has pages."""
        check_old(self.path)
        corpus = SparkCorpus.read(
            spark,
            self.path,
            format=format_of(PurePosixPath(self.path)) or self.format,  # type: ignore[arg-type]
            text=new.text,
            id=new.id,
            order=None,
            skip_bad=self.skip_bad,
            html=html,
            old=True,
        )
        self.bad = corpus.bad
        return corpus.frame


def old_frame(spark: Any, against: Any, new: Columns, html: str | None = None) -> Any | None:
    """Return `against` as a frame; None stays None. The column `html` may have pages."""
    if against is None:
        return None
    if isinstance(against, str | os.PathLike):
        against = OldFiles(os.fspath(against))
    if isinstance(against, OldFiles):
        return against.frame(spark, new, html)
    return frame_of("against", against)


def check_old(path: str) -> None:
    """Refuse signatures without documents."""
    if PurePosixPath(path).suffix == _SIGNATURES:
        raise ArgumentError(
            Said("against"),
            f" is {escape_terminal(path)}, which has only signatures, and Spark compares "
            "documents; give the old corpus itself",
        )
