"""Services for tests: in a thread of this process, or in processes that can be killed."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import uvicorn

from lookalike.service.app import make_app
from lookalike.service.library import open_library
from lookalike.service.running import OPTIONS
from lookalike.service.service import Service
from lookalike.service.settings import ServeSettings
from lookalike.service.telemetry import Log
from support.running.waiting import wait_until

JSON = "application/json"


class Running:
    """A service that can be asked."""

    def __init__(self, host: str, port: int, key: str | None = None) -> None:
        self.host, self.port, self.key = host, port, key
        self.url = f"http://{host}:{port}"
        self.inside: Service | None = None
        """What the routes share, of a service in this process."""

    def ask(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> tuple[int, dict[str, str], Any]:
        """Return status, headers and what the answer says."""
        status, found, raw = self.raw(method, path, body, **headers)
        kind = found.get("content-type", "")
        return status, found, json.loads(raw) if kind.startswith(JSON) else raw

    def raw(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and the bytes of the answer."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.key is not None:
            sent.setdefault("authorization", f"Bearer {self.key}")
        data = body
        if body is not None and not isinstance(body, bytes):
            data = json.dumps(body).encode()
            sent.setdefault("content-type", JSON)
        connection = http.client.HTTPConnection(self.host, self.port, timeout=120)
        try:
            connection.request(method, path, data, sent)
            response = connection.getresponse()
            named = {name.lower(): value for name, value in response.headers.items()}
            return response.status, named, response.read()
        finally:
            connection.close()

    def good(self, method: str, path: str, body: Any = None) -> Any:
        """Return what an answer says that is no error."""
        status, _, value = self.ask(method, path, body)
        assert 200 <= status < 300, (method, path, status, value)
        return value

    def refused(self, status: int, code: str, method: str, path: str, body: Any = None,
                **headers: str) -> str:  # fmt: skip
        """Return the message of an answer that must be this error."""
        found, _, value = self.ask(method, path, body, **headers)
        assert found == status, (method, path, found, value)
        assert set(value) == {"error"} and {"code", "kind", "message"} <= set(value["error"])
        assert value["error"]["code"] == code, value
        return str(value["error"]["message"])

    def job(self, path: str, body: Any = None) -> dict[str, Any]:
        """Begin a job, and return how it ended."""
        job: dict[str, Any] = self.good("POST", path, body)
        return self.ended(job["id"])

    def ended(self, id: str) -> dict[str, Any]:
        """Wait for a job, and return how it ended."""
        wait_until(lambda: self.good("GET", f"/v1/jobs/{id}")["state"] != "running")
        job: dict[str, Any] = self.good("GET", f"/v1/jobs/{id}")
        return job

    def connection(self) -> socket.socket:
        """Return a bare connection."""
        return socket.create_connection((self.host, self.port), timeout=120)


@contextmanager
def running(
    place: Path, run: Path, log: IO[str] | None = None, key: str | None = None, **settings: Any
) -> Iterator[Running]:
    """Serve in a thread of this process."""
    lines = open(run / "log.txt", "a") if log is None else log  # noqa: SIM115  # closed below
    chosen = ServeSettings(**{"port": 0, **settings})
    kept = Log(chosen.log_level, lines)
    service = Service(chosen, open_library(place), run, kept)
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(1024)
    server = uvicorn.Server(uvicorn.Config(make_app(service), **OPTIONS))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.005)
        asked = Running("127.0.0.1", listener.getsockname()[1], key)
        asked.inside = service
        yield asked
    finally:
        server.should_exit = True
        thread.join(120)
        listener.close()
        service.close()
        kept.close()
        if log is None:
            lines.close()
    assert not thread.is_alive()


@contextmanager
def process(*arguments: str, environment: dict[str, str] | None = None) -> Iterator[Any]:
    """Run `lookalike serve` at a free port; yield the process, with `.service` to ask."""
    command = [sys.executable, "-m", "lookalike.cli", "serve", *arguments, "--port", "0"]
    variables = {**os.environ, **(environment or {})}
    # A file, and no pipe: that would be full one day, and what is logged then is lost.
    with tempfile.NamedTemporaryFile() as errors:
        started: Any = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=variables,
            start_new_session=True,
        )
        started.stderr = open(errors.name, encoding="utf-8")  # noqa: SIM115  # closed below
    try:
        said = []
        while line := started.stdout.readline():
            said.append(line)
            if " at http://" in line:
                address = line.split(" at http://")[1].strip().rstrip("/")
                host, _, port = address.rpartition(":")
                started.service = Running(host, int(port))
                break
        else:
            raise AssertionError(f"it does not serve: {said} {started.stderr.read()}")
        started.said = said
        yield started
    finally:
        if started.poll() is None:
            started.kill()
        started.wait()
        started.stdout.close()
        started.stderr.close()
