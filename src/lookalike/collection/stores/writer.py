"""Writing the tables: what is written becomes visible together, when it is committed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lookalike.collection.documents import Row
from lookalike.collection.stores.rows import Numbered, numbered
from lookalike.collection.stores.schema import (
    STATE_COLUMNS,
    collection_tables,
    kinds_of_tables,
)
from lookalike.collection.stores.state import State
from lookalike.collection.stores.view import View


class Writer(View):
    """Reads and writes in one transaction. Reading needs no other object than writing."""

    # The row of a collection

    @abstractmethod
    def lock(self, name: str) -> State | None:
        """Return the row of a collection and hold it until the end."""

    def create(self, state: State, signer: str) -> State:
        """Make the tables of a new collection and return its row, with its number.

        Where another process was first, returns the row of what that one made.
        """
        prefix = self.dialect.prefix
        (number,) = self._execute(
            f"SELECT coalesce(max(number), 0) + 1 FROM {prefix}collections"
        ).fetchone()
        state = replace(state, number=number)
        for statement in collection_tables(self.dialect, state):
            self._execute(statement)
        # PostgreSQL takes no truth for a number.
        values = [int(one) if isinstance(one, bool) else one for one in vars(state).values()]
        marks = ", ".join("?" * len(values))
        self._execute(f"INSERT INTO {prefix}collections ({STATE_COLUMNS}) VALUES ({marks})", values)
        self._execute(f"INSERT INTO {prefix}signers VALUES (?, ?)", (number, signer))
        return state

    def drop(self, state: State) -> None:
        """Remove a collection with all it holds."""
        for kind in kinds_of_tables(state):
            self._execute(f"DROP TABLE {self._table(kind, state)}")
        for table in ("collections", "signers"):
            self._execute(
                f"DELETE FROM {self.dialect.prefix}{table} WHERE number = ?", (state.number,)
            )

    def rename(self, state: State, name: str) -> None:
        """Give a collection another name."""
        self._execute(
            f"UPDATE {self.dialect.prefix}collections SET name = ? WHERE number = ?",
            (name, state.number),
        )

    def save(self, state: State) -> None:
        """Replace the row of a collection."""
        names = ("version", "documents", "signatures", "next_signature", "digest", "removals_from")
        places = ", ".join(f"{name} = ?" for name in names)
        self._execute(
            f"UPDATE {self.dialect.prefix}collections SET {places} WHERE number = ?",
            [*(getattr(state, name) for name in names), state.number],
        )

    # Signatures and keys

    @abstractmethod
    def find_signatures(self, state: State, signatures: Sequence[bytes]) -> dict[bytes, int]:
        """Return the numbers of those that are there."""

    @abstractmethod
    def insert_signatures(self, state: State, new: Numbered) -> None:
        """Add signatures."""

    @abstractmethod
    def insert_parts(self, state: State, rows: Sequence[tuple[int, bytes]]) -> None:
        """Add the parts, packed, that the digests of these numbers stand for."""

    @abstractmethod
    def insert_keys(
        self, state: State, keys: NDArray[np.int64], numbers: NDArray[np.int64]
    ) -> None:
        """Add rows to the table of keys."""

    @abstractmethod
    def delete_keys(
        self, state: State, keys: NDArray[np.int64], numbers: NDArray[np.int64]
    ) -> None:
        """Remove rows from the table of keys."""

    def unused(self, state: State, numbers: NDArray[np.int64]) -> Numbered:
        """Return those of the signatures with these numbers that no document has."""
        rows = self._execute(
            f"SELECT s.number, s.signature FROM {self._table('signatures', state)} s "
            f"WHERE s.number {self.dialect.among} AND NOT EXISTS "
            f"(SELECT 1 FROM {self._table('documents', state)} d WHERE d.signature = s.number)",
            (self._array(numbers.tolist()),),
        )
        return numbered(rows.fetchall(), state.row_bytes)

    def delete_signatures(self, state: State, numbers: NDArray[np.int64]) -> None:
        """Remove signatures, with the parts that they stand for."""
        for kind in ("signatures", "parts") if state.parts else ("signatures",):
            self._execute(
                f"DELETE FROM {self._table(kind, state)} WHERE number {self.dialect.among}",
                (self._array(numbers.tolist()),),
            )

    @abstractmethod
    def log_removals(
        self, state: State, version: int, numbers: NDArray[np.int64], hashes: NDArray[np.uint64]
    ) -> None:
        """Note which signatures a version has removed."""

    def trim_removals(self, state: State, keep: int) -> int:
        """Forget the oldest removals beyond `keep`; return the version they are known from."""
        table = self._table("removals", state)
        row = self._execute(
            f"SELECT version FROM {table} ORDER BY version DESC LIMIT 1 OFFSET ?", (keep,)
        ).fetchone()
        if row is None:
            return state.removals_from
        self._execute(f"DELETE FROM {table} WHERE version <= ?", row)
        return int(row[0])

    # Documents

    def find_documents(self, state: State, ids: Sequence[str]) -> dict[str, int]:
        """Return the number of the signature for those that are there."""
        table = self._table("documents", state)
        query = f"SELECT id, signature FROM {table} WHERE id {self.dialect.among_texts}"
        found: dict[str, int] = {}
        for some in self._arrays(ids):
            found.update(self._execute(query, (some,)).fetchall())
        return found

    @abstractmethod
    def insert_documents(self, state: State, rows: Sequence[Row]) -> None:
        """Add documents."""

    def delete_documents(self, state: State, ids: Sequence[str]) -> None:
        """Remove documents."""
        table = self._table("documents", state)
        for some in self._arrays(ids):
            self._execute(f"DELETE FROM {table} WHERE id {self.dialect.among_texts}", (some,))

    # Care

    def rebuild_indexes(self, state: State) -> None:
        """Make the database rebuild its own indexes over the tables, and empty that of keys."""
        for kind in ("signatures", "documents", *(["parts"] if state.parts else [])):
            self._execute(f"{self.dialect.reindex} {self._table(kind, state)}")
        # Not TRUNCATE: readers of PostgreSQL who began before it would find the table empty.
        self._execute(f"DELETE FROM {self._table('keys', state)}")
