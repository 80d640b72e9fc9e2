"""Operations that another thread can cancel, and whose progress it can read.

    operation = Operation()
    future = executor.submit(operation.run, index.search, queries, 10)
    operation.done()  # 0.25: a quarter is done
    operation.cancel()  # `search` raises `Canceled` within about a second

The core checks for cancellation and reports progress between pieces of work, on all its threads.
Loops in Python call `stop_if_canceled` and `report`, or go through their pieces `in_parts`
or `in_batches`.
Database statements are interrupted: see `interruptible`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import ParamSpec, TypeVar

from lookalike import _native

Canceled = _native.Canceled
"""Raised in work that was canceled. Like KeyboardInterrupt it is not an `Exception`, so that code
that reports an error and goes on does not go on with it."""

stop_if_canceled = _native.stop_if_canceled
"""Raise `Canceled` if the operation of this thread was canceled."""

_AGAIN = 0.1  # seconds between two interruptions: one between two statements has no effect

P = ParamSpec("P")
T = TypeVar("T")


class _Thread(threading.local):
    """The operation of a thread, and the part of it that its code does, as a share of the whole."""

    operation: Operation | None = None
    shielded = False
    begin, width = 0.0, 1.0


_thread = _Thread()


class Operation:
    """A piece of work that runs in one thread and is watched or canceled by others."""

    def __init__(self) -> None:
        self._core = _native.Operation()
        self._lock = threading.Lock()
        self._shielded = False
        self._interrupts: list[_Interrupt] = []

    def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `work` returns; raise `Canceled` once it is canceled."""
        with self.working():
            stop_if_canceled()
            return work(*args, **kwargs)

    def working(self) -> AbstractContextManager[None]:
        """Return a context in which this thread works on the operation."""
        return _working(self, shielded=False)

    def done(self) -> float | None:
        """Return the share of the work that is done; None while nothing is known.

        It starts again if the work goes through its data several times without saying how often.
        """
        share = self._core.done()
        return None if share < 0 else min(share, 1.0)

    def cancel(self, *, shielded_too: bool = False) -> None:
        """Cancel the work; its `shielded` parts continue unless `shielded_too` is set."""
        with self._lock:
            self._core.cancel(shielded_too)
            self._interrupt()

    def _wanted(self) -> bool:
        """Return whether the work has to end now. The caller holds the lock."""
        return self._core.canceled(self._shielded)

    def _interrupt(self) -> None:
        if self._wanted():
            for interrupt in self._interrupts:
                interrupt.begin()

    def _shield(self, shielded: bool) -> None:
        with self._lock:
            self._shielded = shielded
            self._interrupt()


def report(done: float, total: float = 1) -> None:
    """Report how much of the current part of this thread's operation is done."""
    if _thread.operation is not None and total:
        _thread.operation._core.set_done(_thread.begin + _thread.width * done / total)


@contextmanager
def in_part(begin: float, end: float, total: float = 1) -> Iterator[None]:
    """Run what is done between `begin` and `end` of the `total` of the current part."""
    outer = _thread.begin, _thread.width
    if total:
        _place(outer[0] + outer[1] * begin / total, outer[1] * (end - begin) / total)
    report(0)
    try:
        yield
    finally:
        _place(*outer)


def in_parts(items: Sequence[T]) -> Iterator[T]:
    """Yield items, each of which is an equal part of this thread's operation."""
    for place, item in enumerate(items):
        with in_part(place, place + 1, len(items)):
            yield item


def in_batches(batches: Iterable[T], done: Callable[[], float]) -> Iterator[T]:
    """Yield batches, each of which is the part up to the share that `done` returns then."""
    begin = 0.0
    for batch in batches:
        end = done()
        with in_part(begin, end):
            yield batch
        begin = end


class _Interrupt:
    """Interrupts statements repeatedly from a separate thread."""

    def __init__(self, work: Operation, interrupt: Callable[[], object]) -> None:
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
def _working(operation: Operation, shielded: bool) -> Iterator[None]:
    before, was_shielded = _thread.operation, _thread.shielded
    outer = _thread.begin, _thread.width
    if operation is not before:
        _thread.begin, _thread.width = 0.0, 1.0
    _thread.operation, _thread.shielded = operation, shielded
    _place(_thread.begin, _thread.width)
    try:
        yield
    finally:
        _thread.operation, _thread.shielded = before, was_shielded
        _place(*outer)


def _place(begin: float, width: float) -> None:
    """Set the part that this thread does, and tell the core."""
    _thread.begin, _thread.width = begin, width
    core = None if _thread.operation is None else _thread.operation._core
    _native.work_on(core, _thread.shielded, begin, width)


@contextmanager
def shielded() -> Iterator[None]:
    """Complete this part of the work even if the rest is canceled: others rely on it."""
    work = _thread.operation
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
    work = _thread.operation
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
    while not lock.acquire(timeout=-1 if _thread.operation is None else _AGAIN):
        stop_if_canceled()
    try:
        yield
    finally:
        lock.release()


def wait_at_once(seconds: float) -> float:
    """Return how long to wait before `stop_if_canceled`: less if this work can be canceled."""
    return seconds if _thread.operation is None else min(seconds, _AGAIN)
