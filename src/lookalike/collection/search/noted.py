"""What searches do, for who counts it, without a word of it in their answers.

with noted_work() as done:
    docs.search_many(queries, 10)
sum(work.candidates for work in done)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from lookalike.collection.answers import Work

__all__ = ["note", "noted_work", "noting"]

_done: ContextVar[list[Work] | None] = ContextVar("done", default=None)


@contextmanager
def noted_work() -> Iterator[list[Work]]:
    """Give a list that has the work of each query of this context."""
    done: list[Work] = []
    before = _done.set(done)
    try:
        yield done
    finally:
        _done.reset(before)


def noting() -> bool:
    """Return whether somebody wants to know."""
    return _done.get() is not None


def note(work: Work | None) -> None:
    """Add to the list, if there is one."""
    done = _done.get()
    if done is not None and work is not None:
        done.append(work)
