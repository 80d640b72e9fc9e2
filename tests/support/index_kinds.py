"""One index of every kind."""

from __future__ import annotations

from typing import Any
from unittest import mock

import lookalike as la
from lookalike.indexes.tables import sorted_table

__all__ = ["KINDS", "made"]

KINDS = (
    *("scan", "slices", "blocks", "compressed blocks", "flips", "prefix", "clusters"),
    *("sharded", "sharded mixed"),
    *("blocks in parts", "compressed blocks in parts", "flips in parts"),
)


def made(kind: str, rows: Any, ids: Any) -> Any:
    """Return an index of that kind, of few bits too."""
    bits = 8 * rows.shape[1]
    if kind.endswith(" in parts"):
        with mock.patch.object(sorted_table, "MOST_ROWS", max(1, len(rows) // 3)):
            return made(kind.removesuffix(" in parts"), rows, ids)
    if kind == "scan":
        return la.ScanIndex(rows, ids)
    if kind == "slices":
        return la.SliceIndex(rows, min(7, bits), ids)
    if kind.endswith("blocks"):
        return la.BlockIndex(rows, min(3, bits - 1), ids=ids, compressed="comp" in kind)
    if kind == "flips":
        return la.FlipIndex(rows, min(9, bits), ids=ids)
    if kind == "prefix":
        return la.PrefixIndex(rows, 3, ids)
    if kind == "clusters":
        return la.ClusterIndex(rows, min(5, max(1, len(rows))), ids)
    half = len(rows) // 2
    first, second = (None, None) if ids is None else (ids[:half], ids[half:])
    rest: Any = made("blocks" if "mixed" in kind else "slices", rows[half:], second)
    return la.ShardedIndex([made("slices", rows[:half], first), rest])
