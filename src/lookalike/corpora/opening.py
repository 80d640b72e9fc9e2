"""From what the user gives to a corpus."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lookalike.checks import file_path, one_of
from lookalike.corpora.base import Corpus
from lookalike.corpora.folders import FolderCorpus
from lookalike.corpora.formats.delimited import DelimitedCorpus
from lookalike.corpora.formats.json_array import JsonArrayCorpus
from lookalike.corpora.formats.json_lines import JsonLinesCorpus
from lookalike.corpora.formats.names import FORMATS, expand_paths, format_of
from lookalike.corpora.formats.parquet import ParquetCorpus
from lookalike.corpora.formats.tables import TableCorpus
from lookalike.corpora.formats.text_lines import TextLinesCorpus
from lookalike.corpora.remote import copy_files, is_address, keep_copies
from lookalike.corpora.shards import several_formats, take_files
from lookalike.corpora.splits import SplitsCorpus, is_splits


def open_corpus(source: Any, format: str | None = None) -> Corpus:
    """Return a corpus of files (a path, a pattern, a list of `Path`s) or of a table in memory.

    A corpus is returned as it is. A list of `str` is documents; a single `str` or `Path` names
    files, or an address such as s3://bucket/folder, which is copied here first. `format` is one of
    `FORMATS`; None tells it by the names of the files, and takes files whose names tell nothing for
    a document each. A folder is what most of its bytes are: shards of one format, or a document a
    file; what else is in it stands in `Corpus.notices`.
    """
    if format is not None:
        one_of("format", format, FORMATS)
    if isinstance(source, Corpus):
        return source
    if is_address(source):
        copied, spool = copy_files(source)
        return keep_copies(open_corpus(copied, format), spool, source)
    if isinstance(source, str | os.PathLike):
        return _open_files(expand_paths([file_path("source", source)]), format)
    if isinstance(source, Sequence) and source and all(isinstance(one, Path) for one in source):
        return _open_files(expand_paths(source), format)
    return SplitsCorpus(source) if is_splits(source) else TableCorpus(source)


def _open_files(paths: list[Path], format: str | None) -> Corpus:
    named = [path for path in paths if not path.is_dir()]
    formats = {format or format_of(path) or "files" for path in named}
    if len(formats) > 1:
        raise several_formats(list(formats))
    taken = take_files(paths, format)
    corpus = corpus_of_files(taken.paths, taken.format)
    corpus.notices = taken.notices
    if len(paths) == 1 and not named:
        corpus.root = paths[0]
    return corpus


def corpus_of_files(paths: list[Path], only: str) -> Corpus:
    """Return the rows of files of one format, or files and folders with a document a file."""
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
