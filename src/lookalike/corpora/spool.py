"""What can be read once only, kept on disk: standard input, and files that lie elsewhere.

A corpus is read twice at least: for its texts, and for the rows that stay.
"""

from __future__ import annotations

import weakref
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from lookalike import _native
from lookalike.errors import FileError
from lookalike.storage.unfinished import temporary_folder

_PREFIX = "lookalike-input-"
_AT_A_TIME = 1 << 20


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
        self._finish = weakref.finalize(self, left.close)

    def copy(self, stream: BinaryIO, name: str, beginning: bytes = b"") -> Path:
        """Keep what comes out of a stream, after its beginning, which has been read.

        Errors of the stream are raised as they are: the caller knows what it reads.
        """
        path = self.folder / name
        checksum, size = _native.Xxh64(), 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "wb") as file:
                data = beginning or _next_of(stream)
                while data:
                    file.write(data)
                    checksum.add(np.frombuffer(data, np.uint8))
                    size += len(data)
                    data = _next_of(stream)
        except _Unread as error:
            raise error.reason from None
        except OSError as error:
            raise FileError(
                f"{name} cannot be kept in {self.folder}: {error.strerror or error}; it is read "
                "twice, so there has to be room for it: let --work, or TMPDIR, name another folder"
            ) from error
        self._content[path] = [name, size, checksum.value()], _state(path)
        return path

    def close(self) -> None:
        """Remove the copies now: nothing needs them."""
        self._finish()

    def identity(self, path: Path) -> list[Any] | None:
        """Return what is in a copy, wherever and whenever it was made; None if it is none of ours,
        or not what it was.
        """
        content, state = self._content.get(path, ([], []))
        return content if content and _state(path) == state else None


class _Unread(Exception):
    """A stream that cannot be read, which says nothing of where it is copied to."""

    def __init__(self, reason: OSError) -> None:
        super().__init__(reason)
        self.reason = reason


def _next_of(stream: BinaryIO) -> bytes:
    try:
        return some_of(stream)
    except OSError as error:
        raise _Unread(error) from error


def some_of(stream: BinaryIO) -> bytes:
    """Return what has come; of a pipe, without waiting for more."""
    data: bytes = getattr(stream, "read1", stream.read)(_AT_A_TIME)
    return data


def _state(path: Path) -> list[int]:
    try:
        state = path.stat()
    except OSError:
        return []
    return [state.st_size, state.st_mtime_ns, state.st_ino]
