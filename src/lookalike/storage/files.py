"""Files and folders that appear whole or not at all, and temporary ones that are always removed.

Until a file is complete it has a temporary name, noted in `_unfinished`. An error, also Ctrl-C,
removes it on the way up. The handler of SIGTERM calls `remove_unfinished`. What a killed process
leaves is removed by the next process that makes such a folder.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from lookalike.errors import FileError

_NEVER_SYNCED = (errno.EACCES, errno.EPERM, errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)
"""What systems say that let no folder be synced, or not this one by this user."""
LOCK = ".in-use"
"""The file of a temporary folder that its owner holds locked."""

_UNLOCKED = ".new-"
"""What the name of a folder begins with until it is locked."""
_SURELY_LOCKED = 3600.0
"""Seconds after which a folder that is to be locked has been, or never will be."""

_ATTEMPTS = 10

_unfinished: set[Path] = set()


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Refuse what must not be replaced by a file: folders, devices, pipes."""
    mode = _mode(path)
    if mode is not None and not stat.S_ISREG(mode):
        raise FileError(f"{path} is there already and is no plain file; give another name")


def is_there(path: str | os.PathLike[str]) -> bool:
    """Return whether something has this name; a `FileError` where that cannot be found out."""
    return _mode(path) is not None


def is_folder(path: str | os.PathLike[str]) -> bool:
    """Return whether this is a folder; a `FileError` where that cannot be found out."""
    mode = _mode(path)
    return mode is not None and stat.S_ISDIR(mode)


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a new name in the same folder to write to; then sync it and give it its own name.

    If anything is raised meanwhile, what was there before stays, and the new file is removed. An
    `OSError`, such as a full disk, becomes a `FileError` that names the file. A link stays one: the
    file that it leads to is replaced, by one that the same people may read. Folders, devices and
    pipes are not replaced, but refused. One error comes when the new file is in its place, and says
    so: that the folder cannot be synced, so that a loss of power may bring back the old one.
    """
    check_replaceable(path)
    target = Path(os.path.realpath(path))
    temporary = _beside(target)
    try:
        with unfinished(temporary):
            yield temporary
            descriptor = os.open(temporary, os.O_RDONLY)
            try:
                _resemble(descriptor, target)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            temporary.replace(target)
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error}") from error
    _sync_name(target)


def new_file(path: str | os.PathLike[str], content: bytes) -> None:
    """Make a small file, whole or not at all; `FileExistsError` if the name is taken.

    Of several that make the same file at once, one does, and the others find it complete.
    """
    target = Path(path)
    if not target.name:  # the current folder, or the root
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    temporary = _beside(target)
    with unfinished(temporary), contextlib.ExitStack() as left:
        left.callback(_remove, temporary)
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(temporary, target)
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            if target.exists():
                raise FileExistsError(f"[Errno 17] File exists: {str(target)!r}") from None
            temporary.rename(target)
    _sync_name(target)


@contextmanager
def whole_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a new folder to fill; then give it its own name, which nothing may have had before."""
    target = Path(path)
    if is_there(target):
        raise FileError(f"{target} is there already; name a folder that is not, or remove it")
    temporary = _beside(target)
    try:
        with unfinished(temporary):
            temporary.mkdir()
            yield temporary
            temporary.rename(target)
    except OSError as error:
        raise FileError(f"{target} cannot be written: {error}") from error
    _sync_name(target)


def same_file(path: str | os.PathLike[str], others: Iterable[Path]) -> Path | None:
    """Return the first of these names that leads to the same file, whatever links are between."""
    try:
        wanted = Path(path).stat()
    except OSError:
        return None  # it is not there, so it is none of them
    for other in others:
        with contextlib.suppress(OSError):
            if os.path.samestat(wanted, other.stat()):
                return other
    return None


def remove_if_same(path: str | os.PathLike[str], known: os.stat_result) -> bool:
    """Remove a file if it is still the one that was looked at; return whether it was removed.

    The file is renamed before it is compared and removed, so that another file which takes its
    name in between is not lost: that one gets its name back.
    """
    target = Path(path)
    aside = target.with_name(f".{target.name}.{os.urandom(6).hex()}.aside")
    try:
        if not os.path.samestat(target.lstat(), known):
            return False
        target.rename(aside)
    except FileNotFoundError:
        return False
    if os.path.samestat(aside.lstat(), known):
        aside.unlink()
        return True
    try:
        os.link(aside, target, follow_symlinks=False)
        aside.unlink()
    except OSError as error:
        if is_there(target) or target.is_symlink():
            raise FileError(
                f"{target} was replaced twice while it was looked at; one of the files is now "
                f"called {aside}: {error}"
            ) from error
        aside.rename(target)  # a file system without links, or a folder
    return False


def _resemble(descriptor: int, target: Path) -> None:
    """Give a file the mode and, if that is allowed, the owner of the one that it will replace."""
    with contextlib.suppress(OSError):
        old = target.stat()
        if os.geteuid() == 0:
            os.fchown(descriptor, old.st_uid, old.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(old.st_mode))


def _beside(target: Path) -> Path:
    return target.with_name(f".{target.name}.{os.urandom(6).hex()}.tmp")


def _mode(path: str | os.PathLike[str]) -> int | None:
    """Return the mode of what has this name; None if nothing has."""
    try:
        return os.stat(path).st_mode  # noqa: PTH116  # takes every name
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:  # too long, a NUL in it, a folder above that is closed
        raise FileError(f"{path} cannot be looked at: {error}") from error


def _sync_name(target: Path) -> None:
    """Make a name durable by syncing its folder, where the system lets that be done."""
    try:
        descriptor = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in _NEVER_SYNCED:
            raise FileError(
                f"{target} is in its place, but a loss of power may undo that: its folder cannot "
                f"be synced ({error}); make it once more"
            ) from error


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


def open_plain(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a plain file for reading its bytes; `OSError` for whatever else has that name.

    A pipe that nobody writes to, or a device, would keep the reader waiting for ever.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no plain file", os.fspath(path))
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def user_cache_folder() -> Path | None:
    """Return our folder in `XDG_CACHE_HOME`, or in `~/.cache`; None for a user without a home.

    It need not be there yet. The standard has relative paths ignored: what is kept would depend on
    where a program was started.
    """
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if named.is_absolute():
        return named / "lookalike"
    try:
        return Path.home() / ".cache" / "lookalike"
    except RuntimeError:
        return None
