"""What takes long to compute and holds until something is written: kept, for a few askers."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Any

__all__ = ["TOO_MUCH", "Kept"]

TOO_MUCH = object()
"""Instead of a result: so much else is being computed that this was not even begun."""

_MOST = 32
_MOST_RUNNING = 8
_PATIENCE = 2.0
"""Seconds for which somebody who asks is kept waiting."""


class Kept:
    """Results by what was asked, each of one version; belongs to one event loop."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, tuple[int, Any]] = OrderedDict()
        self._running: dict[Hashable, asyncio.Task[Any]] = {}

    async def get(
        self,
        what: Hashable,
        version: int,
        compute: Callable[[], Any],
        slowly: Callable[[Callable[[], Any]], Awaitable[Any]],
    ) -> Any:
        """Return the result, None if it is still being computed, or `TOO_MUCH`.

        What fails is raised to whoever waits for it, and tried again by whoever asks next.
        """
        known = self._known.get(what)
        if known is not None and known[0] == version:
            return known[1]
        task = self._running.get(what)
        if task is None:
            if len(self._running) >= _MOST_RUNNING:
                return TOO_MUCH
            task = asyncio.ensure_future(self._compute(what, version, compute, slowly))
            self._running[what] = task
            task.add_done_callback(lambda done: self._ended(what, done))
        done, _ = await asyncio.wait([task], timeout=_PATIENCE)
        return task.result() if done else None

    async def _compute(
        self,
        what: Hashable,
        version: int,
        compute: Callable[[], Any],
        slowly: Callable[[Callable[[], Any]], Awaitable[Any]],
    ) -> Any:
        value = await slowly(compute)
        # Of the version that was asked for or a later one; written to meanwhile, it is drawn again.
        self._known[what] = (version, value)
        while len(self._known) > _MOST:
            self._known.popitem(last=False)
        return value

    def _ended(self, what: Hashable, task: asyncio.Task[Any]) -> None:
        self._running.pop(what, None)
        if not task.cancelled():
            task.exception()  # told to whoever waits; nobody may
