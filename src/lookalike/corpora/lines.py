"""Files read line by line, compressed or not, a batch of lines at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lookalike.corpora.base import BATCH_BYTES, arrow
from lookalike.corpora.formats import compression_of
from lookalike.errors import FileError

if TYPE_CHECKING:
    import pyarrow

__all__ = ["LineBatch", "line_batches", "open_input"]

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NEWLINE = 10


@dataclass(frozen=True)
class LineBatch:
    """Consecutive lines of a file, with their line ends; the last of a file may have none."""

    path: Path
    first: int
    """The number of the first line, counted from 1."""
    lines: pyarrow.LargeBinaryArray
    done: float
    """Bytes of the file read so far, as they lie on disk."""

    def where(self, index: int) -> str:
        """Return how people find line `index` of this batch."""
        return f"{self.path}, line {self.first + index}"


def open_input(path: Path) -> Any:
    """Open a file for reading, decompressed; return the stream and the file beneath it."""
    pa = arrow()
    try:
        file = pa.OSFile(os.fsencode(path), "rb")
        compression = compression_of(path)
        stream = pa.CompressedInputStream(file, compression) if compression else file
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error}") from error
    return stream, file


def line_batches(path: Path) -> Iterator[LineBatch]:
    """Yield all lines of a file, without copying them one by one."""
    stream, file = open_input(path)
    first = 1
    pieces: list[bytes] = []  # of a line whose end has not been seen
    with file:
        while True:
            try:
                data = stream.read(BATCH_BYTES)
            except (OSError, EOFError) as error:
                raise FileError(
                    f"{path}: cannot be read after line {first - 1}: {error}"
                ) from error
            if first == 1 and not pieces:
                data = data.removeprefix(_BYTE_ORDER_MARK) if data else data
            if not data:
                break
            end = data.rfind(b"\n") + 1
            if end == 0:
                pieces.append(data)
                continue
            lines = b"".join([*pieces, data[:end]])
            pieces = [data[end:]] if end < len(data) else []
            batch = LineBatch(path, first, _split(lines), file.tell())
            first += len(batch.lines)
            yield batch
        if pieces:
            yield LineBatch(path, first, _split(b"".join(pieces)), file.tell())


def _split(data: bytes) -> Any:
    """Return the lines of a buffer as an Arrow array over that buffer."""
    pa = arrow()
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == _NEWLINE) + 1
    if not len(ends) or ends[-1] != len(data):
        ends = np.append(ends, len(data))
    offsets = np.concatenate([[0], ends]).astype(np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), len(ends), buffers)
