"""Fingerprints as numbers, and as signatures: bit j of one is bit j of the other."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Generic, SupportsIndex, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import whole_number
from lookalike.errors import ArgumentError
from lookalike.indexes.slices.index import SliceIndex
from lookalike.shown import brief
from lookalike.signatures import as_signatures
from lookalike.signatures.simhash import signature_bits

__all__ = ["LiveValues", "majority", "to_signatures", "to_values", "whole_value"]

_SLICE_BITS = 16

Key = TypeVar("Key", bound=Hashable)


def to_signatures(values: Iterable[SupportsIndex], f: SupportsIndex = 64) -> NDArray[np.uint8]:
    """Return fingerprints of `f` bits as signatures, `uint8[n, f // 8]`; more bits are cut off."""
    bits = signature_bits(f)
    mask = (1 << bits) - 1
    try:
        raw = b"".join((whole_value(each) & mask).to_bytes(bits // 8, "little") for each in values)
    except TypeError:
        raise ArgumentError(f"values are {brief(values)}; expected whole numbers") from None
    return np.frombuffer(raw, np.uint8).reshape(-1, bits // 8).copy()


def to_values(signatures: ArrayLike) -> list[int]:
    """Return signatures as the numbers that `Simhash.value` and `compute` give."""
    return [int.from_bytes(row.tobytes(), "little") for row in as_signatures(signatures)]


def whole_value(value: SupportsIndex) -> int:
    """Return a fingerprint as a plain `int`."""
    try:
        return value.__index__()
    except (AttributeError, TypeError):
        raise ArgumentError(f"a fingerprint is {brief(value)}; expected a whole number") from None


def majority(bits: NDArray[np.number], half: float) -> int:
    """Return the number whose bits, the highest first, are those whose sum is above `half`."""
    return int.from_bytes(np.packbits(bits > half).tobytes(), "big")


class LiveValues(Generic[Key]):
    """Keys with fingerprints that come and go, and which of them are near a fingerprint; exact."""

    def __init__(self, f: SupportsIndex) -> None:
        bits = signature_bits(f)
        self._index = SliceIndex(np.empty((0, bits // 8), np.uint8), min(_SLICE_BITS, bits))
        self._numbers: dict[Key, int] = {}
        self._keys: dict[int, Key] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._numbers)

    def __contains__(self, key: Key) -> bool:
        return key in self._numbers

    def add(self, keys: Sequence[Key], values: Sequence[int]) -> None:
        """Take these in; those that are there already stay as they are."""
        new = {
            key: value for key, value in zip(keys, values, strict=True) if key not in self._numbers
        }
        if new:
            numbers = self._index.add(to_signatures(new.values(), self._index.bits)).tolist()
            self._numbers |= dict(zip(new, numbers, strict=True))
            self._keys |= dict(zip(numbers, new, strict=True))

    def remove(self, keys: Iterable[Key]) -> None:
        """Take these out, if they are there."""
        gone = [key for key in dict.fromkeys(keys) if key in self._numbers]
        if gone:
            numbers = [self._numbers.pop(key) for key in gone]
            self._index.remove(numbers)
            for number in numbers:
                del self._keys[number]

    def near(self, values: Sequence[int], radius: SupportsIndex) -> list[list[Key]]:
        """Return the keys within so many bits of each value, by distance, then the oldest first."""
        reach = whole_number("the number of bits that may differ", radius, at_least=0)
        found = self._index.within(to_signatures(values, self._index.bits), reach)
        return [[self._keys[number] for number in ids.tolist()] for ids, _ in found]
