"""Files and folders that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lookalike.errors import FileError
from lookalike.storage.unfinished import unfinished

__all__ = ["check_replaceable", "exists", "new_file", "same_file", "whole_file", "whole_folder"]


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Refuse what must not be replaced by a file: folders, devices, pipes; and impossible names."""
    if exists(path) and not Path(path).is_file():
        raise FileError(f"{path} is there already and is no plain file; give another name")


def exists(path: str | os.PathLike[str]) -> bool:
    """Return whether there is something of that name; it is an error if that cannot be told."""
    try:
        return Path(path).exists()
    except (OSError, ValueError) as error:  # too long, a NUL in it, a folder above that is closed
        raise FileError(f"{path}: cannot be read: {error}") from error


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a new name in the same folder to write to; then sync it and give it its own name.

    If anything is raised meanwhile, what was there before stays, and the new file is removed. An
    `OSError`, such as a full disk, becomes a `FileError` that names the file. A link stays one: the
    file that it leads to is replaced, by one that the same people may read. Folders, devices and
    pipes are not replaced, but refused.
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
    _sync_folder(target.parent)


def new_file(path: str | os.PathLike[str], content: bytes) -> None:
    """Make a small file, whole or not at all; `FileExistsError` if the name is taken.

    Of several that make the same file at once, one does, and the others find it complete.
    """
    target = Path(path)
    temporary = _beside(target)
    try:
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
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
    _sync_folder(target.parent)


@contextmanager
def whole_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a new folder to fill; then give it its own name, which nothing may have had before."""
    target = Path(path)
    if exists(target):
        raise FileError(f"{target} is there already; name a folder that is not, or remove it")
    temporary = _beside(target)
    try:
        with unfinished(temporary):
            temporary.mkdir()
            yield temporary
            temporary.rename(target)
    except OSError as error:
        raise FileError(f"{target} cannot be written: {error}") from error
    _sync_folder(target.parent)


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


def _resemble(descriptor: int, target: Path) -> None:
    """Give a file the mode and, if that is allowed, the owner of the one that it will replace."""
    with contextlib.suppress(OSError):
        old = target.stat()
        if os.geteuid() == 0:
            os.fchown(descriptor, old.st_uid, old.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(old.st_mode))


def _beside(target: Path) -> Path:
    return target.with_name(f".{target.name}.{os.urandom(6).hex()}.tmp")


def _sync_folder(folder: Path) -> None:
    """Make a rename durable; not every system lets a folder be opened for that."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
