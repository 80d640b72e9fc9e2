"""All pairs within a radius; equal signatures are grouped first.

With a recall below 1, pairs are found by random bits. All bits are put into random order several
times and cut into words, and words into keys. Two signatures meet if they agree in a key, except
for one of its first bits; signatures that meet are compared. Because the order is random, the
probability of meeting depends on the distance alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.errors import ResultTooLargeError, Said
from lookalike.indexes.results import NO_LIMIT, Pairs, as_int64
from lookalike.indexes.rows import Signatures
from lookalike.signatures.random import random_words

_WORD = 64  # bits that a word has at most
_ORDERED = 256  # most bits of an order that are used: few among many are independent
_KEY_BITS = range(4, 23)
_NEAR_BITS = range(0, 13, 2)
"""Not all of a long key: others make parts of all rows, which stay in a cache."""
_MOST_WORDS = 4096
_SAMPLE = 1 << 14  # pairs of signatures that say how often strangers agree


@dataclass(frozen=True)
class Drawing:
    """Words of bits, cut into keys; one of the first `near_bits` bits of a key may differ."""

    bits: int
    key_bits: int
    near_bits: int
    words: int

    @property
    def keys(self) -> int:
        """Number of keys of a word."""
        return min(_WORD, self.bits) // self.key_bits

    @property
    def words_of_an_order(self) -> int:
        """Number of words that are cut from one random order."""
        return max(1, min(_ORDERED, self.bits) // (self.keys * self.key_bits))

    def chance(self, distance: int) -> float:
        """Return the probability that signatures at a distance meet in a key."""
        orders, others = divmod(self.words, self.words_of_an_order)
        whole = self._missed(self.words_of_an_order, distance) ** orders
        return 1 - whole * self._missed(others, distance)

    def reaching(self, recall: float, distance: int) -> Drawing | None:
        """Return the same keys with enough words to reach the recall, or None if too many."""
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
        """Return the probability that words of one order miss signatures at a distance."""
        keys = words * self.keys
        return _none_meets(self.bits, self.key_bits, self.near_bits, keys, distance)


def seconds_for_all(count: int, width: int) -> float:
    """Return the estimated time to compare all pairs on one thread."""
    return 1e-9 * count * count / 2 * _native.USUAL_COSTS.scan(width, 1)


def cheapest_drawing(
    signatures: Signatures, count: int, radius: int, recall: float
) -> Drawing | None:
    """Return keys that find each pair within the radius with at least this probability.

    None if comparing all pairs, or pairs that share a block, is as fast. `count` signatures are
    distinct.
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
    """Return the probability that none of 0, 1, ... `most` drawn bits differs."""
    drawn = np.arange(most)
    each = np.maximum(0, bits - distance - drawn) / (bits - drawn)
    return np.concatenate([[1.0], np.cumprod(each)])


@lru_cache(1 << 12)
def _none_meets(bits: int, key_bits: int, near_bits: int, keys: int, distance: int) -> float:
    """Return the probability that `keys` keys of one order miss signatures at a distance."""
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


def _distances(signatures: Signatures) -> tuple[list[int], NDArray[np.float64]]:
    """Return distances of random pairs, and the share of each distance."""
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


Compare = Callable[[Signatures | None, int], "PairColumns"]
"""Returns pairs of rows that are not skipped, or raises `too_many_pairs` beyond a limit."""

PairColumns = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]


def pairs_of_rows(
    signatures: Signatures,
    ids: NDArray[np.int64],
    radius: int,
    limit: int,
    collapse: bool,
    threads: int,
    *,
    each_with_each: bool = False,
    compare: Compare | None = None,
    recall: float | None = None,
) -> Pairs:
    """Return the pairs of distinct ids within the radius, each once; see `Index.pairs`.

    One signature of each group of equal ones is compared with other groups. Pairs are found by
    blocks unless `each_with_each`, by `compare`, or by random bits with a `recall`.
    """
    rows = np.ascontiguousarray(signatures)
    groups = _Groups.of(rows, ids)
    sizes = groups.sizes
    inside = sizes - 1 if collapse else sizes * (sizes - 1) // 2
    within_groups = int(inside.sum())  # less than 2**63 for fewer than 2**32 signatures
    if within_groups > limit:
        raise too_many_pairs(limit, radius, len(ids))
    found = None
    if recall is not None and compare is None:
        found = _compare_drawn(rows, groups, radius, recall, limit, threads)
    exact = found is None
    if found is None and compare is not None:
        found = compare(groups.skipped(), limit)
    elif found is None:
        found = _compare(rows, groups, radius, limit, threads, each_with_each)
    between = [found] if collapse else groups.products(found, limit - within_groups)
    if between is None or within_groups + sum(len(part[0]) for part in between) > limit:
        raise too_many_pairs(limit, radius, len(ids))
    parts = [groups.stars() if collapse else groups.cliques(), *between]
    one, two, far = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    one, two = ids[one], ids[two]
    one, two = np.minimum(one, two), np.maximum(one, two)
    # One number for both is sorted much faster.
    small = not len(two) or int(two.max()) < 2**31
    order = np.argsort(one << 32 | two) if small else np.lexsort((two, one))
    return Pairs(one[order], two[order], far[order].astype(np.int32), exact=exact)


