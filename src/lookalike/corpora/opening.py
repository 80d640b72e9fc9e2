"""From what the user gives to a corpus."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lookalike.checks import file_path, one_of
from lookalike.corpora.base import Corpus
from lookalike.corpora.encodings import Encodings, check_encoding
from lookalike.corpora.folders import FolderCorpus
from lookalike.corpora.formats.delimited import DelimitedCorpus
from lookalike.corpora.formats.json_array import JsonArrayCorpus
from lookalike.corpora.formats.json_lines import JsonLinesCorpus
from lookalike.corpora.formats.names import FORMATS, expand_paths, format_of
from lookalike.corpora.formats.parquet import ParquetCorpus
from lookalike.corpora.formats.tables import TableCorpus
from lookalike.corpora.formats.text_lines import TextLinesCorpus
from lookalike.corpora.html_column import HtmlColumnCorpus
from lookalike.corpora.page_files import PageFolderCorpus, is_page
from lookalike.corpora.page_rows import describe
from lookalike.corpora.remote import copy_files, is_address, keep_copies
from lookalike.corpora.shards import several_formats, take_files
from lookalike.corpora.splits import SplitsCorpus, is_splits
from lookalike.errors import ArgumentError, Said
from lookalike.pages.limits import PageLimits
from lookalike.shown import brief, shown
from lookalike.storage import is_folder

_NOT_TEXT = ("parquet", "warc")
"""Formats whose text has an encoding of its own."""


def open_corpus(
    source: Any,
    format: str | None = None,
    *,
    html: str | None = None,
    page_limits: PageLimits | None = None,
    encoding: str | None = None,
) -> Corpus:
    """Return a corpus of files (a path, a pattern, a list of `Path`s) or of a table in memory.

    A corpus is returned as it is. A list of `str` is documents; a single `str` or `Path` names
    files, or an address such as s3://bucket/folder, which is copied here first. `format` is one of
    `FORMATS`; None tells it by the names of the files, and takes files whose names tell nothing for
    a document each. A folder is what most of its bytes are: shards of one format, or a document a
    file; what else is in it stands in `Corpus.notices`. Files called .html are web pages, of which
    the main text is the document, unless `format` is "files". `html` names a column with such
    pages; `page_limits` bounds what one may cost. `encoding` is that of text files, such as
    "cp1252"; None takes what is valid UTF-8 for that, and detects others.
    """
    if html is not None or page_limits is not None:
        return with_pages(open_corpus(source, format, encoding=encoding), html, page_limits)
    if format is not None:
        one_of("format", format, FORMATS)
    check_encoding(encoding)
    if isinstance(source, Corpus):
        if encoding is not None:
            raise ArgumentError(f"{source.name} is open already, so no encoding can be given")
        return source
    if is_address(source):
        copied, spool = copy_files(source)
        return keep_copies(open_corpus(copied, format, encoding=encoding), spool, source)
    if isinstance(source, str | os.PathLike):
        return _open_files(expand_paths([file_path("source", source)]), format, encoding)
    if isinstance(source, Sequence) and source and all(isinstance(one, Path) for one in source):
        return _open_files(expand_paths(source), format, encoding)
    if encoding is not None:
        raise ArgumentError(
            f"encoding is {brief(encoding)}, and the source is a table in memory, whose text is "
            "decoded already; leave it out"
        )
    return SplitsCorpus(source) if is_splits(source) else TableCorpus(source)


def _open_files(paths: list[Path], format: str | None, encoding: str | None) -> Corpus:
    encodings = Encodings(encoding)
    named = [path for path in paths if not is_folder(path)]
    formats = {format or format_of(path) or "files" for path in named}
    if len(formats) > 1 and formats != {"html", "files"}:
        raise several_formats(list(formats))
    if format is None and formats == {"html", "files"}:
        return PageFolderCorpus(paths, encodings=encodings)
    taken = take_files(paths, format)
    if encoding is not None and taken.format in _NOT_TEXT:
        raise ArgumentError(
            f"encoding is {brief(encoding)}, and {shown(taken.paths[0])} is {taken.format}, which "
            "tells its own; leave it out"
        )
    corpus = corpus_of_files(taken.paths, taken.format, encodings)
    if format is None and taken.format == "files" and any(map(is_page, corpus.files)):
        corpus = PageFolderCorpus(taken.paths, encodings=encodings)
    corpus.notices = taken.notices
    if len(paths) == 1 and not named:
        corpus.root = paths[0]
    return corpus


def corpus_of_files(paths: list[Path], only: str, encodings: Encodings) -> Corpus:
    """Return the rows of files of one format, or files and folders with a document a file."""
    if only == "files":
        return FolderCorpus(paths, encodings)
    if only == "html":
        return PageFolderCorpus(paths, only_pages=True, encodings=encodings)
    if only == "warc":
        from lookalike.corpora.formats.warc import WarcCorpus

        return WarcCorpus(paths)
    if only == "jsonl":
        return JsonLinesCorpus(paths, encodings)
    if only == "json":
        return JsonArrayCorpus(paths, encodings)
    if only == "parquet":
        return ParquetCorpus(paths)
    if only == "text":
        return TextLinesCorpus(paths, encodings)
    return DelimitedCorpus(paths, only, encodings)


def with_pages(corpus: Corpus, html: str | None, limits: PageLimits | None) -> Corpus:
    """Return a corpus one column of which has pages, or one of pages with other limits."""
    if limits is not None and not isinstance(limits, PageLimits):
        raise ArgumentError(f"page_limits are {limits!r}; expected la.PageLimits(...)")
    if html is not None:
        if corpus.page_text is not None:
            raise ArgumentError(
                f"{corpus.name} has pages itself; leave ",
                Said("html"),
                " out, which names a column",
            )
        return HtmlColumnCorpus(corpus, html, limits)
    reading = getattr(corpus, "reading", None)
    if reading is None or limits is None:
        raise ArgumentError(f"{corpus.name} has no web pages; leave page_limits out")
    reading.limits = limits
    corpus.described = describe(limits) + corpus.described[len(describe(limits)) :]
    return corpus


def with_old_pages(corpus: Corpus, html: str | None, limits: PageLimits | None) -> Corpus:
    """Return the same of an old corpus, whose pages may be in that column, or texts by now."""
    if corpus.page_text is not None:
        return corpus if limits is None else with_pages(corpus, None, limits)
    return with_pages(corpus, html, limits) if html in corpus.columns() else corpus
