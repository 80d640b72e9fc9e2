"""Tables of block choices: bits by which signatures within a radius meet, and who meets where.

Cut into r + c blocks, signatures that differ in at most r bits agree in c blocks, and so in all
bits of one of the choices of c blocks: each choice is a table (Manku et al.). More blocks in a
choice make longer keys, which fewer signatures share, and more tables. If the radius is too large
for that, keys are drawn at random, as in the local job: then a pair within the radius meets with a
chance of at least `CHANCE`.

The first table in which two signatures agree compares them, so that each pair is found once. A key
that many signatures share would be too much for one task. These signatures meet again, by choices
of their other bits. Where that does not help, they are dealt out to blocks of a fixed size, and a
task compares two of these.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.dedup.pairs import Flags, Ints
from lookalike.dedup.propose import CHANCE
from lookalike.indexes.all_pairs import Drawing
from lookalike.signatures.random import random_words

Words = NDArray[np.uint64]

SAMPLE = 1 << 17
"""Signatures that say how many share a key."""
_MOST_TABLES, _MOST_DRAWN = 64, 512
_DRAWN_COUNTED = 4
_MOST_CHOSEN = 6
"""Blocks of a choice, at most."""
_HOT = 1 << 15
"""Signatures of a key that one task compares with each other, at most: half a billion pairs."""
BLOCK = 1 << 13
"""Signatures of a block, of a key that has more and cannot be divided."""
WHOLE, ALONE = -1, -2
_DEEPEST = 3
_ROW_COST = 1_500.0
"""Nanoseconds that one row takes to be dealt out, shuffled and read."""
_LEAST_VARIED = 0.02
"""Share of signatures with the rarer value of a bit, for it to be worth a place in a key."""
_ALL = slice(None)
_LEAST_SAMPLED = 16
"""Of a key, to be called hot; fewer say too little."""


@dataclass(frozen=True, eq=False)
class Table:
    """Signatures that agree in these bits meet, unless their key is one of those that are divided.

    `bits` includes those of the tables above. Keys in `divided` meet again in the tables `below`;
    keys in `dense` are compared block by block, of `parts` blocks each.
    """

    bits: Ints
    divided: Words = field(default_factory=lambda: np.empty(0, np.uint64))
    below: tuple[Table, ...] = ()
    dense: Words = field(default_factory=lambda: np.empty(0, np.uint64))
    parts: Ints = field(default_factory=lambda: np.empty(0, np.int64))


@dataclass(frozen=True, eq=False)
class Leaf:
    """A table at the end of a branch, and the tables before it in which a pair must not agree."""

    table: Table
    before: tuple[Table, ...]


@dataclass(frozen=True, eq=False)
class Tables:
    """The tables of a job."""

    tables: tuple[Table, ...]
    radius: int
    width: int
    """Bits of a signature."""
    rows: float
    """Estimated number of rows that are dealt out."""
    is_exact: bool = True

    def leaves(self) -> list[Leaf]:
        """Return all tables in which signatures are compared, in a fixed order."""
        return list(_leaves(self.tables, ()))

    def dealt(
        self, rows: NDArray[np.uint8], positions: Ints
    ) -> Iterator[tuple[int, Ints, Words, Ints]]:
        """Yield, for each leaf, which rows meet there, by which keys, and in which block.

        A row of block `WHOLE` is compared with all rows of the same key, of which there are few. So
        is one of `ALONE`, of which there may be many. Other rows are compared with other blocks.
        """
        flags, words = unpacked_bits(rows), random_words(0, self.width)
        numbers, which = itertools.count(), np.arange(len(rows))
        yield from _dealt(self.tables, flags, words, which, positions, numbers)


def _leaves(tables: Sequence[Table], above: tuple[Table, ...]) -> Iterator[Leaf]:
    for at, table in enumerate(tables):
        before = (*above, *tables[:at])
        yield Leaf(table, before)
        yield from _leaves(table.below, before)


def unpacked_bits(rows: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the bits of signatures, a byte each."""
    return np.unpackbits(rows, axis=1, bitorder="little")


