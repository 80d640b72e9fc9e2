"""The interface of a database that stores collections.

Tables, the same in every database, `N` being the number of a collection:

    collections     one row each: name, widths, and the state of the collection
    signers         how each collection's documents are signed
    signatures_N    number, signature: each signature once; a number is never used again
    keys_N          key, signature: primary key on both; the slices of every signature
    documents_N     id, number of the signature, text, metadata, times, checksum
    removals_N      version, number, hash: removed signatures, for indexes that catch up
    parts_N         number, parts: where documents have many signatures, these and their positions;
                    signatures_N then has their digest
    words_N         number, id, words, hash: where there is a keyword index, the words of each
                    document; a document that is written again gets another number
    word_removals_N version, number, hash: words of removed documents, like removals_N
    vectors_N       number, id, vectors, hash: where documents have vectors, those of some or all
                    documents, like words_N
    vector_removals_N  as word_removals_N

A writer holds the row of the collection until the commit. So versions follow each other in the
order of commits, and a number is visible only after all smaller ones.

A kind of database is a `Store` with its `Writer`, registered in `stores.address`. Statements have
`?` in place of values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from lookalike.collection.documents import Row, Seen, damaged
from lookalike.collection.stores.entries import Entries, checked_entries
from lookalike.collection.stores.pool import Pool
from lookalike.collection.stores.schema import (
    MIGRATIONS,
    REMOVED,
    STATE_COLUMNS,
    VECTORS,
    WORDS,
    Dialect,
    EntryKind,
    Numbered,
    Numbers,
    State,
    Stored,
    as_state,
    blobs,
    checked_parts,
    collection_tables,
    consistency,
    document_columns,
    entry_kinds,
    entry_tables,
    integers,
    kinds_of_tables,
    numbered,
    signer_hash,
)
from lookalike.errors import ArgumentError, CollectionError, FormatError, NotFoundError, Said
from lookalike.operation import interruptible
from lookalike.parts.signer import SignedParts

if TYPE_CHECKING:
    from lookalike.collection.stores.address import Address

SCAN_BATCH = 20_000
HIDDEN = "\1"
"""The beginning of the name of a collection while it is being restored; it cannot be opened."""
TO_MAKE_ONE = Said(
    '; to create one, pass purpose="search" or "duplicates", a signer, or bits',
    "; `lookalike collection create` creates one",
)

_MOST_NAME = 200
_MOST_IDS = 10_000
_ENTRY_BYTES = 32 << 20  # of values of entries that are read at a time, if their size is known
_MOST_PARTS = 64  # documents whose parts are read at a time: an hour of sound has 0.9 MB of them


class NoCollectionsError(NotFoundError):
    """A database without our tables, opened without permission to create them."""

    def __init__(self, shown: str) -> None:
        super().__init__(f"there are no collections in {shown}")


class StaleView(CollectionError):
    """A view that is out of date: take a new one."""

    def __init__(self) -> None:
        super().__init__("the collection was replaced or dropped meanwhile; try again")


def checked_name(name: str) -> str:
    """Return the name if it is valid for a collection."""
    if not isinstance(name, str) or not name or len(name) > _MOST_NAME or not name.isprintable():
        raise ArgumentError(
            f"the name of the collection is {str(name)[: 2 * _MOST_NAME]!r}; expected 1 to "
            f"{_MOST_NAME} printable characters"
        )
    return name


def maybe_written(shown: str, error: Exception) -> CollectionError:
    """Return the error for a commit that may or may not have happened."""
    return CollectionError(
        f"{shown}: this batch could not be committed ({error}). It may have been written, "
        "completely or not at all: ",
        Said(
            "check with get(), or repeat it with upsert()",
            "check with `lookalike collection get`, or repeat it with --replace",
        ),
    )


def _stored(rows: Iterable[Any]) -> Iterator[Stored]:
    """Return documents and their signatures, one by one, from rows with the columns of both."""
    return ((Row._make(row[:-1]), row[-1]) for row in rows)


class View(ABC):
    """Reads in one transaction: everything belongs to the same version.

    `at` chooses the collection that all methods but `find` and `states` read.
    """

    dialect: ClassVar[Dialect]

    state: State  # the row of the collection that is read

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    @abstractmethod
    def _execute(self, query: str, values: Sequence[Any] = ()) -> Any: ...

    @abstractmethod
    def _stream(
        self, query: str, values: Sequence[Any], size: int = SCAN_BATCH
    ) -> Iterator[list[Any]]:
        """Yield rows in batches of `size`, of which one is held at a time."""

    @abstractmethod
    def _array(self, values: list[Any]) -> object:
        """Return the one value that stands for many in `dialect.among`."""

    def _table(self, kind: str) -> str:
        return f"{self.dialect.prefix}{kind}_{self.state.number}"

    def _with_signature(self) -> str:
        """Join the signature `s` to a document `d`."""
        return f"LEFT JOIN {self._table('signatures')} s ON s.number = d.signature"

    # The row of a collection

    def at(self, state: State) -> Self:
        """Return the same transaction, to read this collection."""
        chosen = type(self)(self._connection)
        chosen.state = state
        return chosen

    def find(self, name: str, suffix: str = "") -> State | None:
        """Return the row of a collection, or None if there is none of that name."""
        row = self._execute(
            f"SELECT {STATE_COLUMNS} FROM {self.dialect.prefix}collections WHERE name = ?{suffix}",
            (name,),
        ).fetchone()
        return as_state(*row) if row else None

    def states(self, hidden: bool = False) -> list[State]:
        """Return the rows of all collections that can be opened, or of all others, by name."""
        rows = self._execute(
            f"SELECT {STATE_COLUMNS} FROM {self.dialect.prefix}collections ORDER BY name"
        )
        return [as_state(*row) for row in rows if str(row[1]).startswith(HIDDEN) is hidden]

    def signer(self) -> str:
        """Return the description of the signer as JSON, not checked."""
        row = self._execute(
            f"SELECT description FROM {self.dialect.prefix}signers WHERE number = ?",
            (self.state.number,),
        ).fetchone()
        return str(row[0]) if row else ""

    def checked_signer(self) -> str:
        """Return the description of the signer as JSON; raise if it is not as written."""
        description = self.signer()
        if signer_hash(description) != self.state.signer:
            raise damaged(f"the description of the signer of {self.state.name[:80]!r} has changed")
        return description

    # Signatures

    def candidates(self, keys: Numbers, most: int) -> Numbered:
        """Return signatures once for each of the keys that they have; `most` rows at most."""
        rows = self._execute(
            f"SELECT k.signature, s.signature FROM {self._table('keys')} k "
            f"LEFT JOIN {self._table('signatures')} s ON s.number = k.signature "
            f"WHERE k.key {self.dialect.among} LIMIT ?",
            (self._array(keys.tolist()), most),
        )
        return numbered(rows.fetchall(), self.state.row_bytes)

    def count_keys(self, keys: Numbers, most: int) -> dict[int, int]:
        """Return how many signatures have each key, reading `most` rows at most in all."""
        rows = self._execute(
            f"SELECT key, count(*) FROM (SELECT key FROM {self._table('keys')} "
            f"WHERE key {self.dialect.among} LIMIT ?) subquery GROUP BY key",
            (self._array(keys.tolist()), most),
        )
        return dict(rows.fetchall())

    def signatures_after(self, number: int) -> Iterator[Numbered]:
        """Yield all signatures with larger numbers, in order, in batches."""
        for rows in self._stream(self._after(), (number,)):
            yield numbered(rows, self.state.row_bytes)

    def _after(self) -> str:
        table = self._table("signatures")
        return f"SELECT number, signature FROM {table} WHERE number > ? ORDER BY number"

    def all_signatures(self) -> Iterator[Numbered]:
        """Yield all signatures, in order, in batches; raise at the end if one is not as written."""
        state = self.state
        count, value, last = 0, 0, -1
        for batch in self.signatures_after(-1):
            count += len(batch)
            value ^= batch.digest()
            last = int(batch.numbers[-1])
            yield batch
        if last >= state.next_signature:
            raise damaged(f"the signature {last} has a number not given out yet")
        if (count, value) != (state.signatures, state.digest):
            raise damaged(
                f"there are {count} signatures in the table, which are not the {state.signatures} "
                f"that the collection {state.name[:80]!r} should have"
            )

    def whole_table(self) -> Numbered:
        """Return all signatures at once, in order; raise if one is not as written."""
        parts = list(self.all_signatures())
        signatures = [np.empty((0, self.state.row_bytes), np.uint8), *(p.signatures for p in parts)]
        numbers = [np.empty(0, np.int64), *(part.numbers for part in parts)]
        return Numbered(np.concatenate(numbers), np.concatenate(signatures))

    def parts(self, wanted: Numbered) -> Iterator[tuple[int, SignedParts]]:
        """Yield number and parts of each of these digests, in order; raise if they do not match."""
        digests = blobs(wanted.signatures)
        for begin in range(0, len(wanted), _MOST_PARTS):
            numbers = wanted.numbers[begin : begin + _MOST_PARTS].tolist()
            rows = self._execute(
                f"SELECT number, parts FROM {self._table('parts')} "
                f"WHERE number {self.dialect.among}",
                (self._array(numbers),),
            )
            found = dict(rows.fetchall())
            for number, known_by in zip(numbers, digests[begin:], strict=False):
                yield number, checked_parts(number, found.get(number), known_by, self.state.bits)

    def removals_after(
        self, version: int, kind: str = "removals"
    ) -> tuple[Numbers, NDArray[np.uint64]]:
        """Return number and hash of what was removed in later versions."""
        rows = self._execute(
            f"SELECT {REMOVED[kind]}, hash FROM {self._table(kind)} WHERE version > ?", (version,)
        )
        numbers, hashed = integers(rows.fetchall())
        return numbers, hashed.view(np.uint64)

    def key_rows(self, position: int) -> Iterator[tuple[Numbers, Numbers]]:
        """Yield the rows (key, number) at one position, in batches."""
        query = f"SELECT key, signature FROM {self._table('keys')} WHERE key >= ? AND key < ?"
        return map(integers, self._stream(query, (position << 32, (position + 1) << 32)))

    # Documents

    def documents(self, ids: Sequence[str], text: bool = True) -> list[Stored]:
        """Return the documents with these ids, in no particular order."""
        query = (
            f"SELECT {document_columns(text)} FROM {self._table('documents')} d "
            f"{self._with_signature()} WHERE d.id {self.dialect.among_texts}"
        )
        return list(_stored(self._with_ids(query, ids)))

    def seen(self, ids: Sequence[str]) -> dict[str, Seen]:
        """Return the versions of the documents with these ids that are there."""
        query = (
            f"SELECT {', '.join(Seen._fields)} FROM {self._table('documents')} "
            f"WHERE id {self.dialect.among_texts}"
        )
        return {row[0]: Seen._make(row) for row in self._with_ids(query, ids)}

    def _with_ids(self, query: str, ids: Sequence[str]) -> Iterator[Any]:
        for some in self._arrays(ids):
            yield from self._execute(query, (some,))

    def _arrays(self, ids: Sequence[str]) -> Iterator[object]:
        """Yield different ids, a bounded number in one value, for `dialect.among_texts`."""
        wanted = list(dict.fromkeys(ids))
        for begin in range(0, len(wanted), _MOST_IDS):
            yield self._array(wanted[begin : begin + _MOST_IDS])

    def documents_of(self, numbers: list[int], each: int | None, text: bool) -> Iterator[Stored]:
        """Yield the documents with these signatures, the first `each` by id of a signature."""
        wanted = self._array(numbers)
        values = (wanted,) if each is None else (wanted, each)
        return _stored(self._execute(self._documents_of(each, text), values))

    @abstractmethod
    def _documents_of(self, each: int | None, text: bool) -> str: ...

    def pages(self, size: int, after: str = "", text: bool = True) -> Iterator[list[Stored]]:
        """Yield all documents after the id `after`, by id, `size` at a time.

        Raises if ids do not grow, which a damaged index may return for ever.
        """
        query = (
            f"SELECT {document_columns(text)} FROM {self._table('documents')} d "
            f"{self._with_signature()} WHERE d.id > ? ORDER BY d.id LIMIT ?"
        )
        while page := list(_stored(self._execute(query, (after, size)))):
            for row, _ in page:
                if not isinstance(row.id, str) or row.id <= after:
                    raise damaged(f"after the id {after[:80]!r} comes {str(row.id)[:80]!r}")
                after = row.id
            yield page
            if len(page) < size:
                return

    # Entries beside documents: the keyword index, and vectors

    def entries_after(self, kind: EntryKind, number: int) -> Iterator[Entries]:
        """Yield entries with larger numbers, in order, in batches."""
        query = f"{self._entries(kind)} WHERE number > ? ORDER BY number"
        each = 4 * self.state.dimensions if kind is VECTORS else 0
        size = min(SCAN_BATCH, max(1, _ENTRY_BYTES // max(1, each)))
        for rows in self._stream(query, (number,), size):
            yield checked_entries(rows, kind)

    def _entries(self, kind: EntryKind) -> str:
        return f"SELECT number, id, {kind.name}, hash FROM {self._table(kind.name)}"

    def all_entries(self, kind: EntryKind) -> Iterator[Entries]:
        """Yield all entries; raise at the end if some are not as written."""
        count, value, last = 0, 0, -1
        for batch in self.entries_after(kind, -1):
            count += len(batch)
            value ^= batch.digest()
            last = int(batch.numbers[-1])
            yield batch
        following, known, expected = (
            getattr(self.state, field) for field in (kind.next, kind.digest, kind.count)
        )
        if last >= following or (count, value) != (expected, known):
            raise damaged(
                f"the {kind.table} has {count} documents, which are not the {expected} "
                f"that the collection {self.state.name[:80]!r} should have"
            )

    def entries_of(self, kind: EntryKind, ids: Sequence[str]) -> dict[str, bytes]:
        """Return the values of those of these documents that have one; raise if one is damaged."""
        query = f"{self._entries(kind)} WHERE id {self.dialect.among_texts}"
        found = checked_entries(list(self._with_ids(query, ids)), kind)
        return dict(zip(found.ids, found.values(), strict=True))

    def words_of(self, ids: Sequence[str]) -> dict[str, bytes]:
        """Return the words of those of these documents that are intact in the keyword index."""
        found = {}
        query = f"{self._entries(WORDS)} WHERE id {self.dialect.among_texts}"
        for row in self._with_ids(query, ids):
            with suppress(CollectionError):
                checked_entries([row], WORDS)
                found[row[1]] = row[2]
        return found

    def documents_with(
        self, kind: EntryKind, numbers: list[int], text: bool
    ) -> Iterator[tuple[int, Row, bytes | None]]:
        """Yield number, document and signature of the entries with these numbers."""
        rows = self._execute(
            f"SELECT e.number, {document_columns(text)} FROM {self._table(kind.name)} e "
            f"JOIN {self._table('documents')} d ON d.id = e.id {self._with_signature()} "
            f"WHERE e.number {self.dialect.among}",
            (self._array(numbers),),
        )
        return ((row[0], Row._make(row[1:-1]), row[-1]) for row in rows)

    # Care

    def other_content(self) -> bool:
        """Return whether a file has tables, views or triggers that are not of collections."""
        return False

    def problems(self) -> list[str]:
        """Return what the database itself and counting find wrong with the tables."""
        found = []
        for question, problem in consistency(self.state, self._table):
            (count,) = self._execute(question).fetchone()
            if count:
                found.append(f"{count} {problem}")
        return found


class Writer(View):
    """Reads and writes in one transaction: what it writes becomes visible with the commit."""

    # The row of a collection

    @abstractmethod
    def lock(self, name: str) -> State | None:
        """Return the row of a collection and hold it until the end."""

    def create(self, state: State, signer: str) -> State:
        """Create the tables of a new collection, and return its row or that of another process."""
        prefix = self.dialect.prefix
        (number,) = self._execute(
            f"SELECT coalesce(max(number), 0) + 1 FROM {prefix}collections"
        ).fetchone()
        state = replace(state, number=number)
        for statement in collection_tables(self.dialect, state, self.at(state)._table):
            self._execute(statement)
        # PostgreSQL does not accept a boolean as a number.
        values = [int(one) if isinstance(one, bool) else one for one in vars(state).values()]
        marks = ", ".join("?" * len(values))
        self._execute(f"INSERT INTO {prefix}collections ({STATE_COLUMNS}) VALUES ({marks})", values)
        self._execute(f"INSERT INTO {prefix}signers VALUES (?, ?)", (number, signer))
        return state

    def drop(self, state: State) -> None:
        """Remove a collection with all its tables."""
        for name in map(self.at(state)._table, kinds_of_tables(state)):
            self._execute(f"DROP TABLE {name}")
        for table in ("collections", "signers"):
            self._execute(
                f"DELETE FROM {self.dialect.prefix}{table} WHERE number = ?", (state.number,)
            )

    def drop_hidden(self) -> int:
        """Remove the collections that are half restored; return how many there were."""
        hidden = [self.lock(state.name) for state in self.states(hidden=True)]
        left = [state for state in hidden if state is not None]
        for state in left:
            self.drop(state)
        return len(left)

    def rename(self, state: State, name: str) -> None:
        """Give a collection another name."""
        self._execute(
            f"UPDATE {self.dialect.prefix}collections SET name = ? WHERE number = ?",
            (name, state.number),
        )

    def save(self) -> None:
        """Replace the row of the collection by `state`."""
        names = (
            "version", "documents", "signatures", "next_signature", "digest", "removals_from",
            "words", "next_words", "words_digest", "dimensions", "vectors", "next_vectors",
            "vectors_digest",
        )  # fmt: skip
        places = ", ".join(f"{name} = ?" for name in names)
        self._execute(
            f"UPDATE {self.dialect.prefix}collections SET {places} WHERE number = ?",
            [*(getattr(self.state, name) for name in names), self.state.number],
        )

    # Signatures and keys

    @abstractmethod
    def find_signatures(self, signatures: Sequence[bytes]) -> dict[bytes, int]:
        """Return the numbers of those that are there."""

    @abstractmethod
    def insert_signatures(self, new: Numbered) -> None:
        """Add signatures."""

    @abstractmethod
    def insert_parts(self, rows: Sequence[tuple[int, bytes]]) -> None:
        """Add the packed parts of the digests with these numbers."""

    @abstractmethod
    def insert_keys(self, keys: Numbers, numbers: Numbers) -> None:
        """Add rows to the table of keys."""

    @abstractmethod
    def delete_keys(self, keys: Numbers, numbers: Numbers) -> None:
        """Remove rows from the table of keys."""

    def unused(self, numbers: Numbers) -> Numbered:
        """Return those of the signatures with these numbers that no document has."""
        rows = self._execute(
            f"SELECT s.number, s.signature FROM {self._table('signatures')} s "
            f"WHERE s.number {self.dialect.among} AND NOT EXISTS "
            f"(SELECT 1 FROM {self._table('documents')} d WHERE d.signature = s.number)",
            (self._array(numbers.tolist()),),
        )
        return numbered(rows.fetchall(), self.state.row_bytes)

    def delete_signatures(self, numbers: Numbers) -> None:
        """Remove signatures and their parts."""
        for kind in ("signatures", "parts") if self.state.parts else ("signatures",):
            self._execute(
                f"DELETE FROM {self._table(kind)} WHERE number {self.dialect.among}",
                (self._array(numbers.tolist()),),
            )

    @abstractmethod
    def log_removals(self, kind: str, numbers: Numbers, hashes: NDArray[np.uint64]) -> None:
        """Note in a table of removals what the version of `state` has removed."""

    def trim_removals(self, kind: str, keep: int) -> int:
        """Forget the oldest removals beyond `keep`; return the version they are known from."""
        table = self._table(kind)
        row = self._execute(
            f"SELECT version FROM {table} ORDER BY version DESC LIMIT 1 OFFSET ?", (keep,)
        ).fetchone()
        if row is None:
            return self.state.removals_from
        self._execute(f"DELETE FROM {table} WHERE version <= ?", row)
        return max(int(row[0]), self.state.removals_from)

    # Documents

    def find_documents(self, ids: Sequence[str]) -> dict[str, int]:
        """Return the number of the signature for those that are there."""
        table = self._table("documents")
        query = f"SELECT id, signature FROM {table} WHERE id {self.dialect.among_texts}"
        return dict(self._with_ids(query, ids))

    @abstractmethod
    def insert_documents(self, rows: Sequence[Row]) -> None:
        """Add documents."""

    def delete_documents(self, ids: Sequence[str]) -> None:
        """Remove documents."""
        table = self._table("documents")
        for some in self._arrays(ids):
            self._execute(f"DELETE FROM {table} WHERE id {self.dialect.among_texts}", (some,))

    # Entries beside documents

    def create_entries(self, kind: EntryKind) -> None:
        """Create the tables of a kind of entries."""
        for statement in entry_tables(kind, self.dialect, self._table):
            self._execute(statement)

    @abstractmethod
    def insert_entries(self, kind: EntryKind, new: Entries) -> None:
        """Add entries."""

    def delete_entries(
        self, kind: EntryKind, ids: Sequence[str]
    ) -> tuple[Numbers, NDArray[np.uint64]]:
        """Remove the entries of documents; return their numbers and hashes."""
        table, among = self._table(kind.name), self.dialect.among_texts
        rows = list(self._with_ids(f"SELECT number, hash FROM {table} WHERE id {among}", ids))
        for some in self._arrays(ids):
            self._execute(f"DELETE FROM {table} WHERE id {among}", (some,))
        numbers, hashed = integers(rows)
        return numbers, hashed.view(np.uint64)

    def forget_entries(self, kind: EntryKind, before: int) -> None:
        """Remove entries with smaller numbers, and what is known of removed ones."""
        self._execute(f"DELETE FROM {self._table(kind.name)} WHERE number < ?", (before,))
        self._execute(f"DELETE FROM {self._table(kind.removals)}")

    def remove_lone_entries(self, kind: EntryKind) -> tuple[Numbers, NDArray[np.uint64]]:
        """Remove entries without a document; return the numbers and hashes of the others."""
        table = self._table(kind.name)
        self._execute(
            f"DELETE FROM {table} WHERE NOT EXISTS "
            f"(SELECT 1 FROM {self._table('documents')} d WHERE d.id = {table}.id)"
        )
        numbers, hashed = integers(self._execute(f"SELECT number, hash FROM {table}").fetchall())
        return numbers, hashed.view(np.uint64)

    # Care

    def rebuild_indexes(self) -> None:
        """Make the database rebuild its own indexes over the tables, and empty that of keys."""
        beside = [kind.name for kind in entry_kinds(self.state)]
        for kind in ("signatures", "documents", *(["parts"] if self.state.parts else []), *beside):
            self._execute(f"{self.dialect.reindex} {self._table(kind)}")
        # Not TRUNCATE: readers of PostgreSQL that began before it would find the table empty.
        self._execute(f"DELETE FROM {self._table('keys')}")


class Store(ABC):
    """A database that holds collections. Safe to use from many threads, not across a fork.

    Args:
        timeout: Seconds to wait for a lock.
        durable: Whether a write that returned survives a power failure.
        create: Whether tables may be created in a database that has none of ours.
    """

    transaction: type[Any]  # the `Writer` that reads and writes on a connection
    begin_reading: str
    begin_writing: str
    begin_schema: tuple[str, ...]
    """The statements that begin a transaction which creates tables, one process at a time."""
    has_schema: str  # the query that counts tables with the name of that of the schema version

    @classmethod
    @abstractmethod
    def parse(cls, scheme: str, rest: str) -> Address:
        """Return the address `scheme://rest`, or raise; the error does not repeat a password."""

    def __init__(self, address: Address, *, timeout: float, durable: bool, create: bool) -> None:
        self.shown = address.shown  # the address for messages, without its password
        self._timeout = timeout
        self._durable = durable
        self._create = create
        self._pool = Pool(self._connect, self._usable)
        with self._translated(), self._pool.connection() as connection:
            self._prepare(connection)

    def reading(self) -> AbstractContextManager[View]:
        """Return a view of one moment."""
        return self._begun(self.begin_reading, lambda connection: connection.execute("ROLLBACK"))

    def writing(self) -> AbstractContextManager[Writer]:
        """Return a transaction, which is committed at the end unless an error was raised."""
        return self._begun(self.begin_writing, self._commit)

    @contextmanager
    def _begun(self, begin: str, end: Callable[[Any], object]) -> Iterator[Writer]:
        with self._translated(), self._pool.connection() as connection:
            with interruptible(partial(self._interrupt, connection)):
                self._begin(connection, begin)
                yield self.transaction(connection)
            self._pool.refuse_other_process()
            end(connection)

    def _begin(self, connection: Any, statement: str) -> None:
        """Begin a transaction; waiting for a lock ends when the work is canceled."""
        connection.execute(statement)

    def _prepare(self, connection: Any) -> None:
        """Create the tables that all collections share, or bring older ones up to date.

        Raises `NoCollectionsError` for a database without them, unless a collection is created:
        reading never changes other people's databases.
        """
        dialect = self.transaction.dialect
        version = self._schema_version(connection)
        if version == 0 and not self._create:
            raise NoCollectionsError(self.shown)
        if version == len(MIGRATIONS):
            return
        for statement in self.begin_schema:
            connection.execute(statement)
        version = self._schema_version(connection)  # another process may have been first
        if version < len(MIGRATIONS):
            if version == 0:
                for statement in self._new_schema(connection):
                    connection.execute(statement)
                connection.execute(
                    f"CREATE TABLE {dialect.prefix}schema (version {dialect.integer})"
                )
            for step in MIGRATIONS[version:]:
                step(connection.execute, dialect)
            connection.execute(f"DELETE FROM {dialect.prefix}schema")
            connection.execute(f"INSERT INTO {dialect.prefix}schema VALUES ({len(MIGRATIONS)})")
        self._commit(connection)

    def _new_schema(self, connection: Any) -> tuple[str, ...]:
        """Return the statements to run before the first table is created."""
        return ()

    def _schema_version(self, connection: Any) -> int:
        """Return the version of the tables, 0 if there are none; refuse a newer one than ours."""
        if not connection.execute(self.has_schema).fetchone()[0]:
            return 0
        prefix = self.transaction.dialect.prefix
        row = connection.execute(f"SELECT version FROM {prefix}schema").fetchone()
        version = row[0] if row else 0
        if not isinstance(version, int) or version < 0:
            raise damaged(
                f"{self.shown} has collections of the schema version {str(version)[:80]!r}"
            )
        if version > len(MIGRATIONS):
            raise FormatError(
                f"{self.shown} has collections of schema version {version}; this lookalike reads "
                f"versions up to {len(MIGRATIONS)}. Install a newer lookalike"
            )
        return version

    def known(self, state: State | None, name: str) -> State:
        """Return the row of the collection of this name; raise if there is none."""
        if state is None:
            raise NotFoundError(f"there is no collection {name!r} at {self.shown}")
        return state

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()

    @abstractmethod
    def _connect(self) -> Any: ...

    def _usable(self, connection: Any) -> bool:
        return True

    @abstractmethod
    def _translated(self) -> AbstractContextManager[None]:
        """Raise the errors of the driver as errors of ours."""

    @abstractmethod
    def _interrupt(self, connection: Any) -> None: ...

    @abstractmethod
    def _commit(self, connection: Any) -> None:
        """Commit; if that fails, raise what is known of the batch."""

    @abstractmethod
    def restoring(self) -> AbstractContextManager[None]:
        """Share the lock of processes that restore a collection.

        A process that holds it alone knows that what is half restored is abandoned. If that is
        wrong, no damage follows: each batch of a restore checks that its collection is still there.
        """

    def remove_abandoned(self) -> int:
        """Remove what killed restores have left, if no process restores; return how many."""
        with suppress(CollectionError):
            with self.reading() as view:
                hidden = bool(view.states(hidden=True))
            return self._drop_abandoned() if hidden else 0
        return 0

    @abstractmethod
    def _drop_abandoned(self) -> int:
        """Drop what is half restored if no other process shares the lock of `restoring`."""

    def remove_file(self) -> bool:
        """Remove the file if lookalike created it and nothing is left in it; return whether."""
        return False

    def copy_file(self, path: Path) -> bool:
        """Copy the whole database at one moment, if it is a file; return whether it is one."""
        return False

    def compact(self) -> None:  # noqa: B027  # servers do this themselves
        """Give free space back to the file system."""

    @abstractmethod
    def durability(self) -> str:
        """Return a sentence that says what an acknowledged write survives here."""
