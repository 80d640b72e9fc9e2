"""What seomoz's simhash-py has: functions of 64-bit hashes, and the `Corpus` that it had first."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import SupportsIndex, TypeVar

import numpy as np

from lookalike.checks import thread_count, whole_number
from lookalike.compat.simhash.values import (
    LiveValues,
    majority,
    to_signatures,
    to_values,
    whole_value,
)
from lookalike.errors import ArgumentError
from lookalike.indexes.all_pairs import pairs_of_rows
from lookalike.indexes.base import DEFAULT_LIMIT

__all__ = ["Corpus", "compute", "find_all", "num_differing_bits", "shingle", "unsigned_hash"]

_BITS = 64

Token = TypeVar("Token")


def unsigned_hash(obj: bytes) -> int:
    """Return the first 8 bytes of the md5 as a number."""
    return int.from_bytes(hashlib.md5(obj, usedforsecurity=False).digest()[:8], "big")


def num_differing_bits(a: SupportsIndex, b: SupportsIndex) -> int:
    """Return in how many of 64 bits two hashes differ."""
    return ((whole_value(a) ^ whole_value(b)) & (1 << _BITS) - 1).bit_count()


def compute(hashes: Iterable[SupportsIndex]) -> int:
    """Return the number whose bits are those that more than half of the hashes have."""
    rows = to_signatures(hashes)
    bits = np.unpackbits(rows[:, ::-1], axis=1).sum(axis=0, dtype=np.int64)
    return majority(bits, len(rows) / 2)


def shingle(tokens: Iterable[Token], window: int = 4) -> Iterator[list[Token]]:
    """Yield every `window` tokens that follow each other."""
    size = whole_number("window", window, at_least=1)
    last: deque[Token] = deque(maxlen=size)
    for token in tokens:
        last.append(token)
        if len(last) == size:
            yield list(last)


def find_all(
    hashes: Iterable[SupportsIndex], number_of_blocks: SupportsIndex, different_bits: SupportsIndex
) -> list[tuple[int, int]]:
    """Return all pairs of different hashes within `different_bits`, the smaller first, sorted.

    The blocks are checked and not needed: the core chooses how to find all pairs.
    """
    radius = _checked_blocks(number_of_blocks, different_bits)
    values = sorted(set(to_values(to_signatures(hashes))))
    places = np.arange(len(values))
    found = pairs_of_rows(
        to_signatures(values), places, radius, DEFAULT_LIMIT, False, thread_count(None)
    )
    ends = zip(found.left.tolist(), found.right.tolist(), strict=True)
    return [(values[left], values[right]) for left, right in ends]


class Corpus:
    """64-bit hashes, each once, and which of them are within `diff_bits` of another; exact."""

    def __init__(self, num_blocks: SupportsIndex, diff_bits: SupportsIndex) -> None:
        self.differing_bits = _checked_blocks(num_blocks, diff_bits)
        self._live: LiveValues[int] = LiveValues(_BITS)

    def insert(self, h: SupportsIndex) -> None:
        """Take in a hash."""
        self.insert_bulk([h])

    def insert_bulk(self, hashes: Iterable[SupportsIndex]) -> None:
        """Take in many hashes."""
        values = to_values(to_signatures(hashes))
        self._live.add(values, values)

    def remove(self, h: SupportsIndex) -> None:
        """Take out a hash, if it is there."""
        self.remove_bulk([h])

    def remove_bulk(self, hashes: Iterable[SupportsIndex]) -> None:
        """Take out many hashes, those that are there."""
        self._live.remove(to_values(to_signatures(hashes)))

    def find_all(self, query: SupportsIndex) -> list[int]:
        """Return all hashes near this one, each once, nearest first."""
        return self.find_all_bulk([query])[0]

    def find_all_bulk(self, queries: Sequence[SupportsIndex]) -> list[list[int]]:
        """Return all hashes near each query."""
        return self._live.near(to_values(to_signatures(queries)), self.differing_bits)

    def find_first(self, query: SupportsIndex) -> int:
        """Return the nearest of the hashes near this one; 0 if there is none."""
        return self.find_first_bulk([query])[0]

    def find_first_bulk(self, queries: Sequence[SupportsIndex]) -> list[int]:
        """Return the nearest hash of each query, or 0."""
        return [found[0] if found else 0 for found in self.find_all_bulk(queries)]

    def hashes(self) -> list[int]:
        """Return all hashes, in ascending order."""
        return sorted(self._live)

    def distance(self, a: SupportsIndex, b: SupportsIndex) -> int:
        """Return in how many bits two hashes differ."""
        return num_differing_bits(a, b)


def _checked_blocks(number_of_blocks: SupportsIndex, different_bits: SupportsIndex) -> int:
    """Return how many bits may differ, if so many blocks can find that."""
    radius = whole_number("different_bits", different_bits, at_least=0, at_most=_BITS - 1)
    blocks = whole_number("number_of_blocks", number_of_blocks, at_least=1, at_most=_BITS)
    if blocks <= radius:
        raise ArgumentError(
            f"number_of_blocks is {blocks} and different_bits {radius}; expected more blocks than "
            "bits that may differ, so that one block has none"
        )
    return radius
