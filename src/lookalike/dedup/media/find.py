"""Which files there are in folders, which of them are of one kind, and which are equal."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.dedup.media.medium import HEAD, Medium, Problem, Tell
from lookalike.errors import FileError
from lookalike.storage import is_folder
from lookalike.storage.files import open_plain

__all__ = ["Found", "find_files", "first_equal", "head_of", "walk"]

_PIECE = 1 << 20


@dataclass
class Found:
    """The files of one kind, in the order of the arguments, those of a folder by path."""

    files: list[Path] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    """Bytes of each."""
    others: list[Path] = field(default_factory=list)
    """Files of another kind, which are not looked at."""
    problems: list[Problem] = field(default_factory=list)
    """What cannot be read, or is called like one of this kind and is none."""


def find_files(paths: Sequence[Path], medium: type[Medium[Any]]) -> Found:
    """Return the files of one kind among these and in these folders, to the bottom.

    They are known by what they begin with. Symbolic links in folders are not followed: what they
    lead to would be a duplicate of itself, and who deletes it would keep a link to nothing. A
    file comes once, also if several arguments lead to it, by whichever paths and links.
    """
    found, seen = Found(), set[Path]()
    for path in paths:
        real = path.resolve()
        for file, problem in walk(path):
            itself = real / file.relative_to(path)
            if itself in seen:
                continue
            seen.add(itself)
            if problem:
                found.problems.append(Problem(file, problem))
            else:
                _sort_in(file, medium, found, named=file == path)
    return found


def _sort_in(file: Path, medium: type[Medium[Any]], found: Found, *, named: bool) -> None:
    try:
        head, size = head_of(file)
    except OSError as error:
        found.problems.append(Problem(file, f"cannot be read ({error.strerror})"))
        return
    if medium.recognises(head):
        found.files.append(file)
        found.sizes.append(size)
    elif named or file.suffix.lower() in medium.suffixes:
        reason = f"is no {medium.noun}: its beginning is not that of one"
        found.problems.append(Problem(file, reason if head else "is empty"))
    else:
        found.others.append(file)


def walk(path: Path) -> Iterator[tuple[Path, str]]:
    """Yield a file, or those in a folder by path, each with what is wrong with it, or ""."""
    if not is_folder(path):
        yield path, ""
        return
    closed: dict[str, OSError] = {}

    def note(error: OSError) -> None:
        if error.filename == str(path):
            raise FileError(f"{path}: cannot be read: {error.strerror}") from error
        closed[str(error.filename)] = error

    found: list[tuple[Path, str]] = []
    for folder, folders, names in os.walk(path, onerror=note):
        links = [name for name in folders if Path(folder, name).is_symlink()]
        found += [(Path(folder, name), _wrong(Path(folder, name))) for name in [*names, *links]]
    found += [(Path(name), f"cannot be read ({error.strerror})") for name, error in closed.items()]
    yield from sorted(found)


def _wrong(file: Path) -> str:
    """Return what is wrong with a name in a folder, without opening it."""
    try:
        mode = file.lstat().st_mode
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    if stat.S_ISLNK(mode):
        return "is a link, which is not followed"
    return "" if stat.S_ISREG(mode) else "is no plain file"


def head_of(file: Path) -> tuple[bytes, int]:
    """Return what a plain file begins with, and how many bytes it has."""
    with open_plain(file) as opened:
        return opened.read(HEAD), os.fstat(opened.fileno()).st_size


def first_equal(
    files: Sequence[Path], sizes: NDArray[np.int64], *, threads: int, tell: Tell
) -> NDArray[np.int64]:
    """Return for each file the first with the same bytes; itself, if there is none before it.

    Only files of equal size are read. One that cannot be read is equal to none: whoever reads it
    next will say so.
    """
    first = np.arange(len(files))
    order = np.argsort(sizes, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(sizes[order])) + 1)
    doubtful = [position for group in groups if len(group) > 1 for position in group.tolist()]
    seen: dict[tuple[int, bytes], int] = {}
    with ThreadPoolExecutor(threads) as pool:
        digests = pool.map(_digest, (files[position] for position in doubtful))
        for done, (position, digest) in enumerate(zip(doubtful, digests, strict=True)):
            if digest is not None:
                key = int(sizes[position]), digest
                first[position] = seen.setdefault(key, position)
            tell((done + 1) / len(doubtful))
    return first


def _digest(file: Path) -> bytes | None:
    """Return what stands for all bytes of a file; two that differ have different ones."""
    digest = hashlib.sha256()
    try:
        with open_plain(file) as opened:
            while piece := opened.read(_PIECE):
                digest.update(piece)
    except OSError:
        return None
    return digest.digest()
