"""Work that can be canceled from another thread.

    cancellation = Cancellation()
    future = executor.submit(cancellation.run, index.search, queries, 10)
    cancellation.cancel()  # `search` raises `Canceled` within about a second

The core checks for cancellation between pieces of work, on all its threads. Loops in Python call
`stop_if_canceled`. Database statements are interrupted: see `interruptible`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import ParamSpec, TypeVar

from lookalike import _native

Canceled = _native.Cancelled
"""Raised in work that was canceled. Like KeyboardInterrupt it is not an `Exception`, so that code
that reports an error and goes on does not go on with it."""

stop_if_canceled = _native.stop_if_cancelled
"""Raise `Canceled` if the work of this thread was canceled."""

_AGAIN = 0.1  # seconds between two interruptions: one between two statements has no effect

P = ParamSpec("P")
T = TypeVar("T")


class _Thread(threading.local):
    cancellation: Cancellation | None = None
    shielded = False


_thread = _Thread()


class Cancellation:
    """Cancels one piece of work, which runs in one thread."""

    def __init__(self) -> None:
        self._flag = _native.Cancellation()
        self._lock = threading.Lock()
        self._shielded = False
        self._interrupts: list[_Interrupt] = []

    def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `work` returns; raise `Canceled` once it is canceled."""
        with _working(self, shielded=False):
            stop_if_canceled()
            return work(*args, **kwargs)

    def cancel(self, *, shielded_too: bool = False) -> None:
        """Cancel the work; its `shielded` parts continue unless `shielded_too` is set."""
        with self._lock:
            self._flag.cancel(shielded_too)
            self._interrupt()

    def _wanted(self) -> bool:
        """Return whether the work has to end now. The caller holds the lock."""
        return self._flag.cancelled(self._shielded)

    def _interrupt(self) -> None:
        if self._wanted():
            for interrupt in self._interrupts:
                interrupt.begin()

    def _shield(self, shielded: bool) -> None:
        with self._lock:
            self._shielded = shielded
            self._interrupt()


class _Interrupt:
    """Interrupts statements repeatedly from a separate thread."""

    def __init__(self, work: Cancellation, interrupt: Callable[[], object]) -> None:
        self._work = work
        self._interrupt = interrupt
        self._ended = threading.Event()
        self._begun = False

    def begin(self) -> None:
        """Start the thread, once."""
        if not self._begun:
            self._begun = True
            threading.Thread(target=self._repeat, name="interrupt", daemon=True).start()

    def end(self) -> None:
        """Stop interrupting; return when no interruption is under way."""
        self._ended.set()
        with self._work._lock:
            self._work._interrupts.remove(self)

    def _repeat(self) -> None:
        while not self._ended.is_set():
            with self._work._lock:
                if self._work._wanted() and not self._ended.is_set():
                    with suppress(Exception):  # a connection that is closed has nothing to end
                        self._interrupt()
            self._ended.wait(_AGAIN)


@contextmanager
def _working(cancellation: Cancellation, shielded: bool) -> Iterator[None]:
    before, was_shielded = _thread.cancellation, _thread.shielded
    _set(cancellation, shielded)
    try:
        yield
    finally:
        _set(before, was_shielded)


def _set(cancellation: Cancellation | None, shielded: bool) -> None:
    _native.work_under(None if cancellation is None else cancellation._flag, shielded)
    _thread.cancellation, _thread.shielded = cancellation, shielded


@contextmanager
def shielded() -> Iterator[None]:
    """Complete this part of the work even if the rest is canceled: others rely on it."""
    work = _thread.cancellation
    if work is None or _thread.shielded:
        yield
        return
    work._shield(True)
    try:
        stop_if_canceled()  # by now nothing interrupts this part
        with _working(work, shielded=True):
            yield
    finally:
        work._shield(False)


@contextmanager
def interruptible(interrupt: Callable[[], object]) -> Iterator[None]:
    """Call `interrupt` if the work of this thread is canceled; then raise `Canceled` at the end."""
    work = _thread.cancellation
    if work is None:
        yield
        return
    guard = _Interrupt(work, interrupt)
    with work._lock:
        work._interrupts.append(guard)
    try:
        try:
            stop_if_canceled()
            yield
        finally:
            guard.end()
    except Exception as error:
        try:
            stop_if_canceled()
        except Canceled:
            raise Canceled from error
        raise
    stop_if_canceled()


@contextmanager
def acquired(lock: threading.Lock) -> Iterator[None]:
    """Hold a lock; waiting for it ends when the work of this thread is canceled."""
    while not lock.acquire(timeout=-1 if _thread.cancellation is None else _AGAIN):
        stop_if_canceled()
    try:
        yield
    finally:
        lock.release()


def wait_at_once(seconds: float) -> float:
    """Return how long to wait before `stop_if_canceled`: less if this work can be canceled."""
    return seconds if _thread.cancellation is None else min(seconds, _AGAIN)
