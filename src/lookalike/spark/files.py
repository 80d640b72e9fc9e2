"""Corpora that Spark reads and writes: files, folders and patterns, here or at an address.

What is written is a folder, with a part from each partition. Lines of JSON Lines and text stay as
they are, byte for byte, as in the local job.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from lookalike.corpora.columns import ID_GUESSES, TEXT_GUESSES
from lookalike.corpora.formats import format_of
from lookalike.errors import ArgumentError, DocumentError, FileError, Said
from lookalike.shown import escape_terminal
from lookalike.spark.packed import sql

FORMATS = ("jsonl", "csv", "tsv", "parquet", "text")

LINE = "lookalike_line"
_BAD = "lookalike_bad"
_LINES_LOOKED_AT = 100
_RENAMED_FOR_NOTHING = ("file", "hdfs")
"""File systems where another name costs nothing: elsewhere it is a copy."""


def session_of(master: str | None) -> Any:
    """Return a session on a master; without one, that of the surroundings, such as spark-submit."""
    import os
    import sys

    from lookalike.checks import optional_module

    session = optional_module("pyspark.sql", "--engine spark", extra="spark").SparkSession
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = session.builder.appName("lookalike dedup")
    try:
        return (builder if master is None else builder.master(master)).getOrCreate()
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
        raise FileError(
            f"Spark did not start: {escape_terminal(reason)}; expected Java 17 (in Debian "
            "openjdk-17-jre-headless), and a master such as spark://HOST:7077 or local[4]"
        ) from error


@dataclass(frozen=True)
class SparkCorpus:
    """A corpus as a frame: with all its columns, or lines beside what is needed of them."""

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
        """Open a corpus. `whole`: lines are not enough, all columns are needed, as they are where
        one of them is `html`. `old`: columns of these names need not be there.
        """
        format = format or format_of(PurePosixPath(path))  # type: ignore[arg-type]
        if format not in FORMATS:
            told = "tells no format" if format is None else f"is {format}"
            raise ArgumentError(
                f"{escape_terminal(path)} {told}; Spark reads {', '.join(FORMATS)}: say which with "
                "--format"
            )
        try:
            if format == "jsonl":
                lines = spark.read.text(path)
                return _of_lines(lines, path, text, id, order, whole, skip_bad, html, old)
            frame = _frame(spark, path, format)
        except Exception as error:
            if type(error).__module__.startswith("pyspark"):
                reason = str(error).strip().splitlines()[0]
                raise FileError(
                    f"{escape_terminal(path)} cannot be read: {escape_terminal(reason)}"
                ) from error
            raise
        return cls(frame, format, text, id, 0)

    def write(self, frame: Any, path: str) -> None:
        """Write rows to a new folder, in the format of the corpus.

        Parts of JSON Lines are called .jsonl where renaming costs nothing. Elsewhere they keep the
        names that Spark gives them, .txt or .json; `lookalike dedup` reads both.
        """
        self._write(frame, path)
        as_text = self.format == "text" and len(frame.columns) == 1
        if LINE in frame.columns or (self.format in ("jsonl", "text") and not as_text):
            _rename_parts(frame.sparkSession, path)

    def _write(self, frame: Any, path: str) -> None:
        try:
            if LINE in frame.columns:
                frame.select(LINE).write.text(path)
            elif self.format == "text" and len(frame.columns) == 1:
                frame.write.text(path)
            elif self.format in ("jsonl", "text"):
                frame.write.json(path)
            elif self.format == "parquet":
                frame.write.parquet(path)
            else:
                separator = "," if self.format == "csv" else "\t"
                frame.write.csv(path, header=True, sep=separator)
        except Exception as error:
            if type(error).__module__.startswith("pyspark"):
                reason = str(error).strip().splitlines()[0]
                raise FileError(
                    f"{escape_terminal(path)} cannot be written: {escape_terminal(reason)}"
                ) from error
            raise


def check_new(spark: Any, path: str) -> None:
    """Refuse an output that is there already, before the job: Spark says so when all is done."""
    place = _place(spark, path)
    if place is None:
        return
    files, folder, _ = place
    try:
        there = files.exists(folder)
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
        raise FileError(
            f"{escape_terminal(path)} cannot be looked at: {escape_terminal(reason)}"
        ) from error
    if there:
        raise FileError(
            f"{escape_terminal(path)} is there already; name a folder that is not, or remove it"
        )


def _place(spark: Any, path: str) -> tuple[Any, Any, Any] | None:
    """Return the file system of a path, the path as it knows it, and what makes paths; None where
    the session has no access to any, as with Spark Connect.
    """
    jvm, context = getattr(spark, "_jvm", None), getattr(spark, "_jsc", None)
    if jvm is None or context is None:
        return None
    make = jvm.org.apache.hadoop.fs.Path
    try:
        folder = make(path)
        return folder.getFileSystem(context.hadoopConfiguration()), folder, make
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
        raise FileError(
            f"{escape_terminal(path)} cannot be used: {escape_terminal(reason)}"
        ) from error


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


def _frame(spark: Any, path: str, format: str) -> Any:
    if format == "text":
        return spark.read.text(path).withColumnRenamed("value", "text")
    if format == "parquet":
        return spark.read.parquet(path)
    separator = "," if format == "csv" else "\t"
    return spark.read.csv(path, header=True, sep=separator, multiLine=True, escape='"')


def _of_lines(
    lines: Any,
    path: str,
    text: str | None,
    id: str | None,
    order: str | None,
    whole: bool,
    skip_bad: bool,
    html: str | None,
    old: bool,
) -> SparkCorpus:
    """Return a corpus of JSON Lines: each line with the fields that are needed of it."""
    from pyspark.sql.types import StringType, StructField, StructType

    lines = lines.where("trim(value) <> ''")
    names: dict[str, None] = {}
    for row in lines.limit(_LINES_LOOKED_AT).collect():
        try:
            found = json.loads(row.value)
        except ValueError:
            continue
        names |= dict.fromkeys(found) if isinstance(found, dict) else {}
    if old:
        text, id = (name if name in names else None for name in (text, id))
    has_pages = html is not None and html in names
    whole = whole or has_pages
    if not has_pages:
        text = text or next((one for one in TEXT_GUESSES if one in names), None)
    if text is None and len(names) == 1 and not has_pages:
        text = next(iter(names))
    id = id or next((one for one in ID_GUESSES if one in names), None)
    if text is None and not has_pages:
        raise ArgumentError(
            f"{escape_terminal(path)} has the columns {', '.join(map(escape_terminal, names))}; "
            "say which one has the text with --text COLUMN"
        )
    wanted = list(names) if whole else [text, id, order]
    fields = [
        StructField(name, StringType())
        for name in dict.fromkeys(name for name in (*wanted, text, id, order) if name is not None)
    ]
    schema = StructType([*fields, StructField(_BAD, StringType())])
    how = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _BAD}
    parsed = lines.select(
        sql.col("value").alias(LINE), sql.from_json("value", schema, how).alias("row")
    )
    is_bad = sql.col(f"row.{_BAD}").isNotNull() | sql.col("row").isNull()
    bad = parsed.where(is_bad).count()
    if bad and not skip_bad:
        raise DocumentError(
            f"{escape_terminal(path)} has {bad:,} lines that are no objects of JSON; mend them, or "
            "leave them out with ",
            Said("--skip-bad"),
        )
    kept = parsed.where(~is_bad)
    columns = [sql.col(f"row.`{field.name}`").alias(field.name) for field in fields]
    frame = kept.select(*([] if whole else [LINE]), *columns)
    return SparkCorpus(frame, "jsonl", text, id, bad)
