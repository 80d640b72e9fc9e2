"""Collections in an SQLite file.

Rollback journal, not write-ahead log: SQLite before 3.51.3 can corrupt a database when several
connections write and reset a write-ahead log, and this mode has no such log. The journal is
truncated and synced at each commit (`synchronous=EXTRA`), so a commit that returned is on the disk.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lookalike.collection.stores.base import Store, View, Writer
from lookalike.collection.stores.pool import Pool
from lookalike.collection.stores.schema import MIGRATIONS, refuse_newer, upgrade
from lookalike.collection.stores.sqlite_transaction import SQLITE, SqliteTransaction
from lookalike.errors import CollectionBusyError, CollectionError, FormatError

__all__ = ["SqliteStore"]

_CACHE_KIB = 64 << 10


class SqliteStore(Store):
    """Collections in one file. Readers and writers of all processes take turns by its locks."""

    def __init__(self, path: Path, *, timeout: float, durable: bool, create: bool) -> None:
        self.shown = str(path)
        self._path = path.absolute()
        self._timeout = timeout
        self._durable = durable
        self._create = create
        self._pool = Pool(self._connect)
        with self._translated():
            self._prepare()

    @contextmanager
    def reading(self) -> Iterator[View]:
        """Return a view of one moment; writers wait with their commit until it ends."""
        with self._translated(), self._pool.connection() as connection:
            connection.execute("BEGIN")
            yield SqliteTransaction(connection)
            connection.execute("ROLLBACK")

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        """Return a transaction; others that want to write wait."""
        with self._translated(), self._pool.connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield SqliteTransaction(connection)
            connection.execute("COMMIT")

    def durability(self) -> str:
        """Say what an acknowledged write survives."""
        if self._durable:
            return (
                "SQLite, journal_mode=TRUNCATE, synchronous=EXTRA: an acknowledged write survives "
                "kill -9 and power loss"
            )
        return (
            "SQLite, journal_mode=TRUNCATE, synchronous=NORMAL: an acknowledged write survives "
            "kill -9; power loss may take the last ones back"
        )

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()

    def copy_file(self, path: Path) -> bool:
        """Copy the whole file as it is at one moment; writers wait meanwhile."""
        with self._translated(), self._pool.connection() as connection:
            copy = sqlite3.connect(path, isolation_level=None)
            try:
                copy.execute("PRAGMA synchronous=FULL")
                connection.backup(copy)
            finally:
                copy.close()
        return True

    def compact(self) -> None:
        """Write the file anew without the places that are free."""
        with self._translated(), self._pool.connection() as connection:
            connection.execute("VACUUM")

    def _connect(self) -> sqlite3.Connection:
        mode = "rwc" if self._create else "rw"
        connection = sqlite3.connect(
            f"{self._path.as_uri()}?mode={mode}",
            uri=True,
            timeout=self._timeout,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            (mode,) = connection.execute("PRAGMA journal_mode=TRUNCATE").fetchone()
            if mode != "truncate":
                raise CollectionError(
                    f"{self.shown} is in journal mode {mode!r} and another process has it open; "
                    "close that one, so that it can be put into the mode TRUNCATE, which is safe "
                    "with every version of SQLite"
                )
            connection.execute(f"PRAGMA synchronous={'EXTRA' if self._durable else 'NORMAL'}")
            connection.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
            connection.execute("PRAGMA trusted_schema=OFF")
            connection.execute("PRAGMA cell_size_check=ON")
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self) -> None:
        with self._pool.connection() as connection:
            if _schema_version(connection, self.shown) == len(MIGRATIONS):
                return
            connection.execute("BEGIN IMMEDIATE")
            version = _schema_version(connection, self.shown)  # another process may have been first
            if version < len(MIGRATIONS):
                if version == 0:
                    connection.execute(f"CREATE TABLE {SQLITE.prefix}schema (version INTEGER)")
                upgrade(connection.execute, SQLITE, version, self.shown)
                connection.execute(f"DELETE FROM {SQLITE.prefix}schema")
                connection.execute(
                    f"INSERT INTO {SQLITE.prefix}schema VALUES (?)", (len(MIGRATIONS),)
                )
            connection.execute("COMMIT")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise _translate(error, self.shown, self._timeout) from error


def _schema_version(connection: sqlite3.Connection, shown: str) -> int:
    known = "SELECT count(*) FROM sqlite_master WHERE name = ?"
    if not connection.execute(known, (f"{SQLITE.prefix}schema",)).fetchone()[0]:
        return 0
    row = connection.execute(f"SELECT version FROM {SQLITE.prefix}schema").fetchone()
    version = int(row[0]) if row else 0
    refuse_newer(version, shown)
    return version


def _translate(error: sqlite3.Error, shown: str, timeout: float) -> Exception:
    code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return CollectionBusyError(
            f"{shown} was locked by another process for more than {timeout:g} s; nothing was "
            "written: try again, or open the collection with a longer timeout"
        )
    if code == sqlite3.SQLITE_NOTADB:
        return FormatError(f"{shown} is not an SQLite database; give the name of another file")
    if code == sqlite3.SQLITE_FULL:
        return CollectionError(
            f"{shown}: the disk is full ({error}); nothing of this batch was written: "
            "make room and write it again"
        )
    if code == sqlite3.SQLITE_CORRUPT:
        return CollectionError(
            f"{shown} is damaged ({error}): try repair(), which rebuilds what is derived, or "
            "restore a snapshot"
        )
    if code == sqlite3.SQLITE_CANTOPEN:
        return CollectionError(f"{shown} cannot be opened: is there such a folder or file?")
    return CollectionError(
        f"{shown}: SQLite reports: {error}; nothing that was not acknowledged was written"
    )
