"""How large an answer may get, for who serves strangers: beyond that it is refused while it grows.

    with answer_limit(1 << 20):
        docs.search_many(queries, 10_000, text=True)  # raises AnswerTooLargeError, or is small

The limit holds for this thread, and for all that is asked in the context together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from lookalike.errors import ResultTooLargeError

__all__ = ["AnswerTooLargeError", "answer_limit", "answers_counted_by", "spend"]


class AnswerTooLargeError(ResultTooLargeError):
    """Texts, metadata and explanations have more bytes than the limit."""


@dataclass
class _Room:
    most: int
    left: int


_room: ContextVar[_Room | None] = ContextVar("room", default=None)
_count: ContextVar[Callable[[int], object] | None] = ContextVar("count", default=None)


@contextmanager
def answer_limit(most: int) -> Iterator[None]:
    """Let answers in this context have so many bytes in all."""
    before = _room.set(_Room(most, most))
    try:
        yield
    finally:
        _room.reset(before)


@contextmanager
def answers_counted_by(count: Callable[[int], object]) -> Iterator[None]:
    """Call `count` with the bytes of answers that have a limit, while they grow.

    It may raise an error, which ends the work on the answer.
    """
    before = _count.set(count)
    try:
        yield
    finally:
        _count.reset(before)


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
