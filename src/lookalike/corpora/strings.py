"""Arrow strings appended to two files: all their bytes, and where each one ends."""

from __future__ import annotations

from typing import Any, BinaryIO

import numpy as np


class StringWriter:
    """Appends Arrow strings; nulls become empty strings."""

    def __init__(self, data: BinaryIO, ends: BinaryIO) -> None:
        self._data = data
        self._ends = ends
        self.size = 0
        self.count = 0

    def append(self, strings: Any) -> None:
        """Append a `large_string` array."""
        if strings.null_count:
            strings = strings.fill_null("")
        if not len(strings):
            return
        _, offsets, data = strings.buffers()
        ends = np.frombuffer(offsets, np.int64)[strings.offset : strings.offset + len(strings) + 1]
        if ends[-1] > ends[0]:
            self._data.write(memoryview(data)[ends[0] : ends[-1]])
        self._ends.write((ends[1:] - ends[0] + self.size).tobytes())
        self.size += int(ends[-1] - ends[0])
        self.count += len(strings)

    def append_empty(self, count: int) -> None:
        """Append that many empty strings."""
        self._ends.write(np.full(count, self.size, np.int64).tobytes())
        self.count += count
