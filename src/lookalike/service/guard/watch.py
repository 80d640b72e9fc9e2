"""Time limits for all requests, watched by one task.

A timer for each of thousands of requests a second costs more than what most of them ask for. So
the times are written down, and looked at four times a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["Limit", "Watch"]

_LOOK = 0.25


class Limit:
    """How long something may take, as a context; beyond that it is ended by an exception."""

    __slots__ = ("_due", "_late", "_problem", "_task", "_watch")

    def __init__(self, watch: Watch, seconds: float, problem: Callable[[], Exception]) -> None:
        self._watch = watch
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
        if self._late and self._task is not None:
            self._task.uncancel()
            if kind is asyncio.CancelledError:
                raise self._problem() from None

    def look(self, now: float) -> None:
        """End what takes too long."""
        if now > self._due and not self._late and self._task is not None:
            self._late = True
            self._task.cancel()


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