@dataclass(eq=False)
class _Groups:
    """Groups of equal signatures: group g has the rows at offsets[g] to offsets[g + 1]."""

    count: int  # rows of the collection
    rows: NDArray[np.int64]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, signatures: Signatures, ids: NDArray[np.int64]) -> _Groups:
        rows, offsets = _native.equal_rows(signatures)
        group = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        return cls(len(ids), rows[np.lexsort((ids[rows], group))], offsets)

    @property
    def sizes(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)

    @property
    def firsts(self) -> NDArray[np.int64]:
        """Return the row that represents each group."""
        return self.rows[self.offsets[:-1]]

    def skipped(self) -> NDArray[np.uint8] | None:
        """Return 1 for rows that another row represents, else 0; None if there are no groups."""
        if not len(self.rows):
            return None
        skipped = np.zeros(self.count, np.uint8)
        skipped[self.rows] = 1
        skipped[self.firsts] = 0
        return skipped

    def stars(self) -> PairColumns:
        """Pair the members of each group with its first."""
        others = np.ones(len(self.rows), bool)
        others[self.offsets[:-1]] = False
        firsts = np.repeat(self.firsts, self.sizes)
        return firsts[others], self.rows[others], np.zeros(int(others.sum()), np.int32)

    def cliques(self) -> PairColumns:
        """Pair the members of each group with each other."""
        sizes = self.sizes
        left, right = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for size in np.unique(sizes):
            members = self.rows[self.offsets[:-1][sizes == size][:, None] + np.arange(size)]
            one, two = np.triu_indices(size, 1)
            left.append(members[:, one].reshape(-1))
            right.append(members[:, two].reshape(-1))
        return np.concatenate(left), np.concatenate(right), np.zeros(sum(map(len, left)), np.int32)

    def numbers(self) -> NDArray[np.int64]:
        """Return, for each row, the group that it represents, or -1."""
        numbers = np.full(self.count, -1)
        numbers[self.firsts] = np.arange(len(self.offsets) - 1)
        return numbers

    def products(self, found: PairColumns, most: int) -> list[PairColumns] | None:
        """Return the pairs of all rows that pairs of rows represent; None beyond `most`."""
        if not len(self.rows):
            return [found]
        left, right, distances = found
        group = self.numbers()
        several = (group[left] >= 0) | (group[right] >= 0)
        alone = left[~several], right[~several], distances[~several]
        left, right, distances = left[several], right[several], distances[several]
        sizes = np.append(self.sizes, 1)  # the last one for those that stand alone
        counts = sizes[group[left]] * sizes[group[right]]
        if len(alone[0]) + int(counts.sum()) > most:
            return None
        pair = np.repeat(np.arange(len(left)), counts)
        place = np.arange(len(pair)) - np.repeat(np.cumsum(counts) - counts, counts)
        width = sizes[group[right]][pair]
        one = self._members(left[pair], group, place // width)
        two = self._members(right[pair], group, place % width)
        return [alone, (one, two, distances[pair])]

    def _members(
        self, rows: NDArray[np.int64], group: NDArray[np.int64], number: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return the row with this number in the group that each row represents."""
        begins = np.append(self.offsets[:-1], 0)[group[rows]]
        return np.where(group[rows] < 0, rows, self.rows[begins + number])


def _compare(
    rows: Signatures, groups: _Groups, radius: int, limit: int, threads: int, each_with_each: bool
) -> PairColumns:
    """Return the pairs of distinct signatures."""
    skipped, most = groups.skipped(), min(limit, NO_LIMIT)
    try:
        found = None
        if not each_with_each:
            found = _native.block_pairs(rows, skipped, radius, most, threads)
        if found is None:
            kept = None if skipped is None else np.flatnonzero(skipped == 0)
            some = rows if kept is None else rows[kept]
            found = _native.scan_pairs(some, kept, True, radius, most, threads)
    except _native.TooManyResults:
        raise too_many_pairs(limit, radius, len(rows)) from None
    left, right, distances = found
    return as_int64(left), as_int64(right), distances


def _compare_drawn(
    rows: Signatures, groups: _Groups, radius: int, recall: float, limit: int, threads: int
) -> PairColumns | None:
    """Return each pair with at least this probability; None if finding all pairs is as fast."""
    distinct = len(rows) - len(groups.rows) + len(groups.sizes)
    drawing = cheapest_drawing(rows, distinct, radius, recall)
    if drawing is None:
        return None
    keys = drawing.positions(), drawing.key_bits, drawing.near_bits
    scan, most = 1e9 * seconds_for_all(distinct, rows.shape[1]), min(limit, NO_LIMIT)
    try:
        found = _native.drawn_pairs(rows, groups.skipped(), *keys, radius, scan, most, threads)
    except _native.TooManyResults:
        raise too_many_pairs(limit, radius, len(rows)) from None
    if found is None:
        return None
    left, right, distances = found
    return as_int64(left), as_int64(right), distances


def too_many_pairs(limit: int, radius: int, count: int) -> ResultTooLargeError:
    """Return the error for more pairs than the limit."""
    return ResultTooLargeError(
        "more than ",
        Said(f"limit={limit}", f"{limit:,}"),
        f" pairs within radius {radius} among {count} signatures. Use a smaller radius, ",
        Said("collapse=True", "--collapse"),
        " for equal signatures, or raise ",
        Said("limit"),
    )
