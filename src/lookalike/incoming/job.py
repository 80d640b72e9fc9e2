"""Invert the links of a crawl: one row for each page that is linked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Literal, SupportsIndex

from lookalike.checks import file_path, flag, instance, thread_count
from lookalike.corpora import check_table_target, open_corpus, write_table
from lookalike.corpora.base import Problems, limited, pa
from lookalike.incoming.records import (
    Counts,
    IncomingSettings,
    Reading,
    Row,
    records_of,
    rows_of,
)
from lookalike.incoming.result import IncomingLinks
from lookalike.incoming.sorting import SortedRecords
from lookalike.jobs.context import memory_bytes
from lookalike.operation import stop_if_canceled
from lookalike.pages import PageLimits
from lookalike.progress import Progress, listener, shows_progress
from lookalike.storage.files import temporary_folder

_PREFIX = "lookalike-links-"
_HELD = 1 << 28
"""Bytes of records in memory, by default."""
_ROWS, _CHARACTERS = 4096, 1 << 24
"""Rows and characters that are written at a time."""
_OFTEN = 4096


@shows_progress
def incoming_links(
    source: Any,
    output: str | os.PathLike[str],
    *,
    around: SupportsIndex = 5,
    nofollow: bool = False,
    self_links: bool = False,
    internal: Literal["relative", "absolute", "skip"] = "relative",
    with_text: bool = False,
    only_crawled: bool = False,
    min_links: SupportsIndex = 1,
    max_links: SupportsIndex = 1_000,
    host_folders: bool = False,
    html: str | None = None,
    url: str | None = None,
    format: str | None = None,
    encoding: str | None = None,
    page_limits: PageLimits | None = None,
    skip_bad: bool = False,
    memory_limit: SupportsIndex | None = None,
    threads: SupportsIndex | None = None,
    progress: Progress | bool | None = None,
) -> IncomingLinks:
    """Write the links that point to each page of a crawl, for `la.Links` and other features.

    A row has the address of a page (`id`), whether it was crawled, the number of links to it and of
    their sources, its most frequent anchor, and a `text`. The text has the address of each source,
    the words of the link, and the words around it in the linking page. So `la.Links` compares pages
    by the links to them, and `la.Words` by what others write about them. Rows are sorted by their
    addresses.

    Addresses are normalized, and relative links are resolved, also by `<base href>`. Links of the
    same source with the same words count once. Records that do not fit into memory are sorted in
    temporary files.

    Args:
        source: A WARC file, HTML files or a folder of them, a corpus with a column of pages, or a
            table with the columns `source` and `target`. Such a table may have `anchor`, `before`,
            `after` or `context`, and `nofollow` or `rel`.
        output: File to write: .jsonl, .json, .csv, .tsv or .parquet.
        around: Number of words before and after a link that are kept (maximum: 50).
        nofollow: Whether links marked `nofollow` count.
        self_links: Whether links of a page to itself count.
        internal: Sources of links within a host: "relative" (without the host, so that mirrors of a
            site agree), "absolute", or "skip".
        with_text: Whether the text of a row begins with the main text of the page itself.
        only_crawled: Leave out pages that are linked, but not in the input.
        min_links: Leave out pages with fewer links; with 0, crawled pages without links are rows.
        max_links: Maximum number of links in a text: a sample that depends on the sources alone.
        host_folders: Whether the first folder of a path is a host, as `wget -r` writes pages.
        html: Column with pages.
        url: Column with the addresses of pages (default: detected).
        format: Input format (default: from the file extension).
        encoding: Encoding of text files (default: detected).
        page_limits: Limits for one page.
        skip_bad: Whether rows that cannot be read are skipped and counted.
        memory_limit: Maximum bytes of memory for the job.
        threads: Number of processes that parse pages (default: all cores).
        progress: Function that is called with a step and the share done, or True for bars.

    Examples:
        >>> import lookalike as la
        >>> links = [{"source": "http://a.org/", "target": "http://b.org/x", "anchor": "a fox"}]
        >>> la.incoming_links(links, "incoming.jsonl").links
        1
    """
    settings = IncomingSettings(
        around, nofollow, self_links, internal, with_text, only_crawled, min_links, max_links,
        host_folders,
    )  # fmt: skip
    limit, workers = memory_bytes(memory_limit), thread_count(threads)
    if page_limits is not None:
        instance("page_limits", page_limits, PageLimits, "la.pages.PageLimits")
    target = file_path("output", output)
    check_table_target(target)
    corpus = open_corpus(source, format, html=html, page_limits=page_limits, encoding=encoding)
    reading = Reading.of(corpus, settings, url)
    identity = corpus.identity()
    problems, counts = Problems(flag("skip_bad", skip_bad)), Counts()
    tell = listener(progress)
    with limited(limit, workers), temporary_folder(_PREFIX) as folder:
        records = SortedRecords(folder, _HELD if limit is None else min(_HELD, limit // 4))
        for number, record in enumerate(records_of(corpus, reading, settings, problems)):
            records.add(record)
            if not number % _OFTEN:
                stop_if_canceled()
                tell("read", corpus.done)
        corpus.check_identity(identity)
        tell("read", 1.0)
        write_table(_batches(rows_of(records, settings, counts)), target)
    return IncomingLinks(
        str(target), counts.rows, counts.links, counts.sampled, problems.bad, problems.binary,
        dict(problems.left_out), list(problems.examples), [*corpus.notices, *problems.notices()],
    )  # fmt: skip


def schema() -> Any:
    """Return the columns of rows."""
    return pa.schema(
        [
            ("id", pa.string()), ("crawled", pa.bool_()), ("links", pa.int64()),
            ("sources", pa.int64()), ("anchor", pa.string()), ("text", pa.large_string()),
        ]
    )  # fmt: skip


def batch_of(rows: list[Row]) -> Any:
    """Return rows as a record batch."""
    kinds = schema()
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(kinds)
    arrays = [pa.array(column, one.type) for column, one in zip(columns, kinds, strict=True)]
    return pa.record_batch(arrays, schema=kinds)


def _batches(rows: Iterator[Row]) -> Iterator[Any]:
    held: list[Row] = []
    size, any_rows = 0, False
    for row in rows:
        held.append(row)
        size += len(row[-1])
        if len(held) >= _ROWS or size > _CHARACTERS:
            stop_if_canceled()
            yield batch_of(held)
            held, size, any_rows = [], 0, True
    if held or not any_rows:
        yield batch_of(held)
