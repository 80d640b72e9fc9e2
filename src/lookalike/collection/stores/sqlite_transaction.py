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
from lookalike.collection.stores.rows import Numbered, blobs
from lookalike.collection.stores.schema import (
    SHARED_TABLES,
    Dialect,
    document_columns,
    kinds_of_tables,
)
from lookalike.collection.stores.state import State
from lookalike.collection.stores.view import SCAN_BATCH
from lookalike.collection.stores.writer import Writer

SQLITE = Dialect(
    prefix="lookalike_",
    integer="INTEGER",
    text="TEXT",
    bytes="BLOB",
    clustered=" WITHOUT ROWID",
    among="IN (SELECT value FROM json_each(?))",
    among_texts="IN (SELECT value FROM json_each(?))",
    reindex="REINDEX",
)

SHOWN_UPGRADED = (
    f"CREATE TEMP VIEW {SQLITE.prefix}collections AS "
    f"SELECT *, 0 AS parts FROM main.{SQLITE.prefix}collections"
)
"""Shows one connection the table of an older version as an upgrade would make it; should that
happen meanwhile, the table's own column comes first."""

_MOST_VARIABLES = 10_000
_ROWS_PER_INSERT = 48  # halves the time of inserting one by one


class SqliteTransaction(Writer):
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

    def other_content(self) -> bool:
        """Return whether the file has tables, views or triggers that are not of collections."""
        known = {self.dialect.prefix + table for table in SHARED_TABLES}
        for state in (*self.states(), *self.states(hidden=True)):
            known.update(self._table(kind, state) for kind in kinds_of_tables(state))
        found = self._execute("SELECT type, tbl_name FROM main.sqlite_master")
        return any(kind not in ("table", "index") or name not in known for kind, name in found)

    def problems(self, state: State) -> list[str]:
        try:
            rows = self._execute("PRAGMA integrity_check(20)").fetchall()
        except MemoryError:
            raise damaged("SQLite finds lengths in the file that memory does not have") from None
        found = [str(row[0]) for row in rows]
        found = [] if found == ["ok"] else [f"SQLite: {problem}" for problem in found]
        return found + super().problems(state)

    def _documents_of(self, state: State, each: int | None, text: bool) -> str:
        table = self._table("documents", state)
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

    def drop_shared_tables(self) -> None:
        """Drop the tables that all collections share, of which there are none."""
        for table in SHARED_TABLES:
            self._execute(f"DROP TABLE {self.dialect.prefix}{table}")

    def lock(self, name: str) -> State | None:
        return self.state(name)  # BEGIN IMMEDIATE has locked the whole file

    def find_signatures(self, state: State, signatures: Sequence[bytes]) -> dict[bytes, int]:
        table = self._table("signatures", state)
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

    def insert_signatures(self, state: State, new: Numbered) -> None:
        rows = zip(new.numbers.tolist(), blobs(new.signatures), strict=True)
        self._insert(self._table("signatures", state), 2, chain(*rows))

    def insert_parts(self, state: State, rows: Sequence[tuple[int, bytes]]) -> None:
        table = self._table("parts", state)
        self._connection.executemany(f"INSERT INTO {table} VALUES (?, ?)", rows)

    def insert_keys(
        self, state: State, keys: NDArray[np.int64], numbers: NDArray[np.int64]
    ) -> None:
        rows = np.stack([keys, numbers], axis=1).ravel().tolist()
        self._insert(self._table("keys", state), 2, rows)

    def insert_documents(self, state: State, rows: Sequence[Row]) -> None:
        self._insert(self._table("documents", state), len(Row._fields), chain(*rows))

    def delete_keys(
        self, state: State, keys: NDArray[np.int64], numbers: NDArray[np.int64]
    ) -> None:
        table = self._table("keys", state)
        rows = zip(keys.tolist(), numbers.tolist(), strict=True)
        self._connection.executemany(f"DELETE FROM {table} WHERE key = ? AND signature = ?", rows)

    def log_removals(
        self,
        state: State,
        version: int,
        numbers: NDArray[np.int64],
        hashes: NDArray[np.uint64],
    ) -> None:
        table = self._table("removals", state)
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
