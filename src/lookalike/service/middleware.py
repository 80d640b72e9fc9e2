"""Checks before every route: host, origin, API key and number of requests.

The middleware also counts and logs requests, and adds security headers.
"""

from __future__ import annotations

import re
import socket
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import getrandbits
from urllib.parse import unquote_to_bytes

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from lookalike.service.formats import JSON, encode
from lookalike.service.keys import NO_KEY, Key, KeyFile
from lookalike.service.problems import Disconnected, Problem, problem_of
from lookalike.service.protocol import Connections
from lookalike.service.settings import ServeSettings, ip_address, loopback
from lookalike.service.telemetry import Log, Metrics
from lookalike.shown import brief

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
_NOT_KEPT = (b"cache-control", b"no-store")
_PROTECTED = ("/v1/", "/metrics")
_OPEN = ("/v1/openapi.json",)
_ALWAYS = ("/healthz", "/readyz")
_ONCE = ("host", "authorization", "x-api-key", "content-length", "content-type", "origin")


@dataclass(slots=True)
class RequestInfo:
    """Headers, key, route and status of a request."""

    headers: dict[str, str]
    key: Key = NO_KEY
    route: str = "none"
    status: int = 0
    started: bool = False
    id: str = field(default_factory=lambda: f"{getrandbits(48):012x}")


class Middleware:
    """The ASGI application around FastAPI's router.

    It handles errors itself. So FastAPI's own layers around the router are skipped, which would
    take a fifth of the time of a query.
    """

    def __init__(self, app: FastAPI, settings: ServeSettings, metrics: Metrics, log: Log) -> None:
        self._app = app
        self._hosts = Hosts(settings.host, settings.allow_host)
        self._keys = None if settings.key_file is None else KeyFile(settings.key_file)
        self._most = self._most_per_key = settings.max_concurrent
        if self._keys is not None:
            self._most_per_key = max(1, self._most * 3 // 4)
        self.connections = Connections(settings.max_connections)
        self.slow_limit = settings.slow_limit
        """`BoundedProtocol` uses both."""
        self._metrics = metrics
        self._log = log
        self._running = 0
        self._by_key: Counter[str] = Counter()

    def count_refused(self, problem: Problem) -> None:
        """Count an error response."""
        self._metrics.refused.labels(problem.code).inc()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        start = time.perf_counter()
        info = RequestInfo({})
        scope["lookalike"], scope["app"] = info, self._app
        is_page = scope["path"].startswith("/page/") or scope["path"] == "/"
        own = _HEADERS if is_page else (*_HEADERS, _NOT_KEPT)

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                info.status, info.started = message["status"], True
                message["headers"] = [
                    *message.get("headers", ()), *own, (b"x-request-id", info.id.encode())
                ]  # fmt: skip
                arrived = scope.get("arrived")
                if arrived is not None and not arrived():  # the rest of its body is not read
                    message["headers"].append((b"connection", b"close"))
            await send(message)

        self._running += 1
        self._metrics.running.inc()
        try:
            self._check(scope, info)
            key = info.key.name
            self._by_key[key] += 1
            try:
                await self._app.router(scope, receive, answer)
            finally:
                self._by_key[key] -= 1
                if not self._by_key[key]:
                    del self._by_key[key]
        except (Problem, HTTPException) as error:
            problem = error if isinstance(error, Problem) else _no_route(scope, error)
            self.count_refused(problem)
            await response_to(problem)(scope, receive, answer)
        except Exception as error:
            if isinstance(error, Disconnected) or type(error).__name__ == "ClientDisconnect":
                info.status = 499  # client closed request
            else:
                self._log.failed("request failed", error, id=info.id, path=scope["path"])
                if info.started:
                    raise
                await response_to(problem_of(error))(scope, receive, answer)
        finally:
            self._running -= 1
            self._metrics.running.dec()
            seconds = time.perf_counter() - start
            self._metrics.request(info.route, scope["method"], info.status, seconds)
            if self._log.wants("info"):
                client = scope.get("client")
                self._log.say(
                    "info", "request", id=info.id, method=scope["method"], path=scope["path"],
                    status=info.status, ms=round(1000 * seconds, 2), key=info.key.name or None,
                    client=client[0] if client else None,
                )  # fmt: skip

    def _check(self, scope: Scope, info: RequestInfo) -> None:
        _check_encoding("path", scope.get("raw_path") or b"")
        _check_encoding("query string", scope["query_string"])
        headers = info.headers
        for raw, value in scope["headers"]:
            name = raw.decode("latin-1")
            if name in headers and name in _ONCE:
                raise Problem(400, "headers", f"duplicate header {name}; send it once")
            headers[name] = value.decode("latin-1")
        host, path = headers.get("host"), scope["path"]
        self._hosts.check(host)
        protected = path.startswith(_PROTECTED) and path not in _OPEN
        self._hosts.check_origin(
            host, headers.get("origin"), headers.get("sec-fetch-site") if protected else None
        )
        if self._running > self._most and path not in _ALWAYS:
            message = f"{self._most} requests are running; try again in a second"
            raise Problem(429, "too_many_requests", message, retry_after=1)
        if protected and self._keys is not None:
            info.key = self._known(self._keys, headers)
        # No single key can block the others.
        if self._by_key[info.key.name] >= self._most_per_key and path not in _ALWAYS:
            message = f"{self._most_per_key} requests with this key are running"
            message += "; try again in a second"
            raise Problem(429, "too_many_requests", message, retry_after=1)

    @staticmethod
    def _known(keys: KeyFile, headers: dict[str, str]) -> Key:
        kind, _, secret = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer":
            secret = headers.get("x-api-key", "")
        key = keys.find(secret.strip()) if secret else None
        if key is None:
            wrong = "invalid API key" if secret else "missing API key"
            raise Problem(401, "key", f"{wrong}; send the header `Authorization: Bearer KEY`")
        return key


def _check_encoding(what: str, raw: bytes) -> None:
    """Refuse bytes that are not UTF-8; decoded as U+FFFD, they would mean something else."""
    if raw.isascii() and b"%" not in raw:
        return
    try:
        unquote_to_bytes(raw).decode("utf-8")
    except UnicodeDecodeError as error:
        raise Problem(
            400, "encoding", f"the {what} {brief(raw[:200].decode('latin-1'))} is not UTF-8 "
            f"({error.reason}); encode it as UTF-8, then percent-encode the bytes",
        ) from None  # fmt: skip


def _no_route(scope: Scope, error: HTTPException) -> Problem:
    """Return the error for an unknown path or method."""
    path = brief(scope["path"])
    if error.status_code == 405:
        message = f"{path} does not support {brief(scope['method'])}"
        return Problem(405, "method", message, allow=(error.headers or {}).get("Allow"))
    message = f"there is no route {path}; GET /v1/openapi.json lists all routes"
    return Problem(404, "no_route", message)


def response_to(problem: Problem) -> Response:
    """Return the response for a problem."""
    return Response(encode(problem.value(), JSON), problem.status, problem.headers, JSON)


_HOST = re.compile(
    r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9](?:[A-Za-z0-9._-]{0,252}))(?::([0-9]{1,5}))?"
)


