"""Collections in an SQLite file.

Rollback journal, not write-ahead log: SQLite before 3.51.3 can corrupt a database when several
connections write and reset a write-ahead log, and this mode has no such log. The journal is
truncated and synced at each commit (`synchronous=EXTRA`), so a commit that returned is on the disk.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from lookalike.cancellation import stop_if_cancelled, wait_at_once
from lookalike.collection.care.abandoned import drop_hidden, exclusive_file, shared_file
from lookalike.collection.documents import MOST_ROW_BYTES, damaged
from lookalike.collection.stores.base import NoCollectionsError, Store, maybe_written
from lookalike.collection.stores.pool import Pool
from lookalike.collection.stores.schema import refuse_newer
from lookalike.collection.stores.sqlite_transaction import (
    SHOWN_UPGRADED,
    SQLITE,
    SqliteTransaction,
)
from lookalike.errors import CollectionBusyError, CollectionError, FormatError, Said
from lookalike.storage import remove_if_same

_CACHE_KIB = 64 << 10
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_ERRORS = (sqlite3.Error, UnicodeDecodeError)
_LOCK_TO_READ = "PRAGMA schema_version"
"""Takes the lock for reading, which `BEGIN` does not, and reads little."""
"""What the driver raises: SQLite names what it finds in a damaged schema, and the driver may not be
able to decode that."""
_APPLICATION_ID = 0x6C6F6F6B
"""The application id, "look", that marks a file which lookalike created."""
_NO_TABLES = f"no such table: {SQLITE.prefix}collections"
_COPIED_PAGES = 4096
"""Pages that are copied between two checks for cancellation."""
_UNWRITTEN = "nothing that was not acknowledged was written"


class SqliteStore(Store):
    """Collections in one file. Readers and writers of all processes take turns by its locks.

    Writers wait with their commit until views end, and for each other from the beginning.
    """

    transaction = SqliteTransaction
    begin_reading = "BEGIN"
    begin_writing = "BEGIN IMMEDIATE"
    begin_schema = (begin_writing,)

    def __init__(self, path: Path, *, timeout: float, durable: bool, create: bool) -> None:
        self.shown = str(path)
        self._path = path.absolute()
        self._restoring = self._path.with_name(f"{path.name}-restoring")
        self._timeout = timeout
        self._durable = durable
        self._create = create
        self._as_found = False
        """Whether the file is of an older version, and may not be written to."""
        self._looked = create
        """Whether the file is known to hold tables of ours, or may get some."""
        self._pool = Pool(self._connect)
        with self._translated(), self._pool.connection() as connection:
            self._prepare(connection)

    @contextmanager
    def restoring(self) -> Iterator[None]:
        """Share the lock of those who restore: a file beside the database, while they do."""
        with shared_file(self._restoring, self._timeout):
            yield

    def remove_abandoned(self) -> int:
        """Remove what is half restored, if nobody shares the lock."""
        with self.reading() as view:
            if not view.states(hidden=True):
                return 0
        with exclusive_file(self._restoring) as alone:
            if not alone:
                return 0
            with self.writing() as writer:
                return drop_hidden(writer)

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

    def copy_file(self, path: Path) -> bool:
        """Copy the whole file as it is at one moment; writers wait meanwhile."""
        with self._translated(), self._pool.connection() as connection:
            copy = sqlite3.connect(path, isolation_level=None)
            try:
                copy.execute("PRAGMA synchronous=FULL")
                # A view that is held keeps the file as it is, so that it can be copied in parts.
                connection.execute("BEGIN")
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
                connection.backup(copy, pages=_COPIED_PAGES, progress=_stop_copy_if_cancelled)
                connection.execute("ROLLBACK")
            finally:
                copy.close()
        return True

    def compact(self) -> None:
        """Write the file anew without the places that are free."""
        with self._translated(), self._pool.connection() as connection:
            connection.execute("VACUUM")

    def remove_file(self) -> bool:
        """Remove the file if lookalike created it and nothing is left in it.

        The check and the removal happen under the exclusive lock of SQLite. Other processes that
        have the file open find no tables in it, so that none of them writes to a removed file.
        """
        before = self._path.lstat()
        with self._translated(), closing(self._connect()) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            transaction = self.transaction(connection)
            (created_by,) = connection.execute("PRAGMA application_id").fetchone()
            used = transaction.states() or transaction.states(hidden=True)
            if created_by != _APPLICATION_ID or used or transaction.other_content():
                return False
            # SQLite refuses this if the file has been moved since the connection was opened.
            transaction.drop_shared_tables()
            found = self._path.lstat()
            connection.execute("COMMIT")
            connection.execute("BEGIN EXCLUSIVE")
            (left,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if left or not os.path.samestat(before, found):
                return False
            journal = self._path.with_name(f"{self._path.name}-journal")
            with suppress(OSError):
                if not journal.lstat().st_size:  # no other process can be using it now
                    journal.unlink()
            return remove_if_same(self._path, found)

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
            self._wait_for(connection, _LOCK_TO_READ)
            if not self._looked:  # a database of others keeps its journal mode
                if not self._schema_version(connection):
                    raise NoCollectionsError(self.shown)
                self._looked = True
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
            # Lengths that damage has made huge must not become allocations.
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_ROW_BYTES)
            if self._as_found:
                connection.execute(SHOWN_UPGRADED)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Make or upgrade the tables; older ones of a file that is only read stay as they are."""
        try:
            super()._prepare(connection)
        except sqlite3.OperationalError as error:
            if _code(error) != sqlite3.SQLITE_READONLY or not self._schema_version(connection):
                raise
            connection.rollback()
            connection.execute(SHOWN_UPGRADED)
            self._as_found = True

    def _new_schema(self, connection: sqlite3.Connection) -> tuple[str, ...]:
        """Mark a file without any content as one that lookalike created."""
        for question in (
            "SELECT count(*) FROM sqlite_master",
            "PRAGMA application_id",
            "PRAGMA user_version",
        ):
            if connection.execute(question).fetchone()[0]:
                return ()
        return (f"PRAGMA application_id = {_APPLICATION_ID}",)

    def _schema_version(self, connection: sqlite3.Connection) -> int:
        known = "SELECT count(*) FROM sqlite_master WHERE name = ?"
        if not connection.execute(known, (f"{SQLITE.prefix}schema",)).fetchone()[0]:
            return 0
        row = connection.execute(f"SELECT version FROM {SQLITE.prefix}schema").fetchone()
        version = row[0] if row else 0
        if not isinstance(version, int) or version < 0:
            raise damaged(
                f"{self.shown} has collections of the schema version {str(version)[:80]!r}"
            )
        refuse_newer(version, self.shown)
        return version

    def _begin(self, connection: sqlite3.Connection, statement: str) -> None:
        self._wait_for(connection, statement)
        if statement == self.begin_reading:
            self._wait_for(connection, _LOCK_TO_READ)

    def _wait_for(self, connection: sqlite3.Connection, statement: str) -> None:
        """Run a statement that takes a lock; an interruption would not end waiting for it."""
        at_once = wait_at_once(self._timeout)
        if at_once == self._timeout:
            connection.execute(statement)
            return
        deadline = time.monotonic() + self._timeout
        connection.execute(f"PRAGMA busy_timeout={int(1000 * at_once)}")
        while True:
            try:
                connection.execute(statement).fetchone()
                break
            except sqlite3.OperationalError as error:
                if _code(error) not in _BUSY or time.monotonic() > deadline:
                    raise
            stop_if_cancelled()
        connection.execute(f"PRAGMA busy_timeout={int(1000 * self._timeout)}")

    def _interrupt(self, connection: sqlite3.Connection) -> None:
        connection.interrupt()

    def _commit(self, connection: sqlite3.Connection) -> None:
        """Commit, or say what is known of the batch if that fails.

        Emptying the journal is what commits; it is synced after that, and if only this fails, the
        batch has been written, and the next reader sees it. SQLite does not tell which it was.
        """
        try:
            connection.execute("COMMIT")
        except _ERRORS as error:
            if _code(error) in (*_BUSY, sqlite3.SQLITE_FULL):
                raise  # found out before the journal is emptied: nothing was written
            raise maybe_written(self.shown, error) from error

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except _ERRORS as error:
            raise _translate(error, self.shown, self._timeout) from error


