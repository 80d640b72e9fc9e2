"""Files and folders that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lookalike.errors import FileError

__all__ = ["check_replaceable", "new_file", "whole_file", "whole_folder"]


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Refuse what must not be replaced by a file: folders, devices, pipes."""
    if Path(path).exists() and not Path(path).is_file():
        raise FileError(f"{path} is there already and is no plain file; give another name")


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a new name in the same folder to write to; then sync it and give it its own name.

    If anything is raised meanwhile, what was there before stays, and the new file is removed. An
    `OSError`, such as a full disk, becomes a `FileError` that names the file. A link stays one: the
    file that it leads to is replaced. Folders, devices and pipes are not replaced, but refused.
    """
    check_replaceable(path)
    target = Path(os.path.realpath(path))
    temporary = _beside(target)
    try:
        yield temporary
        descriptor = os.open(temporary, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            raise FileError(f"{path} cannot be written: {error}") from error
        raise
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
    if target.exists():
        raise FileError(f"{target} is there already; name a folder that is not, or remove it")
    temporary = _beside(target)
    try:
        temporary.mkdir()
        yield temporary
        temporary.rename(target)
    except BaseException as error:
        import shutil  # takes longer to import than all the rest of this file

        shutil.rmtree(temporary, ignore_errors=True)
        if isinstance(error, OSError):
            raise FileError(f"{target} cannot be written: {error}") from error
        raise
    _sync_folder(target.parent)


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
