"""The signature file: sorted runs of signatures with ids, to which batches are appended.

Layout, all numbers little-endian, every part at a multiple of 4096 bytes, zeros between them:

    file header    magic, format version, bytes of a signature, checksum of these
    run            header: magic, number of signatures, largest id, checksums of both parts and of
                   the header itself
                   signatures, sorted by their words of 8 bytes (little-endian, the first counts
                   most), then ids, int64
    run ...

Appending is atomic: a run is written behind the last one with an empty header and synced; then its
header is written and synced. What lies behind the last header was never finished: it is not read,
and the next append overwrites it. Checksums are XXH64; signatures are checked when a run is read,
ids when they are verified.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.errors import ArgumentError, CorruptIndexError, FileError, FormatError

__all__ = ["SignatureFile"]

FORMAT_VERSION = 1

_MAGIC = b"\x89LKRUNS\n"
_RUN_MAGIC = b"LKSORTED"
_HEADER = struct.Struct("<8s H 2x I Q")
_RUN = struct.Struct("<8s Q q Q Q Q")
_PAGE = 4096
_LONGEST = 2**48


@dataclass(frozen=True)
class _Run:
    offset: int
    count: int
    largest_id: int
    signatures_checksum: int
    ids_checksum: int


class SignatureFile:
    """A file of sorted runs of signatures, for `match_batch`.

    `SignatureFile.create` makes an empty one. Opening reads the headers of runs; signatures are
    read run by run, and checked then. Appending from several processes waits its turn.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            with open(self.path, "rb") as file:
                self._read(file)
        except OSError as error:
            raise FileError(f"{self.path} cannot be read: {error}") from error

    @classmethod
    def create(cls, path: str | os.PathLike[str], bits: int) -> SignatureFile:
        """Make an empty file for signatures of so many bits; raise if there is one already."""
        if bits < 8 or bits % 8:
            raise ArgumentError(f"bits is {bits}; expected a multiple of 8")
        head = _sealed(_HEADER.pack(_MAGIC, FORMAT_VERSION, bits // 8, 0))
        try:
            with open(path, "xb") as file:
                file.write(head.ljust(_PAGE, b"\0"))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise FileError(f"{path} cannot be written: {error}") from error
        return cls(path)

    def __len__(self) -> int:
        return sum(run.count for run in self._runs)

    def __repr__(self) -> str:
        return f"SignatureFile({len(self)} signatures of {self.bits} bits, {len(self._runs)} runs)"

    @property
    def bits(self) -> int:
        """How many bits each signature has."""
        return 8 * self._bytes

    @property
    def runs(self) -> list[int]:
        """How many signatures each run has."""
        return [run.count for run in self._runs]

    @property
    def largest_id(self) -> int:
        """The largest id there is; -1 if there are none."""
        return max((run.largest_id for run in self._runs), default=-1)

    def read(self, run: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Return signatures and ids of a run, mapped.

        Raises if the signatures are not what was written; for ids, `verify` does.
        """
        own = self._runs[run]
        signatures, ids = self._map(own)
        self._check(run, "signatures", signatures, own.signatures_checksum)
        return signatures, ids

    def each_run(self) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.int64]]]:
        """Yield signatures and ids of all runs, one after the other."""
        return (self.read(run) for run in range(len(self._runs)))

    def verify(self) -> None:
        """Read everything and raise `CorruptIndexError` if it is damaged."""
        for number, (_, ids) in enumerate(self.each_run()):
            self._check(number, "ids", ids, self._runs[number].ids_checksum)

    def _check(self, run: int, name: str, array: NDArray[Any], expected: int) -> None:
        found = _native.xxh64(_bytes(array))
        if found != expected:
            raise CorruptIndexError(
                f"{self.path}: the {name} of run {run} have the checksum {found:016x}, the file "
                f"says {expected:016x}; it is damaged, restore it"
            )

    def append(
        self, signatures: NDArray[np.uint8], ids: NDArray[np.int64], *, number_on: bool = False
    ) -> None:
        """Add a run of sorted signatures, whole or not at all.

        With `number_on`, ids count from 0 and are raised by what follows the largest one there is.
        """
        if signatures.shape != (len(ids), self._bytes):
            raise ArgumentError(
                f"signatures have shape {signatures.shape} and there are {len(ids)} ids; expected "
                f"({len(ids)}, {self._bytes})"
            )
        try:
            with open(self.path, "r+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                self._read(file)  # another process may have appended meanwhile
                names = ids + (self.largest_id + 1) if number_on else ids
                self._write_run(file, signatures, np.ascontiguousarray(names, "<i8"))
                self._read(file)
        except OSError as error:
            raise FileError(f"{self.path} cannot be written: {error}") from error

    def _write_run(self, file: BinaryIO, signatures: NDArray[np.uint8], ids: NDArray[Any]) -> None:
        begin = self._end
        file.truncate(begin)  # of what was never finished
        file.seek(begin)
        file.write(bytes(_PAGE))
        checksums = []
        for part in (_bytes(np.ascontiguousarray(signatures)), _bytes(ids)):
            file.write(part.data)
            file.write(bytes(-len(part) % _PAGE))
            checksums.append(_native.xxh64(part))
        file.flush()
        os.fsync(file.fileno())
        largest = int(ids.max(initial=-1))
        file.seek(begin)
        file.write(_sealed(_RUN.pack(_RUN_MAGIC, len(ids), largest, *checksums, 0)))
        file.flush()
        os.fsync(file.fileno())

    def _read(self, file: BinaryIO) -> None:
        """Read all headers."""
        file.seek(0)
        head = file.read(_HEADER.size)
        length = os.fstat(file.fileno()).st_size
        if head[:8] != _MAGIC:
            raise FormatError(
                f"{self.path} is not a signature file: it begins with {head[:8]!r}, expected "
                f"{_MAGIC!r}"
            )
        if len(head) < _HEADER.size or length < _PAGE:
            raise CorruptIndexError(f"{self.path} ends inside its header")
        _, version, width, checksum = _HEADER.unpack(head)
        if version != FORMAT_VERSION:
            raise FormatError(
                f"{self.path} has format version {version}; this lookalike reads {FORMAT_VERSION}"
            )
        if _checksum(head) != checksum or not width:
            raise CorruptIndexError(f"{self.path}: the header does not match its checksum")
        self._bytes = int(width)
        self._runs: list[_Run] = []
        self._end = _PAGE
        while self._end + _PAGE <= length:
            file.seek(self._end)
            head = file.read(_RUN.size)
            if not any(head):
                break  # an append that was never finished
            magic, count, largest, first, second, checksum = _RUN.unpack(head)
            if magic != _RUN_MAGIC or _checksum(head) != checksum or count > _LONGEST:
                raise CorruptIndexError(
                    f"{self.path}: the run at byte {self._end} has a damaged header"
                )
            run = _Run(self._end, count, largest, first, second)
            end = self._end + _PAGE + _pages(count * self._bytes) + _pages(count * 8)
            if end > length:
                raise CorruptIndexError(
                    f"{self.path} has {length} bytes, but its run at byte {self._end} ends at "
                    f"{end}; it was cut short: restore it"
                )
            self._runs.append(run)
            self._end = end

    def _map(self, run: _Run) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        if not run.count:
            return np.empty((0, self._bytes), np.uint8), np.empty(0, np.int64)
        try:
            with open(self.path, "rb") as file:
                mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise FileError(f"{self.path} cannot be read: {error}") from error
        size = run.count * self._bytes
        begin = run.offset + _PAGE
        ids: NDArray[Any] = np.frombuffer(mapping, "<i8", run.count, begin + _pages(size))
        signatures = np.frombuffer(mapping, np.uint8, size, begin).reshape(run.count, self._bytes)
        return signatures, ids.astype(np.int64, copy=False)


def _pages(size: int) -> int:
    return -(-size // _PAGE) * _PAGE


def _bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    return array.reshape(-1).view(np.uint8)


def _checksum(head: bytes) -> int:
    """Return the checksum of a header, all but the place of the checksum itself."""
    return _native.xxh64(np.frombuffer(head[:-8], np.uint8))


def _sealed(head: bytes) -> bytes:
    """Return a header with its checksum."""
    return head[:-8] + struct.pack("<Q", _checksum(head))
