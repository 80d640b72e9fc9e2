"""SignatureFile: sorted runs of signatures with ids, to which batches are appended.

Layout: all numbers are little-endian, every part is aligned to 4096 bytes and zero-padded.

    file header    magic, format version, bytes of a signature, checksum of these
    run            header: magic, number of signatures, largest id, checksums of both parts and of
    the header itself
    signatures, sorted by their words of 8 bytes (little-endian, the first is most
    significant), then ids, int64
    run ...
    end            magic, number of runs, largest id, offset of this page, checksum of these

Appending is atomic. The parts of a new run and a new end are written after the old end and synced.
Then the header of the run replaces the old end, within one disk sector, and is synced. A file
without an end is damaged. Bytes after the end are an unfinished append, and the next append
overwrites them.

Merging runs writes a new file that replaces the old one. After locking a file, a process checks
that it still has this name.

One process appends at a time, under a lock. Readers need no lock: they see an end or the header
that replaced it. A reader that finds anything else reads again under the lock before it raises.

Version 1 had no end, and an empty header before a run that was being appended. Such files are read,
and converted when they are appended to. A file of version 1 that does not end with its last run is
refused.

Checksums are XXH64, and compared whenever a run is read.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import struct
import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import SupportsIndex, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike import _native
from lookalike.checks import as_array, file_path, flag, thread_count, whole_number
from lookalike.errors import ArgumentError, CorruptIndexError, FileError, FormatError
from lookalike.indexes.rows import Signatures, as_ids
from lookalike.indexes.tables.flip_sets import upper_bits
from lookalike.indexes.tables.sorted_table import SortedTable, header_width
from lookalike.shown import counted
from lookalike.signatures import as_signatures
from lookalike.signatures.arrays import MAX_BITS
from lookalike.storage.container import RunningChecksum, checksums
from lookalike.storage.files import is_database, new_file, whole_file

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
    """Header of a run."""

    offset: int
    count: int
    largest_id: int
    signatures_checksum: int
    ids_checksum: int


@dataclass(frozen=True)
class Layout:
    """Headers of a file at one time."""

    version: int
    width: int  # bytes of a signature
    runs: tuple[Run, ...]
    end: int  # end of the last run

    @property
    def largest_id(self) -> int:
        """Largest id, or -1."""
        return max((run.largest_id for run in self.runs), default=-1)


def read_layout(path: Path, descriptor: int) -> Layout:
    """Read all headers of the file, and raise if one is damaged."""
    head = os.pread(descriptor, _HEADER.size, 0)
    if is_database(path):
        raise FormatError(
            f"{path} is an SQLite database; expected a signature file, as `lookalike match` makes "
            "it, or a new name"
        )
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
    """Return the run whose header is at `begin`; None at the end of the file."""
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
    """Return the error for a file that is too short."""
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
    """Return the header of a run."""
    checksums = (run.signatures_checksum, run.ids_checksum)
    return _sealed(_RUN.pack(_RUN_MAGIC, run.count, run.largest_id, *checksums, 0))


def end_page(offset: int, runs: tuple[Run, ...]) -> bytes:
    """Return the page that ends a file with these runs."""
    largest = max((run.largest_id for run in runs), default=-1)
    head = _sealed(_RUN.pack(_END_MAGIC, len(runs), largest, offset, 0, 0))
    return head.ljust(PAGE, b"\0")


def write_at(descriptor: int, offset: int, data: bytes | memoryview) -> None:
    """Write all bytes."""
    left = memoryview(data)
    while len(left):
        written = os.pwrite(descriptor, left, offset)
        left, offset = left[written:], offset + written


def pages(size: int) -> int:
    """Return the size of a part, rounded up to whole pages."""
    return -(-size // PAGE) * PAGE


def raw_bytes(array: NDArray[np.generic]) -> Signatures:
    """Return the bytes of an array."""
    return array.reshape(-1).view(np.uint8)


def _checksum(head: bytes) -> int:
    """Return the checksum of a header without its last eight bytes."""
    return _native.xxh64(np.frombuffer(head[:-8], np.uint8))


def _sealed(head: bytes) -> bytes:
    """Return a header with its checksum."""
    return head[:-8] + struct.pack("<Q", _checksum(head))


T = TypeVar("T")


class RunReader:
    """Reads a run of a mapped file; its checksums are compared at its end."""

    def __init__(self, path: Path, mapping: mmap.mmap, number: int, run: Run, width: int) -> None:
        size, begin = run.count * width, run.offset + PAGE
        places = (begin, begin + pages(size))
        end = places[1] + 8 * run.count
        if len(mapping) < end:
            raise cut_short(path, len(mapping), run.offset, end)
        self._path = path
        self._number = number
        self.count = run.count  # number of signatures
        self._signatures = np.frombuffer(mapping, np.uint8, size, begin).reshape(-1, width)
        self._ids = np.frombuffer(mapping, "<i8", run.count, places[1])
        self._taken = 0
        self._parts = [
            ("signatures", RunningChecksum(mapping, places[0]), width, run.signatures_checksum),
            ("ids", RunningChecksum(mapping, places[1]), 8, run.ids_checksum),
        ]

    def take(self, end: int) -> tuple[Signatures, NDArray[np.int64]]:
        """Return the next rows up to `end`, memory-mapped; raise at the end of a damaged run."""
        part = slice(self._taken, end)
        self._advance(end)
        return self._signatures[part], self._ids[part].astype(np.int64, copy=False)

    def verify(self) -> None:
        """Read the rest, and raise if the run is damaged."""
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
    """Prepare the next of `count` items in another thread while the caller uses one."""
    if count < 2:
        yield items
        return
    with ThreadPoolExecutor(1, thread_name_prefix="lookalike reads ahead") as reader:

        def ahead() -> Iterator[T]:
            try:
                coming: Future[T | None] = reader.submit(next, items, None)
            except RuntimeError:  # no more threads: read without it
                yield from items
                return
            while (item := coming.result()) is not None:
                coming = reader.submit(next, items, None)
                yield item

        yield ahead()


_Rows = tuple[Signatures, NDArray[np.int64]]
_PIECE_BYTES = 1 << 26


def sorted_run(signatures: Signatures, ids: NDArray[np.int64], threads: int) -> _Rows:
    """Return signatures in the order of a run, with their ids."""
    bits = 8 * signatures.shape[1]
    header = upper_bits(bits, min(header_width(len(signatures)), bits))
    table = SortedTable.build(signatures, header, threads)
    return table.signatures, ids[table.rows]


def write_merged(path: Path, runs: Sequence[_Rows], width: int, threads: int) -> None:
    """Write a new signature file with one run."""
    for signatures, ids in runs:
        SortedTable.of_sorted(signatures, upper_bits(8 * width, 0), threads)
        if len(ids) and int(ids.min()) < 0:
            raise CorruptIndexError("the signature file has negative ids; it is damaged")
    count = sum(len(ids) for _, ids in runs)
    largest = max((int(ids.max(initial=-1)) for _, ids in runs), default=-1)
    places = [2 * PAGE, 2 * PAGE + pages(count * width)]
    lengths = [count * width, 8 * count]
    end = places[1] + pages(lengths[1])
    with open(path, "x+b") as file:
        descriptor = file.fileno()
        file.truncate(end + PAGE)
        size = max(1, _PIECE_BYTES // width)
        written = 0
        for signatures, ids in merged_pieces(runs, size, threads):
            write_at(descriptor, places[0] + written * width, raw_bytes(signatures).data)
            names = np.ascontiguousarray(ids, "<i8")
            write_at(descriptor, places[1] + 8 * written, raw_bytes(names).data)
            written += len(ids)
        with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as mapping:
            found = checksums(mapping, list(zip(places, lengths, strict=True)))
        run = Run(PAGE, count, largest, found[0], found[1])
        write_at(descriptor, 0, file_header(width))
        write_at(descriptor, PAGE, run_header(run))
        write_at(descriptor, end, end_page(end, (run,)))


def merged_pieces(runs: Sequence[_Rows], size: int, threads: int) -> Iterator[_Rows]:
    """Yield all signatures of sorted runs in order, about `size` at a time.

    Runs are cut at evenly spaced signatures of a sample. Signatures equal to one of these are
    yielded unsorted, so that a million copies need no more memory.
    """
    step = max(1, size // (4 * max(1, len(runs))))
    sample = sorted(_key(row) for signatures, _ in runs for row in signatures[::step])
    at = [0] * len(runs)
    for bound in dict.fromkeys(sample[:: 2 * max(1, len(runs))]):
        ends = [_place(run[0], bound, low, after=False) for run, low in zip(runs, at, strict=True)]
        yield from _sorted_together(runs, at, ends, threads)
        for number, (signatures, ids) in enumerate(runs):
            at[number] = _place(signatures, bound, ends[number], after=True)
            for begin in range(ends[number], at[number], size):
                equal = slice(begin, min(begin + size, at[number]))
                yield signatures[equal], ids[equal]
    yield from _sorted_together(runs, at, [len(ids) for _, ids in runs], threads)


def _sorted_together(
    runs: Sequence[_Rows], begins: Sequence[int], ends: Sequence[int], threads: int
) -> Iterator[_Rows]:
    parts = [
        (signatures[begin:end], ids[begin:end])
        for (signatures, ids), begin, end in zip(runs, begins, ends, strict=True)
        if begin < end
    ]
    if len(parts) == 1:
        yield parts[0]
    elif parts:
        signatures = np.concatenate([signatures for signatures, _ in parts])
        yield sorted_run(signatures, np.concatenate([ids for _, ids in parts]), threads)


def _key(row: Signatures) -> bytes:
    """Return bytes that sort like signatures: by words, the first most significant."""
    data = row.tobytes()
    return b"".join(data[begin : begin + 8][::-1] for begin in range(0, len(data), 8))


def _place(signatures: Signatures, key: bytes, low: int, *, after: bool) -> int:
    """Return the position of a key in sorted signatures, before or after equal ones."""
    high = len(signatures)
    while low < high:
        middle = (low + high) // 2
        found = _key(signatures[middle])
        if found < key or (after and found == key):
            low = middle + 1
        else:
            high = middle
    return low


class _Held:
    """A file that is open as long as this object exists."""

    def __init__(self, path: Path) -> None:
        self.descriptor = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self.descriptor)


@dataclass(frozen=True)
class _Seen:
    """A file and its headers."""

    file: _Held
    layout: Layout


class SignatureFile:
    """A file of sorted runs of signatures, for `match_batch`.

    Opening reads the headers; signatures are read and verified run by run. Appends from several
    threads or processes wait for each other. Readers see the file before or after an append. An
    opened file remains readable after `compact`.

    Args:
        path: Existing signature file.

    Examples:
        >>> file = la.SignatureFile.create("empty.runs", bits=64)
        >>> file.append(np.zeros((2, 8), np.uint8), [0, 1])
        0
        >>> file
        SignatureFile(2 signatures of 64 bits, 1 run)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = file_path("path", path)
        try:
            file = _Held(self.path)
            self._seen = _Seen(file, self._read(file.descriptor))
        except OSError as error:
            raise FileError(f"{self.path} cannot be read: {error}") from error

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], bits: SupportsIndex, *, exist_ok: bool = False
    ) -> SignatureFile:
        """Create an empty file and return it.

        Args:
            path: File to create.
            bits: Number of bits of a signature.
            exist_ok: Open an existing file instead of raising.
        """
        target, there = file_path("path", path), flag("exist_ok", exist_ok)
        wide = whole_number("bits", bits, at_least=8, at_most=MAX_BITS)
        if wide % 8:
            raise ArgumentError(f"bits is {wide}; expected a multiple of 8")
        content = file_header(wide // 8) + end_page(PAGE, ())
        try:
            new_file(target, content)
        except FileExistsError as error:
            if not there:
                raise FileError(f"{path} cannot be written: {error}") from error
        except OSError as error:
            raise FileError(f"{path} cannot be written: {error}") from error
        return cls(path)

    def __reduce__(self) -> tuple[type[SignatureFile], tuple[str]]:
        return SignatureFile, (str(self.path),)

    def __len__(self) -> int:
        return sum(self.runs)

    def __repr__(self) -> str:
        signatures, runs = counted(len(self), "signature"), counted(len(self.runs), "run")
        return f"SignatureFile({signatures} of {self.bits} bits, {runs})"

    @property
    def bits(self) -> int:
        """Number of bits of a signature."""
        return 8 * self._seen.layout.width

    @property
    def runs(self) -> list[int]:
        """Number of signatures of each run."""
        return [run.count for run in self._seen.layout.runs]

    @property
    def largest_id(self) -> int:
        """Largest id, or -1."""
        return self._seen.layout.largest_id

    def read(self, run: SupportsIndex) -> tuple[Signatures, NDArray[np.int64]]:
        """Return signatures and ids of a run, memory-mapped; raise if they are damaged."""
        reader = self.reader(run)
        return reader.take(reader.count)

    def reader(self, run: SupportsIndex) -> RunReader:
        """Return a reader of a run."""
        return self._reader(self._seen, run)

    def _reader(self, seen: _Seen, run: SupportsIndex) -> RunReader:
        layout = seen.layout
        if not layout.runs:
            raise ArgumentError(f"{self.path} has no runs to read")
        number = whole_number("run", run, at_least=0, at_most=len(layout.runs) - 1)
        try:
            mapping = mmap.mmap(seen.file.descriptor, 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise FileError(f"{self.path} cannot be read: {error}") from error
        return RunReader(self.path, mapping, number, layout.runs[number], layout.width)

    def each_run(self) -> Iterator[tuple[Signatures, NDArray[np.int64]]]:
        """Yield signatures and ids of each run."""
        seen = self._seen
        readers = (self._reader(seen, run) for run in range(len(seen.layout.runs)))
        return (reader.take(reader.count) for reader in readers)

    def verify(self) -> None:
        """Read the whole file and raise `CorruptIndexError` if it is damaged."""
        for _ in SignatureFile(self.path).each_run():
            pass

    def append(self, signatures: ArrayLike, ids: ArrayLike, *, number_on: bool = False) -> int:
        """Append a run of sorted signatures atomically; return what was added to ids.

        Args:
            signatures: Sorted signatures, `uint8[n, bits // 8]`.
            ids: Their ids.
            number_on: Add one more than the largest id of the file to the ids.
        """
        rows, own = as_signatures(signatures), as_ids(as_array("ids", ids))
        counted = flag("number_on", number_on)
        with self._locked() as (descriptor, layout):
            if rows.shape != (len(own), layout.width):
                raise ArgumentError(
                    f"signatures have shape {rows.shape} and there are {len(own)} ids; "
                    f"expected ({len(own)}, {layout.width})"
                )
            if layout.version == 1:
                self._give_an_end(descriptor, layout)
            first = self._first_number(layout, own) if counted else 0
            names = np.ascontiguousarray(own + first, "<i8")
            file = self._file_of(descriptor)
            run, end = self._write_parts(descriptor, layout, rows, names)
            try:
                write_at(descriptor, layout.end, run_header(run))
                os.fsync(descriptor)
            except OSError as error:
                raise FileError(
                    f"{self.path} may have been appended to, or not: {error}; open it again "
                    "and look before you append once more"
                ) from error
            # Nothing may fail from here on: it has been appended.
            self._seen = _Seen(file, replace(layout, version=2, runs=(*layout.runs, run), end=end))
        return first

    def _numbered(self, count: int) -> NDArray[np.int64]:
        """Return the ids that `count` signatures without ids would get."""
        positions = np.arange(count)
        return positions + self._first_number(self._seen.layout, positions)

    def _first_number(self, layout: Layout, own: NDArray[np.int64]) -> int:
        """Return one more than the largest id, or raise if ids would exceed int64."""
        first = layout.largest_id + 1
        if first + int(own.max(initial=-1)) >= 2**63:
            raise ArgumentError(
                f"the largest id of {self.path} is {layout.largest_id}; ids must be less than "
                "2**63. Pass ids for the new signatures"
            )
        return first if len(own) else 0

    def compact(self, *, threads: SupportsIndex | None = None) -> None:
        """Merge all runs into one, atomically, in bounded memory.

        The new file replaces this one when it is complete, so it needs as much disk space again.
        Appends wait meanwhile; readers continue with the old file.
        """
        workers = thread_count(threads)
        with self._locked() as (descriptor, layout):
            self._seen = _Seen(self._file_of(descriptor), layout)
            if len(layout.runs) < 2:
                return
            with whole_file(self.path) as temporary:
                write_merged(temporary, list(self.each_run()), layout.width, workers)
            try:
                self._seen = SignatureFile(self.path)._seen
            except FileError as error:
                raise FileError(
                    f"{self.path} has been compacted, but: {error}; open it again"
                ) from error

    @contextlib.contextmanager
    def _locked(self) -> Iterator[tuple[int, Layout]]:
        """Yield the current file of this name and its headers, under a lock."""
        try:
            while True:
                descriptor = os.open(self.path, os.O_RDWR)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX)
                    # Whoever had the lock may have put another file in its place, or appended.
                    if os.path.samestat(os.fstat(descriptor), self.path.stat()):
                        yield descriptor, read_layout(self.path, descriptor)
                        return
                finally:
                    os.close(descriptor)
        except OSError as error:
            raise FileError(f"{self.path} cannot be written: {error}") from error

    def _file_of(self, descriptor: int) -> _Held:
        """Return the locked file, held open for reading."""
        held = self._seen.file
        if os.path.samestat(os.fstat(held.descriptor), os.fstat(descriptor)):
            return held
        return _Held(self.path)

    def _write_parts(
        self, descriptor: int, layout: Layout, rows: Signatures, ids: NDArray[np.int64]
    ) -> tuple[Run, int]:
        """Write a run and a new end; return the run and the position of the end."""
        at = layout.end + PAGE
        os.ftruncate(descriptor, at)  # of what was never finished
        found = []
        for part in (raw_bytes(np.ascontiguousarray(rows)), raw_bytes(ids)):
            write_at(descriptor, at, part.data)
            found.append(_native.xxh64(part))
            at += pages(len(part))
        run = Run(layout.end, len(ids), int(ids.max(initial=-1)), found[0], found[1])
        write_at(descriptor, at, end_page(at, (*layout.runs, run)))
        os.fsync(descriptor)
        return run, at

    def _give_an_end(self, descriptor: int, layout: Layout) -> None:
        """Convert a file from version 1 to version 2; it is readable at any time."""
        write_at(descriptor, layout.end, end_page(layout.end, layout.runs))
        os.fsync(descriptor)
        write_at(descriptor, 0, file_header(layout.width))
        os.fsync(descriptor)

    def _read(self, descriptor: int) -> Layout:
        """Read all headers; if they seem damaged, again under a lock."""
        try:
            return read_layout(self.path, descriptor)
        except CorruptIndexError:
            with contextlib.suppress(OSError):  # some file systems have no locks
                fcntl.flock(descriptor, fcntl.LOCK_SH)
            return read_layout(self.path, descriptor)
