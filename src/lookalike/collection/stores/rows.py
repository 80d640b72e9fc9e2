"""Rows of tables as the rest of the package has them; what damage has made of them is noticed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lookalike.collection.documents import Row, damaged
from lookalike.collection.packing import digest_of, unpacked
from lookalike.parts.signer import SignedParts


@dataclass(frozen=True)
class Numbered:
    """Signatures with their numbers."""

    numbers: NDArray[np.int64]
    signatures: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.numbers)


def numbered(rows: Sequence[tuple[int, bytes]], width: int) -> Numbered:
    """Return rows of a table of signatures as arrays."""
    numbers, blobs = [row[0] for row in rows], [row[1] for row in rows]
    # A damaged schema may make text and bytes of what were numbers.
    if not (set(map(type, numbers)) <= {int} and set(map(type, blobs)) <= {bytes}):
        raise damaged("the table of signatures holds something else than numbers and bytes")
    if not set(map(len, blobs)) <= {width}:
        raise damaged(f"the table of signatures holds something else than {width} bytes each")
    rows_of_bytes = np.frombuffer(b"".join(blobs), np.uint8).reshape(len(rows), width)
    return Numbered(np.array(numbers, np.int64), rows_of_bytes)


def blobs(signatures: NDArray[np.uint8]) -> list[bytes]:
    """Return each signature as the table has it."""
    data, width = signatures.tobytes(), signatures.shape[1]
    return [data[begin : begin + width] for begin in range(0, len(data), width)]


def checked_parts(number: int, data: object, known_by: bytes, bits: int) -> SignedParts:
    """Return the parts that a row holds, if they are those of this digest, else raise."""
    if not isinstance(data, bytes):
        raise damaged(f"the parts of the signature {number} are missing")
    parts = unpacked(data, bits) if digest_of(data) == known_by else None
    if parts is None:
        raise damaged(f"the parts of the signature {number} do not match their digest")
    return parts


def integers(rows: Sequence[tuple[int, int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rows of two integers as arrays."""
    if not all(isinstance(one, int) and isinstance(two, int) for one, two in rows):
        raise damaged("a table of numbers holds something else")
    array = np.array(rows, np.int64).reshape(-1, 2)
    return array[:, 0].copy(), array[:, 1].copy()


Stored: TypeAlias = tuple[Row, bytes | None]
"""A document with its signature, None if that is missing; nothing of it is checked yet. Where no
text is asked for, it comes nevertheless with documents whose checksum cannot do without."""


def stored(row: Sequence[Any]) -> Stored:
    """Return what the columns of a document and its signature hold."""
    return Row._make(row[:-1]), row[-1]
