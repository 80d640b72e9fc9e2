"""The tables of collections: their rows as Python values, how they are created, and migrations.

Signatures are cut into slices, and each slice has a key in the table of keys. A key is position and
value in one integer, position << 32 | value, so that looking up many keys is one index search in
any database.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, lru_cache
from itertools import accumulate, combinations
from math import comb
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.checks import whole_number
from lookalike.collection.documents import DIGEST_BYTES, Row, damaged, digest_of, unpacked
from lookalike.parts.signer import SignedParts

Signatures: TypeAlias = NDArray[np.uint8]
Numbers: TypeAlias = NDArray[np.int64]

MOST_BITS = 1 << 14  # PostgreSQL's indexes take entries of up to 2,700 bytes
MOST_SLICE_BITS = 32
_VALUE_BITS = 32
WORD_KINDS = ("porter", "plain", "trigram")
"""What a keyword index compares: English words by their stems, words as written, or runs of three
characters of words."""
MOST_DIMENSIONS = 1 << 14  # of the vector of a document
REMOVED = {"removals": "signature", "word_removals": "number", "vector_removals": "number"}
"""The tables of removals, and the column of each that has the number of what was removed."""
SHARED_TABLES = ("schema", "collections", "signers")
"""The tables that all collections of a database share."""


# Slices


def default_slice_bits(bits: int) -> int:
    """Return a width that keeps lists short for tens of millions of signatures.

    A slice of 26 bits has 67 million values: 128 bits make five slices. Five cost less than six to
    write, and less to search from about two million signatures on. Wide signatures get wider
    slices, so that a document has about two dozen keys at most.
    """
    return min(bits, max(26, min(MOST_SLICE_BITS, -(-bits // 24))))


@dataclass(frozen=True)
class Slicing:
    """The fewest and most equal slices of at most `slice_bits` bits (0: none) of a signature."""

    bits: int
    slice_bits: int

    def __post_init__(self) -> None:
        most = min(self.bits, MOST_SLICE_BITS)
        whole_number("slice_bits", self.slice_bits, at_least=0, at_most=most)

    @property
    def count(self) -> int:
        """The number of slices, and so of keys, of a signature."""
        return -(-self.bits // self.slice_bits) if self.slice_bits else 0

    @property
    def widths(self) -> list[int]:
        """The number of bits of each slice."""
        narrow, wide = divmod(self.bits, max(1, self.count))
        return [narrow + (position < wide) for position in range(self.count)]

    def values(self, signatures: Signatures) -> Numbers:
        """Return the value of every slice, `int64[slices, n]`."""
        columns = np.ascontiguousarray(signatures.T)
        values = np.empty((self.count, len(signatures)), np.int64)
        start = 0
        for position, width in enumerate(self.widths):
            first, last = start // 8, (start + width - 1) // 8
            value = np.zeros(len(signatures), np.uint64)
            for byte in range(first, last + 1):  # at most five: 32 bits from any bit on
                value |= columns[byte].astype(np.uint64) << np.uint64(8 * (byte - first))
            value >>= np.uint64(start % 8)
            values[position] = value & np.uint64((1 << width) - 1)
            start += width
        return values

    def keys(self, signatures: Signatures) -> Numbers:
        """Return the keys of every signature, `int64[slices, n]`."""
        positions = np.arange(self.count, dtype=np.int64)[:, None]
        return self.values(signatures) | positions << _VALUE_BITS

    def key_rows(self, new: Numbered) -> tuple[Numbers, Numbers]:
        """Return the rows (key, number) of the table, in its order."""
        keys = self.keys(new.signatures).ravel()
        owners = np.tile(new.numbers, self.count)
        order = np.lexsort((owners, keys))
        return keys[order], owners[order]

    def differing(self, query: Signatures, signatures: Signatures) -> Numbers:
        """Return in how many bits each slice differs from the query's, `int64[n, slices]`."""
        apart = np.unpackbits(query ^ signatures, axis=1, bitorder="little")
        starts = [0, *accumulate(self.widths[:-1])]
        counts: Numbers = np.add.reduceat(apart, starts, axis=1, dtype=np.int64)
        return counts


@cache
def flips(width: int, ones: int) -> Numbers:
    """Return all values of `width` bits with exactly `ones` ones."""
    values = (sum(1 << bit for bit in chosen) for chosen in combinations(range(width), ones))
    return np.fromiter(values, np.int64, comb(width, ones))


def digest(hashed: NDArray[np.uint64]) -> int:
    """Return the exclusive or of hashes, as the signed integer that databases store."""
    return int(np.bitwise_xor.reduce(hashed, initial=np.uint64(0)).view(np.int64))


# Rows


