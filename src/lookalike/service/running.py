"""Start a service with one or several processes, and shut it down gracefully."""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.supervisors import Multiprocess

from lookalike.errors import ArgumentError, Said
from lookalike.service.app import make_app
from lookalike.service.keys import KeyFile
from lookalike.service.library import open_library
from lookalike.service.middleware import Middleware
from lookalike.service.protocol import BoundedProtocol
from lookalike.service.service import Service
from lookalike.service.settings import ServeSettings
from lookalike.service.telemetry import Log
from lookalike.storage.files import temporary_folder

_RUN = "LOOKALIKE_RUN"
_METRICS = "PROMETHEUS_MULTIPROC_DIR"
_LOOK = 0.5
_GARBAGE = 20_000
OPTIONS: dict[str, Any] = {  # of uvicorn
    "log_config": None,
    "access_log": False,
    "http": BoundedProtocol,
    "ws": "none",
    "loop": "uvloop",
    "lifespan": "on",
    "server_header": False,
    "proxy_headers": False,
    "timeout_keep_alive": 30,
    "timeout_graceful_shutdown": 8,
    "backlog": 2048,
}


def serve(place: str, settings: ServeSettings, ready: Callable[[str], None]) -> None:
    """Serve a database, the databases of a folder, or a saved index, until the process is stopped.

    `ready` is called with the address when the service accepts connections.
    """
    library = open_library(place)
    left_out = library.left_out()
    library.survey()  # report errors now, not to the first client
    if settings.key_file is not None:
        KeyFile(settings.key_file)
    with temporary_folder("lookalike-serve-") as folder, _listening(settings) as listener:
        host, port = listener.getsockname()[:2]
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
        log = Log(settings.log_level)
        log.take_over()
        for reason in left_out:
            log.say("warning", "not served", reason=reason)
        if settings.workers == 1:
            service = Service(settings, library, folder, log)
            app = make_app(service)
            _tune_garbage_collector()
            server = _Server(uvicorn.Config(app, **OPTIONS), lambda: ready(address))
            try:
                server.run(sockets=[listener])
            finally:
                _end(service)
        else:
            ready(address)
            try:
                _serve_by_several(place, settings, folder, listener)
            finally:
                log.close()


def worker() -> Middleware:
    """Return the application of one of several processes, configured by the environment."""
    run: dict[str, Any] = json.loads(os.environ[_RUN])
    given = run["settings"]
    settings = ServeSettings(**{**given, "allow_host": tuple(given["allow_host"])})
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the parent process stops this one
    log = Log(settings.log_level)
    log.take_over()
    service = Service(settings, open_library(run["place"]), Path(run["folder"]), log)
    threading.Thread(target=_watch_parent, args=(run["parent"],), daemon=True).start()
    app = make_app(service, lambda: _end(service))
    _tune_garbage_collector()
    return app


def _serve_by_several(
    place: str, settings: ServeSettings, folder: Path, listener: socket.socket
) -> None:
    metrics = folder / "metrics"
    metrics.mkdir(mode=0o700)
    run = {"settings": asdict(settings), "place": place, "folder": str(folder)}
    os.environ[_RUN] = json.dumps({**run, "parent": os.getpid()})
    os.environ[_METRICS] = str(metrics)
    ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN  # by `nohup`
    # uvicorn would restart all workers when the terminal is closed, and serve on, unseen.
    Multiprocess.handle_hup = _do_nothing if ignored else Multiprocess.handle_term  # type: ignore[method-assign, assignment]
    uvicorn.run(
        "lookalike.service.running:worker", factory=True, workers=settings.workers,
        fd=listener.fileno(), **OPTIONS,
    )  # fmt: skip


def _do_nothing(supervisor: Multiprocess) -> None: ...


def _tune_garbage_collector() -> None:
    """Run the garbage collector less often, and only on objects of requests."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GARBAGE, 10, 50)


def _watch_parent(parent: int) -> None:
    """Stop this worker when its parent process has died."""
    while os.getppid() == parent:
        time.sleep(_LOOK)
    signal.raise_signal(signal.SIGTERM)


class _Server(uvicorn.Server):
    """A server that calls `ready` when it has started."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept connections."""
        await super().startup(sockets)
        if self.started:
            self._ready()


@contextmanager
def _listening(settings: ServeSettings) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((settings.host.strip("[]"), settings.port))
        except OSError as error:
            raise ArgumentError(
                Said("port"),
                f" is {settings.port}, but the service cannot listen on it at {settings.host} "
                f"({error.strerror or error}); choose another port, or 0 for a free port",
            ) from None
        listener.listen(2048)
        listener.set_inheritable(True)
        yield listener
    finally:
        listener.close()


def _end(service: Service) -> None:
    service.log.say("info", "ending")
    service.close()
    service.log.close()
