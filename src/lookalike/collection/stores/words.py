"""The words of documents, as a keyword index holds them.

A bag of words has no order: for each different word of a text a hash of 40 bits, and how often the
word occurs, at most 255 times. `native/words/bags.hpp` describes its bytes.
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
from lookalike.checks import thread_count
from lookalike.collection.documents import damaged
from lookalike.collection.stores.schema import Numbers, digest


@dataclass(frozen=True)
class Bags:
    """Bags of words of documents, with their numbers and ids."""

    numbers: Numbers
    ids: list[str]
    offsets: NDArray[np.int64]  # where each bag begins, and where the last one ends
    data: NDArray[np.uint8]

    @classmethod
    def of(cls, first: int, ids: Sequence[str], bags: Sequence[bytes]) -> Bags:
        """Return bags with numbers from `first` on."""
        return cls._joined(np.arange(first, first + len(ids), dtype=np.int64), ids, bags)

    @classmethod
    def _joined(cls, numbers: Numbers, ids: Sequence[str], bags: Sequence[bytes]) -> Bags:
        offsets = np.zeros(len(bags) + 1, np.int64)
        np.cumsum([len(bag) for bag in bags], out=offsets[1:])
        return cls(numbers, list(ids), offsets, np.frombuffer(b"".join(bags), np.uint8))

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def hashes(self) -> NDArray[np.uint64]:
        """A hash of number, id and words of each document; their exclusive or identifies all."""
        result = np.empty(len(self), np.uint64)
        ids = _native.Documents.from_list(self.ids, 0)
        _native.hash_bags(self.numbers, ids, self.offsets, self.data, result)
        return result

    def digest(self) -> int:
        """Return the exclusive or of the hashes, as databases store it."""
        return digest(self.hashes)

    def rows(self) -> Iterator[tuple[int, str, bytes, int]]:
        """Yield number, id, words and hash of each document, as the table has them."""
        data, ends = self.data.tobytes(), self.offsets.tolist()
        bags = [data[begin:end] for begin, end in pairwise(ends)]
        hashed = self.hashes.view(np.int64).tolist()
        return zip(self.numbers.tolist(), self.ids, bags, hashed, strict=True)


def bags_of(texts: Sequence[str], kind: str) -> list[bytes]:
    """Return the bag of words of each text; `kind` is one of `WORD_KINDS`."""
    documents = _native.Documents.from_list(list(texts), 0)
    offsets, data = _native.word_bags(documents, kind, thread_count(None))
    joined, ends = data.tobytes(), offsets.tolist()
    return [joined[begin:end] for begin, end in pairwise(ends)]


def checked_bags(rows: Sequence[Any]) -> Bags:
    """Return rows of the table; raise if one is not as it was written."""
    types = (int, str, bytes, int)
    if not all(all(map(isinstance, row, types)) for row in rows):
        raise damaged("the keyword index has values of other types")
    try:
        found = Bags._joined(
            np.array([row[0] for row in rows], np.int64),
            [row[1] for row in rows],
            [row[2] for row in rows],
        )
        wrong = found.hashes.view(np.int64) != np.array([row[3] for row in rows], np.int64)
    except (ValueError, OverflowError):  # ids with half of a surrogate pair, or huge numbers
        raise damaged("the keyword index has values that lookalike did not write") from None
    if wrong.any():
        id = found.ids[int(wrong.argmax())]
        raise damaged(f"the words of the document {id[:80]!r} do not match their checksum")
    return found
