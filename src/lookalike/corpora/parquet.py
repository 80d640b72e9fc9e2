"""Parquet files: read by pyarrow if they all have one schema, by DuckDB if it has to be united."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lookalike.checks import optional_module
from lookalike.corpora.base import BATCH_BYTES, BATCH_ROWS, Problems, arrow, read_ahead
from lookalike.corpora.duck import (
    connection,
    duckdb_errors,
    quoted_name,
    quoted_paths,
    record_batches,
)
from lookalike.corpora.files import FileCorpus
from lookalike.errors import FileError

if TYPE_CHECKING:
    import pyarrow

__all__ = ["ParquetCorpus", "write_parquet"]

_GROUP_ROWS = 1 << 17
_GROUP_BYTES = 16 << 20
"""A row group that is written has as many rows or, roughly, bytes; so much is in memory, twice."""


class ParquetCorpus(FileCorpus):
    """Parquet files; a column that some of them lack is null there."""

    def __init__(self, paths: Sequence[Path]) -> None:
        super().__init__(paths, "parquet")
        self._count = 0
        schemas: list[Any] = []
        for path in self.paths:
            with _opened(path) as file:
                self._count += file.metadata.num_rows
                if not any(schema.equals(file.schema_arrow) for schema in schemas):
                    schemas.append(file.schema_arrow)
        self._columns: list[str] = schemas[0].names
        self._united = None if _is_plain(schemas) else _united(self.paths)
        if self._united is not None:
            try:
                with connection() as database:
                    relation = database.sql(f"SELECT * FROM {self._united}")
                    self._columns = list(relation.columns)
            except duckdb_errors() as error:
                raise FileError(f"{self.name}: have no common schema: {error}") from error

    def columns(self) -> list[str]:
        """Return the columns of the schema."""
        return list(self._columns)

    def read(self, columns: Sequence[str], problems: Problems) -> Iterator[pyarrow.RecordBatch]:
        """Yield batches of these columns, with their types."""
        seen = 0
        if self._united is None:
            batches = read_ahead(self._plain(columns))
            errors: tuple[type[Exception], ...] = (OSError, arrow().ArrowException)
        else:
            batches, errors = self._by_duckdb(columns), (duckdb_errors(),)
        try:
            for batch in batches:
                yield batch
                seen += len(batch)
                self.done = seen / max(1, self._count)
        except errors as error:
            raise FileError(f"{self.name}: cannot be read after row {seen}: {error}") from error

    def rows(self, problems: Problems) -> Iterator[pyarrow.RecordBatch]:
        """Yield batches of all columns."""
        return self.read(self._columns, problems)

    def _plain(self, columns: Sequence[str]) -> Iterator[pyarrow.RecordBatch]:
        pa = arrow()
        present = [column for column in dict.fromkeys(columns) if column in self._columns]
        for path in self.paths:
            with _opened(path) as file:
                some = None
                for some in file.iter_batches(_rows_at_a_time(file.metadata), columns=present):
                    some.validate(full=True)  # a file may say that anything is UTF-8
                    yield _arranged(some, columns)
                if some is None:
                    yield _arranged(pa.RecordBatch.from_pylist([], file.schema_arrow), columns)

    def _by_duckdb(self, columns: Sequence[str]) -> Iterator[pyarrow.RecordBatch]:
        names = ", ".join(
            quoted_name(column) if column in self._columns else f"NULL AS {quoted_name(column)}"
            for column in columns
        )
        with connection() as database:
            yield from record_batches(
                database.sql(f"SELECT {names} FROM {self._united}"), BATCH_ROWS
            )


def write_parquet(batches: Iterator[pyarrow.RecordBatch], schema: Any, path: Path) -> None:
    """Write record batches of one schema, with its metadata.

    A group of rows is encoded by another thread while the next one is gathered.
    """
    pa = arrow()
    with (
        pa.OSFile(os.fsencode(path), "wb") as file,
        _parquet().ParquetWriter(file, schema) as writer,
        ThreadPoolExecutor(1) as background,
    ):
        writing: Future[None] | None = None
        for group in _groups(batches):
            if writing is not None:
                writing.result()
            writing = background.submit(writer.write_table, group, row_group_size=len(group))
        if writing is not None:
            writing.result()


def _groups(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.Table]:
    """Yield tables that are large enough to be a row group."""
    pa = arrow()
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


def _parquet() -> Any:
    return optional_module("pyarrow.parquet", "Parquet", extra="dedup")


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    pa = arrow()
    try:
        # Opened here: pyarrow would take some names for addresses, and refuse those that are not
        # Unicode.
        source = pa.OSFile(os.fsencode(path), "rb")
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error}") from error
    with source:
        try:
            # Without buffering ahead, so that a large row group is not in memory as a whole.
            file = _parquet().ParquetFile(source, pre_buffer=False)
        except (OSError, pa.ArrowException) as error:
            raise FileError(f"{path}: is not readable Parquet: {error}") from error
        with file:
            yield file


def _rows_at_a_time(metadata: Any) -> int:
    """Return how many rows make a batch, so that long ones do not fill the memory."""
    groups = range(metadata.num_row_groups)
    size: int = sum(metadata.row_group(at).total_byte_size for at in groups)
    rows: int = metadata.num_rows
    return max(1, min(BATCH_ROWS, BATCH_BYTES * rows // max(1, size)))


def _is_plain(schemas: Sequence[Any]) -> bool:
    """Return whether pyarrow reads files with these schemas as one, and can choose rows of them."""
    names = schemas[0].names
    return (
        len(schemas) == 1
        and len(set(names)) == len(names)
        and not any(map(_is_awkward, schemas[0].types))
    )


def _is_awkward(kind: Any, *, nested: bool = False) -> bool:
    """Return whether a type has a view, or a dictionary inside of something else."""
    types = arrow().types
    if types.is_string_view(kind) or types.is_binary_view(kind):
        return True
    if types.is_dictionary(kind):
        return nested
    fields = range(kind.num_fields if types.is_nested(kind) else 0)
    return any(_is_awkward(kind.field(at).type, nested=True) for at in fields)


def _united(paths: Sequence[Path]) -> str:
    # The names of folders are no columns, even if they look like "year=2020".
    return f"read_parquet({quoted_paths(paths)}, union_by_name=true, hive_partitioning=false)"


def _arranged(batch: Any, columns: Sequence[str]) -> Any:
    """Return these columns of a batch, in this order; nulls where there is none."""
    if batch.schema.names == list(columns):
        return batch
    pa = arrow()
    found = [
        batch.column(column) if column in batch.schema.names else pa.nulls(len(batch))
        for column in columns
    ]
    return pa.record_batch(found, names=list(columns))
