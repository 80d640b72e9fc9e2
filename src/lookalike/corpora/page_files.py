"""Folders and lists of files with web pages among them: a document a file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lookalike.corpora.base import BATCH_BYTES, UNREADABLE, Problems, Rows, pa
from lookalike.corpora.encodings import Encodings
from lookalike.corpora.folders import FolderCorpus
from lookalike.corpora.formats.lines import open_input
from lookalike.corpora.formats.names import compression_of, format_of
from lookalike.corpora.page_rows import (
    MAX_PAGE,
    Chunk,
    PageReading,
    describe,
)
from lookalike.errors import FileError
from lookalike.pages.extract import check_installed, detect_language
from lookalike.pages.limits import PageLimits
from lookalike.pages.marks import unlinked_text
from lookalike.pages.page import Page, RawPage, Refused

_CHUNK_FILES = 256
_MARKED = "marked_text"
_PAGE_COLUMNS = ("path", "title", "language", "text", "links", "bytes")


class PageFolderCorpus(FolderCorpus):
    """Files of which those called .html, .htm and .xhtml are web pages, also packed.

    Columns are `path`, `title`, `language`, `text`, `links` and `bytes`, as many as the file has.
    Files of other names are what they are for `FolderCorpus`, without title and links; with
    `only_pages` all files are pages, whatever they are called.
    """

    page_text = "text"
    marked_text = _MARKED
    max_document = MAX_PAGE

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        only_pages: bool = False,
        limits: PageLimits | None = None,
        encodings: Encodings | None = None,
    ) -> None:
        check_installed()
        super().__init__(paths, encodings)
        self._only_pages = only_pages
        named = {path for path in paths if not path.is_dir()}
        if only_pages and len(named) < len(paths):
            self.files = [file for file in self.files if file in named or is_page(file)]
        names = {"title": "title", "language": "language", "text": "text", "links": "links"}
        self.reading = PageReading({**names, "marked": _MARKED}, limits or PageLimits())
        given = self.encodings.given
        self.described = [*describe(self.reading.limits), only_pages, *([given] if given else [])]

    def columns(self) -> list[str]:
        """Return those of pages."""
        return list(_PAGE_COLUMNS)

    def documents(self, problems: Problems) -> Iterator[tuple[Path, bytes]]:
        """Yield the files that are rows, without what is in them."""
        for _, files in self.reading.kept(self, self._chunks(problems), [], problems):
            yield from ((file, b"") for file in files)

    def read(self, columns: Sequence[str], problems: Problems) -> Iterator[Rows]:
        """Yield batches of these columns."""
        return self.reading.rows(self, self._chunks(problems), columns, problems)

    def _chunks(self, problems: Problems) -> Iterator[Chunk]:
        for error in self._closed:
            problems.report(f"{error.filename}", f"cannot be read ({error.strerror})")
        some: list[tuple[Path, RawPage | Page | Refused, int]] = []
        size = 0
        for index, file in enumerate(self.files):
            page = self._page(file, problems)
            if page is not None:
                some.append((file, *page))
                size += page[1]
            if some and (
                size >= BATCH_BYTES or len(some) == _CHUNK_FILES or index + 1 == len(self.files)
            ):
                yield self._chunk(some, (index + 1) / len(self.files))
                some, size = [], 0
        if some:
            yield self._chunk(some, 1.0)

    def _chunk(self, some: list[tuple[Path, Any, int]], done: float) -> Chunk:
        paths = [file for file, _, _ in some]
        others = pa.record_batch(
            {
                "path": pa.array([self.shown(path) for path in paths], pa.string()),
                "bytes": pa.array([size for _, _, size in some], pa.int64()),
            }
        )
        pages = [page for _, page, _ in some]
        return Chunk(others, pages, lambda at: str(paths[at]), done, paths)

    def _page(self, file: Path, problems: Problems) -> tuple[RawPage | Page | Refused, int] | None:
        """Return a file's page and how many bytes it has; None if it is none, which is reported."""
        if not self._only_pages and not is_page(file):
            text = self.text_of(file, problems)
            if text is None:
                return None
            words = text.decode()
            language = detect_language(words)
            return Page(words, None, language, None, unlinked_text(words)), len(text)
        try:
            data = _read(file, self.max_document)
        except (OSError, FileError, EOFError) as error:
            problems.leave_out_file(UNREADABLE, file, f"cannot be read ({error})")
            return None
        if len(data) > self.max_document:
            return Refused(f"has more than {self.max_document:,} bytes (max_document)"), len(data)
        return RawPage(data, self.encodings.given), len(data)


def is_page(file: Path) -> bool:
    """Return whether a file is a web page by its name."""
    return format_of(file) == "html"


def _read(file: Path, most: int) -> bytes:
    """Return the first bytes of a file, unpacked, one more than there may be."""
    if compression_of(file) is None:
        with open(file, "rb") as plain:
            # Room is made for all bytes that are asked for, and that costs more than they do.
            size = os.fstat(plain.fileno()).st_size or most
            return plain.read(min(size, most) + 1)
    stream, beneath = open_input(file)
    with beneath:
        parts: list[bytes] = []
        left = most + 1
        while left and (part := stream.read(min(left, 1 << 20))):
            parts.append(bytes(part))
            left -= len(part)
    return b"".join(parts)
