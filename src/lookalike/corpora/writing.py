"""Write rows of a corpus, or any table, to a file, whole or not at all."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import file_path, flag, is_address
from lookalike.corpora.base import Added, Corpus, KeptRows, Problems, Replaced, Rows, limited, pa
from lookalike.corpora.columns import unfiltered
from lookalike.corpora.encodings import UTF8, Encodings
from lookalike.corpora.formats import (
    FORMATS,
    FileCorpus,
    Format,
    Output,
    Target,
    compression_of,
    format_of,
    format_suffix,
    named_format,
    open_target,
    table_suffixes,
)
from lookalike.errors import ArgumentError, FileError, Said
from lookalike.shown import brief
from lookalike.storage.files import (
    check_replaceable,
    is_there,
    same_file,
    temporary_folder,
    whole_file,
    whole_folder,
)

_PREFIX = "lookalike-rows-"


class _Read(Protocol):
    """A result of a job that knows the corpus it has read."""

    @property
    def source(self) -> Corpus: ...
    @property
    def source_identity(self) -> list[Any] | None: ...
    @property
    def skip_bad(self) -> bool: ...
    @property
    def limits(self) -> tuple[int | None, int | None]: ...


def write_source(read: _Read, path: Any, in_place: bool, **rows: Any) -> int:
    """Write rows of the corpus of a result; `rows` are those of `write_corpus`.

    The corpus must be unchanged since it was read, also after its rows were copied.
    """
    if isinstance(path, io.TextIOBase):
        raise ArgumentError("path is a stream of text; expected one of bytes, such as its buffer")
    opened: AbstractContextManager[Any] = (
        nullcontext(path) if hasattr(path, "write") else local_file(path, read.source)
    )
    with opened as target, limited(*read.limits):
        read.source.check_identity(read.source_identity)
        return write_corpus(
            read.source,
            target,
            skip_bad=read.skip_bad,
            identity=read.source_identity,
            in_place=flag("in_place", in_place),
            **rows,
        )


def write_corpus(
    corpus: Corpus,
    path: Target,
    *,
    keep: NDArray[np.bool_] | None = None,
    added: Added | None = None,
    replaced: Replaced | None = None,
    skip_bad: bool = False,
    identity: list[Any] | None = None,
    in_place: bool = False,
) -> int:
    """Write the kept rows of a corpus, with added columns; return the number of rows.

    The file extension decides the format (default: that of the corpus). JSON Lines and plain text
    keep their lines byte for byte. Files of a folder are copied to a new folder. A folder of shards
    becomes a new folder of shards if the name has no extension.

    Args:
        replaced: texts of a column that replace others; not for a filtered corpus.
        skip_bad: the value with which the corpus was first read, since `keep` and `added` count
            rows.
        identity: identity of the corpus when it was first read; if it has changed, nothing is
            written.
        in_place: allow replacing a file of the corpus.
    """
    check_target(corpus, path, annotated=added is not None, in_place=in_place)
    corpus, keep, added = unfiltered(corpus, keep, added, Problems(skip_bad))
    rows = KeptRows(corpus, keep, added, Problems(skip_bad), identity, replaced=replaced)
    if not isinstance(path, Path) or not _is_folder_of_shards(corpus, path):
        return _write_rows(corpus, rows, path)
    written = 0
    with whole_folder(path) as folder:
        for file in corpus.files:
            encodings = corpus.encodings if isinstance(corpus, FileCorpus) else Encodings()
            shard = FORMATS[corpus.format].open([file], encodings)
            shard.max_document = corpus.max_document
            target = folder / file.relative_to(corpus.root or "")
            target.parent.mkdir(parents=True, exist_ok=True)
            rows.shard = shard
            written += _write_rows(shard, rows, target)
        rows.shard = None
        rows.finish()
    return written


def _write_rows(corpus: Corpus, rows: KeptRows, path: Target) -> int:
    target = target_format(corpus, path)
    like = corpus if target == corpus.format else None
    copied = like.copy_rows(rows, path) if like is not None else None
    if copied is not None:
        return copied
    text = like if isinstance(like, FileCorpus) and FORMATS[target].has_encoding else None
    if isinstance(path, Path) and (text is None or text.encoding_of_output()[0] == UTF8):
        return write_table(rows.tables(), path, target, like)
    with temporary_folder(_PREFIX) as folder:
        whole = folder / f"rows.{target}"
        written = write_table(rows.tables(), whole, target, like)
        opened = open_target(path) if text is None else text.open_output(path)
        with open(whole, "rb") as made, opened as file:
            shutil.copyfileobj(made, file)
    return written


def write_table(
    batches: Iterator[Rows], path: Path, format: str | None = None, like: Corpus | None = None
) -> int:
    """Write record batches of one schema; `like` is their corpus if it has the same format."""
    if format is None:
        check_table_target(path)
    write = FORMATS[format or format_of(path) or ""].write
    if write is None:
        raise ArgumentError(f"{path}: a table cannot be written as {format!r}")
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
        write(counted(first), schema, Output(path, temporary, compression_of(path), like))
    return written


@contextmanager
def local_file(path: Any, source: Corpus) -> Iterator[Path]:
    """Yield the path of a file to write; for an address, one that is uploaded at the end."""
    if not is_address(path):
        file = file_path("path", path)
        if str(path).endswith("/") and not is_written_as_folder(source, file):
            raise ArgumentError(
                Said("path"),
                f" is {brief(path)}, which ends with a slash, so it names a folder; expected the "
                "name of a file",
            )
        yield file
        return
    from lookalike.corpora.remote import Upload

    with Upload(path, [source.name]) as upload:
        yield upload.path
        upload.publish()


def target_format(corpus: Corpus, target: Target) -> str:
    """Return the output format: by the file extension, or else that of the corpus."""
    named = named_format(target) if isinstance(target, Path) else None
    if named is not None:
        return named.name
    pages = corpus.format == "files" and corpus.page_text is not None
    if pages and not isinstance(target, Path):
        return "jsonl"
    own = corpus.format == "table" or _is_written(FORMATS[corpus.format])
    return corpus.format if own else "jsonl"


def check_target(corpus: Corpus, path: Target, *, annotated: bool, in_place: bool = False) -> None:
    """Refuse a file or stream that `write_corpus` could not write, whatever rows there are."""
    if not isinstance(path, Path):
        _check_stream(target_format(corpus, path), annotated)
        return
    named = named_format(path)
    target = named.name if named is not None else target_format(corpus, path)
    read = same_file(path, corpus.files)
    if read is not None and not in_place:
        also = "" if read == path else f" as {read}"
        raise ArgumentError(
            f"{path} is read{also} and would be overwritten; give another name, or use ",
            Said("in_place=True", "--in-place"),
            " to replace it",
        )
    if read is not None and corpus.page_text is not None:
        raise ArgumentError(
            f"{path} has web pages, which would be replaced by their text; give another name"
        )
    if read is not None and target != corpus.format:
        raise ArgumentError(
            f"{path} is read as {corpus.format!r} and would be written as {target!r}; give "
            "another name"
        )
    if read is None:
        check_outside_folder(corpus.root, path)
    suffix = ""
    if named is None:
        suffix = format_suffix(path)
        suffix = "" if suffix in {file.suffix for file in corpus.files} else suffix
    elif not _is_written(named):
        suffix = "".join(path.suffixes[-2:] if compression_of(path) else path.suffixes[-1:])
    if suffix and target != "files":
        raise ArgumentError(
            f"{path}: {suffix} is not an output format. Expected a name that ends in "
            f"{'.txt, ' * (corpus.format == 'text')}{table_suffixes()}, or without an extension "
            f"for the format of the input ({corpus.format}). Add .gz or .zst to compress the file"
        )
    _check_compression(path, named)
    if target == "table" or (
        (annotated or target != corpus.format) and FORMATS[target].write is None
    ):
        raise ArgumentError(
            f"{path}: rows with several columns cannot be written as {target!r}; expected a name "
            f"that ends in {table_suffixes()}"
        )
    if target == "files" or _is_folder_of_shards(corpus, path):
        if is_there(path):
            raise FileError(f"{path} already exists; give another name, or remove it")
    else:
        check_replaceable(path)


def is_written_as_folder(corpus: Corpus, path: Path) -> bool:
    """Return whether `write_corpus` makes a new folder: of files, or of shards."""
    return _is_folder_of_shards(corpus, path) or target_format(corpus, path) == "files"


def check_table_target(path: Path) -> None:
    """Refuse a file that `write_table` could not write."""
    named = named_format(path)
    if named is None or named.write is None:
        raise ArgumentError(
            f"{path}: its extension is not a table format; expected {table_suffixes()}"
        )
    _check_compression(path, named)
    check_replaceable(path)


def check_outside_folder(root: Path | None, path: Path) -> None:
    """Refuse an output file in the input folder: the next run would read it."""
    if root is None:
        return
    folder = root.resolve()
    if folder in (path.parent.resolve() / path.name).parents:
        raise ArgumentError(
            f"{path} is in the input folder {root}, so the next run would read it; write it to "
            "another folder"
        )


def _is_folder_of_shards(corpus: Corpus, path: Path) -> bool:
    """Return whether the kept rows of each file are written to a separate file in a new folder."""
    if corpus.root is None or format_of(path) is not None:
        return False
    own = FORMATS[corpus.format]
    return own.rows and _is_written(own)


def _is_written(format: Format) -> bool:
    return format.write is not None or format.copies


def _check_stream(target: str, annotated: bool) -> None:
    allowed = [one.name for one in FORMATS if one.streams and (one.write or not annotated)]
    if target not in allowed:
        raise ArgumentError(
            f"rows of the format {target!r} cannot be written to a stream"
            f"{' with columns added' if annotated else ''}; expected {', '.join(allowed)}, or a "
            f"file that ends in {table_suffixes()}"
        )


def _check_compression(path: Path, named: Format | None) -> None:
    if named is not None and not named.packs and compression_of(path):
        raise ArgumentError(
            f"{path}: {named.name} compresses its columns itself; leave {path.suffix} out"
        )
