"""Links as records, and the row of a page from the records of links to it.

A record is (target, kind, order, source, anchor, before, after). Records of one target follow each
other when they are sorted: first those of its page, if it was crawled, whose `anchor` is its text,
then those of links. `order` is a hash of the source. So the first links of a target are a sample
that depends on the sources alone, and pages with the same sources have the same sample.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal
from urllib.parse import urljoin

import numpy as np

from lookalike import _native
from lookalike.checks import flag, one_of, whole_number
from lookalike.corpora.base import Corpus, Problems, Rows, pa
from lookalike.corpora.columns import undictionaried
from lookalike.corpora.formats.html import OUTGOING
from lookalike.errors import ArgumentError, Said
from lookalike.pages import MOST_AROUND
from lookalike.pages.addresses import host_of, normalized_address, within_host
from lookalike.pages.marks import BREAK, clean, marked_link, without_marks

Record = tuple[str, int, int, str, str, str, str]
PAGE, LINK, REST = 0, 1, 2
"""Kinds of records. One of the rest counts links that are left out already: `order` is how many,
`source` that of sources that have no other link.
"""
Internal = Literal["relative", "absolute", "skip"]

_LONGEST = 1_000  # characters of words that a table gives
_SOURCES, _TARGETS = ("source", "from", "source_url"), ("target", "to", "target_url")
_ADDRESSES = ("url", "uri", "warc-target-uri", "target_uri", "path", "id")


@dataclass(frozen=True)
class IncomingSettings:
    """Which links count, and what becomes of them.

    Args:
        around: Number of words before and after a link in the linking page.
        nofollow: Whether links that are marked `nofollow` count.
        self_links: Whether links of a page to itself count.
        internal: Sources of links within a host: "relative" (their path alone, so that mirrors
            agree), "absolute", or "skip".
        with_text: Whether the text of a row begins with the main text of the page itself.
        only_crawled: Leave out targets that are not pages of the input.
        min_links: Leave out targets with fewer links.
        max_links: Links of a target that become features, at most: a sample by their sources.
        host_folders: The first folder of a path is a host, as `wget -r` writes pages.
    """

    around: Any = 5
    nofollow: bool = False
    self_links: bool = False
    internal: Internal = "relative"
    with_text: bool = False
    only_crawled: bool = False
    min_links: Any = 1
    max_links: Any = 1_000
    host_folders: bool = False

    def __post_init__(self) -> None:
        bounds = {"around": (0, MOST_AROUND), "min_links": (0, 1 << 40), "max_links": (1, 100_000)}
        for name, (least, most) in bounds.items():
            value = whole_number(name, getattr(self, name), at_least=least, at_most=most)
            object.__setattr__(self, name, value)
        for name in ("nofollow", "self_links", "with_text", "only_crawled", "host_folders"):
            object.__setattr__(self, name, flag(name, getattr(self, name)))
        one_of("internal", self.internal, ("relative", "absolute", "skip"))


@dataclass(frozen=True)
class Reading:
    """Which columns of a corpus have links: those of a table, or those of pages."""

    source: str
    target: str | None
    others: tuple[str, ...] = ()
    text: str | None = None

    @classmethod
    def of(cls, corpus: Corpus, settings: IncomingSettings, url: str | None = None) -> Reading:
        """Return how links are read from a corpus, or raise if it has none."""
        names = corpus.columns()
        if corpus.page_text is None:
            source = next((name for name in _SOURCES if name in names), None)
            target = next((name for name in _TARGETS if name in names), None)
            if source is None or target is None:
                raise ArgumentError(
                    f"{corpus.name} has the columns {names}; expected web pages (WARC, HTML files, "
                    "or a column named by ",
                    Said("html"),
                    "), or the columns source and target",
                )
            if settings.with_text or settings.only_crawled:
                name = "with_text" if settings.with_text else "only_crawled"
                raise ArgumentError(
                    Said(name), f" needs web pages; {corpus.name} is a table of links"
                )
            known = ("anchor", "before", "after", "context", "nofollow", "rel")
            return cls(source, target, tuple(name for name in known if name in names))
        address = url or next((name for name in _ADDRESSES if name in names), None)
        if address is None or address not in names:
            raise ArgumentError(
                f"{corpus.name} has the columns {names}, and none is the address of a page; "
                "name it with ",
                Said("url"),
            )
        return cls(address, None, (OUTGOING,), corpus.page_text if settings.with_text else None)

    @property
    def columns(self) -> list[str]:
        """The columns to read."""
        named = (self.source, self.target, *self.others, self.text)
        return list(dict.fromkeys(name for name in named if name is not None))


def records_of(
    corpus: Corpus, reading: Reading, settings: IncomingSettings, problems: Problems
) -> Iterator[Record]:
    """Yield the records of a corpus: its links, and its pages."""
    for batch in corpus.read(reading.columns, problems):
        if reading.target is None:
            yield from _of_pages(batch, reading, settings)
        else:
            yield from _of_table(batch, reading, settings)


def _of_pages(batch: Rows, reading: Reading, settings: IncomingSettings) -> Iterator[Record]:
    addresses = _strings(batch, reading.source)
    links = batch.column(OUTGOING).to_pylist()
    texts = [""] * len(batch) if reading.text is None else _strings(batch, reading.text)
    for address, own, text in zip(addresses, links, texts, strict=True):
        base = f"http://{address}" if settings.host_folders else address
        page = normalized_address(base)
        if page is None:
            continue
        yield page, PAGE, 0, "", without_marks(text), "", ""
        for one in own or ():
            if one["nofollow"] and not settings.nofollow:
                continue
            try:
                target = normalized_address(urljoin(base, one["url"]))
            except ValueError:
                continue
            if target is not None:
                yield from _link(page, target, one["text"], one["before"], one["after"], settings)


def _of_table(batch: Rows, reading: Reading, settings: IncomingSettings) -> Iterator[Record]:
    count, target = len(batch), reading.target or ""
    columns = {
        name: _strings(batch, name) if name in reading.others else [""] * count
        for name in ("anchor", "before", "after", "context", "rel")
    }
    marked = [False] * count
    if "nofollow" in reading.others:
        marked = [bool(value) for value in batch.column("nofollow").to_pylist()]
    for at, pair in enumerate(
        zip(_strings(batch, reading.source), _strings(batch, target), strict=True)
    ):
        if (
            marked[at] or "nofollow" in columns["rel"][at].lower().split()
        ) and not settings.nofollow:
            continue
        source, found = map(normalized_address, pair)
        if source is None or found is None:
            continue
        anchor, before, after = (columns[name][at] for name in ("anchor", "before", "after"))
        context = columns["context"][at]
        if context and not (before or after):
            begin, inside, end = context.partition(anchor) if anchor else (context, "", "")
            before, after = (begin, end) if inside or not anchor else (context, "")
        yield from _link(source, found, anchor, before, after, settings)


def _link(
    source: str, target: str, anchor: str, before: str, after: str, settings: IncomingSettings
) -> Iterator[Record]:
    """Yield the record of a link, if it counts."""
    if source == target and not settings.self_links:
        return
    written = source
    if host_of(source) == host_of(target):
        if settings.internal == "skip":
            return
        if settings.internal == "relative":
            written = within_host(source)
    order = _native.xxh64(np.frombuffer(written.encode("utf-8", "replace"), np.uint8)) >> 1
    begin, end = _words(before)[-settings.around :], _words(after)[: settings.around]
    if not settings.around:
        begin = end = []
    words = " ".join(_words(anchor))[:_LONGEST]
    yield target, LINK, order, written, words, " ".join(begin), " ".join(end)


def _words(text: str) -> list[str]:
    return clean(text[:_LONGEST] if len(text) > _LONGEST else text).split()


def _strings(batch: Rows, name: str) -> list[str]:
    """Return a column as texts without lone surrogates; null is empty."""
    column = undictionaried(batch.column(name))
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        column = column.cast(pa.large_string())
    return [value or "" for value in column.to_pylist()]


@dataclass
class Counts:
    """What rows were made of."""

    rows: int = 0
    links: int = 0
    sampled: int = 0
    """Targets with more links than `max_links`."""


Row = tuple[str, bool, int, int, str, str]
"""The address of a page, whether it was crawled, links, sources, its usual anchor, and its text."""


def rows_of(records: Iterable[Record], settings: IncomingSettings, counts: Counts) -> Iterator[Row]:
    """Yield the row of each target of sorted records."""
    for target, own in groupby(records, key=lambda record: record[0]):
        row = _row(target, own, settings, counts)
        if row is not None:
            counts.rows += 1
            yield row


def _row(
    target: str, records: Iterator[Record], settings: IncomingSettings, counts: Counts
) -> Row | None:
    crawled, text, links, sources = False, "", 0, 0
    last: Record | None = None
    kept: list[Record] = []
    for record in records:
        if record[1] == PAGE:
            if not crawled:
                crawled, text = True, record[4]
            continue
        if record[1] == REST:
            links, sources = links + record[2], sources + int(record[3])
            continue
        if record == last:
            continue
        links += 1
        sources += last is None or last[2:4] != record[2:4]
        last = record
        if len(kept) < settings.max_links:
            kept.append(record)
    if links < settings.min_links or (settings.only_crawled and not crawled):
        return None
    counts.links += links
    counts.sampled += links > len(kept)
    return (
        target,
        crawled,
        links,
        sources,
        _usual([record[4] for record in kept]),
        _text(text, kept),
    )


def _usual(anchors: list[str]) -> str:
    """Return the most frequent anchor; the first in order, if there are several."""
    found = Counter(anchor for anchor in anchors if anchor)
    return min(found, key=lambda anchor: (-found[anchor], anchor)) if found else ""


def _text(own: str, links: list[Record]) -> str:
    """Return a text of which `la.Links` reads the links, and other features all words."""
    parts = [clean(own)] if own else []
    for _, _, _, source, anchor, before, after in links:
        parts.append(f"{before} {marked_link(source, anchor)} {after}".strip(" "))
    return BREAK.join(parts)


def first_links(records: Iterable[Record], settings: IncomingSettings) -> Iterator[Record]:
    """Yield, of sorted records, the page and the first links of each target, and what is left out.

    All links of a source must be among them.
    """
    for target, own in groupby(records, key=lambda record: record[0]):
        last: Record | None = None
        kept = links = sources = 0
        for record in own:
            if record == last:
                continue
            if record[1] == PAGE:
                if last is None:
                    yield record
            elif kept < settings.max_links:
                kept += 1
                yield record
            else:
                links += 1
                sources += last is None or last[2:4] != record[2:4]
            last = record
        if links:
            yield target, REST, links, str(sources), "", "", ""
