"""CSV and TSV, read by DuckDB. All values are read as strings, so none of them changes."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.corpora.base import (
    BATCH_ROWS,
    MAX_DOCUMENT,
    Problems,
    Rows,
    chosen_columns,
    pa,
    read_ahead,
)
from lookalike.corpora.columns import TEXT_GUESSES
from lookalike.corpora.encodings import Encodings
from lookalike.corpora.formats import Format, Output, duck
from lookalike.corpora.formats.lines import (
    LineBatch,
    LineCorpus,
    Lines,
    count_newlines,
    line_batches,
)
from lookalike.errors import DocumentError, FileError, FormatError, Said
from lookalike.storage.files import temporary_folder

_QUOTE, _NEWLINE, _RETURN = b'"\n\r'

_QUOTES_AT_A_TIME = 1 << 16

State = tuple[bool, int]
"""Whether a position is inside quotes, and the byte before it."""


class RecordBatch(LineBatch):
    """Consecutive records of a file."""

    def line(self, index: int) -> int:
        """Return the line number at which a record begins."""
        return self.first + count_newlines(self.data[: self.ends[index - 1] if index else 0])


class Records(Lines):
    """Finds where records end: at \\n, \\r or both, outside quotes."""

    begin: State = (False, _NEWLINE)
    batch = RecordBatch
    marks = b'"\n\r'

    def __init__(self, delimiter: str) -> None:
        self._before_values = (ord(delimiter), _NEWLINE, _RETURN, _QUOTE)

    def ends(
        self, data: NDArray[np.uint8], state: State, at_end: bool
    ) -> tuple[NDArray[np.int64], State]:
        """Return where records end, and the state after the data."""
        if not len(data):
            return np.empty(0, np.int64), state
        inside, before = state
        turns = self._turns(data, inside, before)
        ends, _ = super().ends(data, None, at_end)
        returns = _places(data, _RETURN)
        if len(returns):
            # One that a newline follows, or may follow, is not yet the end.
            following = data[np.minimum(returns + 1, len(data) - 1)]
            at_last = returns == len(data) - 1
            alone = returns[np.where(at_last, at_end, following != _NEWLINE)]
            ends = np.union1d(ends, alone + 1) if len(alone) else ends
        if len(turns) or inside:
            ends = ends[(np.searchsorted(turns, ends - 1) + inside) % 2 == 0]
        if before == _RETURN and not inside and data[0] != _NEWLINE:
            ends = np.append(0, ends)  # the record before ended with it
        last = int(data[-1])
        if last == _QUOTE and (not len(turns) or turns[-1] != len(data) - 1):
            last = 0  # no value begins after it
        return ends, (bool((len(turns) + inside) % 2), last)

    def newlines(self, data: NDArray[np.uint8], ends: NDArray[np.int64]) -> int:
        return count_newlines(data)

    def _turns(self, data: NDArray[np.uint8], inside: bool, before: int) -> NDArray[np.int64]:
        """Return the quotes that begin or end a quoted value.

        A quote begins one only where a value begins, not in 5" of snow. A doubled quote ends and
        begins it.
        """
        quotes = _places(data, _QUOTE)
        ahead = np.where(quotes > 0, data[quotes - 1], before)
        if np.isin(ahead[int(inside) :: 2], self._before_values).all():
            return quotes
        turning = np.zeros(len(quotes), np.bool_)
        ended = -1 if before == _QUOTE else -2  # the last quote that turned
        for begin in range(0, len(quotes), _QUOTES_AT_A_TIME):  # objects take more than numbers
            part = slice(begin, begin + _QUOTES_AT_A_TIME)
            turned = []
            for place, byte in zip(quotes[part].tolist(), ahead[part].tolist(), strict=True):
                turns = inside or (
                    ended == place - 1 if byte == _QUOTE else byte in self._before_values
                )
                if turns:
                    ended, inside = place, not inside
                turned.append(turns)
            turning[part] = turned
        return quotes[turning]


def _places(data: NDArray[np.uint8], byte: int) -> NDArray[np.int64]:
    """Return the positions of a byte; fast if there are none."""
    found = data == byte
    return np.flatnonzero(found) if found.any() else np.empty(0, np.int64)


_SMALLEST_BUFFER = 4 << 20
_PREFIX = "lookalike-csv-"
_NOT_UTF8 = "not utf-8 encoded"  # in the message of DuckDB for a record that is not UTF-8


class DelimitedCorpus(LineCorpus):
    """CSV or TSV files with the same header; DuckDB reads a batch of whole records at a time."""

    def __init__(
        self, paths: Sequence[Path], format: str, encodings: Encodings | None = None
    ) -> None:
        super().__init__(paths, format, encodings)
        first = next(self._texts(self.paths[0]), "")
        self.delimiter = "\t" if format == "tsv" else max(",;\t|", key=first.count)
        self._columns = self._header(self.paths[0])
        if len(set(self._columns)) != len(self._columns):
            raise FormatError(
                f"{self.paths[0]}: its first line is {first[:200]!r}; expected a header without "
                "duplicate column names"
            )
        for path in self.paths[1:]:
            other = self._header(path)
            if other != self._columns:
                raise FormatError(
                    f"{path} has the columns {', '.join(other)}, but {self.paths[0]} has "
                    f"{', '.join(self._columns)}; expected the same columns in the same order"
                )

    def columns(self) -> list[str]:
        return list(self._columns)

    def read(self, columns: Sequence[str], problems: Problems) -> Iterator[Rows]:
        headers: dict[Path, bytes] = {}
        with temporary_folder(_PREFIX) as folder, duck.connection() as database:
            for batch in read_ahead(self.batches(problems, Records(self.delimiter))):
                if batch.path not in headers:
                    if batch.first != 1:
                        raise FormatError(
                            f"{batch.path}: its first line is not a header, or is too long"
                        )
                    headers[batch.path] = batch.data[: batch.ends[0]].tobytes()
                header = headers[batch.path]
                part = _Part(batch, header, folder / "records.csv")
                for rows in self._parsed(part, database, problems):
                    yield chosen_columns(rows, columns, pa.string())
                self.done = batch.done

    def _header(self, path: Path) -> list[str]:
        """Return the column names; a column without a name is named as pandas does it."""
        try:
            header = next(csv.reader(self._texts(path), delimiter=self.delimiter), None)
        except csv.Error as error:
            raise FormatError(f"{path}: its header cannot be read ({error})") from error
        if header is None:
            raise FormatError(f"{path} is empty; expected a header")
        return [name or f"Unnamed: {at}" for at, name in enumerate(header)]

    def _texts(self, path: Path) -> Iterator[str]:
        for batch in line_batches(path, MAX_DOCUMENT, Problems(), None, self.encodings):
            for index, line in enumerate(batch.lines):
                try:
                    yield str(line.as_py().decode())
                except UnicodeDecodeError:
                    raise FileError(f"{batch.where(index)}: {batch.undecodable()}") from None

    def _parsed(self, part: _Part, database: duck.Database, problems: Problems) -> Iterator[Rows]:
        # All columns are parsed, so that each reading finds the same bad rows.
        names = ", ".join(map(duck.quoted_name, self._columns))
        try:
            result = database.sql(f"SELECT {names} FROM {self._source(part, problems.skip_bad)}")
            yield from duck.record_batches(result, BATCH_ROWS)
            if problems.skip_bad:
                for record, message in _rejected(database):
                    problems.report(part.where(record), part.reason(message))
        except duck.duckdb.Error as error:
            raise _readable(error, part) from error

    def _source(self, part: _Part, skip_bad: bool) -> str:
        """Return DuckDB's table function, with all options set."""
        kinds = ", ".join(f"{duck.quoted(name)}: 'VARCHAR'" for name in self._columns)
        buffer = max(2 * part.longest, _SMALLEST_BUFFER)
        options = [
            "auto_detect=false",
            "header=true",
            f"delim={duck.quoted(self.delimiter)}",
            "quote='\"'",
            "escape='\"'",
            "allow_quoted_nulls=false",  # an empty text is not a missing one
            f"columns={{{kinds}}}",
            "compression='none'",
            f"max_line_size={buffer}",
            f"buffer_size={buffer}",
            "hive_partitioning=false",
            f"ignore_errors={str(skip_bad).lower()}",
            *(["store_rejects=true"] if skip_bad else []),
        ]
        return f"read_csv({duck.quoted_paths([part.file])}, {', '.join(options)})"


