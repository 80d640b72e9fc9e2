"""Bits that are drawn, so that near signatures agree in them: which, how many, and the chance.

All bits are put into random order, again and again, and cut into words, and these into keys. Two
signatures meet in a key where it is the same for both, but for one of its first bits, which may
differ; who meets is compared. Of two that differ in d bits, the chance of that depends on d and on
nothing else about them, for it is the order that is random.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.signatures.random import random_words

__all__ = ["Drawing", "cheapest_drawing", "seconds_for_all"]

_WORD = 64
"""Bits that a word has at most."""
_ORDERED = 256
"""Bits of an order that are used at most: of few among many, each is as if there were no others."""
_KEY_BITS = range(4, 23)
_NEAR_BITS = range(0, 13, 2)
"""Not all of a long key: others make parts of all rows, which stay in a cache."""
_MOST_WORDS = 4096
_SAMPLE = 1 << 14
"""Pairs of signatures that say how often strangers agree."""


@dataclass(frozen=True)
class Drawing:
    """So many words of a signature's bits, as many as there is room for of each order, as keys.

    One of the first `near_bits` of a key may differ.
    """

    bits: int
    key_bits: int
    near_bits: int
    words: int

    @property
    def keys(self) -> int:
        """How many keys a word has."""
        return min(_WORD, self.bits) // self.key_bits

    @property
    def words_of_an_order(self) -> int:
        """How many words are made of bits in one order, none of which is in two of them."""
        return max(1, min(_ORDERED, self.bits) // (self.keys * self.key_bits))

    def chance(self, distance: int) -> float:
        """Return the chance that signatures at a distance meet in a key."""
        orders, others = divmod(self.words, self.words_of_an_order)
        whole = self._missed(self.words_of_an_order, distance) ** orders
        return 1 - whole * self._missed(others, distance)

    def reaching(self, recall: float, distance: int) -> Drawing | None:
        """Return the same with so many words that the chance is at least that; None if too many."""
        missed = self._missed(self.words_of_an_order, distance)
        if missed >= 1:
            return None
        orders = 0 if missed <= 0 else int(math.log(1 - recall) / math.log(missed))
        first = max(1, (orders - 1) * self.words_of_an_order)  # rounding may have been upwards
        for words in range(first, min(_MOST_WORDS, first + 3 * self.words_of_an_order) + 1):
            enough = replace(self, words=words)
            if enough.chance(distance) >= recall:
                return enough
        return None

    def positions(self, seed: int = 0) -> NDArray[np.int32]:
        """Return the bits of each word, int32[words, bits of all its keys]."""
        each, width = self.words_of_an_order, self.keys * self.key_bits
        orders = -(-self.words // each)
        random = random_words(seed, orders * self.bits).reshape(orders, self.bits)
        ordered = np.argsort(random, axis=1)[:, : each * width].astype(np.int32)
        return np.ascontiguousarray(ordered.reshape(-1, width)[: self.words])

    def _missed(self, words: int, distance: int) -> float:
        """Return the chance that signatures at a distance meet in no key of words of one order."""
        keys = words * self.keys
        return _none_meets(self.bits, self.key_bits, self.near_bits, keys, distance)


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
    blocks = radius + 1
    block_bits = bits // blocks
    widest = min(bits, max(*_KEY_BITS, block_bits))
    clear = np.array([_clear(bits, d, widest) for d in far])

    def cost(key_bits: int, near_bits: int, tables: int) -> float:
        same, all_but_one = (float(often @ clear[:, key_bits - less]) for less in (0, 1))
        meeting = same + near_bits * (all_but_one - same)
        compared = count / 2 * meeting * costs.scan(width, 1)
        visited = (1 << key_bits) * near_bits / 2 * costs.visit
        return tables * (count * (costs.entry + costs.compare(width) + compared) + visited)

    least = min(1e9 * seconds_for_all(count, width), cost(block_bits, 0, blocks))
    chosen = None
    for key_bits, near_bits in itertools.product(_KEY_BITS, _NEAR_BITS):
        if key_bits > bits or near_bits > key_bits:
            continue
        one = Drawing(bits, key_bits, near_bits, 1)
        if cost(key_bits, near_bits, one.keys) >= least:
            continue
        enough = one.reaching(recall, radius)
        if enough is None:
            continue
        takes = cost(key_bits, near_bits, enough.words * one.keys)
        if takes < least:
            least, chosen = takes, enough
    return chosen


def _clear(bits: int, distance: int, most: int) -> NDArray[np.float64]:
    """Return the chance that no bit differs of 0, 1, ... `most` that are drawn."""
    drawn = np.arange(most)
    each = np.maximum(0, bits - distance - drawn) / (bits - drawn)
    return np.concatenate([[1.0], np.cumprod(each)])


@lru_cache(1 << 12)
def _none_meets(bits: int, key_bits: int, near_bits: int, keys: int, distance: int) -> float:
    """Return the chance that signatures at a distance meet in no key, of so many of one order.

    Of all ways in which bits can differ, those are counted in which each key has too many: ways for
    a key by how many of its bits differ, multiplied out, times those for the bits in no key.
    """
    ways = np.array([math.comb(key_bits, differ) for differ in range(key_bits + 1)], np.float64)
    ways[0] = 0
    ways[1] -= near_bits
    together = np.ones(1)
    for _ in range(keys):
        together = np.convolve(together, ways)
    logs, others = _log_factorials(bits), bits - keys * key_bits
    inside = np.arange(max(0, distance - others), min(distance, keys * key_bits) + 1)
    outside = distance - inside
    log_share = (logs[others] - logs[outside] - logs[others - outside]) - (
        logs[bits] - logs[distance] - logs[bits - distance]
    )
    return min(1.0, float(together[inside] @ np.exp(log_share)))


@lru_cache
def _log_factorials(most: int) -> NDArray[np.float64]:
    return np.array([math.lgamma(number + 1) for number in range(most + 1)])


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
