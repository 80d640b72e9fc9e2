"""Pages to worker processes and back, in order.

Resiliparse holds Python's lock while it parses, so that threads would wait for each other; and
whatever a page does to its parser is done to a process that nobody misses.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import astuple, dataclass
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, cast

from lookalike.errors import MissingDependencyError
from lookalike.pages.extract import check_installed
from lookalike.pages.limits import PageLimits
from lookalike.pages.page import Page, RawPage, Refused
from lookalike.pages.worker import read_frame, write_frame

__all__ = ["read_pages"]

_BATCH_PAGES = 64
_BATCH_BYTES = 2 << 20
_AHEAD = 2
"""Batches for each worker that are on their way, read before anybody asks."""
_COMMAND = "import sys; sys.path[:] = {path!r}; from lookalike.pages.worker import main; main()"


def read_pages(
    pages: Iterable[RawPage],
    wanted: Collection[str],
    limits: PageLimits | None = None,
    *,
    threads: int = 1,
) -> Iterator[Page | Refused]:
    """Yield what is wanted (`FIELDS`) of each page, in order, by so many processes.

    No page raises: one that is beyond the limits, or that brings its parser down, is `Refused`. No
    more than a few batches are held.
    """
    check_installed()
    limits = limits or PageLimits()
    fields = [name for name in Page.__dataclass_fields__ if name in wanted]
    waiting: deque[Future[list[Page | Refused]]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for batch in _batches(pages):
                waiting.append(pool.submit(_read_batch, batch, fields, limits))
                while len(waiting) > _AHEAD * threads:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _batches(pages: Iterable[RawPage]) -> Iterator[list[RawPage]]:
    batch: list[RawPage] = []
    size = 0
    for page in pages:
        batch.append(page)
        size += len(page.html)
        if size >= _BATCH_BYTES or len(batch) == _BATCH_PAGES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _read_batch(
    pages: list[RawPage], wanted: list[str], limits: PageLimits
) -> list[Page | Refused]:
    """Return what was found, a worker for each page that its predecessor did not survive.

    A page is refused if it takes a second worker down, too: somebody else may have ended the first.
    """
    found: list[Page | Refused] = []
    suspected = -1
    while len(found) < len(pages):
        worker = _Worker.take()
        try:
            found += worker.answers(pages[len(found) :], wanted, limits)
        except BaseException:
            worker.end()
            raise
        if worker.death is None:
            worker.give_back()
        elif worker.death != -signal.SIGPROF and suspected != len(found):
            suspected = len(found)
        else:
            found.append(Refused(_reason(worker.death, limits)))
    return found


def _reason(status: int, limits: PageLimits) -> str:
    if status == -signal.SIGPROF:
        return f"took more than {limits.seconds:,} s to be parsed"
    if status == -signal.SIGKILL:
        return "took the process down that parsed it (killed, perhaps for lack of memory)"
    return f"took the process down that parsed it (status {status})"


@dataclass(eq=False)
class _Worker:
    """A process, which is used again and again."""

    process: subprocess.Popen[bytes]
    owner: int
    death: int | None = None
    """Its exit status, once a page has ended it."""

    @classmethod
    def take(cls) -> _Worker:
        """Return one that has nothing to do, or a new one."""
        with _LOCK:
            while _IDLE:
                worker = _IDLE.pop()
                # After a fork, a parent's workers are not the child's.
                if worker.owner == os.getpid() and worker.process.poll() is None:
                    return worker
                worker.end()
        command = _COMMAND.format(path=[path or str(Path.cwd()) for path in sys.path])
        if not sys.executable:
            raise MissingDependencyError(
                "reading web pages needs a Python program to start, and sys.executable names none"
            )
        process = subprocess.Popen(
            [sys.executable, "-c", command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            close_fds=True,
        )
        return cls(process, os.getpid())

    def answers(
        self, pages: list[RawPage], wanted: list[str], limits: PageLimits
    ) -> Iterator[Page | Refused]:
        """Yield an answer for each page, and end early, with `death`, where the process did."""
        try:
            request = cast(BinaryIO, self.process.stdin)
            write_frame(request, (vars(limits), wanted, [astuple(page) for page in pages]))
            request.flush()
            for _ in pages:
                yield _answer(read_frame(cast(BinaryIO, self.process.stdout)))
        except (EOFError, BrokenPipeError):
            self.death = self.end()

    def give_back(self) -> None:
        """Let others have it."""
        with _LOCK:
            _IDLE.append(self)

    def end(self) -> int:
        """End it, unless it has; return its status."""
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                cast(BinaryIO, stream).close()
        if self.owner != os.getpid():
            return 0  # it is the parent's, and goes on
        if self.process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self.process.wait(0.5)
            self.process.kill()
        return self.process.wait()


def _answer(found: Any) -> Page | Refused:
    return Refused(found) if isinstance(found, str) else Page(*found)


_LOCK = Lock()
_IDLE: list[_Worker] = []


@atexit.register
def _end_all() -> None:
    """End all workers that wait: they would end by themselves when this process has."""
    with _LOCK:
        idle, _IDLE[:] = list(_IDLE), []
    for worker in idle:
        if worker.owner == os.getpid():
            worker.process.kill()
            worker.end()
