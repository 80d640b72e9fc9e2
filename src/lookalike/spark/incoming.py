"""Links of a crawl, inverted on Spark: the rows of `lookalike.incoming`, for crawls of any size.

Workers parse pages and send records of links to where those of a target meet. Records of a target
with many links are first cut down in several tasks, each with some of its sources, so that no page
is too much for one task.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any, Literal, SupportsIndex

from lookalike.corpora.base import Corpus, Problems, pa
from lookalike.corpora.opening import with_pages
from lookalike.incoming.job import batch_of
from lookalike.incoming.records import (
    Counts,
    IncomingSettings,
    Reading,
    Record,
    first_links,
    records_of,
    rows_of,
)
from lookalike.pages import PageLimits
from lookalike.spark.files import StreamedRows
from lookalike.spark.packed import Batches, map_arrow, sql

_FIELDS = {
    "target": "string", "kind": "int", "order": "long", "source": "string", "anchor": "string",
    "before": "string", "after": "string",
}  # fmt: skip
_RECORDS = ", ".join(f"`{name}` {kind}" for name, kind in _FIELDS.items())
_ROWS = "id string, crawled boolean, links long, sources long, anchor string, text string"
_PARTS = 64
"""Tasks that may share the links of one target."""
_AT_A_TIME = 4096


def incoming_links(
    frame: Any,
    *,
    around: SupportsIndex = 5,
    nofollow: bool = False,
    self_links: bool = False,
    internal: Literal["relative", "absolute", "skip"] = "relative",
    with_text: bool = False,
    only_crawled: bool = False,
    min_links: SupportsIndex = 1,
    max_links: SupportsIndex = 1_000,
    html: str | None = None,
    url: str | None = None,
    page_limits: PageLimits | None = None,
) -> Any:
    """Return the links that point to each page as a DataFrame: the rows of `la.incoming_links`.

    Args:
        frame: Pages, with the columns `html` and `url`, or links with the columns `source` and
            `target` (and `anchor`, `before`, `after`, `context`, `nofollow`, `rel`).
        around: Number of words before and after a link that are kept (maximum: 50).
        nofollow: Whether links marked `nofollow` count.
        self_links: Whether links of a page to itself count.
        internal: Sources of links within a host: "relative", "absolute" or "skip".
        with_text: Whether the text of a row begins with the main text of the page itself.
        only_crawled: Leave out pages that are linked, but not in the input.
        min_links: Leave out pages with fewer links.
        max_links: Maximum number of links in a text: a sample that depends on the sources alone.
        html: Column with pages.
        url: Column with the addresses of pages (default: detected).
        page_limits: Limits for one page. Pages that exceed them have no links.

    Returns:
        A DataFrame with the columns `id`, `crawled`, `links`, `sources`, `anchor` and `text`.
    """
    settings = IncomingSettings(
        around, nofollow, self_links, internal, with_text, only_crawled, min_links, max_links
    )
    how = frame.columns, html, page_limits, url, settings
    _opened(how, iter(()))  # raises here, not on a worker
    records = map_arrow(frame, _read, _RECORDS, how)
    names = [f"`{name}`" for name in _FIELDS]
    part = sql.pmod("order", sql.lit(_PARTS)).alias("part")
    dealt = records.select("*", part).repartition("target", "part")
    dealt = dealt.sortWithinPartitions("part", *names).select(*names, "part")
    first = map_arrow(dealt, _cut, _RECORDS, settings)
    met = first.repartition("target").sortWithinPartitions(*names)
    return map_arrow(met, _finish, _ROWS, settings)


def _opened(how: Any, batches: Iterator[Any]) -> tuple[Corpus, Reading]:
    """Return rows as a corpus, and how links are read from it."""
    names, html, limits, url, settings = how
    rows: Corpus = StreamedRows(names, batches)
    if html is not None:
        rows = with_pages(rows, html, limits)
    return rows, Reading.of(rows, settings, url)


def _read(how: Any, batches: Batches) -> Iterator[Any]:
    corpus, reading = _opened(how, batches)
    yield from _as_batches(records_of(corpus, reading, how[-1], Problems(skip_bad=True)))


def _cut(settings: IncomingSettings, batches: Batches) -> Iterator[Any]:
    """Keep the first links of each target, and count the others; parts follow each other."""

    def records() -> Iterator[tuple[int, Record]]:
        for batch in batches:
            columns = [batch.column(name).to_pylist() for name in (*_FIELDS, "part")]
            for *record, part in zip(*columns, strict=True):
                yield part, tuple(record)

    yield from _as_batches(_of_parts(records(), settings))


def _of_parts(
    records: Iterator[tuple[int, Record]], settings: IncomingSettings
) -> Iterator[Record]:
    for _, own in groupby(records, key=lambda one: one[0]):
        yield from first_links((record for _, record in own), settings)


def _finish(settings: IncomingSettings, batches: Batches) -> Iterator[Any]:
    def records() -> Iterator[Record]:
        for batch in batches:
            columns = [batch.column(name).to_pylist() for name in _FIELDS]
            yield from zip(*columns, strict=True)

    held = []
    for row in rows_of(records(), settings, Counts()):
        held.append(row)
        if len(held) == _AT_A_TIME:
            yield _plain(batch_of(held))
            held = []
    if held:
        yield _plain(batch_of(held))


def _plain(batch: Any) -> Any:
    """Return rows with the string type that Spark knows."""
    at = batch.schema.get_field_index("text")
    return batch.set_column(at, "text", batch.column(at).cast(pa.string()))


def _as_batches(records: Iterator[Record]) -> Iterator[Any]:
    kinds = {"string": pa.string(), "int": pa.int32(), "long": pa.int64()}
    schema = pa.schema([(name, kinds[kind]) for name, kind in _FIELDS.items()])
    held: list[Record] = []
    for record in records:
        held.append(record)
        if len(held) == _AT_A_TIME:
            yield _batch(held, schema)
            held = []
    if held:
        yield _batch(held, schema)


def _batch(records: list[Record], schema: Any) -> Any:
    columns = zip(*records, strict=True)
    arrays = [pa.array(column, one.type) for column, one in zip(columns, schema, strict=True)]
    return pa.record_batch(arrays, schema=schema)