class Hosts:
    """Checks of the Host and Origin headers.

    A page of another site can send requests to a service on this machine. With DNS rebinding it can
    even read the answers. So the Host must be a name of this service, and requests of browsers must
    come from the service's own page.
    """

    def __init__(self, host: str, allowed: Iterable[str]) -> None:
        self._names = {one.strip("[]").lower() for one in ("localhost", host, *allowed)}
        self._addresses = not loopback(host)
        """Whether any IP address is allowed. A service that is not on loopback has keys, and the
        origin of a page that was loaded by name is not an address."""
        self._names |= {socket.gethostname().lower()} if self._addresses else {"127.0.0.1", "::1"}
        self._known: set[str] = set()

    def check(self, host: str | None) -> None:
        """Refuse a Host that is not a name of the service."""
        if host in self._known:
            return
        match = None if host is None else _HOST.fullmatch(host)
        name = "" if match is None else match[1].strip("[]").lower()
        if match is None or not (name in self._names or (self._addresses and ip_address(name))):
            raise Problem(
                421 if match else 400, "host", f"the Host is {brief(host)}, which is not a "
                "name of this service; use its address, or start it with --allow-host",
            )  # fmt: skip
        if len(self._known) < 100 and host is not None:
            self._known.add(host)

    @staticmethod
    def check_origin(host: str | None, origin: str | None, site: str | None) -> None:
        """Refuse a request that a browser sends for a page of another site."""
        page = None
        if origin is not None:
            scheme, _, rest = origin.partition("://")
            if scheme not in ("http", "https") or host is None or rest.lower() != host.lower():
                page = brief(origin)
        elif site not in (None, "same-origin", "none"):
            page = "another site"
        if page is not None:
            message = f"the request comes from a page of {page}"
            raise Problem(403, "origin", f"{message}; only the service's own page is allowed")
