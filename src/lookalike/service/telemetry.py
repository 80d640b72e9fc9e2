"""The log, in JSON lines, and the metrics, for Prometheus."""

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
from functools import partial
from typing import IO, Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.metrics import disable_created_metrics
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from lookalike.service.settings import LEVELS
from lookalike.shown import escape_terminal

_MOST_WAITING = 20_000
_MOST_OF_A_VALUE = 300
_MOST_TOGETHER = 1_000
_TOGETHER = 0.05
"""Seconds during which lines are collected before they are written."""
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_COUNTS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000, 100_000, 1_000_000, 10_000_000)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_SEVERAL = "PROMETHEUS_MULTIPROC_DIR"
_GAUGES = {
    "documents": "Number of documents in a collection",
    "version": "Number of writes to a collection",
    "index_lag": "Number of versions that the index of this process is behind; it catches up "
    "before the next search",
    "index_bytes": "Memory of the index of this process, in bytes",
}
_ENCODE = json.JSONEncoder(default=str).encode


class Log:
    """A log of JSON lines, without keys and texts; a thread writes it, so requests do not wait."""

    def __init__(self, level: str, stream: IO[str] | None = None) -> None:
        self._least = LEVELS.index(level)
        self._stream = sys.stderr if stream is None else stream
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._lost = 0
        self._ending = False
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)
        self._thread.start()

    def wants(self, level: str) -> bool:
        """Return whether this level is logged."""
        return LEVELS.index(level) >= self._least

    def say(self, level: str, event: str, **values: Any) -> None:
        """Log an event, its strings shortened and escaped; excess lines are dropped and counted."""
        if not self.wants(level):
            return
        if self._lines.qsize() > _MOST_WAITING:
            self._lost += 1
            return
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = {"time": now, "level": level, "event": event, "process": os.getpid()}
        for name, value in values.items():
            is_text = isinstance(value, str)
            line[name] = escape_terminal(value, _MOST_OF_A_VALUE) if is_text else value
        self._lines.put(_ENCODE(line))

    def failed(self, event: str, error: BaseException, **values: Any) -> None:
        """Log an unexpected error with its traceback."""
        frames = traceback.extract_tb(error.__traceback__)[-12:]
        places = [f"{os.path.basename(one.filename)}:{one.lineno} {one.name}" for one in frames]  # noqa: PTH119
        self.say("error", event, kind=type(error).__name__, error=str(error), at=places, **values)

    def take_over(self) -> None:
        """Include the logs of uvicorn and other packages."""
        for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio", "fastapi"):
            logger = logging.getLogger(name)
            logger.handlers, logger.propagate = [_Handler(self)], False
            logger.setLevel(logging.INFO if name.startswith("uvicorn") else logging.WARNING)

    def close(self) -> None:
        """Write the remaining lines."""
        self._ending = True
        self._lines.put(None)
        self._thread.join(2.0)

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            if not self._ending:
                time.sleep(_TOGETHER)  # waking up for each line would slow down requests
            lines: list[str | None] = [line]
            while lines[-1] and len(lines) < _MOST_TOGETHER and not self._lines.empty():
                lines.append(self._lines.get())
            ended = lines[-1] is None
            if self._lost:
                lost, self._lost = self._lost, 0
                lines.append(json.dumps({"level": "warning", "event": "lines lost", "count": lost}))
            try:
                self._stream.write("".join(f"{one}\n" for one in lines if one is not None))
                self._stream.flush()
            except (OSError, ValueError):  # the stream is closed
                return
            if ended:
                return


class _Handler(logging.Handler):
    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Log a record."""
        level = record.levelname.lower()
        if level not in LEVELS:
            level = "error"
        if level == "info" and record.name.startswith("uvicorn"):
            level = "debug"
        if record.exc_info and record.exc_info[1] is not None:
            self._log.failed(record.getMessage()[:200], record.exc_info[1])
        else:
            self._log.say(level, "server", message=record.getMessage())


disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    """The metrics of one process; `text` returns those of all processes."""

    def __init__(self) -> None:
        self._own = own = CollectorRegistry()
        counter, histogram = partial(Counter, registry=own), partial(Histogram, registry=own)
        self._requests = counter(
            "lookalike_requests", "Requests by route and status", ["route", "method", "status"]
        )
        self._seconds = histogram(
            "lookalike_request_seconds", "Time from a request to its answer", ["route"],
            buckets=_SECONDS,
        )  # fmt: skip
        self.refused = counter("lookalike_refused", "Refused requests by error code", ["code"])
        self.running = Gauge(
            "lookalike_requests_running", "Requests in progress", registry=own,
            multiprocess_mode="livesum",
        )  # fmt: skip
        self.candidates = histogram(
            "lookalike_query_candidates",
            "Candidates of a query, for one batch in 32 and for explained queries",
            ["collection"], buckets=_COUNTS,
        )  # fmt: skip
        self.together = histogram(
            "lookalike_queries_together", "Queries answered by one native call",
            buckets=_SIZES,
        )  # fmt: skip
        self.written = counter(
            "lookalike_documents_written", "Documents added, replaced or deleted", ["collection"]
        )
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

    def text(self, more: Iterable[tuple[str, dict[str, float]]]) -> bytes:
        """Return all metrics as text, with the gauges of each collection."""
        registry = self._own
        if _SEVERAL in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return bytes(generate_latest(registry) + generate_latest(_Now(list(more))))


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
