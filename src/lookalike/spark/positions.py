"""Positions of rows, as the local job counts them.

Rows are in the order of their files, by path, and in each file as they stand there; rows that come
from no file are in the order of partitions. Spark reads pieces of files in any order, and tells the
file of each row and the byte at which its piece begins. So each piece is counted once, and then the
number of rows before it is known, without a shuffle. Rows of an old corpus come before all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from lookalike.dedup.pairs import Flags, Ints
from lookalike.errors import DocumentError
from lookalike.signatures.arrays import distinct
from lookalike.spark.packed import PACKED, Batches, map_arrow, packed_row, runs, sql

Piece = tuple[str, int, int]
"""File, first byte, partition."""

FILE, START, KEY, ROW = "lookalike_file", "lookalike_start", "lookalike_key", "lookalike_row"
ROW_BITS = 33
"""Bits of Spark's row numbers; those above are the number of the frame's partition."""

ORDER_COLUMNS = (FILE, START, KEY, ROW)
"""Columns of a frame that was numbered before; `ROW`, the number of a row in its piece, only if
pieces may be read in parts.
"""

TOLD = ["file", "start", "partition", "row", "key", "count"]
"""What tells how many rows there are of a piece, from a row on with Spark's number of it."""

_OLD = 1 << 62
"""Added to Spark's row numbers in an old corpus."""


def is_old(piece: Piece) -> bool:
    """Return whether a piece is of an old corpus."""
    return piece[2] >= _OLD >> ROW_BITS


def numbered_columns(frame: Any, columns: list[Any], *, old: bool = False) -> Any:
    """Return columns of a frame, and then those that tell where each row comes from."""
    key = (row_keys(frame) + _OLD if old else row_keys(frame)).alias(KEY)
    if KEY in frame.columns:
        return frame.select(*columns, FILE, START, key, *({ROW} & {*frame.columns}))
    file, start = sql.input_file_name().alias(FILE), sql.input_file_block_start().alias(START)
    return frame.select(*columns, file, start, key)


def row_keys(frame: Any) -> Any:
    """Return Spark's numbers of the rows of a frame, as a column."""
    return sql.col(KEY) if KEY in frame.columns else sql.monotonically_increasing_id()


def pieces_of(batches: Iterator[Any]) -> Iterator[tuple[Piece, int, Any, int]]:
    """Yield batches of `numbered_columns` cut by piece: the piece, the number of the first row in
    it, the rows, and Spark's number of the first.
    """
    piece, row = None, 0
    for batch in batches:
        if not len(batch):
            continue
        files, starts = batch.column(FILE), batch.column(START)
        rows = None
        if ROW in batch.schema.names and not batch.column(ROW).null_count:
            rows = batch.column(ROW).to_numpy()
        content = batch.drop_columns([name for name in ORDER_COLUMNS if name in batch.schema.names])
        keys = batch.column(KEY)
        for begin, end in pairwise(piece_bounds(batch, rows)):
            key = keys[begin].as_py()
            here = (files[begin].as_py() or "", starts[begin].as_py(), key >> ROW_BITS)
            if rows is not None:
                row = int(rows[begin])
            elif here != piece:
                row = 0
            piece = here
            yield here, row, content.slice(begin, end - begin), key
            row += end - begin


def piece_bounds(batch: Any, rows: Ints | None = None) -> list[int]:
    """Return where rows of other pieces begin, or other rows than the next ones, and the end."""
    files, starts = batch.column(FILE), batch.column(START)
    last = len(batch) - 1
    if rows is None and files[0] == files[last] and starts[0] == starts[last]:
        return [0, len(batch)]
    changes = (np.diff(files.dictionary_encode().indices.to_numpy()) != 0) | (
        np.diff(starts.to_numpy()) != 0
    )
    if rows is not None:
        changes |= (np.diff(rows) != 1) | (np.diff(batch.column(KEY).to_numpy()) != 1)
    return [0, *(np.flatnonzero(changes) + 1).tolist(), len(batch)]


