"""Parse pages in isolated worker processes, in order.

Resiliparse holds Python's lock while it parses, so that threads would wait for each other. A page
that crashes its parser crashes a worker process.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import astuple
from functools import lru_cache
from typing import Any

from lookalike.pages import Page, PageLimits, RawPage, Refused, refusal
from lookalike.pages.extract import check_installed, read_page, unpack
from lookalike.processes import Failure, Stop, Task, run, run_in_order
from lookalike.shown import escape_terminal

__all__ = ["read_pages"]

_BATCH_PAGES = 64
_BATCH_BYTES = 2 << 20
_LONGEST_REASON = 120
"""Characters of a message of a library that are shown."""


def read_pages(
    pages: Iterable[RawPage],
    wanted: Collection[str],
    limits: PageLimits | None = None,
    *,
    threads: int = 1,
) -> Iterator[Page | Refused]:
    """Yield what is wanted (`FIELDS`) of each page, in order, parsed by `threads` processes.

    No page raises: one that exceeds the limits, or crashes its parser, is `Refused`. Only a few
    batches are held.
    """
    check_installed()
    limits = limits or PageLimits()
    fields = [name for name in Page.__dataclass_fields__ if name in wanted]
    task = Task(
        "lookalike.pages.workers:_parser", (tuple(vars(limits).items()), fields),
        seconds=limits.seconds, memory=limits.memory, verb="parse",
    )  # fmt: skip

    def read(batch: list[RawPage], stop: Stop) -> Iterator[Page | Refused]:
        for found in run(task, [astuple(page) for page in batch], stop):
            if isinstance(found, Failure):
                yield Refused(task.reason(found))
            else:
                yield Refused(found) if isinstance(found, str) else Page(*found)

    return run_in_order(read, _batches(pages), threads=threads)


def _batches(pages: Iterable[RawPage]) -> Iterator[list[RawPage]]:
    batch: list[RawPage] = []
    size = 0
    for page in pages:
        batch.append(page)
        size += len(page.html)
        if size >= _BATCH_BYTES or len(batch) == _BATCH_PAGES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _parser() -> Callable[..., Any]:
    """Return what a worker does with a page."""
    return _parse


@lru_cache(1)
def _page_limits(values: tuple[tuple[str, int], ...]) -> PageLimits:
    return PageLimits(**dict(values))


def _parse(page: tuple[Any, ...], limits: tuple[tuple[str, int], ...], wanted: list[str]) -> Any:
    """Return the fields of a page, or the reason why there are none."""
    html, charset, url, unpacked = page
    try:
        if unpacked:
            html = unpack(html, unpacked)
        reason = refusal(html, _page_limits(limits))
        if reason is not None:
            return reason
        found = read_page(RawPage(html, charset, url), wanted)
        return found.text, found.title, found.language, found.links, found.marked
    except (ValueError, RuntimeError, RecursionError, LookupError, OSError) as error:
        # What the error says may have all of the page in it.
        reason = escape_terminal(str(error), _LONGEST_REASON)
        return f"cannot be parsed ({type(error).__name__}: {reason})"
