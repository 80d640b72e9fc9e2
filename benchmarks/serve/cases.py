"""The service under load from a second process, beside an empty route of the same server.

A million signatures of 128 bits, of which a tenth are near-duplicates of another; queries for the
ten nearest within radius 9, of which one in ten is near something. `LOOKALIKE_LOAD_SECONDS` says
how long the load for memory lasts (600 for ten minutes).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lookalike as la
from benchmarks.harness import Measurement, Result, Verdict, WrongAnswerError

__all__ = ["CASES", "run_serve"]

CASES = ("serve-load",)
COUNT, BITS, RADIUS = 1_000_000, 128, 9
CONNECTIONS, SECONDS, ROUNDS = 32, 2.0, 5
BATCH = 1_000
PATH = "/v1/collections/documents/query"


def run_serve(names: Sequence[str], *, part: int) -> Iterator[Result]:
    """Run the case on a collection of which only a `part`-th is used."""
    for name in names:
        with tempfile.TemporaryDirectory(prefix="lookalike-bench-") as folder:
            path = Path(folder) / "docs.db"
            rows = _fill(path, COUNT // part)
            with _serving(path) as (process, port):
                yield _Case(name, process, port, rows, path).run()


class _Case:
    def __init__(
        self, name: str, process: subprocess.Popen[str], port: int, rows: NDArray[np.uint8],
        path: Path,
    ) -> None:  # fmt: skip
        self.name, self.process, self.port, self.rows, self.path = name, process, port, rows, path
        self.errors = 0
        self.rng = np.random.default_rng(1)

    def run(self) -> Result:
        queries = self._queries(2_000)
        asked = [{"signature": one.tobytes().hex(), "k": 10, "radius": RADIUS} for one in queries]
        self._check(asked[:50], queries[:50])
        hot = [self._post(PATH, one) for one in asked]
        empty = [f"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1:{self.port}\r\n\r\n"]
        pieces = np.split(queries, len(queries) // BATCH)
        batches = [
            self._post(
                f"{PATH}/batch",
                {"signatures": [one.tobytes().hex() for one in some], "k": 10, "radius": RADIUS},
            )
            for some in pieces
        ]
        self._load(hot, 1.0, CONNECTIONS)  # once, to be warm
        turns: dict[str, list[dict[str, Any]]] = {"empty": [], "query": [], "batch": []}
        for _ in range(ROUNDS):
            turns["empty"].append(self._load(empty, SECONDS, CONNECTIONS))
            turns["query"].append(self._load(hot, SECONDS, CONNECTIONS))
            turns["batch"].append(self._load(batches, SECONDS, 4))
        before = self._resident()
        seconds = float(os.environ.get("LOOKALIKE_LOAD_SECONDS", "5"))
        self._load(hot, seconds, CONNECTIONS)
        grown = self._resident() - before
        return Result(
            self.name,
            f"{len(self.rows):,} documents of {BITS} bits, k 10 within {RADIUS}, "
            f"{CONNECTIONS} connections",
            [_measured(name, some) for name, some in turns.items()],
            self._judged(turns, grown, seconds),
        )

    def _judged(
        self, turns: dict[str, list[dict[str, Any]]], grown: int, seconds: float
    ) -> list[Verdict]:
        shares = [
            query["per_second"] / empty["per_second"]
            for query, empty in zip(turns["query"], turns["empty"], strict=True)
        ]
        share = sorted(shares)[len(shares) // 2]
        best = max(turns["query"], key=lambda one: one["per_second"])
        documents = BATCH * max(one["per_second"] for one in turns["batch"])
        return [
            Verdict("requests/s, of an empty route", ">= 60%",
                    f"{share:.0%} (of {', '.join(f'{one:.0%}' for one in shares)}), "
                    f"{best['per_second']:,.0f}/s, p50 {1000 * best['p50']:.1f} ms, "
                    f"p99 {1000 * best['p99']:.1f} ms", share >= 0.6),
            Verdict("queries in batches", ">= 10,000/s", f"{documents:,.0f}/s",
                    documents >= 10_000),
            Verdict("errors", "0", str(self.errors), self.errors == 0),
            Verdict(f"memory grown in {seconds:g} s of load", "< 16 MiB", f"{grown >> 20} MiB",
                    grown < 16 << 20),
        ]  # fmt: skip

    def _queries(self, count: int) -> NDArray[np.uint8]:
        queries = self.rng.integers(0, 256, (count, BITS // 8), dtype=np.uint8)
        near = self.rng.integers(0, len(self.rows), count // 10)
        queries[::10] = self.rows[near]
        queries[::10, 0] ^= 5
        return queries

    def _check(self, asked: list[dict[str, Any]], queries: NDArray[np.uint8]) -> None:
        """Answers over HTTP are those of the collection."""
        with la.open_collection(self.path, create=False) as docs:
            expected = docs.search_many(queries, 10, radius=RADIUS)
        with la.connect(f"http://127.0.0.1:{self.port}") as there:
            found = there.search_many(queries, 10, radius=RADIUS)
        if [one.ids for one in found] != [one.ids for one in expected]:
            raise WrongAnswerError("the service answers otherwise than its collection")

    def _post(self, path: str, body: dict[str, Any]) -> str:
        text = json.dumps(body)
        return (
            f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{self.port}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(text)}\r\n\r\n{text}"
        )

    def _load(self, requests: list[str], seconds: float, connections: int) -> dict[str, Any]:
        order = {"host": "127.0.0.1", "port": self.port, "connections": connections,
                 "seconds": seconds, "requests": requests}  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.serve.load"], input=json.dumps(order), text=True,
            capture_output=True, check=True,
        )  # fmt: skip
        found: dict[str, Any] = json.loads(done.stdout)
        self.errors += found["errors"]
        return found

    def _resident(self) -> int:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")


def _measured(name: str, turns: list[dict[str, Any]]) -> Measurement:
    """Return seconds for a request, of which 32 are under way at once."""
    times = [1 / one["per_second"] for one in turns]
    title = {"empty": "an empty route", "query": "a query", "batch": f"a batch of {BATCH:,}"}[name]
    return Measurement(
        title, min(times), sorted(times)[len(times) // 2], len(times), times, 1.0, False
    )


def _fill(path: Path, count: int) -> NDArray[np.uint8]:
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 256, (count, BITS // 8), dtype=np.uint8)
    copies = np.arange(1, count, 10)
    rows[copies] = rows[copies - 1]
    rows[copies, 3] ^= rng.integers(0, 256, len(copies), dtype=np.uint8)
    with la.open_collection(path, bits=BITS, durable=False) as docs:
        for begin in range(0, count, 50_000):
            some = rows[begin : begin + 50_000]
            places = range(begin, begin + len(some))
            docs.add(
                [f"document-{place}" for place in places], signatures=some,
                metadata=[{"number": place} for place in places],
            )  # fmt: skip
        docs.refresh()
    return rows


@contextmanager
def _serving(path: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    command = [sys.executable, "-m", "lookalike.cli", "serve", str(path), "--port", "0"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        line = process.stdout.readline() if process.stdout else ""
        yield process, int(line.rpartition(":")[2].strip().rstrip("/"))
    finally:
        process.terminate()
        process.communicate()
