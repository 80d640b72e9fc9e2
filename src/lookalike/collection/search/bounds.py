"""How large an answer may get, and how much memory computing it may take, in a service.

    with answer_limit(1 << 20):
        docs.search_many(queries, 10_000, text=True)  # raises AnswerTooLargeError, or is small

Both are counted while the answer grows, and hold for this thread, and for all that is asked in the
context together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from lookalike.errors import ResultTooLargeError

__all__ = [
    "AnswerTooLargeError",
    "answer_limit",
    "answers_counted_by",
    "check_matches",
    "held",
    "hold",
    "limits_matches",
    "release",
    "spend",
]

_STEP = 1 << 20
"""Bytes of memory that are asked for at once: asking takes a lock."""


class AnswerTooLargeError(ResultTooLargeError):
    """Texts, metadata and explanations have more bytes than the limit."""


@dataclass
class _Room:
    most: int
    left: int
    change: Callable[[int], None]
    matches: int | None
    beside: int
    held: int = 0
    taken: int = 0


_room: ContextVar[_Room | None] = ContextVar("room", default=None)
_count: ContextVar[Callable[[int], object] | None] = ContextVar("count", default=None)
_change: ContextVar[Callable[[int], None] | None] = ContextVar("change", default=None)


@contextmanager
def answer_limit(
    most: int,
    change: Callable[[int], None] | None = None,
    matches: int | None = None,
    beside: int = 0,
) -> Iterator[None]:
    """Let answers in this context have at most `most` bytes in all, and searches at most `matches`,
    and those `beside` them that the caller leaves out.

    `change` is told of the memory that computing them takes, in bytes, before it is taken, and
    raises if there is not as much; what was taken is given back with a negative number (default:
    that of `answers_counted_by`).
    """
    change = change or _change.get() or _no_limit
    room = _Room(most, most, change, matches, beside)
    before = _room.set(room)
    try:
        yield
    finally:
        _room.reset(before)
        change(-room.taken)


@contextmanager
def answers_counted_by(
    count: Callable[[int], object], change: Callable[[int], None] = lambda size: None
) -> Iterator[None]:
    """Call `count` with the bytes of answers that have a limit, while they grow, and `change` with
    the memory that is taken meanwhile and given back.

    Both may raise an error, which ends the work on the answer.
    """
    before, unchanged = _count.set(count), _change.set(change)
    try:
        yield
    finally:
        _count.reset(before)
        _change.reset(unchanged)


def _no_limit(size: int) -> None:
    """Take memory where it is not counted."""


def spend(size: int) -> None:
    """Take so many bytes of the room there is, if it has a limit."""
    room = _room.get()
    if room is None:
        return
    count = _count.get()
    if count is not None:
        count(size)
    room.left -= size
    if room.left < 0:
        raise AnswerTooLargeError(
            f"the documents of the answer have more than {room.most} bytes; ask for fewer of them, "
            "or without their texts"
        )


def limits_matches() -> bool:
    """Return whether there is a limit for the matches of one search."""
    room = _room.get()
    return room is not None and room.matches is not None


def check_matches(found: int) -> None:
    """Refuse a search that has found more matches than the limit, for all its queries."""
    room = _room.get()
    if room is not None and room.matches is not None and found > room.matches + room.beside:
        raise ResultTooLargeError(
            f"the queries have more than {room.matches} matches in all; ask for fewer at once, "
            "with a smaller radius or with a limit"
        )


def hold(size: int) -> None:
    """Take memory, or raise what `change` of the limit raises."""
    room = _room.get()
    if room is None:
        return
    room.held += size
    if room.held > room.taken:
        more = max(_STEP, room.held - room.taken)
        room.change(more)
        room.taken += more


def release(size: int) -> None:
    """Give memory back."""
    room = _room.get()
    if room is None:
        return
    room.held -= size
    if room.taken - room.held > 4 * _STEP:
        less = room.taken - room.held - _STEP
        room.taken -= less
        room.change(-less)


def held() -> int:
    """Return how much memory has been taken and not given back."""
    room = _room.get()
    return 0 if room is None else room.held
