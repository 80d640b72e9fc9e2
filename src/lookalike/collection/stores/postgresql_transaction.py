"""One transaction on a PostgreSQL server: every statement that is specific to PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lookalike.collection.documents import Row
from lookalike.collection.stores.rows import Numbered, numbered
from lookalike.collection.stores.schema import Dialect, document_columns
from lookalike.collection.stores.state import State
from lookalike.collection.stores.view import SCAN_BATCH
from lookalike.collection.stores.writer import Writer

if TYPE_CHECKING:
    import psycopg

POSTGRESQL = Dialect(
    prefix="lookalike.",
    integer="BIGINT",
    text='TEXT COLLATE "C"',
    bytes="BYTEA",
    clustered="",
    among="= ANY(?::bigint[])",
    among_texts="= ANY(?::text[])",
    reindex="REINDEX TABLE",
)

SCHEMA_LOCK = "SELECT pg_advisory_xact_lock(1819242347)"
"""Whoever makes or changes tables holds this."""

_DOCUMENT_TYPES = ("text", "int8", "bytea", "text", "int8", "int8", "int8")
_COPY_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_COPY_END = b"\xff\xff"
_FETCH = 2_000


class PostgresTransaction(Writer):
    """One transaction on one connection. Reading needs no other object than writing."""

    dialect = POSTGRESQL

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._streams = 0

    def _execute(self, query: str, values: Sequence[object] = ()) -> psycopg.Cursor[Any]:
        cursor = self._connection.cursor(binary=True)
        cursor.execute(query.replace("?", "%s"), values or None)
        return cursor

    def _stream(self, query: str, values: Sequence[object]) -> Iterator[list[Any]]:
        """Yield rows in batches through a cursor on the server: the client holds one batch."""
        self._streams += 1
        name = f"lookalike_{self._streams}"
        with self._connection.cursor(name=name, binary=True) as cursor:
            cursor.execute(query.replace("?", "%s"), values)
            while rows := cursor.fetchmany(SCAN_BATCH):
                yield rows

    def _array(self, values: list[Any]) -> list[Any]:
        return values

    # Reading

    def signatures_after(self, state: State, number: int) -> Iterator[Numbered]:
        # Few rows, which is the rule, are fetched at once: a cursor on the server takes longer.
        first = self._execute(f"{self._after(state)} LIMIT {_FETCH}", (number,)).fetchall()
        if first:
            yield numbered(first, state.row_bytes)
        if len(first) == _FETCH:
            for rows in self._stream(self._after(state), (first[-1][0],)):
                yield numbered(rows, state.row_bytes)

    def _documents_of(self, state: State, each: int | None, text: bool) -> str:
        table = self._table("documents", state)
        if each is None:
            return (
                f"SELECT {document_columns(text)} FROM {table} d {self._with_signature(state)} "
                f"WHERE d.signature {POSTGRESQL.among}"
            )
        return (
            f"SELECT {document_columns(text)} FROM unnest(?::bigint[]) n CROSS JOIN LATERAL "
            f"(SELECT * FROM {table} e WHERE e.signature = n ORDER BY e.id LIMIT ?) d "
            f"{self._with_signature(state)}"
        )

    # Writing

    def lock(self, name: str) -> State | None:
        # Twice: whoever waited for a row that was then replaced finds the new one only if he looks
        # again.
        return self.state(name, " FOR UPDATE") or self.state(name, " FOR UPDATE")

    def try_lock(self, number: int) -> bool:
        """Return whether a lock that is no row's could be had; it is held until the end."""
        row = self._execute("SELECT pg_try_advisory_xact_lock(?)", (number,)).fetchone()
        return bool(row and row[0])

    def create(self, state: State, signer: str) -> State:
        self._execute(SCHEMA_LOCK)
        return self.state(state.name) or super().create(state, signer)

    def find_signatures(self, state: State, signatures: Sequence[bytes]) -> dict[bytes, int]:
        table = self._table("signatures", state)
        rows = self._execute(
            f"SELECT signature, number FROM {table} WHERE signature = ANY(?::bytea[])",
            (list(signatures),),
        )
        return dict(rows.fetchall())

    def insert_signatures(self, state: State, new: Numbered) -> None:
        rows = _empty_rows(len(new), new.signatures.shape[1])
        rows["first"], rows["second"] = new.numbers, new.signatures
        self._copy(self._table("signatures", state), rows)

    def insert_parts(self, state: State, rows: Sequence[tuple[int, bytes]]) -> None:
        self._copy_rows(self._table("parts", state), ("int8", "bytea"), rows)

    def insert_keys(
        self, state: State, keys: NDArray[np.int64], numbers: NDArray[np.int64]
    ) -> None:
        rows = _empty_rows(len(keys), 8)
        rows["first"] = keys
        rows["second"] = numbers.astype(">i8")[:, None].view(np.uint8)
        self._copy(self._table("keys", state), rows)

    def insert_documents(self, state: State, rows: Sequence[Row]) -> None:
        self._copy_rows(self._table("documents", state), _DOCUMENT_TYPES, rows)

    def delete_keys(
        self, state: State, keys: NDArray[np.int64], numbers: NDArray[np.int64]
    ) -> None:
        table = self._table("keys", state)
        self._execute(
            f"DELETE FROM {table} t USING unnest(?::bigint[], ?::bigint[]) u(k, s) "
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
        table = self._table("removals", state)
        self._execute(
            f"INSERT INTO {table} SELECT ?, n, h FROM unnest(?::bigint[], ?::bigint[]) u(n, h)",
            (version, numbers.tolist(), hashes.view(np.int64).tolist()),
        )

    def _copy_rows(
        self, table: str, types: Sequence[str], rows: Iterable[Sequence[object]]
    ) -> None:
        """Send rows of any columns, one by one."""
        command = f"COPY {table} FROM STDIN (FORMAT BINARY)"
        with self._connection.cursor().copy(command) as copy:
            copy.set_types(types)
            for row in rows:
                copy.write_row(row)

    def _copy(self, table: str, rows: NDArray[Any]) -> None:
        """Send rows of two columns in the binary format, made by NumPy and not one by one."""
        command = f"COPY {table} FROM STDIN (FORMAT BINARY)"
        with self._connection.cursor().copy(command) as copy:
            copy.write(_COPY_HEADER + rows.tobytes() + _COPY_END)


def _empty_rows(count: int, width: int) -> NDArray[Any]:
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
