"""Corpora that Spark reads and writes: files, folders and patterns, here or at an address.

Output is a folder, with a part from each partition. Lines of JSON Lines and text are written as
they are, byte for byte, as in the local job.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from lookalike.corpora.base import Corpus, Problems, Rows, chosen_columns
from lookalike.corpora.columns import find_columns, id_column
from lookalike.corpora.formats import FORMATS, format_of
from lookalike.errors import ArgumentError, DocumentError, FileError, Said
from lookalike.shown import escape_terminal
from lookalike.spark.packed import sql

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
    builder = session.builder.appName("lookalike dedup")
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


@dataclass(frozen=True)
class SparkCorpus:
    """A corpus as a frame: with all its columns, or lines beside the needed columns."""

    frame: Any
    format: str
    text: str | None
    id: str | None
    bad: int

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
        whole: bool,
        skip_bad: bool,
        html: str | None = None,
        old: bool = False,
    ) -> SparkCorpus:
        """Open a corpus.

        With `whole`, or if one of them is `html`, all columns are read, and no lines. Columns of an
        `old` corpus need not have these names.
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
            if html is not None and html in names:
                whole, id = True, id_column(corpus, id)
            else:
                columns = find_columns(corpus, text, id, order)
                text, id = columns.text, columns.id
            wanted = dict.fromkeys([*(names if whole else ()), text, id, order])
            fields = [name for name in wanted if name is not None]
            parsed, bad = _parsed(lines, fields, path, skip_bad)
            read = [sql.col(f"row.`{name}`").alias(name) for name in fields]
            frame = parsed.select(*([] if whole else [LINE]), *read)
            return cls(frame, format, text, id, bad)

    def write(self, frame: Any, path: str) -> None:
        """Write rows to a new folder, in the format of the corpus.

        Parts of JSON Lines are called .jsonl where renaming costs nothing. Elsewhere they keep the
        names that Spark gives them, .txt or .json; `lookalike dedup` reads both.
        """
        writer, options = _READERS[self.format]
        if LINE in frame.columns:
            frame, writer = frame.select(LINE), "text"
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


def _columns(lines: Any) -> list[str]:
    names: dict[str, None] = {}
    for row in lines.limit(_LINES_LOOKED_AT).collect():
        with suppress(ValueError, RecursionError):
            found = json.loads(row.value)
            names |= dict.fromkeys(found) if isinstance(found, dict) else {}
    return list(names)


def _parsed(lines: Any, fields: list[str], path: str, skip_bad: bool) -> tuple[Any, int]:
    """Return lines that are objects, with these fields as `row`, and how many others there are."""
    from pyspark.sql.types import StringType, StructField, StructType

    schema = StructType([StructField(name, StringType()) for name in [*fields, _BAD]])
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
