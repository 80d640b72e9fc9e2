"""A few connections that threads share."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Generic, Protocol, TypeVar

from lookalike.collection.stores.forking import transaction
from lookalike.errors import CollectionError

_IDLE = 8

_inherited: list[object] = []
"""Connections in the middle of a parent's transaction: closing them here would roll that back."""


class _Closable(Protocol):
    def close(self) -> Any: ...


Connection = TypeVar("Connection", bound=_Closable)


class Pool(Generic[Connection]):
    """Open connections that nobody uses now. One that met an error is closed and not used again."""

    def __init__(
        self,
        connect: Callable[[], Connection],
        usable: Callable[[Connection], bool] = lambda connection: True,
    ) -> None:
        self._connect = connect
        self._usable = usable
        self._idle: list[Connection] = []
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._closed = False

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Lend a connection; it comes back with its transaction ended."""
        self.refuse_other_process()
        with transaction():
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
        """Close what is idle; what is lent is closed when it comes back."""
        if os.getpid() != self._process:
            return  # the lock may be held by a thread that is not here
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take(self) -> Connection:
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
