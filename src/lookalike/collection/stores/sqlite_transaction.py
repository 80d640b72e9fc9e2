"""One transaction on an SQLite file: every statement that is specific to SQLite."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.collection.documents import Row
from lookalike.collection.stores.base import HIDDEN, SCAN_BATCH, Numbered, State, Writer, numbered
from lookalike.collection.stores.schema import (
    STATE_COLUMNS,
    Dialect,
    collection_tables,
    consistency,
)

__all__ = ["SQLITE", "SqliteTransaction"]

SQLITE = Dialect("lookalike_", "INTEGER", "TEXT", "BLOB", " WITHOUT ROWID")

_MOST_VARIABLES = 10_000
_ROWS_PER_INSERT = 48  # halves the time of inserting one by one
_DOCUMENT = ("id", "signature", "text", "metadata", "added", "updated", "checksum")


def _json(values: NDArray[np.int64]) -> str:
    return json.dumps(values.tolist())


class SqliteTransaction(Writer):
    """One transaction on one connection. Reading needs no other object than writing."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._execute = connection.execute

    # Reading

    def state(self, name: str) -> State | None:
        row = self._execute(
            f"SELECT {STATE_COLUMNS} FROM {SQLITE.prefix}collections WHERE name = ?", (name,)
        ).fetchone()
        return _state(row) if row else None

    def states(self) -> list[State]:
        rows = self._execute(
            f"SELECT {STATE_COLUMNS} FROM {SQLITE.prefix}collections ORDER BY name"
        )
        return [state for state in map(_state, rows) if not state.name.startswith(HIDDEN)]

    def signer(self, state: State) -> str:
        row = self._execute(
            f"SELECT description FROM {SQLITE.prefix}signers WHERE number = ?", (state.number,)
        ).fetchone()
        return str(row[0]) if row else ""

    def candidates(self, state: State, keys: NDArray[np.int64], most: int) -> Numbered:
        rows = self._execute(_candidates(state), (_json(keys), most)).fetchall()
        return numbered(rows, state.bits // 8)

    def count_keys(self, state: State, keys: NDArray[np.int64], most: int) -> dict[int, int]:
        return dict(self._execute(_counts(state), (_json(keys), most)).fetchall())

    def signatures_after(self, state: State, number: int) -> Iterator[Numbered]:
        cursor = self._execute(_after(state), (number,))
        while rows := cursor.fetchmany(SCAN_BATCH):
            yield numbered(rows, state.bits // 8)

    def signatures_at(self, state: State, numbers: NDArray[np.int64]) -> Numbered:
        table = SQLITE.table("signatures", state.number)
        rows = self._execute(
            f"SELECT s.number, s.signature FROM json_each(?) j JOIN {table} s "
            "ON s.number = j.value",
            (_json(numbers),),
        ).fetchall()
        return numbered(rows, state.bits // 8)

    def removals_after(
        self, state: State, version: int
    ) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        table = SQLITE.table("removals", state.number)
        rows = self._execute(
            f"SELECT signature, hash FROM {table} WHERE version > ?", (version,)
        ).fetchall()
        array = np.array(rows, np.int64).reshape(-1, 2)
        return array[:, 0].copy(), array[:, 1].copy().view(np.uint64)

    def documents(self, state: State, ids: Sequence[str], text: bool = True) -> list[Row]:
        table = SQLITE.table("documents", state.number)
        wanted = list(dict.fromkeys(ids))
        found: list[Row] = []
        for begin in range(0, len(wanted), _MOST_VARIABLES):
            rows = self._execute(
                f"SELECT {_columns(text, 'd.')} FROM json_each(?) j JOIN {table} d "
                "ON d.id = j.value",
                (json.dumps(wanted[begin : begin + _MOST_VARIABLES]),),
            )
            found += map(Row._make, rows)
        return found

    def documents_of(
        self, state: State, numbers: NDArray[np.int64], each: int | None, text: bool
    ) -> Iterator[Row]:
        values = (_json(numbers),) if each is None else (_json(numbers), each)
        return map(Row._make, self._execute(_documents_of(state, each, text), values))

    def documents_after(
        self, state: State, id: str, limit: int, text: bool = True
    ) -> list[tuple[Row, bytes]]:
        rows = self._execute(_documents_after(state, text), (id, limit))
        return [(Row._make(row[:-1]), row[-1]) for row in rows]

    def key_rows(
        self, state: State, position: int
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        cursor = self._execute(
            f"SELECT key, signature FROM {SQLITE.table('keys', state.number)} "
            "WHERE key >= ? AND key < ?",
            (position << 32, (position + 1) << 32),
        )
        while rows := cursor.fetchmany(SCAN_BATCH):
            array = np.array(rows, np.int64)
            yield array[:, 0], array[:, 1]

    def problems(self, state: State) -> list[str]:
        found = [str(row[0]) for row in self._execute("PRAGMA integrity_check(20)").fetchall()]
        found = [] if found == ["ok"] else [f"SQLite: {problem}" for problem in found]
        for question, problem in consistency(SQLITE, state):
            (count,) = self._execute(question).fetchone()
            if count:
                found.append(f"{count} {problem}")
        return found

    def plans(self, state: State) -> dict[str, str]:
        def plan(query: str, *values: object) -> str:
            rows = self._execute(f"EXPLAIN QUERY PLAN {query}", values).fetchall()
            return "\n".join(str(row[3]) for row in rows)

        return {
            "candidates": plan(_candidates(state), "[1]", 1),
            "counts": plan(_counts(state), "[1]", 1),
            "catching up": plan(_after(state), 1),
            "documents": plan(_documents_of(state, None, True), "[1]"),
            "first documents": plan(_documents_of(state, 5, True), "[1]", 5),
            "scroll": plan(_documents_after(state, True), "a", 5),
        }

    # Writing

    def lock(self, name: str) -> State | None:
        return self.state(name)  # BEGIN IMMEDIATE has locked the whole file

    def create(self, state: State, signer: str) -> State:
        (number,) = self._execute(
            f"SELECT coalesce(max(number), 0) + 1 FROM {SQLITE.prefix}collections"
        ).fetchone()
        state = replace(state, number=number)
        for statement in collection_tables(SQLITE, number):
            self._execute(statement)
        marks = ", ".join("?" * len(vars(state)))
        self._execute(
            f"INSERT INTO {SQLITE.prefix}collections ({STATE_COLUMNS}) VALUES ({marks})",
            tuple(vars(state).values()),
        )
        self._execute(f"INSERT INTO {SQLITE.prefix}signers VALUES (?, ?)", (number, signer))
        return state

    def drop(self, state: State) -> None:
        for kind in ("documents", "keys", "signatures", "removals"):
            self._execute(f"DROP TABLE {SQLITE.table(kind, state.number)}")
        for table in ("collections", "signers"):
            self._execute(f"DELETE FROM {SQLITE.prefix}{table} WHERE number = ?", (state.number,))

    def rename(self, state: State, name: str) -> None:
        self._execute(
            f"UPDATE {SQLITE.prefix}collections SET name = ? WHERE number = ?",
            (name, state.number),
        )

    def save(self, state: State) -> None:
        self._execute(
            f"UPDATE {SQLITE.prefix}collections SET version = ?, documents = ?, signatures = ?, "
            "next_signature = ?, digest = ?, removals_from = ? WHERE number = ?",
            (
                state.version,
                state.documents,
                state.signatures,
                state.next_signature,
                state.digest,
                state.removals_from,
                state.number,
            ),
        )

    def find_signatures(self, state: State, signatures: Sequence[bytes]) -> dict[bytes, int]:
        table = SQLITE.table("signatures", state.number)
        found: dict[bytes, int] = {}
        for begin in range(0, len(signatures), _MOST_VARIABLES):
            part = signatures[begin : begin + _MOST_VARIABLES]
            marks = ",".join("?" * len(part))
            found.update(
                self._execute(
                    f"SELECT signature, number FROM {table} WHERE signature IN ({marks})", part
                )
            )
        return found

    def find_documents(self, state: State, ids: Sequence[str]) -> dict[str, tuple[int, int]]:
        table = SQLITE.table("documents", state.number)
        found: dict[str, tuple[int, int]] = {}
        for begin in range(0, len(ids), _MOST_VARIABLES):
            rows = self._execute(
                f"SELECT d.id, d.signature, d.added FROM json_each(?) j JOIN {table} d "
                "ON d.id = j.value",
                (json.dumps(ids[begin : begin + _MOST_VARIABLES]),),
            )
            found.update({id: (signature, added) for id, signature, added in rows})
        return found

    def insert_signatures(self, state: State, new: Numbered) -> None:
        width = new.signatures.shape[1]
        data = new.signatures.tobytes()
        blobs = [data[begin : begin + width] for begin in range(0, len(data), width)]
        table = SQLITE.table("signatures", state.number)
        self._insert(table, 2, chain(*zip(new.numbers.tolist(), blobs, strict=True)))

    def insert_keys(
        self, state: State, keys: NDArray[np.int64], numbers: NDArray[np.int64]
    ) -> None:
        rows = np.stack([keys, numbers], axis=1).ravel().tolist()
        self._insert(SQLITE.table("keys", state.number), 2, rows)

    def insert_documents(self, state: State, rows: Sequence[Row]) -> None:
        self._insert(SQLITE.table("documents", state.number), len(Row._fields), chain(*rows))

    def delete_documents(self, state: State, ids: Sequence[str]) -> None:
        table = SQLITE.table("documents", state.number)
        self._connection.executemany(f"DELETE FROM {table} WHERE id = ?", ((id,) for id in ids))

    def unused(self, state: State, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        table = SQLITE.table("documents", state.number)
        rows = self._execute(
            "SELECT value FROM json_each(?) j WHERE NOT EXISTS "
            f"(SELECT 1 FROM {table} d WHERE d.signature = j.value)",
            (_json(numbers),),
        )
        return np.array([row[0] for row in rows], np.int64)

    def delete_signatures(self, state: State, numbers: NDArray[np.int64]) -> None:
        table = SQLITE.table("signatures", state.number)
        rows = ((number,) for number in numbers.tolist())
        self._connection.executemany(f"DELETE FROM {table} WHERE number = ?", rows)

    def delete_keys(
        self, state: State, keys: NDArray[np.int64], numbers: NDArray[np.int64]
    ) -> None:
        table = SQLITE.table("keys", state.number)
        rows = zip(keys.tolist(), numbers.tolist(), strict=True)
        self._connection.executemany(f"DELETE FROM {table} WHERE key = ? AND signature = ?", rows)

    def log_removals(
        self,
        state: State,
        version: int,
        numbers: NDArray[np.int64],
        hashes: NDArray[np.uint64],
    ) -> None:
        table = SQLITE.table("removals", state.number)
        values = zip(numbers.tolist(), hashes.view(np.int64).tolist(), strict=True)
        self._connection.executemany(
            f"INSERT INTO {table} VALUES (?, ?, ?)", ((version, *pair) for pair in values)
        )

    def trim_removals(self, state: State, keep: int) -> int:
        table = SQLITE.table("removals", state.number)
        row = self._execute(
            f"SELECT version FROM {table} ORDER BY version DESC LIMIT 1 OFFSET ?", (keep,)
        ).fetchone()
        if row is None:
            return state.removals_from
        self._execute(f"DELETE FROM {table} WHERE version <= ?", row)
        return int(row[0])

    def rebuild_indexes(self, state: State) -> None:
        self._execute(f"REINDEX {SQLITE.table('signatures', state.number)}")
        self._execute(f"REINDEX {SQLITE.table('documents', state.number)}")
        self._execute(f"DELETE FROM {SQLITE.table('keys', state.number)}")

    def _insert(self, table: str, width: int, values: Iterable[Any]) -> None:
        """Insert rows of `width` values each, given in one row, many with one statement."""
        marks = f"({','.join('?' * width)})"
        size = width * _ROWS_PER_INSERT
        many = f"INSERT INTO {table} VALUES {','.join([marks] * _ROWS_PER_INSERT)}"
        one = f"INSERT INTO {table} VALUES {marks}"
        source = iter(values)
        rest: list[Any] = []

        def whole() -> Iterator[list[Any]]:
            while part := list(islice(source, size)):
                if len(part) < size:
                    rest.extend(part)
                    return
                yield part

        self._connection.executemany(many, whole())
        self._connection.executemany(one, zip(*[iter(rest)] * width, strict=True))


def _state(row: tuple[Any, ...]) -> State:
    state = State(*row)
    return replace(state, keep_text=bool(state.keep_text))


def _columns(text: bool, prefix: str = "") -> str:
    return ", ".join("NULL" if name == "text" and not text else prefix + name for name in _DOCUMENT)


def _candidates(state: State) -> str:
    keys, rows = (SQLITE.table(kind, state.number) for kind in ("keys", "signatures"))
    return (
        f"SELECT s.number, s.signature FROM {keys} k JOIN {rows} s ON s.number = k.signature "
        "WHERE k.key IN (SELECT value FROM json_each(?)) LIMIT ?"
    )


def _counts(state: State) -> str:
    return (
        f"SELECT key, count(*) FROM (SELECT key FROM {SQLITE.table('keys', state.number)} "
        "WHERE key IN (SELECT value FROM json_each(?)) LIMIT ?) GROUP BY key"
    )


def _after(state: State) -> str:
    table = SQLITE.table("signatures", state.number)
    return f"SELECT number, signature FROM {table} WHERE number > ? ORDER BY number"


def _documents_of(state: State, each: int | None, text: bool) -> str:
    table = SQLITE.table("documents", state.number)
    if each is None:
        return (
            f"SELECT {_columns(text, 'd.')} FROM json_each(?) j JOIN {table} d "
            "ON d.signature = j.value"
        )
    return (
        f"SELECT {_columns(text, 'd.')} FROM json_each(?) j CROSS JOIN {table} d WHERE d.rowid IN "
        f"(SELECT e.rowid FROM {table} e WHERE e.signature = j.value ORDER BY e.id LIMIT ?)"
    )


def _documents_after(state: State, text: bool) -> str:
    documents, rows = (SQLITE.table(kind, state.number) for kind in ("documents", "signatures"))
    return (
        f"SELECT {_columns(text, 'd.')}, s.signature FROM {documents} d "
        f"LEFT JOIN {rows} s ON s.number = d.signature WHERE d.id > ? ORDER BY d.id LIMIT ?"
    )
