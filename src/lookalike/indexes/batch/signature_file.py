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

One process appends at a time, under a lock. Readers need none: they see an end or the header in its
place, and what a header tells of was synced before. Only one that meets something else, perhaps a
header half written, looks again under the lock before it says that the file is damaged.

Version 1 had no end, and an empty header before a run that was being appended. Such files are read,
and become version 2 when they are appended to; but one that does not end with its last run may be
damaged or may have been interrupted, nobody can tell, and is refused.

Checksums are XXH64, and compared whenever a run is read.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike import _native
from lookalike.checks import as_array, file_path, flag, whole_number
from lookalike.errors import ArgumentError, CorruptIndexError, FileError, FormatError
from lookalike.indexes.rows import as_ids
from lookalike.signatures import as_signatures
from lookalike.signatures.arrays import MAX_BITS
from lookalike.storage.atomic import new_file
from lookalike.storage.mapped import checksums

__all__ = ["SignatureFile"]

FORMAT_VERSION = 2

_MAGIC = b"\x89LKRUNS\n"
_RUN_MAGIC = b"LKSORTED"
_END_MAGIC = b"LKFINISH"
_HEADER = struct.Struct("<8s H 2x I Q")
_RUN = struct.Struct("<8s Q q Q Q Q")  # that of the end has the same length
_PAGE = 4096
_LONGEST = 2**48


@dataclass(frozen=True)
class _Run:
    offset: int
    count: int
    largest_id: int
    signatures_checksum: int
    ids_checksum: int


@dataclass(frozen=True)
class _Layout:
    """What the headers of a file say, all at one time."""

    version: int
    width: int
    """Bytes of a signature."""
    runs: tuple[_Run, ...]
    end: int
    """Where the last run ends."""

    @property
    def largest_id(self) -> int:
        return max((run.largest_id for run in self.runs), default=-1)


