"""Requests to a service: open connections, time limits, and the errors of a local collection.

Uses only the standard library. A read that cannot be transmitted is retried; a write never is,
because it may have been done.
"""

from __future__ import annotations

import http.client
import json
import os
import select
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any
from urllib.parse import SplitResult, urlsplit

from lookalike import errors
from lookalike.errors import (
    ArgumentError,
    BatchError,
    CollectionBusyError,
    CollectionError,
    ItemError,
    LookalikeError,
)
from lookalike.shown import brief, escape_terminal
from lookalike.storage.files import file_errors, open_plain

_IDLE = 8
_OLD = 20.0
"""Seconds after which an idle connection is not used again, because the service may close it."""
_AGAIN = (429, 503)
_PAUSE = 0.1
_CHUNK = 1 << 20


class Channel:
    """The connections to one service; safe to use from many threads."""

    def __init__(self, url: str, key: str | None, timeout: float, retries: int) -> None:
        parts = _checked(url)
        secure = parts.scheme == "https"
        self._kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        self._host = parts.hostname or ""
        self._port = parts.port
        self._base = parts.path.rstrip("/")
        self.shown = escape_terminal(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}", 200)
        self._headers = {"accept": "application/json", "user-agent": "lookalike"}
        if key is not None:
            self._headers["authorization"] = f"Bearer {_checked_key(key)}"
        self._timeout = timeout
        self._retries = retries
        self._lock = threading.Lock()
        self._idle: list[tuple[float, http.client.HTTPConnection]] = []
        self._closed = False
        weakref.finalize(self, _close_all, self._idle)  # if `close` is not called

    def read(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request that changes nothing; retry it if the transmission fails."""
        for attempt in range(self._retries + 1):
            last = attempt == self._retries
            try:
                status, headers, raw = self._send(method, path, body)
            except OSError as error:
                if last:
                    raise self._unreachable(error) from error
                time.sleep(_PAUSE * 2**attempt)
                continue
            if status in _AGAIN and not last:
                time.sleep(min(5.0, _seconds(headers.get("retry-after"), _PAUSE * 2**attempt)))
                continue
            return self._value(status, raw)
        raise CollectionError("a request was not sent")  # not reached

    def once(
        self, method: str, path: str, body: Any, seconds: float, most: int
    ) -> tuple[int, bytes]:
        """Send a request once, and return status and body of the answer.

        Raises `OSError` after this number of seconds, or when there are more than `most` bytes.
        """
        end, parts, size = time.monotonic() + seconds, [], 0
        data, headers = _encoded(body, self._headers)
        with self._connection() as connection:
            try:
                connection.timeout = seconds
                if connection.sock is not None:
                    connection.sock.settimeout(seconds)
                response = _answer_to(connection, method, self._base + path, data, headers)
                while True:
                    if connection.sock is not None:
                        connection.sock.settimeout(max(0.001, end - time.monotonic()))
                    if not (part := response.read1(_CHUNK)):
                        break
                    parts.append(part)
                    size += len(part)
                    if size > most:
                        raise ConnectionError(f"the answer has more than {most} bytes")
                    if time.monotonic() > end:
                        raise TimeoutError("the answer takes too long")
                if response.length:
                    raise ConnectionError("the answer was cut off")
                response.read()  # of nothing: only then the connection can be used again
            except http.client.HTTPException as error:
                raise ConnectionError(_said(error)) from error
        return response.status, b"".join(parts)

    def value(self, status: int, raw: bytes) -> Any:
        """Return what an answer says, or raise its error."""
        return self._value(status, raw)

    def write(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request that changes something, once."""
        try:
            status, _, raw = self._send(method, path, body)
        except OSError as error:
            raise self._perhaps_written(error) from error
        return self._value(status, raw)

    def send_file(self, method: str, path: str, file: Path | bytes) -> Any:
        """Send a file as the body of a request, once."""
        headers = {**self._headers, "content-type": "application/octet-stream"}
        with ExitStack() as stack:
            data: Any = file
            if isinstance(file, Path):
                with file_errors(file):
                    data = stack.enter_context(open_plain(file))
                headers["content-length"] = str(os.fstat(data.fileno()).st_size)
            try:
                with self._connection() as connection:
                    response = _answer_to(connection, method, self._base + path, data, headers)
                    status, raw = response.status, response.read()
            except (OSError, http.client.HTTPException) as error:
                writes = method == "PUT"
                raise (self._perhaps_written if writes else self._unreachable)(error) from error
        return self._value(status, raw)

    def download(self, path: str, file: IO[bytes]) -> None:
        """Copy the content of a path to a file."""
        try:
            with self._connection() as connection:
                connection.request("GET", self._base + path, headers=self._headers)
                response = connection.getresponse()
                if response.status != 200:
                    self._value(response.status, response.read())
                expected, size = response.getheader("content-length"), 0
                while part := response.read(_CHUNK):
                    file.write(part)
                    size += len(part)
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from error
        if expected is not None and size != int(expected):
            raise CollectionError(f"the download ended after {size} of {expected} bytes; try again")

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            self._closed = True
            _close_all(self._idle)

    def _send(self, method: str, path: str, body: Any) -> tuple[int, Any, bytes]:
        data, headers = _encoded(body, self._headers)
        with self._connection() as connection:
            try:
                response = _answer_to(connection, method, self._base + path, data, headers)
                return response.status, response.headers, response.read()
            except http.client.HTTPException as error:
                raise ConnectionError(_said(error)) from error

    @contextmanager
    def _connection(self) -> Iterator[http.client.HTTPConnection]:
        """Lend a connection; one that met an error is closed and not used again."""
        connection = self._take()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        with self._lock:
            if not self._closed and len(self._idle) < _IDLE and connection.sock is not None:
                self._idle.append((time.monotonic(), connection))
                return
        connection.close()

    def _take(self) -> http.client.HTTPConnection:
        with self._lock:
            if self._closed:
                raise CollectionError("the connection to the service is closed; connect again")
            while self._idle:
                since, connection = self._idle.pop()
                if time.monotonic() - since < _OLD and _is_open(connection):
                    return connection
                connection.close()
        return self._kind(self._host, self._port, timeout=self._timeout)

    def _perhaps_written(self, error: Exception) -> LookalikeError:
        return CollectionError(
            f"the service at {self.shown} did not answer ({_said(error)}). The write may have "
            "been applied, completely or not at all. Check with get(), or repeat with upsert()"
        )

    def _unreachable(self, error: Exception) -> LookalikeError:
        if isinstance(error, TimeoutError):
            return CollectionBusyError(
                f"the service at {self.shown} did not answer within {self._timeout:g} s; try "
                "again, or connect with a longer timeout"
            )
        return CollectionError(
            f"the service at {self.shown} cannot be reached ({_said(error)}); is it running there?"
        )

    def _value(self, status: int, raw: bytes) -> Any:
        try:
            value = json.loads(raw)
        except ValueError:
            value = None
        if 200 <= status < 300 and value is not None:
            return value
        error = value.get("error") if isinstance(value, dict) else None
        if not isinstance(error, dict):
            raise CollectionError(
                f"{self.shown} answered with status {status} and {brief(raw[:80])}, which is not "
                "an answer of lookalike; is another service running there?"
            )
        raise _as_raised(error)


def _encoded(body: Any, headers: dict[str, str]) -> tuple[bytes | None, dict[str, str]]:
    """Return a body as JSON, and the headers of the request."""
    if body is None:
        return None, headers
    data = json.dumps(body, separators=(",", ":")).encode()
    return data, {**headers, "content-type": "application/json"}


def _answer_to(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    data: Any,
    headers: dict[str, str],
) -> http.client.HTTPResponse:
    """Send a request, and return the answer, even if not all of the request could be sent.

    A service that refuses a request answers and closes the connection without reading the rest.
    """
    try:
        connection.request(method, path, data, headers)
    except (BrokenPipeError, ConnectionResetError) as error:
        if connection.sock is None:
            raise
        with suppress(OSError, http.client.HTTPException):
            return connection.getresponse()
        raise error
    return connection.getresponse()


def _as_raised(error: dict[str, Any]) -> LookalikeError:
    """Return an error of the service as a local collection raises it."""
    message, items = str(error.get("message", "")), error.get("items")
    if error.get("kind") == "BatchError" and isinstance(items, list):
        found = [ItemError(one["position"], one["id"], one["message"]) for one in items]
        return BatchError(found, len(found))
    kind = getattr(errors, str(error.get("kind")), None)
    if isinstance(kind, type) and issubclass(kind, LookalikeError) and kind is not BatchError:
        return kind(message)
    return CollectionError(message)


def _close_all(idle: list[tuple[float, http.client.HTTPConnection]]) -> None:
    while idle:
        idle.pop()[1].close()


def _is_open(connection: http.client.HTTPConnection) -> bool:
    """Return whether the service has not closed it: then there would be something to read."""
    if connection.sock is None:
        return False
    try:
        return not select.select([connection.sock], [], [], 0)[0]
    except (OSError, ValueError):
        return False


def _checked(url: str) -> SplitResult:
    expected = "expected one such as http://127.0.0.1:8600"
    if not isinstance(url, str):
        raise ArgumentError(f"the address of a service is of type {type(url).__name__}; {expected}")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ArgumentError(f"the address of a service cannot be read; {expected}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        shown = url if "@" not in url else "***@" + url.rpartition("@")[2]  # without a password
        raise ArgumentError(f"the address of a service is {brief(shown)}; {expected}")
    if parts.query or parts.fragment or parts.username or not url.isascii() or " " in url:
        raise ArgumentError(
            "the address of a service must have only a host, a port and a path; "
            f"{expected}, and set the API key with key="
        )
    return parts


def _checked_key(key: str) -> str:
    if not isinstance(key, str) or not key or not key.isascii() or not key.isprintable():
        raise ArgumentError(
            "invalid API key; expected the text that `lookalike serve --new-key` printed"
        )
    return key


def _seconds(text: str | None, usual: float) -> float:
    return float(text) if text is not None and text.isascii() and text.isdigit() else usual


def _said(error: BaseException) -> str:
    return escape_terminal(str(error) or type(error).__name__, 200)
