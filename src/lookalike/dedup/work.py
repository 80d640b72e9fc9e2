"""The folder a job works in: what a step has made stays there, so that nothing is done twice.

A step writes its files, then a stamp, `STEP.json`, with the key it was made for; a step whose stamp
has the same key is not repeated. Keys contain the keys of the steps before. Files without a stamp
are what an interrupted run has left; signing goes on from them, the others are made anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import mmap
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.errors import CorruptIndexError, FileError
from lookalike.storage import whole_file
from lookalike.storage.unfinished import temporary_folder

__all__ = ["Work", "release"]

_STAMP_VERSION = 1
_PREFIX = "lookalike-job-"


class Work:
    """A folder of arrays and stamps; a temporary one unless named. One job at a time has it."""

    def __init__(self, folder: Path | None) -> None:
        self._temporary = folder is None
        self._left = contextlib.ExitStack()
        try:
            if folder is None:
                folder = self._left.enter_context(temporary_folder(_PREFIX))
            folder.mkdir(parents=True, exist_ok=True)
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
        try:
            stamp = json.loads(self.path(f"{step}.json").read_text())
            same = stamp["version"] == _STAMP_VERSION and stamp["key"] == key
            if same and stamp["files"] == self._fingerprints(stamp["files"]):
                facts: dict[str, Any] = stamp["facts"]
                return facts
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return None

    def begin(self, step: str) -> None:
        """Forget that the step was ever completed."""
        self.path(f"{step}.json").unlink(missing_ok=True)

    def complete(
        self, step: str, key: str, facts: dict[str, Any], files: Sequence[str] = ()
    ) -> None:
        """Note that the step's files are all there, and what is in them."""
        # Nobody comes back to a temporary folder, so its files need not be read for that.
        fingerprints = {} if self._temporary else self._fingerprints(files)
        stamp = {"version": _STAMP_VERSION, "key": key, "facts": facts, "files": fingerprints}
        with whole_file(self.path(f"{step}.json")) as temporary:
            temporary.write_text(json.dumps(stamp))

    def _fingerprints(self, files: Iterable[str]) -> dict[str, list[int]]:
        """Return the length and checksum of files; damaged ones are made anew, not believed."""
        found = {}
        for name in files:
            data = self.array(Path(name).name, np.uint8)
            found[name] = [len(data), _native.xxh64(data)]
            release(data)
        return found

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
        length = path.stat().st_size
        row = np.dtype(dtype).itemsize * (columns or 1)
        if length % row:
            raise CorruptIndexError(
                f"{path} has {length} bytes, no multiple of {row}; it is damaged: remove it"
            )
        shape = (length // row,) if columns is None else (length // row, columns)
        if length == 0:
            return np.empty(shape, dtype)
        return np.memmap(path, dtype, "r", shape=shape)

    def scratch(self, name: str, dtype: type[np.generic], shape: tuple[int, ...]) -> NDArray[Any]:
        """Return an array on disk to write to, of which only what is used is in memory."""
        if 0 in shape:
            return np.empty(shape, dtype)
        try:
            with open(self.path(name), "wb") as file:
                # Allocated now: running out of disk later would be a crash, not an error.
                os.posix_fallocate(file.fileno(), 0, int(np.prod(shape)) * np.dtype(dtype).itemsize)
        except OSError as error:
            raise FileError(f"{self.path(name)} cannot be written: {error.strerror}") from error
        return np.memmap(self.path(name), dtype, "r+", shape=shape)

    def remove(self, name: str) -> None:
        """Remove a file that is no longer needed."""
        self.path(name).unlink(missing_ok=True)


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