class SignatureFile:
    """A file of sorted runs of signatures, for `match_batch`.

    `SignatureFile.create` makes an empty one. Opening reads the headers of runs; signatures are
    read run by run, and verified then. Appending from several threads or processes waits its turn;
    reading meanwhile sees the file as it was before or after an append.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = file_path("path", path)
        try:
            descriptor = os.open(self.path, os.O_RDONLY)
            try:
                self._layout = self._read(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise FileError(f"{self.path} cannot be read: {error}") from error

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], bits: SupportsIndex, *, exist_ok: bool = False
    ) -> SignatureFile:
        """Make an empty file for signatures of so many bits; raise if there is one already.

        With `exist_ok` that one is opened.
        """
        target, there = file_path("path", path), flag("exist_ok", exist_ok)
        wide = whole_number("bits", bits, at_least=8, at_most=MAX_BITS)
        if wide % 8:
            raise ArgumentError(f"bits is {wide}; expected a multiple of 8")
        content = _file_header(wide // 8) + _end_page(_PAGE, ())
        try:
            new_file(target, content)
        except FileExistsError as error:
            if not there:
                raise FileError(f"{path} cannot be written: {error}") from error
        except OSError as error:
            raise FileError(f"{path} cannot be written: {error}") from error
        return cls(path)

    def __len__(self) -> int:
        return sum(self.runs)

    def __repr__(self) -> str:
        return f"SignatureFile({len(self)} signatures of {self.bits} bits, {len(self.runs)} runs)"

    @property
    def bits(self) -> int:
        """How many bits each signature has."""
        return 8 * self._layout.width

    @property
    def runs(self) -> list[int]:
        """How many signatures each run has."""
        return [run.count for run in self._layout.runs]

    @property
    def largest_id(self) -> int:
        """The largest id there is; -1 if there are none."""
        return self._layout.largest_id

    def read(self, run: SupportsIndex) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Return signatures and ids of a run, mapped; raise if they are not what was written."""
        if not self._layout.runs:
            raise ArgumentError(f"{self.path} has no runs to read")
        number = whole_number("run", run, at_least=0, at_most=len(self._layout.runs) - 1)
        own, width = self._layout.runs[number], self._layout.width
        size = own.count * width
        begin = own.offset + _PAGE
        parts = [(begin, size), (begin + _pages(size), 8 * own.count)]
        if not own.count:
            return np.empty((0, width), np.uint8), np.empty(0, np.int64)
        try:
            with open(self.path, "rb") as file:
                mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise FileError(f"{self.path} cannot be read: {error}") from error
        if len(mapping) < sum(parts[1]):
            raise self._cut_short(len(mapping), own.offset, sum(parts[1]))
        wanted = (own.signatures_checksum, own.ids_checksum)
        found = checksums(mapping, parts)
        for name, one, other in zip(("signatures", "ids"), found, wanted, strict=True):
            if one != other:
                raise CorruptIndexError(
                    f"{self.path}: the {name} of run {number} have the checksum {one:016x}, the "
                    f"file says {other:016x}; it is damaged, restore it"
                )
        signatures = np.frombuffer(mapping, np.uint8, size, begin).reshape(own.count, width)
        ids = np.frombuffer(mapping, "<i8", own.count, parts[1][0])
        return signatures, ids.astype(np.int64, copy=False)

    def each_run(self) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.int64]]]:
        """Yield signatures and ids of all runs, one after the other."""
        return (self.read(run) for run in range(len(self.runs)))

    def verify(self) -> None:
        """Read everything and raise `CorruptIndexError` if it is damaged."""
        for _ in SignatureFile(self.path).each_run():
            pass

    def append(self, signatures: ArrayLike, ids: ArrayLike, *, number_on: bool = False) -> None:
        """Add a run of sorted signatures, whole or not at all.

        With `number_on`, ids count from 0 and are raised by what follows the largest one there is.
        """
        rows, own = as_signatures(signatures), as_ids(as_array("ids", ids))
        counted = flag("number_on", number_on)
        try:
            descriptor = os.open(self.path, os.O_RDWR)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                layout = self._read_once(descriptor)  # somebody may have appended meanwhile
                if rows.shape != (len(own), layout.width):
                    raise ArgumentError(
                        f"signatures have shape {rows.shape} and there are {len(own)} ids; "
                        f"expected ({len(own)}, {layout.width})"
                    )
                if layout.version == 1:
                    self._give_an_end(descriptor, layout)
                names = own + (layout.largest_id + 1) if counted else own
                run = self._write_parts(
                    descriptor, layout, rows, np.ascontiguousarray(names, "<i8")
                )
                try:
                    _write(descriptor, layout.end, _run_header(run))
                    os.fsync(descriptor)
                except OSError as error:
                    raise FileError(
                        f"{self.path} may have been appended to, or not: {error}; open it again "
                        "and look before you append once more"
                    ) from error
                self._layout = self._read_once(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise FileError(f"{self.path} cannot be written: {error}") from error

    def _write_parts(
        self,
        descriptor: int,
        layout: _Layout,
        signatures: NDArray[np.uint8],
        ids: NDArray[np.int64],
    ) -> _Run:
        """Write a run and a new end behind the old one, which stays where it is."""
        at = layout.end + _PAGE
        os.ftruncate(descriptor, at)  # of what was never finished
        found = []
        for part in (_bytes(np.ascontiguousarray(signatures)), _bytes(ids)):
            _write(descriptor, at, part.data)
            found.append(_native.xxh64(part))
            at += _pages(len(part))
        run = _Run(layout.end, len(ids), int(ids.max(initial=-1)), found[0], found[1])
        _write(descriptor, at, _end_page(at, (*layout.runs, run)))
        os.fsync(descriptor)
        return run

    def _give_an_end(self, descriptor: int, layout: _Layout) -> None:
        """Turn a file of version 1 into one of version 2; it can be read at any time."""
        _write(descriptor, layout.end, _end_page(layout.end, layout.runs))
        os.fsync(descriptor)
        _write(descriptor, 0, _file_header(layout.width))
        os.fsync(descriptor)

    def _read(self, descriptor: int) -> _Layout:
        """Read all headers; if they seem damaged, once more while nobody can be appending."""
        try:
            return self._read_once(descriptor)
        except CorruptIndexError:
            with contextlib.suppress(OSError):  # some file systems have no locks
                fcntl.flock(descriptor, fcntl.LOCK_SH)
            return self._read_once(descriptor)

    def _read_once(self, descriptor: int) -> _Layout:
        head = os.pread(descriptor, _HEADER.size, 0)
        if head[:8] != _MAGIC:
            raise FormatError(
                f"{self.path} is not a signature file: it begins with {head[:8]!r}, expected "
                f"{_MAGIC!r}"
            )
        if len(head) < _HEADER.size or os.fstat(descriptor).st_size < _PAGE:
            raise CorruptIndexError(f"{self.path} ends inside its header; restore it")
        _, version, width, checksum = _HEADER.unpack(head)
        if version not in (1, FORMAT_VERSION):
            raise FormatError(
                f"{self.path} has format version {version}; this lookalike reads {FORMAT_VERSION}, "
                "and 1"
            )
        if _checksum(head) != checksum or not width:
            raise CorruptIndexError(
                f"{self.path}: the header does not match its checksum; it is damaged, restore it"
            )
        runs: list[_Run] = []
        end = _PAGE
        while (run := self._read_run(descriptor, version, width, end, len(runs))) is not None:
            runs.append(run)
            end += _PAGE + _pages(run.count * width) + _pages(run.count * 8)
        return _Layout(version, width, tuple(runs), end)

    def _read_run(
        self, descriptor: int, version: int, width: int, begin: int, number: int
    ) -> _Run | None:
        """Return the run whose header is there; None if the file ends there."""
        head = os.pread(descriptor, _RUN.size, begin)
        length = os.fstat(descriptor).st_size  # not before: the file may have grown since
        if version == 1 and begin == length:
            return None
        if len(head) < _RUN.size or begin + _PAGE > length:
            raise self._cut_short(length, begin, begin + _PAGE)
        magic, count, largest, first, second, checksum = _RUN.unpack(head)
        sound = _checksum(head) == checksum
        if sound and magic == _END_MAGIC and (count, first) == (number, begin):
            return None
        if not sound or magic != _RUN_MAGIC or count > _LONGEST:
            raise self._damaged_header(head, version, begin, length)
        end = begin + _PAGE + _pages(count * width) + _pages(count * 8)
        if end > length:
            raise self._cut_short(length, begin, end)
        return _Run(begin, count, largest, first, second)

    def _cut_short(self, length: int, begin: int, end: int) -> CorruptIndexError:
        return CorruptIndexError(
            f"{self.path} has {length} bytes, but what begins at byte {begin} ends at {end}; "
            "it was cut short: restore it"
        )

    def _damaged_header(
        self, head: bytes, version: int, begin: int, length: int
    ) -> CorruptIndexError:
        if version == 1 and not any(head):
            return CorruptIndexError(
                f"{self.path}: {length - begin} bytes follow the last run, at byte {begin}, and "
                "have no header. Either an append by an older version was interrupted there; then "
                f"cut the file to {begin} bytes (truncate -s {begin}). Or the header of a run was "
                "lost; then restore the file"
            )
        return CorruptIndexError(
            f"{self.path}: there is no sound header at byte {begin}; it is damaged, restore it"
        )


def _file_header(width: int) -> bytes:
    return _sealed(_HEADER.pack(_MAGIC, FORMAT_VERSION, width, 0)).ljust(_PAGE, b"\0")


def _run_header(run: _Run) -> bytes:
    checksums = (run.signatures_checksum, run.ids_checksum)
    return _sealed(_RUN.pack(_RUN_MAGIC, run.count, run.largest_id, *checksums, 0))


def _end_page(offset: int, runs: tuple[_Run, ...]) -> bytes:
    largest = max((run.largest_id for run in runs), default=-1)
    head = _sealed(_RUN.pack(_END_MAGIC, len(runs), largest, offset, 0, 0))
    return head.ljust(_PAGE, b"\0")


def _write(descriptor: int, offset: int, data: bytes | memoryview) -> None:
    """Write all of it; the system may take less at a time."""
    left = memoryview(data)
    while len(left):
        written = os.pwrite(descriptor, left, offset)
        left, offset = left[written:], offset + written


def _pages(size: int) -> int:
    return -(-size // _PAGE) * _PAGE


def _bytes(array: NDArray[np.generic]) -> NDArray[np.uint8]:
    return array.reshape(-1).view(np.uint8)


def _checksum(head: bytes) -> int:
    """Return the checksum of a header, all but the place of the checksum itself."""
    return _native.xxh64(np.frombuffer(head[:-8], np.uint8))


def _sealed(head: bytes) -> bytes:
    """Return a header with its checksum."""
    return head[:-8] + struct.pack("<Q", _checksum(head))
