"""Writing rows of a corpus, or any table, to a file: whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lookalike.corpora.base import Corpus, Problems, Rows, arrow_positions, pa
from lookalike.corpora.delimited import DelimitedCorpus
from lookalike.corpora.duck import connection, duckdb_errors, first_line, quoted, streamed
from lookalike.corpora.folders import FolderCorpus
from lookalike.corpora.formats import compression_of, format_of
from lookalike.corpora.json_array import JsonArrayCorpus
from lookalike.corpora.json_lines import JsonLinesCorpus
from lookalike.corpora.parquet import write_parquet
from lookalike.corpora.text_lines import TextLinesCorpus
from lookalike.errors import ArgumentError, DocumentError, FileError, Said
from lookalike.storage import check_replaceable, is_there, same_file, whole_file, whole_folder

if TYPE_CHECKING:
    import pyarrow

Added = Callable[[int, int], "dict[str, pyarrow.Array]"]
"""Columns to add to the rows from one position to another."""

_TYPED = {"jsonl": "json", "json": "json", "csv": "csv", "tsv": "csv", "parquet": "parquet"}
_ENDINGS = ".jsonl, .json, .csv, .tsv or .parquet"


def write_corpus(
    corpus: Corpus,
    path: Path,
    *,
    keep: NDArray[np.bool_] | None = None,
    added: Added | None = None,
    skip_bad: bool = False,
    identity: list[Any] | None = None,
    in_place: bool = False,
) -> int:
    """Write the rows of a corpus that are to be kept, with columns added; return how many.

    In the format that the name of the file tells, or else in the corpus's own. JSON Lines and plain
    text that stay what they are keep their lines byte for byte; the files of a folder are copied
    into a new one. `skip_bad` must be what it was when the corpus was first read: `keep` and
    `added` count rows as that reading did. `identity` is what the corpus was then; if it is not
    that any more when all rows have been copied, nothing is written. `in_place` lets the file be
    one that is read.
    """
    check_target(corpus, path, annotated=added is not None, in_place=in_place)
    rows = _Rows(corpus, keep, added, Problems(skip_bad), identity)
    same = format_of(path) in (None, corpus.format)
    if isinstance(corpus, JsonLinesCorpus) and same:
        return _write_lines(corpus, rows, path)
    if isinstance(corpus, TextLinesCorpus) and same and added is None:
        return _write_lines(corpus, rows, path)
    if isinstance(corpus, JsonArrayCorpus) and same:
        return _write_objects(corpus, rows, path)
    if isinstance(corpus, FolderCorpus) and same and added is None:
        return _copy_files(corpus, rows, path)
    target = format_of(path) or corpus.format
    delimiter = None
    if isinstance(corpus, DelimitedCorpus) and target == corpus.format:
        delimiter = corpus.delimiter
    return write_table(rows.tables(), path, target, delimiter)


def check_target(corpus: Corpus, path: Path, *, annotated: bool, in_place: bool = False) -> None:
    """Refuse a file that `write_corpus` could not write, whatever rows there are."""
    target = format_of(path) or corpus.format
    read = same_file(path, corpus.files)
    if read is not None and not in_place:
        also = "" if read == path else f" as {read}"
        raise ArgumentError(
            f"{path} is read{also}, and would be written over; give another name, or say ",
            Said("in_place=True", "--in-place"),
            " if it is to be replaced",
        )
    if read is not None and target != corpus.format:
        raise ArgumentError(
            f"{path} is read as {corpus.format!r} and would be written as {target!r}; give "
            "another name"
        )
    if target not in _TYPED and (annotated or target != corpus.format or target == "table"):
        raise ArgumentError(
            f"{path}: rows with several columns cannot be written as {target!r}; expected a name "
            f"that ends in {_ENDINGS}"
        )
    if target == "files" and is_there(path):
        raise FileError(f"{path} is there already; name a folder that is not, or remove it")
    if target != "files":
        check_replaceable(path)


def check_table_target(path: Path) -> None:
    """Refuse a file that `write_table` could not write."""
    if format_of(path) not in _TYPED:
        raise ArgumentError(
            f"{path}: its name tells no format for a table; expected one that ends in {_ENDINGS}"
        )
    check_replaceable(path)


def write_table(
    batches: Iterator[Rows],
    path: Path,
    format: str | None = None,
    delimiter: str | None = None,
) -> int:
    """Write record batches of one schema to a file in the format its name tells.

    `delimiter` is that of CSV, if not a comma.
    """
    if format is None:
        check_table_target(path)
    target = format or format_of(path) or ""
    written = 0

    def counted(batch: Any) -> Iterator[Any]:
        nonlocal written
        while batch is not None:
            written += len(batch)
            yield batch
            batch = next(batches, None)

    with whole_file(path) as temporary:
        first = next(batches, None)
        schema = first.schema if first is not None else pa.schema([("text", pa.string())])
        if target == "parquet":
            try:
                write_parquet(counted(first), schema, temporary)
            except (OSError, pa.ArrowException) as error:
                raise FileError(f"{path} cannot be written: {error}") from error
        else:
            options = _copy_options(target, path, delimiter)
            _copy_by_duckdb(counted(first), schema, path, options, temporary)
    return written


def _copy_by_duckdb(
    batches: Iterator[Any], schema: Any, path: Path, options: str, temporary: Path
) -> None:
    half = [at for at, kind in enumerate(schema.types) if pa.types.is_float16(kind)]
    for at in half:  # which DuckDB does not know
        schema = schema.set(at, schema.field(at).with_type(pa.float32()))
    if half:
        batches = (batch.cast(schema) for batch in batches)
    with connection() as database:
        try:
            with streamed(database, "rows_to_write", schema, batches):
                database.execute(
                    f"COPY (SELECT * FROM rows_to_write) TO {quoted(str(temporary))} ({options})"
                )
        except duckdb_errors() as error:
            raise FileError(f"{path} cannot be written: {first_line(error)}") from error


@dataclass
class _Rows:
    """The rows of a corpus that are to be kept, counted as they pass."""

    corpus: Corpus
    keep: NDArray[np.bool_] | None
    added: Added | None
    problems: Problems
    identity: list[Any] | None
    _position: int = 0

    def __post_init__(self) -> None:
        twice = sorted(set(self.added(0, 0)) & set(self.corpus.columns())) if self.added else []
        if twice:
            raise ArgumentError(
                f"{self.corpus.name} has a column {twice[0]!r} already, which would be added; "
                "rename it first"
            )

    def next(self, count: int) -> tuple[NDArray[np.int64], dict[str, Any]]:
        """Return which of the next `count` rows are kept, and the columns that are added to all."""
        begin, end = self._position, self._position + count
        self._position = end
        if self.keep is not None and end > len(self.keep):
            raise DocumentError(
                f"{self.corpus.name} has more rows than when it was read before; it must not "
                "change meanwhile"
            )
        chosen = np.arange(count) if self.keep is None else np.flatnonzero(self.keep[begin:end])
        return chosen, self.added(begin, end) if self.added else {}

    def finish(self) -> None:
        """Check that the corpus is what it was, now that all of it has been read again."""
        if self.keep is not None and self._position != len(self.keep):
            raise DocumentError(
                f"{self.corpus.name} has {self._position} rows, {len(self.keep)} when it was read "
                "before; it must not change meanwhile"
            )
        if self.identity is not None:
            self.corpus.check_identity(self.identity)

    def tables(self) -> Iterator[Any]:
        """Yield batches with all columns."""
        for batch in self.corpus.rows(self.problems):
            chosen, added = self.next(len(batch))
            for name, values in added.items():
                batch = batch.append_column(name, values)
            yield batch.take(arrow_positions(chosen)) if len(chosen) < len(batch) else batch
        self.finish()


def _write_lines(corpus: JsonLinesCorpus | TextLinesCorpus, rows: _Rows, path: Path) -> int:
    """Write lines as they are, each with an end; objects get the added keys."""
    written = 0
    with whole_file(path) as temporary, _open_output(temporary, path) as file:
        for lines in corpus.lines(rows.problems):
            chosen, added = rows.next(len(lines))
            written += len(chosen)
            if added:
                keys = [{name: added[name][at].as_py() for name in added} for at in chosen.tolist()]
                kept = lines.take(arrow_positions(chosen)).to_pylist()
                file.write("".join(map(_extended, kept, keys)).encode())
                continue
            for run in _runs(lines, chosen):
                file.write(run)
            if len(chosen) and not lines[int(chosen[-1])].as_py().endswith("\n"):
                file.write(b"\n")
        rows.finish()
    return written


def _write_objects(corpus: JsonArrayCorpus, rows: _Rows, path: Path) -> int:
    written = 0
    with whole_file(path) as temporary, _open_output(temporary, path) as file:
        for objects in corpus.objects(rows.problems):
            chosen, added = rows.next(len(objects))
            for at in chosen.tolist():
                keys = {name: added[name][at].as_py() for name in added}
                text = json.dumps({**objects[at], **keys}, ensure_ascii=False)
                file.write((",\n" if written else "[\n").encode() + text.encode())
                written += 1
        file.write(b"\n]\n" if written else b"[]\n")
        rows.finish()
    return written


def _copy_files(corpus: FolderCorpus, rows: _Rows, path: Path) -> int:
    written = 0
    with whole_folder(path) as folder:
        for file, _ in corpus.documents(rows.problems):
            chosen, _ = rows.next(1)
            if not len(chosen):
                continue
            relative = file.relative_to(corpus.root) if corpus.root else Path(*_plain_parts(file))
            target = folder / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, target)
            written += 1
        rows.finish()
    return written


def _plain_parts(file: Path) -> list[str]:
    """Return the parts of a path that cannot lead out of a folder."""
    return [part for part in file.absolute().parts[1:] if part != ".."]


def _extended(line: str, added: dict[str, Any]) -> str:
    """Return a JSON object's text with keys added at its end; what was there stays as it is."""
    inside = line.rstrip().removesuffix("}").rstrip()
    inside = inside.removesuffix(",").rstrip()  # DuckDB takes objects that end so
    more = json.dumps(added, ensure_ascii=False)[1:]
    return f"{inside}{'' if inside.endswith('{') else ', '}{more}\n"


