"""What can be read once only, kept on disk: standard input, and files that lie elsewhere.

A corpus is read twice at least: for its texts, and for the rows that stay.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from lookalike import _native
from lookalike.corpora.base import Corpus
from lookalike.corpora.files import FileCorpus
from lookalike.corpora.formats import FORMATS
from lookalike.corpora.opening import open_corpus
from lookalike.errors import ArgumentError, FileError
from lookalike.storage.unfinished import temporary_folder

_PREFIX = "lookalike-input-"
_AT_A_TIME = 1 << 20
_MAGIC = {b"\x1f\x8b": ".gz", b"\x28\xb5\x2f\xfd": ".zst"}
_PARQUET = b"PAR1"
_NAME = "standard-input"


class Spool:
    """A folder of copies, which goes with the last that knows it, or with the process."""

    def __init__(self, within: Path | None = None) -> None:
        self._content: dict[Path, tuple[list[Any], list[int]]] = {}
        try:
            if within is not None:
                within.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"{within}: cannot work here: {error.strerror}") from error
        left = ExitStack()
        self.folder = left.enter_context(temporary_folder(_PREFIX, within))
        weakref.finalize(self, left.close)

    def copy(self, stream: BinaryIO, name: str, beginning: bytes = b"") -> Path:
        """Keep what comes out of a stream, after its beginning, which has been read."""
        path = self.folder / name
        checksum, size = _native.Xxh64(), 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "wb") as file:
                data = beginning or _some_of(stream)
                while data:
                    file.write(data)
                    checksum.add(np.frombuffer(data, np.uint8))
                    size += len(data)
                    data = _some_of(stream)
        except OSError as error:
            raise FileError(
                f"{name} cannot be kept in {self.folder}: {error.strerror or error}; it is read "
                "twice, so there has to be room for it: let --work, or TMPDIR, name another folder"
            ) from error
        self._content[path] = [name, size, checksum.value()], _state(path)
        return path

    def identity(self, path: Path) -> list[Any] | None:
        """Return what is in a copy, wherever and whenever it was made; None if it is none of ours,
        or not what it was.
        """
        content, state = self._content.get(path, ([], []))
        return content if content and _state(path) == state else None


def open_standard_input(
    stream: BinaryIO,
    before: Sequence[Path],
    after: Sequence[Path],
    format: str | None,
    within: Path | None,
) -> Corpus:
    """Return a corpus of what comes through a stream, between files before and after it.

    JSON Lines unless `format` says otherwise, or its first bytes do, those of Parquet; gzip and
    zstd are known by theirs. It is kept in a new folder, in `within` or where temporary files are.
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
    packed = next((end for magic, end in _MAGIC.items() if beginning.startswith(magic)), "")
    kind = format or ("parquet" if beginning.startswith(_PARQUET) else "jsonl")
    spool = Spool(within)
    path = spool.copy(stream, f"{_NAME}.{'txt' if kind == 'text' else kind}{packed}", beginning)
    corpus = open_corpus([*before, path, *after], format)
    if not before and not after:
        corpus.name = "standard input"
    if isinstance(corpus, FileCorpus):
        corpus.spool = spool
    return corpus


def _read_some(stream: BinaryIO) -> bytes:
    """Return the first bytes of a stream: as many as tell what it is, if it has so many."""
    data = b""
    while len(data) < len(_PARQUET) and (more := _some_of(stream)):
        data += more
    return data


def _some_of(stream: BinaryIO) -> bytes:
    """Return what has come; of a pipe, without waiting for more."""
    data: bytes = getattr(stream, "read1", stream.read)(_AT_A_TIME)
    return data


def _state(path: Path) -> list[int]:
    try:
        state = path.stat()
    except OSError:
        return []
    return [state.st_size, state.st_mtime_ns, state.st_ino]