def key_words(flags: NDArray[np.uint8], bits: Ints, words: Words) -> Words:
    """Return a hash of these bits of rows: equal where they are, and hardly ever otherwise."""
    found: Words = flags[:, bits].astype(np.uint64) @ words[bits]
    return found


def _dealt(
    tables: Sequence[Table], flags: NDArray[np.uint8], words: Words, which: Ints, positions: Ints,
    numbers: itertools.count[int],
) -> Iterator[tuple[int, Ints, Words, Ints]]:  # fmt: skip
    for table in tables:
        number = next(numbers)
        keys = key_words(flags[which], table.bits, words)
        divided = np.isin(keys, table.divided)
        place = np.searchsorted(table.dense, keys)
        dense = np.isin(keys, table.dense)
        plain = ~divided & ~dense
        if plain.any():
            yield number, which[plain], keys[plain], np.full(int(plain.sum()), WHOLE)
        if dense.any():
            parts = table.parts[place[dense]]
            yield number, *_in_blocks(which[dense], keys[dense], parts, positions)
        yield from _dealt(table.below, flags, words, which[divided], positions, numbers)


def _in_blocks(which: Ints, keys: Words, parts: Ints, positions: Ints) -> tuple[Ints, Words, Ints]:
    """Send each row to where its block is compared with each other block, and with itself."""
    mixed = positions[which].astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    block = ((mixed >> np.uint64(32)) % parts.astype(np.uint64)).astype(np.int64)
    row = np.repeat(np.arange(len(which)), parts)
    other = np.arange(len(row)) - np.repeat(np.cumsum(parts) - parts, parts)
    low, high = np.minimum(block[row], other), np.maximum(block[row], other)
    task = (low << 32 | high).astype(np.uint64) * np.uint64(0xD6E8FEB86659FD93)
    return which[row], keys[row] ^ task, np.where(low == high, ALONE, block[row])


def first_shared(leaf: Leaf, flips: NDArray[np.uint8]) -> Flags:
    """Return which pairs, given by the bits in which they differ, agree in no earlier table."""
    first = np.ones(len(flips), bool)
    for table in leaf.before:
        first &= flips[:, table.bits].any(axis=1)
    return first


# Choosing


