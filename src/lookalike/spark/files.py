"""Corpora that Spark reads and writes: files, folders and patterns, here or at an address.

Output is a folder, with a part from each partition. Lines of JSON Lines and text are written as
they are, byte for byte, as in the local job.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from lookalike.corpora.base import (
    Corpus,
    Problems,
    Rows,
    chosen_columns,
    compute,
    pa,
    refuse_twice,
)
from lookalike.corpora.columns import find_columns, id_column
from lookalike.corpora.formats import FORMATS, format_of
from lookalike.corpora.formats.json_lines import extended_line, line_with_value
from lookalike.dedup.pairs import Flags
from lookalike.errors import ArgumentError, DocumentError, FileError, Said
from lookalike.shown import escape_terminal
from lookalike.spark.packed import Batches, map_arrow, sql

_CSV = {"header": True, "multiLine": True, "escape": '"'}
_READERS: dict[str, tuple[str, dict[str, Any]]] = {
    "jsonl": ("json", {}),
    "csv": ("csv", {**_CSV, "sep": ","}),
    "tsv": ("csv", {**_CSV, "sep": "\t", "extension": "tsv"}),
    "parquet": ("parquet", {}),
    "text": ("text", {}),
}
"""Which of `FORMATS` Spark can read and write: what it calls them, and with which options."""

LINE = "lookalike_line"
_BAD = "lookalike_bad"
_LINES_LOOKED_AT = 100
_RENAMED_FOR_NOTHING = ("file", "hdfs")
"""File systems that rename files without copying them."""


def session_of(master: str | None) -> Any:
    """Return a session on a master, or without one that of the environment, as of spark-submit."""
    import os
    import sys

    from lookalike.checks import optional_module

    session = optional_module("pyspark.sql", "--engine spark", extra="spark").SparkSession
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = session.builder.appName("lookalike")
    try:
        return (builder if master is None else builder.master(master)).getOrCreate()
    except Exception as error:
        raise FileError(
            f"Spark did not start: {_reason(error)}; expected Java 17 (in Debian "
            "openjdk-17-jre-headless), and a master such as spark://HOST:7077 or local[4]"
        ) from error


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [repr(error)]
    return escape_terminal(lines[0])


@contextmanager
def _spark_errors(path: str, what: str) -> Iterator[None]:
    """Raise errors of Spark and Java as `FileError`."""
    try:
        yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("pyspark", "py4j"):
            raise
        raise FileError(f"{escape_terminal(path)} {what}: {_reason(error)}") from error


class StreamedRows(Corpus):
    """The rows of a partition, read once, as they come."""

    format = "table"

    def __init__(
        self, names: Sequence[str], batches: Iterable[Any] = (), name: str = "the DataFrame"
    ) -> None:
        self._names, self._batches, self.name = list(names), batches, name

    def columns(self) -> list[str]:
        """Return the names of the columns."""
        return self._names

    def read(self, columns: Sequence[str], problems: Problems) -> Iterator[Rows]:
        """Yield batches of these columns."""
        for batch in self._batches:
            yield chosen_columns(batch, columns)

    def identity(self) -> None:
        """Return None: whether it is the same another time is not known."""


def with_texts(batch: Rows, name: str, mask: Flags, texts: Any) -> Rows:
    """Return rows of which some have other texts; and if there are lines, other lines."""
    at = batch.schema.names.index(name)
    column = batch.column(at)
    new = compute.replace_with_mask(column, pa.array(mask), texts.cast(column.type))
    batch = batch.set_column(at, name, new)
    if LINE not in batch.schema.names:
        return batch
    at = batch.schema.names.index(LINE)
    lines = batch.column(at)
    old = lines.filter(pa.array(mask)).to_pylist()
    changed = [
        line_with_value(name, line, text) for line, text in zip(old, texts.to_pylist(), strict=True)
    ]
    new = compute.replace_with_mask(lines, pa.array(mask), pa.array(changed, lines.type))
    return batch.set_column(at, LINE, new)


def check_added(frame: Any, names: Sequence[str]) -> None:
    """Refuse to add columns that are there."""
    refuse_twice("the DataFrame", names, frame.columns)


@dataclass(frozen=True)
class SparkCorpus:
    """A corpus as a frame: with all its columns, or lines beside the needed columns."""

    frame: Any
    format: str
    text: str | None
    id: str | None
    bad: int
    names: tuple[str, ...] = ()
    """All columns."""

    @classmethod
    def read(
        cls,
        spark: Any,
        path: str,
        *,
        format: str | None,
        text: str | None,
        id: str | None,
        order: str | None,
        skip_bad: bool,
        html: str | None = None,
        old: bool = False,
    ) -> SparkCorpus:
        """Open a corpus.

        If one of its columns is `html`, all of them are read, and no lines. Columns of an `old`
        corpus need not have these names.
        """
        format = format or format_of(PurePosixPath(path))  # type: ignore[arg-type]
        if format not in _READERS:
            told = "has no known file extension" if format is None else f"is {format}"
            known = ", ".join(name for name in FORMATS.names() if name in _READERS)
            raise ArgumentError(
                f"{escape_terminal(path)} {told}; Spark reads {known}: say which with --format"
            )
        reader, options = _READERS[format]
        with _spark_errors(path, "cannot be read"):
            if format != "jsonl":
                frame = spark.read.format(reader).options(**options).load(path)
                frame = frame.withColumnRenamed("value", "text") if format == "text" else frame
                return cls(frame, format, text, id, 0)
            lines = spark.read.text(path).where("trim(value) <> ''")
            names = _columns(lines)
            if old:
                text, id = (name if name in names else None for name in (text, id))
            corpus = StreamedRows(names, name=escape_terminal(path))
            kinds = {}
            if html is not None and html in names:
                id = id_column(corpus, id)
                kinds = {one.name: one.dataType for one in spark.read.json(path).schema}
            else:
                columns = find_columns(corpus, text, id, order)
                text, id = columns.text, columns.id
            wanted = dict.fromkeys([*(names if kinds else ()), text, id, order])
            fields = {
                name: None if name in (text, html) else kinds.get(name)
                for name in wanted
                if name is not None
            }
            parsed, bad = _parsed(lines, fields, path, skip_bad)
            read = [sql.col(f"row.`{name}`").alias(name) for name in fields]
            frame = parsed.select(*([] if kinds else [LINE]), *read)
            return cls(frame, format, text, id, bad, tuple(names))

    def write(self, frame: Any, path: str, added: Sequence[str] = ()) -> None:
        """Write rows to a new folder, in the format of the corpus; lines get the `added` columns.

        Parts of JSON Lines are called .jsonl where renaming costs nothing. Elsewhere they keep the
        names that Spark gives them, .txt or .json; `lookalike dedup` reads both.
        """
        writer, options = _READERS[self.format]
        if LINE in frame.columns:
            refuse_twice("the corpus", added, self.names)
            frame, writer = frame.select(LINE, *added), "text"
            if added:
                frame = map_arrow(frame, _extended_lines, f"{LINE} string")
        elif writer == "text" and len(frame.columns) > 1:
            writer = "json"
        with _spark_errors(path, "cannot be written"):
            frame.write.format(writer).options(**options).save(path)
        if self.format == "jsonl" or writer == "json":
            _rename_parts(frame.sparkSession, path)


def check_new(spark: Any, path: str) -> None:
    """Refuse an output that exists already before the job; Spark would do so after it."""
    place = _place(spark, path)
    if place is None:
        return
    files, folder, _ = place
    with _spark_errors(path, "cannot be looked at"):
        there = files.exists(folder)
    if there:
        raise FileError(f"{escape_terminal(path)} exists already; name a new folder, or remove it")


def _place(spark: Any, path: str) -> tuple[Any, Any, Any] | None:
    """Return the file system of a path, its Java object and class; None with Spark Connect."""
    jvm, context = getattr(spark, "_jvm", None), getattr(spark, "_jsc", None)
    if jvm is None or context is None:
        return None
    make = jvm.org.apache.hadoop.fs.Path
    with _spark_errors(path, "cannot be used"):
        folder = make(path)
        return folder.getFileSystem(context.hadoopConfiguration()), folder, make


def _rename_parts(spark: Any, path: str) -> None:
    place = _place(spark, path)
    if place is None or place[0].getScheme() not in _RENAMED_FOR_NOTHING:
        return
    files, folder, make = place
    for status in files.listStatus(folder):
        name = status.getPath().getName()
        for ending in (".txt", ".json"):
            stem, found, packing = name.partition(ending)
            if name.startswith("part-") and found:
                files.rename(status.getPath(), make(folder, f"{stem}.jsonl{packing}"))
                break


def _extended_lines(batches: Batches) -> Iterator[Any]:
    """Add the columns behind the first one to the lines that this has."""
    for batch in batches:
        names = batch.schema.names[1:]
        rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
        lines = [
            extended_line(line, dict(zip(names, row, strict=True)))[:-1] for line, *row in rows
        ]
        yield pa.record_batch({LINE: pa.array(lines, pa.string())})


def _columns(lines: Any) -> list[str]:
    names: dict[str, None] = {}
    for row in lines.limit(_LINES_LOOKED_AT).collect():
        with suppress(ValueError, RecursionError):
            found = json.loads(row.value)
            names |= dict.fromkeys(found) if isinstance(found, dict) else {}
    return list(names)


def _parsed(lines: Any, fields: Mapping[str, Any], path: str, skip_bad: bool) -> tuple[Any, int]:
    """Return lines that are objects, with these fields as `row`, and how many others there are.

    Fields without a type are read as text.
    """
    from pyspark.sql.types import StringType, StructField, StructType

    kinds = {**fields, _BAD: None}
    schema = StructType([StructField(name, kind or StringType()) for name, kind in kinds.items()])
    how = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _BAD}
    row = sql.from_json("value", schema, how).alias("row")
    parsed = lines.select(sql.col("value").alias(LINE), row)
    is_bad = sql.col(f"row.{_BAD}").isNotNull() | sql.col("row").isNull()
    bad = parsed.where(is_bad).count()
    if bad and not skip_bad:
        raise DocumentError(
            f"{escape_terminal(path)} has {bad:,} lines that are not JSON objects; correct them, "
            "or leave them out with ",
            Said("--skip-bad"),
        )
    return parsed.where(~is_bad), bad
