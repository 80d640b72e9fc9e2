"""Documents: validation, the row of a document in the database, and its checksum."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import nested_deeper
from lookalike.display import Displayed
from lookalike.errors import ArgumentError, CollectionError, Said
from lookalike.parts.index import FARTHEST
from lookalike.parts.signer import SignedParts

MOST_ID_BYTES = 1_000
MOST_TEXT_BYTES = 256 << 20
MOST_METADATA_BYTES = 32 << 20
MOST_ROW_BYTES = MOST_TEXT_BYTES + MOST_METADATA_BYTES + (1 << 20)
MOST_DEPTH = 100
MOST_PARTS_BYTES = 256 << 20
"""Largest size of the parts of one document: 24 hours of sound take 21 MB."""
DIGEST_BYTES = 32

_POSITION = np.dtype("<i8")
_TYPES = (str, int, bytes | None, str, int, int, int)
_ENCODE = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


@dataclass(frozen=True, eq=False, repr=False)
class Document(Displayed):
    """A document of a collection."""

    id: str
    signature: NDArray[np.uint8] = field(repr=False)
    """For documents of many parts, a digest of 32 bytes; see `Collection.parts_of`."""
    metadata: dict[str, Any]
    text: str | None
    """None if the collection does not keep texts, or the text was not requested."""
    added: datetime
    updated: datetime
    vector: NDArray[np.float32] | None = field(default=None, repr=False)
    """None if it was written without a vector."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Document) and self._all() == other._all()

    def _all(self) -> tuple[Any, ...]:
        metadata, signature = self.metadata, self.signature.tobytes()
        vector = None if self.vector is None else self.vector.tobytes()
        return (self.id, signature, metadata, self.text, self.added, self.updated, vector)


class Row(NamedTuple):
    """A row of the table of documents."""

    id: str
    signature: int  # the number of its signature
    text: bytes | None
    metadata: str
    added: int  # microseconds since 1970, UTC
    updated: int
    checksum: int


class Seen(NamedTuple):
    """The version of a document; every write changes it."""

    id: str
    signature: int  # the number of its signature
    checksum: int
    added: int  # microseconds since 1970, UTC


def seen(row: Row) -> Seen:
    """Return the version of a document that a row holds."""
    return Seen(row.id, row.signature, row.checksum, row.added)


def now() -> int:
    """Return the time in microseconds since 1970, UTC."""
    return time.time_ns() // 1000


def damaged(what: str) -> CollectionError:
    """Return the error for something that is not as it was written."""
    return CollectionError(
        f"{what}: the database is damaged; run ",
        Said("verify() and repair()", "`lookalike collection verify` and `repair`"),
        ", and restore a snapshot if documents are lost",
    )


def checksum(
    id: str, signature: bytes, text: bytes | None, metadata: str, added: int, updated: int
) -> int:
    """Return the checksum of a document: two CRCs in 64 bits.

    The upper half does not cover the text, so that searches need not read it. It is 0 in documents
    from before schema version 2.
    """
    named = f"{len(id)},{id}{metadata}".encode()
    size = -1 if text is None else len(text)
    whole = crc32(text or b"", crc32(named, crc32(b"%d,%d,%d," % (added, updated, size))))
    value = _without_text(named, signature, added, updated) << 32 | crc32(signature, whole)
    return value - (1 << 64) if value >> 63 else value


def _without_text(named: bytes, signature: bytes, added: int, updated: int) -> int:
    return crc32(signature, crc32(named, crc32(b"%d,%d," % (added, updated))))


def intact(row: Row, signature: bytes | None, text: bool = True) -> bool:
    """Return whether a row and its signature are as written; `text` if the text was read."""
    if not isinstance(signature, bytes) or not all(map(isinstance, row, _TYPES)):
        return False  # SQLite stores the type with each value, so damage can change it
    id, _, _, metadata, added, updated, known = row
    upper = known >> 32 & 0xFFFFFFFF
    try:
        if upper and not text:
            named = f"{len(id)},{id}{metadata}".encode()
            return upper == _without_text(named, signature, added, updated)
        expected = checksum(id, signature, row.text, metadata, added, updated)
    except UnicodeEncodeError:
        return False
    return known == (expected if upper else expected & 0xFFFFFFFF)


def check_row(row: Row, signature: bytes | None, text: bool = True) -> bytes:
    """Return the signature of a document; raise if the document is not as it was written."""
    if signature is None:
        raise damaged(f"the signature of the document {str(row.id)[:80]!r} is missing")
    if not intact(row, signature, text):
        raise damaged(f"the document {str(row.id)[:80]!r} does not match its checksum")
    return signature


def decoded_metadata(row: Row) -> dict[str, Any]:
    """Return the metadata of a document."""
    try:
        metadata = json.loads(row.metadata)
    except (ValueError, RecursionError):
        metadata = None
    if not isinstance(metadata, dict):
        raise damaged(f"the metadata of the document {row.id[:80]!r} is not a JSON object")
    return metadata


