"""Where rows may be written to, and in which format; found out before there are any."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO, TypeAlias

from lookalike.corpora.base import Corpus
from lookalike.corpora.formats.names import compression_of, format_of, unknown_suffix
from lookalike.errors import ArgumentError, FileError, Said
from lookalike.storage import check_replaceable, is_there, same_file

Target: TypeAlias = Path | BinaryIO
"""A file, or a stream that is open, such as standard output."""

TABLES = ("jsonl", "json", "csv", "tsv", "parquet")
_STREAMS = ("jsonl", "json", "csv", "tsv", "text")
_ONLY_READ = ("html", "warc")
"""What pages come in; what is found in them is rows."""
_ENDINGS = ".jsonl, .json, .csv, .tsv or .parquet"


def target_format(corpus: Corpus, target: Target) -> str:
    """Return the format that rows of a corpus are written in: by the name, or else their own."""
    own = "jsonl" if corpus.format == "warc" else corpus.format
    if not isinstance(target, Path):
        return "jsonl" if corpus.page_text is not None and own == "files" else own
    return format_of(target) or own


def is_folder_of_shards(corpus: Corpus, target: Target) -> bool:
    """Return whether what stays of each file goes to a file of its own, in a new folder."""
    return (
        corpus.root is not None
        and corpus.format not in ("files", "warc")
        and isinstance(target, Path)
        and format_of(target) is None
    )


def check_target(corpus: Corpus, path: Target, *, annotated: bool, in_place: bool = False) -> None:
    """Refuse a file or stream that `write_corpus` could not write, whatever rows there are."""
    target = target_format(corpus, path)
    if not isinstance(path, Path):
        _check_stream(target, annotated)
        return
    read = same_file(path, corpus.files)
    if read is not None and not in_place:
        also = "" if read == path else f" as {read}"
        raise ArgumentError(
            f"{path} is read{also}, and would be written over; give another name, or say ",
            Said("in_place=True", "--in-place"),
            " if it is to be replaced",
        )
    if read is not None and corpus.page_text is not None:
        raise ArgumentError(
            f"{path} has web pages, of which the text alone would be written in their place; give "
            "another name"
        )
    if read is not None and target != corpus.format:
        raise ArgumentError(
            f"{path} is read as {corpus.format!r} and would be written as {target!r}; give "
            "another name"
        )
    if read is None:
        check_outside(corpus, path)
    suffix = unknown_suffix(path)
    if format_of(path) in _ONLY_READ:
        suffix = "".join(path.suffixes[-2:] if compression_of(path) else path.suffixes[-1:])
    elsewhere = suffix not in {file.suffix for file in corpus.files}
    if suffix and target != "files" and (elsewhere or target in _ONLY_READ):
        raise ArgumentError(
            f"{path}: {suffix} is no format that can be written; expected a name that ends in "
            f"{_endings(corpus)}, with .gz or .zst after it if it is to be compressed, or in "
            f"nothing for the format of the input ({corpus.format})"
        )
    _check_compression(path)
    if target not in TABLES and (annotated or target != corpus.format or target == "table"):
        raise ArgumentError(
            f"{path}: rows with several columns cannot be written as {target!r}; expected a name "
            f"that ends in {_ENDINGS}"
        )
    if is_there(path) and (target == "files" or is_folder_of_shards(corpus, path)):
        raise FileError(f"{path} is there already; name a folder that is not, or remove it")
    if target != "files":
        check_replaceable(path)


def check_outside(corpus: Corpus, path: Path) -> None:
    """Refuse a name in the folder that is read: whoever reads it again would find it there."""
    check_outside_folder(corpus.root, path)


def check_outside_folder(root: Path | None, path: Path) -> None:
    """Refuse the same of a folder, if there is one."""
    if root is None:
        return
    folder = root.resolve()
    if folder in (path.parent.resolve() / path.name).parents:
        raise ArgumentError(
            f"{path} lies in {root}, all of which is read, and the next run would read it, "
            "too; write to a place outside"
        )


def _check_stream(target: str, annotated: bool) -> None:
    if target not in _STREAMS or (annotated and target == "text"):
        raise ArgumentError(
            f"rows of the format {target!r} cannot be written to a stream"
            f"{' with columns added' if annotated else ''}; expected "
            f"{', '.join(one for one in _STREAMS if one in TABLES or not annotated)}: name a file "
            f"that ends in {_ENDINGS}"
        )


def _endings(corpus: Corpus) -> str:
    return _ENDINGS if corpus.format != "text" else f".txt, {_ENDINGS}"


def _check_compression(path: Path) -> None:
    if format_of(path) == "parquet" and compression_of(path):
        raise ArgumentError(
            f"{path}: Parquet is compressed within, column by column; leave {path.suffix} out"
        )


def check_table_target(path: Path) -> None:
    """Refuse a file that `write_table` could not write."""
    if format_of(path) not in TABLES:
        raise ArgumentError(
            f"{path}: its name tells no format for a table; expected one that ends in {_ENDINGS}"
        )
    _check_compression(path)
    check_replaceable(path)
