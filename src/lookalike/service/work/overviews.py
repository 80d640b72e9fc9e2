"""Overviews of a collection, computed one after the other in a process that can be ended.

The comparisons of a million documents take minutes. A thread could not be told to stop; a process
is ended when nobody waits for it any more, when it takes too long, or with the service.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lookalike.processes import Worker
from lookalike.service.logs import Log
from lookalike.service.problems import Problem

__all__ = ["Overviews"]

_MODULE = "lookalike.service.work.overview_process"


class Overviews:
    """A line of those who want an overview; belongs to one event loop."""

    def __init__(self, seconds: float, log: Log) -> None:
        self._seconds = seconds
        self._log = log
        self._turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, "overview")
        self._run: _Run | None = None

    async def compute(self, order: dict[str, Any]) -> Any:
        """Return what the process answers to an order; when this is cancelled, it is ended."""
        async with self._turn:
            run = self._run = _Run()
            waiting = asyncio.get_running_loop().run_in_executor(self._thread, run.ask, order)
            try:
                async with asyncio.timeout(self._seconds):
                    answer = await waiting
            except TimeoutError:
                self._log.say("warning", "overview ended", kind=order["kind"], reason="time limit")
                raise self._too_long() from None
            finally:
                run.stop()
        if answer is None:
            raise Problem(
                503, "overview_failed", "the process that computed this has died, perhaps for want "
                "of memory; ask for less, or try again later", kind="CollectionError",
                retry_after=5,
            )  # fmt: skip
        if "failed" in answer:
            self._log.say("error", "overview failed", order=order["kind"], **answer["failed"])
        if "problem" in answer:
            raise Problem(**answer["problem"])
        return answer["value"]

    def close(self) -> None:
        """End what is being computed."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        if self._run is not None:
            self._run.stop()
        self._thread.shutdown(wait=True)

    def _too_long(self) -> Problem:
        return Problem(
            408, "overview_limit", f"this takes more than {self._seconds:g} s and was ended; ask "
            "with a smaller radius, begin a job for all pairs (POST .../pairs), or start the "
            "service with a larger --overview-limit",
        )  # fmt: skip


class _Run:
    """One order, and the process that has it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._worker: Worker | None = None
        self._stopped = False

    def ask(self, order: dict[str, Any]) -> dict[str, Any] | None:
        """Return the answer; None if the process has died, or was ended."""
        with self._lock:
            if self._stopped:
                return None
            worker = self._worker = Worker.take(_MODULE)
        answers: list[dict[str, Any]] = list(worker.answers(order, 1))
        with self._lock:
            self._worker = None  # which others may have from now on
        if not answers:
            return None
        worker.give_back()
        return answers[0]

    def stop(self) -> None:
        """End the process, if it has not answered yet."""
        with self._lock:
            self._stopped = True
            if self._worker is not None:
                self._worker.process.kill()