@dataclass(frozen=True)
class EntryKind:
    """A table of entries beside documents; the strings are names of tables and fields of `State`.

    An entry is a number, an id, a value of bytes, and a hash of these.
    """

    name: str  # of the table, and of its column of values
    removals: str  # the table of removals
    next: str  # the field with the next number
    digest: str  # the field with the exclusive or of the hashes
    count: str  # the field with the number of entries
    table: str  # what the table is called in messages
    value: str  # what values are called in messages, in the plural


WORDS = EntryKind(
    "words", "word_removals", "next_words", "words_digest", "documents", "keyword index", "words"
)
VECTORS = EntryKind(
    "vectors", "vector_removals", "next_vectors", "vectors_digest", "vectors", "table of vectors",
    "numbers of the vector",
)  # fmt: skip


@dataclass(frozen=True)
class State:
    """The row of a collection: its settings and counts at one version."""

    number: int
    name: str
    uid: str  # random: a collection that is dropped and created again has another one
    bits: int
    slice_bits: int
    keep_text: bool
    signer: str  # a hash of the signer's description; empty if the caller gives signatures
    version: int = 0  # the number of writes
    documents: int = 0
    signatures: int = 0
    next_signature: int = 1
    digest: int = 0  # the exclusive or of the hashes of all numbered signatures
    removals_from: int = 0  # removals of versions after this one are still known
    parts: bool = False
    """Whether documents have many signatures, of `bits` each. The tables then have a digest of them
    as the signature, which has no slices."""
    words: str = ""  # one of `WORD_KINDS` if there is a keyword index
    next_words: int = 1
    words_digest: int = 0  # the exclusive or of the hashes of all bags of words
    dimensions: int = 0  # of the vectors of documents; 0 if no vector was ever written
    vectors: int = 0  # documents that have a vector
    next_vectors: int = 1
    vectors_digest: int = 0  # the exclusive or of the hashes of all vectors

    @property
    def slicing(self) -> Slicing:
        """How signatures are cut."""
        return Slicing(self.bits, self.slice_bits)

    @property
    def row_bytes(self) -> int:
        """The number of bytes of a signature in the tables."""
        return DIGEST_BYTES if self.parts else self.bits // 8


STATE_COLUMNS = ", ".join(field.name for field in fields(State))


@lru_cache(maxsize=64, typed=True)
def as_state(*columns: Any) -> State:
    """Return a row of the table of collections, which is untrusted; raise if it is not valid."""
    state = State(*columns)
    valid = {
        "number": _is_count(state.number) and state.number > 0,
        "name": isinstance(state.name, str),
        "uid": isinstance(state.uid, str) and re.fullmatch("[0-9a-f]{32}", state.uid) is not None,
        "slice_bits": _can_be_sliced(state.bits, state.slice_bits, state.parts),
        "keep_text": state.keep_text in (0, 1),
        "parts": state.parts in (0, 1),
        "signer": isinstance(state.signer, str)
        and re.fullmatch("([0-9a-f]{64})?", state.signer) is not None,
        "digest": type(state.digest) is int,
        "words": state.words in ("", *WORD_KINDS),
        "words_digest": type(state.words_digest) is int,
        "dimensions": _is_count(state.dimensions)
        and state.dimensions <= (0 if state.parts else MOST_DIMENSIONS),
        "vectors_digest": type(state.vectors_digest) is int,
    }
    for field in fields(State):
        value = getattr(state, field.name)
        if not (valid[field.name] if field.name in valid else _is_count(value)):
            raise damaged(
                f"the row of the collection {str(state.name)[:80]!r} holds {str(value)[:80]!r} as "
                f"{field.name}, which lookalike did not write"
            )
    return replace(state, keep_text=bool(state.keep_text), parts=bool(state.parts))


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _can_be_sliced(bits: object, slice_bits: object, parts: object) -> bool:
    if type(bits) is not int or type(slice_bits) is not int or bits % 8:
        return False
    if bool(parts) is not (slice_bits == 0):
        return False
    return 8 <= bits <= MOST_BITS and 0 <= slice_bits <= min(bits, MOST_SLICE_BITS)


def signer_hash(description: str) -> str:
    """Return the hash of a signer's description that the row of a collection has."""
    import hashlib  # takes milliseconds to import, which most callers do not need

    return hashlib.sha256(description.encode()).hexdigest() if description else ""


