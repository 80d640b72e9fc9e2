"""What a database must be able to do to hold collections; SQLite and PostgreSQL each do it once.

Tables, the same in both, `N` being the number of a collection:

    collections     one row each: name, widths, and the state below
    signers         how each collection's documents are signed
    signatures_N    number, signature: each signature once, numbers never used again
    keys_N          key, signature: primary key on both; the slices of every signature
    documents_N     id, number of the signature, text, metadata, times, checksum
    removals_N      version, number, hash: signatures that are gone, for indexes that catch up
    parts_N         number, parts: where documents have many signatures, these and their positions;
                    what stands in signatures_N is then their digest

Whoever writes holds the row of the collection until the commit, so versions follow each other in
the order of commits, and a number is visible only after all smaller ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from lookalike.cancellation import interruptible
from lookalike.collection.stores.pool import Pool
from lookalike.collection.stores.schema import MIGRATIONS, upgrade
from lookalike.collection.stores.state import State
from lookalike.collection.stores.view import View
from lookalike.collection.stores.writer import Writer
from lookalike.errors import CollectionError, NotFoundError, Said

__all__ = [
    "NoCollectionsError",
    "StaleView",
    "State",
    "Store",
    "View",
    "Writer",
    "maybe_written",
]


class NoCollectionsError(NotFoundError):
    """A database that has no tables of ours, opened without permission to create them."""

    def __init__(self, shown: str) -> None:
        super().__init__(f"there are no collections in {shown}")


class StaleView(CollectionError):
    """A view that cannot be used any more, because something has moved on: take a new one."""

    def __init__(self) -> None:
        super().__init__("the collection was replaced or dropped meanwhile; try again")


def maybe_written(shown: str, error: Exception) -> CollectionError:
    """Return the error for a commit of which nobody can say whether it has happened."""
    return CollectionError(
        f"{shown}: this batch could not be committed ({error}): it may have been written, all of "
        "it or nothing: ",
        Said(
            "look with get(), or write it again with upsert()",
            "look with `lookalike collection get`, or write it again with --replace",
        ),
    )


class Store(ABC):
    """A database that holds collections. Safe to use from many threads, not across a fork."""

    shown: str
    """Where it is, for messages; no password in it."""
    transaction: type[Any]
    """The `Writer` that reads and writes on a connection."""
    begin_reading: str
    begin_writing: str
    begin_schema: tuple[str, ...]
    """What begins a transaction in which tables are made, so that nobody else does."""
    _create: bool
    """Whether tables may be created in a database that has none of ours."""
    _pool: Pool[Any]

    @contextmanager
    def reading(self) -> Iterator[View]:
        """Return a view of one moment."""
        with self._translated(), self._pool.connection() as connection:
            with interruptible(partial(self._interrupt, connection)):
                self._begin(connection, self.begin_reading)
                yield self.transaction(connection)
            self._pool.refuse_other_process()
            connection.execute("ROLLBACK")

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        """Return a transaction, committed at the end unless something is raised.

        Work that is cancelled writes nothing, unless its commit has begun.
        """
        with self._translated(), self._pool.connection() as connection:
            with interruptible(partial(self._interrupt, connection)):
                self._begin(connection, self.begin_writing)
                yield self.transaction(connection)
            self._pool.refuse_other_process()
            self._commit(connection)

    def _begin(self, connection: Any, statement: str) -> None:
        """Begin a transaction; waiting for a lock ends when the work is cancelled."""
        connection.execute(statement)

    def _prepare(self, connection: Any) -> None:
        """Create the tables that all collections share, or bring older ones up to date.

        Raises `NoCollectionsError` in place of writing to a database that has none, unless the
        caller asked to create a collection: reading never changes a database of others.
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
            upgrade(connection.execute, dialect, version, self.shown)
            connection.execute(f"DELETE FROM {dialect.prefix}schema")
            connection.execute(f"INSERT INTO {dialect.prefix}schema VALUES ({len(MIGRATIONS)})")
        self._commit(connection)

    def _new_schema(self, connection: Any) -> tuple[str, ...]:
        """Return the statements to run before the first table is created."""
        return ()

    @abstractmethod
    def _schema_version(self, connection: Any) -> int:
        """Return the version of the tables there are, 0 if none; refuse a newer one than ours."""

    def known(self, state: State | None, name: str) -> State:
        """Return the row of the collection of this name, or say that there is none."""
        if state is None:
            raise NotFoundError(f"there is no collection {name!r} at {self.shown}")
        return state

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()

    @abstractmethod
    def _translated(self) -> AbstractContextManager[None]:
        """Raise what the driver raises as errors of ours."""

    @abstractmethod
    def _interrupt(self, connection: Any) -> None:
        """End the statement that another thread waits for."""

    @abstractmethod
    def _commit(self, connection: Any) -> None:
        """Commit, or say what is known of the batch if that fails."""

    @abstractmethod
    def restoring(self) -> AbstractContextManager[None]:
        """Hold what tells others that something is being restored, and not abandoned."""

    @abstractmethod
    def remove_abandoned(self) -> int:
        """Remove what restores that died have left, and return how many.

        None if there is a restore under way in any process, or if somebody else does it now.
        """

    def copy_file(self, path: Path) -> bool:
        """Copy the whole database at one moment, if it is a file; return whether it is one."""
        return False

    def compact(self) -> None:  # noqa: B027  # what a server does by itself
        """Give free places back to the file system, where that is not done by itself."""

    @abstractmethod
    def durability(self) -> str:
        """Say in a sentence what an acknowledged write survives here."""
