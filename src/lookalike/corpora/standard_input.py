"""Standard input as a corpus."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from lookalike.corpora.base import Corpus, pa
from lookalike.corpora.encodings import TextStream, check_encoding, packed_by
from lookalike.corpora.formats import FORMATS, Format
from lookalike.corpora.opening import open_corpus
from lookalike.corpora.remote import Spool, some_of
from lookalike.errors import ArgumentError, Said
from lookalike.media import medium_of_files
from lookalike.shown import brief
from lookalike.storage.files import file_errors, is_file

_EXTENSIONS = {"gzip": ".gz", "zstd": ".zst"}
_LONGEST_MAGIC = 7
_ENOUGH = 1 << 18  # compressed bytes that are enough to decompress some
_LOOKED_AT = 1 << 16  # bytes that the format is detected from
_NAME = "standard-input"


def open_standard_input(
    stream: BinaryIO,
    before: Sequence[Path],
    after: Sequence[Path],
    format: str | None,
    within: Path | None,
    encoding: str | None = None,
) -> Corpus:
    """Open a stream, which is copied to a folder, as a corpus, with files before and after it.

    Without a `format`, the beginning of the stream decides. Plain text is refused, because it may
    be one document or one per line.
    """
    if format == "files":
        raise ArgumentError(
            "standard input is not a folder of files; expected a format of rows: text, "
            f"{', '.join(_others())}"
        )
    with file_errors("standard input"):
        beginning = _read_some(stream, _LONGEST_MAGIC if format else _LOOKED_AT)
    packed = _EXTENSIONS.get(packed_by(beginning), "")
    encoding = check_encoding(encoding)
    kind = FORMATS.get(format, "format") if format else _format(beginning, packed, encoding)
    spool = Spool(within)
    name = f"{_NAME}{kind.suffixes[0]}{packed}"
    with file_errors("standard input"):
        path = spool.copy(stream, name, beginning, "standard input")
    corpus = open_corpus([*before, path, *after], format, encoding=encoding)
    if format is None and kind.name in ("csv", "tsv"):
        corpus.notices = (
            *corpus.notices,
            f"standard input was read as {kind.name.upper()}; use --format for another format",
        )
    corpus.spool = spool
    return corpus


def _read_some(stream: BinaryIO, enough: int) -> bytes:
    """Return the first bytes of a stream, enough to detect its format."""
    data = b""
    while len(data) < enough and (more := some_of(stream)):
        data += more
        enough = _ENOUGH if packed_by(data) in _EXTENSIONS else enough
        if data.lstrip().startswith(b"{"):  # JSON Lines, whatever follows
            break
    return data


def _format(beginning: bytes, packed: str, encoding: str | None) -> Format:
    unpacked = beginning
    if packed:
        try:
            unpacked = _unpacked(beginning, packed_by(beginning))
        except OSError:
            return FORMATS["jsonl"]  # reading it will report the damage
    stream = TextStream(io.BytesIO(unpacked[:_LOOKED_AT]), encoding)
    parts = bytearray()
    while part := stream.read(_LOOKED_AT):
        parts += part
    text, whole = parts.decode("utf-8-sig", "replace"), len(unpacked) < _LOOKED_AT

    def begins(one: Format) -> bool:
        if one.magic:
            return (unpacked if one.packs else beginning).startswith(one.magic)
        return one.begins is not None and one.begins(text, whole)

    found = next((one for one in FORMATS if one.magic and begins(one)), None)
    found = found or FORMATS.find(begins)
    if found is not None:
        return found
    first = next(line for line in text.split("\n") if line and not line.isspace())
    if is_file(first) and (medium := medium_of_files([Path(first)])) is not None:
        raise ArgumentError(
            f"standard input begins with {brief(first)}, the name of a file. To de-duplicate the "
            "files of a list, set ",
            Said(f"kind={medium!r}", f"--kind {medium}"),
        )
    raise ArgumentError(
        f"standard input begins with {brief(first)}, which is not a known format; set it with ",
        Said("format", "--format"),
        f": text (one document per line), {', '.join(_others())}",
    )


def _others() -> list[str]:
    return [one for one in FORMATS.names() if one not in ("text", "files")]


def _unpacked(beginning: bytes, codec: str) -> bytes:
    """Return the beginning of a compressed stream, as far as its first bytes allow."""
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
