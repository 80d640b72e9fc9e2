"""A few connections that threads share."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Generic, Protocol, TypeVar

from lookalike.errors import CollectionError

__all__ = ["Pool"]

_IDLE = 8


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
        connection = self._take()
        try:
            yield connection
        except BaseException:
            with suppress(Exception):
                connection.close()  # which rolls back what was not committed
            raise
        with self._lock:
            if not self._closed and len(self._idle) < _IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Close what is idle; what is lent is closed when it comes back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        if os.getpid() == self._process:
            for connection in idle:
                connection.close()

    def _take(self) -> Connection:
        if os.getpid() != self._process:
            raise CollectionError(
                f"this collection was opened in process {self._process}, and this is process "
                f"{os.getpid()}: open it again after the fork"
            )
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
