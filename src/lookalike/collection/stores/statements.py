"""What both databases are told in the same words.

Places of values are written `?`. What differs is in the transactions of SQLite and PostgreSQL: how
many values go into one place, and how rows are put in and taken out quickly.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from lookalike.collection.stores.base import (
    HIDDEN,
    Numbered,
    State,
    Stored,
    Writer,
    as_state,
    integers,
    numbered,
    stored,
)
from lookalike.collection.stores.schema import (
    STATE_COLUMNS,
    Dialect,
    collection_tables,
    consistency,
    document_columns,
    with_signature,
)

__all__ = ["SqlTransaction"]

_KINDS = ("documents", "keys", "signatures", "removals")


class Cursor(Protocol):
    """What `_execute` returns: rows, one after the other or all at once."""

    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class SqlTransaction(Writer):
    """One transaction on one connection. Reading needs no other object than writing."""

    dialect: ClassVar[Dialect]

    @abstractmethod
    def _execute(self, query: str, values: Sequence[Any] = ()) -> Cursor:
        """Run a statement."""

    @abstractmethod
    def _stream(self, query: str, values: Sequence[Any]) -> Iterator[list[Any]]:
        """Yield rows in batches, of which one is held at a time."""

    @abstractmethod
    def _array(self, values: list[Any]) -> object:
        """Return numbers as the one value that stands for them in `dialect.among`."""

    @abstractmethod
    def _documents_of(self, state: State, each: int | None, text: bool) -> str: ...

    # Reading

    def state(self, name: str) -> State | None:
        return self._state(name)

    def _state(self, name: str, suffix: str = "") -> State | None:
        row = self._execute(
            f"SELECT {STATE_COLUMNS} FROM {self.dialect.prefix}collections WHERE name = ?{suffix}",
            (name,),
        ).fetchone()
        return as_state(row) if row else None

    def states(self, hidden: bool = False) -> list[State]:
        rows = self._execute(
            f"SELECT {STATE_COLUMNS} FROM {self.dialect.prefix}collections ORDER BY name"
        )
        return [as_state(row) for row in rows if str(row[1]).startswith(HIDDEN) is hidden]

    def signer(self, state: State) -> str:
        row = self._execute(
            f"SELECT description FROM {self.dialect.prefix}signers WHERE number = ?",
            (state.number,),
        ).fetchone()
        return str(row[0]) if row else ""

    def candidates(self, state: State, keys: NDArray[np.int64], most: int) -> Numbered:
        values = (self._array(keys.tolist()), most)
        return numbered(self._execute(self._candidates(state), values).fetchall(), state.bits // 8)

    def _candidates(self, state: State) -> str:
        keys, rows = self._tables(state, "keys", "signatures")
        return (
            f"SELECT k.signature, s.signature FROM {keys} k "
            f"LEFT JOIN {rows} s ON s.number = k.signature "
            f"WHERE k.key {self.dialect.among} LIMIT ?"
        )

    def count_keys(self, state: State, keys: NDArray[np.int64], most: int) -> dict[int, int]:
        values = (self._array(keys.tolist()), most)
        return dict(self._execute(self._counts(state), values).fetchall())

    def _counts(self, state: State) -> str:
        (keys,) = self._tables(state, "keys")
        return (
            f"SELECT key, count(*) FROM (SELECT key FROM {keys} "
            f"WHERE key {self.dialect.among} LIMIT ?) subquery GROUP BY key"
        )

    def _after(self, state: State) -> str:
        (rows,) = self._tables(state, "signatures")
        return f"SELECT number, signature FROM {rows} WHERE number > ? ORDER BY number"

    def signatures_at(self, state: State, numbers: NDArray[np.int64]) -> Numbered:
        (table,) = self._tables(state, "signatures")
        rows = self._execute(
            f"SELECT number, signature FROM {table} WHERE number {self.dialect.among}",
            (self._array(numbers.tolist()),),
        ).fetchall()
        return numbered(rows, state.bits // 8)

    def removals_after(
        self, state: State, version: int
    ) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        (table,) = self._tables(state, "removals")
        rows = self._execute(f"SELECT signature, hash FROM {table} WHERE version > ?", (version,))
        numbers, hashes = integers(rows.fetchall())
        return numbers, hashes.view(np.uint64)

    def documents_of(
        self, state: State, numbers: NDArray[np.int64], each: int | None, text: bool
    ) -> Iterator[Stored]:
        wanted = self._array(numbers.tolist())
        values = (wanted,) if each is None else (wanted, each)
        return map(stored, self._execute(self._documents_of(state, each, text), values))

    def documents_after(self, state: State, id: str, limit: int, text: bool = True) -> list[Stored]:
        return list(map(stored, self._execute(self._documents_after(state, text), (id, limit))))

    def _documents_after(self, state: State, text: bool) -> str:
        (table,) = self._tables(state, "documents")
        return (
            f"SELECT {document_columns(text)} FROM {table} d {self._with_signature(state)} "
            "WHERE d.id > ? ORDER BY d.id LIMIT ?"
        )

    def key_rows(
        self, state: State, position: int
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        (table,) = self._tables(state, "keys")
        query = f"SELECT key, signature FROM {table} WHERE key >= ? AND key < ?"
        return map(integers, self._stream(query, (position << 32, (position + 1) << 32)))

    def problems(self, state: State) -> list[str]:
        found = []
        for question, problem in consistency(self.dialect, state):
            (count,) = self._execute(question).fetchone()
            if count:
                found.append(f"{count} {problem}")
        return found

    def plans(self, state: State) -> dict[str, str]:
        def plan(query: str, *values: object) -> str:
            rows = self._execute(f"{self.dialect.explain} {query}", values).fetchall()
            return "\n".join(str(row[-1]) for row in rows)

        some = self._array([1, 2])
        return {
            "candidates": plan(self._candidates(state), some, 1),
            "counts": plan(self._counts(state), some, 1),
            "catching up": plan(self._after(state), 1),
            "documents": plan(self._documents_of(state, None, True), some),
            "first documents": plan(self._documents_of(state, 5, True), some, 5),
            "scroll": plan(self._documents_after(state, True), "a", 5),
        }

    # Writing

    def create(self, state: State, signer: str) -> State:
        prefix = self.dialect.prefix
        (number,) = self._execute(
            f"SELECT coalesce(max(number), 0) + 1 FROM {prefix}collections"
        ).fetchone()
        state = replace(state, number=number)
        for statement in collection_tables(self.dialect, number):
            self._execute(statement)
        # PostgreSQL takes no truth for a number.
        values = [int(one) if isinstance(one, bool) else one for one in vars(state).values()]
        marks = ", ".join("?" * len(values))
        self._execute(f"INSERT INTO {prefix}collections ({STATE_COLUMNS}) VALUES ({marks})", values)
        self._execute(f"INSERT INTO {prefix}signers VALUES (?, ?)", (number, signer))
        return state

    def drop(self, state: State) -> None:
        for table in self._tables(state, *_KINDS):
            self._execute(f"DROP TABLE {table}")
        for table in ("collections", "signers"):
            self._execute(
                f"DELETE FROM {self.dialect.prefix}{table} WHERE number = ?", (state.number,)
            )

    def rename(self, state: State, name: str) -> None:
        self._execute(
            f"UPDATE {self.dialect.prefix}collections SET name = ? WHERE number = ?",
            (name, state.number),
        )

    def save(self, state: State) -> None:
        names = ("version", "documents", "signatures", "next_signature", "digest", "removals_from")
        places = ", ".join(f"{name} = ?" for name in names)
        self._execute(
            f"UPDATE {self.dialect.prefix}collections SET {places} WHERE number = ?",
            [*(getattr(state, name) for name in names), state.number],
        )

    def trim_removals(self, state: State, keep: int) -> int:
        (table,) = self._tables(state, "removals")
        row = self._execute(
            f"SELECT version FROM {table} ORDER BY version DESC LIMIT 1 OFFSET ?", (keep,)
        ).fetchone()
        if row is None:
            return state.removals_from
        self._execute(f"DELETE FROM {table} WHERE version <= ?", row)
        return int(row[0])

    def rebuild_indexes(self, state: State) -> None:
        for table in self._tables(state, "signatures", "documents"):
            self._execute(f"{self.dialect.reindex} {table}")
        # Not TRUNCATE: readers of PostgreSQL who began before it would find the table empty.
        self._execute(f"DELETE FROM {self.dialect.table('keys', state.number)}")

    # Within

    def _tables(self, state: State, *kinds: str) -> Iterable[str]:
        return [self.dialect.table(kind, state.number) for kind in kinds]

    def _with_signature(self, state: State) -> str:
        return with_signature(self.dialect, state)