class _Part:
    """A batch of records in a separate file, after the header."""

    def __init__(self, batch: LineBatch, header: bytes, file: Path) -> None:
        self._batch = batch
        self._has_header = batch.first == 1
        self.path = batch.path
        self.file = file
        self.longest = max(len(header), int(np.diff(batch.ends, prepend=0).max()))
        try:
            with open(file, "wb") as opened:
                opened.write(b"" if self._has_header else header)
                opened.write(batch.data[: batch.ends[-1]].data)
        except OSError as error:
            raise FileError(
                f"{file} cannot be written: {error.strerror}; set TMPDIR to another folder"
            ) from error

    def where(self, record: int) -> str:
        """Return the place of a record for messages; DuckDB counts from the header, which is 1."""
        return self._batch.where(record - (1 if self._has_header else 2))

    def reason(self, message: str) -> str:
        """Return what is wrong with a record, by DuckDB's message."""
        return self._batch.undecodable() if _NOT_UTF8 in message else message


def _rejected(database: duck.Database) -> list[tuple[int, str]]:
    """Return the skipped records, and one error of each."""
    found: list[tuple[int, str]] = database.sql(
        "SELECT line, min(error_message) FROM reject_errors GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    for table in ("reject_errors", "reject_scans"):
        database.execute(f"DROP TABLE {table}")
    return found


def _readable(error: Exception, part: _Part) -> DocumentError | FileError:
    """Return DuckDB's error with the place of the record."""
    text = str(error)
    record = re.search(r"CSV Error on Line: (\d+)", text)
    if record is None:
        return FileError(f"{part.path}: cannot be read: {duck.first_line(error)}")
    reasons = [part for part in text.splitlines()[1:4] if part and not part.startswith("Possible")]
    reason = part.reason("; ".join(reasons)[:500])
    return DocumentError(
        f"{part.where(int(record[1]))}: {reason}; correct it, or skip such rows with ",
        Said("skip_bad"),
    )


def _write(batches: Iterator[Rows], schema: Any, output: Output, delimiter: str) -> None:
    if isinstance(output.like, DelimitedCorpus):
        delimiter = output.like.delimiter
    how = ("FORMAT csv", "HEADER true", f"DELIMITER {duck.quoted(delimiter)}")
    duck.write(batches, schema, output, how)


def _begins(text: str, whole: bool, delimiters: str) -> bool:
    """Return whether all records have as many values as the first has different names."""
    first = next((line for line in text.split("\n") if line and not line.isspace()), "")
    delimiter = max(delimiters, key=first.count)
    try:
        records = list(filter(None, csv.reader(io.StringIO(text), delimiter=delimiter)))
    except csv.Error:
        return False
    header = records[0] if records else []
    records = records[1:] if whole else records[1:-1]
    named = any(name.lower() in TEXT_GUESSES for name in header)
    return (
        len(header) > 1
        and len(set(header)) == len(header)
        and (named or len(records) > 0)
        and all(len(record) == len(header) for record in records)
    )


CSV = Format(
    name="csv",
    suffixes=(".csv",),
    open=lambda paths, encodings: DelimitedCorpus(paths, "csv", encodings),
    write=partial(_write, delimiter=","),
    # Tabs are tried first.
    begins=lambda text, whole: not _begins(text, whole, "\t") and _begins(text, whole, ",;|"),
    shards=True,
    streams=True,
)
TSV = Format(
    name="tsv",
    suffixes=(".tsv",),
    open=lambda paths, encodings: DelimitedCorpus(paths, "tsv", encodings),
    write=partial(_write, delimiter="\t"),
    begins=partial(_begins, delimiters="\t"),
    shards=True,
    streams=True,
)
