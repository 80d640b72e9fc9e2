"""HTTP/1.1 with limits on the size and the time of requests.

uvicorn's protocol reads requests; this module adds limits on headers, trailers, URLs, pipelined
requests and time. A connection that exceeds a limit gets an error and is closed. A connection whose
request was answered before it had arrived completely is closed, too: its body may never end.
"""

from __future__ import annotations

import asyncio
import resource
import time
from collections import Counter
from collections.abc import Callable
from http import HTTPStatus
from ipaddress import IPv6Address
from typing import Any, NamedTuple, Protocol, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from lookalike.service.formats import JSON, encode
from lookalike.service.problems import Problem
from lookalike.service.settings import ip_address
from lookalike.shown import brief

_MOST_HEAD = 32 << 10
"""Maximum bytes of the headers of a request, of its trailers, and of all else but its body."""
_MOST_URL = 8 << 10
_MOST_HEADERS = 100
_MOST_PIPELINED = 4
"""Maximum number of pipelined requests that wait on a connection."""
_FED = 8 << 10
"""Bytes of headers that the parser gets at once, between two checks of the limits."""
_FED_OF_BODIES = 64 << 10
_WRITE_BUFFER = 16 << 10
"""Bytes of answers that may wait for the client."""
_LINGER = 5.0
"""Seconds during which input is still read after an early answer. Otherwise the answer would not
reach a client that sends everything before it reads."""
_MOST_DROPPED = 64 << 20
"""Maximum number of bytes that are read and dropped meanwhile."""
LINGERING, IDLE, WAITING, WORKING = range(4)
_PATIENCE = 1.0
_OTHER_FILES = 256
"""Open files beside connections: databases, the log, jobs."""


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with limits, which the middleware sets."""

    _waiting: asyncio.TimerHandle | None = None
    _looking: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None
    _lingering: asyncio.TimerHandle | None = None
    _closing = False
    _deaf = False
    """Whether input is dropped, since the connection will be closed after the pending answers."""
    _ending = False
    _in_head = True
    """Whether the next byte belongs to the headers of a request, or comes before one."""
    _progress = False
    _loose = 0
    """Bytes since the headers were complete or a part of a body arrived."""
    _head = 0
    _trailers = 0
    _dropped = 0
    _answered: RequestResponseCycle | None = None
    """The current or last request."""

    def connection_made(self, transport: Any) -> None:
        """Accept the connection, if there is room for it."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=_WRITE_BUFFER)
        self._look_later()
        if not self.app.connections.admit(self, self.client[0] if self.client else ""):
            self._deaf = True
            message = "too many connections; try again in a second"
            self._write(Problem(429, "too_many_connections", message, retry_after=1))
            transport.close()
            return
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timers and the current request."""
        self.app.connections.remove(self)
        for timer in (self._waiting, self._looking, self._stalled, self._lingering):
            if timer is not None:
                timer.cancel()
        # uvicorn notifies only the last request, but an earlier one may be in progress.
        answered = self._answered
        if answered is not None and not answered.response_complete:
            answered.disconnected = True
            answered.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read a part of a request within the limits."""
        if self._deaf:
            self._drop(len(data))
            return
        self._unset_keepalive_if_required()
        view = memoryview(data)
        try:
            begin = 0
            while begin < len(view):
                end = begin + (_FED if self._in_head else _FED_OF_BODIES)
                self._feed(view[begin:end])
                if self._deaf:
                    return
                begin = end
        except httptools.HttpParserUpgrade:  # the upgrade is ignored
            self._deaf = True
            self.cycle.keep_alive = False
            return
        except (httptools.HttpParserError, Problem) as error:
            self._refuse(_problem_of(error))
            return
        if self._in_head and self._idle():
            self._await_head()

    def on_message_begin(self) -> None:
        """Wait for the rest of the headers."""
        super().on_message_begin()
        self._head = self._trailers = 0
        if len(self.pipeline) >= _MOST_PIPELINED:
            self._deaf = True
            self.cycle.keep_alive = False  # of the last request that is answered
            raise Problem(429, "pipelined", "too many pipelined requests; wait for the answers")
        self._await_head()

    def on_url(self, url: bytes) -> None:
        """Take a part of the URL."""
        super().on_url(url)
        if len(self.url) > _MOST_URL:
            message = f"the URL has more than {_MOST_URL} bytes; send long values in a body"
            raise Problem(414, "url_too_long", message)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; trailers are counted and dropped."""
        self._head += len(name) + len(value) + 4
        if self._in_head:
            super().on_header(name, value)
        else:
            self._trailers += 1
        most = _MOST_HEADERS if self._in_head else _MOST_HEADERS + len(self.headers)
        if self._head > _MOST_HEAD or len(self.headers) + self._trailers > most:
            raise _too_large_head()

    def on_headers_complete(self) -> None:
        """Begin to answer."""
        if self._head + len(self.url) > _MOST_HEAD:
            raise _too_large_head()
        self._stop_waiting()
        super().on_headers_complete()
        self._in_head, self._progress, self._head = False, True, 0
        cycle = self.cycle
        cycle.transport = _Answering(cycle, self.transport, self.end)  # type: ignore[assignment]
        self.scope["arrived"] = lambda: not cycle.more_body  # type: ignore[typeddict-unknown-key]
        self.app.connections.mark(self, WORKING)

    def on_body(self, body: bytes) -> None:
        """Take a part of a body."""
        self._progress = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that a request has arrived."""
        self._in_head = True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Continue with the next request, or wait for it."""
        if self._answered is not None:
            cast(_Answering, self._answered.transport).flush()
        if self._ending:
            self.server_state.total_requests += 1
            return
        super().on_response_complete()
        self._loose = 0
        if self._idle():
            self.app.connections.mark(self, IDLE if self._waiting is None else WAITING)

    def pause_writing(self) -> None:
        """Wait until the client reads, within the time limit."""
        super().pause_writing()
        if self._stalled is None:
            self._stalled = self.loop.call_later(self.app.slow_limit, self.transport.abort)

    def resume_writing(self) -> None:
        """Continue to write."""
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
        super().resume_writing()

    def give_way(self) -> None:
        """Close at once to make room for another connection."""
        if self._waiting is not None and self._idle() and not self._ending:
            self._write(_slow_head(self.app.slow_limit))
            self.transport.close()
        else:
            self.transport.abort()

    def end(self) -> None:
        """Close the connection, after dropping remaining input for a while."""
        if self._ending:
            return
        whole = self._in_head and not self._deaf
        self._deaf = self._ending = True
        self._stop_waiting()
        if whole or self.transport.is_closing():
            self.transport.close()
            return
        self.transport.write_eof()
        self.flow.resume_reading()
        self.app.connections.mark(self, LINGERING)
        seconds = min(_LINGER, self.app.slow_limit)
        self._lingering = self.loop.call_later(seconds, self.transport.abort)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answered = cycle
        super()._start_asgi_task(cycle, app)

    def _feed(self, part: memoryview) -> None:
        self._progress = False
        self.parser.feed_data(part)
        self._loose = 0 if self._progress else self._loose + len(part)
        if self._loose > _MOST_HEAD:
            raise _too_large_head()

    def _drop(self, size: int) -> None:
        """Drop input after the last answered request."""
        self._dropped += size
        if not self._ending:
            self.flow.pause_reading()
        elif self._dropped > _MOST_DROPPED:
            self.transport.abort()

    def _idle(self) -> bool:
        """Return whether no request is in progress or waiting."""
        return not self.pipeline and (self._answered is None or self._answered.response_complete)

    def _refuse(self, problem: Problem) -> None:
        """Answer a bad request after the previous ones, then close the connection."""
        self._deaf = True
        self._stop_waiting()
        answered = self._answered
        broken = None if self._in_head else self.cycle  # the request whose body is at fault
        if broken is not None and broken is not answered:
            self.pipeline.popleft()
        if answered is not None and not answered.response_complete and broken is not answered:
            last = self.pipeline[0][0] if self.pipeline else answered
            last.keep_alive = False
            return
        if broken is not None and broken.response_started:
            return  # its end closes the connection
        if broken is not None:
            broken.disconnected = True
            broken.message_event.set()
        self._write(problem)
        self.end()

    def _write(self, problem: Problem) -> None:
        self.app.count_refused(problem)
        self.transport.write(_answer(problem))

    def _await_head(self) -> None:
        if self._waiting is None:
            self.app.connections.mark(self, WAITING if self._idle() else WORKING)
            self._waiting = self.loop.call_later(self.app.slow_limit, self._too_slow)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _too_slow(self) -> None:
        self._waiting = None
        if not self.transport.is_closing():
            self._refuse(_slow_head(self.app.slow_limit))

    def _look_later(self) -> None:
        self._looking = self.loop.call_later(self.app.slow_limit / 2, self._look)

    def _look(self) -> None:
        """Abort a closing connection whose client does not read the rest."""
        if self._closing:
            self.transport.abort()
            return
        self._closing = self.transport.is_closing()
        self._look_later()


class _Answering:
    """The transport of one request, whose headers leave together with the first of the body.

    Closing it closes the connection gracefully.
    """

    def __init__(
        self, cycle: RequestResponseCycle, transport: asyncio.Transport, end: Callable[[], None]
    ) -> None:
        self._cycle, self._transport, self._end = cycle, transport, end
        self._headers: bytes | None = None  # which have not been written
        self._begun = False

    def write(self, data: bytes) -> None:
        """Write a part of the answer, or 100 Continue before it."""
        if self._headers is not None:
            self._transport.writelines((self._headers, data))
            self._headers = None
        elif self._cycle.response_started and not self._begun:
            self._headers, self._begun = data, True
        else:
            self._transport.write(data)

    def flush(self) -> None:
        """Write headers that no body follows."""
        if self._headers is not None:
            self.write(b"")

    def is_closing(self) -> bool:
        """Return whether the connection is being closed."""
        return self._transport.is_closing()

    def close(self) -> None:
        """Close the connection gracefully."""
        self.flush()
        self._end()


def _answer(problem: Problem) -> bytes:
    body = encode(problem.value(), JSON)
    headers = {"content-type": JSON, "content-length": str(len(body)), "connection": "close",
               "cache-control": "no-store", "x-content-type-options": "nosniff",
               **problem.headers}  # fmt: skip
    lines = [f"{name}: {value}\r\n" for name, value in headers.items()]
    start = f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}\r\n"
    return "".join([start, *lines, "\r\n"]).encode("ascii") + body


def _too_large_head() -> Problem:
    return Problem(
        431, "headers_too_large", "the headers, trailers or chunk extensions are too large; "
        f"expected at most {_MOST_HEADERS} headers and {_MOST_HEAD} bytes",
    )  # fmt: skip


def _slow_head(limit: float) -> Problem:
    message = f"the headers did not arrive within {limit:g} s; send them without pauses"
    return Problem(408, "slow_request", message)


def _problem_of(error: Exception) -> Problem:
    """Return the problem that a callback raised, which the parser wraps, or a parser error."""
    for one in (error, error.__context__):
        if isinstance(one, Problem):
            return one
    message = f"this is not a valid HTTP/1.1 request ({brief(str(error))})"
    return Problem(400, "bad_http", f"{message}; the service does not support TLS")


class Connection(Protocol):
    """A connection that can be closed."""

    def give_way(self) -> None:
        """Close at once to make room for another connection."""


class _Known(NamedTuple):
    address: str
    state: int
    since: float


class Connections:
    """The connections of one event loop, and which of them are closed to make room for others.

    A connection is lingering (its answer was sent, the rest of its request is dropped), idle (kept
    alive between requests), waiting (for the rest of the headers) or working. If there is no room
    for a new connection, another one is closed. The order is: the oldest lingering one, the oldest
    idle one, a waiting one of an address with more connections, and one that has waited for more
    than a second. Working connections are never closed. So one address cannot lock out others,
    even if all come from the address of a proxy.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: dict[Connection, _Known] = {}
        """In the order in which they entered their states."""

    def __len__(self) -> int:
        return len(self._known)

    def admit(self, connection: Connection, address: str) -> bool:
        """Add a new connection, which is waiting; return whether there is room for it."""
        address = _network(address)
        if len(self._known) >= self._most:
            other = self._dispensable(address)
            if other is None:
                return False
            self.remove(other)
            other.give_way()
        self._known[connection] = _Known(address, WAITING, time.monotonic())
        return True

    def mark(self, connection: Connection, state: int) -> None:
        """Set the state of a connection."""
        known = self._known.pop(connection, None)
        if known is not None:
            self._known[connection] = _Known(known.address, state, time.monotonic())

    def remove(self, connection: Connection) -> None:
        """Remove a closed connection."""
        self._known.pop(connection, None)

    def _dispensable(self, address: str) -> Connection | None:
        for state in (LINGERING, IDLE):
            for connection, known in self._known.items():
                if known.state == state:
                    return connection
        waiting = [one for one in self._known.items() if one[1].state == WAITING]
        counts = Counter(known.address for known in self._known.values())
        greedy, most = counts.most_common(1)[0]
        if most > counts[address] + 1:
            for connection, known in waiting:
                if known.address == greedy:
                    return connection
        if waiting and time.monotonic() - waiting[0][1].since > _PATIENCE:
            return waiting[0][0]
        return None


def allow_files(connections: int) -> None:
    """Raise the limit of open files for the connections, as far as allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        possible = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (possible, hard))


def _network(address: str) -> str:
    """Return the address of a client, or its 64-bit network for IPv6."""
    parsed = ip_address(address)
    if not isinstance(parsed, IPv6Address):
        return address
    mapped = parsed.ipv4_mapped
    return str(mapped) if mapped is not None else parsed.packed[:8].hex()
