"""Parquet files: read by pyarrow if all have one schema, else by DuckDB, which merges schemas."""

from __future__ import annotations

import os
import sys
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.corpora.base import (
    BATCH_BYTES,
    BATCH_ROWS,
    Problems,
    Rows,
    chosen_columns,
    limits,
    pa,
    read_ahead,
    reading_threads,
)
from lookalike.corpora.encodings import Encodings
from lookalike.corpora.formats import FileCorpus, Format, Output, duck
from lookalike.corpora.formats.parquet_layout import Pages, measure_pages, write_groups
from lookalike.errors import FileError
from lookalike.lazy import LazyModule
from lookalike.storage.files import file_errors

parquet = LazyModule("pyarrow.parquet", "Parquet")

_PAGE_DOCUMENTS = 8  # maximum of longest documents in a page; writers check page sizes rarely
_GROUP_ROWS = 1 << 17
# rows or, roughly, bytes of a row group that is written; each thread holds two
_GROUP_BYTES = 16 << 20
_MOST_WRITERS = 8
_COMPRESSION = "snappy"


class ParquetCorpus(FileCorpus):
    """Parquet files; a column that some of them lack is null there."""

    typed = True

    def __init__(self, paths: Sequence[Path], encodings: Encodings | None = None) -> None:
        super().__init__(paths, "parquet", encodings)
        self._count = self._decoded_bytes = 0
        self._held: deque[Rows] | None = None  # rows of the first reading, for the second
        self._held_identity: list[Any] | None = None
        schemas: list[Any] = []
        codecs: Counter[str] = Counter()
        for path in self.paths:
            with _opened(path) as file:
                self._count += file.metadata.num_rows
                self._decoded_bytes += _decoded_bytes(file.metadata)
                codecs += _codecs(file.metadata)
                if not any(schema.equals(file.schema_arrow) for schema in schemas):
                    schemas.append(file.schema_arrow)
        self.compression = _writable_codec(codecs)
        """The codec of most of its bytes, if it can be written."""
        self._columns: list[str] = schemas[0].names
        self._texts = [field.name for schema in schemas for field in schema if _is_text(field.type)]
        self._united = None if _is_plain(schemas) else _united(self.paths)
        if self._united is not None:
            try:
                with duck.connection() as database:
                    relation = database.sql(f"SELECT * FROM {self._united}")
                    self._columns = list(relation.columns)
            except duck.duckdb.Error as error:
                reason = f"the files have no common schema: {duck.first_line(error)}"
                raise FileError(f"{self.name}: {reason}") from error

    def columns(self) -> list[str]:
        return list(self._columns)

    def read(self, columns: Sequence[str], problems: Problems) -> Iterator[Rows]:
        if self._held and self._held_identity == self.identity():
            held, self._held, self.done = self._held, deque(), 1.0
            while held:
                yield chosen_columns(held.popleft(), columns)
        elif self._held is None and self._united is None and self._decoded_bytes <= self.room:
            self._held = deque()
            for batch in self._holding(problems):
                yield chosen_columns(batch, columns)
        else:
            yield from self._read(columns, problems)

    def _holding(self, problems: Problems) -> Iterator[Rows]:
        """Yield all columns; hold the rows if there is room and none of them is bad."""
        identity, bad, size = self.identity(), problems.bad, 0
        passed: deque[Rows] = deque()
        for batch in self._read(self._columns, problems):
            size += batch.nbytes
            passed.append(batch)
            if size > self.room:
                passed.clear()
            yield batch
        if size <= self.room and problems.bad == bad and identity == self.identity():
            self._held, self._held_identity = passed, identity

    def _read(self, columns: Sequence[str], problems: Problems) -> Iterator[Rows]:
        # All texts are checked, so that each reading skips the same bad rows.
        wanted = [*columns, *(self._texts if problems.skip_bad else ())]
        present = [column for column in dict.fromkeys(wanted) if column in self._columns]
        row = 0
        if self._united is None:
            # Here, because the thread that reads ahead does not know the limits.
            memory, _ = limits()  # half of it is for rows that are held, which are copies
            page = min(_PAGE_DOCUMENTS * self.max_document, (memory or sys.maxsize) // 2)
            batches = read_ahead(self._plain(present, page, problems))
            errors: tuple[type[Exception], ...] = (OSError, pa.ArrowException)
        else:
            batches, errors = self._by_duckdb(present), (duck.duckdb.Error,)
        try:
            for row, batch in batches:
                batch.validate(full=True)  # strings may not be UTF-8
                for part in self._of_good_length(batch, row, problems):
                    yield chosen_columns(part, columns)
                row += len(batch)
                self.done = row / max(1, self._count)
        except errors as error:
            reason = f"cannot be read after row {row}: {duck.first_line(error)}"
            raise FileError(f"{self.name}: {reason}") from error

    def _plain(
        self, columns: Sequence[str], page: int, problems: Problems
    ) -> Iterator[tuple[int, Rows]]:
        """Yield batches, and the number of the first row of each."""
        row = 0
        for path in self.paths:
            with _opened(path) as file:
                if not file.metadata.num_rows:
                    yield row, _empty(file.schema_arrow, columns)
                for group in range(file.metadata.num_row_groups):
                    described = file.metadata.row_group(group)
                    looked_at = self._columns if problems.skip_bad else columns
                    pages = measure_pages(path, described, looked_at)
                    where = f"{path}, row group {group}"
                    if not self._is_bounded(where, described.num_rows, pages, page, problems):
                        yield row, _empty(file.schema_arrow, columns)
                        row += described.num_rows
                        continue
                    rows = pages.rows_within(BATCH_BYTES, BATCH_ROWS)
                    some = file.iter_batches(rows, row_groups=[group], columns=columns)
                    for batch in _gathered(some):
                        yield row, batch
                        row += len(batch)

    def _is_bounded(
        self, where: str, rows: int, pages: Pages, most: int, problems: Problems
    ) -> bool:
        """Report a row group with a page that is too large, because pages are held whole."""
        if pages.largest <= most and pages.long_value <= self.max_document:
            return True
        problems.report(
            where,
            f"its {rows:,} rows have a page of {pages.largest:,} bytes with values of "
            f"{pages.long_value:,} bytes or more. The limits are {most:,} and "
            f"{self.max_document:,} bytes; raise max_document (--max-document) or the memory "
            "limit, or write smaller pages",
        )
        problems.bad += rows - 1
        return False

    def _of_good_length(self, batch: Any, row: int, problems: Problems) -> Iterator[Any]:
        """Yield a batch, split if it has many bytes, without rows whose texts are too long."""
        too_long, sizes = np.zeros(len(batch), bool), np.zeros(len(batch), np.int64)
        for column in batch.columns:
            lengths = _text_lengths(column)
            if lengths is not None:
                too_long |= lengths > self.max_document
                sizes += lengths
        for place in np.flatnonzero(too_long).tolist():
            problems.report_size(f"{self.name}, row {row + place}", self.max_document)
        if too_long.any():
            batch, sizes = batch.filter(pa.array(~too_long)), sizes[~too_long]
        begin = 0
        for end in _cuts(sizes, BATCH_BYTES):
            yield batch.slice(begin, end - begin)
            begin = end

    def _by_duckdb(self, columns: Sequence[str]) -> Iterator[tuple[int, Rows]]:
        names = ", ".join(map(duck.quoted_name, columns))
        row = 0
        with duck.connection() as database:
            found = database.sql(f"SELECT {names} FROM {self._united}")
            for batch in duck.record_batches(found, BATCH_ROWS):
                yield row, batch
                row += len(batch)


def _write(batches: Iterator[Rows], schema: Any, output: Output) -> None:
    """Write record batches of one schema, with its metadata, in several threads."""
    like = output.like.compression if isinstance(output.like, ParquetCorpus) else None
    threads = min(reading_threads(), _MOST_WRITERS)
    try:
        write_groups(_groups(batches), schema, output.file, like or _COMPRESSION, threads)
    except (OSError, pa.ArrowException) as error:
        raise FileError(f"{output.path} cannot be written: {error}") from error


def _groups(batches: Iterator[Rows]) -> Iterator[Any]:
    gathered: list[Any] = []
    rows = size = 0
    for batch in batches:
        gathered.append(batch)
        rows += len(batch)
        size += batch.nbytes
        if rows >= _GROUP_ROWS or size >= _GROUP_BYTES:
            yield pa.Table.from_batches(gathered)
            gathered, rows, size = [], 0, 0
    if rows:
        yield pa.Table.from_batches(gathered)


def _decoded_bytes(metadata: Any) -> int:
    """Return the bytes of a file's values; values in dictionaries may take more."""
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    return sum(group.total_byte_size for group in groups)


def _codecs(metadata: Any) -> Counter[str]:
    """Return the bytes of a file's first row group by codec."""
    found: Counter[str] = Counter()
    if metadata.num_row_groups:
        group = metadata.row_group(0)
        for chunk in map(group.column, range(group.num_columns)):
            found[chunk.compression] += chunk.total_compressed_size
    return found


def _writable_codec(codecs: Counter[str]) -> str | None:
    for codec, _ in codecs.most_common(1):
        if codec == "UNCOMPRESSED":
            return "none"
        if pa.Codec.is_available(codec.lower()):
            return codec.lower()
    return None


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    with file_errors(f"{path}:"):
        # pyarrow would take some names for addresses, and refuse those that are not Unicode.
        source = pa.OSFile(os.fsencode(path), "rb")
    with source:
        try:
            # Without buffering ahead, so that a large row group is not in memory whole.
            file = parquet.ParquetFile(source, pre_buffer=False)
        except (OSError, pa.ArrowException) as error:
            raise FileError(f"{path} is not valid Parquet: {error}") from error
        with file:
            yield file


def _gathered(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield batches of about the usual size made of smaller ones."""
    some: list[Any] = []
    size = rows = 0
    for batch in batches:
        some.append(batch)
        size, rows = size + batch.nbytes, rows + len(batch)
        if size + batch.nbytes > BATCH_BYTES or rows >= BATCH_ROWS:  # another would exceed it
            yield pa.concat_batches(some) if len(some) > 1 else batch
            some, size, rows = [], 0, 0
    if some:
        yield pa.concat_batches(some) if len(some) > 1 else some[0]


def _is_text(kind: Any) -> bool:
    types = pa.types
    if types.is_dictionary(kind):
        return _is_text(kind.value_type)
    kinds = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    return any(is_kind(kind) for is_kind in kinds)


def _text_lengths(column: Any) -> NDArray[np.int64] | None:
    """Return the lengths of texts in bytes, without decoding them; None for other types."""
    if not _is_text(column.type):
        return None
    if pa.types.is_dictionary(column.type):
        lengths = _text_lengths(column.dictionary)
        if lengths is None:
            return None
        indices = column.indices.fill_null(0).to_numpy(zero_copy_only=False)
        return lengths[indices] if len(lengths) else np.zeros(len(column), np.int64)
    if not len(column):
        return np.zeros(0, np.int64)
    # The ends of texts are read in place: most of pyarrow's own functions import pandas.
    large = pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type)
    ends = np.frombuffer(column.buffers()[1], np.int64 if large else np.int32)
    return np.diff(ends[column.offset : column.offset + len(column) + 1]).astype(np.int64)


def _cuts(sizes: NDArray[np.int64], most: int) -> list[int]:
    """Return where to split so that parts have about `most` bytes; the last cut is the end."""
    total = np.cumsum(sizes)
    cuts: list[int] = []
    while not cuts or cuts[-1] < len(sizes):
        before = total[cuts[-1] - 1] if cuts else 0
        end = int(np.searchsorted(total, before + 2 * most))
        cuts.append(min(len(sizes), max(end, (cuts[-1] if cuts else 0) + 1)))
    return cuts


def _empty(schema: Any, columns: Sequence[str]) -> Any:
    fields = [schema.field(column) for column in columns]
    return pa.RecordBatch.from_pylist([], pa.schema(fields, schema.metadata))


def _is_plain(schemas: Sequence[Any]) -> bool:
    """Return whether pyarrow can read files with these schemas as one and select rows."""
    names = schemas[0].names
    return (
        len(schemas) == 1
        and len(set(names)) == len(names)
        and not any(map(_is_awkward, schemas[0].types))
    )


def _is_awkward(kind: Any, *, nested: bool = False) -> bool:
    """Return whether a type has a view, or a dictionary inside another type."""
    types = pa.types
    if types.is_string_view(kind) or types.is_binary_view(kind):
        return True
    if types.is_dictionary(kind):
        return nested
    fields = range(kind.num_fields if types.is_nested(kind) else 0)
    return any(_is_awkward(kind.field(at).type, nested=True) for at in fields)


def _united(paths: Sequence[Path]) -> str:
    # Folder names such as "year=2020" are not columns.
    return f"read_parquet({duck.quoted_paths(paths)}, union_by_name=true, hive_partitioning=false)"


FORMAT = Format(
    name="parquet",
    suffixes=(".parquet", ".pq"),
    open=ParquetCorpus,
    write=_write,
    magic=b"PAR1",
    shards=True,
    packs=False,
    has_encoding=False,
)
