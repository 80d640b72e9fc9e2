"""Checksums of mapped files: at the speed of memory, on several threads, and interruptible."""

from __future__ import annotations

import contextlib
import mmap
import threading
from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.checks import thread_count

Mapped = mmap.mmap | NDArray[np.uint8]
"""A file that is mapped, or bytes in memory."""

_PIECE = 1 << 26
"""Bytes between two looks at whether somebody wants to stop, a few milliseconds."""

_WORTH_A_THREAD = 1 << 23


def checksums(mapping: Mapped, ranges: Sequence[tuple[int, int]]) -> list[int]:
    """Return the XXH64 of each (offset, length); ranges share the threads, one has one.

    Reads 5 to 10 GB/s a thread where the file is in memory, else what the disk gives.
    """
    waiting = deque(sorted(range(len(ranges)), key=lambda at: -ranges[at][1]))  # longest first
    found: list[int | None] = [None] * len(ranges)
    stop = threading.Event()

    def work() -> None:
        with contextlib.suppress(IndexError):
            while not stop.is_set():
                at = waiting.popleft()
                found[at] = _checksum(mapping, *ranges[at], stop)

    large = sum(length >= _WORTH_A_THREAD for _, length in ranges)
    helpers = []
    try:
        with contextlib.suppress(RuntimeError):  # no more threads: those there are do all
            for _ in range(1, min(thread_count(None), large)):
                helper = threading.Thread(target=work, daemon=True)
                helper.start()
                helpers.append(helper)
        work()
        for helper in helpers:
            helper.join()
    except BaseException:
        stop.set()
        for helper in helpers:
            helper.join()
        raise
    # A helper may have run out of memory.
    return [
        _checksum(mapping, *ranges[at], stop) if value is None else value
        for at, value in enumerate(found)
    ]


class RunningChecksum:
    """The XXH64 of a part of a mapped file, as far as it was read."""

    def __init__(self, mapping: Mapped, offset: int) -> None:
        self._mapping = mapping
        self._at = offset
        self._found = _native.Xxh64()

    def add(self, length: int, stop: threading.Event | None = None) -> None:
        """Read so many bytes more, unless somebody wants to stop."""
        end = self._at + length
        while self._at < end and not (stop is not None and stop.is_set()):
            here = min(self._at + _PIECE, end)
            _ask_for(self._mapping, here, min(here + _PIECE, end))
            self._found.add(np.frombuffer(self._mapping, np.uint8, here - self._at, self._at))
            self._at = here

    def value(self) -> int:
        """Return the checksum so far."""
        return self._found.value()


def _checksum(mapping: Mapped, offset: int, length: int, stop: threading.Event) -> int:
    found = RunningChecksum(mapping, offset)
    found.add(length, stop)
    return found.value()


def _ask_for(mapping: Mapped, begin: int, end: int) -> None:
    """Let the system read what comes next meanwhile: twice as fast where it is on disk."""
    first = begin // mmap.PAGESIZE * mmap.PAGESIZE
    if begin < end and isinstance(mapping, mmap.mmap) and hasattr(mmap, "MADV_WILLNEED"):
        with contextlib.suppress(OSError):
            mapping.madvise(mmap.MADV_WILLNEED, first, end - first)
