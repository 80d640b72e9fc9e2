"""Which format a file has, by its name; which files a path stands for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lookalike.corpora.patterns import is_pattern, matching_paths
from lookalike.errors import ArgumentError, FileError
from lookalike.storage import is_there
from lookalike.suggestions import did_you_mean_file

FORMATS = ("jsonl", "json", "csv", "tsv", "parquet", "text", "files", "html", "warc")
"""`json` is one array of objects, `text` a document a line, `files` a document a file, `html` a web
page a file, `warc` the pages of a crawl.
"""

_SUFFIXES = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".txt": "text",
    ".text": "text",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".warc": "warc",
}
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}


def compression_of(path: Path) -> str | None:
    """Return "gzip" or "zstd" by the last suffix, or None."""
    return _COMPRESSIONS.get(path.suffix.lower())


def format_of(path: Path) -> str | None:
    """Return the format by the suffix before that of the compression; None if it tells nothing."""
    name = path.with_suffix("") if compression_of(path) else path
    return _SUFFIXES.get(name.suffix.lower())


def unknown_suffix(path: Path) -> str:
    """Return the suffix that tells a format, if it is none of those known; else nothing."""
    name = path.with_suffix("") if compression_of(path) else path
    return "" if format_of(path) else name.suffix


def expand_paths(paths: Sequence[str | Path]) -> list[Path]:
    """Return the files and folders that paths and patterns stand for; a pattern's sorted by name.

    A path that exists is itself, whatever characters it has.
    """
    found: list[Path] = []
    for path in paths:
        if is_there(path):
            found.append(Path(path))
            continue
        matches = matching_paths(str(path)) if is_pattern(str(path)) else []
        if not matches:
            pattern = ", and no file of that pattern" if is_pattern(str(path)) else ""
            raise FileError(
                f"{path}: there is no such file or folder{pattern}{did_you_mean_file(path)}"
            )
        found += matches
    if not found:
        raise ArgumentError("no input was given; expected a file, a folder or a pattern")
    return found
