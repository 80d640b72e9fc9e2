"""SignatureFile: sorted runs of signatures with ids, to which batches are appended."""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike import _native
from lookalike.checks import as_array, file_path, flag, thread_count, whole_number
from lookalike.errors import ArgumentError, CorruptIndexError, FileError
from lookalike.indexes.batch.merging_runs import write_merged
from lookalike.indexes.batch.run_headers import (
    PAGE,
    Layout,
    Run,
    end_page,
    file_header,
    pages,
    raw_bytes,
    read_layout,
    run_header,
    write_at,
)
from lookalike.indexes.batch.run_reading import RunReader
from lookalike.indexes.rows import as_ids
from lookalike.signatures import as_signatures
from lookalike.signatures.arrays import MAX_BITS
from lookalike.storage.files import new_file, whole_file

__all__ = ["SignatureFile"]


class _Held:
    """A file that stays open as long as somebody has this."""

    def __init__(self, path: Path) -> None:
        self.descriptor = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self.descriptor)


@dataclass(frozen=True)
class _Seen:
    """A file and what its headers say, which belong together."""

    file: _Held
    layout: Layout


class SignatureFile:
    """A file of sorted runs of signatures, for `match_batch`.

    `SignatureFile.create` makes an empty one. Opening reads the headers of runs; signatures are
    read run by run, and verified then. Appending from several threads or processes waits its turn;
    reading meanwhile sees the file as it was before or after an append. The file that was opened
    stays open, so that it can be read to its end even if `compact` has put another in its place.
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
        """Make an empty file for signatures of so many bits; raise if there is one already.

        With `exist_ok` that one is opened.
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
        return f"SignatureFile({len(self)} signatures of {self.bits} bits, {len(self.runs)} runs)"

    @property
    def bits(self) -> int:
        """How many bits each signature has."""
        return 8 * self._seen.layout.width

    @property
    def runs(self) -> list[int]:
        """How many signatures each run has."""
        return [run.count for run in self._seen.layout.runs]

    @property
    def largest_id(self) -> int:
        """The largest id there is; -1 if there are none."""
        return self._seen.layout.largest_id

    def read(self, run: SupportsIndex) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Return signatures and ids of a run, mapped; raise if they are not what was written."""
        return self._read_run(self._seen, run)

    def reader(self, run: SupportsIndex) -> RunReader:
        """Return a run to be read from beginning to end, and verified when all of it was."""
        return self._reader(self._seen, run)

    def _read_run(
        self, seen: _Seen, run: SupportsIndex
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        reader = self._reader(seen, run)
        return reader.take(reader.count)

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

    def each_run(self) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.int64]]]:
        """Yield signatures and ids of all runs, one after the other."""
        seen = self._seen
        return (self._read_run(seen, run) for run in range(len(seen.layout.runs)))

    def verify(self) -> None:
        """Read everything and raise `CorruptIndexError` if it is damaged."""
        for _ in SignatureFile(self.path).each_run():
            pass

    def append(self, signatures: ArrayLike, ids: ArrayLike, *, number_on: bool = False) -> int:
        """Add a run of sorted signatures, whole or not at all; return by how much ids were raised.

        With `number_on`, ids count from 0 and are raised by what follows the largest one there is.
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
        """Return the ids that so many signatures would get now, if they had none of their own."""
        positions = np.arange(count)
        return positions + self._first_number(self._seen.layout, positions)

    def _first_number(self, layout: Layout, own: NDArray[np.int64]) -> int:
        """Return what follows the largest id, if ids that are raised by it are still int64."""
        first = layout.largest_id + 1
        if first + int(own.max(initial=-1)) >= 2**63:
            raise ArgumentError(
                f"the largest id of {self.path} is {layout.largest_id}, and int64 ends at "
                "2**63 - 1; give the new signatures ids of your own"
            )
        return first if len(own) else 0

    def compact(self, *, threads: SupportsIndex | None = None) -> None:
        """Merge all runs into one, whole or not at all.

        A new file is written beside this one, which needs as much room again, and takes its place
        when it is complete. Every run is verified first. Appending waits meanwhile; who is reading
        goes on reading the old file. Memory is bounded, whatever the runs are. A file of one run
        stays as it is.
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
        """Yield the file that has the name now, and its headers, while nobody else writes to it."""
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
        """Return the file that is locked, held open for reading."""
        held = self._seen.file
        if os.path.samestat(os.fstat(held.descriptor), os.fstat(descriptor)):
            return held
        return _Held(self.path)

    def _write_parts(
        self,
        descriptor: int,
        layout: Layout,
        signatures: NDArray[np.uint8],
        ids: NDArray[np.int64],
    ) -> tuple[Run, int]:
        """Write a run and a new end behind the old one, which stays where it is.

        Returns what the header of the run will say, and where the end is.
        """
        at = layout.end + PAGE
        os.ftruncate(descriptor, at)  # of what was never finished
        found = []
        for part in (raw_bytes(np.ascontiguousarray(signatures)), raw_bytes(ids)):
            write_at(descriptor, at, part.data)
            found.append(_native.xxh64(part))
            at += pages(len(part))
        run = Run(layout.end, len(ids), int(ids.max(initial=-1)), found[0], found[1])
        write_at(descriptor, at, end_page(at, (*layout.runs, run)))
        os.fsync(descriptor)
        return run, at

    def _give_an_end(self, descriptor: int, layout: Layout) -> None:
        """Turn a file of version 1 into one of version 2; it can be read at any time."""
        write_at(descriptor, layout.end, end_page(layout.end, layout.runs))
        os.fsync(descriptor)
        write_at(descriptor, 0, file_header(layout.width))
        os.fsync(descriptor)

    def _read(self, descriptor: int) -> Layout:
        """Read all headers; if they seem damaged, once more while nobody can be appending."""
        try:
            return read_layout(self.path, descriptor)
        except CorruptIndexError:
            with contextlib.suppress(OSError):  # some file systems have no locks
                fcntl.flock(descriptor, fcntl.LOCK_SH)
            return read_layout(self.path, descriptor)
