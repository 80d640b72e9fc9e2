"""Answer requests that arrive together with one call.

Questions of the same kind go into one lane. The first starts at once; questions that arrive while
it is being answered form the next batch. So nothing is delayed under low load, and batches grow
under high load.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from lookalike.errors import LookalikeError
from lookalike.operation import Canceled, Operation
from lookalike.service.problems import service_ending

Question = TypeVar("Question")
Reply = TypeVar("Reply")

_MOST = 256
"""Maximum number of questions of a batch; larger batches are not faster."""


class Later(Exception):
    """Returned instead of a reply: the question goes to the next batch."""


@dataclass(eq=False)
class _Lane(Generic[Question, Reply]):
    """Questions of one kind: the current batch, and those that wait."""

    lanes: Lanes[Question, Reply]
    kind: Hashable
    answer: Callable[[Sequence[Question]], Sequence[Reply]]
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    waiting: deque[tuple[Question, asyncio.Future[Reply]]] = field(default_factory=deque)
    batch: list[tuple[Question, asyncio.Future[Reply]]] = field(default_factory=list)
    running: bool = False
    work: Operation = field(default_factory=Operation)
    """Cancels answering the batch."""

    async def ask(self, question: Question) -> Reply:
        """Return the reply to a question."""
        future: asyncio.Future[Reply] = self.loop.create_future()
        self.waiting.append((question, future))
        if not self.running:
            self.running = True
            # At the end of this turn of the loop, to include questions that arrived with it.
            self.loop.call_soon(self._begin)
        try:
            return await future
        except asyncio.CancelledError:
            self._abandon()
            raise
        except Canceled:
            raise service_ending() from None

    def _abandon(self) -> None:
        """Drop the questions whose clients have disconnected; stop if all have."""
        self.waiting = deque(one for one in self.waiting if not one[1].done())
        if all(future.done() for _, future in self.batch):
            self.work.cancel()

    def _begin(self) -> None:
        self.batch = []
        while self.waiting and len(self.batch) < _MOST:
            question, future = self.waiting.popleft()
            if not future.done():  # its client may have disconnected
                self.batch.append((question, future))
        if not self.batch:
            self.running = False
            self.lanes.known.pop(self.kind, None)
            return
        self.lanes.taken(len(self.batch))
        self.work = Operation()
        questions = [question for question, _ in self.batch]
        try:
            self.lanes.submit(self._compute, self.work, questions)
        except RuntimeError as error:  # the threads have been shut down
            self._end([error] * len(questions))

    def _compute(self, work: Operation, questions: list[Question]) -> None:
        try:
            replies = work.run(_replies, self.answer, questions)
        except Canceled as error:  # before it began
            replies = [error] * len(questions)
        with suppress(RuntimeError):  # the loop is closed, and all clients are disconnected
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


@dataclass(eq=False)
class Lanes(Generic[Question, Reply]):
    """Lanes of one event loop; `submit` runs batches in threads, `taken` counts their sizes."""

    submit: Callable[..., object]
    taken: Callable[[int], None]
    known: dict[Hashable, _Lane[Question, Reply]] = field(default_factory=dict)

    async def ask(
        self,
        kind: Hashable,
        answer: Callable[[Sequence[Question]], Sequence[Reply]],
        question: Question,
    ) -> Reply:
        """Return the reply to a question; `answer` answers many questions of its kind."""
        lane = self.known.get(kind)
        if lane is None:
            lane = self.known[kind] = _Lane(self, kind, answer)
        return await lane.ask(question)

    def cancel(self) -> None:
        """Stop all batches on shutdown."""
        for lane in list(self.known.values()):
            lane.work.cancel(shielded_too=True)


def _replies(
    answer: Callable[[Sequence[Question]], Sequence[Reply]], questions: Sequence[Question]
) -> Sequence[Reply | BaseException]:
    """Return a reply or an error for each; if all fail together, each is asked by itself."""
    try:
        return answer(questions)
    except LookalikeError as error:
        if len(questions) == 1:
            return [error]
        return [one for question in questions for one in _replies(answer, [question])]
    except BaseException as error:
        return [error] * len(questions)
