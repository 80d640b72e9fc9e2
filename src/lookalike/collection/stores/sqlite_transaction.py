"""One transaction on an SQLite file: every statement that is specific to SQLite."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.collection.documents import Row, damaged
from lookalike.collection.stores.base import SCAN_BATCH, Numbered, State, Stored, numbered, stored
from lookalike.collection.stores.schema import Dialect, document_columns
from lookalike.collection.stores.statements import SqlTransaction

__all__ = ["SQLITE", "SqliteTransaction"]

SQLITE = Dialect(
    prefix="lookalike_",
    integer="INTEGER",
    text="TEXT",
    bytes="BLOB",
    clustered=" WITHOUT ROWID",
    among="IN (SELECT value FROM json_each(?))",
    explain="EXPLAIN QUERY PLAN",
    reindex="REINDEX",
)

_MOST_VARIABLES = 10_000
_ROWS_PER_INSERT = 48  # halves the time of inserting one by one


class SqliteTransaction(SqlTransaction):
    """One transaction on one connection. Reading needs no other object than writing."""

    dialect = SQLITE

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def _execute(self, query: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        return self._connection.execute(query, values)

    def _stream(self, query: str, values: Sequence[Any]) -> Iterator[list[Any]]:
        cursor = self._execute(query, values)
        while rows := cursor.fetchmany(SCAN_BATCH):
            yield rows

    def _array(self, values: list[Any]) -> str:
        return json.dumps(values)

    # Reading

    def signatures_after(self, state: State, number: int) -> Iterator[Numbered]:
        for rows in self._stream(self._after(state), (number,)):
            yield numbered(rows, state.bits // 8)

    def documents(self, state: State, ids: Sequence[str], text: bool = True) -> list[Stored]:
        table = SQLITE.table("documents", state.number)
        wanted = list(dict.fromkeys(ids))
        found: list[Stored] = []
        for begin in range(0, len(wanted), _MOST_VARIABLES):
            rows = self._execute(
                f"SELECT {document_columns(text)} FROM json_each(?) j JOIN {table} d "
                f"ON d.id = j.value {self._with_signature(state)}",
                (json.dumps(wanted[begin : begin + _MOST_VARIABLES]),),
            )
            found += map(stored, rows)
        return found

    def problems(self, state: State) -> list[str]:
        try:
            rows = self._execute("PRAGMA integrity_check(20)").fetchall()
        except MemoryError:
            raise damaged("SQLite finds lengths in the file that memory does not have") from None
        found = [str(row[0]) for row in rows]
        found = [] if found == ["ok"] else [f"SQLite: {problem}" for problem in found]
        return found + super().problems(state)

    def _documents_of(self, state: State, each: int | None, text: bool) -> str:
        table = SQLITE.table("documents", state.number)
        found = (
            f"SELECT {document_columns(text)} FROM json_each(?) j CROSS JOIN {table} d "
            f"ON d.signature = j.value {self._with_signature(state)}"
        )
        if each is None:
            return found
        # Through the index, whose entries must then be in the table: rowid IN (...) would not mind.
        return (
            f"{found} WHERE d.id <= (SELECT max(id) FROM (SELECT e.id FROM {table} e "
            "WHERE e.signature = j.value ORDER BY e.id LIMIT ?))"
        )

    # Writing

    def lock(self, name: str) -> State | None:
        return self.state(name)  # BEGIN IMMEDIATE has locked the whole file

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
            (self._array(numbers.tolist()),),
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