def choose_tables(
    sample: NDArray[np.uint8], count: int, radius: int, *, may_draw: bool
) -> Tables | None:
    """Return the cheapest tables for `count` distinct signatures; None: compare all with all.

    Args:
        sample: Distinct signatures, drawn from all of them.
        count: Number of all signatures.
        radius: Largest distance of a pair.
        may_draw: Whether tables may miss a pair with a chance of up to 1 - `CHANCE`.
    """
    width, scan = 8 * sample.shape[1], _native.USUAL_COSTS.scan(sample.shape[1], 1)
    if count < 2 or radius >= width:
        return None
    drawn = _Sample(sample, count / max(1, len(sample)), scan)
    blocks = min(64, max(2, -(-count // BLOCK)))  # of comparing all with all
    least, chosen = count * (count / 2 * scan + blocks * _ROW_COST), None
    every = np.arange(width)
    for tables in itertools.chain(
        block_choices(every, radius), block_choices(drawn.varied(every), radius)
    ):
        cost = drawn.cost(tables)
        if cost < least:
            least, chosen = cost, (tables, True)
    if may_draw:
        for tables in _drawings(width, radius):
            if _ROW_COST * count * len(tables) >= least:
                continue
            some = tables[:_DRAWN_COUNTED]  # all are alike, because their bits are drawn
            cost = drawn.cost(some) * len(tables) / len(some)
            if cost < least:
                least, chosen = cost, (tables, False)
    if chosen is None:
        return None
    tables, is_exact = chosen
    rows = np.arange(len(sample))
    whole = tuple(drawn.divided(bits, every, radius, rows, is_exact, 1) for bits in tables)
    return Tables(whole, radius, width, drawn.rows, is_exact)


def block_choices(bits: Ints, radius: int) -> Iterator[list[Ints]]:
    """Yield the bits of all choices of 1, 2, ... of the blocks that these bits are cut into."""
    for chosen in range(1, _MOST_CHOSEN + 1):
        blocks = radius + chosen
        if blocks > len(bits) or math.comb(blocks, chosen) > _MOST_TABLES:
            return
        cut = np.array_split(bits, blocks)
        yield [np.concatenate(one) for one in itertools.combinations(cut, chosen)]


def _drawings(width: int, radius: int) -> Iterator[list[Ints]]:
    """Yield the bits of keys that are drawn, enough of them for `CHANCE` at the radius."""
    for key_bits in range(8, min(32, width) + 1):
        enough = Drawing(width, key_bits, 0, 1).reaching(CHANCE, radius)
        if enough is None or enough.words * enough.keys > _MOST_DRAWN:
            continue
        words = enough.positions().astype(np.int64)
        yield [np.sort(key) for word in words for key in word.reshape(-1, key_bits)]


@dataclass(eq=False)
class _Sample:
    """Signatures that stand for all: one for `each` of them."""

    signatures: NDArray[np.uint8]
    each: float
    scan: float
    rows: float = 0.0

    def __post_init__(self) -> None:
        self.flags = unpacked_bits(self.signatures)
        self.words = random_words(0, self.flags.shape[1])

    def varied(self, bits: Ints, which: Ints | slice = _ALL) -> Ints:
        """Return the bits that tell signatures apart; no others are needed in keys."""
        mean = self.flags[which][:, bits].mean(axis=0)
        found: Ints = bits[np.minimum(mean, 1 - mean) >= _LEAST_VARIED]
        return found

    def cost(self, tables: Sequence[Ints]) -> float:
        """Return the estimated nanoseconds of tables; keys that too many share are dealt again."""
        count, total = self.each * len(self.flags), 0.0
        for bits in tables:
            _, sizes = np.unique(key_words(self.flags, bits, self.words), return_counts=True)
            hot = self._is_hot(sizes)
            again = float(sizes[hot].sum()) * self.each * _MOST_TABLES * _ROW_COST
            met = float((sizes[~hot] * (sizes[~hot] - 1)).sum()) / 2 * self.each**2
            total += count * _ROW_COST + met * self.scan + again
        return total

    def _is_hot(self, sizes: Ints) -> Flags:
        hot: Flags = (sizes * self.each > _HOT) & (sizes >= _LEAST_SAMPLED)
        return hot

    def divided(
        self, bits: Ints, every: Ints, radius: int, which: Ints, is_exact: bool, depth: int
    ) -> Table:
        """Return a table, with its hot keys divided: `which` of the sample have got there."""
        keys = key_words(self.flags[which], bits, self.words)
        self.rows += self.each * len(which)
        values, sizes = np.unique(keys, return_counts=True)
        hot = values[self._is_hot(sizes)]
        if not len(hot):
            return Table(bits)
        table, inside = Table(bits), np.isin(keys, hot)
        rest, rows = np.setdiff1d(every, bits), which[inside]
        best, least = None, np.inf
        if is_exact and depth < _DEEPEST:
            least = self._met(keys[inside]) * self.scan
            for choices in block_choices(self.varied(rest, rows), radius):
                # Its key and the choice: only signatures of one hot key meet again.
                longer = [np.sort(np.concatenate([bits, one])) for one in choices]
                met = sum(self._met(key_words(self.flags[rows], one, self.words)) for one in longer)
                cost = met * self.scan + self.each * len(rows) * len(longer) * _ROW_COST
                if cost < least / 2:
                    least, best = cost, longer
        if best is not None:
            self.rows -= self.each * len(rows)
            below = tuple(
                self.divided(one, every, radius, rows, is_exact, depth + 1) for one in best
            )
            return replace(table, divided=hot, below=below)
        counts = sizes[self._is_hot(sizes)]
        parts = np.maximum(2, -(-(counts * self.each) // BLOCK)).astype(np.int64)
        self.rows += float((counts * self.each * (parts - 1)).sum())
        return replace(table, dense=hot, parts=parts)

    def _met(self, keys: Words) -> float:
        """Return the estimated number of pairs of all signatures that share a key."""
        _, sizes = np.unique(keys, return_counts=True)
        return float((sizes * (sizes - 1)).sum()) / 2 * self.each**2
