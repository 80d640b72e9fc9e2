"""What takes long to compute and holds until something is written: kept, for a few askers.

Whoever asks waits for a few seconds, and then asks again. What nobody asks for any more is ended.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass
from typing import Any

__all__ = ["GONE", "TOO_MUCH", "Kept"]

TOO_MUCH = object()
"""Instead of a result: so much else is being computed that this was not even begun."""
GONE = object()
"""Instead of a result: whoever asked has hung up."""

_MOST = 32
_MOST_RUNNING = 8
_PATIENCE = 5.0
"""Seconds for which somebody who asks is kept waiting."""
_ABANDONED = 10.0
"""Seconds after which what nobody has asked for again is ended."""


@dataclass(eq=False)
class _Running:
    task: asyncio.Task[Any]
    waiting: int = 0
    leaving: asyncio.TimerHandle | None = None


class Kept:
    """Results by what was asked, each of one version; belongs to one event loop."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._known: OrderedDict[Hashable, tuple[int, Any]] = OrderedDict()
        self._running: dict[Hashable, _Running] = {}

    async def get(
        self,
        what: Hashable,
        version: int,
        compute: Callable[[], Coroutine[Any, Any, Any]],
        hung_up: Callable[[], Coroutine[Any, Any, None]],
    ) -> Any:
        """Return the result, None if it is still being computed, `TOO_MUCH` or `GONE`.

        `compute` is cancelled when all who asked have hung up, or do not ask again. What fails is
        raised to whoever waits for it, and tried again by whoever asks next.
        """
        known = self._known.get(what)
        if known is not None and known[0] == version:
            return known[1]
        running = self._running.get(what)
        if running is None:
            if len(self._running) >= _MOST_RUNNING:
                return TOO_MUCH
            running = _Running(asyncio.ensure_future(self._compute(what, version, compute)))
            self._running[what] = running
            running.task.add_done_callback(lambda task: self._ended(what, task))
        gone = asyncio.ensure_future(hung_up())
        try:
            return await self._wait(what, running, gone)
        finally:
            gone.cancel()

    async def _wait(self, what: Hashable, running: _Running, gone: asyncio.Future[None]) -> Any:
        task = running.task
        running.waiting += 1
        if running.leaving is not None:
            running.leaving.cancel()
            running.leaving = None
        try:
            await asyncio.wait(
                [task, gone], timeout=min(self._patience, _PATIENCE),
                return_when=asyncio.FIRST_COMPLETED,
            )  # fmt: skip
        finally:
            running.waiting -= 1
            if not running.waiting and not task.done():
                seconds = 0.0 if gone.done() else _ABANDONED
                loop = asyncio.get_running_loop()
                running.leaving = loop.call_later(seconds, self._abandon, what)
        if not task.done() or task.cancelled():
            return GONE if gone.done() else None
        return task.result()

    async def _compute(
        self, what: Hashable, version: int, compute: Callable[[], Coroutine[Any, Any, Any]]
    ) -> Any:
        value = await compute()
        # Of the version that was asked for or a later one; written to meanwhile, it is drawn again.
        self._known[what] = (version, value)
        while len(self._known) > _MOST:
            self._known.popitem(last=False)
        return value

    def _abandon(self, what: Hashable) -> None:
        running = self._running.pop(what, None)
        if running is not None:
            running.task.cancel()

    def _ended(self, what: Hashable, task: asyncio.Task[Any]) -> None:
        running = self._running.get(what)
        if running is not None and running.task is task:
            del self._running[what]
            if running.leaving is not None:
                running.leaving.cancel()
        if not task.cancelled():
            task.exception()  # told to whoever waits; nobody may
