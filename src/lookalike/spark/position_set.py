"""Which rows? A bit for each row of the corpus, small enough to be sent to every worker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.dedup.pairs import distinct
from lookalike.spark.packed import PACKED, Batches, map_arrow, packed_row

__all__ = ["PositionSet", "collect_positions", "packed_positions", "told_rows"]

_BLOCK_BITS = 16
_BLOCK = 1 << _BLOCK_BITS

_MANY = 50_000_000
"""Documents of which what is told of all partitions is too much for the driver at once."""


@dataclass(frozen=True, eq=False)
class PositionSet:
    """Positions from 0 to a bound, as bits."""

    bits: NDArray[np.uint8]

    @classmethod
    def of(cls, parts: Iterable[bytes], bound: int) -> PositionSet:
        """Return all that `packed_positions` has packed."""
        found = np.zeros(-(-max(1, bound) // _BLOCK) * _BLOCK // 8, np.uint8)
        for part in parts:
            at = 0
            while at < len(part):
                block, count = np.frombuffer(part, np.int64, 2, at).tolist()
                at += 16
                begin = block * (_BLOCK // 8)
                if count < 0:
                    found[begin : begin + _BLOCK // 8] |= np.frombuffer(
                        part, np.uint8, _BLOCK // 8, at
                    )
                    at += _BLOCK // 8
                else:
                    offsets = np.frombuffer(part, np.uint16, count, at).astype(np.int64)
                    at += 2 * count
                    bits = (1 << (offsets & 7)).astype(np.uint8)
                    np.bitwise_or.at(found, begin + (offsets >> 3), bits)
        return cls(found)

    def __or__(self, other: PositionSet) -> PositionSet:
        return PositionSet(self.bits | other.bits)

    def __len__(self) -> int:
        return int(np.bitwise_count(self.bits).sum())

    def __sub__(self, other: PositionSet) -> PositionSet:
        return PositionSet(self.bits & ~other.bits)

    def count_from(self, position: int) -> int:
        """Return how many there are from a position on."""
        bits = self.bits[position >> 3 :].copy()
        bits[:1] >>= np.uint8(position & 7)
        return int(np.bitwise_count(bits).sum())

    def positions(self) -> NDArray[np.int64]:
        """Return all of them, ascending."""
        return np.flatnonzero(np.unpackbits(self.bits, bitorder="little"))

    def has(self, positions: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of the positions are there."""
        found: NDArray[np.bool_] = (self.bits[positions >> 3] >> (positions & 7) & 1).astype(bool)
        return found


def collect_positions(frame: Any, columns: list[str], bound: int) -> PositionSet:
    """Return the positions, below `bound`, that these columns have.

    They come to the driver as bits, or as two bytes each where a block has few, and leave it as
    bits.
    """
    parts = map_arrow(frame.select(*columns), _parts, PACKED)
    return PositionSet.of(told_rows(parts, bound).get(0, []), bound)


def told_rows(packed: Any, bound: int) -> dict[int, list[bytes]]:
    """Return packed rows that are for the driver, by kind.

    By one job of Spark, or of a large corpus one partition after the other.
    """
    told: dict[int, list[bytes]] = {}
    rows = packed.select("kind", "data")
    if bound > _MANY:
        for row in rows.toLocalIterator(prefetchPartitions=True):
            told.setdefault(row[0], []).append(bytes(row[1]))
    else:
        table = rows.toArrow()
        for kind, data in zip(table[0].to_pylist(), table[1].to_pylist(), strict=True):
            told.setdefault(kind, []).append(data)
    return told


def _parts(batches: Batches) -> Iterator[Any]:
    parts = [column.to_numpy() for batch in batches for column in batch.columns]
    if parts:
        yield packed_row(0, packed_positions(np.concatenate(parts)))


def packed_positions(positions: NDArray[np.int64]) -> bytes:
    """Return positions, each once, block by block: which it is, and how many two bytes follow, or
    -1 for all of its bits.
    """
    positions = distinct(positions)
    blocks = positions >> _BLOCK_BITS
    bounds = np.flatnonzero(np.diff(blocks, prepend=-1, append=-1))
    parts = []
    for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        offsets = (positions[begin:end] & (_BLOCK - 1)).astype(np.uint16)
        count, content = len(offsets), offsets.tobytes()
        if len(content) > _BLOCK // 8:
            whole = np.zeros(_BLOCK, np.uint8)
            whole[offsets] = 1
            count, content = -1, np.packbits(whole, bitorder="little").tobytes()
        parts += [np.array([blocks[begin], count], np.int64).tobytes(), content]
    return b"".join(parts)