def _stop_copy_if_cancelled(status: int, remaining: int, total: int) -> None:
    stop_if_cancelled()


def _code(error: Exception) -> int:
    """Return the error code of SQLite; 0 if the driver has found fault by itself."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def _translate(error: Exception, shown: str, timeout: float) -> Exception:
    code = _code(error)
    if str(error).startswith(_NO_TABLES):  # the last collection was removed with its file
        return NoCollectionsError(shown)
    if code in _BUSY:
        return CollectionBusyError(
            f"{shown} was locked by another process for more than {timeout:g} s; nothing was "
            "written: try again",
            Said(", or open the collection with a longer timeout", " later"),
        )
    if code == sqlite3.SQLITE_NOTADB:
        return FormatError(
            f"{shown} is not an SQLite database; give the name of another file"
            "; to search a corpus, make one: `lookalike collection create NAME.db`, then import it"
        )
    if code == sqlite3.SQLITE_FULL:
        return CollectionError(
            f"{shown}: the disk is full ({error}); nothing of this batch was written: "
            "make room and write it again"
        )
    if not code and isinstance(error, sqlite3.OperationalError | UnicodeDecodeError):
        # The driver's own, with the text in it, which is better not shown.
        return damaged(f"{shown} has text that is not UTF-8, and {_UNWRITTEN}")
    if code == sqlite3.SQLITE_CORRUPT:
        return CollectionError(
            f"{shown} is damaged ({error}), or cannot be read, and {_UNWRITTEN}: try again, then ",
            Said("repair()", "`lookalike collection repair`"),
            ", which rebuilds what is derived, or restore a snapshot",
        )
    if code == sqlite3.SQLITE_CANTOPEN:
        return CollectionError(
            f"{shown} cannot be opened, and {_UNWRITTEN}: is there such a folder or file?"
        )
    return CollectionError(f"{shown}: SQLite reports: {error}; {_UNWRITTEN}")