@dataclass(frozen=True)
class Numbered:
    """Signatures with their numbers."""

    numbers: Numbers
    signatures: Signatures

    def __len__(self) -> int:
        return len(self.numbers)

    def hashes(self) -> NDArray[np.uint64]:
        """Return a hash of each number and signature; their exclusive or identifies the set."""
        rows = np.empty((len(self), 8 + self.signatures.shape[1]), np.uint8)
        rows[:, :8] = self.numbers.astype("<i8")[:, None].view(np.uint8)
        rows[:, 8:] = self.signatures
        result = np.empty(len(rows), np.uint64)
        _native.hash_rows(rows, result)
        return result

    def digest(self) -> int:
        """Return the exclusive or of the hashes, as databases store it."""
        return digest(self.hashes())


def numbered(rows: Sequence[tuple[int, bytes]], width: int) -> Numbered:
    """Return rows of a table of signatures as arrays."""
    numbers, blobs = [row[0] for row in rows], [row[1] for row in rows]
    # A damaged schema may turn numbers into text and bytes.
    if not (set(map(type, numbers)) <= {int} and set(map(type, blobs)) <= {bytes}):
        raise damaged("the table of signatures has values that are not numbers and bytes")
    if not set(map(len, blobs)) <= {width}:
        raise damaged(f"the table of signatures has values that are not of {width} bytes")
    rows_of_bytes = np.frombuffer(b"".join(blobs), np.uint8).reshape(len(rows), width)
    return Numbered(np.array(numbers, np.int64), rows_of_bytes)


def blobs(signatures: Signatures) -> list[bytes]:
    """Return each signature as the table has it."""
    data, width = signatures.tobytes(), signatures.shape[1]
    return [data[begin : begin + width] for begin in range(0, len(data), width)]


def checked_parts(number: int, data: object, known_by: bytes, bits: int) -> SignedParts:
    """Return the parts that a row holds; raise if they do not have this digest."""
    if not isinstance(data, bytes):
        raise damaged(f"the parts of the signature {number} are missing")
    parts = unpacked(data, bits) if digest_of(data) == known_by else None
    if parts is None:
        raise damaged(f"the parts of the signature {number} do not match their digest")
    return parts


def integers(rows: Sequence[tuple[int, int]]) -> tuple[Numbers, Numbers]:
    """Return rows of two integers as arrays."""
    if not all(isinstance(one, int) and isinstance(two, int) for one, two in rows):
        raise damaged("a table of numbers has other values")
    array = np.array(rows, np.int64).reshape(-1, 2)
    return array[:, 0].copy(), array[:, 1].copy()


Stored: TypeAlias = tuple[Row, bytes | None]
"""A document and its signature, None if that is missing; not checked yet. Where texts are not asked
for, only documents whose checksum needs the text have it."""


# Tables


@dataclass(frozen=True)
class Dialect:
    """The words in which databases differ."""

    prefix: str  # the beginning of every table name
    integer: str
    text: str  # text that is compared byte by byte
    bytes: str
    clustered: str
    """Keeps a table in the order of its primary key, if the database does not do so anyway."""
    among: str  # the condition that a number is one of many, which are given as one value
    among_texts: str  # the same for texts
    reindex: str  # the command that rebuilds the indexes of a table, without the table


Table: TypeAlias = Callable[[str], str]  # returns the name of a table of a collection by its kind


def kinds_of_tables(state: State) -> list[str]:
    """Return the kinds of tables of a collection."""
    parts = ["parts"] if state.parts else []
    beside = [name for kind in entry_kinds(state) for name in (kind.name, kind.removals)]
    return ["documents", "keys", "signatures", "removals", *parts, *beside]


def entry_kinds(state: State) -> list[EntryKind]:
    """Return the kinds of entries that a collection has beside its documents."""
    return [kind for kind, has in ((WORDS, state.words), (VECTORS, state.dimensions)) if has]


def collection_tables(dialect: Dialect, state: State, table: Table) -> list[str]:
    """Return the statements that create the tables of a collection."""
    integer, text, binary = dialect.integer, dialect.text, dialect.bytes
    documents = table("documents")
    index = documents.rpartition(".")[2] + "_by_signature"
    parts = [
        f"CREATE TABLE {table('parts')} (number {integer} PRIMARY KEY, parts {binary} NOT NULL)"
    ]
    return [
        *(parts if state.parts else ()),
        *(one for kind in entry_kinds(state) for one in entry_tables(kind, dialect, table)),
        f"CREATE TABLE {table('signatures')} ("
        f"number {integer} PRIMARY KEY, signature {binary} NOT NULL UNIQUE)",
        f"CREATE TABLE {table('keys')} ("
        f"key {integer} NOT NULL, signature {integer} NOT NULL, PRIMARY KEY (key, signature)"
        f"){dialect.clustered}",
        f"CREATE TABLE {documents} (id {text} NOT NULL PRIMARY KEY, signature {integer} NOT NULL, "
        f"text {binary}, metadata {text} NOT NULL, added {integer} NOT NULL, "
        f"updated {integer} NOT NULL, checksum {integer} NOT NULL)",
        f"CREATE INDEX {index} ON {documents} (signature, id)",
        _removal_table("removals", dialect, table),
    ]


