"""From what the user gives to a corpus."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lookalike.checks import file_path, one_of
from lookalike.corpora.base import Corpus
from lookalike.corpora.delimited import DelimitedCorpus
from lookalike.corpora.folders import FolderCorpus
from lookalike.corpora.formats import FORMATS, expand_paths, format_of
from lookalike.corpora.json_array import JsonArrayCorpus
from lookalike.corpora.json_lines import JsonLinesCorpus
from lookalike.corpora.parquet import ParquetCorpus
from lookalike.corpora.tables import TableCorpus
from lookalike.corpora.text_lines import TextLinesCorpus
from lookalike.errors import FormatError, Said


def open_corpus(source: Any, format: str | None = None) -> Corpus:
    """Return a corpus of files (a path, a pattern, a list of `Path`s) or of a table in memory.

    A corpus is returned as it is. A list of `str` is documents; a single `str` or `Path` names
    files. `format` is one of `FORMATS`; None tells it by the names of the files, and takes files
    whose names tell nothing, and folders, for a document each.
    """
    if format is not None:
        one_of("format", format, FORMATS)
    if isinstance(source, Corpus):
        return source
    if isinstance(source, str | os.PathLike):
        return _open_files(expand_paths([file_path("source", source)]), format)
    if isinstance(source, Sequence) and source and all(isinstance(one, Path) for one in source):
        return _open_files(expand_paths(source), format)
    return TableCorpus(source)


def _open_files(paths: list[Path], format: str | None) -> Corpus:
    formats = {"files" if path.is_dir() else format or format_of(path) or "files" for path in paths}
    if len(formats) > 1:
        raise FormatError(
            f"the input has files of several formats ({', '.join(sorted(formats))}); give those of "
            "one format at a time, or say which with ",
            Said("format"),
        )
    (only,) = formats
    if only == "files":
        return FolderCorpus(paths)
    if only == "jsonl":
        return JsonLinesCorpus(paths)
    if only == "json":
        return JsonArrayCorpus(paths)
    if only == "parquet":
        return ParquetCorpus(paths)
    if only == "text":
        return TextLinesCorpus(paths)
    return DelimitedCorpus(paths, only)