def decoded_text(row: Row) -> str | None:
    """Return the text of a document, if it was read."""
    try:
        return None if row.text is None else row.text.decode()
    except UnicodeDecodeError:
        raise damaged(f"the text of the document {row.id[:80]!r} is not UTF-8") from None


def as_document(row: Row, signature: bytes | None) -> Document:
    """Return the document of a stored row; raise if it is not as it was written."""
    bits = np.frombuffer(check_row(row, signature), np.uint8)
    try:
        added, updated = _datetime(row.added), _datetime(row.updated)
    except (ValueError, OverflowError, OSError):
        raise damaged(f"the document {row.id[:80]!r} has invalid times") from None
    return Document(row.id, bits, decoded_metadata(row), decoded_text(row), added, updated)


def as_id(id: object) -> str:
    """Return the id; raise if it is not valid for a document."""
    if not isinstance(id, str):
        raise ArgumentError(f"the id is of type {type(id).__name__}; expected a str")
    if not id:
        raise ArgumentError("the id is empty; expected at least one character")
    if "\0" in id:
        raise ArgumentError("the id contains the character NUL, which databases do not accept")
    size = len(id) if id.isascii() else len(_utf8(id, "id"))
    if size > MOST_ID_BYTES:
        raise ArgumentError(
            f"the id has {size} bytes of UTF-8; expected at most {MOST_ID_BYTES}: "
            "use a hash of it, and keep the long form in the metadata"
        )
    return id


def is_id(id: object) -> bool:
    """Return whether there can be a document of this id."""
    try:
        as_id(id)
    except ArgumentError:
        return False
    return True


def encode_metadata(metadata: object) -> str:
    """Return metadata as JSON that decodes to equal values; raise if there is none."""
    if metadata is not None and not isinstance(metadata, Mapping):
        raise ArgumentError(f"metadata is of type {type(metadata).__name__}; expected a dict")
    if not metadata:
        return "{}"
    try:
        text = _ENCODE(metadata if isinstance(metadata, dict) else dict(metadata))
    except RecursionError:
        raise _too_deep() from None
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"metadata cannot be written as JSON: {error}") from None
    brackets = text.count("[") + text.count("{") if len(text) > 2 * MOST_DEPTH else 0
    if brackets > MOST_DEPTH and nested_deeper(metadata, MOST_DEPTH):
        raise _too_deep()
    if len(text) > MOST_METADATA_BYTES // 4:
        size = len(_utf8(text, "metadata"))
        if size > MOST_METADATA_BYTES:
            raise ArgumentError(
                f"metadata takes {size} bytes as JSON; expected at most {MOST_METADATA_BYTES}"
            )
    elif not text.isascii():
        _utf8(text, "metadata")
    return text


def _too_deep() -> ArgumentError:
    return ArgumentError(f"metadata is nested more than {MOST_DEPTH} levels deep")


def encode_text(text: object) -> bytes:
    """Return text as UTF-8; raise if it is not text, or too long."""
    if not isinstance(text, str):
        raise ArgumentError(f"the text is of type {type(text).__name__}; expected a str")
    encoded = _utf8(text, "text")
    if len(encoded) > MOST_TEXT_BYTES:
        raise ArgumentError(
            f"the text has {len(encoded)} bytes; expected at most {MOST_TEXT_BYTES}: "
            "store it elsewhere, and ",
            Said(
                "open the collection with keep_text=False", "create the collection with --no-text"
            ),
        )
    return encoded


def _utf8(text: str, name: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ArgumentError(
            f"the {name} has half of a surrogate pair at {error.start}, which is not a character"
        ) from None


def _datetime(microseconds: int) -> datetime:
    seconds, rest = divmod(microseconds, 1_000_000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest)


# The parts of a document are stored as one value: the positions, 8 bytes each, then the signatures.


def packed(signatures: NDArray[np.uint8], offsets: NDArray[np.int64]) -> bytes:
    """Return parts as one value."""
    return offsets.astype(_POSITION).tobytes() + np.ascontiguousarray(signatures).tobytes()


def unpacked(data: bytes, bits: int) -> SignedParts | None:
    """Return packed parts with signatures of `bits` bits; None if the bytes are not valid."""
    width = bits // 8
    count, rest = divmod(len(data), _POSITION.itemsize + width)
    if rest:
        return None
    end = count * _POSITION.itemsize
    offsets = np.frombuffer(data[:end], _POSITION).astype(np.int64)
    if ((offsets < -FARTHEST) | (offsets > FARTHEST)).any():
        return None
    return SignedParts(np.frombuffer(data[end:], np.uint8).reshape(count, width), offsets)


def digest_of(data: bytes) -> bytes:
    """Return the cryptographic digest of packed parts."""
    import hashlib  # takes milliseconds to import, which most callers do not need

    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest()
