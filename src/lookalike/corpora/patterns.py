"""Which files a pattern stands for: `*`, `?`, `[...]` and, for any number of folders, `**`.

As a shell does it, hidden files are matched only by what begins with a dot. Links to folders are
followed, but no folder is entered twice by one `**`: links that lead in a circle come to an end. A
folder that cannot be read is an error, not a folder without files.
"""

from __future__ import annotations

import fnmatch
import glob
import os
from collections.abc import Iterator
from pathlib import Path

from lookalike.errors import FileError

_ANY_FOLDERS = "**"


def is_pattern(text: str) -> bool:
    """Return whether a path has characters that stand for others."""
    return glob.has_magic(text)


def matching_paths(pattern: str) -> list[Path]:
    """Return the files and folders that a pattern stands for, sorted by name.

    What lies in a folder that is among them comes with that, and not by itself as well.
    """
    path = Path(pattern)
    parts = path.parts[1:] if path.anchor else path.parts
    found = {Path(match) for match in _matching(path.anchor, parts)}
    return sorted(one for one in found if found.isdisjoint(one.parents))


def _matching(folder: str, parts: tuple[str, ...]) -> Iterator[str]:
    """Yield what the parts of a path stand for in a folder; the empty one is the current one."""
    if not parts:
        yield folder
        return
    part, rest = parts[0], parts[1:]
    if part == _ANY_FOLDERS:
        for inner in _folders_below(folder):
            yield from _matching(inner, rest)
    elif is_pattern(part):
        entries = _entries(folder, hidden=part.startswith("."))
        for name in fnmatch.filter(entries, part):
            if not rest or entries[name].is_dir():
                yield from _matching(folder + name + os.sep * bool(rest), rest)
    elif os.path.lexists(folder + part) and (not rest or Path(folder + part).is_dir()):
        yield from _matching(folder + part + os.sep * bool(rest), rest)


def _entries(folder: str, *, hidden: bool = False) -> dict[str, os.DirEntry[str]]:
    try:
        with os.scandir(folder or os.curdir) as entries:
            return {one.name: one for one in entries if hidden or not one.name.startswith(".")}
    except OSError as error:
        raise FileError(
            f"{folder}: this folder cannot be read ({error.strerror or error}), so its files would "
            "be left out; let it be read, or give other patterns"
        ) from error


def _folders_below(folder: str) -> Iterator[str]:
    """Yield a folder and all that lie in it at any depth: first as they lie, then through links."""
    seen: set[tuple[int, int]] = set()
    waiting, links = [folder], list[str]()
    while waiting or links:
        path = waiting.pop() if waiting else links.pop(0)
        state = Path(path or os.curdir).stat()
        if (state.st_dev, state.st_ino) in seen:
            continue
        seen.add((state.st_dev, state.st_ino))
        yield path
        for name, entry in sorted(_entries(path).items(), reverse=True):
            if entry.is_dir():
                (links if entry.is_symlink() else waiting).append(path + name + os.sep)
