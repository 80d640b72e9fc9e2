"""The work folder of a job: the files of finished steps, so that no step runs twice.

A step syncs its files, then it writes a stamp, `STEP.json`: the key of the step, facts about the
files, their lengths and checksums, and a checksum of itself. A step is skipped if its stamp has the
same key, which contains the keys of the steps before it, and its files match.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import mmap
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.errors import CorruptIndexError, FileError, LookalikeError
from lookalike.storage.container import checksums
from lookalike.storage.files import temporary_folder, whole_file

_STAMP_VERSION = 2
_SECONDS = 5.0  # seconds of work that a crash may lose; syncing more often costs time
_ZEROS, _AT_A_TIME = 1 << 20, 1 << 24
# prefixes of the folder of a job, and of all temporary folders
_PREFIX, _TEMPORARY = "lookalike-job-", "lookalike-"


class WorkFolder:
    """A folder of arrays and stamps, temporary if `folder` is None. One job at a time locks it."""

    def __init__(self, folder: Path | None) -> None:
        self.temporary = folder is None  # whether it is removed when the job ends
        self._left = ExitStack()
        self.folder = folder or self._left.enter_context(temporary_folder(_PREFIX))
        with naming(self.folder, "used"):
            self.folder.mkdir(parents=True, exist_ok=True)
            if not self.temporary:
                _refuse_other_files(self.folder)
            self._lock = open(self.folder / "lock", "ab")  # noqa: SIM115  # held until closed
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise FileError(
                f"{self.folder} is in use by another job; wait for it, or give another folder"
            ) from None

    def close(self) -> None:
        """Unlock the folder; remove it if it is temporary."""
        self._lock.close()
        self._left.close()

    def path(self, name: str) -> Path:
        """Return the path of a file."""
        return self.folder / name

    def facts(self, step: str, key: str) -> dict[str, Any] | None:
        """Return the facts of a completed step with this key, or None if it has to run."""
        stamp = self.read_stamp(step, key)
        if stamp is None:
            return None
        try:
            same = all(self._fingerprint(name) == one for name, one in stamp["files"].items())
        except OSError:
            return None
        facts: dict[str, Any] = stamp["facts"]
        return facts if same else None

    def begin(self, step: str) -> None:
        """Remove the stamp of a step."""
        self.remove(f"{step}.json")

    def complete(
        self, step: str, key: str, facts: dict[str, Any], files: Sequence[str] = ()
    ) -> None:
        """Sync the files of a finished step and write its stamp."""
        if self.temporary:  # no later run reads the stamp
            return
        fingerprints = {}
        for name in files:
            with naming(self.path(name), "written"):
                with open(self.path(name), "rb") as file:
                    os.fsync(file.fileno())
                fingerprints[name] = self._fingerprint(name)
        self.stamp(step, key, facts, fingerprints)

    def stamp(
        self, step: str, key: str, facts: dict[str, Any], files: dict[str, list[int]]
    ) -> None:
        """Write a stamp with the length and checksum of each file."""
        stamp = {"version": _STAMP_VERSION, "key": key, "facts": facts, "files": files}
        with whole_file(self.path(f"{step}.json")) as temporary:
            temporary.write_text(json.dumps({"stamp": stamp, "checksum": digest(stamp)}))

    def read_stamp(self, step: str, key: str) -> dict[str, Any] | None:
        """Return an intact stamp with this key; its files are not checked."""
        stamp = sealed_stamp(self.path(f"{step}.json"))
        if not isinstance(stamp, dict) or stamp.get("version") != _STAMP_VERSION:
            return None
        return stamp if stamp.get("key") == key else None

    def _fingerprint(self, name: str) -> list[int]:
        """Return the length and checksum of a file."""
        with open(self.path(name), "rb") as file:
            length = os.fstat(file.fileno()).st_size
            if not length:
                return [0, _native.Xxh64().value()]
            with mmap.mmap(file.fileno(), length, access=mmap.ACCESS_READ) as mapping:
                return [length, *checksums(mapping, [(0, length)])]

    @contextmanager
    def writer(self, name: str, *, keep_bytes: int = 0) -> Iterator[BinaryIO]:
        """Open a new file, or append to the first `keep_bytes` of one; name it in errors."""
        path = self.path(name)
        try:
            if not keep_bytes:
                path.unlink(missing_ok=True)
            with open(path, "ab") as file:
                file.truncate(keep_bytes)
                file.seek(0, os.SEEK_END)
                yield file
        except OSError as error:
            raise FileError(
                f"{path} cannot be written: {error.strerror}. Free some space and start again: the "
                "job continues where it stopped. Or use another work folder"
            ) from error

    def array(self, name: str, dtype: type[np.generic], columns: int | None = None) -> NDArray[Any]:
        """Return a file as a memory-mapped array, of rows of `columns` values if given."""
        path, row = self.path(name), np.dtype(dtype).itemsize * (columns or 1)
        with naming(self.path(name), "read"):
            length = path.stat().st_size
            if length % row:
                raise CorruptIndexError(
                    f"{path} has {length} bytes, not a multiple of {row}; it is damaged: remove it"
                )
            shape = (length // row,) if columns is None else (length // row, columns)
            return np.memmap(path, dtype, "r", shape=shape) if length else np.empty(shape, dtype)

    def scratch(self, name: str, dtype: type[np.generic], shape: tuple[int, ...]) -> NDArray[Any]:
        """Return a writable array on disk."""
        if 0 in shape:
            return np.empty(shape, dtype)
        path = self.path(name)
        with naming(self.path(name), "written"):
            with open(path, "wb") as file:
                # Allocated now: running out of disk later would be a crash, not an error.
                _allocate(file, int(np.prod(shape)) * np.dtype(dtype).itemsize)
            return np.memmap(path, dtype, "r+", shape=shape)

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""
        with naming(self.path(name), "removed"):
            self.path(name).unlink(missing_ok=True)


@dataclass
class _GrowingFile:
    """A file with its current length and checksum."""

    file: BinaryIO
    length: int
    checksum: _native.Xxh64


@dataclass(eq=False)
class GrowingFiles:
    """Files that are appended to together, and the lengths up to which they are consistent."""

    work: WorkFolder
    step: str
    key: str
    facts: dict[str, Any] | None
    """The facts marked last before an interruption; None if the files are new."""
    files: dict[str, _GrowingFile] = field(default_factory=dict)
    _marked: tuple[dict[str, Any], dict[str, list[int]]] | None = field(default=None, init=False)
    _stamped: float = field(default_factory=time.monotonic, init=False)

    def write(self, name: str, array: NDArray[Any]) -> None:
        """Append an array to a file."""
        data, one = np.ascontiguousarray(array).reshape(-1).view(np.uint8), self.files[name]
        one.file.write(data.data)
        one.checksum.add(data)
        one.length += len(data)

    def mark(self, facts: dict[str, Any]) -> None:
        """Mark the files as consistent: an interrupted step continues from here."""
        for one in self.files.values():
            one.file.flush()
        fingerprints = {
            name: [one.length, one.checksum.value()] for name, one in self.files.items()
        }
        self._marked = facts, fingerprints
        if time.monotonic() - self._stamped > _SECONDS:
            self.stamp()

    def stamp(self) -> None:
        """Sync the files, then write the stamp of the last mark."""
        if self._marked is not None and not self.work.temporary:
            for one in self.files.values():
                os.fsync(one.file.fileno())
            self.work.stamp(self.step, self.key, *self._marked)
        self._stamped = time.monotonic()


@contextmanager
def growing_files(
    work: WorkFolder, step: str, key: str, names: Sequence[str]
) -> Iterator[GrowingFiles]:
    """Open files to append to: new ones, or those of an interrupted step with this key."""
    stamp = work.read_stamp(step, key)
    kept = None if stamp is None else _consistent(work, stamp["files"], names)
    if kept is None:
        work.begin(step)
    facts = stamp["facts"] if stamp is not None and kept is not None else None
    growing = GrowingFiles(work, step, key, facts)
    with ExitStack() as files:
        for name in names:
            length, checksum = kept[name] if kept else (0, _native.Xxh64())
            file = files.enter_context(work.writer(name, keep_bytes=length))
            growing.files[name] = _GrowingFile(file, length, checksum)
        try:
            yield growing
        except BaseException:
            with contextlib.suppress(OSError, LookalikeError):  # the disk may be what failed
                growing.stamp()
            raise


def _consistent(
    work: WorkFolder, stamped: dict[str, list[int]], names: Sequence[str]
) -> dict[str, tuple[int, _native.Xxh64]] | None:
    """Return lengths and running checksums of files; None if they do not match their stamp."""
    found: dict[str, tuple[int, _native.Xxh64]] = {}
    try:
        for name, (length, checksum) in stamped.items():
            found[name], left = (length, _native.Xxh64()), length
            with open(work.path(name), "rb") as file:
                while left and (data := file.read(min(left, _AT_A_TIME))):
                    found[name][1].add(np.frombuffer(data, np.uint8))
                    left -= len(data)
            if left or found[name][1].value() != checksum:
                return None
    except OSError:
        return None
    return found if set(found) == set(names) else None


def _allocate(file: BinaryIO, size: int) -> None:
    """Reserve disk space for a new file; where the system call is missing, write zeros."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
        return
    zeros = bytes(min(size, _ZEROS))
    for begin in range(0, size, _ZEROS):
        file.write(zeros[: size - begin])


