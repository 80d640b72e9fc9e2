"""Collections on a PostgreSQL server, in the schema `lookalike` of a database."""

from __future__ import annotations

import re
import select
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import optional_module
from lookalike.collection.documents import Row
from lookalike.collection.stores.address import Address
from lookalike.collection.stores.base import SCAN_BATCH, StaleView, Store, Writer, maybe_written
from lookalike.collection.stores.entries import Entries
from lookalike.collection.stores.schema import (
    Dialect,
    EntryKind,
    Numbered,
    Numbers,
    Signatures,
    State,
    document_columns,
    numbered,
)
from lookalike.errors import ArgumentError, CollectionBusyError, CollectionError, Said

if TYPE_CHECKING:
    import psycopg

_RESTORING = 1819242348  # the lock that processes share while they restore a collection
_ENCODED = (
    "in user names and passwords write / : @ ? # % and blanks as %2F %3A %40 %3F %23 %25 and %20"
)
_SECRETS = ("password", "secret")  # words in the names of settings whose values are secret
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

_SCHEMA_LOCK = "SELECT pg_advisory_xact_lock(1819242347)"
"""Takes the lock that is held while tables are created or changed."""
_DOCUMENT_TYPES = ("text", "int8", "bytea", "text", "int8", "int8", "int8")
_COPY_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_COPY_END = b"\xff\xff"
_FETCH = 2_000
_streams = count(1)  # numbers for the names of cursors on the server


