"""Files and folders written whole or not at all, and temporary folders that are always removed.

An incomplete file has a temporary name, listed in `_unfinished`. An error or Ctrl-C removes it, and
so does the SIGTERM handler (`remove_unfinished`). Folders that killed processes have left are
removed by the next process that makes such a folder.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from lookalike.errors import FileError

# errors of file systems that cannot sync a folder, or do not let this user
_NEVER_SYNCED = (errno.EACCES, errno.EPERM, errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)
LOCK = ".in-use"  # locked by the owner of a temporary folder
_UNLOCKED = ".new-"  # prefix of a folder that is not locked yet
_SURELY_LOCKED = 3600.0  # seconds after which a new folder is locked or abandoned
_ATTEMPTS = 10
SQLITE = b"SQLite format 3\0"  # the first bytes of a database

_unfinished: set[Path] = set()


class FileState(NamedTuple):
    """The identity of a file's content: another state means another or a changed file."""

    device: int
    inode: int
    size: int
    modified: int  # nanoseconds since 1970

    @classmethod
    def of(cls, status: os.stat_result) -> FileState:
        """Return the state in the answer of `stat`."""
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Refuse to replace folders, devices and pipes by a file."""
    mode = _mode(path)
    if mode is not None and not stat.S_ISREG(mode):
        raise FileError(f"{path} already exists and is not a plain file; give another name")


def is_there(path: str | os.PathLike[str]) -> bool:
    """Return whether a file or folder exists; raise `FileError` if that cannot be determined."""
    return _mode(path) is not None


def is_folder(path: str | os.PathLike[str]) -> bool:
    """Return whether this is a folder; raise `FileError` if that cannot be determined."""
    mode = _mode(path)
    return mode is not None and stat.S_ISDIR(mode)


def is_file(text: str) -> bool:
    """Return whether a text, which may be anything, is the name of a file."""
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # too long for a name, or with a zero byte
        return False


@contextmanager
def file_errors(name: object, what: str = "read") -> Iterator[None]:
    """Raise an `OSError` as a `FileError` that says which file cannot be read (or otherwise)."""
    try:
        yield
    except OSError as error:
        raise FileError(f"{name} cannot be {what}: {error.strerror or error}") from error


def walk_folder(folder: Path, closed: list[OSError]) -> Iterator[tuple[str, list[str], list[str]]]:
    """Walk a folder like `os.walk`, and add the errors of folders inside it to `closed`."""

    def note(error: OSError) -> None:
        if error.filename == str(folder):
            raise FileError(f"{folder}: cannot be read: {error.strerror}") from error
        closed.append(error)

    return os.walk(folder, onerror=note)


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary name in the same folder; then sync the file and rename it.

    If the block raises an error, the old file is kept and the new one is removed. An `OSError`
    becomes a `FileError` that names the file. A symbolic link is kept: its target is replaced, with
    the same permissions. Folders, devices and pipes are refused.
    """
    check_replaceable(path)
    target = Path(os.path.realpath(path))
    with _becoming(target, path) as temporary:
        yield temporary
        descriptor = os.open(temporary, os.O_RDONLY)
        try:
            _resemble(descriptor, target)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(target)


def new_file(path: str | os.PathLike[str], content: bytes) -> None:
    """Create a small file, whole or not at all; raise `FileExistsError` if another process did."""
    target = Path(path)
    if not target.name:  # the current folder, or the root
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    temporary = _beside(target)
    with unfinished(temporary), ExitStack() as left:
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
    """Yield a new folder to fill; then rename it. Nothing may have this name before."""
    target = Path(path)
    if is_there(target):
        raise FileError(f"{target} already exists; give another name, or remove it")
    with _becoming(target, target) as temporary:
        temporary.mkdir()
        yield temporary
        temporary.rename(target)


@contextmanager
def _becoming(target: Path, shown: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary name beside the target; the block renames it at its end."""
    temporary = _beside(target)
    try:
        with unfinished(temporary):
            yield temporary
    except OSError as error:
        raise FileError(f"{shown} cannot be written: {error}") from error
    _sync_name(target)


def same_file(path: str | os.PathLike[str], others: Iterable[Path]) -> Path | None:
    """Return the first of these paths that leads to the same file, also by links."""
    try:
        wanted = Path(path).stat()
    except OSError:
        return None  # it does not exist
    for other in others:
        with suppress(OSError):
            if os.path.samestat(wanted, other.stat()):
                return other
    return None


def remove_if_same(path: str | os.PathLike[str], known: os.stat_result) -> bool:
    """Remove a file if it is still the known one; return whether it was removed.

    It is renamed before it is compared. If it is another file, that one gets the name back.
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
                f"{target} was replaced twice while it was checked; one of the files is now called "
                f"{aside}: {error}"
            ) from error
        aside.rename(target)  # a file system without links, or a folder
    return False


