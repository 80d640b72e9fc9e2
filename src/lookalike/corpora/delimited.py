"""CSV and TSV, read by DuckDB. All values are strings, so that none is changed on the way."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lookalike.corpora.base import BATCH_ROWS, Problems, arrow
from lookalike.corpora.duck import (
    connection,
    duckdb_errors,
    quoted,
    quoted_name,
    quoted_paths,
    record_batches,
)
from lookalike.corpora.files import FileCorpus
from lookalike.corpora.formats import compression_of
from lookalike.corpora.lines import line_batches
from lookalike.errors import DocumentError, FileError, FormatError

if TYPE_CHECKING:
    import duckdb
    import pyarrow

__all__ = ["DelimitedCorpus"]

_SMALLEST_BUFFER, _LARGEST_BUFFER = 32 << 20, 256 << 20


class DelimitedCorpus(FileCorpus):
    """CSV or TSV files with a header, all with the same columns. A row has less than 256 MB."""

    def __init__(self, paths: Sequence[Path], format: str) -> None:
        super().__init__(paths, format)
        first_line = next(_lines(self.paths[0]), "")
        self.delimiter = "\t" if format == "tsv" else _delimiter_of(first_line)
        self._columns = _header(self.paths[0], self.delimiter)
        if len(set(self._columns)) != len(self._columns) or not all(self._columns):
            raise FormatError(
                f"{self.paths[0]}: its first line is {first_line[:200]!r}; expected a header with "
                "a different name for each column"
            )
        for path in self.paths[1:]:
            other = _header(path, self.delimiter)
            if other != self._columns:
                raise FormatError(
                    f"{path}: its columns are {', '.join(other)}, those of {self.paths[0]} are "
                    f"{', '.join(self._columns)}; expected the same, in the same order"
                )

    def columns(self) -> list[str]:
        """Return the names in the header."""
        return list(self._columns)

    def read(self, columns: Sequence[str], problems: Problems) -> Iterator[pyarrow.RecordBatch]:
        """Yield batches of these columns."""
        # All columns are looked at, so that each reading finds the same rows bad.
        names = ", ".join(map(quoted_name, self._columns))
        try:
            with connection() as database:
                result = database.sql(f"SELECT {names} FROM {self._source(problems)}")
                for batch in record_batches(result, BATCH_ROWS):
                    yield self._chosen(batch, columns)
                self.done = 1.0
                if problems.skip_bad:
                    _count_rejected(database, problems)
        except duckdb_errors() as error:
            raise _readable(error, self.name) from error

    def rows(self, problems: Problems) -> Iterator[pyarrow.RecordBatch]:
        """Yield batches of all columns."""
        return self.read(self._columns, problems)

    def _chosen(self, batch: pyarrow.RecordBatch, columns: Sequence[str]) -> pyarrow.RecordBatch:
        """Return these columns; one that is not there is null."""
        pa = arrow()
        known = {name: batch.column(at) for at, name in enumerate(self._columns)}
        nulls = pa.nulls(len(batch), pa.string())
        return pa.record_batch([known.get(name, nulls) for name in columns], names=list(columns))

    def _source(self, problems: Problems) -> str:
        """Return the table function; nothing in it is guessed from the data."""
        kinds = ", ".join(f"{quoted(name)}: 'VARCHAR'" for name in self._columns)
        packed = any(compression_of(path) for path in self.paths)
        buffer = _LARGEST_BUFFER if packed else max(self.sizes)
        buffer = min(max(buffer, _SMALLEST_BUFFER), _LARGEST_BUFFER)
        compression = {"gzip": "gzip", "zstd": "zstd"}.get(compression_of(self.paths[0]) or "")
        options = [
            "auto_detect=false",
            "header=true",
            f"delim={quoted(self.delimiter)}",
            "quote='\"'",
            "escape='\"'",
            f"columns={{{kinds}}}",
            f"compression={quoted(compression or 'none')}",
            f"max_line_size={buffer}",
            f"buffer_size={buffer}",
            "hive_partitioning=false",
            f"ignore_errors={str(problems.skip_bad).lower()}",
            *(["store_rejects=true"] if problems.skip_bad else []),
        ]
        return f"read_csv({quoted_paths(self.paths)}, {', '.join(options)})"


def _header(path: Path, delimiter: str) -> list[str]:
    """Return the names of columns, which may go over several lines."""
    try:
        header = next(csv.reader(_lines(path), delimiter=delimiter), None)
    except csv.Error as error:
        raise FormatError(f"{path}: its header cannot be read ({error})") from error
    if header is None:
        raise FormatError(f"{path}: is empty; expected a header")
    return header


def _lines(path: Path) -> Iterator[str]:
    """Yield lines as text, as far as they are asked for."""
    for batch in line_batches(path):
        for index, line in enumerate(batch.lines):
            try:
                yield str(line.as_py().decode())
            except UnicodeDecodeError as error:
                raise FileError(f"{batch.where(index)}: is not UTF-8 ({error.reason})") from error


def _delimiter_of(header: str) -> str:
    """Return the character that the header has most of, a comma if none."""
    return max(",;\t|", key=header.count)


def _count_rejected(database: duckdb.DuckDBPyConnection, problems: Problems) -> None:
    """Count lines, not errors: one line may have several."""
    rejected = database.sql(
        "SELECT s.file_path, e.line, min(e.error_message) FROM reject_errors e "
        "JOIN reject_scans s USING (scan_id, file_id) GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    for path, line, message in rejected:
        problems.report(f"{path}, line {line}", str(message))


def _readable(error: Exception, name: str) -> DocumentError | FileError:
    """Return DuckDB's error in two lines: where, and what."""
    text = str(error)
    line = re.search(r"CSV Error on Line: (\d+)", text)
    if line is None:
        return FileError(f"{name}: cannot be read: {text.splitlines()[0]}")
    reasons = [part for part in text.splitlines()[1:4] if part and not part.startswith("Possible")]
    return DocumentError(
        f"{name}, line {line[1]}: {'; '.join(reasons)[:500]}; mend it, or leave such rows out with "
        "skip_bad"
    )
