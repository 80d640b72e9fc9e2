"""A writer is killed with SIGKILL, over and over: nothing that was acknowledged may be missing.

A reader searches all the while, with conditions, in both ways; each of its answers must be that of
the version it names.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import psycopg
import pytest
from tools.postgres_server import PostgresServer

from collection.conftest import new_database
from support.running.asking import Reader
from support.running.crashing import PART_POINTS, POINTS, Ledger, open_for, write_until_killed

CRASHES = int(os.environ.get("LOOKALIKE_CRASHES", "220"))
"""Kills in all; `make crash` asks for 1,000."""
KILLS_PER_DATABASE = 20
READER = "reader"
"""What the reader calls itself to the server, which keeps its connection when a writer dies."""
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["lookalike", "collection.crashing", "sqlite3", "psycopg"])


@pytest.mark.parametrize(
    ("kind", "share", "parts"),
    [
        *(("sqlite", 0.7, False), ("postgresql", 0.3, False)),
        *(("sqlite", 0.1, True), ("postgresql", 0.05, True)),
    ],
)
def test_killed_writers_lose_nothing(
    kind: str, share: float, parts: bool, tmp_path: Path, postgres: PostgresServer
) -> None:
    kills = round(CRASHES * share)
    rng = random.Random(kills)
    seen: Counter[str] = Counter()
    acknowledged = answered = 0
    for begin in range(0, kills, KILLS_PER_DATABASE):
        url = new_database(postgres) if kind == "postgresql" else str(tmp_path / f"{begin}.db")
        ledger = Ledger(tmp_path / "log", parts)
        named = f"{url}{'&' if '?' in url else '?'}application_name={READER}"
        watched = named if kind == "postgresql" else url
        with open_for(watched, parts, cache=False) as docs:
            for kill in range(begin, min(begin + KILLS_PER_DATABASE, kills)):
                points = PART_POINTS if parts else POINTS
                point = rng.choice(points) if rng.random() < 0.6 else ""
                reader = Reader(docs, kill, parts)
                try:
                    kill_one(url, tmp_path, ledger, point, rng)
                finally:
                    answers = reader.answers()
                if kind == "postgresql":
                    wait_for_backends(url)
                seen[point or "anywhere"] += 1
                answered += len(answers)
                acknowledged += ledger.settle(url, str(tmp_path / "cache"), rng, answers)
    assert sum(seen.values()) == kills
    assert acknowledged > kills, "the writers were killed before they had written anything"
    assert answered > kills, "the readers were not answered before the writers were killed"
    print(
        f"\n{kind}{', parts' if parts else ''}: {kills:,} kills: {acknowledged:,} acknowledged "
        "writes, 0 lost; "
        f"{answered:,} searches meanwhile, 0 wrong; {dict(seen)}"
    )


def wait_for_backends(url: str) -> None:
    """Wait until the server has noticed: it may be about to commit what the dead one sent."""
    with psycopg.connect(url, autocommit=True) as connection:
        for _ in range(10_000):
            row = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                "AND pid <> pg_backend_pid() AND backend_type = 'client backend' "
                "AND application_name <> %s",
                (READER,),
            ).fetchone()
            if row == (0,):
                return
            time.sleep(0.001)
    raise AssertionError("a backend of a killed writer does not end")


def kill_one(url: str, folder: Path, ledger: Ledger, point: str, rng: random.Random) -> None:
    calls = rng.randrange(1, 30)
    writer = FORKS.Process(
        target=write_until_killed,
        args=(
            *(url, str(folder / "cache"), str(ledger.log), ledger.next, point, calls),
            ledger.parts,
        ),
    )
    writer.start()
    try:
        if not point:
            deadline = time.monotonic() + 30
            while not ledger.log.exists() and time.monotonic() < deadline:
                time.sleep(0.001)
            time.sleep(rng.random() ** 2 * 0.06)
            writer.kill()
        writer.join(60)
        assert writer.exitcode == -signal.SIGKILL, f"the writer ended by itself at {point!r}"
    finally:
        writer.kill()
        writer.join()