class PostgresTransaction(Writer):
    """A transaction: every statement that is specific to PostgreSQL."""

    dialect = POSTGRESQL
    _connection: psycopg.Connection[Any]

    def _execute(self, query: str, values: Sequence[object] = ()) -> psycopg.Cursor[Any]:
        cursor = self._connection.cursor(binary=True)
        cursor.execute(query.replace("?", "%s"), values or None)
        return cursor

    def _stream(
        self, query: str, values: Sequence[object], size: int = SCAN_BATCH
    ) -> Iterator[list[Any]]:
        """Yield rows in batches through a cursor on the server: the client holds one batch."""
        name = f"lookalike_{next(_streams)}"
        with self._connection.cursor(name=name, binary=True) as cursor:
            cursor.execute(query.replace("?", "%s"), values)
            while rows := cursor.fetchmany(size):
                yield rows

    def _array(self, values: list[Any]) -> list[Any]:
        return values

    # Reading

    def signatures_after(self, number: int) -> Iterator[Numbered]:
        # Usually there are few, fetched at once: a cursor on the server takes longer.
        first = self._execute(f"{self._after()} LIMIT {_FETCH}", (number,)).fetchall()
        if first:
            yield numbered(first, self.state.row_bytes)
        if len(first) == _FETCH:
            yield from super().signatures_after(first[-1][0])

    def _documents_of(self, each: int | None, text: bool) -> str:
        table = self._table("documents")
        if each is None:
            return (
                f"SELECT {document_columns(text)} FROM {table} d {self._with_signature()} "
                f"WHERE d.signature {POSTGRESQL.among}"
            )
        return (
            f"SELECT {document_columns(text)} FROM unnest(?::bigint[]) n CROSS JOIN LATERAL "
            f"(SELECT * FROM {table} e WHERE e.signature = n ORDER BY e.id LIMIT ?) d "
            f"{self._with_signature()}"
        )

    # Writing

    def lock(self, name: str) -> State | None:
        # Twice: if the row was replaced while we waited, only another query finds the new one.
        return self.find(name, " FOR UPDATE") or self.find(name, " FOR UPDATE")

    def create(self, state: State, signer: str) -> State:
        self._execute(_SCHEMA_LOCK)
        return self.find(state.name) or super().create(state, signer)

    def find_signatures(self, signatures: Sequence[bytes]) -> dict[bytes, int]:
        table = self._table("signatures")
        rows = self._execute(
            f"SELECT signature, number FROM {table} WHERE signature = ANY(?::bytea[])",
            (list(signatures),),
        )
        return dict(rows.fetchall())

    def insert_signatures(self, new: Numbered) -> None:
        self._copy_arrays("signatures", new.numbers, new.signatures)

    def insert_parts(self, rows: Sequence[tuple[int, bytes]]) -> None:
        self._copy_rows("parts", ("int8", "bytea"), rows)

    def insert_keys(self, keys: Numbers, numbers: Numbers) -> None:
        self._copy_arrays("keys", keys, numbers.astype(">i8")[:, None].view(np.uint8))

    def insert_documents(self, rows: Sequence[Row]) -> None:
        self._copy_rows("documents", _DOCUMENT_TYPES, rows)

    def delete_keys(self, keys: Numbers, numbers: Numbers) -> None:
        self._execute(
            f"DELETE FROM {self._table('keys')} t USING unnest(?::bigint[], ?::bigint[]) u(k, s) "
            "WHERE t.key = u.k AND t.signature = u.s",
            (keys.tolist(), numbers.tolist()),
        )

    def insert_entries(self, kind: EntryKind, new: Entries) -> None:
        self._copy_rows(kind.name, ("int8", "text", "bytea", "int8"), new.rows())

    def log_removals(self, kind: str, numbers: Numbers, hashes: NDArray[np.uint64]) -> None:
        table = self._table(kind)
        self._execute(
            f"INSERT INTO {table} SELECT ?, n, h FROM unnest(?::bigint[], ?::bigint[]) u(n, h)",
            (self.state.version, numbers.tolist(), hashes.view(np.int64).tolist()),
        )

    def _copying(self, kind: str) -> AbstractContextManager[psycopg.Copy]:
        command = f"COPY {self._table(kind)} FROM STDIN (FORMAT BINARY)"
        return self._connection.cursor().copy(command)

    def _copy_rows(self, kind: str, types: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        with self._copying(kind) as copy:
            copy.set_types(types)
            for row in rows:
                copy.write_row(row)

    def _copy_arrays(self, kind: str, integers: Numbers, second: Signatures) -> None:
        """Send rows of an integer and some bytes in the binary format, all at once."""
        width = second.shape[1]
        types = [("fields", ">i2"), ("first_length", ">i4"), ("first", ">i8")]
        rows = np.empty(
            len(integers), [*types, ("second_length", ">i4"), ("second", "u1", (width,))]
        )
        rows["fields"], rows["first_length"], rows["second_length"] = 2, 8, width
        rows["first"], rows["second"] = integers, second
        with self._copying(kind) as copy:
            copy.write(_COPY_HEADER + rows.tobytes() + _COPY_END)


class PostgresStore(Store):
    """Collections in one database. Writers of one collection wait for each other, readers never."""

    transaction = PostgresTransaction
    begin_reading = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    begin_writing = "BEGIN ISOLATION LEVEL READ COMMITTED"
    begin_schema = ("BEGIN", _SCHEMA_LOCK)
    # Not to_regclass(), which may answer from before a lock was waited for.
    has_schema = (
        "SELECT count(*) FROM pg_catalog.pg_tables "
        "WHERE schemaname = 'lookalike' AND tablename = 'schema'"
    )

    def __init__(self, address: Address, *, timeout: float, durable: bool, create: bool) -> None:
        self._url = address.url
        self._psycopg = optional_module("psycopg", "a collection on PostgreSQL", extra="postgresql")
        self._check_url(address.shown)
        super().__init__(address, timeout=timeout, durable=durable, create=create)

    @classmethod
    def parse(cls, scheme: str, rest: str) -> Address:
        """Return the address of a server, which is shown without its password."""
        return Address(
            "postgresql", None, f"postgresql://{rest}", f"postgresql://{_without_password(rest)}"
        )

    @contextmanager
    def restoring(self) -> Iterator[None]:
        """Share the lock of processes that restore, on a separate connection."""
        with self._translated(), self._pool.connection() as connection:
            connection.execute("SELECT pg_advisory_lock_shared(%s)", (_RESTORING,))
            yield
            connection.execute("SELECT pg_advisory_unlock_shared(%s)", (_RESTORING,))

    def _drop_abandoned(self) -> int:
        with self.writing() as writer:
            # Held until the end of the transaction.
            row = writer._execute("SELECT pg_try_advisory_xact_lock(?)", (_RESTORING,)).fetchone()
            return writer.drop_hidden() if row and row[0] else 0

    def durability(self) -> str:
        """Return what an acknowledged write survives, by the settings of the server."""
        with self._translated(), self._pool.connection() as connection:
            rows = connection.execute(
                "SELECT name, setting FROM pg_settings "
                "WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes') ORDER BY name"
            ).fetchall()
        settings = dict(rows)
        described = ", ".join(f"{name}={value}" for name, value in rows)
        if not settings["fsync"] == settings["full_page_writes"] == "on":
            survives = "survives kill -9 of this process, but power loss may damage the database"
        elif settings["synchronous_commit"] == "off":
            survives = "survives kill -9 of this process; a crash of the server may take back the "
            survives += "last second"
        else:
            survives = "survives kill -9 of any process and power loss"
        return f"PostgreSQL, {described}: an acknowledged write {survives}"

    def _check_url(self, shown: str) -> None:
        """Refuse an address that libpq cannot read.

        Its message repeats the address, so it is asked about the one without the password.
        """
        if self._unreadable(self._url):
            reason = self._unreadable(shown) or "its password has a % that encodes nothing"
            raise ArgumentError(
                f"the address {shown} cannot be read: {reason}; "
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
            # Searches look up keys in indexes. Without statistics, right after an import, the
            # planner might read whole tables; and compiling takes longer than such queries.
            options="-c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off "
            "-c jit=off "
            f"-c lock_timeout={milliseconds} -c client_min_messages=warning "
            f"-c synchronous_commit={'on' if self._durable else 'off'}",
        )
        return connection

    def _usable(self, connection: psycopg.Connection[Any]) -> bool:
        # A server that closed the connection has sent a last message.
        return not connection.closed and not select.select([connection.fileno()], [], [], 0)[0]

    def _prepare(self, connection: Any) -> None:
        (encoding,) = connection.execute("SHOW server_encoding").fetchone() or ("",)
        if encoding != "UTF8":
            raise CollectionError(
                f"{self.shown} has the encoding {encoding}, which cannot represent every "
                "text; create a database with ENCODING 'UTF8'"
            )
        super()._prepare(connection)

    def _new_schema(self, connection: psycopg.Connection[Any]) -> tuple[str, ...]:
        return ("CREATE SCHEMA IF NOT EXISTS lookalike",)

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
                f"{self.shown}: another writer locked the collection for more than "
                f"{self._timeout:g} s, and nothing was written. Try again",
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
                "was written. Free some space and write it again"
            ) from error
        except self._psycopg.Error as error:
            raise CollectionError(
                f"{self.shown}: PostgreSQL reports: {error}; nothing that was not acknowledged was "
                "written"
            ) from error


def _without_password(rest: str) -> str:
    """Return what follows postgresql:// with stars for passwords, as libpq understands it.

    Refuses an address with an unencoded character that makes libpq take a part of the password for
    something else, which it would then show.
    """
    user, at, after = rest.partition("@")
    if not at or "/" in user:
        user, at, after = "", "", rest
    where, question, settings = after.partition("?")
    hosts = where.partition("/")[0]
    ports = re.sub(r"\[[^]]*\]", "", hosts).split(",")
    readable = all(re.fullmatch(r"[^:]*(:[0-9]*)?", port) for port in ports)
    readable &= all("=" in one for one in settings.split("&") if question)
    if "@" in where or not readable:
        raise ArgumentError(
            "the address postgresql://... of a collection cannot be read; "
            f"expected postgresql://user:password@host:port/database, and {_ENCODED}"
        )
    name, colon, _ = user.partition(":")
    shown = []
    for one in settings.split("&"):
        key, _, _ = one.partition("=")
        secret = any(word in unquote(key).lower() for word in _SECRETS)
        shown.append(f"{key}=***" if secret else one)
    return f"{name}{colon and ':***'}{at}{where}{question}{'&'.join(shown)}"