def _refuse_other_files(folder: Path) -> None:
    """Raise if a folder has files but no job has worked in it: a job might overwrite them."""
    names = {one.name for one in folder.iterdir() if not one.name.startswith(_TEMPORARY)}
    if not names:
        return
    lock, stamps = folder / "lock", [name for name in names if name.endswith(".json")]
    locked = lock.is_file() and not lock.is_symlink() and not lock.stat().st_size
    if locked or any(sealed_stamp(folder / name) is not None for name in stamps):
        return
    raise FileError(
        f"{folder} has files that are not from a job, such as {min(names)!r}, and a job may "
        "overwrite them; give a new or empty folder"
    )


def sealed_stamp(path: Path) -> dict[str, Any] | None:
    """Return the stamp in a file, or None if it is missing or damaged."""
    try:
        sealed = json.loads(path.read_text())
        stamp: dict[str, Any] = sealed["stamp"]
        return stamp if sealed["checksum"] == digest(stamp) else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def release(array: NDArray[Any]) -> None:
    """Drop the pages of a mapped array from memory; reading it again loads them."""
    while array is not None:
        mapping = getattr(array, "_mmap", None)
        if isinstance(mapping, mmap.mmap):
            with contextlib.suppress(ValueError, OSError):
                mapping.madvise(mmap.MADV_DONTNEED)
            return
        array = getattr(array, "base", None)  # type: ignore[assignment]


def digest(*parts: Any) -> str:
    """Return a hash of plain values, for keys of steps."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@contextmanager
def naming(path: Path, what: str) -> Iterator[None]:
    """Raise an `OSError` as a `FileError` that says what cannot be done with `path`."""
    try:
        yield
    except OSError as error:
        raise FileError(f"{path} cannot be {what}: {error.strerror}") from error