@dataclass(frozen=True)
class Numbering:
    """The number of the first row of each piece, and how many rows there are in it."""

    firsts: dict[Piece, int]
    """In ascending order."""
    counts: dict[Piece, int]
    keys: dict[Piece, int]
    """Spark's numbers of the first rows."""
    old: int = 0
    """Rows of an old corpus: the first ones."""

    @classmethod
    def of(cls, counts: dict[Piece, int], keys: dict[Piece, int]) -> Numbering:
        """Return the numbering of pieces with these numbers of rows."""
        firsts, total = {}, 0
        order = sorted(counts, key=lambda piece: (not is_old(piece), unquote(piece[0]), *piece))
        for piece in order:
            firsts[piece] = total
            total += counts[piece]
        old = sum(count for piece, count in counts.items() if is_old(piece))
        return cls(firsts, counts, keys, old)

    @classmethod
    def told(cls, table: Any) -> Numbering:
        """Return the numbering of the rows that a table counts in the columns `TOLD`."""
        counts: dict[Piece, int] = {}
        keys: dict[Piece, int] = {}
        columns = table.select(TOLD).to_pydict().values()
        for file, start, partition, row, key, count in zip(*columns, strict=True):
            piece = file, start, partition
            counts[piece] = counts.get(piece, 0) + count
            keys[piece] = key - row
        return cls.of(counts, keys)

    @property
    def documents(self) -> int:
        """The number of rows."""
        return sum(self.counts.values())

    def keys_of(self, positions: Ints) -> Ints:
        """Return Spark's numbers of rows."""
        firsts = np.array(list(self.firsts.values()), np.int64)
        keys = np.array([self.keys[piece] for piece in self.firsts], np.int64)
        at = np.searchsorted(firsts, positions, side="right") - 1
        return keys[at] + positions - firsts[at]

    def first(self, piece: Piece, row: int, count: int) -> int:
        """Return the position of a row of a piece; rows that were not counted are an error."""
        if row + count > self.counts.get(piece, 0):
            raise DocumentError(
                f"{piece[0] or 'the DataFrame'} has other rows than when it was read first. "
                "Expected the same rows in the same order each time: give order=COLUMN, or write "
                "it to files and read these"
            )
        return self.firsts[piece] + row


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
                    bits = np.frombuffer(part, np.uint8, _BLOCK // 8, at)
                    found[begin : begin + _BLOCK // 8] |= bits
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

    def positions(self) -> Ints:
        """Return all of them, ascending."""
        return np.flatnonzero(np.unpackbits(self.bits, bitorder="little"))

    def has(self, positions: Ints) -> Flags:
        """Return which of the positions are there."""
        found: Flags = (self.bits[positions >> 3] >> (positions & 7) & 1).astype(bool)
        return found


def collect_positions(frame: Any, columns: list[str], bound: int) -> PositionSet:
    """Return the positions, below `bound`, that these columns have."""
    parts = map_arrow(frame.select(*columns), parts_of_batches, PACKED)
    return PositionSet.of(told_rows(parts, bound).get(0, []), bound)


def told_rows(packed: Any, bound: int) -> dict[int, list[bytes]]:
    """Return packed rows, by kind, to the driver; of a large corpus by one partition at a time."""
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


def parts_of_batches(batches: Batches) -> Iterator[Any]:
    """Yield all columns of all batches as one."""
    parts = [column.to_numpy() for batch in batches for column in batch.columns]
    if parts:
        yield packed_row(0, packed_positions(np.concatenate(parts)))


def packed_positions(positions: Ints) -> bytes:
    """Return positions, each once, by block: its number, then -1 and bits or a count and places."""
    positions = distinct(positions)
    blocks = positions >> _BLOCK_BITS
    parts = []
    for begin, end in runs(blocks):
        offsets = (positions[begin:end] & (_BLOCK - 1)).astype(np.uint16)
        count, content = len(offsets), offsets.tobytes()
        if len(content) > _BLOCK // 8:
            whole = np.zeros(_BLOCK, np.uint8)
            whole[offsets] = 1
            count, content = -1, np.packbits(whole, bitorder="little").tobytes()
        parts += [np.array([blocks[begin], count], np.int64).tobytes(), content]
    return b"".join(parts)
