"""Collections on a PostgreSQL server, in the schema `lookalike` of a database."""

from __future__ import annotations

import select
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lookalike.checks import optional_module
from lookalike.collection.care.abandoned import drop_hidden
from lookalike.collection.stores.base import StaleView, Store, maybe_written
from lookalike.collection.stores.pool import Pool
from lookalike.collection.stores.postgresql_transaction import (
    SCHEMA_LOCK,
    PostgresTransaction,
)
from lookalike.collection.stores.schema import refuse_newer
from lookalike.errors import ArgumentError, CollectionBusyError, CollectionError, Said

if TYPE_CHECKING:
    import psycopg

_RESTORING = 1819242348
"""Whoever restores shares this lock."""


class PostgresStore(Store):
    """Collections in one database. Writers of one collection wait for each other, readers never."""

    transaction = PostgresTransaction
    begin_reading = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    begin_writing = "BEGIN ISOLATION LEVEL READ COMMITTED"
    begin_schema = ("BEGIN", SCHEMA_LOCK)

    def __init__(
        self, url: str, shown: str, *, timeout: float, durable: bool, create: bool
    ) -> None:
        self.shown = shown
        self._url = url
        self._timeout = timeout
        self._durable = durable
        self._create = create
        self._psycopg = optional_module("psycopg", "a collection on PostgreSQL", extra="postgresql")
        self._check_url()
        self._pool: Pool[psycopg.Connection[Any]] = Pool(self._connect, _usable)
        with self._translated(), self._pool.connection() as connection:
            self._prepare(connection)

    @contextmanager
    def restoring(self) -> Iterator[None]:
        """Share the lock of those who restore, on a connection that lives as long."""
        with self._translated(), self._pool.connection() as connection:
            connection.execute("SELECT pg_advisory_lock_shared(%s)", (_RESTORING,))
            yield
            connection.execute("SELECT pg_advisory_unlock_shared(%s)", (_RESTORING,))

    def remove_abandoned(self) -> int:
        """Remove what is half restored, if nobody shares the lock."""
        with self.reading() as view:
            if not view.states(hidden=True):
                return 0
        with self.writing() as writer:
            return drop_hidden(writer) if writer.try_lock(_RESTORING) else 0  # type: ignore[attr-defined]

    def durability(self) -> str:
        """Say what an acknowledged write survives, by the settings of the server."""
        with self._translated(), self._pool.connection() as connection:
            rows = connection.execute(
                "SELECT name, setting FROM pg_settings "
                "WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes') ORDER BY name"
            ).fetchall()
        settings = dict(rows)
        described = ", ".join(f"{name}={value}" for name, value in rows)
        safe = (
            settings["fsync"] == "on"
            and settings["full_page_writes"] == "on"
            and settings["synchronous_commit"] != "off"
        )
        if safe:
            survives = "survives kill -9 of any process and power loss"
        elif settings["fsync"] == "on" and settings["full_page_writes"] == "on":
            survives = "survives kill -9 of this process; a crash of the server may take back the "
            survives += "last second"
        else:
            survives = "survives kill -9 of this process, but power loss may damage the database"
        return f"PostgreSQL, {described}: an acknowledged write {survives}"

    def _check_url(self) -> None:
        """Refuse an address that libpq cannot read.

        It repeats what it cannot read, so its words are used only about the address without the
        password.
        """
        if self._unreadable(self._url):
            reason = self._unreadable(self.shown) or "its password has a % that encodes nothing"
            raise ArgumentError(
                f"the address {self.shown} cannot be read: {reason}; "
                "expected postgresql://user:password@host:port/database, special characters "
                "percent-encoded (% is %25)"
            )

    def _unreadable(self, url: str) -> str:
        try:
            self._psycopg.conninfo.conninfo_to_dict(url)
        except self._psycopg.Error as error:
            return str(error).strip()
        return ""

    def _connect(self) -> psycopg.Connection[Any]:
        milliseconds = max(1, int(1000 * self._timeout))
        connection: psycopg.Connection[Any] = self._psycopg.connect(
            self._url,
            autocommit=True,
            client_encoding="UTF8",
            connect_timeout=max(2, round(self._timeout)),
            # Searches look up keys in indexes. A planner without statistics, right after an import,
            # might prefer to read whole tables; and compiling takes longer than such queries do.
            options="-c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off "
            "-c jit=off "
            f"-c lock_timeout={milliseconds} -c client_min_messages=warning "
            f"-c synchronous_commit={'on' if self._durable else 'off'}",
        )
        return connection

    def _prepare(self, connection: Any) -> None:
        (encoding,) = connection.execute("SHOW server_encoding").fetchone() or ("",)
        if encoding != "UTF8":
            raise CollectionError(
                f"{self.shown} has the encoding {encoding}, in which not every text can be "
                "written; make a database with ENCODING 'UTF8'"
            )
        super()._prepare(connection)

    def _new_schema(self, connection: psycopg.Connection[Any]) -> tuple[str, ...]:
        return ("CREATE SCHEMA IF NOT EXISTS lookalike",)

    def _schema_version(self, connection: psycopg.Connection[Any]) -> int:
        # The catalogue and not to_regclass(), which may answer from before a lock was waited for.
        row = connection.execute(
            "SELECT count(*) FROM pg_catalog.pg_tables "
            "WHERE schemaname = 'lookalike' AND tablename = 'schema'"
        ).fetchone()
        if not row or not row[0]:
            return 0
        row = connection.execute("SELECT version FROM lookalike.schema").fetchone()
        version = int(row[0]) if row else 0
        refuse_newer(version, self.shown)
        return version

    def _interrupt(self, connection: psycopg.Connection[Any]) -> None:
        connection.cancel()

    def _commit(self, connection: Any) -> None:
        try:
            connection.execute("COMMIT")
        except self._psycopg.Error as error:
            raise maybe_written(self.shown, error) from error

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except self._psycopg.errors.LockNotAvailable as error:
            raise CollectionBusyError(
                f"{self.shown}: the collection was locked by another writer for more than "
                f"{self._timeout:g} s; nothing was written: try again",
                Said(", or open the collection with a longer timeout", " later"),
            ) from error
        except (
            self._psycopg.errors.UndefinedTable,
            self._psycopg.errors.DeadlockDetected,
        ) as error:
            # Tables are dropped only with a collection: it is gone, or was replaced.
            raise StaleView from error
        except self._psycopg.errors.DiskFull as error:
            raise CollectionError(
                f"{self.shown}: the disk of the server is full ({error}); nothing of this batch "
                "was written: make room and write it again"
            ) from error
        except self._psycopg.Error as error:
            raise CollectionError(
                f"{self.shown}: PostgreSQL reports: {error}; nothing that was not acknowledged was "
                "written"
            ) from error


def _usable(connection: psycopg.Connection[Any]) -> bool:
    """Return whether an idle connection still stands: a server that left has sent a last word."""
    return not connection.closed and not select.select([connection.fileno()], [], [], 0)[0]
