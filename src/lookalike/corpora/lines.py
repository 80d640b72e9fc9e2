"""Files read line by line, compressed or not, a batch of lines at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.corpora.base import BATCH_BYTES, arrow
from lookalike.corpora.formats import compression_of
from lookalike.errors import FileError

if TYPE_CHECKING:
    import pyarrow

__all__ = ["LineBatch", "line_batches", "open_input"]

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NEWLINE = ord("\n")


@dataclass(frozen=True)
class LineBatch:
    """Consecutive lines of a file, with their line ends; the last of a file may have none."""

    path: Path
    first: int
    """The number of the first line, counted from 1."""
    data: NDArray[np.uint8]
    ends: NDArray[np.int64]
    """Where each line ends; `data` is at least as long as the last."""
    done: float
    """Bytes of the file read so far, as they lie on disk."""

    def __len__(self) -> int:
        return len(self.ends)

    def where(self, index: int) -> str:
        """Return how people find line `index` of this batch."""
        return f"{self.path}, line {self.first + index}"

    @cached_property
    def lines(self) -> pyarrow.LargeBinaryArray:
        """The lines as Arrow, over the same memory."""
        pa = arrow()
        offsets = np.concatenate([[0], self.ends])
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(pa.large_binary(), len(self), buffers)


def open_input(path: Path) -> Any:
    """Open a file for reading, decompressed; return the stream and the file beneath it."""
    compression = compression_of(path)
    try:
        if compression is None:
            file: Any = open(path, "rb", buffering=0)  # noqa: SIM115  # the caller closes it
            return file, file
        pa = arrow()
        file = pa.OSFile(os.fsencode(path), "rb")
        return pa.CompressedInputStream(file, compression), file
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error}") from error


def line_batches(path: Path) -> Iterator[LineBatch]:
    """Yield all lines of a file, without copying them one by one."""
    stream, file = open_input(path)
    first = 1
    rest = np.empty(0, np.uint8)  # of a line whose end has not been seen
    with file:
        begun = at_end = False
        while not at_end:
            # A line longer than a batch is read in ever larger steps: each byte is copied twice.
            data = np.empty(len(rest) + max(BATCH_BYTES, len(rest)), np.uint8)
            data[: len(rest)] = rest
            try:
                read = _fill(stream, data[len(rest) :])
                position = file.tell()
            except (OSError, EOFError) as error:
                raise FileError(
                    f"{path}: cannot be read after line {first - 1}: {error}"
                ) from error
            at_end = read == 0
            data = data[: len(rest) + read]
            if not begun and data[:3].tobytes() == _BYTE_ORDER_MARK:
                data = data[3:]
            begun = True
            ends = _native.line_ends(data)
            if len(ends) and data[-1] != _NEWLINE and not at_end:
                ends = ends[:-1]
            rest = data[ends[-1] :] if len(ends) else data
            if len(ends):
                yield LineBatch(path, first, data, ends, position)
            first += len(ends)


def _fill(stream: Any, buffer: NDArray[np.uint8]) -> int:
    """Read until a buffer is full or the stream at its end; return how many bytes came."""
    done = 0
    while done < len(buffer):
        read = stream.readinto(buffer[done:])
        if not read:
            break
        done += read
    return done
