"""Requests that arrive together are answered together, by one call.

Questions of the same sort go into one lane. The first starts at once; those that come while it is
being answered are the next batch. So nothing is delayed under low load, and batches grow under
high load.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar

from lookalike.cancellation import Canceled, Cancellation
from lookalike.errors import LookalikeError
from lookalike.service.problems import service_ending

Question = TypeVar("Question")
Reply = TypeVar("Reply")

_MOST = 256
"""Questions of a batch; larger batches are not faster."""


class Later(Exception):
    """Instead of a reply to a question, but for the first of a batch: it goes to the next batch."""


@dataclass(eq=False)
class _Lane(Generic[Question, Reply]):
    """Questions of one sort: those that are being answered, and those that wait."""

    answer: Callable[[Sequence[Question]], Sequence[Reply]]
    submit: Callable[..., object]
    taken: Callable[[int], None]
    empty: Callable[[], object]
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    waiting: deque[tuple[Question, asyncio.Future[Reply]]] = field(default_factory=deque)
    batch: list[tuple[Question, asyncio.Future[Reply]]] = field(default_factory=list)
    running: bool = False
    work: Cancellation = field(default_factory=Cancellation)
    """Cancels answering the batch."""

    async def ask(self, question: Question) -> Reply:
        """Return the reply to a question."""
        future: asyncio.Future[Reply] = self.loop.create_future()
        self.waiting.append((question, future))
        if not self.running:
            self.running = True
            # At the end of this turn of the loop: questions that arrived with it come along.
            self.loop.call_soon(self._begin)
        try:
            return await future
        except asyncio.CancelledError:
            self._abandon()
            raise
        except Canceled:
            raise service_ending() from None

    def _abandon(self) -> None:
        """Drop the questions whose clients have gone; stop answering if all have."""
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
            self.running = False
            self.empty()
            return
        self.taken(len(self.batch))
        self.work = Cancellation()
        questions = [question for question, _ in self.batch]
        try:
            self.submit(self._compute, self.work, questions)
        except RuntimeError as error:  # the threads have been shut down
            self._end([error] * len(questions))

    def _compute(self, work: Cancellation, questions: list[Question]) -> None:
        try:
            replies = work.run(_replies, self.answer, questions)
        except Canceled as error:  # before it began
            replies = [error] * len(questions)
        with suppress(RuntimeError):  # the loop is closed, and all clients have gone
            self.loop.call_soon_threadsafe(self._end, replies)

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
    """Lanes of one event loop; `submit` answers their batches in threads, `taken` counts them."""

    def __init__(self, submit: Callable[..., object], taken: Callable[[int], None]) -> None:
        self._submit = submit
        self._taken = taken
        self._lanes: dict[Hashable, _Lane[Question, Reply]] = {}

    async def ask(
        self,
        sort: Hashable,
        answer: Callable[[Sequence[Question]], Sequence[Reply]],
        question: Question,
    ) -> Reply:
        """Return the reply to a question; `answer` answers many of its sort."""
        lane = self._lanes.get(sort)
        if lane is None:
            empty = partial(self._lanes.pop, sort, None)
            lane = self._lanes[sort] = _Lane(answer, self._submit, self._taken, empty)
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
