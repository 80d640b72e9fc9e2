"""Building the index of an option."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.indexes.base import Index
from lookalike.indexes.clusters.index import ClusterIndex
from lookalike.indexes.scan import ScanIndex
from lookalike.indexes.slices.index import SliceIndex
from lookalike.indexes.tables.blocks import BlockIndex
from lookalike.indexes.tables.flips import FlipIndex
from lookalike.indexes.tables.prefixes import PrefixIndex
from lookalike.planning.question import Option

__all__ = ["build_option"]


def build_option(
    option: Option, rows: NDArray[np.uint8], ids: ArrayLike | None = None, threads: Any = None
) -> Index:
    """Build the index of an option over these signatures."""
    chosen = option.parameters
    if option.index == "slices":
        return SliceIndex(rows, chosen["slice_bits"], ids, threads=threads)
    if option.index == "blocks":
        return BlockIndex(
            rows,
            chosen["radius"],
            ids=ids,
            blocks=chosen["blocks"],
            lead=chosen["lead"],
            compressed=bool(chosen.get("compressed")),
            threads=threads,
        )
    if option.index == "flips":
        return FlipIndex(rows, chosen["header_bits"], ids, threads=threads)
    if option.index == "gpu":
        from lookalike.gpu import GpuIndex

        return GpuIndex(rows, ids)
    if option.index == "prefix":
        return PrefixIndex(rows, chosen["orders"], ids, threads=threads)
    if option.index == "clusters":
        most = min(chosen["clusters"], max(1, len(rows)))
        return ClusterIndex(rows, most, ids, threads=threads)
    return ScanIndex(rows, ids)
