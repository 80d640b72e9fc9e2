"""Files of a long step, which goes on from where it was interrupted."""

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
from lookalike.dedup.work_folder import WorkFolder
from lookalike.errors import LookalikeError

__all__ = ["GrowingFiles", "growing_files"]

_SECONDS = 5.0
"""Of work that a kill or a power failure may cost; syncing more often costs time."""

_AT_A_TIME = 1 << 24


class GrowingFiles:
    """Files that are appended to together, and how far they are known to be good."""

    def __init__(self, work: WorkFolder, step: str, key: str, facts: dict[str, Any] | None) -> None:
        self.facts = facts
        """What was marked last before the interruption; None if the files begin anew."""
        self._work, self._step, self._key = work, step, key
        self._files: dict[str, BinaryIO] = {}
        self._lengths: dict[str, int] = {}
        self._checksums: dict[str, _native.Xxh64] = {}
        self._marked: tuple[dict[str, Any], dict[str, list[int]]] | None = None
        self._stamped = time.monotonic()

    def use(self, name: str, file: BinaryIO, length: int, checksum: _native.Xxh64) -> None:
        """Append to this file, which has that length and checksum."""
        self._files[name], self._lengths[name], self._checksums[name] = file, length, checksum

    def write(self, name: str, array: NDArray[Any]) -> None:
        """Append an array to a file."""
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self._files[name].write(data.data)
        self._checksums[name].add(data)
        self._lengths[name] += len(data)

    def mark(self, facts: dict[str, Any]) -> None:
        """Say that the files belong together as they are now: from here the step may go on."""
        for file in self._files.values():
            file.flush()
        fingerprints = {
            name: [length, self._checksums[name].value()] for name, length in self._lengths.items()
        }
        self._marked = facts, fingerprints
        if time.monotonic() - self._stamped > _SECONDS:
            self.stamp()

    def stamp(self) -> None:
        """Make what was marked last durable, first the files and then the stamp."""
        if self._marked is not None and not self._work.temporary:
            for file in self._files.values():
                os.fsync(file.fileno())
            self._work.stamp(self._step, self._key, *self._marked)
        self._stamped = time.monotonic()


@contextmanager
def growing_files(
    work: WorkFolder, step: str, key: str, names: Sequence[str]
) -> Iterator[GrowingFiles]:
    """Open files to append to, as far as a stamp with this key vouches for them, else anew.

    What was marked is stamped every few seconds and when an error interrupts the step.
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
    """Return the checksum of so many bytes, to be gone on with; None if there are fewer."""
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
