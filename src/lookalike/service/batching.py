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
from contextlib import suppress
from functools import partial
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


class _Lane(Generic[Question, Reply]):
    """Questions of one sort: those that are being answered, and those that wait."""

    def __init__(
        self,
        answer: Callable[[Sequence[Question]], Sequence[Reply]],
        threads: Executor,
        taken: Callable[[int], None],
        empty: Callable[[], object],
    ) -> None:
        self._answer = answer
        self._threads = threads
        self._taken = taken
        self._empty = empty
        self._loop = asyncio.get_running_loop()
        self.waiting: deque[tuple[Question, asyncio.Future[Reply]]] = deque()
        self.batch: list[tuple[Question, asyncio.Future[Reply]]] = []
        self._running = False
        self.work = Cancellation()
        """Cancels answering the batch."""

    async def ask(self, question: Question) -> Reply:
        """Return the reply to a question."""
        future: asyncio.Future[Reply] = self._loop.create_future()
        self.waiting.append((question, future))
        if not self._running:
            self._running = True
            # At the end of this turn of the loop, so that what arrived with it comes along.
            self._loop.call_soon(self._begin)
        try:
            return await future
        except asyncio.CancelledError:
            self._abandon()
            raise
        except Cancelled:
            raise service_ending() from None

    def _abandon(self) -> None:
        """Drop the questions whose clients have gone; stop answering if all of these have."""
        self.waiting = deque(one for one in self.waiting if not one[1].done())
        if all(future.done() for _, future in self.batch):
            self.work.cancel()

    def _begin(self) -> None:
        self.batch = []
        while self.waiting and len(self.batch) < _MOST:
            question, future = self.waiting.popleft()
            if not future.done():  # its client may have gone
                self.batch.append((question, future))
        if not self.batch:
            self._running = False
            self._empty()
            return
        self._taken(len(self.batch))
        self.work = Cancellation()
        questions = [question for question, _ in self.batch]
        try:
            self._threads.submit(self._compute, self.work, questions)
        except RuntimeError as error:  # the executor has been shut down
            self._end([error] * len(questions))

    def _compute(self, work: Cancellation, questions: list[Question]) -> None:
        """Answer a batch, in a thread."""
        try:
            replies = work.run(_replies, self._answer, questions)
        except Cancelled as error:  # before it began
            replies = [error] * len(questions)
        with suppress(RuntimeError):  # the loop is closed, and all clients have gone
            self._loop.call_soon_threadsafe(self._end, replies)

    def _end(self, replies: Sequence[Reply | BaseException]) -> None:
        again = []
        for (question, future), reply in zip(self.batch, replies, strict=True):
            if future.done():
                continue
            if isinstance(reply, Later):
                again.append((question, future))
            elif isinstance(reply, BaseException):
                future.set_exception(reply)
            else:
                future.set_result(reply)
        self.waiting.extendleft(reversed(again))
        self._begin()


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
        lane = self._lanes.get(sort)
        if lane is None:
            empty = partial(self._lanes.pop, sort, None)
            lane = self._lanes[sort] = _Lane(answer, self._threads, self._taken, empty)
        return await lane.ask(question)

    def cancel(self) -> None:
        """Stop answering, because the service ends."""
        for lane in list(self._lanes.values()):
            lane.work.cancel(shielded_too=True)


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
