"""A commit that fails: whether anything was written is said only where it is known."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

import lookalike as la

ROWS = np.random.default_rng(0).integers(0, 256, (3, 8), dtype=np.uint8)


def failing(code: int, written: bool) -> type[sqlite3.Connection]:
    """Return connections that report a failed commit, which was written nevertheless or not."""

    class Failing(sqlite3.Connection):
        def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
            if statement != "COMMIT":
                return super().execute(statement, *values)
            super().execute("COMMIT" if written else "ROLLBACK")
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = code
            raise error

    return Failing


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("code", [sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_TRUNCATE])
def test_a_sync_that_fails_leaves_open_what_was_written(
    tmp_path: Path, code: int, written: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal is emptied, which commits, and then synced: only the second may have failed."""
    path = tmp_path / "docs.db"
    la.open_collection(path, bits=64).close()
    connect = partial(sqlite3.connect, factory=failing(code, written))
    monkeypatch.setattr(sqlite3, "connect", connect)
    writes: list[Callable[[la.Collection], Any]] = [
        lambda docs: docs.add(["a", "b"], signatures=ROWS[:2]),
        lambda docs: docs.upsert(["a", "c"], signatures=ROWS[1:]),
        lambda docs: docs.delete(["a"]),
        lambda docs: docs.repair(),
    ]
    for write in writes:
        with la.open_collection(path) as docs, pytest.raises(la.errors.CollectionError) as caught:
            write(docs)
        assert "may have been written, completely or not at all" in str(caught.value)
        assert "nothing was written" not in str(caught.value)
    monkeypatch.undo()
    with la.open_collection(path) as docs:
        assert [document.id for document in docs] == (["b", "c"] if written else [])
        assert docs.verify().ok


@pytest.mark.parametrize(
    ("code", "said"),
    [(sqlite3.SQLITE_FULL, "nothing of this batch was written"),
     (sqlite3.SQLITE_BUSY, "nothing was written")],
)  # fmt: skip
def test_what_fails_before_the_journal_is_emptied_was_not_written(
    tmp_path: Path, code: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "docs.db"
    la.open_collection(path, bits=64).close()
    connect = partial(sqlite3.connect, factory=failing(code, written=False))
    monkeypatch.setattr(sqlite3, "connect", connect)
    with la.open_collection(path) as docs:
        with pytest.raises(la.errors.CollectionError, match=said):
            docs.add(["a"], signatures=ROWS[:1])
        assert docs.count() == 0


@pytest.mark.parametrize(
    "code", [sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR_READ, None]
)
def test_what_fails_before_the_commit_was_not_written(
    tmp_path: Path, code: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as a page that could not be read, which SQLite may call damaged."""

    class Failing(sqlite3.Connection):
        def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
            if not statement.startswith("UPDATE"):  # the last before the commit
                return super().execute(statement, *values)
            if code is None:
                raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "a message of SQLite")
            error = sqlite3.DatabaseError("something is wrong")
            error.sqlite_errorcode = code
            raise error

    path = tmp_path / "docs.db"
    la.open_collection(path, bits=64).close()
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Failing))
    with la.open_collection(path, cache=False) as docs:
        with pytest.raises(la.errors.CollectionError, match=r"nothing .*was written"):
            docs.add(["a"], signatures=ROWS[:1])
        assert docs.count() == 0


def test_any_failed_commit_on_postgresql_leaves_it_open(
    new_postgresql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with la.open_collection(new_postgresql, bits=64, cache=False) as docs:
        execute = psycopg.Connection.execute

        def fail(self: Any, statement: Any, *values: Any) -> Any:
            result = execute(self, statement, *values)
            if statement == "COMMIT":
                raise psycopg.errors.InternalError_("something went wrong afterwards")
            return result

        with monkeypatch.context() as patched:
            patched.setattr(psycopg.Connection, "execute", fail)
            with pytest.raises(la.errors.CollectionError, match="may have been written"):
                docs.add(["a"], signatures=ROWS[:1])
        assert docs.count() == 1
