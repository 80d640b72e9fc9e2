"""DuckDB connections, one for each reading or writing, with the same settings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from lookalike.corpora.base import Rows, limits, pa
from lookalike.corpora.formats import Output
from lookalike.errors import FileError, Said
from lookalike.lazy import LazyModule

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

duckdb = LazyModule("duckdb", "reading and writing corpora")

Database: TypeAlias = "DuckDBPyConnection"

_INTERRUPTED = "Query interrupted"

_open: set[Database] = set()


@contextmanager
def connection(name: str | None = None) -> Iterator[Database]:
    """Open a database in memory; raise `FileError` if it needs more memory, or names any error."""
    settings = {
        "preserve_insertion_order": "true",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "python_enable_replacements": "false",
    }
    memory, threads = limits()
    if memory is not None:
        settings["memory_limit"] = f"{memory // 1_000_000}MB"
    if threads is not None:
        settings["threads"] = str(threads)
    opened = duckdb.connect(config=settings)
    _open.add(opened)
    try:
        yield opened
    except duckdb.InterruptException as error:
        raise KeyboardInterrupt from error
    except RuntimeError as error:
        if str(error) == _INTERRUPTED:  # how DuckDB reports Ctrl-C
            raise KeyboardInterrupt from error
        raise
    except duckdb.OutOfMemoryException as error:
        raise FileError(
            f"{name or 'DuckDB'} needs more memory than available ({first_line(error)}); raise ",
            Said("memory_limit"),
            ", lower ",
            Said("max_document"),
            ", or write the format of the input",
        ) from error
    except duckdb.Error as error:
        if name is None:
            raise
        raise FileError(f"{name}: cannot be read: {first_line(error)}") from error
    finally:
        _open.discard(opened)
        opened.close()


def interrupt_queries() -> None:
    """Interrupt running queries on Ctrl-C; their threads notice it only between steps."""
    for opened in list(_open):
        opened.interrupt()


def first_line(error: Exception) -> str:
    """Return the first line of an error."""
    return next(iter(str(error).splitlines()), type(error).__name__)


def quoted(text: str) -> str:
    """Return a string as an SQL literal."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise FileError(f"{text!r} is not UTF-8, so DuckDB cannot read it; rename it") from None
    return "'" + text.replace("'", "''") + "'"


def quoted_name(name: str) -> str:
    """Return a column name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def quoted_strings(texts: Iterable[str]) -> str:
    """Return strings as an SQL list."""
    return "[" + ", ".join(map(quoted, texts)) + "]"


def quoted_paths(paths: Iterable[Path]) -> str:
    """Return paths as an SQL list, with glob characters escaped."""
    return quoted_strings(re.sub(r"[*?[]", r"[\g<0>]", str(path)) for path in paths)


def record_batches(result: DuckDBPyRelation, rows: int) -> Iterator[Rows]:
    """Yield batches of at most `rows` rows, or one empty batch with the types."""
    reader = result.to_arrow_reader(rows)
    batch = None
    for batch in reader:
        yield batch
    if batch is None:
        yield pa.RecordBatch.from_pylist([], reader.schema)


@contextmanager
def streamed(database: Database, name: str, schema: Any, batches: Iterator[Any]) -> Iterator[None]:
    """Register record batches for one query; raise errors of the iterator unchanged."""
    raised: list[BaseException] = []

    def guarded() -> Iterator[Any]:
        try:
            yield from batches
        except BaseException as error:
            raised.append(error)
            raise

    database.register(name, pa.RecordBatchReader.from_batches(schema, guarded()))
    try:
        yield
    except duckdb.Error:
        if raised:
            raise raised[0] from None
        raise
    finally:
        database.unregister(name)


def write(batches: Iterator[Rows], schema: Any, output: Output, options: Sequence[str]) -> None:
    """Write record batches of one schema by DuckDB's COPY with these options."""
    half = [at for at, kind in enumerate(schema.types) if pa.types.is_float16(kind)]
    for at in half:  # DuckDB does not support it
        schema = schema.set(at, schema.field(at).with_type(pa.float32()))
    if half:
        batches = (batch.cast(schema) for batch in batches)
    packed = [f"COMPRESSION {output.compression}"] if output.compression else []
    how = f"{quoted(str(output.file))} ({', '.join([*options, *packed])})"
    with connection() as database:
        try:
            with streamed(database, "rows_to_write", schema, batches):
                database.execute(f"COPY (SELECT * FROM rows_to_write) TO {how}")
        except duckdb.Error as error:
            raise FileError(f"{output.path} cannot be written: {first_line(error)}") from error
