"""Reading the tables: everything through one view belongs to the same version.

Places of values are written `?`. What the databases are told in words of their own is abstract
here: how many values go into one place, and how many rows are taken out quickly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from lookalike.collection.documents import Seen, damaged
from lookalike.collection.slicing import digest, hashes
from lookalike.collection.stores.rows import (
    Numbered,
    Stored,
    blobs,
    checked_parts,
    integers,
    numbered,
    stored,
)
from lookalike.collection.stores.schema import (
    STATE_COLUMNS,
    Dialect,
    consistency,
    document_columns,
)
from lookalike.collection.stores.state import State, as_state, signer_hash
from lookalike.parts.signer import SignedParts

SCAN_BATCH = 20_000
HIDDEN = "\1"
"""What names begin with while a collection is being restored: nobody can open or list those."""

_MOST_IDS = 10_000
_MOST_PARTS = 64
"""Documents whose parts are read at a time: an hour of sound has 0.9 MB of them."""


class _Cursor(Protocol):
    """What `_execute` returns: rows, one after the other or all at once."""

    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class View(ABC):
    """Reads at one moment, in one transaction on one connection."""

    dialect: ClassVar[Dialect]

    @abstractmethod
    def _execute(self, query: str, values: Sequence[Any] = ()) -> _Cursor:
        """Run a statement."""

    @abstractmethod
    def _stream(self, query: str, values: Sequence[Any]) -> Iterator[list[Any]]:
        """Yield rows in batches, of which one is held at a time."""

    @abstractmethod
    def _array(self, values: list[Any]) -> object:
        """Return values as the one that stands for them in `dialect.among`."""

    def _table(self, kind: str, state: State) -> str:
        return self.dialect.table(kind, state.number)

    def _with_signature(self, state: State) -> str:
        """Join the signature `s` to a document `d`."""
        return f"LEFT JOIN {self._table('signatures', state)} s ON s.number = d.signature"

    # The row of a collection

    def state(self, name: str, suffix: str = "") -> State | None:
        """Return the row of a collection, or None if there is none of that name."""
        row = self._execute(
            f"SELECT {STATE_COLUMNS} FROM {self.dialect.prefix}collections WHERE name = ?{suffix}",
            (name,),
        ).fetchone()
        return as_state(row) if row else None

    def states(self, hidden: bool = False) -> list[State]:
        """Return the rows of all collections that can be opened, or of all others, by name."""
        rows = self._execute(
            f"SELECT {STATE_COLUMNS} FROM {self.dialect.prefix}collections ORDER BY name"
        )
        return [as_state(row) for row in rows if str(row[1]).startswith(HIDDEN) is hidden]

    def signer(self, state: State) -> str:
        """Return the description of the signer as JSON, whatever there is."""
        row = self._execute(
            f"SELECT description FROM {self.dialect.prefix}signers WHERE number = ?",
            (state.number,),
        ).fetchone()
        return str(row[0]) if row else ""

    def checked_signer(self, state: State) -> str:
        """Return the description of the signer as JSON, or raise if it is not as written."""
        description = self.signer(state)
        if signer_hash(description) != state.signer:
            raise damaged(f"the signer of {state.name[:80]!r} is not described as it was")
        return description

    # Signatures

    def candidates(self, state: State, keys: NDArray[np.int64], most: int) -> Numbered:
        """Return signatures once for each of the keys that they have; `most` rows at most."""
        rows = self._execute(
            f"SELECT k.signature, s.signature FROM {self._table('keys', state)} k "
            f"LEFT JOIN {self._table('signatures', state)} s ON s.number = k.signature "
            f"WHERE k.key {self.dialect.among} LIMIT ?",
            (self._array(keys.tolist()), most),
        )
        return numbered(rows.fetchall(), state.row_bytes)

    def count_keys(self, state: State, keys: NDArray[np.int64], most: int) -> dict[int, int]:
        """Return how many signatures have each key, looking at `most` rows at most in all."""
        rows = self._execute(
            f"SELECT key, count(*) FROM (SELECT key FROM {self._table('keys', state)} "
            f"WHERE key {self.dialect.among} LIMIT ?) subquery GROUP BY key",
            (self._array(keys.tolist()), most),
        )
        return dict(rows.fetchall())

    def signatures_after(self, state: State, number: int) -> Iterator[Numbered]:
        """Yield all signatures with larger numbers, in order, in batches."""
        for rows in self._stream(self._after(state), (number,)):
            yield numbered(rows, state.row_bytes)

    def _after(self, state: State) -> str:
        table = self._table("signatures", state)
        return f"SELECT number, signature FROM {table} WHERE number > ? ORDER BY number"

    def all_signatures(self, state: State) -> Iterator[Numbered]:
        """Yield all signatures, in order, in batches; raise at the end if one is not as written."""
        count, value, last = 0, 0, -1
        for batch in self.signatures_after(state, -1):
            count += len(batch)
            value ^= digest(hashes(batch.numbers, batch.signatures))
            last = int(batch.numbers[-1])
            yield batch
        if last >= state.next_signature:
            raise damaged(f"the signature {last} has a number not given out yet")
        if (count, value) != (state.signatures, state.digest):
            raise damaged(
                f"there are {count} signatures in the table, which are not the {state.signatures} "
                f"that the collection {state.name[:80]!r} should have"
            )

    def whole_table(self, state: State) -> Numbered:
        """Return all signatures at once, in order, if they are as written."""
        parts = list(self.all_signatures(state))
        signatures = [np.empty((0, state.row_bytes), np.uint8), *(p.signatures for p in parts)]
        numbers = [np.empty(0, np.int64), *(part.numbers for part in parts)]
        return Numbered(np.concatenate(numbers), np.concatenate(signatures))

    def parts(self, state: State, wanted: Numbered) -> Iterator[tuple[int, SignedParts]]:
        """Yield number and parts of each of these digests, in order; a few are held at a time.

        Raises where there are none, or others than those that have this digest.
        """
        digests = blobs(wanted.signatures)
        for begin in range(0, len(wanted), _MOST_PARTS):
            numbers = wanted.numbers[begin : begin + _MOST_PARTS].tolist()
            rows = self._execute(
                f"SELECT number, parts FROM {self._table('parts', state)} "
                f"WHERE number {self.dialect.among}",
                (self._array(numbers),),
            )
            found = dict(rows.fetchall())
            for number, known_by in zip(numbers, digests[begin:], strict=False):
                yield number, checked_parts(number, found.get(number), known_by, state.bits)

    def removals_after(
        self, state: State, version: int
    ) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        """Return number and hash of signatures that were removed in later versions."""
        table = self._table("removals", state)
        rows = self._execute(f"SELECT signature, hash FROM {table} WHERE version > ?", (version,))
        numbers, hashed = integers(rows.fetchall())
        return numbers, hashed.view(np.uint64)

    def key_rows(
        self, state: State, position: int
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield the rows (key, number) at one position, in batches."""
        table = self._table("keys", state)
        query = f"SELECT key, signature FROM {table} WHERE key >= ? AND key < ?"
        return map(integers, self._stream(query, (position << 32, (position + 1) << 32)))

    # Documents

    def documents(self, state: State, ids: Sequence[str], text: bool = True) -> list[Stored]:
        """Return the documents with these ids, in no particular order."""
        query = (
            f"SELECT {document_columns(text)} FROM {self._table('documents', state)} d "
            f"{self._with_signature(state)} WHERE d.id {self.dialect.among_texts}"
        )
        found: list[Stored] = []
        for some in self._arrays(ids):
            found += map(stored, self._execute(query, (some,)))
        return found

    def seen(self, state: State, ids: Sequence[str]) -> dict[str, Seen]:
        """Return the versions of the documents with these ids that are there."""
        query = (
            f"SELECT {', '.join(Seen._fields)} FROM {self._table('documents', state)} "
            f"WHERE id {self.dialect.among_texts}"
        )
        found = {}
        for some in self._arrays(ids):
            found.update({row[0]: Seen._make(row) for row in self._execute(query, (some,))})
        return found

    def _arrays(self, ids: Sequence[str]) -> Iterator[object]:
        """Yield different ids, a bounded number in one value, for `dialect.among_texts`."""
        wanted = list(dict.fromkeys(ids))
        for begin in range(0, len(wanted), _MOST_IDS):
            yield self._array(wanted[begin : begin + _MOST_IDS])

    def documents_of(
        self, state: State, numbers: NDArray[np.int64], each: int | None, text: bool
    ) -> Iterator[Stored]:
        """Yield the documents that have these signatures.

        Of each signature not more than `each`, and then those that come first by id.
        """
        wanted = self._array(numbers.tolist())
        values = (wanted,) if each is None else (wanted, each)
        return map(stored, self._execute(self._documents_of(state, each, text), values))

    @abstractmethod
    def _documents_of(self, state: State, each: int | None, text: bool) -> str: ...

    def pages(
        self, state: State, size: int, after: str = "", text: bool = True
    ) -> Iterator[list[Stored]]:
        """Yield all documents behind `after` by id, `size` at a time.

        Comes to an end whatever the tables hold: ids that do not grow, which a damaged index may
        bring again and again, raise.
        """
        query = (
            f"SELECT {document_columns(text)} FROM {self._table('documents', state)} d "
            f"{self._with_signature(state)} WHERE d.id > ? ORDER BY d.id LIMIT ?"
        )
        while page := list(map(stored, self._execute(query, (after, size)))):
            for row, _ in page:
                if not isinstance(row.id, str) or row.id <= after:
                    raise damaged(f"after the id {after[:80]!r} comes {str(row.id)[:80]!r}")
                after = row.id
            yield page
            if len(page) < size:
                return

    # Care

    def problems(self, state: State) -> list[str]:
        """Return what the database itself and counting find wrong with the tables."""
        found = []
        for question, problem in consistency(self.dialect, state):
            (count,) = self._execute(question).fetchone()
            if count:
                found.append(f"{count} {problem}")
        return found
