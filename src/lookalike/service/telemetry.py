"""Logs and metrics.

A line of the log is one JSON object in ASCII, written by a thread for which requests do not wait.
Metrics are what Prometheus reads.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import IO, Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from lookalike.service.settings import LEVELS
from lookalike.shown import escape_terminal

__all__ = ["CONTENT_TYPE", "Log", "Metrics"]

_MOST_WAITING = 20_000
_MOST_OF_A_VALUE = 300
_MOST_TOGETHER = 1_000
_TOGETHER = 0.05
"""Seconds for which lines are collected."""


class Log:
    """Lines about what happens. Nothing in them is a key or a text of somebody's."""

    def __init__(self, level: str, stream: IO[str] | None = None) -> None:
        self._least = LEVELS.index(level)
        self._stream = sys.stderr if stream is None else stream
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._lost = 0
        self._ending = False
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)
        self._thread.start()

    def wants(self, level: str) -> bool:
        """Return whether lines of this level are written."""
        return LEVELS.index(level) >= self._least

    def say(self, level: str, event: str, **values: Any) -> None:
        """Write a line; where the reader is slower than what happens, lines are lost and counted.

        Texts are shortened, and escaped.
        """
        if not self.wants(level):
            return
        if self._lines.qsize() > _MOST_WAITING:
            self._lost += 1
            return
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds"),
            "level": level,
            "event": event,
            "process": os.getpid(),
        }
        for name, value in values.items():
            line[name] = (
                escape_terminal(value, _MOST_OF_A_VALUE) if isinstance(value, str) else value
            )
        self._lines.put(json.dumps(line, default=str))

    def failed(self, event: str, error: BaseException, **values: Any) -> None:
        """Write a line about an error that nobody has foreseen, with the places it came from."""
        frames = traceback.extract_tb(error.__traceback__)[-12:]
        places = [f"{os.path.basename(one.filename)}:{one.lineno} {one.name}" for one in frames]  # noqa: PTH119
        self.say("error", event, kind=type(error).__name__, error=str(error), at=places, **values)

    def take_over(self) -> None:
        """Let what uvicorn and others log come here, too."""
        for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio", "fastapi"):
            logger = logging.getLogger(name)
            logger.handlers, logger.propagate = [_Handler(self)], False
            logger.setLevel(logging.INFO if name.startswith("uvicorn") else logging.WARNING)

    def close(self) -> None:
        """Write what is left."""
        self._ending = True
        self._lines.put(None)
        self._thread.join(2.0)

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            if not self._ending:
                time.sleep(_TOGETHER)  # a thread that wakes up for each line takes others' time
            lines, ended = [line], False
            while not self._lines.empty() and len(lines) < _MOST_TOGETHER:
                more = self._lines.get()
                if more is None:
                    ended = True
                    break
                lines.append(more)
            if self._lost:
                lost, self._lost = self._lost, 0
                lines.append(json.dumps({"level": "warning", "event": "lines lost", "count": lost}))
            try:
                self._stream.write("\n".join(lines) + "\n")
                self._stream.flush()
            except (OSError, ValueError):  # nobody reads any more
                return
            if ended:
                return


class _Handler(logging.Handler):
    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Pass a record on."""
        level = record.levelname.lower()
        level = level if level in LEVELS else "error"
        if level == "info" and record.name.startswith("uvicorn"):
            level = "debug"
        if record.exc_info and record.exc_info[1] is not None:
            self._log.failed(record.getMessage()[:200], record.exc_info[1])
        else:
            self._log.say(level, "server", message=record.getMessage())


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_COUNTS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000, 100_000, 1_000_000, 10_000_000)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_SEVERAL = "PROMETHEUS_MULTIPROC_DIR"

disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    """The counters of one process; where there are several, those of all are told together."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        own = self.registry
        self._requests = Counter(
            "lookalike_requests", "Requests, by route and status",
            ["route", "method", "status"], registry=own,
        )  # fmt: skip
        self._seconds = Histogram(
            "lookalike_request_seconds", "Time from the request to its answer", ["route"],
            buckets=_SECONDS, registry=own,
        )  # fmt: skip
        self.refused = Counter(
            "lookalike_refused", "Requests that were refused, by code", ["code"], registry=own
        )
        self.running = Gauge(
            "lookalike_requests_running", "Requests that are being answered", registry=own,
            multiprocess_mode="livesum",
        )  # fmt: skip
        self.candidates = Histogram(
            "lookalike_query_candidates",
            "Signatures that a query was compared with; of one batch in 32, and explained ones",
            ["collection"], buckets=_COUNTS, registry=own,
        )  # fmt: skip
        self.together = Histogram(
            "lookalike_queries_together", "Queries that one native call has answered",
            buckets=_SIZES, registry=own,
        )  # fmt: skip
        self.written = Counter(
            "lookalike_documents_written", "Documents added, replaced or deleted", ["collection"],
            registry=own,
        )  # fmt: skip
        self._children: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request."""
        key = (route, method, status)
        found = self._children.get(key)
        if found is None:
            counter = self._requests.labels(route, method, str(status))
            found = self._children[key] = (counter, self._seconds.labels(route))
        found[0].inc()
        found[1].observe(seconds)

    def told(self, more: Iterable[tuple[str, dict[str, float]]]) -> bytes:
        """Return everything as text, with what is known of each collection now."""
        registry = self.registry
        if _SEVERAL in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        now = CollectorRegistry()
        now.register(_Now(list(more)))
        return bytes(generate_latest(registry) + generate_latest(now))


_GAUGES = {
    "documents": "Documents of a collection",
    "version": "How many times a collection was written to",
    "index_lag": "Versions that the index in memory of this process is behind; it takes them in "
    "before the next search",
    "index_bytes": "Memory of the index of this process",
}


class _Now(Collector):
    def __init__(self, collections: list[tuple[str, dict[str, float]]]) -> None:
        self._collections = collections

    def collect(self) -> Iterator[Metric]:
        """Yield the gauges."""
        for name, help in _GAUGES.items():
            family = GaugeMetricFamily(f"lookalike_collection_{name}", help, labels=["collection"])
            for collection, values in self._collections:
                family.add_metric([collection], values[name])
            yield family
