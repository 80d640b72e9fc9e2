"""Requests that arrive together are answered together, by one call.

Questions of the same sort go into one lane. The first starts at once; those that come while it is
being answered wait for each other, and are the next batch. Nobody waits for company that may not
come: where there is little to do nothing is delayed, and where there is much the batches grow.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from lookalike.cancellation import Cancellation, Cancelled
from lookalike.errors import LookalikeError
from lookalike.service.problems import service_ending

__all__ = ["Lanes", "Later"]

Question = TypeVar("Question")
Reply = TypeVar("Reply")

_MOST = 256
"""Questions of a batch; beyond that they gain nothing from each other."""


class Later(Exception):
    """Instead of a reply: the question is the first of the next batch, since there was no room.

    The first question of a batch gets a reply, or nobody ever would.
    """


@dataclass(eq=False)
class _Lane(Generic[Question, Reply]):
    answer: Callable[[Sequence[Question]], Sequence[Reply]]
    waiting: deque[tuple[Question, asyncio.Future[Reply]]] = field(default_factory=deque)
    running: bool = False
    batch: list[tuple[Question, asyncio.Future[Reply]]] = field(default_factory=list)
    """The questions that are being answered."""
    work: Cancellation = field(default_factory=Cancellation)
    """Cancels answering them."""

    def abandon(self) -> None:
        """Drop the questions whose clients have gone; stop answering if all of these have."""
        self.waiting = deque(one for one in self.waiting if not one[1].done())
        if all(future.done() for _, future in self.batch):
            self.work.cancel()


class Lanes(Generic[Question, Reply]):
    """Lanes of one event loop, whose batches are answered in the threads of an executor."""

    def __init__(self, threads: Executor, taken: Callable[[int], None]) -> None:
        self._threads = threads
        self._taken = taken
        self._lanes: dict[Hashable, _Lane[Question, Reply]] = {}

    async def ask(
        self,
        sort: Hashable,
        answer: Callable[[Sequence[Question]], Sequence[Reply]],
        question: Question,
    ) -> Reply:
        """Return the reply to a question; `answer` answers many of the sort."""
        loop = asyncio.get_running_loop()
        lane = self._lanes.get(sort)
        if lane is None:
            lane = self._lanes[sort] = _Lane(answer)
        future: asyncio.Future[Reply] = loop.create_future()
        lane.waiting.append((question, future))
        if not lane.running:
            lane.running = True
            # At the end of this turn of the loop, so that what arrived with it comes along.
            loop.call_soon(self._begin, loop, sort, lane)
        try:
            return await future
        except asyncio.CancelledError:
            lane.abandon()
            raise
        except Cancelled:
            raise service_ending() from None

    def cancel(self) -> None:
        """Stop answering, because the service ends."""
        for lane in list(self._lanes.values()):
            lane.work.cancel(shielded_too=True)

    def _begin(
        self, loop: asyncio.AbstractEventLoop, sort: Hashable, lane: _Lane[Question, Reply]
    ) -> None:
        batch: list[tuple[Question, asyncio.Future[Reply]]] = []
        while lane.waiting and len(batch) < _MOST:
            question, future = lane.waiting.popleft()
            if not future.done():  # whoever asked may have gone
                batch.append((question, future))
        if not batch:
            lane.running = False
            self._lanes.pop(sort, None)
            return
        self._taken(len(batch))
        lane.batch, lane.work = batch, Cancellation()
        try:
            self._threads.submit(self._work, loop, sort, lane, batch, lane.work)
        except RuntimeError as error:  # the executor has been shut down
            self._end(loop, sort, lane, batch, [error] * len(batch))

    def _work(
        self,
        loop: asyncio.AbstractEventLoop,
        sort: Hashable,
        lane: _Lane[Question, Reply],
        batch: list[tuple[Question, asyncio.Future[Reply]]],
        work: Cancellation,
    ) -> None:
        questions = [question for question, _ in batch]
        try:
            replies = work.run(_replies, lane.answer, questions)
        except Cancelled as error:  # before it began
            replies = [error] * len(batch)
        try:
            loop.call_soon_threadsafe(self._end, loop, sort, lane, batch, replies)
        except RuntimeError:
            return  # the loop is closed, and with it everybody who asked

    def _end(
        self,
        loop: asyncio.AbstractEventLoop,
        sort: Hashable,
        lane: _Lane[Question, Reply],
        batch: list[tuple[Question, asyncio.Future[Reply]]],
        replies: Sequence[Reply | BaseException],
    ) -> None:
        again = []
        for (question, future), reply in zip(batch, replies, strict=True):
            if future.done():
                continue
            if isinstance(reply, Later):
                again.append((question, future))
            elif isinstance(reply, BaseException):
                future.set_exception(reply)
            else:
                future.set_result(reply)
        lane.waiting.extendleft(reversed(again))
        self._begin(loop, sort, lane)


def _replies(
    answer: Callable[[Sequence[Question]], Sequence[Reply]], questions: Sequence[Question]
) -> Sequence[Reply | BaseException]:
    """Return a reply or an error for each; where all fail together, each is asked by itself."""
    try:
        return answer(questions)
    except LookalikeError as error:
        if len(questions) == 1:
            return [error]
        return [one for question in questions for one in _replies(answer, [question])]
    except BaseException as error:
        return [error] * len(questions)