def entry_tables(kind: EntryKind, dialect: Dialect, table: Table) -> list[str]:
    """Return the statements that create the tables of a kind of entries."""
    integer = dialect.integer
    return [
        f"CREATE TABLE {table(kind.name)} (number {integer} PRIMARY KEY, "
        f"id {dialect.text} NOT NULL UNIQUE, {kind.name} {dialect.bytes} NOT NULL, "
        f"hash {integer} NOT NULL)",
        _removal_table(kind.removals, dialect, table),
    ]


def _removal_table(kind: str, dialect: Dialect, table: Table) -> str:
    integer, column = dialect.integer, REMOVED[kind]
    return (
        f"CREATE TABLE {table(kind)} (version {integer} NOT NULL, {column} {integer} NOT NULL, "
        f"hash {integer} NOT NULL, PRIMARY KEY (version, {column})){dialect.clustered}"
    )


@cache
def document_columns(text: bool) -> str:
    """Return the columns of `d` and `s`; without `text`, only texts that the checksum needs."""
    needed = "d.text" if text else "CASE WHEN d.checksum >> 32 = 0 THEN d.text END"
    names = [needed if name == "text" else f"d.{name}" for name in Row._fields]
    return ", ".join([*names, "s.signature"])


def consistency(state: State, table: Table) -> list[tuple[str, str]]:
    """Return queries that count what is wrong, each with the end of its message."""
    documents, rows, keys = table("documents"), table("signatures"), table("keys")
    unknown = "documents have a signature that is not in the table"
    references = [
        (documents, "signature", rows, "number", unknown),
        (rows, "number", documents, "signature", "signatures belong to no document"),
    ]
    if state.parts:
        parts = table("parts")
        references += [
            (rows, "number", parts, "number", "signatures have no parts"),
            (parts, "number", rows, "number", "parts belong to no signature"),
        ]
    if state.words:
        words = table("words")
        references += [
            (documents, "id", words, "id", "documents are not in the keyword index"),
            (words, "id", documents, "id", "entries of the keyword index belong to no document"),
        ]
    if state.dimensions:
        references.append(
            (table("vectors"), "id", documents, "id", "vectors belong to no document")
        )
    without = "SELECT count(*) FROM {} a WHERE NOT EXISTS (SELECT 1 FROM {} b WHERE b.{} = a.{})"
    found = [
        (without.format(one, other, theirs, own), problem)
        for one, own, other, theirs, problem in references
    ]
    for name, expected in (("documents", state.documents), ("signatures", state.signatures)):
        difference = f"SELECT abs((SELECT count(*) FROM {table(name)}) - {expected})"
        found.append((difference, f"{name} more or fewer than the {expected} that were counted"))
    beyond = f"SELECT count(*) FROM {keys} WHERE key < 0 OR key >= {state.slicing.count << 32}"
    return [*found, (beyond, "keys are at positions that do not exist")]


Execute: TypeAlias = Callable[[str], object]


def _first(execute: Execute, dialect: Dialect) -> None:
    """Create the tables that all collections share."""
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
    """Mark collections whose documents have many signatures."""
    execute(
        f"ALTER TABLE {dialect.prefix}collections ADD COLUMN parts {dialect.integer} "
        "NOT NULL DEFAULT 0"
    )


def _fourth(execute: Execute, dialect: Dialect) -> None:
    """Mark collections that have a keyword index; those from before have none."""
    add = f"ALTER TABLE {dialect.prefix}collections ADD COLUMN"
    execute(f"{add} words {dialect.text} NOT NULL DEFAULT ''")
    execute(f"{add} next_words {dialect.integer} NOT NULL DEFAULT 1")
    execute(f"{add} words_digest {dialect.integer} NOT NULL DEFAULT 0")


def _fifth(execute: Execute, dialect: Dialect) -> None:
    """Mark collections that have vectors beside documents; those from before have none."""
    add = f"ALTER TABLE {dialect.prefix}collections ADD COLUMN"
    for column, value in {
        "dimensions": 0,
        "vectors": 0,
        "next_vectors": 1,
        "vectors_digest": 0,
    }.items():
        execute(f"{add} {column} {dialect.integer} NOT NULL DEFAULT {value}")


MIGRATIONS: list[Callable[[Execute, Dialect], None]] = [_first, _second, _third, _fourth, _fifth]
"""Step i brings version i to i + 1; all missing steps run in one transaction."""
