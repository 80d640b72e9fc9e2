"""How signatures are cut into slices for a table, and the keys that stand for them.

A key is position and value in one integer, position << 32 | value, so that looking up many of them
is one index search in any database.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import accumulate, combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.checks import whole_number

MOST_SLICE_BITS = 32
_VALUE_BITS = 32


def default_slice_bits(bits: int) -> int:
    """Return a width that keeps lists short for tens of millions of signatures.

    A slice of 26 bits has 67 million values: for 128 bits that makes five slices, which cost less
    than six to write, and less to search from some two million signatures on. Wide signatures get
    wider slices, so that a document does not cost more than two dozen keys or so.
    """
    return min(bits, max(26, min(MOST_SLICE_BITS, -(-bits // 24))))


@dataclass(frozen=True)
class Slicing:
    """As few slices of at most `slice_bits` bits as cover the signature, as equal as can be.

    0 bits: no slices at all.
    """

    bits: int
    slice_bits: int

    def __post_init__(self) -> None:
        most = min(self.bits, MOST_SLICE_BITS)
        whole_number("slice_bits", self.slice_bits, at_least=0, at_most=most)

    @property
    def count(self) -> int:
        """How many slices, and so keys, a signature has."""
        return -(-self.bits // self.slice_bits) if self.slice_bits else 0

    @property
    def widths(self) -> list[int]:
        """How many bits each slice has."""
        narrow, wide = divmod(self.bits, max(1, self.count))
        return [narrow + (position < wide) for position in range(self.count)]

    def values(self, signatures: NDArray[np.uint8]) -> NDArray[np.int64]:
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

    def keys(self, signatures: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Return the keys of every signature, `int64[slices, n]`."""
        positions = np.arange(self.count, dtype=np.int64)[:, None]
        return self.values(signatures) | positions << _VALUE_BITS

    def key_rows(
        self, numbers: NDArray[np.int64], signatures: NDArray[np.uint8]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows (key, number) of the table, in its order."""
        keys = self.keys(signatures).ravel()
        owners = np.tile(numbers, self.count)
        order = np.lexsort((owners, keys))
        return keys[order], owners[order]

    def differing(
        self, query: NDArray[np.uint8], signatures: NDArray[np.uint8]
    ) -> NDArray[np.int64]:
        """Return in how many bits each slice differs from the query's, `int64[n, slices]`."""
        apart = np.unpackbits(query ^ signatures, axis=1, bitorder="little")
        starts = [0, *accumulate(self.widths[:-1])]
        counts: NDArray[np.int64] = np.add.reduceat(apart, starts, axis=1, dtype=np.int64)
        return counts


@cache
def flips(width: int, ones: int) -> NDArray[np.int64]:
    """Return all values of `width` bits with exactly so many ones."""
    values = (sum(1 << bit for bit in chosen) for chosen in combinations(range(width), ones))
    return np.fromiter(values, np.int64, comb(width, ones))


def hashes(numbers: NDArray[np.int64], signatures: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return one hash for each numbered signature; a set of them is known by its exclusive or."""
    rows = np.empty((len(numbers), 8 + signatures.shape[1]), np.uint8)
    rows[:, :8] = numbers.astype("<i8")[:, None].view(np.uint8)
    rows[:, 8:] = signatures
    result = np.empty(len(rows), np.uint64)
    _native.hash_rows(rows, result)
    return result


def digest(hashed: NDArray[np.uint64]) -> int:
    """Return the exclusive or of hashes, as the signed integer that databases store."""
    return int(np.bitwise_xor.reduce(hashed, initial=np.uint64(0)).view(np.int64))
