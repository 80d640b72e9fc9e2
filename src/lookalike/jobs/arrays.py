"""Arrays of a job on disk: files that grow and survive an interruption, and strings."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.corpora.base import pa
from lookalike.corpora.strings import StringWriter
from lookalike.errors import CorruptIndexError, LookalikeError
from lookalike.jobs.work_folder import WorkFolder, release
from lookalike.pages.marks import without_marks

__all__ = ["GrowingFiles", "StringsOnDisk", "TextWriter", "growing_files"]

_SECONDS = 5.0
"""Work that a kill or a power failure may lose; syncing more often costs time."""

_AT_A_TIME = 1 << 24


class GrowingFiles:
    """Files that are appended to together, and the lengths up to which they are consistent."""

    def __init__(self, work: WorkFolder, step: str, key: str, facts: dict[str, Any] | None) -> None:
        self.facts = facts
        """The facts marked last before an interruption; None if the files are new."""
        self._work, self._step, self._key = work, step, key
        self._files: dict[str, BinaryIO] = {}
        self._lengths: dict[str, int] = {}
        self._checksums: dict[str, _native.Xxh64] = {}
        self._marked: tuple[dict[str, Any], dict[str, list[int]]] | None = None
        self._stamped = time.monotonic()

    def use(self, name: str, file: BinaryIO, length: int, checksum: _native.Xxh64) -> None:
        """Add an open file with its current length and checksum."""
        self._files[name], self._lengths[name], self._checksums[name] = file, length, checksum

    def write(self, name: str, array: NDArray[Any]) -> None:
        """Append an array to a file."""
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self._files[name].write(data.data)
        self._checksums[name].add(data)
        self._lengths[name] += len(data)

    def mark(self, facts: dict[str, Any]) -> None:
        """Mark the files as consistent: an interrupted step continues from here."""
        for file in self._files.values():
            file.flush()
        fingerprints = {
            name: [length, self._checksums[name].value()] for name, length in self._lengths.items()
        }
        self._marked = facts, fingerprints
        if time.monotonic() - self._stamped > _SECONDS:
            self.stamp()

    def stamp(self) -> None:
        """Sync the files, then write the stamp of the last mark."""
        if self._marked is not None and not self._work.temporary:
            for file in self._files.values():
                os.fsync(file.fileno())
            self._work.stamp(self._step, self._key, *self._marked)
        self._stamped = time.monotonic()


@contextmanager
def growing_files(
    work: WorkFolder, step: str, key: str, names: Sequence[str]
) -> Iterator[GrowingFiles]:
    """Open files to append to: continued up to a stamp with this key, or new ones.

    Marks are written to the stamp every few seconds, and when an error interrupts the step.
    """
    kept: dict[str, tuple[int, _native.Xxh64]] = {}
    facts = None
    stamp = work.read_stamp(step, key)
    if stamp is not None and set(stamp["files"]) == set(names):
        for name, (length, checksum) in stamp["files"].items():
            found = _checksum_of_beginning(work, name, length)
            if found is None or found.value() != checksum:
                break
            kept[name] = length, found
        else:
            facts = stamp["facts"]
    if facts is None:
        kept.clear()
        work.begin(step)
    growing = GrowingFiles(work, step, key, facts)
    with ExitStack() as files:
        for name in names:
            length, checksum = kept.get(name, (0, _native.Xxh64()))
            file = files.enter_context(work.writer(name, keep_bytes=length))
            growing.use(name, file, length, checksum)
        try:
            yield growing
        except BaseException:
            with contextlib.suppress(OSError, LookalikeError):  # the disk may be what failed
                growing.stamp()
            raise


def _checksum_of_beginning(work: WorkFolder, name: str, length: int) -> _native.Xxh64 | None:
    """Return the running checksum of the first `length` bytes; None if the file is shorter."""
    found = _native.Xxh64()
    try:
        with open(work.path(name), "rb") as file:
            while length:
                data = file.read(min(length, _AT_A_TIME))
                if not data:
                    return None
                found.add(np.frombuffer(data, np.uint8))
                length -= len(data)
    except OSError:
        return None
    return found


class TextWriter(StringWriter):
    """Appends Arrow strings to two files of a work folder."""

    @classmethod
    @contextmanager
    def open(cls, work: WorkFolder, name: str) -> Iterator[TextWriter]:
        """Create the two files of this name."""
        with ExitStack() as files:
            data = files.enter_context(work.writer(f"{name}.bytes"))
            ends = files.enter_context(work.writer(f"{name}.ends"))
            yield cls(data, ends)


class StringsOnDisk:
    """Memory-mapped strings that `TextWriter` wrote: all bytes in one file, all ends in another."""

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
        """Return the length of one string in bytes."""
        return int(self.offsets[position + 1] - self.offsets[position])

    def equal(self, one: int, two: int) -> bool:
        """Return whether two strings are equal byte for byte."""
        a, b = (self._data[self.offsets[at] : self.offsets[at + 1]] for at in (one, two))
        return np.array_equal(a, b)

    def beginning(self, position: int, most: int) -> str:
        """Return at most `most` bytes of one string, without a cut character or link marks."""
        begin, end = self.offsets[position], self.offsets[position + 1]
        data = self._data[begin : min(end, begin + most)].tobytes()
        return without_marks(data.decode(errors="ignore"))

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The length of each string in bytes."""
        return np.diff(self.offsets)

    @property
    def documents(self) -> _native.Documents:
        """All strings, in the form that the core reads."""
        if self._documents is None:
            buffers = [None, pa.py_buffer(self.offsets), pa.py_buffer(self._data)]
            strings = pa.Array.from_buffers(pa.large_string(), len(self), buffers)
            stream = pa.chunked_array([strings]).__arrow_c_stream__()
            self._documents = _native.Documents.from_arrow(stream)
        return self._documents

    def release(self) -> None:
        """Drop the text from memory; reading it again loads it."""
        release(self._data)
