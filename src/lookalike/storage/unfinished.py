"""What is on disk only until a piece of work is complete, and who removes it if it never is.

An error, and Ctrl-C, which is one, remove such files on their way up. A process that is told to end
(SIGTERM) has no way up: whoever handles that signal, as the command line does, calls
`remove_unfinished`. What a process leaves that was killed, the next to make such a folder finds.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lookalike.errors import FileError

LOCK = ".in-use"
"""The file of a temporary folder that its owner holds locked."""

_UNLOCKED = ".new-"
"""What the name of a folder begins with until it is locked."""
_SURELY_LOCKED = 3600.0
"""Seconds after which a folder that is to be locked has been, or never will be."""

_ATTEMPTS = 10

_unfinished: set[Path] = set()


@contextmanager
def unfinished(path: Path) -> Iterator[None]:
    """Remove a file or folder if this is left by an exception, or not at all.

    What lies beside it and has its name with a dash and more, a database's journal, is part of it.
    """
    _unfinished.add(path)
    try:
        yield
    except BaseException:
        _remove(path)
        _unfinished.discard(path)  # not if that was interrupted, too
        raise
    _unfinished.discard(path)


@contextmanager
def temporary_folder(prefix: str, within: Path | None = None) -> Iterator[Path]:
    """Yield a new folder that nobody else can read, and remove it.

    It is made in `within`, or where temporary files are.

    Folders of the same prefix are removed, too, if processes of this user made them and were
    killed.
    """
    _remove_abandoned(prefix, within)
    try:
        path, descriptor = _locked_folder(prefix, within)
    except OSError as error:
        raise FileError(
            f"no temporary files can be made: {error}; let TMPDIR name a folder with room for them"
        ) from error
    try:
        with unfinished(path):
            yield path
            _remove(path)
    finally:
        os.close(descriptor)


def _locked_folder(prefix: str, within: Path | None) -> tuple[Path, int]:
    """Return a new folder and the descriptor by which it is locked.

    It gets its name when it is locked, so that one that is not locked is surely abandoned.
    """
    made = Path(tempfile.mkdtemp(prefix=_UNLOCKED + prefix, dir=within))
    descriptor = os.open(made / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        with contextlib.suppress(OSError):  # not every file system has locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        return made.rename(made.with_name(made.name.removeprefix(_UNLOCKED))), descriptor
    except BaseException:
        os.close(descriptor)
        _remove(made)
        raise


def remove_unfinished() -> None:
    """Remove all there is; to be called by a process that is about to end.

    Other threads may still be working, and making files: it is tried more than once.
    """
    for _ in range(_ATTEMPTS):
        for path in list(_unfinished):
            _remove(path)
        if not any(map(os.path.lexists, list(_unfinished))):
            break


def _remove_abandoned(prefix: str, within: Path | None) -> None:
    now = time.time()
    with contextlib.suppress(OSError), os.scandir(within or tempfile.gettempdir()) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                if not entry.name.startswith((prefix, _UNLOCKED + prefix)):
                    continue
                state = entry.stat(follow_symlinks=False)
                old = now - state.st_mtime > _SURELY_LOCKED or entry.name.startswith(prefix)
                own = state.st_uid == os.getuid() and entry.is_dir(follow_symlinks=False)
                if old and own:
                    _remove_if_unlocked(Path(entry.path))


def _remove_if_unlocked(folder: Path) -> None:
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(folder)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    import shutil  # takes longer to import than all the rest of this file

    with contextlib.suppress(OSError), os.scandir(path.parent) as entries:
        own = [
            one for one in entries if one.name == path.name or one.name.startswith(f"{path.name}-")
        ]
        for entry in own:
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    Path(entry.path).unlink()
