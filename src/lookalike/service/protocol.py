"""Connections that bring no request, or take no answer: they are not waited for without end, nor
without number."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["BoundedProtocol"]

_FULL = (
    b"HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\nretry-after: 1\r\n"
    b"connection: close\r\ncontent-length: %d\r\n\r\n"
)
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_FULL_BODY = (
    b'{"error":{"code":"too_many_connections","kind":"CollectionBusyError","message":'
    b'"there are as many connections as the service takes; try again in a second"}}'
)


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol, with limits that the gate knows: the time that the headers of a request
    take, and the end of a connection; and the number of connections.
    """

    _waiting: asyncio.TimerHandle | None = None
    _looking: asyncio.TimerHandle | None = None
    _closing = False

    def connection_made(self, transport: Any) -> None:
        """Begin, unless there are too many."""
        super().connection_made(transport)
        self._look_later()
        if len(self.connections) > self.app.most_connections:
            transport.write(_FULL % len(_FULL_BODY) + _FULL_BODY)
            transport.close()
            return
        self._await_headers()

    def on_message_begin(self) -> None:
        """Begin to wait for the rest of the headers."""
        super().on_message_begin()
        self._await_headers()

    def on_headers_complete(self) -> None:
        """Wait no more."""
        self._stop_waiting()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._stop_waiting()
        if self._looking is not None:
            self._looking.cancel()
        super().connection_lost(exc)

    def _await_headers(self) -> None:
        if self._waiting is None:
            self._waiting = self.loop.call_later(self.app.slow_limit, self._too_slow)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _too_slow(self) -> None:
        self._waiting = None
        if not self.transport.is_closing():
            self.transport.write(_TOO_SLOW)
            self.transport.close()

    def _look_later(self) -> None:
        self._looking = self.loop.call_later(self.app.slow_limit / 2, self._look)

    def _look(self) -> None:
        """End a connection that is being closed, but whose other end does not take the rest."""
        if self._closing:
            self.transport.abort()
            return
        self._closing = self.transport.is_closing()
        self._look_later()
