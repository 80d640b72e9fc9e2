"""Collections in an SQLite file.

Rollback journal, not write-ahead log: SQLite before 3.51.3 can corrupt a database when several
connections write and reset a write-ahead log, and this mode has no such log. The journal is
truncated and synced at each commit (`synchronous=EXTRA`), so a commit that returned is on the disk.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from lookalike.collection.documents import MOST_ROW_BYTES, Row, damaged
from lookalike.collection.stores.address import EXPECTED, Address, hide_passwords
from lookalike.collection.stores.base import (
    SCAN_BATCH,
    TO_MAKE_ONE,
    NoCollectionsError,
    Store,
    Writer,
    maybe_written,
)
from lookalike.collection.stores.entries import Entries
from lookalike.collection.stores.schema import (
    SHARED_TABLES,
    Dialect,
    EntryKind,
    Numbered,
    Numbers,
    State,
    blobs,
    document_columns,
    kinds_of_tables,
)
from lookalike.errors import (
    ArgumentError,
    CollectionBusyError,
    CollectionError,
    FormatError,
    NotFoundError,
    Said,
)
from lookalike.operation import report, stop_if_canceled, wait_at_once
from lookalike.storage.files import is_there, remove_if_same
from lookalike.suggestions import did_you_mean_file

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
_CACHE_KIB = 64 << 10
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""The errors of the driver; the second if it cannot decode a name in a damaged schema."""
_LOCK_TO_READ = "PRAGMA schema_version"
"""Takes the lock for reading, which `BEGIN` does not, and reads little."""
_APPLICATION_ID = 0x6C6F6F6B  # the application id, "look", of files that lookalike created
_NO_TABLES = f"no such table: {SQLITE.prefix}collections"
_LOCK_PAUSE = 0.02
_COPIED_PAGES = 4096  # pages that are copied between two checks for cancellation
_UNWRITTEN = "nothing that was not acknowledged was written"
_SHOWN_UPGRADED = (
    f"CREATE TEMP VIEW {SQLITE.prefix}collections AS "
    "SELECT *, 0 AS parts, '' AS words, 1 AS next_words, 0 AS words_digest, 0 AS dimensions, "
    "0 AS vectors, 1 AS next_vectors, 0 AS vectors_digest "
    f"FROM main.{SQLITE.prefix}collections"
)
"""Shows one connection the table of an older version as an upgrade would make it; columns that the
table has itself come first."""
_MOST_VARIABLES = 10_000
_ROWS_PER_INSERT = 48  # halves the time of inserting one by one


