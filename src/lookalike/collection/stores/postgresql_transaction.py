"""One transaction on a PostgreSQL server: every statement that is specific to PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    import psycopg

__all__ = ["POSTGRESQL", "SCHEMA_LOCK", "PostgresTransaction"]

POSTGRESQL = Dialect("lookalike.", "BIGINT", 'TEXT COLLATE "C"', "BYTEA", "")

SCHEMA_LOCK = "SELECT pg_advisory_xact_lock(1819242347)"
"""Whoever makes or changes tables holds this."""

_DOCUMENT = ("id", "signature", "text", "metadata", "added", "updated", "checksum")
_DOCUMENT_TYPES = ("text", "int8", "bytea", "text", "int8", "int8", "int8")
_COPY_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_COPY_END = b"\xff\xff"
_FETCH = 2_000


class PostgresTransaction(Writer):
    """One transaction on one connection. Reading needs no other object than writing."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._streams = 0

    def _execute(self, query: str, values: Sequence[object] = ()) -> psycopg.Cursor[Any]:
        cursor = self._connection.cursor(binary=True)
        cursor.execute(query, values or None)
        return cursor

    def _stream(self, query: str, values: Sequence[object]) -> Iterator[list[Any]]:
        """Yield rows in batches through a cursor on the server: the client holds one batch."""
        self._streams += 1
        name = f"lookalike_{self._streams}"
        with self._connection.cursor(name=name, binary=True) as cursor:
            cursor.execute(query, values)
            while rows := cursor.fetchmany(SCAN_BATCH):
                yield rows

    # Reading

    def state(self, name: str) -> State | None:
        return self._state("", name)

    def _state(self, suffix: str, name: str) -> State | None:
        row = self._execute(
            f"SELECT {STATE_COLUMNS} FROM lookalike.collections WHERE name = %s{suffix}", (name,)
        ).fetchone()
        return _state(row) if row else None

    def states(self) -> list[State]:
        rows = self._execute(f"SELECT {STATE_COLUMNS} FROM lookalike.collections ORDER BY name")
        return [state for state in map(_state, rows) if not state.name.startswith(HIDDEN)]

    def signer(self, state: State) -> str:
        row = self._execute(
            "SELECT description FROM lookalike.signers WHERE number = %s", (state.number,)
        ).fetchone()
        return str(row[0]) if row else ""

    def candidates(self, state: State, keys: NDArray[np.int64], most: int) -> Numbered:
        rows = self._execute(_candidates(state), (keys.tolist(), most)).fetchall()
        return numbered(rows, state.bits // 8)

    def count_keys(self, state: State, keys: NDArray[np.int64], most: int) -> dict[int, int]:
        return dict(self._execute(_counts(state), (keys.tolist(), most)).fetchall())

    def signatures_after(self, state: State, number: int) -> Iterator[Numbered]:
        # Few rows, which is the rule, are fetched at once: a cursor on the server takes longer.
        first = self._execute(f"{_after(state)} LIMIT {_FETCH}", (number,)).fetchall()
        if first:
            yield numbered(first, state.bits // 8)
        if len(first) == _FETCH:
            for rows in self._stream(_after(state), (first[-1][0],)):
                yield numbered(rows, state.bits // 8)

    def signatures_at(self, state: State, numbers: NDArray[np.int64]) -> Numbered:
        table = POSTGRESQL.table("signatures", state.number)
        rows = self._execute(
            f"SELECT number, signature FROM {table} WHERE number = ANY(%s::bigint[])",
            (numbers.tolist(),),
        ).fetchall()
        return numbered(rows, state.bits // 8)

    def removals_after(
        self, state: State, version: int
    ) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        table = POSTGRESQL.table("removals", state.number)
        rows = self._execute(
            f"SELECT signature, hash FROM {table} WHERE version > %s", (version,)
        ).fetchall()
        array = np.array(rows, np.int64).reshape(-1, 2)
        return array[:, 0].copy(), array[:, 1].copy().view(np.uint64)

    def documents(self, state: State, ids: Sequence[str], text: bool = True) -> list[Row]:
        table = POSTGRESQL.table("documents", state.number)
        rows = self._execute(
            f"SELECT {_columns(text, 'd.')} FROM {table} d WHERE d.id = ANY(%s::text[])",
            (list(ids),),
        )
        return list(map(Row._make, rows))

    def documents_of(
        self, state: State, numbers: NDArray[np.int64], each: int | None, text: bool
    ) -> Iterator[Row]:
        values = (numbers.tolist(),) if each is None else (numbers.tolist(), each)
        return map(Row._make, self._execute(_documents_of(state, each, text), values))

    def documents_after(
        self, state: State, id: str, limit: int, text: bool = True
    ) -> list[tuple[Row, bytes]]:
        rows = self._execute(_documents_after(state, text), (id, limit))
        return [(Row._make(row[:-1]), row[-1]) for row in rows]

    def key_rows(
        self, state: State, position: int
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        query = (
            f"SELECT key, signature FROM {POSTGRESQL.table('keys', state.number)} "
            "WHERE key >= %s AND key < %s"
        )
        for rows in self._stream(query, (position << 32, (position + 1) << 32)):
            array = np.array(rows, np.int64)
            yield array[:, 0], array[:, 1]

    def problems(self, state: State) -> list[str]:
        found = []
        for question, problem in consistency(POSTGRESQL, state):
            row = self._execute(question).fetchone()
            if row and row[0]:
                found.append(f"{row[0]} {problem}")
        return found

    def plans(self, state: State) -> dict[str, str]:
        def plan(query: str, *values: object) -> str:
            rows = self._execute(f"EXPLAIN {query}", values).fetchall()
            return "\n".join(str(row[0]) for row in rows)

        return {
            "candidates": plan(_candidates(state), [1, 2], 1),
            "counts": plan(_counts(state), [1, 2], 1),
            "catching up": plan(_after(state), 1),
            "documents": plan(_documents_of(state, None, True), [1, 2]),
            "first documents": plan(_documents_of(state, 5, True), [1, 2], 5),
            "scroll": plan(_documents_after(state, True), "a", 5),
        }

    # Writing

    def lock(self, name: str) -> State | None:
        # Twice: whoever waited for a row that was then replaced finds the new one only if he looks
        # again.
        return self._state(" FOR UPDATE", name) or self._state(" FOR UPDATE", name)

    def create(self, state: State, signer: str) -> State:
        self._execute(SCHEMA_LOCK)
        existing = self.state(state.name)
        if existing:
            return existing
        row = self._execute(
            "SELECT coalesce(max(number), 0) + 1 FROM lookalike.collections"
        ).fetchone()
        state = replace(state, number=row[0] if row else 1)
        for statement in collection_tables(POSTGRESQL, state.number):
            self._execute(statement)
        values = [
            int(value) if isinstance(value, bool) else value for value in vars(state).values()
        ]
        marks = ", ".join(["%s"] * len(values))
        self._execute(
            f"INSERT INTO lookalike.collections ({STATE_COLUMNS}) VALUES ({marks})", values
        )
        self._execute("INSERT INTO lookalike.signers VALUES (%s, %s)", (state.number, signer))
        return state

    def drop(self, state: State) -> None:
        for kind in ("documents", "keys", "signatures", "removals"):
            self._execute(f"DROP TABLE {POSTGRESQL.table(kind, state.number)}")
        for table in ("collections", "signers"):
            self._execute(f"DELETE FROM lookalike.{table} WHERE number = %s", (state.number,))

    def rename(self, state: State, name: str) -> None:
        self._execute(
            "UPDATE lookalike.collections SET name = %s WHERE number = %s", (name, state.number)
        )

    def save(self, state: State) -> None:
        self._execute(
            "UPDATE lookalike.collections SET version = %s, documents = %s, signatures = %s, "
            "next_signature = %s, digest = %s, removals_from = %s WHERE number = %s",
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
        table = POSTGRESQL.table("signatures", state.number)
        rows = self._execute(
            f"SELECT signature, number FROM {table} WHERE signature = ANY(%s::bytea[])",
            (list(signatures),),
        )
        return dict(rows.fetchall())

    def find_documents(self, state: State, ids: Sequence[str]) -> dict[str, tuple[int, int]]:
        table = POSTGRESQL.table("documents", state.number)
        rows = self._execute(
            f"SELECT id, signature, added FROM {table} WHERE id = ANY(%s::text[])", (list(ids),)
        )
        return {id: (signature, added) for id, signature, added in rows}

    def insert_signatures(self, state: State, new: Numbered) -> None:
        rows = _copy_rows(len(new), new.signatures.shape[1])
        rows["first"], rows["second"] = new.numbers, new.signatures
        self._copy(POSTGRESQL.table("signatures", state.number), rows)

    def insert_keys(
        self, state: State, keys: NDArray[np.int64], numbers: NDArray[np.int64]
    ) -> None:
        rows = _copy_rows(len(keys), 8)
        rows["first"] = keys
        rows["second"] = numbers.astype(">i8")[:, None].view(np.uint8)
        self._copy(POSTGRESQL.table("keys", state.number), rows)

    def insert_documents(self, state: State, rows: Sequence[Row]) -> None:
        table = POSTGRESQL.table("documents", state.number)
        command = f"COPY {table} FROM STDIN (FORMAT BINARY)"
        with self._connection.cursor().copy(command) as copy:
            copy.set_types(_DOCUMENT_TYPES)
            for row in rows:
                copy.write_row(row)

    def delete_documents(self, state: State, ids: Sequence[str]) -> None:
        table = POSTGRESQL.table("documents", state.number)
        self._execute(f"DELETE FROM {table} WHERE id = ANY(%s::text[])", (list(ids),))

    def unused(self, state: State, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        table = POSTGRESQL.table("documents", state.number)
        rows = self._execute(
            "SELECT n FROM unnest(%s::bigint[]) n WHERE NOT EXISTS "
            f"(SELECT 1 FROM {table} d WHERE d.signature = n)",
            (numbers.tolist(),),
        )
        return np.array([row[0] for row in rows], np.int64)

    def delete_signatures(self, state: State, numbers: NDArray[np.int64]) -> None:
        table = POSTGRESQL.table("signatures", state.number)
        self._execute(f"DELETE FROM {table} WHERE number = ANY(%s::bigint[])", (numbers.tolist(),))

    def delete_keys(
        self, state: State, keys: NDArray[np.int64], numbers: NDArray[np.int64]
    ) -> None:
        table = POSTGRESQL.table("keys", state.number)
        self._execute(
            f"DELETE FROM {table} t USING unnest(%s::bigint[], %s::bigint[]) u(k, s) "
            "WHERE t.key = u.k AND t.signature = u.s",
            (keys.tolist(), numbers.tolist()),
        )

    def log_removals(
        self,
        state: State,
        version: int,
        numbers: NDArray[np.int64],
        hashes: NDArray[np.uint64],
    ) -> None:
        table = POSTGRESQL.table("removals", state.number)
        self._execute(
            f"INSERT INTO {table} SELECT %s, n, h FROM unnest(%s::bigint[], %s::bigint[]) u(n, h)",
            (version, numbers.tolist(), hashes.view(np.int64).tolist()),
        )

    def trim_removals(self, state: State, keep: int) -> int:
        table = POSTGRESQL.table("removals", state.number)
        row = self._execute(
            f"SELECT version FROM {table} ORDER BY version DESC LIMIT 1 OFFSET %s", (keep,)
        ).fetchone()
        if row is None:
            return state.removals_from
        self._execute(f"DELETE FROM {table} WHERE version <= %s", row)
        return int(row[0])

    def rebuild_indexes(self, state: State) -> None:
        self._execute(f"REINDEX TABLE {POSTGRESQL.table('signatures', state.number)}")
        self._execute(f"REINDEX TABLE {POSTGRESQL.table('documents', state.number)}")
        # Not TRUNCATE: readers who began before it would find the table empty.
        self._execute(f"DELETE FROM {POSTGRESQL.table('keys', state.number)}")

    def _copy(self, table: str, rows: NDArray[Any]) -> None:
        """Send rows of two columns in the binary format, made by NumPy and not one by one."""
        command = f"COPY {table} FROM STDIN (FORMAT BINARY)"
        with self._connection.cursor().copy(command) as copy:
            copy.write(_COPY_HEADER + rows.tobytes() + _COPY_END)


def _copy_rows(count: int, width: int) -> NDArray[Any]:
    """Return room for rows of an integer and `width` bytes, with their lengths filled in."""
    rows = np.empty(
        count,
        [
            ("fields", ">i2"),
            ("first_length", ">i4"),
            ("first", ">i8"),
            ("second_length", ">i4"),
            ("second", "u1", (width,)),
        ],
    )
    rows["fields"], rows["first_length"], rows["second_length"] = 2, 8, width
    return rows


def _state(row: tuple[Any, ...]) -> State:
    state = State(*row)
    return replace(state, keep_text=bool(state.keep_text))


def _columns(text: bool, prefix: str) -> str:
    return ", ".join(
        "NULL::bytea" if name == "text" and not text else prefix + name for name in _DOCUMENT
    )


def _candidates(state: State) -> str:
    keys, rows = (POSTGRESQL.table(kind, state.number) for kind in ("keys", "signatures"))
    return (
        f"SELECT s.number, s.signature FROM {keys} k JOIN {rows} s ON s.number = k.signature "
        "WHERE k.key = ANY(%s::bigint[]) LIMIT %s"
    )


def _counts(state: State) -> str:
    return (
        f"SELECT key, count(*) FROM (SELECT key FROM {POSTGRESQL.table('keys', state.number)} "
        "WHERE key = ANY(%s::bigint[]) LIMIT %s) k GROUP BY key"
    )


def _after(state: State) -> str:
    table = POSTGRESQL.table("signatures", state.number)
    return f"SELECT number, signature FROM {table} WHERE number > %s ORDER BY number"


def _documents_of(state: State, each: int | None, text: bool) -> str:
    table = POSTGRESQL.table("documents", state.number)
    if each is None:
        return f"SELECT {_columns(text, 'd.')} FROM {table} d WHERE d.signature = ANY(%s::bigint[])"
    return (
        f"SELECT {_columns(text, 'd.')} FROM unnest(%s::bigint[]) n CROSS JOIN LATERAL "
        f"(SELECT * FROM {table} e WHERE e.signature = n ORDER BY e.id LIMIT %s) d"
    )


def _documents_after(state: State, text: bool) -> str:
    documents, rows = (POSTGRESQL.table(kind, state.number) for kind in ("documents", "signatures"))
    return (
        f"SELECT {_columns(text, 'd.')}, s.signature FROM {documents} d "
        f"LEFT JOIN {rows} s ON s.number = d.signature WHERE d.id > %s ORDER BY d.id LIMIT %s"
    )
