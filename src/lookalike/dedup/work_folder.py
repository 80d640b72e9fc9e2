"""The folder a job works in: what a step has made stays there, so that nothing is done twice.

A step writes its files and syncs them, then a stamp, `STEP.json`: the key it was made for, what is
to be known of the files, their lengths and checksums, and a checksum of all that. A step whose
stamp has the same key and whose files are what it says is not repeated. Keys contain the keys of
the steps before. Everything else in the folder, what an interrupted run has left and what was
damaged since, is made anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import mmap
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.errors import CorruptIndexError, FileError
from lookalike.storage import checksums, whole_file
from lookalike.storage.files import temporary_folder

__all__ = ["WorkFolder", "naming", "release"]

_STAMP_VERSION = 2
_PREFIX = "lookalike-job-"
_TEMPORARY = "lookalike-"
"""What the names of temporary folders begin with, such as that of standard input."""


class WorkFolder:
    """A folder of arrays and stamps; a temporary one unless named. One job at a time has it."""

    def __init__(self, folder: Path | None) -> None:
        self.temporary = folder is None
        """Whether nobody can come back to it."""
        self._left = contextlib.ExitStack()
        try:
            if folder is None:
                folder = self._left.enter_context(temporary_folder(_PREFIX))
            folder.mkdir(parents=True, exist_ok=True)
            if not self.temporary:
                _refuse_other_files(folder)
            self._lock = open(folder / "lock", "ab")  # noqa: SIM115  # held until closed
        except OSError as error:
            raise FileError(f"{folder}: cannot work here: {error.strerror}") from error
        self.folder = folder
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise FileError(
                f"{folder}: another job is working here; wait for it, or give another folder"
            ) from None

    def close(self) -> None:
        """Let others have the folder; remove it if it is temporary."""
        self._lock.close()
        self._left.close()

    def path(self, name: str) -> Path:
        """Return where a file lies."""
        return self.folder / name

    def facts(self, step: str, key: str) -> dict[str, Any] | None:
        """Return what a completed step with this key noted, or None if it has to be done."""
        stamp = self.read_stamp(step, key)
        if stamp is None:
            return None
        try:
            for name, fingerprint in stamp["files"].items():
                if self._fingerprint(name) != fingerprint:
                    return None
        except OSError:
            return None
        facts: dict[str, Any] = stamp["facts"]
        return facts

    def begin(self, step: str) -> None:
        """Forget that the step was ever completed."""
        self.remove(f"{step}.json")

    def complete(
        self, step: str, key: str, facts: dict[str, Any], files: Sequence[str] = ()
    ) -> None:
        """Note that the step's files are all there, synced, and what is in them."""
        if self.temporary:  # nobody comes back, so they need not be read for that
            return
        fingerprints = {}
        for name in files:
            with naming(self.path(name), "written"):
                self._sync(name)
                fingerprints[name] = self._fingerprint(name)
        self.stamp(step, key, facts, fingerprints)

    def stamp(
        self, step: str, key: str, facts: dict[str, Any], files: dict[str, list[int]]
    ) -> None:
        """Write a stamp that vouches for files: the length and checksum of each."""
        stamp = {"version": _STAMP_VERSION, "key": key, "facts": facts, "files": files}
        with whole_file(self.path(f"{step}.json")) as temporary:
            temporary.write_text(json.dumps({"stamp": stamp, "checksum": digest(stamp)}))

    def read_stamp(self, step: str, key: str) -> dict[str, Any] | None:
        """Return a stamp with this key, as it was written; its files may be anything."""
        stamp = sealed_stamp(self.path(f"{step}.json"))
        known = isinstance(stamp, dict) and stamp.get("version") == _STAMP_VERSION
        return stamp if known and stamp is not None and stamp.get("key") == key else None

    def _fingerprint(self, name: str) -> list[int]:
        """Return the length and checksum of a file."""
        with open(self.path(name), "rb") as file:
            length = os.fstat(file.fileno()).st_size
            if not length:
                return [0, _native.Xxh64().value()]
            with mmap.mmap(file.fileno(), length, access=mmap.ACCESS_READ) as mapping:
                return [length, *checksums(mapping, [(0, length)])]

    def _sync(self, name: str) -> None:
        with open(self.path(name), "rb") as file:
            os.fsync(file.fileno())

    @contextmanager
    def writer(self, name: str, *, keep_bytes: int = 0) -> Iterator[BinaryIO]:
        """Open a file to append to, cut to its first `keep_bytes`; a full disk is a `FileError`.

        A file of which nothing is kept is a new one: results may still have the old one mapped.
        """
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
                f"{path} cannot be written: {error.strerror}; free some space or work in another "
                "folder: what has been done stays, and the job goes on from there"
            ) from error

    def array(self, name: str, dtype: type[np.generic], columns: int | None = None) -> NDArray[Any]:
        """Return a file as an array, mapped and not read; rows of `columns` values if given."""
        path = self.path(name)
        with naming(path, "read"):
            length = path.stat().st_size
        row = np.dtype(dtype).itemsize * (columns or 1)
        if length % row:
            raise CorruptIndexError(
                f"{path} has {length} bytes, no multiple of {row}; it is damaged: remove it"
            )
        shape = (length // row,) if columns is None else (length // row, columns)
        if length == 0:
            return np.empty(shape, dtype)
        with naming(path, "read"):
            return np.memmap(path, dtype, "r", shape=shape)

    def scratch(self, name: str, dtype: type[np.generic], shape: tuple[int, ...]) -> NDArray[Any]:
        """Return an array on disk to write to, of which only what is used is in memory."""
        if 0 in shape:
            return np.empty(shape, dtype)
        with naming(self.path(name), "written"):
            with open(self.path(name), "wb") as file:
                # Allocated now: running out of disk later would be a crash, not an error.
                os.posix_fallocate(file.fileno(), 0, int(np.prod(shape)) * np.dtype(dtype).itemsize)
            return np.memmap(self.path(name), dtype, "r+", shape=shape)

    def remove(self, name: str) -> None:
        """Remove a file that is no longer needed, if it is there."""
        with naming(self.path(name), "removed"):
            self.path(name).unlink(missing_ok=True)


def _refuse_other_files(folder: Path) -> None:
    """Raise if there are files in a folder in which no job has ever worked.

    Names of files are those that a job needs, so that it would replace what others have there.
    """
    names = {one.name for one in folder.iterdir() if not one.name.startswith(_TEMPORARY)}
    if not names:
        return
    lock = folder / "lock"
    if lock.is_file() and not lock.is_symlink() and not lock.stat().st_size:
        return
    for name in names:
        if name.endswith(".json") and sealed_stamp(folder / name) is not None:
            return
    raise FileError(
        f"{folder} has files that no job has made, such as {min(names)!r}; a job would replace "
        "some of them: give a new or an empty folder"
    )


def sealed_stamp(path: Path) -> dict[str, Any] | None:
    """Return the stamp that a file holds, if it is as it was written."""
    try:
        sealed = json.loads(path.read_text())
        stamp: dict[str, Any] = sealed["stamp"]
        return stamp if sealed["checksum"] == digest(stamp) else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


@contextmanager
def naming(path: Path, what: str) -> Iterator[None]:
    """Turn an `OSError` into a `FileError` that names the file, and what cannot be done to it."""
    try:
        yield
    except OSError as error:
        raise FileError(f"{path} cannot be {what}: {error.strerror or error}") from error


def release(array: NDArray[Any]) -> None:
    """Let go of the memory behind a mapped array; reading it again brings it back."""
    while array is not None:
        mapping = getattr(array, "_mmap", None)
        if isinstance(mapping, mmap.mmap):
            with contextlib.suppress(ValueError, OSError):
                mapping.madvise(mmap.MADV_DONTNEED)
            return
        array = getattr(array, "base", None)  # type: ignore[assignment]


def digest(*parts: Any) -> str:
    """Return a key that is equal for equal plain values only."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
