"""The tables of collections, and how older ones are brought up to date."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from lookalike.collection.documents import Row
from lookalike.collection.stores.state import State
from lookalike.errors import FormatError

STATE_COLUMNS = (
    "number, name, uid, bits, slice_bits, keep_text, signer, version, documents, signatures, "
    "next_signature, digest, removals_from, parts"
)
SHARED_TABLES = ("schema", "collections", "signers")
"""The tables that all collections of a database share."""


@dataclass(frozen=True)
class Dialect:
    """The words in which two databases differ."""

    prefix: str
    """What the name of each table begins with."""
    integer: str
    text: str
    """Text that is compared byte by byte."""
    bytes: str
    clustered: str
    """Keeps a table in the order of its primary key, where that is not a matter of course."""
    among: str
    """What a number meets that is one of many, which are given as one value."""
    among_texts: str
    """The same for texts."""
    reindex: str
    """What is put before a table to have its indexes built again."""

    def table(self, kind: str, number: int) -> str:
        """Return the name of a table of a collection."""
        return f"{self.prefix}{kind}_{int(number)}"


def kinds_of_tables(state: State) -> list[str]:
    """Return what kinds of tables a collection has."""
    return ["documents", "keys", "signatures", "removals", *(["parts"] if state.parts else [])]


def collection_tables(dialect: Dialect, state: State) -> list[str]:
    """Return the statements that make the tables of a collection."""
    number = state.number
    integer, text, binary = dialect.integer, dialect.text, dialect.bytes
    documents = dialect.table("documents", number)
    index = documents.rpartition(".")[2] + "_by_signature"
    parts = [
        f"CREATE TABLE {dialect.table('parts', number)} ("
        f"number {integer} PRIMARY KEY, parts {binary} NOT NULL)"
    ]
    return [
        *(parts if state.parts else ()),
        f"CREATE TABLE {dialect.table('signatures', number)} ("
        f"number {integer} PRIMARY KEY, signature {binary} NOT NULL UNIQUE)",
        f"CREATE TABLE {dialect.table('keys', number)} ("
        f"key {integer} NOT NULL, signature {integer} NOT NULL, PRIMARY KEY (key, signature)"
        f"){dialect.clustered}",
        f"CREATE TABLE {documents} (id {text} NOT NULL PRIMARY KEY, signature {integer} NOT NULL, "
        f"text {binary}, metadata {text} NOT NULL, added {integer} NOT NULL, "
        f"updated {integer} NOT NULL, checksum {integer} NOT NULL)",
        f"CREATE INDEX {index} ON {documents} (signature, id)",
        f"CREATE TABLE {dialect.table('removals', number)} ("
        f"version {integer} NOT NULL, signature {integer} NOT NULL, hash {integer} NOT NULL, "
        f"PRIMARY KEY (version, signature)){dialect.clustered}",
    ]


def document_columns(text: bool) -> str:
    """Name what makes a document `d` with its signature `s`; texts only where they are needed."""
    needed = "d.text" if text else "CASE WHEN d.checksum >> 32 = 0 THEN d.text END"
    names = [needed if name == "text" else f"d.{name}" for name in Row._fields]
    return ", ".join([*names, "s.signature"])


def consistency(dialect: Dialect, state: State) -> list[tuple[str, str]]:
    """Return questions that count what is wrong, and how to say it."""
    documents, rows, keys = (
        dialect.table(kind, state.number) for kind in ("documents", "signatures", "keys")
    )
    parts = dialect.table("parts", state.number)
    of_parts = [
        (
            f"SELECT count(*) FROM {rows} s WHERE NOT EXISTS "
            f"(SELECT 1 FROM {parts} p WHERE p.number = s.number)",
            "signatures have no parts",
        ),
        (
            f"SELECT count(*) FROM {parts} p WHERE NOT EXISTS "
            f"(SELECT 1 FROM {rows} s WHERE s.number = p.number)",
            "parts belong to no signature",
        ),
    ]
    return [
        *(of_parts if state.parts else ()),
        (
            f"SELECT count(*) FROM {documents} d WHERE NOT EXISTS "
            f"(SELECT 1 FROM {rows} s WHERE s.number = d.signature)",
            "documents have a signature that is not in the table",
        ),
        (
            f"SELECT count(*) FROM {rows} s WHERE NOT EXISTS "
            f"(SELECT 1 FROM {documents} d WHERE d.signature = s.number)",
            "signatures belong to no document",
        ),
        (
            f"SELECT abs((SELECT count(*) FROM {documents}) - {state.documents})",
            f"documents more or fewer than the {state.documents} that were counted",
        ),
        (
            f"SELECT abs((SELECT count(*) FROM {rows}) - {state.signatures})",
            f"signatures more or fewer than the {state.signatures} that were counted",
        ),
        (
            f"SELECT count(*) FROM {keys} WHERE key < 0 OR key >= {state.slicing.count << 32}",
            "keys are at positions that do not exist",
        ),
    ]


Execute: TypeAlias = Callable[[str], object]


def _first(execute: Execute, dialect: Dialect) -> None:
    """Make the tables that all collections share."""
    prefix, integer, text = dialect.prefix, dialect.integer, dialect.text
    execute(
        f"CREATE TABLE {prefix}collections (number {integer} PRIMARY KEY, "
        f"name {text} NOT NULL UNIQUE, uid {text} NOT NULL, bits {integer} NOT NULL, "
        f"slice_bits {integer} NOT NULL, keep_text {integer} NOT NULL, signer {text} NOT NULL, "
        f"version {integer} NOT NULL, documents {integer} NOT NULL, "
        f"signatures {integer} NOT NULL, next_signature {integer} NOT NULL, "
        f"digest {integer} NOT NULL, removals_from {integer} NOT NULL)"
    )
    execute(
        f"CREATE TABLE {prefix}signers (number {integer} PRIMARY KEY, description {text} NOT NULL)"
    )


def _second(execute: Execute, dialect: Dialect) -> None:
    """Change no table: checksums of documents have an upper half from here on."""


def _third(execute: Execute, dialect: Dialect) -> None:
    """Tell collections whose documents have many signatures from the others."""
    execute(
        f"ALTER TABLE {dialect.prefix}collections ADD COLUMN parts {dialect.integer} "
        "NOT NULL DEFAULT 0"
    )


MIGRATIONS: list[Callable[[Execute, Dialect], None]] = [_first, _second, _third]
"""Step i brings version i to i + 1; all steps that are missing run in one transaction."""


def upgrade(execute: Execute, dialect: Dialect, version: int, shown: str) -> None:
    """Bring tables of an older version, 0 being none at all, to the current one."""
    refuse_newer(version, shown)
    for step in MIGRATIONS[version:]:
        step(execute, dialect)


def refuse_newer(version: int, shown: str) -> None:
    """Raise if tables were made by a newer lookalike than this."""
    if version > len(MIGRATIONS):
        raise FormatError(
            f"{shown} has collections of schema version {version}; this lookalike knows versions "
            f"up to {len(MIGRATIONS)}: use the one that wrote it, or a newer one"
        )
