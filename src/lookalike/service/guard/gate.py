"""The gate that every request goes through, before anything looks at what it wants.

It checks by which name the service was called, whether another site's page asks, whether there is
a key and room for one more request; it counts and logs, and sends the headers that a browser needs
to keep the page safe.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import getrandbits
from typing import Any, TypeAlias
from urllib.parse import unquote_to_bytes

from lookalike.service.formats import JSON, encode
from lookalike.service.guard.connections import Connections
from lookalike.service.guard.hosts import Hosts
from lookalike.service.guard.keys import ANYBODY, Key, KeyFile
from lookalike.service.logs import Log
from lookalike.service.metrics import Metrics
from lookalike.service.problems import ClientGone, Problem, problem_of
from lookalike.service.settings import ServeSettings
from lookalike.shown import brief

__all__ = ["Gate", "Visit"]

Message: TypeAlias = MutableMapping[str, Any]
Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

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
_ONCE = (b"host", b"authorization", b"x-api-key", b"content-length", b"content-type", b"origin")


@dataclass(slots=True)
class Visit:
    """What is known of a request."""

    headers: dict[bytes, bytes]
    key: Key = ANYBODY
    route: str = "none"
    status: int = 0
    started: bool = False
    id: str = field(default_factory=lambda: f"{getrandbits(48):012x}")

    def header(self, name: bytes) -> str | None:
        """Return a header as text."""
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")


class Gate:
    """An application around the application."""

    def __init__(
        self,
        app: App,
        hosts: Hosts,
        keys: KeyFile | None,
        settings: ServeSettings,
        metrics: Metrics,
        log: Log,
    ) -> None:
        self._app = app
        self._hosts = hosts
        self._keys = keys
        self._most = settings.max_concurrent
        self._most_per_key = settings.max_concurrent if keys is None else (
            max(1, settings.max_concurrent * 3 // 4)
        )  # fmt: skip
        self.connections = Connections(settings.max_connections)
        self.slow_limit = settings.slow_limit
        """Both are for the protocol: see `BoundedProtocol`."""
        self._metrics = metrics
        self._log = log
        self._running = 0
        self._by_key: Counter[str] = Counter()

    def count_refused(self, problem: Problem) -> None:
        """Count an answer that is an error."""
        self._metrics.refused.labels(problem.code).inc()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or say why not."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        start = time.perf_counter()
        visit = Visit({})
        scope["lookalike"] = visit
        own = _HEADERS if scope["path"].startswith("/page/") or scope["path"] == "/" else (
            *_HEADERS, _NOT_KEPT
        )  # fmt: skip

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                visit.status, visit.started = message["status"], True
                message["headers"] = [
                    *message.get("headers", ()), *own, (b"x-request-id", visit.id.encode())
                ]  # fmt: skip
                if not scope.get("arrived", _always)():  # the rest of its body is not read
                    message["headers"].append((b"connection", b"close"))
            await send(message)

        self._running += 1
        self._metrics.running.inc()
        try:
            self._check(scope, visit)
            with self._counted(visit.key.name, scope["path"]):
                await self._app(scope, receive, answer)
        except Problem as problem:
            self.count_refused(problem)
            await send_problem(problem, answer)
        except Exception as error:
            if isinstance(error, ClientGone) or type(error).__name__ == "ClientDisconnect":
                visit.status = 499  # what was sent went nowhere
            else:
                self._log.failed("request failed", error, id=visit.id, path=scope["path"])
                if visit.started:
                    raise
                await send_problem(problem_of(error), answer)
        finally:
            self._running -= 1
            self._metrics.running.dec()
            seconds = time.perf_counter() - start
            self._metrics.request(visit.route, scope["method"], visit.status, seconds)
            if self._log.wants("info"):
                client = scope.get("client")
                self._log.say(
                    "info", "request", id=visit.id, method=scope["method"], path=scope["path"],
                    status=visit.status, ms=round(1000 * seconds, 2), key=visit.key.name or None,
                    client=client[0] if client else None,
                )  # fmt: skip

    @contextmanager
    def _counted(self, key: str, path: str) -> Iterator[None]:
        """Count a request for its key, of which one alone cannot take all the room."""
        if self._by_key[key] >= self._most_per_key and path not in _ALWAYS:
            raise Problem(
                429, "too_many_requests", f"there are {self._most_per_key} requests with this key "
                "already; try again in a second", retry_after=1,
            )  # fmt: skip
        self._by_key[key] += 1
        try:
            yield
        finally:
            self._by_key[key] -= 1
            if not self._by_key[key]:
                del self._by_key[key]

    def _check(self, scope: Scope, visit: Visit) -> None:
        _check_encoding("path", scope.get("raw_path") or b"")
        _check_encoding("query string", scope["query_string"])
        headers = visit.headers
        for name, value in scope["headers"]:
            if name in headers and name in _ONCE:
                raise Problem(
                    400, "headers", f"the header {name.decode('latin-1')} comes twice; send it once"
                )
            headers[name] = value
        host, path = headers.get(b"host"), scope["path"]
        self._hosts.check(host)
        protected = path.startswith(_PROTECTED) and path not in _OPEN
        self._hosts.check_origin(
            host, headers.get(b"origin"), headers.get(b"sec-fetch-site") if protected else None
        )
        if self._running > self._most and path not in _ALWAYS:
            raise Problem(
                429, "too_many_requests",
                f"there are {self._most} requests already; try again in a second", retry_after=1,
            )  # fmt: skip
        if protected and self._keys is not None:
            visit.key = self._known(self._keys, headers)

    @staticmethod
    def _known(keys: KeyFile, headers: dict[bytes, bytes]) -> Key:
        kind, _, secret = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() != b"bearer":
            secret = headers.get(b"x-api-key", b"")
        key = keys.find(secret.strip().decode("latin-1")) if secret else None
        if key is None:
            came = "a key that is not known" if secret else "no key"
            raise Problem(401, "key", f"the request has {came}; send `Authorization: Bearer KEY`")
        return key


def _check_encoding(what: str, raw: bytes) -> None:
    """Refuse bytes that are not UTF-8: replaced by U+FFFD, they would stand for something else."""
    if raw.isascii() and b"%" not in raw:
        return
    try:
        unquote_to_bytes(raw).decode("utf-8")
    except UnicodeDecodeError as error:
        raise Problem(
            400, "encoding", f"the {what} is {brief(raw[:200].decode('latin-1'))}, which is not "
            f"UTF-8 ({error.reason}); encode it in UTF-8, then percent-encode the bytes",
        ) from None  # fmt: skip


def _always() -> bool:
    return True


async def send_problem(problem: Problem, send: Send) -> None:
    """Answer with an error."""
    body = encode(problem.value(), JSON)
    headers = [(b"content-type", JSON.encode()), (b"content-length", str(len(body)).encode())]
    headers += [(name.encode(), value.encode()) for name, value in problem.headers.items()]
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
