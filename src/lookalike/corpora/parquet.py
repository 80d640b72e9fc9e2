"""Parquet files, read by DuckDB."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lookalike.corpora.base import BATCH_ROWS, Problems
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

__all__ = ["ParquetCorpus"]


class ParquetCorpus(FileCorpus):
    """Parquet files; a column that some of them lack is null there."""

    def __init__(self, paths: Sequence[Path]) -> None:
        super().__init__(paths, "parquet")
        # The names of folders are no columns, even if they look like "year=2020".
        options = "union_by_name=true, hive_partitioning=false"
        self._source = f"read_parquet({quoted_paths(self.paths)}, {options})"
        try:
            with connection() as database:
                relation = database.sql(f"SELECT * FROM {self._source}")
                self._columns: list[str] = list(relation.columns)
                counted = database.sql(f"SELECT count(*) FROM {self._source}").fetchall()
        except duckdb_errors() as error:
            raise FileError(f"{self.name}: is not readable Parquet: {error}") from error
        self._count: int = counted[0][0]

    def columns(self) -> list[str]:
        """Return the columns of the schema."""
        return list(self._columns)

    def read(self, columns: Sequence[str], problems: Problems) -> Iterator[pyarrow.RecordBatch]:
        """Yield batches of these columns, with their types."""
        names = ", ".join(
            quoted_name(column) if column in self._columns else f"NULL AS {quoted_name(column)}"
            for column in columns
        )
        seen = 0
        try:
            with connection() as database:
                result = database.sql(f"SELECT {names} FROM {self._source}")
                for batch in record_batches(result, BATCH_ROWS):
                    yield batch
                    seen += len(batch)
                    self.done = seen / max(1, self._count)
        except duckdb_errors() as error:
            raise FileError(f"{self.name}: cannot be read after row {seen}: {error}") from error

    def rows(self, problems: Problems) -> Iterator[pyarrow.RecordBatch]:
        """Yield batches of all columns."""
        return self.read(self._columns, problems)
