"""The signature file: sorted runs of signatures with ids, to which batches are appended.

Layout, all numbers little-endian, every part at a multiple of 4096 bytes, zeros between them:

    file header    magic, format version, bytes of a signature, checksum of these
    run            header: magic, number of signatures, largest id, checksums of both parts and of
                   the header itself
                   signatures, sorted by their words of 8 bytes (little-endian, the first counts
                   most), then ids, int64
    run ...
    end            magic, number of runs, largest id, where this page begins, checksum of these

Appending is atomic: behind the end, the parts of a new run and a new end are written and synced;
then the header of the run takes the place of the old end, within one sector of the disk, and is
synced. So nothing but an end says that a file ends there: a header that was lost is damage, and so
is a file that was cut between runs. What lies behind the end was never finished; it is not read,
and the next append overwrites it.

Merging runs writes a new file beside it, which takes its place: whoever has the lock then looks
whether the file that it has locked is still the one of that name.

One process appends at a time, under a lock. Readers need none: they see an end or the header in its
place, and what a header tells of was synced before. Only one that meets something else, perhaps a
header half written, looks again under the lock before it says that the file is damaged.

Version 1 had no end, and an empty header before a run that was being appended. Such files are read,
and become version 2 when they are appended to; but one that does not end with its last run may be
damaged or may have been interrupted, nobody can tell, and is refused.

Checksums are XXH64, and compared whenever a run is read.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.errors import CorruptIndexError, FormatError

__all__ = [
    "PAGE",
    "Layout",
    "Run",
    "cut_short",
    "end_page",
    "file_header",
    "pages",
    "raw_bytes",
    "read_layout",
    "run_header",
    "write_at",
]

FORMAT_VERSION = 2

_MAGIC = b"\x89LKRUNS\n"
_RUN_MAGIC = b"LKSORTED"
_END_MAGIC = b"LKFINISH"
_HEADER = struct.Struct("<8s H 2x I Q")
_RUN = struct.Struct("<8s Q q Q Q Q")  # that of the end has the same length
PAGE = 4096
_LONGEST = 2**48


@dataclass(frozen=True)
class Run:
    """What the header of a run says."""

    offset: int
    count: int
    largest_id: int
    signatures_checksum: int
    ids_checksum: int


@dataclass(frozen=True)
class Layout:
    """What the headers of a file say, all at one time."""

    version: int
    width: int
    """Bytes of a signature."""
    runs: tuple[Run, ...]
    end: int
    """Where the last run ends."""

    @property
    def largest_id(self) -> int:
        """The largest id there is; -1 if there are none."""
        return max((run.largest_id for run in self.runs), default=-1)


def read_layout(path: Path, descriptor: int) -> Layout:
    """Read all headers of the file at that path, as they are now, and raise if one is damaged."""
    head = os.pread(descriptor, _HEADER.size, 0)
    if head[:8] != _MAGIC:
        raise FormatError(
            f"{path} is not a signature file: it begins with {head[:8]!r}, expected {_MAGIC!r}"
        )
    if len(head) < _HEADER.size or os.fstat(descriptor).st_size < PAGE:
        raise CorruptIndexError(f"{path} ends inside its header; restore it")
    _, version, width, checksum = _HEADER.unpack(head)
    if version not in (1, FORMAT_VERSION):
        raise FormatError(
            f"{path} has format version {version}; this lookalike reads {FORMAT_VERSION}, and 1"
        )
    if _checksum(head) != checksum or not width:
        raise CorruptIndexError(
            f"{path}: the header does not match its checksum; it is damaged, restore it"
        )
    runs: list[Run] = []
    end = PAGE
    while (run := _read_run(path, descriptor, version, width, end, len(runs))) is not None:
        runs.append(run)
        end += PAGE + pages(run.count * width) + pages(run.count * 8)
    return Layout(version, width, tuple(runs), end)


def _read_run(
    path: Path, descriptor: int, version: int, width: int, begin: int, number: int
) -> Run | None:
    """Return the run whose header is there; None if the file ends there."""
    head = os.pread(descriptor, _RUN.size, begin)
    length = os.fstat(descriptor).st_size  # not before: the file may have grown since
    if version == 1 and begin == length:
        return None
    if len(head) < _RUN.size or begin + PAGE > length:
        raise cut_short(path, length, begin, begin + PAGE)
    magic, count, largest, first, second, checksum = _RUN.unpack(head)
    sound = _checksum(head) == checksum
    if sound and magic == _END_MAGIC and (count, first) == (number, begin):
        return None
    if not sound or magic != _RUN_MAGIC or count > _LONGEST:
        raise _damaged_header(path, head, version, begin, length)
    end = begin + PAGE + pages(count * width) + pages(count * 8)
    if end > length:
        raise cut_short(path, length, begin, end)
    return Run(begin, count, largest, first, second)


def cut_short(path: Path, length: int, begin: int, end: int) -> CorruptIndexError:
    """Return the error of a file that ends too early."""
    return CorruptIndexError(
        f"{path} has {length} bytes, but what begins at byte {begin} ends at {end}; "
        "it was cut short: restore it"
    )


def _damaged_header(
    path: Path, head: bytes, version: int, begin: int, length: int
) -> CorruptIndexError:
    if version == 1 and not any(head):
        return CorruptIndexError(
            f"{path}: {length - begin} bytes follow the last run, at byte {begin}, and "
            "have no header. Either an append by an older version was interrupted there; then "
            f"cut the file to {begin} bytes (truncate -s {begin}). Or the header of a run was "
            "lost; then restore the file"
        )
    return CorruptIndexError(
        f"{path}: there is no sound header at byte {begin}; it is damaged, restore it"
    )


def file_header(width: int) -> bytes:
    """Return the first page of a file."""
    return _sealed(_HEADER.pack(_MAGIC, FORMAT_VERSION, width, 0)).ljust(PAGE, b"\0")


def run_header(run: Run) -> bytes:
    """Return what stands at the beginning of the page before a run."""
    checksums = (run.signatures_checksum, run.ids_checksum)
    return _sealed(_RUN.pack(_RUN_MAGIC, run.count, run.largest_id, *checksums, 0))


def end_page(offset: int, runs: tuple[Run, ...]) -> bytes:
    """Return the page that ends a file of these runs at that place."""
    largest = max((run.largest_id for run in runs), default=-1)
    head = _sealed(_RUN.pack(_END_MAGIC, len(runs), largest, offset, 0, 0))
    return head.ljust(PAGE, b"\0")


def write_at(descriptor: int, offset: int, data: bytes | memoryview) -> None:
    """Write all of it; the system may take less at a time."""
    left = memoryview(data)
    while len(left):
        written = os.pwrite(descriptor, left, offset)
        left, offset = left[written:], offset + written


def pages(size: int) -> int:
    """Return how many bytes a part takes, to the end of its last page."""
    return -(-size // PAGE) * PAGE


def raw_bytes(array: NDArray[np.generic]) -> NDArray[np.uint8]:
    """Return the bytes of an array."""
    return array.reshape(-1).view(np.uint8)


def _checksum(head: bytes) -> int:
    """Return the checksum of a header, all but the place of the checksum itself."""
    return _native.xxh64(np.frombuffer(head[:-8], np.uint8))


def _sealed(head: bytes) -> bytes:
    """Return a header with its checksum."""
    return head[:-8] + struct.pack("<Q", _checksum(head))
