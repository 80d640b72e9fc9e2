"""Which rows? A bit for each row of the corpus, small enough to be sent to every worker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.corpora.base import pa
from lookalike.spark.packed import Batches, map_arrow

__all__ = ["PositionSet", "collect_positions"]

_BLOCK_BITS = 16
_BLOCK = 1 << _BLOCK_BITS


@dataclass(frozen=True, eq=False)
class PositionSet:
    """Positions from 0 to a bound, as bits."""

    bits: NDArray[np.uint8]

    def __len__(self) -> int:
        return int(np.bitwise_count(self.bits).sum())

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
    found = np.zeros(-(-max(1, bound) // _BLOCK) * _BLOCK // 8, np.uint8)
    blocks = map_arrow(frame.select(*columns), _blocks, "block long, some binary, bits binary")
    for row in blocks.toLocalIterator(prefetchPartitions=True):
        begin = row.block * (_BLOCK // 8)
        if row.bits is not None:
            found[begin : begin + _BLOCK // 8] |= np.frombuffer(row.bits, np.uint8)
        else:
            offsets = np.frombuffer(row.some, np.uint16).astype(np.int64)
            np.bitwise_or.at(found, begin + (offsets >> 3), (1 << (offsets & 7)).astype(np.uint8))
    return PositionSet(found)


def _blocks(batches: Batches) -> Iterator[Any]:
    """Yield the positions of a partition, each once, a row for each block of them."""
    parts = [column.to_numpy() for batch in batches for column in batch.columns]
    positions = np.unique(np.concatenate(parts)) if parts else np.empty(0, np.int64)
    blocks = positions >> _BLOCK_BITS
    bounds = np.flatnonzero(np.diff(blocks, prepend=-1, append=-1))
    for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        offsets = (positions[begin:end] & (_BLOCK - 1)).astype(np.uint16)
        bits = None
        if len(offsets) * 2 > _BLOCK // 8:
            whole = np.zeros(_BLOCK, np.uint8)
            whole[offsets] = 1
            bits = np.packbits(whole, bitorder="little").tobytes()
        yield pa.record_batch(
            {
                "block": pa.array([blocks[begin]], pa.int64()),
                "some": pa.array([None if bits else offsets.tobytes()], pa.binary()),
                "bits": pa.array([bits], pa.binary()),
            }
        )
