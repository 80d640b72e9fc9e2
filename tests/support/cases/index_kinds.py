"""One index of every kind, built with options that suit a few signatures of a few bits."""

from __future__ import annotations

from typing import Any
from unittest import mock

import lookalike as la
from lookalike.indexes.kinds import KINDS as REGISTRY
from lookalike.indexes.tables import sorted_table

__all__ = ["KINDS", "made"]

BUILT = tuple(kind.name for kind in REGISTRY if kind.is_built)

KINDS = (
    *(*BUILT, "compressed blocks", "sharded", "sharded mixed"),
    *("blocks in parts", "compressed blocks in parts", "flips in parts"),
)


def made(kind: str, rows: Any, ids: Any) -> Any:
    """Return an index of that kind."""
    bits = 8 * rows.shape[1]
    if kind.endswith(" in parts"):
        with mock.patch.object(sorted_table, "MOST_ROWS", max(1, len(rows) // 3)):
            return made(kind.removesuffix(" in parts"), rows, ids)
    if kind.startswith("sharded"):
        half = len(rows) // 2
        first, second = (None, None) if ids is None else (ids[:half], ids[half:])
        rest: Any = made("blocks" if "mixed" in kind else "slices", rows[half:], second)
        return la.ShardedIndex([made("slices", rows[:half], first), rest])
    small: dict[str, dict[str, Any]] = {
        "slices": {"slice_bits": min(7, bits)},
        "blocks": {"radius": min(3, bits - 1), "compressed": "comp" in kind},
        "flips": {"header_bits": min(9, bits)},
        "prefix": {"orders": 3},
        "clusters": {"clusters": min(5, max(1, len(rows)))},
    }
    name = kind.removeprefix("compressed ")
    return REGISTRY[name].build(rows, ids, **small.get(name, {}))
