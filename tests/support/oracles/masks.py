"""Searching by some bits of each query, from the definition: every row is looked at."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from support.oracles import scan as oracle

Found = tuple[int, int, int]
"""The masked distance, that over all bits, and the id: in which order results come."""


def ordered(
    rows: oracle.Signatures,
    query: oracle.Signatures,
    mask: oracle.Signatures,
    ids: list[int] | None = None,
) -> list[Found]:
    """Return all rows in the order they are found in."""
    names = list(range(len(rows))) if ids is None else ids
    return sorted(
        (oracle.distance(row & mask, query & mask), oracle.distance(row, query), name)
        for row, name in zip(rows, names, strict=True)
    )


def masks(count: int, width: int, density: float, seed: int) -> NDArray[np.uint8]:
    """Make masks of which that share of the bits is 1; at 0 and 1 none and all."""
    drawn = np.random.default_rng(seed).random((count, 8 * width)) < density
    return np.packbits(drawn, axis=1, bitorder="little")


DENSITIES = (0.0, 0.02, 0.1, 0.36, 0.7, 0.95, 1.0)
