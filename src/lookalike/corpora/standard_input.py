"""Standard input as a corpus."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from lookalike.corpora.base import Corpus, pa
from lookalike.corpora.columns import TEXT_GUESSES
from lookalike.corpora.encodings import TextStream, check_encoding
from lookalike.corpora.formats.names import FORMATS
from lookalike.corpora.opening import open_corpus
from lookalike.corpora.spool import Spool, some_of
from lookalike.errors import ArgumentError, FileError, Said
from lookalike.shown import brief

_MAGIC = {b"\x1f\x8b": ".gz", b"\x28\xb5\x2f\xfd": ".zst"}
_CODECS = {".gz": "gzip", ".zst": "zstd"}
_PARQUET = b"PAR1"
_WARC = b"WARC/1."
_ENOUGH = 1 << 18
"""Bytes of which something can be unpacked, if they are packed."""
_LOOKED_AT = 1 << 16
"""Bytes that tell the format of rows."""
_PAGE = re.compile(r"<(!doctype html|html)", re.IGNORECASE)
_DELIMITERS = {"tsv": "\t", "csv": ",;|"}
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

    Its beginning tells the format, if `format` does not: Parquet, WARC, JSON Lines, JSON, a web
    page, CSV or TSV; gzip and zstd are known by theirs. Text that is none of these is refused,
    because it may be a document a line, or one document. It is kept in a new folder, in `within`
    or where temporary files are.
    """
    if format == "files":
        raise ArgumentError(
            "standard input is one stream, and no files; expected a format of rows: "
            f"{', '.join(one for one in FORMATS if one != 'files')}"
        )
    try:
        beginning = _read_some(stream, len(_WARC) if format else _LOOKED_AT)
    except OSError as error:
        raise FileError(f"standard input cannot be read: {error.strerror or error}") from error
    packed = _packing(beginning)
    kind = format or _kind(beginning, packed, check_encoding(encoding))
    spool = Spool(within)
    name = f"{_NAME}.{'txt' if kind == 'text' else kind}{packed}"
    try:
        path = spool.copy(stream, name, beginning)
    except OSError as error:
        raise FileError(f"standard input cannot be read: {error.strerror or error}") from error
    corpus = open_corpus([*before, path, *after], format, encoding=encoding)
    if not before and not after:
        corpus.name = "standard input"
    if format is None and kind in _DELIMITERS:
        corpus.notices = (
            *corpus.notices,
            f"standard input was read as {kind.upper()}; --format says what else it is",
        )
    corpus.spool = spool
    return corpus


def _read_some(stream: BinaryIO, enough: int) -> bytes:
    """Return the first bytes of a stream: as many as tell what it is, if it has that many."""
    data = b""
    while len(data) < enough and (more := some_of(stream)):
        data += more
        enough = _ENOUGH if _packing(data) else enough
        if data.lstrip().startswith(b"{"):  # JSON Lines, whatever follows
            break
    return data


def _packing(beginning: bytes) -> str:
    """Return how a file is called that begins so: .gz, .zst, or nothing."""
    return next((end for magic, end in _MAGIC.items() if beginning.startswith(magic)), "")


def _kind(beginning: bytes, packed: str, encoding: str | None) -> str:
    """Return the format that begins so."""
    if beginning.startswith(_PARQUET):
        return "parquet"
    if packed:
        try:
            beginning = _unpacked(beginning, _CODECS[packed])
        except OSError:
            return "jsonl"  # what is damaged is told of when it is read
    if beginning.startswith(_WARC):
        return "warc"
    text = TextStream(io.BytesIO(beginning[:_LOOKED_AT]), encoding)
    parts = bytearray()
    while part := text.read(_LOOKED_AT):
        parts += part
    return _kind_of_text(parts.decode("utf-8-sig", "replace"), len(beginning) < _LOOKED_AT)


def _unpacked(beginning: bytes, codec: str) -> bytes:
    """Return what the first bytes of a packed stream hold, as far as they go."""
    parts = b""
    with pa.CompressedInputStream(pa.BufferReader(beginning), codec) as stream:
        while len(parts) < _LOOKED_AT:
            try:
                part = stream.read(_LOOKED_AT - len(parts))
            except OSError:
                if not parts:
                    raise
                break  # the end of the bytes, in the middle of what is packed
            if not part:
                break
            parts += part
    return parts


def _kind_of_text(text: str, whole: bool) -> str:
    """Return the format of rows that begins so; `whole`: nothing follows."""
    lines = [line for line in text.split("\n") if line and not line.isspace()]
    if not lines or any(line.lstrip().startswith("{") for line in lines):
        one_array = text.lstrip().startswith("[") and not _is_json(lines[0])
        return "json" if one_array else "jsonl"
    if text.lstrip().startswith("["):
        return "json"
    if _PAGE.match(text.lstrip()):
        return "html"
    for kind, delimiters in _DELIMITERS.items():
        delimiter = max(delimiters, key=lines[0].count)
        if _is_table(text, delimiter, whole):
            return kind
    raise ArgumentError(
        f"standard input begins with {brief(lines[0])}, which tells no format; say which it is "
        "with ",
        Said("format", "--format"),
        ": text (a document a line), csv, tsv, jsonl, json, html, parquet or warc",
    )


def _is_table(text: str, delimiter: str, whole: bool) -> bool:
    """Return whether all records have as many values as the first has different names."""
    try:
        records = [
            record for record in csv.reader(io.StringIO(text), delimiter=delimiter) if record
        ]
    except csv.Error:
        return False
    header = records[0]
    records = records[1:] if whole else records[1:-1]
    named = any(name.lower() in TEXT_GUESSES for name in header)
    return (
        len(header) > 1
        and len(set(header)) == len(header)
        and (named or len(records) > 0)
        and all(len(record) == len(header) for record in records)
    )


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
