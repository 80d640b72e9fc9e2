"""Tables that have a value of bytes beside documents: a keyword index, and vectors.

Each entry has a number that is never used again, the id of its document, and a hash of all that. A
document that is written again gets another entry.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.collection.documents import damaged
from lookalike.collection.stores.schema import EntryKind, Numbers, digest


@dataclass(frozen=True)
class Entries:
    """Values of documents, with their numbers and ids."""

    numbers: Numbers
    ids: list[str]
    offsets: NDArray[np.int64]  # where each value begins, and where the last one ends
    data: NDArray[np.uint8]

    @classmethod
    def of(cls, first: int, ids: Sequence[str], values: Sequence[bytes]) -> Entries:
        """Return entries with numbers from `first` on."""
        return cls._joined(np.arange(first, first + len(ids), dtype=np.int64), ids, values)

    @classmethod
    def _joined(cls, numbers: Numbers, ids: Sequence[str], values: Sequence[bytes]) -> Entries:
        offsets = np.zeros(len(values) + 1, np.int64)
        np.cumsum([len(value) for value in values], out=offsets[1:])
        return cls(numbers, list(ids), offsets, np.frombuffer(b"".join(values), np.uint8))

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def hashes(self) -> NDArray[np.uint64]:
        """A hash of number, id and value of each entry; their exclusive or identifies all."""
        result = np.empty(len(self), np.uint64)
        ids = _native.Documents.from_list(self.ids, 0)
        _native.hash_bags(self.numbers, ids, self.offsets, self.data, result)
        return result

    def digest(self) -> int:
        """Return the exclusive or of the hashes, as databases store it."""
        return digest(self.hashes)

    def values(self) -> list[bytes]:
        """Return the values, one for each entry."""
        data, ends = self.data.tobytes(), self.offsets.tolist()
        return [data[begin:end] for begin, end in pairwise(ends)]

    def rows(self) -> Iterator[tuple[int, str, bytes, int]]:
        """Yield number, id, value and hash of each entry, as the table has them."""
        hashed = self.hashes.view(np.int64).tolist()
        return zip(self.numbers.tolist(), self.ids, self.values(), hashed, strict=True)


def checked_entries(rows: Sequence[Any], kind: EntryKind) -> Entries:
    """Return rows of a table; raise if one is not as it was written."""
    types = (int, str, bytes, int)
    if not all(all(map(isinstance, row, types)) for row in rows):
        raise damaged(f"the {kind.table} has values of other types")
    try:
        found = Entries._joined(
            np.array([row[0] for row in rows], np.int64),
            [row[1] for row in rows],
            [row[2] for row in rows],
        )
        wrong = found.hashes.view(np.int64) != np.array([row[3] for row in rows], np.int64)
    except (ValueError, OverflowError):  # ids with half of a surrogate pair, or huge numbers
        raise damaged(f"the {kind.table} has values that lookalike did not write") from None
    if wrong.any():
        id = found.ids[int(wrong.argmax())]
        raise damaged(f"the {kind.value} of the document {id[:80]!r} do not match their checksum")
    return found
