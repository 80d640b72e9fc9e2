"""Parquet files: read by pyarrow if they all have one schema, by DuckDB if it has to be united."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lookalike.checks import optional_module
from lookalike.corpora.base import BATCH_ROWS, Problems, arrow, read_ahead
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
        plain = len(schemas) == 1 and len(set(self._columns)) == len(self._columns)
        self._united = None if plain else _united(self.paths)
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
        batches = (
            read_ahead(self._plain(columns)) if self._united is None else self._by_duckdb(columns)
        )
        try:
            for batch in batches:
                yield batch
                seen += len(batch)
                self.done = seen / max(1, self._count)
        except _read_errors(self._united is not None) as error:
            raise FileError(f"{self.name}: cannot be read after row {seen}: {error}") from error

    def rows(self, problems: Problems) -> Iterator[pyarrow.RecordBatch]:
        """Yield batches of all columns."""
        return self.read(self._columns, problems)

    def _plain(self, columns: Sequence[str]) -> Iterator[pyarrow.RecordBatch]:
        pa = arrow()
        present = [column for column in dict.fromkeys(columns) if column in self._columns]
        for path in self.paths:
            with _opened(path) as file:
                schema = file.schema_arrow
                some = None
                for some in file.iter_batches(BATCH_ROWS, columns=present):
                    yield _arranged(some, columns)
                if some is None:
                    empty = pa.RecordBatch.from_pylist([], schema)
                    yield _arranged(empty, columns)

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
    parquet = _parquet()
    with parquet.ParquetWriter(path, schema) as writer, ThreadPoolExecutor(1) as background:
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
    try:
        # Without buffering ahead, so that a large row group is not in memory as a whole.
        file = _parquet().ParquetFile(path, pre_buffer=False)
    except (OSError, arrow().ArrowInvalid) as error:
        raise FileError(f"{path}: is not readable Parquet: {error}") from error
    with file:
        yield file


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


def _read_errors(by_duckdb: bool) -> tuple[type[Exception], ...]:
    return (duckdb_errors(),) if by_duckdb else (OSError, arrow().ArrowException)
