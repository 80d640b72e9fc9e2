"""Parse pages in isolated worker processes, in order.

Resiliparse holds the GIL while it parses, so threads would wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import astuple
from typing import Any

from lookalike.pages import Page, PageLimits, RawPage, Refused, refusal
from lookalike.pages.extract import check_installed, read_page, unpack
from lookalike.processes import Failure, Stop, Task, in_groups, run, run_in_order
from lookalike.shown import escape_terminal

_BATCH_PAGES = 64
_BATCH_BYTES = 2 << 20
_LONGEST_REASON = 120  # maximum characters of a library error in a message


def read_pages(
    pages: Iterable[RawPage],
    wanted: Collection[str],
    limits: PageLimits | None = None,
    *,
    threads: int = 1,
) -> Iterator[Page | Refused]:
    """Yield the wanted fields (`FIELDS`) of each page, in order, parsed by `threads` processes.

    A page that exceeds the limits, or crashes its parser, is `Refused`.
    """
    check_installed()
    limits = limits or PageLimits()
    fields = [name for name in Page.__dataclass_fields__ if name in wanted]
    task = Task(
        "lookalike.pages.workers:_parser", (vars(limits), fields),
        seconds=limits.seconds, memory=limits.memory, verb="parse",
    )  # fmt: skip

    def read(batch: list[RawPage], stop: Stop) -> Iterator[Page | Refused]:
        for found in run(task, [astuple(page) for page in batch], stop):
            if isinstance(found, Failure):
                yield Refused(task.reason(found))
            else:
                yield Refused(found) if isinstance(found, str) else Page(*found)

    batches = in_groups(pages, lambda page: len(page.html), _BATCH_BYTES, _BATCH_PAGES)
    return run_in_order(read, batches, threads=threads)


def _parser() -> Callable[..., Any]:
    return _parse


def _parse(page: tuple[Any, ...], limits: dict[str, int], wanted: list[str]) -> Any:
    """Return the fields of a page, or the reason why there are none."""
    html, charset, url, unpacked = page
    try:
        if unpacked:
            html = unpack(html, unpacked)
        reason = refusal(html, PageLimits(**limits))
        if reason is not None:
            return reason
        return tuple(vars(read_page(RawPage(html, charset, url), wanted)).values())
    except (ValueError, RuntimeError, RecursionError, LookupError, OSError) as error:
        # The message may contain all of the page.
        reason = escape_terminal(str(error), _LONGEST_REASON)
        return f"cannot be parsed ({type(error).__name__}: {reason})"
