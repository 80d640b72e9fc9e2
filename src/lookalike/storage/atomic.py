"""Files and folders that appear whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lookalike.errors import FileError
from lookalike.storage.unfinished import unfinished

_NEVER_SYNCED = (errno.EACCES, errno.EPERM, errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)
"""What systems say that let no folder be synced, or not this one by this user."""


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
        left.callback(_remove_if_there, temporary)
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


def _remove_if_there(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


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
