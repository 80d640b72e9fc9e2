"""Work that takes long and changes nothing: the end of the service does not wait for it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

__all__ = ["Aside"]

T = TypeVar("T")


class Aside:
    """One thread, which does one thing after the other.

    Those of an executor would be waited for when the process ends, for as long as what they do
    takes: minutes, in a collection of millions.
    """

    def __init__(self, name: str) -> None:
        self._waiting: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = (
            queue.SimpleQueue()
        )
        self._closed = False
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Do this when its turn comes."""
        future: Future[T] = Future()
        self._waiting.put((future, work))
        return future

    def close(self) -> None:
        """Begin nothing more, and end when what is going on has ended."""
        self._closed = True
        self._waiting.put(None)

    def _work(self) -> None:
        while (one := self._waiting.get()) is not None:
            future, work = one
            if self._closed:
                future.cancel()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)
