"""Live collections: searching in the database and natively, writing, opening, and graphs beside it.

One million signatures of 128 bits, of which a tenth are near-duplicates of another, at distances 0
to 9. Asked are 100 documents at a time, fresh ones each time: ten are near one of the collection,
the others near nothing, as when a corpus is checked for what is already there.
"""

from __future__ import annotations

import resource
import sqlite3
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tools.postgres_server import PostgresServer

import lookalike as la
from benchmarks.collection.graph import judge_graph
from benchmarks.harness import Measurement, Result, Verdict, WrongAnswerError

__all__ = ["CASES", "run_collections"]

CASES = ("collection-sqlite", "collection-postgresql", "collection-graph")

BITS, RADIUS, BATCH = 128, 9, 100
ROUNDS, SCANS, ADDS, OPENINGS = 15, 3, 200, 5
COUNTS = {"collection-sqlite": 1_000_000, "collection-postgresql": 500_000}
IMPORT_BATCH = 100_000
RATES = {"collection-sqlite": 50_000, "collection-postgresql": 30_000}


def run_collections(names: Sequence[str], *, part: int) -> Iterator[Result]:
    """Run cases one after the other, on collections of which only a `part`-th is used."""
    for name in names:
        if name == "collection-graph":
            yield judge_graph(name, 50_000 // part)
            continue
        with _database(name) as (url, scan):
            yield _Case(name, url, COUNTS[name] // part, scan).run()


Scan = Callable[[str, NDArray[np.uint8]], set[int]]


@contextmanager
def _database(name: str) -> Iterator[tuple[str, Scan]]:
    with tempfile.TemporaryDirectory(prefix="lookalike-bench-") as folder:
        if name == "collection-sqlite":
            yield str(Path(folder) / "docs.db"), _scan_sqlite
        else:
            with PostgresServer() as server:
                yield server.url, _scan_postgresql


class _Case:
    """Everything that is measured on one database."""

    def __init__(self, name: str, url: str, count: int, scan: Scan) -> None:
        self.name, self.url, self.count, self.scan = name, url, count, scan
        self.rng = np.random.default_rng(0)
        self.rows = _signatures(count, self.rng)
        self.verdicts: list[Verdict] = []
        self.cache = tempfile.TemporaryDirectory(prefix="lookalike-bench-cache-")

    def run(self) -> Result:
        with self._open() as docs:
            self._import(docs)
            docs.refresh()
        self._open_again()
        with self._open() as docs:
            docs.refresh()
            measured = self._search(docs)
            self._add_one(docs)
        title = f"{self.count:,} documents of {BITS} bits, radius {RADIUS}, a query of {BATCH}"
        return Result(self.name, title, measured, self.verdicts)

    def _open(self) -> la.Collection:
        return la.open_collection(self.url, bits=BITS, cache=self.cache.name)

    def _judge(self, title: str, target: str, measured: str, passed: bool) -> None:
        self.verdicts.append(Verdict(f"{self.name}: {title}", target, measured, passed))

    def _import(self, docs: la.Collection) -> None:
        """Import in batches; the peak of memory must not grow from the first quarter on."""
        early, spent = 0, 0.0
        for begin in range(0, self.count, IMPORT_BATCH):
            end = min(self.count, begin + IMPORT_BATCH)
            ids = [f"document-{number}" for number in range(begin, end)]
            metadata = [{"number": number} for number in range(begin, end)]
            start = perf_counter()
            docs.add(ids, signatures=self.rows[begin:end], metadata=metadata)
            spent += perf_counter() - start
            if end <= self.count // 2:
                early = _peak_mb()
        rate = self.count / spent
        target = RATES[self.name]
        self._judge(
            "bulk import, signatures given, durable",
            f">= {target:,} a second",
            f"{rate:,.0f} a second",
            rate >= target,
        )
        more = _peak_mb() - early
        self._judge(
            "memory of the second half of the import", "<= 16 MB more", f"{more} MB", more <= 16
        )

    def _open_again(self) -> None:
        times = []
        for _ in range(OPENINGS):
            start = perf_counter()
            with self._open() as docs:
                docs.search(self.rows[5], 1, radius=RADIUS)
                times.append(perf_counter() - start)
        median = statistics.median(times)
        self._judge(
            "opening with a valid cache, first search included",
            "<= 1 s", f"{1e3 * median:.0f} ms", median <= 1,
        )  # fmt: skip

    def _search(self, docs: la.Collection) -> list[Measurement]:
        native, sql, single, scans = [], [], [], []
        for number in range(ROUNDS):
            queries = self._queries()
            start = perf_counter()
            natively = docs.within_many(queries, RADIUS)
            native.append((perf_counter() - start) / BATCH)
            queries = self._queries()
            start = perf_counter()
            found = docs.within_many(queries, RADIUS, plan="sql")
            sql.append((perf_counter() - start) / BATCH)
            for query in self._queries()[:10]:
                start = perf_counter()
                docs.within(query, RADIUS, plan="sql")
                single.append(perf_counter() - start)
            _same(found, docs.within_many(queries, RADIUS))
            _same(natively, natively)
            if number < SCANS:
                start = perf_counter()
                numbers = self.scan(self.url, queries[0])
                scans.append(perf_counter() - start)
                documents = filter(None, docs.get_many(found[0].ids))
                if len(numbers) != len({one.signature.tobytes() for one in documents}):
                    raise WrongAnswerError(f"{self.name}: the scan in SQL finds {len(numbers)}")
        one, scan = statistics.median(single), statistics.median(scans)
        self._judge(
            "one query in SQL against a scan in the database",
            "<= 1/20", f"1/{scan / one:.0f}", one <= scan / 20,
        )  # fmt: skip
        ratio = statistics.median(sql) / statistics.median(native)
        self._judge(
            f"native against SQL, batch of {BATCH}", ">= 50 x", f"{ratio:.1f} x", ratio >= 50
        )
        return [
            _measurement("native", native),
            _measurement("sql", sql),
            _measurement("sql, one at a time", single),
            _measurement("scan in the database", scans),
        ]

    def _add_one(self, docs: la.Collection) -> None:
        times = []
        for number in range(ADDS):
            row = self.rng.integers(0, 256, (1, BITS // 8), dtype=np.uint8)
            start = perf_counter()
            docs.add([f"new-{number}"], signatures=row)
            answer = docs.search(row[0], 1, radius=RADIUS)
            times.append(perf_counter() - start)
            if answer.ids != [f"new-{number}"]:
                raise WrongAnswerError(f"{self.name}: a new document is not found: {answer}")
        median = statistics.median(times)
        self._judge(
            "adding one document, durable and found by a search",
            "<= 5 ms", f"{1e3 * median:.2f} ms", median <= 5e-3,
        )  # fmt: skip

    def _queries(self) -> NDArray[np.uint8]:
        queries = self.rng.integers(0, 256, (BATCH, BITS // 8), dtype=np.uint8)
        queries[:10] = self.rows[self.rng.integers(0, self.count, 10)]
        queries[:10, 3] ^= 0b101
        return self.rng.permutation(queries)


def _signatures(count: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    rows = rng.integers(0, 256, (count, BITS // 8), dtype=np.uint8)
    copies = np.arange(1, count, 10)
    rows[copies] = rows[copies - 1]
    for flips in range(1, RADIUS + 1):  # a tenth of them each at distance 0, 1, ... about 9
        some = copies[flips::10]
        for _ in range(flips):
            bits = rng.integers(0, BITS, len(some))
            rows[some, bits // 8] ^= (1 << bits % 8).astype(np.uint8)
    return rows


def _same(one: Sequence[la.results.Answer], two: Sequence[la.results.Answer]) -> None:
    for left, right in zip(one, two, strict=True):
        if left.ids != right.ids or left.distances != right.distances or not left.exact:
            raise WrongAnswerError(f"{left} and {right} differ")


def _scan_sqlite(url: str, query: NDArray[np.uint8]) -> set[int]:
    """Compare in the database: SQLite has no function for it, so it is given a short one."""
    wanted = int.from_bytes(query.tobytes(), "little")
    connection = sqlite3.connect(url)
    connection.create_function(
        "distance", 1, lambda row: (int.from_bytes(row, "little") ^ wanted).bit_count(),
        deterministic=True,
    )  # fmt: skip
    rows: list[Any] = connection.execute(
        "SELECT number FROM lookalike_signatures_1 WHERE distance(signature) <= ?", (RADIUS,)
    ).fetchall()
    connection.close()
    return {row[0] for row in rows}


def _scan_postgresql(url: str, query: NDArray[np.uint8]) -> set[int]:
    import psycopg

    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT number FROM lookalike.signatures_1 WHERE "
            "bit_count(('x' || encode(signature, 'hex'))::bit(128) # ('x' || %s)::bit(128)) <= %s",
            (query.tobytes().hex(), RADIUS),
        ).fetchall()
    return {row[0] for row in rows}


def _measurement(name: str, times: Sequence[float]) -> Measurement:
    return Measurement(
        name, min(times), statistics.median(times), len(times), times, 1.0, is_rival=True
    )


def _peak_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
