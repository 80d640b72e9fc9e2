"""No fork happens in the middle of another thread's transaction.

SQLite keeps its mutexes and the locks of files in the memory of the process. A child that is forked
in the middle of a transaction inherits them as they were: it waits for a mutex for ever, or takes
the locks of its parent for its own, and then reads and writes without any. So a fork waits until
nobody is in a transaction, and transactions that have not begun wait until it is over. Where that
takes too long, or where the thread that forks is in a transaction itself, the fork goes on, and its
child is told that it cannot use collections.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from lookalike.errors import CollectionError

_PATIENCE = 5.0


class _Gate:
    """Who is in a transaction now, in the whole process."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside: dict[int, int] = {}
        """How many transactions each thread is in."""
        self._forks = 0
        """How many threads are about to fork."""
        self._forking: int | None = None
        """The thread that holds the condition while it forks."""
        self._unfit = False

    @contextmanager
    def transaction(self) -> Iterator[None]:
        if self._unfit:
            raise CollectionError(
                "this process was forked in the middle of a transaction on a collection, so that "
                "databases cannot be used safely here; fork while no thread reads or writes, or "
                "start processes by 'spawn' or 'forkserver'"
            )
        me = threading.get_ident()
        with self._changed:
            while self._forks and me not in self._inside:
                self._changed.wait()
            self._inside[me] = self._inside.get(me, 0) + 1
        try:
            yield
        finally:
            with self._changed:
                self._inside[me] -= 1
                if not self._inside[me]:
                    del self._inside[me]
                self._changed.notify_all()

    def before(self) -> None:
        self._changed.acquire()
        self._forking = me = threading.get_ident()
        self._forks += 1
        deadline = time.monotonic() + _PATIENCE
        while any(thread != me for thread in self._inside):
            left = deadline - time.monotonic()
            if left <= 0:
                break
            self._changed.wait(left)
            self._forking = me

    def after_in_parent(self) -> None:
        if self._forking != threading.get_ident():
            return  # interrupted before it began
        self._forks -= 1
        self._forking = None
        self._changed.notify_all()
        self._changed.release()

    def after_in_child(self) -> None:
        me = threading.get_ident()
        self._unfit = self._unfit or bool(self._inside)
        self._inside = {thread: count for thread, count in self._inside.items() if thread == me}
        self._changed = threading.Condition()
        self._forks, self._forking = 0, None


_gate = _Gate()
transaction = _gate.transaction
os.register_at_fork(
    before=_gate.before,
    after_in_parent=_gate.after_in_parent,
    after_in_child=_gate.after_in_child,
)
