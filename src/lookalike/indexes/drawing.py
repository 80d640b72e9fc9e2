"""Bits that are drawn, so that near signatures agree in them: which, how many, and the chance.

A draw takes some bits of all, in random order, and cuts them into keys. Two signatures are compared
where one of these is the same for both. Of two that differ in d bits, the chance of that depends on
d and on nothing else about them, for it is the draw that is random.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.signatures.random import random_words

__all__ = ["Drawing", "cheapest_drawing", "seconds_for_all"]

_WORD = 64
"""Bits that a draw takes at most."""
_KEY_BITS = range(4, 23)
_MOST_DRAWS = 4096
_SAMPLE = 1 << 14
"""Pairs of signatures that say how often strangers agree."""


@dataclass(frozen=True)
class Drawing:
    """So many draws of so many of a signature's bits, cut into keys."""

    bits: int
    key_bits: int
    draws: int

    @property
    def keys(self) -> int:
        """How many keys a draw has."""
        return min(_WORD, self.bits) // self.key_bits

    def chance(self, distance: int) -> float:
        """Return the chance that signatures at a distance share a key."""
        return 1 - _missed(self.bits, self.key_bits, self.keys, distance) ** self.draws

    def positions(self, seed: int = 0) -> NDArray[np.int32]:
        """Return the bits of each draw, int32[draws, bits]."""
        width = self.keys * self.key_bits
        words = random_words(seed, self.draws * self.bits).reshape(self.draws, self.bits)
        return np.argsort(words, axis=1)[:, :width].astype(np.int32)


def seconds_for_all(count: int, width: int) -> float:
    """Return how long comparing each with each usually takes on one thread."""
    return 1e-9 * count * count / 2 * _native.USUAL_COSTS.scan(width, 1)


def cheapest_drawing(
    signatures: NDArray[np.uint8], count: int, radius: int, recall: float
) -> Drawing | None:
    """Return what finds each pair within the radius with a chance of at least `recall`.

    Of `count` signatures, which are among these. None where comparing each with each, or by blocks
    that all pairs within the radius share one of, is as quick: that finds them all.
    """
    width = signatures.shape[1]
    bits, costs = 8 * width, _native.USUAL_COSTS
    if count < 2 or radius >= bits or recall >= 1:
        return None
    far, often = _distances(signatures)

    def cost(key_bits: int, tables: int) -> float:
        agreeing = float(often @ [_clear(bits, d, key_bits)[-1] for d in far])
        compared = count / 2 * agreeing * costs.scan(width, 1)
        return count * tables * (costs.entry + costs.compare(width) + compared)

    least = min(1e9 * seconds_for_all(count, width), cost(bits // (radius + 1), radius + 1))
    chosen = None
    for key_bits in _KEY_BITS:
        one = Drawing(bits, key_bits, 1)
        if not one.keys:
            break
        missed = _missed(bits, key_bits, one.keys, radius)
        if missed >= 1:
            break
        draws = 1 if missed <= 0 else max(1, math.ceil(math.log(1 - recall) / math.log(missed)))
        if draws > _MOST_DRAWS:
            break
        takes = cost(key_bits, draws * one.keys)
        if takes < least:
            least, chosen = takes, Drawing(bits, key_bits, draws)
    return chosen


def _clear(bits: int, distance: int, most: int) -> NDArray[np.float64]:
    """Return the chance that no bit differs of 0, 1, ... `most` that are drawn."""
    drawn = np.arange(most)
    each = np.maximum(0, bits - distance - drawn) / (bits - drawn)
    return np.concatenate([[1.0], np.cumprod(each)])


def _missed(bits: int, key_bits: int, keys: int, distance: int) -> float:
    """Return the chance that signatures at a distance differ in every key of a draw."""
    clear = _clear(bits, distance, keys * key_bits)
    signed = ((-1) ** j * math.comb(keys, j) * float(clear[j * key_bits]) for j in range(keys + 1))
    return min(1.0, max(0.0, math.fsum(signed)))


def _distances(signatures: NDArray[np.uint8]) -> tuple[list[int], NDArray[np.float64]]:
    """Return distances of pairs that were picked at random, and the share of each."""
    count = len(signatures)
    words = random_words(1, 2 * _SAMPLE)
    one = (words[:_SAMPLE] % np.uint64(count)).astype(np.int64)
    two = (words[_SAMPLE:] % np.uint64(count)).astype(np.int64)
    one, two = one[one != two], two[one != two]
    if not len(one):
        return [0], np.ones(1)
    found = np.empty(len(one), np.int32)
    _native.paired_distances(signatures[one], signatures[two], found)
    far, times = np.unique(found, return_counts=True)
    return far.tolist(), times / len(found)
