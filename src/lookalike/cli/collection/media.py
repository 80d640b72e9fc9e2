"""Folders of images or recordings into a collection of them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from lookalike.cli.collection.action import of_files
from lookalike.collection.care.transfer import Imported
from lookalike.corpora.opening import expand_paths
from lookalike.dedup.media.find import find_files
from lookalike.dedup.media.kinds import kind_of, medium_of
from lookalike.errors import ArgumentError, FileError, Said
from lookalike.signatures import Signer

if TYPE_CHECKING:
    from lookalike.collection import Collection

__all__ = ["are_files", "import_files"]

_TOGETHER = 200
_NAMED = 5
_NO_TEXT = "its name is no UTF-8, and cannot be kept; give it another"
_OF_TEXTS = ("text", "id", "signature", "format")


def are_files(docs: Collection, given: Sequence[str]) -> bool:
    """Return whether folders or files are given of the kind that the collection holds, and no
    table with their paths.
    """
    paths = [Path(one) for one in given]
    if not of_files(docs.signer):
        return False
    return any(path.is_dir() for path in paths) or kind_of(paths) == _kind(docs.signer)


def _kind(signer: Signer | None) -> str:
    return f"{'recording' if signer is None else signer.medium}s"


def import_files(
    docs: Collection,
    options: argparse.Namespace,
    progress: Callable[[str, float], None] | None,
) -> Imported:
    """Add files of folders, each known by its path there, some at a time in one transaction."""
    for name in _OF_TEXTS:
        if getattr(options, name) is not None:
            raise ArgumentError(
                Said(name),
                f" is for rows of texts, and the collection {docs.name!r} is one of files; leave "
                "it out",
            )
    paths = expand_paths([Path(one) for one in options.input])
    found = find_files(paths, medium_of(_kind(docs.signer)))
    good = [file for file in found.files if _is_text(file)]
    bad = [f"{one.path}: {one.reason}" for one in found.problems]
    bad += [f"{_name(file)}: {_NO_TEXT}" for file in found.files if not _is_text(file)]
    if not found.files:
        raise FileError(f"there is nothing to add in {', '.join(map(str, options.input))}")
    root = paths[0] if len(paths) == 1 and paths[0].is_dir() else None
    write = docs.upsert if options.replace else docs.add
    done = Imported(bad=len(bad), examples=bad[:_NAMED])
    files = iter(good)
    count = 0
    while some := list(islice(files, _TOGETHER)):
        written = write(
            [_name(file if root is None else file.relative_to(root)) for file in some],
            [str(file) for file in some],
            on_error="skip" if options.skip_bad else "raise",
        )
        done.added += written.added
        done.updated += written.updated
        done.bad += len(written.errors)
        done.examples = (done.examples + [str(error) for error in written.errors])[:_NAMED]
        count += len(some)
        if progress:
            progress("importing", count / len(good))
    return done


def _is_text(path: Path) -> bool:
    """Return whether a path can be kept, which is done as a text."""
    return _name(path) == str(path)


def _name(path: Path) -> str:
    """Return what a file is called in the collection: text, whatever bytes its name has."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
