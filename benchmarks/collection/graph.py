"""What a graph misses: pgvector's HNSW over the same signatures, asked for what is at distance 0.

Near-duplicates are clumps in which a graph's edges close up on themselves. Here each signature has
39 near copies, 4 of them equal. pgvector is asked with its default setting and with its best one.
"""

from __future__ import annotations

import statistics
from time import perf_counter

import numpy as np
from numpy.typing import NDArray
from tools.postgres_server import PostgresServer

import lookalike as la
from benchmarks.harness import Measurement, Result, Verdict, WrongAnswerError

__all__ = ["judge_graph"]

BITS, RADIUS, ASKED, K = 128, 9, 300, 40
EFFORTS = (40, 1000)
"""Candidates that the graph keeps (`hnsw.ef_search`): the default, and the most there is."""


def judge_graph(name: str, count: int) -> Result:
    """Count what is missed at distance 0 and within the radius, by each."""
    rng = np.random.default_rng(1)
    rows = _clumps(count, rng)
    queries = rows[rng.choice(count, ASKED, replace=False)]
    truth = la.ScanIndex(rows).within(queries, RADIUS)
    wanted = [distances.tolist() for _, distances in truth]
    measured: list[Measurement] = []
    verdicts: list[Verdict] = []
    with PostgresServer({"maintenance_work_mem": "'512MB'"}) as server:
        found, seconds = _ask_lookalike(server.url, rows, queries)
        missed = _missed(found, wanted)
        if missed != (0, 0):
            raise WrongAnswerError(f"{name}: lookalike misses {missed}")
        measured.append(_times("lookalike", seconds))
        title = f"{name}: rows missed at distance 0, and within {RADIUS}"
        verdicts.append(Verdict(title, "0 and 0", "0 and 0", passed=True))
        _build_graph(server.url, rows)
        for effort in EFFORTS:
            found, seconds = _ask_pgvector(server.url, queries, effort)
            zero, near = _missed(found, wanted)
            measured.append(_times(f"pgvector, ef_search {effort}", seconds))
            title = f"{name}: pgvector (ef_search {effort}) misses, of {ASKED} queries"
            words = f"{zero} lack rows at distance 0, {near} rows within {RADIUS}"
            verdicts.append(Verdict(title, "informs", words, passed=None))
    title = f"{count:,} signatures of {BITS} bits in clumps of {K}, the {K} nearest within {RADIUS}"
    return Result(name, title, measured, verdicts)


def _ask_lookalike(
    url: str, rows: NDArray[np.uint8], queries: NDArray[np.uint8]
) -> tuple[list[list[int]], list[float]]:
    """Return the distances of what is found for each query, and how long that took."""
    found, seconds = [], []
    with la.open_collection(url, bits=BITS, cache=False) as docs:
        docs.add([str(number) for number in range(len(rows))], signatures=rows)
        docs.refresh()
        for query in queries:
            start = perf_counter()
            found.append(docs.search(query, K, radius=RADIUS).distances)
            seconds.append(perf_counter() - start)
    return found, seconds


def _build_graph(url: str, rows: NDArray[np.uint8]) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
        connection.execute(f"CREATE TABLE items (id bigint, signature bit({BITS}))")
        with connection.cursor().copy("COPY items FROM STDIN") as copy:
            for number, row in enumerate(rows):
                copy.write_row((number, _bits(row)))
        connection.execute("CREATE INDEX ON items USING hnsw (signature bit_hamming_ops)")


def _ask_pgvector(
    url: str, queries: NDArray[np.uint8], effort: int
) -> tuple[list[list[int]], list[float]]:
    import psycopg

    found, seconds = [], []
    question = (
        f"SELECT signature <~> %s::bit({BITS}) FROM items "
        f"ORDER BY signature <~> %s::bit({BITS}) LIMIT {K}"
    )
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET enable_seqscan = off")
        connection.execute(f"SET hnsw.ef_search = {effort}")
        for query in queries:
            text = _bits(query)
            start = perf_counter()
            rows = connection.execute(question, (text, text)).fetchall()
            seconds.append(perf_counter() - start)
            found.append([int(row[0]) for row in rows if row[0] <= RADIUS])
    return found, seconds


def _clumps(count: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    rows = rng.integers(0, 256, (count, BITS // 8), dtype=np.uint8)
    for member in range(1, K):
        copies = rows[0::K][: len(rows[member::K])].copy()
        for _ in range(0 if member < 5 else member % 4 + 1):
            bits = rng.integers(0, BITS, len(copies))
            copies[np.arange(len(copies)), bits // 8] ^= (1 << bits % 8).astype(np.uint8)
        rows[member::K] = copies
    return rows[rng.permutation(count)]


def _missed(found: list[list[int]], wanted: list[list[int]]) -> tuple[int, int]:
    """Return how many queries lack a row at distance 0, and how many rows within are missing.

    Only as many as were asked for can be expected, and any of those that tie.
    """
    zero = near = 0
    for have, want in zip(found, wanted, strict=True):
        expected = sorted(want)[:K]
        zero += have.count(0) < expected.count(0)
        near += max(0, len(expected) - len(have))
    return zero, near


def _bits(row: NDArray[np.uint8]) -> str:
    return "".join(map(str, np.unpackbits(row, bitorder="little").tolist()))


def _times(name: str, seconds: list[float]) -> Measurement:
    return Measurement(
        name, min(seconds), statistics.median(seconds), len(seconds), seconds, 1.0, is_rival=True
    )
