"""`datasketch.b_bit_minhash`: the lowest bits of each hash value."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from lookalike.compat.datasketch.minhash import MinHash
from lookalike.compat.datasketch.schemes import (
    LEGACY,
    SCHEMES,
    check_same_scheme,
    scheme_of_code,
)
from lookalike.errors import ArgumentError

__all__ = ["bBitMinHash"]

_HEAD = struct.Struct("<qBdi")  # seed, b, r, how many values; then words with the values


class bBitMinHash:  # noqa: N801  # its name
    """The lowest `b` bits of a MinHash's values; `r` is the share of all things that are in it."""

    __slots__ = ("b", "hashvalues", "r", "scheme", "seed")

    def __init__(self, minhash: MinHash, b: int = 1, r: float = 0.0) -> None:
        self.b, self.r = int(b), float(r)
        if not 0 <= self.b <= 32:
            raise ArgumentError(f"b is {b}; expected a whole number from 0 to 32")
        if self.r > 1:
            raise ArgumentError(f"r is {r}; expected a share from 0 to 1")
        mask = np.uint64((1 << self.b) - 1)
        self.hashvalues = (minhash.hashvalues.astype(np.uint64) & mask).astype(np.uint32)
        self.seed = minhash.seed
        self.scheme = minhash.scheme

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, bBitMinHash)
            and (self.seed, self.scheme) == (other.seed, other.scheme)
            and (self.b, self.r) == (other.b, other.r)
            and np.array_equal(self.hashvalues, other.hashvalues)
        )

    __hash__ = None  # type: ignore[assignment]  # like theirs

    def jaccard(self, other: bBitMinHash) -> float:
        """Return the estimated Jaccard similarity, corrected for bits that agree by chance."""
        if (self.b, self.seed) != (other.b, other.seed):
            raise ArgumentError(
                f"b={self.b}, seed={self.seed} and b={other.b}, seed={other.seed} differ; expected "
                "the same"
            )
        check_same_scheme(self.scheme, other)
        equal = np.count_nonzero(self.hashvalues == other.hashvalues) / self.hashvalues.size
        first, second = self._chance(), other._chance()
        if self.r == other.r == 0:
            return float((equal - first) / (1 - second))
        both = self.r + other.r
        c1 = (first * other.r + second * self.r) / both
        c2 = (first * self.r + second * other.r) / both
        return float((equal - c1) / (1 - c2))

    def _chance(self) -> float:
        """Return what Li and König call A, as datasketch computes it."""
        if self.r == 0:
            return 1.0 / (1 << self.b)
        return float(self.r * (1 - self.r) ** (2**self.b - 1) / (1 - (1 - self.r) ** (2 * self.b)))

    def bytesize(self) -> int:
        """Return how many bytes it takes pickled."""
        slot = _slot_bits(self.b)
        code = 1 if SCHEMES[self.scheme].code else 0
        return _HEAD.size + code + 8 * -(-self.hashvalues.size // (64 // slot))

    def __getstate__(self) -> bytearray:
        slot = _slot_bits(self.b)
        per_word = 64 // slot
        padded = np.zeros(-(-self.hashvalues.size // per_word) * per_word, np.uint64)
        padded[: self.hashvalues.size] = self.hashvalues
        # The first value of a word is in its highest bits; in a last word with fewer, too.
        shifts = np.arange(per_word - 1, -1, -1, dtype=np.uint64) * np.uint64(slot)
        words = np.bitwise_or.reduce(padded.reshape(-1, per_word) << shifts, axis=1)
        code, count = SCHEMES[self.scheme].code, self.hashvalues.size
        head = _HEAD.pack(self.seed, self.b, self.r, -count if code else count)
        head += bytes([code] if code else [])
        return bytearray(head + words.astype("<u8").tobytes())

    def __setstate__(self, state: Any) -> None:
        self.seed, self.b, self.r, count = _HEAD.unpack_from(state, 0)
        begin = _HEAD.size
        self.scheme = LEGACY
        if count < 0:  # a byte with the scheme follows
            self.scheme, count, begin = scheme_of_code(state[begin]), -count, begin + 1
        slot = _slot_bits(self.b)
        per_word = 64 // slot
        words = np.frombuffer(state, "<u8", -(-count // per_word), begin).astype(np.uint64)
        shifts = np.arange(per_word - 1, -1, -1, dtype=np.uint64) * np.uint64(slot)
        values = words[:, None] >> shifts & np.uint64((1 << slot) - 1)
        self.hashvalues = values.ravel()[:count].astype(np.uint32)


def _slot_bits(b: int) -> int:
    """Return the bits that a value takes when pickled."""
    for slot in (1, 2, 4, 8, 16, 32):
        if 1 <= b <= slot:
            return slot
    raise ArgumentError(f"b is {b}; expected a whole number from 1 to 32 to be pickled")
