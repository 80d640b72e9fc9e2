"""Sorted tables: signatures in the order of some of their bits, and the start of each value.

A collection with more rows than a table can have is cut into parts with separate tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.errors import ArgumentError, CorruptIndexError, Said
from lookalike.indexes.rows import Signatures, empty_in_large_pages
from lookalike.operation import in_parts
from lookalike.signatures.arrays import MAX_BITS
from lookalike.storage.container import Container

MOST_HEADER_BITS = 30
MOST_ROWS = 2**32 - 1  # maximum number of rows of a table; larger collections are cut into parts
Runs = Sequence[tuple[int, int]]
"""Bits of a signature as (first bit, number of bits); the first run is most significant."""


def header_width(count: int) -> int:
    """Return the number of header bits for buckets of about one signature."""
    return min(MOST_HEADER_BITS, max(0, count).bit_length() - 1 if count else 0)


def part_count(count: int) -> int:
    """Return the number of parts that `count` signatures are cut into."""
    return max(1, -(-count // MOST_ROWS))


@dataclass(frozen=True, eq=False)
class SortedTable:
    """Signatures sorted by header and then by value, their rows, and the start of each bucket.

    Takes 4 bytes per signature more than the signatures, and 4 · 2^header_bits. A compressed table
    has only the rows; its signatures are those of the collection.
    """

    runs: Runs
    signatures: Signatures
    rows: NDArray[np.uint32] | None
    """Row of each signature; None if the table is in the order of the collection."""
    offsets: NDArray[np.uint32]
    compressed: bool = False

    @classmethod
    def build(
        cls, signatures: Signatures, runs: Runs, threads: int, compressed: bool = False
    ) -> SortedTable:
        """Sort a copy of the signatures; O(n) unless buckets are large."""
        count = len(signatures)
        if count > MOST_ROWS:
            raise ArgumentError(
                f"there are {count} signatures; a table takes at most {MOST_ROWS}: make several "
                "indexes",
                Said(" and put them together with ShardedIndex", ""),
            )
        rows = empty_in_large_pages((count,), np.uint32)
        offsets = _empty_offsets(runs)
        if compressed:
            _native.build_table(signatures, list(runs), threads, None, rows, offsets)
            return cls(runs, signatures, rows, offsets, True)
        ordered = empty_in_large_pages(signatures.shape, np.uint8)
        _native.build_table(signatures, list(runs), threads, ordered, rows, offsets)
        return cls(runs, ordered, rows, offsets)

    @classmethod
    def of_sorted(cls, signatures: Signatures, runs: Runs, threads: int) -> SortedTable:
        """Use signatures in place that are sorted by `upper_bits`; raise if they are not."""
        offsets = _empty_offsets(runs)
        if not _native.find_offsets(signatures, list(runs), threads, offsets):
            raise CorruptIndexError("signatures that should be sorted are not")
        return cls(runs, signatures, None, offsets)

    def native(self) -> _native.Table:
        """Return the table for the core."""
        return _native.Table(
            self.signatures, list(self.runs), self.rows, self.offsets, self.compressed
        )

    def arrays(self, prefix: str, shared: str = "signatures") -> dict[str, NDArray[Any]]:
        """Return the arrays to save, by name; `shared` are the signatures of several tables."""
        arrays: dict[str, NDArray[Any]] = {f"{prefix}offsets": self.offsets}
        arrays[shared if self.compressed else f"{prefix}signatures"] = self.signatures
        if self.rows is not None:
            arrays[f"{prefix}rows"] = self.rows
        return arrays

    @classmethod
    def restored(
        cls, container: Container, prefix: str, runs: Runs, shared: str = "signatures"
    ) -> SortedTable:
        """Return the table that `arrays` saved, memory-mapped."""
        compressed = f"{prefix}signatures" not in container
        table = cls(
            runs,
            container.array(shared if compressed else f"{prefix}signatures", np.uint8, 2),
            container.array(f"{prefix}rows", np.uint32, 1),
            container.array(f"{prefix}offsets", np.uint32, 1),
            compressed,
        )
        bits = 8 * table.signatures.shape[1]
        try:
            if any(start + width > bits for start, width in runs):
                raise _native.CorruptTable
            table.native()
        except _native.CorruptTable:
            raise CorruptIndexError(
                f"{container.path} holds a table whose parts do not belong together; it is damaged"
            ) from None
        return table


def _empty_offsets(runs: Runs) -> NDArray[np.uint32]:
    bits = sum(width for _, width in runs)
    return empty_in_large_pages(((1 << bits) + 1,), np.uint32)


_MOST_SAVED = 1000  # parts in one file, of whose 1,024 sections each takes some


@dataclass(frozen=True, eq=False)
class Part:
    """A range of rows of the collection, with its tables."""

    first: int  # first row of the range
    tables: tuple[SortedTable, ...]

    def __len__(self) -> int:
        return len(self.tables[0].signatures)

    @property
    def end(self) -> int:
        """End of the range."""
        return self.first + len(self)

    def rows(self, some: slice) -> NDArray[np.int64] | None:
        """Return the rows at these positions of the first table; None if the table is damaged."""
        table = self.tables[0]
        if table.rows is None or table.compressed:
            return np.arange(self.first, self.end)[some]
        rows = table.rows[some].astype(np.int64)
        if len(rows) and int(rows.max()) >= len(self):
            return None
        return rows + self.first


def build_parts(
    signatures: Signatures, headers: Iterable[Runs], threads: int, compressed: bool = False
) -> tuple[Part, ...]:
    """Return a table per header, in as many parts of about equal size as needed."""
    runs, count = list(headers), len(signatures)
    parts = part_count(count)
    bounds = [count * number // parts for number in range(parts + 1)]
    return tuple(
        Part(
            begin,
            tuple(
                SortedTable.build(signatures[begin:end], header, threads, compressed)
                for header in in_parts(runs)
            ),
        )
        for begin, end in in_parts(list(pairwise(bounds)))
    )


def part_arrays(parts: tuple[Part, ...]) -> dict[str, NDArray[Any]]:
    """Return the arrays to save, by name."""
    arrays: dict[str, NDArray[Any]] = {}
    for number, part in enumerate(parts):
        prefix = _prefix(number, len(parts))
        for table, own in enumerate(part.tables):
            arrays |= own.arrays(f"{prefix}{table}.", f"{prefix}signatures")
    return arrays


def restored_parts(container: Container, headers: list[Runs]) -> tuple[Part, ...]:
    """Return the parts that `part_arrays` saved, memory-mapped."""
    count = _saved_parts(container)
    parts: list[Part] = []
    for number in range(count):
        prefix = _prefix(number, count)
        tables = tuple(
            SortedTable.restored(container, f"{prefix}{table}.", runs, f"{prefix}signatures")
            for table, runs in enumerate(headers)
        )
        parts.append(Part(parts[-1].end if parts else 0, tables))
    shapes = {table.signatures.shape for part in parts for table in part.tables}
    widths = {width for _, width in shapes}
    alike = all(len({len(table.signatures) for table in part.tables}) == 1 for part in parts)
    if not alike or len(widths) != 1 or not 1 <= min(widths) <= MAX_BITS // 8:
        raise CorruptIndexError(
            f"{container.path} holds tables of the shapes {sorted(shapes)}; it is damaged"
        )
    return tuple(parts)


def signature_bits(container: Container) -> int:
    """Return the number of bits of the saved signatures."""
    prefix = _prefix(0, _saved_parts(container))
    return 8 * int(container.array(f"{prefix}0.signatures", np.uint8, 2).shape[1])


def _saved_parts(container: Container) -> int:
    count = container.meta.get("parts", 1)
    if not isinstance(count, int) or not 1 <= count <= _MOST_SAVED:
        raise CorruptIndexError(f"{container.path} describes {count!r} parts; it is damaged")
    return count


def _prefix(number: int, count: int) -> str:
    """Return the prefix of the names of a part's arrays: empty if there is only one part."""
    return f"{number}." if count > 1 else ""


@dataclass(frozen=True, slots=True)
class TableSteps:
    """Expected steps of a query for fair, independent bits: (9) and (19) of Sood and Loguinov."""

    buckets: float  # number of buckets looked up
    rows: float  # number of signatures in these buckets

    @classmethod
    def of(cls, buckets: float, count: int, header_bits: int) -> TableSteps:
        """Return the steps for `buckets` buckets of tables of `count` signatures."""
        return cls(buckets, buckets * count / 2.0**header_bits)

    def usual_cost(self, width: int, scattered: bool = False) -> float:
        """Return the nanoseconds on a typical machine; `scattered`: the table has no signatures."""
        costs = _native.USUAL_COSTS
        row = costs.compare(width) if scattered else costs.bucket(width)
        return self.buckets * costs.look_up() + self.rows * row
