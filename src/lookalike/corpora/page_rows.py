"""Rows of a corpus whose documents are web pages: what is in the pages becomes columns."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lookalike.corpora.base import UNREADABLE, Corpus, Problems, Rows, chosen_columns, pa
from lookalike.corpora.formats.duck import connection_threads
from lookalike.pages.limits import PageLimits
from lookalike.pages.page import FIELDS, Page, RawPage, Refused

MAX_PAGE = 16 << 20
"""Bytes that a page may have unless told otherwise."""
READING_VERSION = 2
"""Changes when the same pages give other texts: what was read before is read again."""


@dataclass
class Chunk:
    """Some rows, of which the pages are still to be read."""

    others: Any
    """Columns that do not come from pages, as a batch of as many rows."""
    pages: Sequence[RawPage | Page | Refused]
    """A `Page` is known already: the file is no web page but plain text."""
    where: Callable[[int], str]
    """How people find the page at a place of this chunk."""
    done: float
    """How much of the corpus has been seen by then."""
    items: Sequence[Any] = ()
    """What the pages are to whoever made the chunk, one for each."""
    first: int = 0
    """The place of its first page among all."""
    unread: int = 0
    """Pages that somebody is reading."""


@dataclass
class PageReading:
    """How the pages of a corpus are read, by whatever way they come.

    It does not know the corpus: that would live on with it, and copies of standard input as well.
    """

    names: dict[str, str]
    """What the columns that come from pages are called, by field."""
    limits: PageLimits = field(default_factory=PageLimits)
    _refused: dict[int, Refused] = field(default_factory=dict)

    def rows(
        self, corpus: Corpus, chunks: Iterator[Chunk], columns: Sequence[str], problems: Problems
    ) -> Iterator[Rows]:
        """Yield batches of these columns; pages that cannot be read are no rows, and are counted.

        Which ones these are stays as it was when they were first read: the time that one takes is
        not always the same.
        """
        for batch, _ in self.kept(corpus, chunks, columns, problems):
            yield batch

    def kept(
        self, corpus: Corpus, chunks: Iterator[Chunk], columns: Sequence[str], problems: Problems
    ) -> Iterator[tuple[Rows, list[Any]]]:
        """Yield the same, and the items of chunks that are rows."""
        wanted = [one for one in FIELDS if self.names.get(one) in columns]
        pending: deque[Chunk] = deque()
        raw = self._unread(chunks, pending)
        ready: deque[Page | Refused] = deque()
        from lookalike.pages.workers import read_pages  # starts processes, so not at import

        for page in read_pages(raw, wanted, self.limits, threads=connection_threads()):
            ready.append(page)
            while pending and pending[0].unread <= len(ready):
                corpus.done = pending[0].done
                yield self._finished(pending.popleft(), ready, wanted, columns, problems)
        while pending:
            corpus.done = pending[0].done
            yield self._finished(pending.popleft(), ready, wanted, columns, problems)

    def _unread(self, chunks: Iterator[Chunk], pending: deque[Chunk]) -> Iterator[RawPage]:
        """Yield the pages that have to be read; note the chunks that wait for them."""
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
                problems.leave_out(UNREADABLE, chunk.where(place), page.reason)
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


def _column(name: str, pages: Sequence[Page]) -> Any:
    values = [getattr(page, name) for page in pages]
    if name != "links":
        return pa.array(values, pa.large_string())
    ends = np.cumsum([0, *(len(links or ()) for links in values)])
    links = [link for some in values for link in some or ()]
    parts = [pa.array([link[at] for link in links], pa.large_string()) for at in (0, 1)]
    inner = pa.StructArray.from_arrays(parts, names=["url", "text"])
    unknown = np.array([*(links is None for links in values), False])  # of a file that is no page
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32(), mask=unknown), inner)


def describe(limits: PageLimits) -> list[Any]:
    """Return what decides which pages are rows and what they say, in plain values."""
    return ["pages", READING_VERSION, vars(limits)]
