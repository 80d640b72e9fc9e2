"""Blocks and flips, slowly and obviously."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from lookalike.indexes.tables.flip_sets import Volatility
from support.oracles import scan as oracle


def ordered_sets(costs: list[int], most: int, steps: list[int] | None = None) -> list[int]:
    """Return all sets of 1 to `most` bits as masks, by (sum of costs, size, ranks).

    The rank of a bit is its place in the order of steps, or of costs, ties by position.
    """
    keys = costs if steps is None else steps
    by_rank = sorted(range(len(costs)), key=lambda bit: (keys[bit], bit))
    sets = [
        (sum(costs[by_rank[rank]] for rank in ranks), size, sum(1 << rank for rank in ranks), ranks)
        for size in range(1, most + 1)
        for ranks in combinations(range(len(costs)), size)
    ]
    return [sum(1 << by_rank[rank] for rank in ranks) for _, _, _, ranks in sorted(sets)]


def steps_of(volatility: Volatility, weights: NDArray[np.float32]) -> list[int]:
    """Return where on the curve each weight is."""
    last = len(volatility.costs) - 1
    return [int(step) for step in np.minimum(np.abs(weights) * np.float32(volatility.scale), last)]


def header(signature: oracle.Signatures, bits: int) -> int:
    """Return the upper `bits` of the first 64 bits."""
    first = int.from_bytes(signature[:8].tobytes(), "little")
    return first >> (8 * min(8, len(signature)) - bits)


def flipped_within(
    rows: oracle.Signatures,
    query: oracle.Signatures,
    radius: int,
    bits: int,
    sets: list[int],
) -> list[tuple[int, int]]:
    """Return (distance, row) of what is within the radius and has one of the headers tried."""
    own = header(query, bits)
    tried = {own, *(own ^ flips for flips in sets)}
    return [
        (far, row)
        for far, row in oracle.within(rows, query[None], radius)[0]
        if header(rows[row], bits) in tried
    ]
