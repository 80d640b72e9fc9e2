"""Time limits for all requests, watched by one task, and clients that hang up.

A timer for each of thousands of requests a second costs more than what most of them ask for. So
the times are written down, and looked at four times a second. Requests that are still there when
they are looked at for the second time are watched for the end of their connection, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from lookalike.service.problems import ClientGone

__all__ = ["Limit", "Watch"]

_LOOK = 0.25


class Limit:
    """How long something may take, as a context; beyond that it is ended by an exception.

    With `receive`, which gives the messages of a request whose body has been read, it also ends,
    with `ClientGone`, soon after the client has closed the connection.
    """

    __slots__ = (
        "_due", "_gone", "_late", "_listening", "_problem", "_receive", "_seen", "_task", "_watch",
    )  # fmt: skip

    def __init__(
        self,
        watch: Watch,
        seconds: float,
        problem: Callable[[], Exception],
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]] | None = None,
    ) -> None:
        self._watch = watch
        self._receive = receive
        self._seen = False
        self._gone = False
        self._listening: asyncio.Task[None] | None = None
        self._due = watch.time() + seconds
        self._problem = problem
        self._late = False
        self._task: asyncio.Task[object] | None = None

    def __enter__(self) -> None:
        self._task = asyncio.current_task()
        self._watch.limits.add(self)
        self._watch.begin()

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        self._watch.limits.discard(self)
        if self._listening is not None:
            self._listening.cancel()
        if (self._late or self._gone) and self._task is not None:
            self._task.uncancel()
            if kind is asyncio.CancelledError:
                raise (self._problem() if self._late else ClientGone()) from None

    def look(self, now: float) -> None:
        """End what takes too long; listen for the end of the connection if it takes a while."""
        if self._late or self._gone or self._task is None:
            return
        if now > self._due:
            self._late = True
            self._task.cancel()
        elif self._seen and self._receive is not None and self._listening is None:
            self._listening = asyncio.ensure_future(self._listen(self._receive, self._task))
        self._seen = True

    async def _listen(
        self,
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        task: asyncio.Task[object],
    ) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        if not self._late:
            self._gone = True
            task.cancel()


class Watch:
    """The limits of one event loop."""

    def __init__(self) -> None:
        self.limits: set[Limit] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._next: asyncio.TimerHandle | None = None

    def time(self) -> float:
        """Return the time of the loop."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop.time()

    def begin(self) -> None:
        """Look at the limits from now on, as long as there are any."""
        if self._next is None and self._loop is not None:
            self._next = self._loop.call_later(_LOOK, self._look)

    def _look(self) -> None:
        self._next = None
        now = self.time()
        for limit in list(self.limits):
            limit.look(now)
        if self.limits:
            self.begin()