def _resemble(descriptor: int, target: Path) -> None:
    """Give a file the mode and, if allowed, the owner of the file that it replaces."""
    with suppress(OSError):
        old = target.stat()
        if os.geteuid() == 0:
            os.fchown(descriptor, old.st_uid, old.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(old.st_mode))


def _beside(target: Path) -> Path:
    return target.with_name(f".{target.name}.{os.urandom(6).hex()}.tmp")


def _mode(path: str | os.PathLike[str]) -> int | None:
    """Return the mode of a file or folder; None if nothing has this name."""
    try:
        return os.stat(path).st_mode  # noqa: PTH116  # takes every name
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:  # too long, contains NUL, or permission denied
        raise FileError(f"{path} cannot be accessed: {error}") from error


def _sync_name(target: Path) -> None:
    """Make a name durable by syncing its folder, if the system can."""
    try:
        descriptor = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in _NEVER_SYNCED:
            raise FileError(
                f"{target} is written, but a power failure may undo that: its folder cannot be "
                f"synced ({error}); write it again"
            ) from error


@contextmanager
def unfinished(path: Path) -> Iterator[None]:
    """Remove a file or folder if the block raises an error, or the process ends within it.

    Files with the same name, a dash and more, such as a database journal, are part of it.
    """
    _unfinished.add(path)
    try:
        yield
    except BaseException:
        _remove(path)
        _unfinished.discard(path)  # not if removing was interrupted, too
        raise
    _unfinished.discard(path)


@contextmanager
def temporary_folder(prefix: str, within: Path | None = None) -> Iterator[Path]:
    """Yield a new private folder, in `within` or among temporary files, and remove it at the end.

    Folders of this user with the same prefix that killed processes have left are removed, too.
    """
    _remove_abandoned(prefix, within)
    try:
        path, descriptor = _locked_folder(prefix, within)
    except OSError as error:
        raise FileError(
            f"temporary files cannot be created: {error}; set TMPDIR to a folder with free space"
        ) from error
    try:
        with unfinished(path):
            yield path
            _remove(path)
    finally:
        os.close(descriptor)


def _locked_folder(prefix: str, within: Path | None) -> tuple[Path, int]:
    """Return a new folder, named after it was locked, and the descriptor of its lock."""
    made = Path(tempfile.mkdtemp(prefix=_UNLOCKED + prefix, dir=within))
    descriptor = os.open(made / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        with suppress(OSError):  # not every file system has locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        return made.rename(made.with_name(made.name.removeprefix(_UNLOCKED))), descriptor
    except BaseException:
        os.close(descriptor)
        _remove(made)
        raise


def remove_unfinished() -> None:
    """Remove all unfinished files; retry, because other threads may still create some."""
    for _ in range(_ATTEMPTS):
        for path in list(_unfinished):
            _remove(path)
        if not any(map(os.path.lexists, list(_unfinished))):
            break


def _remove_abandoned(prefix: str, within: Path | None) -> None:
    now = time.time()
    with suppress(OSError), os.scandir(within or tempfile.gettempdir()) as entries:
        for entry in entries:
            with suppress(OSError):
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

    with suppress(OSError), os.scandir(path.parent) as entries:
        own = [
            one for one in entries if one.name == path.name or one.name.startswith(f"{path.name}-")
        ]
        for entry in own:
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                with suppress(OSError):
                    Path(entry.path).unlink()


def open_plain(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a plain file for reading; raise `OSError` for pipes and devices, which may never end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a plain file", os.fspath(path))
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def user_cache_folder() -> Path | None:
    """Return our folder in `XDG_CACHE_HOME` or `~/.cache`; None for a user without a home."""
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if named.is_absolute():
        return named / "lookalike"
    try:
        return Path.home() / ".cache" / "lookalike"
    except RuntimeError:
        return None


def is_database(path: Path) -> bool:
    """Return whether a file is an SQLite database, such as one of collections."""
    try:
        with open(path, "rb") as file:
            return file.read(len(SQLITE)) == SQLITE
    except OSError:
        return False
