"""Which files of a folder are the corpus: shards whose rows are documents, or a document a file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lookalike.corpora.base import Problems
from lookalike.corpora.folders import files_in
from lookalike.corpora.formats.lines import line_batches
from lookalike.corpora.formats.names import format_of
from lookalike.errors import FileError, FormatError, Said
from lookalike.shown import counted, shown
from lookalike.storage import is_folder

SHARDS = ("jsonl", "parquet", "csv", "tsv", "warc")
"""Formats of which a folder may be made. A `.json` or `.txt` in one is a document more often."""

_EXAMPLES = 3
_DONE, _PART = "_SUCCESS", "part-"
"""What Spark calls the file that says that all parts are there, and these."""
_LONGEST_LINE = 1 << 26


@dataclass(frozen=True)
class Taken:
    """The files of a corpus, one after the other."""

    paths: list[Path]
    format: str
    notices: tuple[str, ...] = ()
    """What was left, if a folder has files of several kinds."""


def take_files(paths: Sequence[Path], format: str | None) -> Taken:
    """Return what folders, and files beside them, stand for.

    Of a folder, the kind of files that has most bytes is taken: those of one format of `SHARDS`, or
    all as documents, of the format "files" (then the paths are those given). Hidden files do not
    count. Files that were named themselves, or a `format`, decide without weighing. Shards are in
    order of path.
    """
    named = {path for path in paths if not is_folder(path)}
    kind = format or next((format_of(path) or "files" for path in paths if path in named), None)
    if kind in ("files", "html") or len(named) == len(paths):
        return Taken(list(paths), kind or "files")
    if format is None and kind is not None and kind not in SHARDS:
        raise several_formats([kind, "files"])
    found = {path: _visible(path) for path in paths if path not in named}
    inside = [file for files in found.values() for file in files]
    written = _kind_of_spark(inside) if kind is None else None
    if written is not None:
        inside = [file for file in inside if file.name.startswith(_PART)]
        return Taken(inside, written)
    kind = kind or _heaviest(inside)
    if kind == "files":
        shards = [file for file in inside if format_of(file) in SHARDS]
        return Taken(list(paths), kind, (_as_documents(shards),) if shards else ())
    chosen = {file for file in inside if format_of(file) == kind}
    if format is not None and not chosen:  # the names of files may say nothing
        chosen = {file for file in inside if format_of(file) is None}
    if not chosen and not named:
        raise FileError(
            f"{paths[0]}: has no files of the format {kind!r}; expected some whose names say that "
            "format, or nothing of any"
        )
    taken = [file for path in paths for file in found.get(path, [path])]
    left = [file for file in inside if file not in chosen]
    notices = (_left(len(chosen), len(named), left, kind),) if left else ()
    return Taken([file for file in taken if file in chosen or file in named], kind, notices)


def several_formats(formats: Sequence[str]) -> FormatError:
    """Return the error for an input of more than one format."""
    return FormatError(
        f"the input has files of several formats ({', '.join(sorted(formats))}); give those of "
        "one format at a time, or say which with ",
        Said("format"),
    )


def _visible(folder: Path) -> list[Path]:
    """Return the files of a folder, and of those in it, that are not hidden; sorted by path."""
    closed: list[OSError] = []
    files = files_in(folder, closed)
    if closed and any(format_of(file) in SHARDS for file in files):
        raise FileError(
            f"{closed[0].filename}: cannot be read ({closed[0].strerror}), so its files would be "
            "left out; let it be read, or name the files"
        )
    return [
        file
        for file in files
        if not any(part.startswith(".") for part in file.relative_to(folder).parts)
    ]


def _kind_of_spark(files: Sequence[Path]) -> str | None:
    """Return the format of the parts that Spark wrote, whose names do not tell it: lines of JSON
    are called .json, and lines that stay as they are .txt. None: nothing of that sort.
    """
    parts = [file for file in files if file.name.startswith(_PART)]
    others = {file.name for file in files if not file.name.startswith(_PART)}
    formats = {format_of(file) for file in parts}
    if others != {_DONE} or formats not in ({"text"}, {"json"}):
        return None
    for file in parts:
        beginning = next(line_batches(file, _LONGEST_LINE, Problems(True)), None)
        if beginning is not None and len(beginning):
            return "jsonl" if _is_object(beginning.lines[0].as_py()) else formats.pop()
    return formats.pop()


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _heaviest(files: Sequence[Path]) -> str:
    """Return the format that has most bytes, "files" for all that are no shards."""
    bytes_of = dict.fromkeys((*SHARDS, "files"), 0)
    shards = 0
    for file in files:
        kind = format_of(file)
        shards += kind in SHARDS
        try:
            bytes_of[kind if kind in SHARDS else "files"] += file.stat().st_size
        except OSError as error:
            raise FileError(f"{file}: cannot be read: {error.strerror}") from error
    return max(bytes_of, key=lambda kind: bytes_of[kind]) if shards else "files"


def _as_documents(shards: Sequence[Path]) -> str:
    return (
        f"took all files for a document each, {_some(shards)} with rows among them, because the "
        "others have more bytes; for their rows, give them by themselves"
    )


def _left(inside: int, named: int, left: Sequence[Path], kind: str) -> str:
    taken = f"took the rows of {counted(inside + named, f'{kind} file')} and left {_some(left)}"
    if not inside:
        return f"{taken}, all that the folder has; for these, give the folder by itself"
    return f'{taken}; for a document a file, say --format files (in Python format="files")'


def _some(files: Sequence[Path]) -> str:
    """Return how many files, and the names of some."""
    names = ", ".join(shown(file.name) for file in files[:_EXAMPLES])
    more = ", ..." if len(files) > _EXAMPLES else ""
    return f"{len(files):,} {'file' if len(files) == 1 else 'files'} ({names}{more})"
