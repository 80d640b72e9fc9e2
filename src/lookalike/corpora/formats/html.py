"""Web pages, one per file or in a column; isolated processes extract their main text."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lookalike.corpora.base import (
    BATCH_BYTES,
    MAX_DOCUMENT,
    MAX_PAGE,
    UNREADABLE,
    Corpus,
    DerivedCorpus,
    Problems,
    Rows,
    chosen_columns,
    pa,
    reading_threads,
)
from lookalike.corpora.columns import is_string, undictionaried
from lookalike.corpora.encodings import Encodings
from lookalike.corpora.formats import Format, compression_of, format_of, open_input
from lookalike.corpora.formats.files import FolderCorpus
from lookalike.errors import DocumentError, FileError
from lookalike.pages import FIELDS, Page, PageLimits, RawPage, Refused
from lookalike.pages.extract import check_installed, detect_language
from lookalike.pages.marks import unlinked_text
from lookalike.processes import in_groups

READING_VERSION = 2  # changes when the same pages give other texts, so they are read again


OUTGOING = "outgoing_links"
"""Column with the links of a page and the words around them, if it is asked for."""


SIZE = "page_bytes"
"""Column with the bytes of the HTML of pages, if it is asked for."""


def page_columns(taken: Sequence[str] = (), marked: str = "marked_text") -> dict[str, str]:
    """Return the names of the columns that come from pages, by field, other than those `taken`."""
    fields = ("title", "language", "text", "links")
    hidden = {"marked": marked, "outgoing": OUTGOING, "size": SIZE}
    return {one: f"page_{one}" if one in taken else one for one in fields} | hidden


@dataclass
class Chunk:
    """Rows whose pages are not yet read."""

    others: Any  # a batch of the columns that do not come from pages
    pages: Sequence[RawPage | Page | Refused]  # a `Page` is plain text, which needs no parsing
    where: Sequence[str]  # how messages name each page
    done: float  # the share of the corpus that has been seen by then
    items: Sequence[Any] = ()  # one for each page; `PageReading.kept` returns those that are rows
    first: int = 0  # the position of its first page among all
    unread: int = 0  # number of pages that are not yet read


@dataclass
class PageReading:
    """How the pages of a corpus are read; it does not refer to the corpus."""

    names: dict[str, str] = field(default_factory=page_columns)
    """The columns that come from pages, by field."""
    limits: PageLimits = field(default_factory=PageLimits)
    _refused: dict[int, Refused] = field(default_factory=dict)

    def described(self) -> list[Any]:
        """Return the settings that change rows or texts, in plain values."""
        return ["pages", READING_VERSION, vars(self.limits)]

    def rows(
        self, corpus: Corpus, chunks: Iterator[Chunk], columns: Sequence[str], problems: Problems
    ) -> Iterator[Rows]:
        """Yield batches of these columns; unreadable pages, the same each time, are counted."""
        return (batch for batch, _ in self.kept(corpus, chunks, columns, problems))

    def kept(
        self, corpus: Corpus, chunks: Iterator[Chunk], columns: Sequence[str], problems: Problems
    ) -> Iterator[tuple[Rows, list[Any]]]:
        """Yield the same, and the items of chunks that are rows."""
        wanted = [one for one in FIELDS if self.names.get(one) in columns]
        pending: deque[Chunk] = deque()
        raw = self._unread(chunks, pending)
        ready: deque[Page | Refused] = deque()
        from lookalike.pages.workers import read_pages  # starts processes, so not at import

        for page in read_pages(raw, wanted, self.limits, threads=reading_threads()):
            ready.append(page)
            while pending and pending[0].unread <= len(ready):
                corpus.done = pending[0].done
                yield self._finished(pending.popleft(), ready, wanted, columns, problems)
        while pending:
            corpus.done = pending[0].done
            yield self._finished(pending.popleft(), ready, wanted, columns, problems)

    def _unread(self, chunks: Iterator[Chunk], pending: deque[Chunk]) -> Iterator[RawPage]:
        """Yield the pages to read, and note the chunks that wait for them."""
        seen = 0
        for chunk in chunks:
            chunk.first, seen = seen, seen + len(chunk.pages)
            chunk.pages = [
                self._refused.get(place, page)
                for place, page in enumerate(chunk.pages, chunk.first)
            ]
            unread = [page for page in chunk.pages if isinstance(page, RawPage)]
            chunk.unread = len(unread)
            pending.append(chunk)
            yield from unread

    def _finished(
        self,
        chunk: Chunk,
        ready: deque[Page | Refused],
        wanted: Sequence[str],
        columns: Sequence[str],
        problems: Problems,
    ) -> tuple[Rows, list[Any]]:
        pages: list[Page] = []
        places: list[int] = []
        for place, given in enumerate(chunk.pages):
            page = ready.popleft() if isinstance(given, RawPage) else given
            if isinstance(page, Refused):
                self._refused[chunk.first + place] = page
                problems.leave_out(UNREADABLE, chunk.where[place], page.reason)
            else:
                pages.append(page)
                places.append(place)
        others = chunk.others
        if len(places) < len(chunk.pages):
            others = others.take(pa.array(places, pa.int64()))
        for one in wanted:
            others = others.append_column(self.names[one], _column(one, pages))
        items = [chunk.items[place] for place in places] if chunk.items else []
        return chosen_columns(others, columns, pa.string()), items


def _text() -> Any:
    return pa.large_string()


_LINKS: dict[str, dict[str, Any]] = {
    "links": {"url": _text, "text": _text},
    "outgoing": {"url": _text, "text": _text, "before": _text, "after": _text,
                 "nofollow": lambda: pa.bool_()},
}  # fmt: skip
"""Fields of pages that are lists of links, and the parts of a link."""


def _column(name: str, pages: Sequence[Page]) -> Any:
    values = [getattr(page, name) for page in pages]
    if name == "size":
        return pa.array(values, pa.int64())
    if name not in _LINKS:
        return pa.array(values, pa.large_string())
    ends = np.cumsum([0, *(len(links or ()) for links in values)])
    links = [link for some in values for link in some or ()]
    columns = {
        column: pa.array([link[at] for link in links], kind())
        for at, (column, kind) in enumerate(_LINKS[name].items())
    }
    inner = pa.StructArray.from_arrays(list(columns.values()), names=list(columns))
    unknown = np.array([*(links is None for links in values), False])  # not a web page
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32(), mask=unknown), inner)


_CHUNK_FILES = 256
_PAGE = re.compile(r"<(!doctype html|html)", re.IGNORECASE)
_PAGE_COLUMNS = ("path", "title", "language", "text", "links", "bytes")


class PageFolderCorpus(FolderCorpus):
    """Files of which .html, .htm and .xhtml are web pages, also compressed.

    The columns are `path`, `title`, `language`, `text`, `links` and `bytes`. Other files are read
    as by `FolderCorpus`, without title and links. With `only_pages`, all files are pages.
    """

    page_text = "text"
    marked_text = "marked_text"
    max_document = MAX_PAGE

    def __init__(
        self, paths: Sequence[Path], *, only_pages: bool = False, encodings: Encodings | None = None
    ) -> None:
        check_installed()
        super().__init__(paths, encodings)
        self._only_pages = only_pages
        named = {path for path in paths if not path.is_dir()}
        if only_pages and len(named) < len(paths):
            self.files = [file for file in self.files if file in named or format_of(file) == "html"]
        self.reading = PageReading()
        given = self.encodings.given
        self.described = [*self.reading.described(), only_pages, *([given] if given else [])]

    def columns(self) -> list[str]:
        return list(_PAGE_COLUMNS)

    def documents(self, problems: Problems) -> Iterator[tuple[Path, bytes]]:
        """Yield the files that are rows, without their content."""
        for _, files in self.reading.kept(self, self._chunks(problems), [], problems):
            yield from ((file, b"") for file in files)

    def read(self, columns: Sequence[str], problems: Problems) -> Iterator[Rows]:
        return self.reading.rows(self, self._chunks(problems), columns, problems)

    def _chunks(self, problems: Problems) -> Iterator[Chunk]:
        pages = self._all_pages(problems)
        for some in in_groups(pages, lambda one: one[2], BATCH_BYTES, _CHUNK_FILES):
            files, raw, sizes, done = zip(*some, strict=True)
            shown = pa.array([self.shown(file) for file in files], pa.string())
            others = pa.record_batch({"path": shown, "bytes": pa.array(sizes, pa.int64())})
            yield Chunk(others, raw, [f"{file}" for file in files], done[-1], files)

    def _all_pages(self, problems: Problems) -> Iterator[tuple[Path, Any, int, float]]:
        self.report_closed(problems)
        for index, file in enumerate(self.files):
            page = self._page(file, problems)
            if page is not None:
                yield file, *page, (index + 1) / len(self.files)

    def _page(self, file: Path, problems: Problems) -> tuple[RawPage | Page | Refused, int] | None:
        """Return the page of a file and its size, or report that it cannot be read."""
        if not self._only_pages and format_of(file) != "html":
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


def _read(file: Path, most: int) -> bytes:
    """Return at most `most` + 1 bytes of a file, decompressed."""
    if compression_of(file) is None:
        with open(file, "rb") as plain:
            # Python allocates as many bytes as are asked for.
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


# bytes of a row per byte of its page: JSON escapes take six, and there are other columns
_ESCAPED = 8
_ADDRESSES = ("url", "uri", "warc-target-uri", "target_uri", "link")


class HtmlColumnCorpus(DerivedCorpus):
    """The rows of another corpus, with `text`, `title`, `language` and `links` instead of HTML.

    A column that already exists is called `page_text` and so on. HTML is text, or bytes in any
    encoding. Links are resolved by the addresses in a column such as `url`.
    """

    max_document = MAX_PAGE

    def __init__(self, inner: Corpus, column: str, limits: PageLimits | None = None) -> None:
        check_installed()
        inner.column_for(column, (), "HTML")
        super().__init__(inner)
        self.html_column = column
        self._url = inner.column_for(None, _ADDRESSES, "addresses")
        self._others = [name for name in inner.columns() if name != column]
        names = page_columns(self._others, "page_marked_text")
        self.page_text, self.marked_text = names["text"], names["marked"]
        self.reading = PageReading(names, limits or PageLimits())
        self.described = [*self.reading.described(), column, inner.described]

    def columns(self) -> list[str]:
        hidden = (self.marked_text, OUTGOING, SIZE)
        ours = [name for name in self.reading.names.values() if name not in hidden]
        return [*self._others, *ours]

    def read(self, columns: Sequence[str], problems: Problems) -> Iterator[Rows]:
        ours = self.reading.names.values()
        others = [name for name in dict.fromkeys(columns) if name not in ours]
        address = [self._url] if self._url and self._url not in others else []
        problems.sizes_left_out = True
        batches = self._bounded().read([self.html_column, *others, *address], problems)
        return self.reading.rows(self, self._chunks(batches, others), columns, problems)

    def rows(self, problems: Problems) -> Iterator[Rows]:
        problems.sizes_left_out = True
        chunks = self._chunks(self._bounded().rows(problems), self._others)
        return self.reading.rows(self, chunks, self.columns(), problems)

    def _bounded(self) -> Corpus:
        """Return the other corpus, with a row limit that fits an escaped page."""
        self.inner.max_document = min(MAX_DOCUMENT, _ESCAPED * self.max_document)
        return self.inner

    def _chunks(self, batches: Iterator[Rows], others: Sequence[str]) -> Iterator[Chunk]:
        row = 0
        for batch in batches:
            rest = batch.select([name for name in others if name in batch.schema.names])
            where = [f"{self.name}, row {at}" for at in range(row, row + len(batch))]
            yield Chunk(rest, self._pages(batch), where, self.inner.done)
            row += len(batch)

    def _pages(self, batch: Rows) -> list[RawPage | Refused]:
        column = undictionaried(batch.column(self.html_column))
        types, is_text = pa.types, is_string(column.type)
        is_bytes = types.is_binary(column.type) or types.is_large_binary(column.type)
        if not is_text and not is_bytes and not types.is_null(column.type):
            raise DocumentError(
                f"{self.name}: the column {self.html_column!r} is of type {column.type}; expected "
                "HTML, as text or as bytes"
            )
        data = column.cast(pa.large_binary()).to_pylist()
        known = self._url is not None and self._url in batch.schema.names
        addresses = batch.column(self._url).to_pylist() if known else [None] * len(batch)
        most = self.max_document
        return [
            RawPage(html or b"", "utf-8" if is_text else None, url and str(url))
            if len(html or b"") <= most
            else Refused(f"has more than {most:,} bytes (max_document)")
            for html, url in zip(data, addresses, strict=True)
        ]


FORMAT = Format(
    name="html",
    suffixes=(".html", ".htm", ".xhtml"),
    open=lambda paths, encodings: PageFolderCorpus(paths, only_pages=True, encodings=encodings),
    begins=lambda text, whole: _PAGE.match(text.lstrip()) is not None,
    rows=False,
)
