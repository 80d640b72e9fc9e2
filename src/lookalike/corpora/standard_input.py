"""Standard input as a corpus."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from lookalike.corpora.base import Corpus, pa
from lookalike.corpora.formats.names import FORMATS
from lookalike.corpora.opening import open_corpus
from lookalike.corpora.spool import Spool, some_of
from lookalike.errors import ArgumentError, FileError

_MAGIC = {b"\x1f\x8b": ".gz", b"\x28\xb5\x2f\xfd": ".zst"}
_CODECS = {".gz": "gzip", ".zst": "zstd"}
_PARQUET = b"PAR1"
_WARC = b"WARC/1."
_ENOUGH = 1 << 18
"""Bytes of which something can be unpacked, if they are packed."""
_NAME = "standard-input"


def open_standard_input(
    stream: BinaryIO,
    before: Sequence[Path],
    after: Sequence[Path],
    format: str | None,
    within: Path | None,
    encoding: str | None = None,
) -> Corpus:
    """Return a corpus of what comes through a stream, between files before and after it.

    JSON Lines unless `format` says otherwise, or its first bytes do, those of Parquet and of WARC;
    gzip and zstd are known by theirs. It is kept in a new folder, in `within` or where temporary
    files are.
    """
    if format == "files":
        raise ArgumentError(
            "standard input is one stream, and no files; expected a format of rows: "
            f"{', '.join(one for one in FORMATS if one != 'files')}"
        )
    try:
        beginning = _read_some(stream)
    except OSError as error:
        raise FileError(f"standard input cannot be read: {error.strerror or error}") from error
    packed = _packing(beginning)
    kind = format or _kind(beginning, packed)
    spool = Spool(within)
    path = spool.copy(stream, f"{_NAME}.{'txt' if kind == 'text' else kind}{packed}", beginning)
    corpus = open_corpus([*before, path, *after], format, encoding=encoding)
    if not before and not after:
        corpus.name = "standard input"
    corpus.spool = spool
    return corpus


def _read_some(stream: BinaryIO) -> bytes:
    """Return the first bytes of a stream: as many as tell what it is, if it has so many."""
    data = b""
    enough = len(_WARC)
    while len(data) < enough and (more := some_of(stream)):
        data += more
        enough = _ENOUGH if _packing(data) else enough
    return data


def _packing(beginning: bytes) -> str:
    """Return how a file is called that begins so: .gz, .zst, or nothing."""
    return next((end for magic, end in _MAGIC.items() if beginning.startswith(magic)), "")


def _kind(beginning: bytes, packed: str) -> str:
    """Return the format that begins so."""
    if beginning.startswith(_PARQUET):
        return "parquet"
    if packed:
        with (
            suppress(OSError),  # what is damaged is told of when it is read
            pa.CompressedInputStream(pa.BufferReader(beginning), _CODECS[packed]) as unpacked,
        ):
            beginning = unpacked.read(len(_WARC))
    return "warc" if beginning.startswith(_WARC) else "jsonl"
