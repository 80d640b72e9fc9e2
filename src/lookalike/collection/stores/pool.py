"""Connections that threads share, and forks, which wait for transactions to end.

SQLite keeps its mutexes and file locks in the memory of the process. A child that is forked in the
middle of a transaction inherits them: it waits for a mutex for ever, or takes the locks of its
parent for its own and reads and writes without any. So a fork waits until no thread is in a
transaction, and new transactions wait until the fork is over. If that takes too long, or if the
forking thread is in a transaction itself, the fork goes on, and the child cannot use collections.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from lookalike.errors import CollectionError

_IDLE = 8
_PATIENCE = 5.0  # seconds for which a fork waits
_inherited: list[object] = []
"""Connections in the middle of a parent's transaction: closing them here would roll that back."""


class _Gate:
    """Knows which threads of the process are in a transaction."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside: dict[int, int] = {}  # the number of transactions of each thread
        self._forks = 0  # the number of threads that are about to fork
        self._forking: int | None = None  # the thread that holds the condition while it forks
        self._unfit = False

    @contextmanager
    def transaction(self) -> Iterator[None]:
        if self._unfit:
            raise CollectionError(
                "this process was forked during a transaction on a collection, so it cannot use "
                "databases safely. Fork while no thread reads or writes, or start processes with "
                "'spawn' or 'forkserver'"
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
os.register_at_fork(
    before=_gate.before,
    after_in_parent=_gate.after_in_parent,
    after_in_child=_gate.after_in_child,
)


class Pool:
    """Idle connections. One that met an error is closed and not used again."""

    def __init__(self, connect: Callable[[], Any], usable: Callable[[Any], bool]) -> None:
        self._connect = connect
        self._usable = usable
        self._idle: list[Any] = []
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._closed = False

    @contextmanager
    def connection(self) -> Iterator[Any]:
        """Lend a connection; it comes back with its transaction ended."""
        self.refuse_other_process()
        with _gate.transaction():
            connection = self._take()
            try:
                yield connection
                self.refuse_other_process()
            except BaseException:
                if os.getpid() != self._process:
                    _inherited.append(connection)
                    raise
                with suppress(Exception):
                    connection.close()  # which rolls back what was not committed
                raise
            with self._lock:
                if not self._closed and len(self._idle) < _IDLE:
                    self._idle.append(connection)
                    return
            connection.close()

    def refuse_other_process(self) -> None:
        """Raise if this process was forked since: connections cannot be shared with the parent."""
        if os.getpid() != self._process:
            raise CollectionError(
                f"this collection was opened in process {self._process}, and this is process "
                f"{os.getpid()}: open it again after the fork"
            )

    def close(self) -> None:
        """Close idle connections; lent ones are closed when they come back."""
        if os.getpid() != self._process:
            return  # the lock may be held by a thread of the parent
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take(self) -> Any:
        with self._lock:
            if self._closed:
                raise CollectionError("the collection is closed; open it again")
            while self._idle:
                connection = self._idle.pop()
                if self._usable(connection):
                    return connection
                with suppress(Exception):
                    connection.close()
        return self._connect()
