"""What processes that died have left behind, and how that is told from what is in use.

Whoever restores a collection holds a lock of the database, which others who restore share. Who gets
it alone knows that whatever is half restored is abandoned: locks of processes that die are released
by the system. Whoever loses the race, or the lock, gets an error and no damage: each batch of a
restore first looks whether what it writes to is still there.

Files under temporary names are abandoned if nobody has written to them for a day; so are caches of
collections that are not in the database.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lookalike.collection.search.kept import CACHE_NAME
from lookalike.collection.stores.base import Store, Writer
from lookalike.errors import CollectionBusyError, CollectionError

_DAY = 24 * 3600
_PAUSE = 0.02
_TEMPORARY = r"\.[0-9a-f]{12}\.tmp"
_SQLITE = b"SQLite format 3\0"


def remove_abandoned(store: Store) -> None:
    """Remove what restores that died have left, if that can be done now."""
    with suppress(CollectionError):
        store.remove_abandoned()


def drop_hidden(writer: Writer) -> int:
    """Remove what is half restored; return how many collections that was."""
    hidden = [writer.lock(state.name) for state in writer.states(hidden=True)]
    left = [state for state in hidden if state is not None]
    for state in left:
        writer.drop(state)
    return len(left)


@contextmanager
def shared_file(path: Path, timeout: float) -> Iterator[None]:
    """Hold a lock that others may share, in a file that is gone when nobody holds it."""
    deadline = time.monotonic() + timeout
    try:
        descriptor = _locked(path, fcntl.LOCK_SH)
        while descriptor is None and time.monotonic() < deadline:
            time.sleep(_PAUSE)
            descriptor = _locked(path, fcntl.LOCK_SH)
    except OSError as error:
        raise CollectionError(f"{path} cannot be locked: {error}; nothing was written") from error
    if descriptor is None:
        raise CollectionBusyError(
            f"{path} was locked by another process for more than {timeout:g} s; nothing was "
            "written: try again"
        )
    try:
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _unlink_empty(path)  # the last one
        _release(descriptor)


@contextmanager
def exclusive_file(path: Path) -> Iterator[bool]:
    """Hold that lock alone, and tell whether; nobody is waited for."""
    descriptor = None
    with suppress(OSError):  # where we may not write, it is for others to do
        descriptor = _locked(path, fcntl.LOCK_EX)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            with suppress(OSError):
                _unlink_empty(path)
            _release(descriptor)


def _unlink_empty(path: Path) -> None:
    """Remove the file of a lock; one with content is not ours."""
    if not path.lstat().st_size:
        path.unlink()


def _locked(path: Path, kind: int) -> int | None:
    """Return the descriptor of a file that is locked, or None if others hold it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        # Whoever held it before may have removed it: then this is the lock of nothing.
        if os.path.samestat(os.fstat(descriptor), path.stat()):
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


def _release(descriptor: int) -> None:
    fcntl.flock(descriptor, fcntl.LOCK_UN)  # for children that have inherited it, too
    os.close(descriptor)


def remove_old_caches(store: Store, folder: Path, *, of_this_database: bool) -> None:
    """Remove unfinished caches, and those of collections that are gone, if they are old.

    A folder that is not of this database alone may hold caches of collections of others.
    """
    unfinished = re.compile(rf"\.{CACHE_NAME}{_TEMPORARY}")
    finished = re.compile(CACHE_NAME)
    # In this order: whoever has a file now has its row by then.
    names = [name for name in _names(folder) if unfinished.fullmatch(name)]
    saved = [name for name in _names(folder) if of_this_database and finished.fullmatch(name)]
    with suppress(CollectionError):  # then it is not known which of them are in use
        if saved:
            with store.reading() as view:
                known = {state.uid for state in (*view.states(), *view.states(hidden=True))}
            names += [name for name in saved if name.partition(".")[0] not in known]
    for name in names:
        _remove_if_old(folder / name)


def remove_old_snapshots(folder: Path) -> None:
    """Remove unfinished snapshots that are old."""
    for name in _names(folder):
        path = folder / name
        if not re.fullmatch(rf"\..+{_TEMPORARY}", name, re.DOTALL) or path.is_symlink():
            continue
        with suppress(OSError), open(path, "rb") as file:
            head = file.read(len(_SQLITE))
            if head in (b"", _SQLITE) and _remove_if_old(path):
                path.with_name(f"{name}-journal").unlink(missing_ok=True)


def _names(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except OSError:
        return []  # there is none, or it is not ours to look at


def _remove_if_old(path: Path) -> bool:
    with suppress(OSError):
        if path.lstat().st_mtime < time.time() - _DAY:
            path.unlink()
            return True
    return False
