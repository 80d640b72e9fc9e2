"""Strings on disk: their bytes in one file, where each ends in another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.corpora.base import pa
from lookalike.dedup.work_folder import WorkFolder, release
from lookalike.errors import CorruptIndexError
from lookalike.pages.marks import without_marks
from lookalike.storage.strings import StringWriter

__all__ = ["StringsOnDisk", "TextWriter"]


class TextWriter(StringWriter):
    """Appends Arrow strings to the files of a job."""

    @classmethod
    @contextmanager
    def open(cls, work: WorkFolder, name: str) -> Iterator[TextWriter]:
        """Begin anew under this name."""
        with ExitStack() as files:
            data = files.enter_context(work.writer(f"{name}.bytes"))
            ends = files.enter_context(work.writer(f"{name}.ends"))
            yield cls(data, ends)


class StringsOnDisk:
    """Strings that `TextWriter` wrote, mapped."""

    def __init__(self, work: WorkFolder, name: str) -> None:
        self._data: NDArray[np.uint8] = work.array(f"{name}.bytes", np.uint8)
        ends: NDArray[np.int64] = work.array(f"{name}.ends", np.int64)
        self.offsets = np.concatenate([np.zeros(1, np.int64), ends])
        if (np.diff(self.offsets) < 0).any() or self.offsets[-1] != len(self._data):
            raise CorruptIndexError(
                f"{work.path(name)}.ends does not fit {work.path(name)}.bytes; one of them is "
                "damaged: remove them"
            )
        self._documents: _native.Documents | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, position: int) -> str:
        return self._data[self.offsets[position] : self.offsets[position + 1]].tobytes().decode()

    def size(self, position: int) -> int:
        """Return the bytes of one."""
        return int(self.offsets[position + 1] - self.offsets[position])

    def equal(self, one: int, two: int) -> bool:
        """Return whether two are the same, byte for byte."""
        a, b = (self._data[self.offsets[at] : self.offsets[at + 1]] for at in (one, two))
        return np.array_equal(a, b)

    def beginning(self, position: int, most: int) -> str:
        """Return the first bytes of one, at most so many, without a character that was cut, as
        people read it: without marks of links.
        """
        begin, end = self.offsets[position], self.offsets[position + 1]
        data = self._data[begin : min(end, begin + most)].tobytes()
        return without_marks(data.decode(errors="ignore"))

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Bytes of each."""
        return np.diff(self.offsets)

    @property
    def documents(self) -> _native.Documents:
        """All of them, as the core reads documents."""
        if self._documents is None:
            buffers = [None, pa.py_buffer(self.offsets), pa.py_buffer(self._data)]
            strings = pa.Array.from_buffers(pa.large_string(), len(self), buffers)
            stream = pa.chunked_array([strings]).__arrow_c_stream__()
            self._documents = _native.Documents.from_arrow(stream)
        return self._documents

    def release(self) -> None:
        """Let go of the memory behind them."""
        release(self._data)
