"""Writing rows of a corpus, or any table, to a file: whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.corpora.base import BATCH_BYTES, Corpus, Problems, Rows, arrow_positions, pa
from lookalike.corpora.encodings import UTF8, EncodedOutput, Encodings
from lookalike.corpora.filters import unfiltered
from lookalike.corpora.folders import FolderCorpus
from lookalike.corpora.formats.delimited import DelimitedCorpus
from lookalike.corpora.formats.duck import connection, duckdb_errors, first_line, quoted, streamed
from lookalike.corpora.formats.files import FileCorpus
from lookalike.corpora.formats.json_array import JsonArrayCorpus
from lookalike.corpora.formats.json_lines import JsonLinesCorpus
from lookalike.corpora.formats.lines import open_text
from lookalike.corpora.formats.names import compression_of, format_of
from lookalike.corpora.formats.parquet import ParquetCorpus, write_parquet
from lookalike.corpora.formats.text_lines import TextLinesCorpus
from lookalike.corpora.kept_rows import Added, KeptRows, RowsOfShard
from lookalike.corpora.opening import corpus_of_files
from lookalike.corpora.targets import (
    Target,
    check_table_target,
    check_target,
    is_folder_of_shards,
    target_format,
)
from lookalike.errors import FileError
from lookalike.storage import whole_file, whole_folder
from lookalike.storage.unfinished import temporary_folder

_PREFIX = "lookalike-rows-"
_TYPED = {"jsonl": "json", "json": "json", "csv": "csv", "tsv": "csv", "parquet": "parquet"}


def write_corpus(
    corpus: Corpus,
    path: Target,
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
    one that is read. What stays of a folder of shards goes to a new folder of the same, if the name
    tells no format. To a stream, rows go as they are read again: an error may come after some.
    """
    check_target(corpus, path, annotated=added is not None, in_place=in_place)
    corpus, keep, added = unfiltered(corpus, keep, added, Problems(skip_bad))
    rows = KeptRows(corpus, keep, added, Problems(skip_bad), identity)
    if isinstance(path, Path) and is_folder_of_shards(corpus, path):
        return _write_shards(corpus, rows, path)
    return _write_rows(corpus, rows, path)


def _write_rows(corpus: Corpus, rows: KeptRows, path: Target) -> int:
    target = target_format(corpus, path)
    same, added = target == corpus.format, rows.added
    if isinstance(corpus, JsonLinesCorpus) and same:
        return _write_lines(corpus, rows, path)
    if isinstance(corpus, TextLinesCorpus) and same and added is None:
        return _write_lines(corpus, rows, path)
    if isinstance(corpus, JsonArrayCorpus) and same:
        return _write_objects(corpus, rows, path)
    if isinstance(corpus, FolderCorpus) and isinstance(path, Path) and same and added is None:
        return _copy_files(corpus, rows, path)
    delimiter, encoding = None, (UTF8, b"")
    if isinstance(corpus, DelimitedCorpus) and target == corpus.format:
        delimiter = corpus.delimiter
        encoding = _encoding_of(corpus)
    if isinstance(path, Path) and encoding[0] == UTF8:
        compression = corpus.compression if isinstance(corpus, ParquetCorpus) else None
        return write_table(rows.tables(), path, target, delimiter, compression)
    with temporary_folder(_PREFIX) as folder:
        whole = folder / f"rows.{target}"
        written = write_table(rows.tables(), whole, target, delimiter)
        with open(whole, "rb") as made, _open_output(path, encoding) as file:
            shutil.copyfileobj(made, file)
    return written


def write_table(
    batches: Iterator[Rows],
    path: Path,
    format: str | None = None,
    delimiter: str | None = None,
    compression: str | None = None,
) -> int:
    """Write record batches of one schema to a file in the format its name tells.

    `delimiter` is that of CSV, if not a comma; `compression` that of Parquet, if not Snappy.
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
                write_parquet(counted(first), schema, temporary, compression)
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


def _write_lines(corpus: JsonLinesCorpus | TextLinesCorpus, rows: KeptRows, path: Target) -> int:
    """Write lines as they are, each with an end; objects get the added keys."""
    written = 0
    is_json = isinstance(corpus, JsonLinesCorpus)
    with _open_output(path, _encoding_of(corpus), is_json=is_json) as file:
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


def _write_objects(corpus: JsonArrayCorpus, rows: KeptRows, path: Target) -> int:
    written = 0
    with _open_output(path, _encoding_of(corpus), is_json=True) as file:
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


def _copy_files(corpus: FolderCorpus, rows: KeptRows, path: Path) -> int:
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


def _write_shards(corpus: Corpus, rows: KeptRows, path: Path) -> int:
    written = 0
    with whole_folder(path) as folder:
        for file in corpus.files:
            shard = corpus_of_files([file], corpus.format, _encodings_of(corpus))
            shard.max_document = corpus.max_document
            target = folder / file.relative_to(corpus.root or "")
            target.parent.mkdir(parents=True, exist_ok=True)
            written += _write_rows(shard, RowsOfShard(shard, rows), target)
        rows.finish()
    return written


def _encodings_of(corpus: Corpus) -> Encodings:
    """Return what is known of the encodings of a corpus; nothing, where its files are not text."""
    known = getattr(corpus, "encodings", None)
    return known if isinstance(known, Encodings) else Encodings()


def _encoding_of(corpus: FileCorpus) -> tuple[str, bytes]:
    """Return the encoding that all files have, and its byte order mark; else UTF-8."""
    known = corpus.encodings
    for path in corpus.paths:
        if path not in known.found:  # an earlier run has read it
            stream, file = open_text(path, known.given)
            with file:
                while not stream.decided and stream.read(BATCH_BYTES):
                    pass
            known.found[path] = stream.encoding, stream.mark
    return known.of_output(corpus.paths)


@contextmanager
def _open_output(
    path: Target, encoding: tuple[str, bytes], *, is_json: bool = False
) -> Iterator[Any]:
    """Open a file that is to be whole, compressed if its name says so; a stream is open.

    What is written to it is UTF-8, and becomes another encoding, with its byte order mark.
    """
    name, mark = encoding
    with _open_bytes(path) as file:
        yield file if name == UTF8 else EncodedOutput(file, name, mark, is_json=is_json)


@contextmanager
def _open_bytes(path: Target) -> Iterator[Any]:
    if not isinstance(path, Path):
        yield path
        return
    with whole_file(path) as temporary, pa.OSFile(os.fsencode(temporary), "wb") as file:
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
