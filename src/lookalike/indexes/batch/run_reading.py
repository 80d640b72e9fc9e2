"""Runs of a signature file: read a part at a time, verified on the way, and ahead of who asks."""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lookalike.errors import CorruptIndexError
from lookalike.indexes.batch.run_headers import PAGE, Run, cut_short, pages
from lookalike.storage.container import RunningChecksum

__all__ = ["RunReader", "read_ahead"]

T = TypeVar("T")


class RunReader:
    """A run of a mapped file, which is verified as it is read: only when all of it was, what was
    taken before is sure to be what was written.
    """

    def __init__(self, path: Path, mapping: mmap.mmap, number: int, run: Run, width: int) -> None:
        size, begin = run.count * width, run.offset + PAGE
        places = (begin, begin + pages(size))
        end = places[1] + 8 * run.count
        if len(mapping) < end:
            raise cut_short(path, len(mapping), run.offset, end)
        self._path = path
        self._number = number
        self.count = run.count
        """How many signatures it has."""
        self._signatures = np.frombuffer(mapping, np.uint8, size, begin).reshape(-1, width)
        self._ids = np.frombuffer(mapping, "<i8", run.count, places[1])
        self._taken = 0
        self._parts = [
            ("signatures", RunningChecksum(mapping, places[0]), width, run.signatures_checksum),
            ("ids", RunningChecksum(mapping, places[1]), 8, run.ids_checksum),
        ]

    def take(self, end: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Return what comes next, up to that place, mapped; raise at the end of a damaged run."""
        part = slice(self._taken, end)
        self._advance(end)
        return self._signatures[part], self._ids[part].astype(np.int64, copy=False)

    def verify(self) -> None:
        """Read what was not taken, and raise if the run is not what was written."""
        self._advance(self.count)

    def _advance(self, end: int) -> None:
        for _, checksum, width, _ in self._parts:
            checksum.add((end - self._taken) * width)
        self._taken = end
        for name, checksum, _, written in self._parts if end == self.count else ():
            if (found := checksum.value()) != written:
                raise CorruptIndexError(
                    f"{self._path}: the {name} of run {self._number} have the checksum "
                    f"{found:016x}, the file says {written:016x}; it is damaged, restore it"
                )


@contextlib.contextmanager
def read_ahead(items: Iterator[T], count: int) -> Iterator[Iterator[T]]:
    """Let one item be made by another thread while somebody is busy with the one before it.

    There are `count` of them; one alone is made by whoever asks for it.
    """
    if count < 2:
        yield items
        return
    with ThreadPoolExecutor(1, thread_name_prefix="lookalike reads ahead") as reader:

        def ahead() -> Iterator[T]:
            try:
                coming: Future[T | None] = reader.submit(next, items, None)
            except RuntimeError:  # no more threads: nobody reads ahead
                yield from items
                return
            while (item := coming.result()) is not None:
                coming = reader.submit(next, items, None)
                yield item

        yield ahead()
