"""Tables over parts of a collection, for more rows than one table can have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lookalike.errors import CorruptIndexError
from lookalike.indexes.tables.sorted_table import Runs, SortedTable, part_count
from lookalike.signatures.arrays import MAX_BITS

if TYPE_CHECKING:
    from lookalike.storage import Container

__all__ = ["Part", "build_parts", "part_arrays", "restored_parts", "signature_bits"]

_MOST_SAVED = 1000
"""Parts in one file, of whose 1,024 sections each takes some."""


@dataclass(frozen=True, eq=False)
class Part:
    """A run of the collection's rows, and the tables that have all of it."""

    first: int
    """The row that the run begins with."""
    tables: tuple[SortedTable, ...]

    def __len__(self) -> int:
        return len(self.tables[0].signatures)

    @property
    def end(self) -> int:
        """The row behind the last."""
        return self.first + len(self)

    def rows(self, some: slice) -> NDArray[np.int64] | None:
        """Return which rows of the collection the first table has at these places; None: damage."""
        table = self.tables[0]
        if table.rows is None or table.compressed:
            return np.arange(self.first, self.end)[some]
        rows = table.rows[some].astype(np.int64)
        if len(rows) and int(rows.max()) >= len(self):
            return None
        return rows + self.first


def build_parts(
    signatures: NDArray[np.uint8], headers: Iterable[Runs], threads: int, compressed: bool = False
) -> tuple[Part, ...]:
    """Return a table by each header; over as many parts as it takes, of about equal size."""
    runs, count = list(headers), len(signatures)
    parts = part_count(count)
    bounds = [count * number // parts for number in range(parts + 1)]
    return tuple(
        Part(
            begin,
            tuple(SortedTable.build(signatures[begin:end], r, threads, compressed) for r in runs),
        )
        for begin, end in pairwise(bounds)
    )


def part_arrays(parts: tuple[Part, ...]) -> dict[str, NDArray[Any]]:
    """Return what has to be saved, by name."""
    arrays: dict[str, NDArray[Any]] = {}
    for number, part in enumerate(parts):
        prefix = _prefix(number, len(parts))
        for table, own in enumerate(part.tables):
            arrays |= own.arrays(f"{prefix}{table}.", f"{prefix}signatures")
    return arrays


def restored_parts(container: Container, headers: list[Runs]) -> tuple[Part, ...]:
    """Return the parts that `part_arrays` saved, mapped and not read."""
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
    """Return how wide the saved signatures are, where the first table has them."""
    prefix = _prefix(0, _saved_parts(container))
    return 8 * int(container.array(f"{prefix}0.signatures", np.uint8, 2).shape[1])


def _saved_parts(container: Container) -> int:
    count = container.meta.get("parts", 1)
    if not isinstance(count, int) or not 1 <= count <= _MOST_SAVED:
        raise CorruptIndexError(f"{container.path} describes {count!r} parts; it is damaged")
    return count


def _prefix(number: int, count: int) -> str:
    """Return what the names of a part's arrays begin with: nothing where there is only one."""
    return f"{number}." if count > 1 else ""
