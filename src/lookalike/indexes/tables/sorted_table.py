"""Sorted tables: signatures in the order of some of their bits, and where each value begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.errors import ArgumentError, CorruptIndexError, Said
from lookalike.indexes.tables.large_pages import empty_in_large_pages

if TYPE_CHECKING:
    from lookalike.storage import Container

__all__ = ["MOST_HEADER_BITS", "Runs", "SortedTable", "header_width", "part_count"]

MOST_HEADER_BITS = 30
MOST_ROWS = 2**32 - 1
"""Rows of a table; collections of more are cut into parts."""

Runs = Sequence[tuple[int, int]]
"""Bits of a signature, as (first bit, how many); the first run counts most in the order."""


def header_width(count: int) -> int:
    """Return how many header bits give buckets of about one signature."""
    return min(MOST_HEADER_BITS, max(0, count).bit_length() - 1 if count else 0)


def part_count(count: int) -> int:
    """Return how many parts so many signatures are cut into, so that tables have room for each."""
    return max(1, -(-count // MOST_ROWS))


@dataclass(frozen=True, eq=False)
class SortedTable:
    """Signatures sorted by header and then by themselves, the rows they come from, and offsets.

    Takes 4 bytes a signature beside the signatures, and 4 · 2^header_bits. A compressed table has
    the rows only; its signatures are those of the collection, in their order.
    """

    runs: Runs
    signatures: NDArray[np.uint8]
    rows: NDArray[np.uint32] | None
    """The row of the collection that each signature is; None if its place is its row."""
    offsets: NDArray[np.uint32]
    compressed: bool = False

    @classmethod
    def build(
        cls, signatures: NDArray[np.uint8], runs: Runs, threads: int, compressed: bool = False
    ) -> SortedTable:
        """Sort a copy of the signatures, in time O(n) but for buckets that are large."""
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
    def of_sorted(cls, signatures: NDArray[np.uint8], runs: Runs, threads: int) -> SortedTable:
        """Use signatures that are in order already where they are; raise if they are not.

        The header must be the upper bits of the first word, as `upper_bits` says.
        """
        offsets = _empty_offsets(runs)
        if not _native.find_offsets(signatures, list(runs), threads, offsets):
            raise CorruptIndexError("signatures that should be sorted are not")
        return cls(runs, signatures, None, offsets)

    def native(self) -> _native.Table:
        """Return the table as the core sees it."""
        return _native.Table(
            self.signatures, list(self.runs), self.rows, self.offsets, self.compressed
        )

    def arrays(self, prefix: str, shared: str = "signatures") -> dict[str, NDArray[Any]]:
        """Return what has to be saved, by name; `shared` are the signatures of several tables."""
        arrays: dict[str, NDArray[Any]] = {f"{prefix}offsets": self.offsets}
        arrays[shared if self.compressed else f"{prefix}signatures"] = self.signatures
        if self.rows is not None:
            arrays[f"{prefix}rows"] = self.rows
        return arrays

    @classmethod
    def restored(
        cls, container: Container, prefix: str, runs: Runs, shared: str = "signatures"
    ) -> SortedTable:
        """Return the table that `arrays` saved, mapped and not read."""
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
