"""What is counted, as Prometheus reads it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

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

__all__ = ["CONTENT_TYPE", "Metrics"]

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
