"""A database that is put back to an earlier time while a handle has it open."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import psycopg
import pytest

import lookalike as la

ROWS = np.random.default_rng(1).integers(0, 256, (40, 8), dtype=np.uint8)
KINDS = ("collections", "signatures_1", "keys_1", "documents_1", "removals_1")


class Backup:
    """A copy of all tables, as `pg_dump` makes one, which can be put back under open handles."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._connection.execute("DROP SCHEMA IF EXISTS kept CASCADE")
        self._connection.execute("CREATE SCHEMA kept")
        for kind in KINDS:
            self._connection.execute(f"CREATE TABLE kept.{kind} AS TABLE lookalike.{kind}")

    def put_back(self) -> None:
        with self._connection.transaction():
            for kind in KINDS:
                self._connection.execute(f"TRUNCATE lookalike.{kind}")
                self._connection.execute(f"INSERT INTO lookalike.{kind} TABLE kept.{kind}")

    def close(self) -> None:
        self._connection.execute("DROP SCHEMA kept CASCADE")
        self._connection.close()


@pytest.fixture
def docs(new_postgresql: str) -> Iterator[la.Collection]:
    with la.open_collection(new_postgresql, bits=64) as docs:
        docs.add([f"d{i}" for i in range(10)], signatures=ROWS[:10])
        yield docs


@pytest.fixture
def backup(docs: la.Collection, new_postgresql: str) -> Iterator[Backup]:
    backup = Backup(new_postgresql)
    yield backup
    backup.close()


@pytest.mark.parametrize("since", [1, 2, 3])
@pytest.mark.parametrize("again", [0, 1, 2, 3, 4])
def test_an_index_does_not_live_in_a_future_that_never_was(
    docs: la.Collection, backup: Backup, since: int, again: int
) -> None:
    """Fewer writes after it than before, as many, or more: versions alone tell nothing."""
    for number in range(since):
        docs.upsert([f"d{number}", f"lost{number}"], signatures=ROWS[10 + number : 12 + number])
    assert "lost0" in docs.within(ROWS[11], 0).ids
    backup.put_back()
    known: dict[str, Any] = {f"d{i}": ROWS[i] for i in range(10)}
    for number in range(again):
        id = f"new{number}" if number % 2 else f"d{number}"
        docs.upsert([id], signatures=ROWS[20 + number : 21 + number])
        known[id] = ROWS[20 + number]
    for plan in ("native", "sql"):
        for row in ROWS[:30]:
            expected = sorted(id for id, other in known.items() if (other == row).all())
            answer = docs.within(row, 0, plan=plan)
            assert answer.ids == expected
            assert answer.exact
    assert docs.verify().ok
