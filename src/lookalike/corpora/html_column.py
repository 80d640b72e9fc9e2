"""A corpus one column of which has web pages: what is in them becomes columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lookalike.corpora.base import MAX_DOCUMENT, Corpus, Problems, Rows, pa
from lookalike.corpora.columns import undictionaried
from lookalike.corpora.page_rows import MAX_PAGE, Chunk, PageReading, describe
from lookalike.errors import DocumentError
from lookalike.pages.extract import check_installed
from lookalike.pages.limits import PageLimits
from lookalike.pages.page import RawPage, Refused

_ESCAPED = 8
"""Bytes of a row for each byte of its page: JSON may write six, and there are other columns."""
_ADDRESSES = ("url", "uri", "warc-target-uri", "target_uri", "link")


class HtmlColumnCorpus(Corpus):
    """The rows of another corpus, with `text`, `title`, `language` and `links` in place of HTML.

    Where the corpus has a column of such a name already, that of pages is called `page_text` and so
    on. HTML is text, or bytes in whatever encoding. A column called `url` says where pages are
    from, by which their links are made whole.
    """

    max_document = MAX_PAGE

    def __init__(self, inner: Corpus, column: str, limits: PageLimits | None = None) -> None:
        check_installed()
        inner.column_for(column, (), "HTML")
        self.inner = inner
        self.html_column = column
        self._url = inner.column_for(None, _ADDRESSES, "addresses")
        self.name, self.format, self.files = inner.name, inner.format, inner.files
        self.spool, self.notices = inner.spool, inner.notices
        self._others = [name for name in inner.columns() if name != column]
        names = {
            field: f"page_{field}" if field in self._others else field
            for field in ("title", "language", "text", "links")
        }
        self.page_text = names["text"]
        self.marked_text = "page_marked_text"
        reading = PageReading({**names, "marked": self.marked_text}, limits or PageLimits())
        self.reading = reading
        self._names = names
        self.described = [*describe(reading.limits), column, inner.described]

    def columns(self) -> list[str]:
        """Return those of the other corpus, and those of pages in place of HTML."""
        return [*self._others, *self._names.values()]

    def read(self, columns: Sequence[str], problems: Problems) -> Iterator[Rows]:
        """Yield batches of these columns."""
        ours = {*self._names.values(), self.marked_text}
        others = [name for name in dict.fromkeys(columns) if name not in ours]
        address = [self._url] if self._url and self._url not in others else []
        problems.sizes_left_out = True
        batches = self._bounded().read([self.html_column, *others, *address], problems)
        return self.reading.rows(self, self._chunks(batches, others), columns, problems)

    def rows(self, problems: Problems) -> Iterator[Rows]:
        """Yield batches of all columns, with types."""
        problems.sizes_left_out = True
        chunks = self._chunks(self._bounded().rows(problems), self._others)
        return self.reading.rows(self, chunks, self.columns(), problems)

    def identity(self) -> list[Any] | None:
        """Return that of the other corpus."""
        return self.inner.identity()

    def _bounded(self) -> Corpus:
        """Return the other corpus, whose rows have room for a page, escaped as it may be."""
        self.inner.max_document = min(MAX_DOCUMENT, _ESCAPED * self.max_document)
        return self.inner

    def _chunks(self, batches: Iterator[Rows], others: Sequence[str]) -> Iterator[Chunk]:
        row = 0
        for batch in batches:
            pages = self._pages(batch)
            rest = batch.select([name for name in others if name in batch.schema.names])

            def where(place: int, row: int = row) -> str:
                return f"{self.name}, row {row + place}"

            yield Chunk(rest, pages, where, self.inner.done)
            row += len(batch)

    def _pages(self, batch: Rows) -> list[RawPage | Refused]:
        column = undictionaried(batch.column(self.html_column))
        types = pa.types
        is_text = any(
            kind(column.type)
            for kind in (types.is_string, types.is_large_string, types.is_string_view)
        )
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