class SqliteTransaction(Writer):
    """A transaction: every statement that is specific to SQLite."""

    dialect = SQLITE
    _connection: sqlite3.Connection

    def _execute(self, query: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        return self._connection.execute(query, values)

    def _stream(
        self, query: str, values: Sequence[Any], size: int = SCAN_BATCH
    ) -> Iterator[list[Any]]:
        cursor = self._execute(query, values)
        while rows := cursor.fetchmany(size):
            yield rows

    def _array(self, values: list[Any]) -> str:
        return json.dumps(values)

    # Reading

    def other_content(self) -> bool:
        known = {self.dialect.prefix + table for table in SHARED_TABLES}
        for state in (*self.states(), *self.states(hidden=True)):
            known.update(map(self.at(state)._table, kinds_of_tables(state)))
        found = self._execute("SELECT type, tbl_name FROM main.sqlite_master")
        return any(kind not in ("table", "index") or name not in known for kind, name in found)

    def problems(self) -> list[str]:
        try:
            rows = self._execute("PRAGMA integrity_check(20)").fetchall()
        except MemoryError:
            raise damaged("SQLite finds lengths in the file that exceed the memory") from None
        found = [str(row[0]) for row in rows]
        found = [] if found == ["ok"] else [f"SQLite: {problem}" for problem in found]
        return found + super().problems()

    def _documents_of(self, each: int | None, text: bool) -> str:
        table = self._table("documents")
        found = (
            f"SELECT {document_columns(text)} FROM json_each(?) j CROSS JOIN {table} d "
            f"ON d.signature = j.value {self._with_signature()}"
        )
        if each is None:
            return found
        # Through the index, whose entries must then be in the table: rowid IN (...) skips others.
        return (
            f"{found} WHERE d.id <= (SELECT max(id) FROM (SELECT e.id FROM {table} e "
            "WHERE e.signature = j.value ORDER BY e.id LIMIT ?))"
        )

    # Writing

    def lock(self, name: str) -> State | None:
        return self.find(name)  # BEGIN IMMEDIATE has locked the whole file

    def find_signatures(self, signatures: Sequence[bytes]) -> dict[bytes, int]:
        table = self._table("signatures")
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

    def insert_signatures(self, new: Numbered) -> None:
        rows = zip(new.numbers.tolist(), blobs(new.signatures), strict=True)
        self._insert(self._table("signatures"), 2, chain(*rows))

    def insert_parts(self, rows: Sequence[tuple[int, bytes]]) -> None:
        table = self._table("parts")
        self._connection.executemany(f"INSERT INTO {table} VALUES (?, ?)", rows)

    def insert_keys(self, keys: Numbers, numbers: Numbers) -> None:
        rows = np.stack([keys, numbers], axis=1).ravel().tolist()
        self._insert(self._table("keys"), 2, rows)

    def insert_documents(self, rows: Sequence[Row]) -> None:
        self._insert(self._table("documents"), len(Row._fields), chain(*rows))

    def delete_keys(self, keys: Numbers, numbers: Numbers) -> None:
        table = self._table("keys")
        rows = zip(keys.tolist(), numbers.tolist(), strict=True)
        self._connection.executemany(f"DELETE FROM {table} WHERE key = ? AND signature = ?", rows)

    def insert_entries(self, kind: EntryKind, new: Entries) -> None:
        self._insert(self._table(kind.name), 4, chain.from_iterable(new.rows()))

    def log_removals(self, kind: str, numbers: Numbers, hashes: NDArray[np.uint64]) -> None:
        table, version = self._table(kind), self.state.version
        values = zip(numbers.tolist(), hashes.view(np.int64).tolist(), strict=True)
        self._connection.executemany(
            f"INSERT INTO {table} VALUES (?, ?, ?)", ((version, *pair) for pair in values)
        )

    def _insert(self, table: str, width: int, values: Iterable[Any]) -> None:
        """Insert rows of `width` values each, given one after the other."""
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


class SqliteStore(Store):
    """Collections in one file. Writers wait for each other, and with their commit for views."""

    transaction = SqliteTransaction
    begin_reading = "BEGIN"
    begin_writing = "BEGIN IMMEDIATE"
    begin_schema = (begin_writing,)
    has_schema = f"SELECT count(*) FROM sqlite_master WHERE name = '{SQLITE.prefix}schema'"

    def __init__(self, address: Address, *, timeout: float, durable: bool, create: bool) -> None:
        self._path = path = Path(address.path or "").absolute()
        if not create and not is_there(path):
            raise NotFoundError(
                f"there is no file {address.shown}", TO_MAKE_ONE, did_you_mean_file(path)
            )
        self._restoring = path.with_name(f"{path.name}-restoring")
        self._as_found = False  # whether the file is of an older version and read-only
        self._looked = create  # whether the file is known to have tables of ours, or may get some
        super().__init__(address, timeout=timeout, durable=durable, create=create)

    @classmethod
    def parse(cls, scheme: str, rest: str) -> Address:
        """Return the address of a file; without a scheme, `rest` is its path."""
        host, _, name = rest.partition("/") if scheme else ("", "", rest)
        if host or not name:
            raise ArgumentError(
                f"{hide_passwords(f'{scheme}://{rest}')!r} does not name a file; sqlite:///docs.db "
                "is a file in this folder, sqlite:////data/docs.db a file in /data"
            )
        name = unquote(name) if scheme else name
        if name == ":memory:" or name.startswith("file:"):
            raise ArgumentError(
                f"{name!r} is not a file, and collections are durable, so they need one; {EXPECTED}"
            )
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", name) or re.search(r"\bpassword\s*=", name):
            # A pathlib.Path of an address, which has lost a slash, or the settings of psql.
            raise ArgumentError(
                "the address of a collection looks like that of a server, but cannot be read; "
                f"{EXPECTED}, as a str"
            )
        try:
            path = Path(name).expanduser().absolute()
        except RuntimeError as error:
            raise ArgumentError(f"{name!r} is not a valid file name: {error}; {EXPECTED}") from None
        return Address("sqlite", path, f"sqlite:///{path}", str(path))

    def restoring(self) -> AbstractContextManager[None]:
        return shared_file(self._restoring, self._timeout)

    def _drop_abandoned(self) -> int:
        with exclusive_file(self._restoring) as alone:
            if not alone:
                return 0
            with self.writing() as writer:
                return writer.drop_hidden()

    def durability(self) -> str:
        survives = "EXTRA: an acknowledged write survives kill -9 and power loss"
        if not self._durable:
            survives = "NORMAL: an acknowledged write survives kill -9; power loss may take the "
            survives += "last ones back"
        return f"SQLite, journal_mode=TRUNCATE, synchronous={survives}"

    def copy_file(self, path: Path) -> bool:
        with self._translated(), self._pool.connection() as connection:
            copy = sqlite3.connect(path, isolation_level=None)
            with closing(copy):
                copy.execute("PRAGMA synchronous=FULL")
                # Writers wait while a view is held, so the file can be copied in parts.
                connection.execute("BEGIN")
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
                connection.backup(copy, pages=_COPIED_PAGES, progress=_copied)
                connection.execute("ROLLBACK")
        return True

    def compact(self) -> None:
        with self._translated(), self._pool.connection() as connection:
            connection.execute("VACUUM")

    def remove_file(self) -> bool:
        """Remove the file if lookalike created it and nothing is left in it.

        The check and the removal happen under the exclusive lock of SQLite. Other processes that
        have the file open find no tables in it, so none of them writes to a removed file.
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
            for table in SHARED_TABLES:
                connection.execute(f"DROP TABLE {SQLITE.prefix}{table}")
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
        connection = sqlite3.connect(
            f"{self._path.as_uri()}?mode={'rwc' if self._create else 'rw'}", uri=True,
            timeout=self._timeout, isolation_level=None, check_same_thread=False,
        )  # fmt: skip
        try:
            self._wait_for(connection, _LOCK_TO_READ)
            if not self._looked:  # other databases keep their journal mode
                if not self._schema_version(connection):
                    raise NoCollectionsError(self.shown)
                self._looked = True
            (mode,) = connection.execute("PRAGMA journal_mode=TRUNCATE").fetchone()
            if mode != "truncate":
                raise CollectionError(
                    f"{self.shown} is in journal mode {mode!r}, and another process has it open. "
                    "Close that process, so that lookalike can set the mode TRUNCATE"
                )
            connection.execute(f"PRAGMA synchronous={'EXTRA' if self._durable else 'NORMAL'}")
            connection.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
            connection.execute("PRAGMA trusted_schema=OFF")
            connection.execute("PRAGMA cell_size_check=ON")
            # Lengths that damage made huge must not become allocations.
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_ROW_BYTES)
            if self._as_found:
                connection.execute(_SHOWN_UPGRADED)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Create or upgrade the tables; older ones of a read-only file stay as they are."""
        try:
            super()._prepare(connection)
        except sqlite3.OperationalError as error:
            if _code(error) != sqlite3.SQLITE_READONLY or not self._schema_version(connection):
                raise
            connection.rollback()
            connection.execute(_SHOWN_UPGRADED)
            self._as_found = True

    def _new_schema(self, connection: sqlite3.Connection) -> tuple[str, ...]:
        """Mark a file without any content as one that lookalike created."""
        content = ("SELECT count(*) FROM sqlite_master", "PRAGMA application_id")
        for question in (*content, "PRAGMA user_version"):
            if connection.execute(question).fetchone()[0]:
                return ()
        return (f"PRAGMA application_id = {_APPLICATION_ID}",)

    def _begin(self, connection: sqlite3.Connection, statement: str) -> None:
        reading = statement == self.begin_reading
        self._wait_for(connection, *((statement, _LOCK_TO_READ) if reading else (statement,)))

    def _wait_for(self, connection: sqlite3.Connection, *statements: str) -> None:
        """Run statements that take a lock; an interruption does not end waiting for one."""
        at_once = wait_at_once(self._timeout)
        if at_once == self._timeout:
            for statement in statements:
                connection.execute(statement)
            return
        connection.execute(f"PRAGMA busy_timeout={int(1000 * at_once)}")
        for statement in statements:
            deadline = time.monotonic() + self._timeout
            while True:
                try:
                    connection.execute(statement).fetchone()
                    break
                except sqlite3.OperationalError as error:
                    if _code(error) not in _BUSY or time.monotonic() > deadline:
                        raise
                stop_if_canceled()
        connection.execute(f"PRAGMA busy_timeout={int(1000 * self._timeout)}")

    def _interrupt(self, connection: sqlite3.Connection) -> None:
        connection.interrupt()

    def _commit(self, connection: sqlite3.Connection) -> None:
        """Commit; if that fails, raise what is known of the batch.

        Emptying the journal is what commits. It is synced after that: if only the sync fails, the
        batch has been written, and the next reader sees it. SQLite does not tell which one failed.
        """
        try:
            connection.execute("COMMIT")
        except _ERRORS as error:
            if _code(error) in (*_BUSY, sqlite3.SQLITE_FULL):
                raise  # this fails before the journal is emptied: nothing was written
            raise maybe_written(self.shown, error) from error

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except _ERRORS as error:
            raise _translate(error, self.shown, self._timeout) from error


def _copied(_: int, remaining: int, pages: int) -> None:
    """Report that a part of a file has been copied."""
    report(pages - remaining, pages)
    stop_if_canceled()


def _code(error: Exception) -> int:
    """Return the error code of SQLite; 0 for an error of the driver itself."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def _translate(error: Exception, shown: str, timeout: float) -> Exception:
    code = _code(error)
    if str(error).startswith(_NO_TABLES):  # the last collection was removed with its file
        return NoCollectionsError(shown)
    if code in _BUSY:
        return CollectionBusyError(
            f"{shown} was locked by another process for more than {timeout:g} s, and nothing was "
            "written. Try again",
            Said(", or open the collection with a longer timeout", " later"),
        )
    if code == sqlite3.SQLITE_NOTADB:
        return FormatError(
            f"{shown} is not an SQLite database; choose another file. To search a corpus, run "
            "`lookalike collection create NAME.db`, then import it"
        )
    if code == sqlite3.SQLITE_FULL:
        return CollectionError(
            f"{shown}: the disk is full ({error}); nothing of this batch was written. "
            "Free some space and write it again"
        )
    if not code and isinstance(error, sqlite3.OperationalError | UnicodeDecodeError):
        # The driver's own error quotes the text, which is better not shown.
        return damaged(f"{shown} has text that is not UTF-8, and {_UNWRITTEN}")
    if code == sqlite3.SQLITE_CORRUPT:
        return CollectionError(
            f"{shown} is damaged ({error}) or cannot be read, and {_UNWRITTEN}. Try again, then ",
            Said("repair()", "`lookalike collection repair`"),
            ", which rebuilds what is derived, or restore a snapshot",
        )
    if code == sqlite3.SQLITE_CANTOPEN:
        return CollectionError(
            f"{shown} cannot be opened, and {_UNWRITTEN}. Does the folder or file exist?"
        )
    return CollectionError(f"{shown}: SQLite reports: {error}; {_UNWRITTEN}")


@contextmanager
def shared_file(path: Path, timeout: float) -> Iterator[None]:
    """Hold a lock that others may share, in a file that is removed with the last holder."""
    deadline = time.monotonic() + timeout
    try:
        while (held := _locked(path, fcntl.LOCK_SH)) is None and time.monotonic() < deadline:
            time.sleep(_LOCK_PAUSE)
    except OSError as error:
        raise CollectionError(f"{path} cannot be locked: {error}; nothing was written") from error
    if held is None:
        raise CollectionBusyError(
            f"{path} was locked by another process for more than {timeout:g} s, and nothing was "
            "written. Try again"
        )
    try:
        yield
    finally:
        _release(path, held)


@contextmanager
def exclusive_file(path: Path) -> Iterator[bool]:
    """Hold the lock of `shared_file` alone, without waiting; yield whether it was free."""
    held = None
    with suppress(OSError):  # a folder that we may not write to
        held = _locked(path, fcntl.LOCK_EX)
    try:
        yield held is not None
    finally:
        if held is not None:
            _release(path, held)


def _locked(path: Path, kind: int) -> int | None:
    """Return the descriptor of a locked file, or None if others hold it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        # The last holder may have removed the file: then no other process sees this lock.
        if os.path.samestat(os.fstat(descriptor), path.stat()):
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


def _release(path: Path, descriptor: int) -> None:
    """Unlock the file; the last holder removes it, unless it has content, which is not ours."""
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not path.lstat().st_size:
            path.unlink()
    fcntl.flock(descriptor, fcntl.LOCK_UN)  # also for children that inherited it
    os.close(descriptor)
