"""Pages to worker processes and back, in order.

Resiliparse holds Python's lock while it parses, so that threads would wait for each other; and
whatever a page does to its parser is done to a process that nobody misses.
"""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import astuple
from typing import Any

from lookalike.pages import Page, PageLimits, RawPage, Refused
from lookalike.pages.extract import check_installed
from lookalike.processes import Death, answers_or_deaths

__all__ = ["read_pages"]

_BATCH_PAGES = 64
_BATCH_BYTES = 2 << 20
_AHEAD = 2
"""Batches for each worker that are on their way, read before anybody asks."""
_MODULE = "lookalike.pages.worker"


def read_pages(
    pages: Iterable[RawPage],
    wanted: Collection[str],
    limits: PageLimits | None = None,
    *,
    threads: int = 1,
) -> Iterator[Page | Refused]:
    """Yield what is wanted (`FIELDS`) of each page, in order, by so many processes.

    No page raises: one that is beyond the limits, or that brings its parser down, is `Refused`. No
    more than a few batches are held.
    """
    check_installed()
    limits = limits or PageLimits()
    fields = [name for name in Page.__dataclass_fields__ if name in wanted]
    waiting: deque[Future[list[Page | Refused]]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for batch in _batches(pages):
                waiting.append(pool.submit(_read_batch, batch, fields, limits))
                while len(waiting) > _AHEAD * threads:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


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


def _read_batch(
    pages: list[RawPage], wanted: list[str], limits: PageLimits
) -> list[Page | Refused]:
    """Return what was found in each page. A page that ends its worker is refused."""
    answers = answers_or_deaths(
        _MODULE, pages, lambda rest: (vars(limits), wanted, [astuple(page) for page in rest])
    )
    return [
        Refused(_reason(one, limits)) if isinstance(one, Death) else _answer(one) for one in answers
    ]


def _reason(death: Death, limits: PageLimits) -> str:
    if death.out_of_time:
        return f"took more than {limits.seconds:,} s to be parsed"
    if death.status == -signal.SIGKILL:
        return "took the process down that parsed it (killed, perhaps for lack of memory)"
    return f"took the process down that parsed it (status {death.status})"


def _answer(found: Any) -> Page | Refused:
    return Refused(found) if isinstance(found, str) else Page(*found)