def _runs(lines: Any, chosen: NDArray[np.int64]) -> Iterator[memoryview]:
    """Yield the bytes of chosen lines: as they lie, or gathered where that would be many pieces."""
    if not len(chosen):
        return
    breaks = np.flatnonzero(np.diff(chosen) != 1) + 1
    if len(breaks) > len(chosen) // 16:
        lines = lines.take(arrow_positions(chosen))
        chosen, breaks = np.arange(len(lines)), breaks[:0]
    _, offsets, data = lines.buffers()
    ends = np.frombuffer(offsets, np.int64)[lines.offset : lines.offset + len(lines) + 1]
    firsts, lasts = chosen[np.append(0, breaks)], chosen[np.append(breaks - 1, len(chosen) - 1)]
    for begin, end in zip(ends[firsts].tolist(), ends[lasts + 1].tolist(), strict=True):
        yield memoryview(data)[begin:end]


@contextmanager
def _open_output(temporary: Path, path: Path) -> Iterator[Any]:
    """Open a file for writing, compressed if the final name says so."""
    with pa.OSFile(os.fsencode(temporary), "wb") as file:
        compression = compression_of(path)
        if compression is None:
            yield file
        else:
            with pa.CompressedOutputStream(file, compression) as stream:
                yield stream


def _copy_options(format: str, path: Path, delimiter: str | None) -> str:
    options = [f"FORMAT {_TYPED[format]}"]
    if format == "json":
        options.append("ARRAY true")
    if format in ("csv", "tsv"):
        delimiter = "\t" if format == "tsv" else delimiter or ","
        options += ["HEADER true", f"DELIMITER {quoted(delimiter)}"]
    compression = compression_of(path)
    if compression is not None:
        options.append(f"COMPRESSION {compression}")
    return ", ".join(options)
