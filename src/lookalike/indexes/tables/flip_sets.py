"""Sets of header bits that are flipped: how many there are, and the likeliest of each query."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.errors import ArgumentError
from lookalike.indexes.tables.sorted_table import Runs
from lookalike.indexes.tables.volatility import Volatility

__all__ = [
    "MOST_CHOSEN",
    "all_sets",
    "header_start",
    "likely_sets",
    "not_finite",
    "upper_bits",
]

MOST_CHOSEN = 64
"""Sets of a query that `likely_sets` gives at most."""


def upper_bits(bits: int, header_bits: int) -> Runs:
    """Return the header of sorted signatures: the upper bits of their first word."""
    return [(header_start(bits, header_bits), header_bits)] if header_bits else []


def header_start(bits: int, header_bits: int) -> int:
    """Return the first bit of that header."""
    return min(bits, 64) - header_bits


def all_sets(bits: int, most: int) -> int:
    """Return how many sets of 1 to `most` out of `bits` bits there are (20)."""
    return sum(math.comb(bits, size) for size in range(1, min(most, bits) + 1))


def likely_sets(
    weights: NDArray[Any],
    places: NDArray[np.uint32] | None,
    header_bits: int,
    volatility: Volatility,
    radius: int,
    count: int,
    threads: int,
) -> NDArray[np.uint32]:
    """Return the `count` likeliest sets of each query, at most `MOST_CHOSEN`, likely ones first.

    Those of query i are row `places[i]` of the result, or row i.
    """
    sets = np.empty((len(weights), count), np.uint32)
    try:
        _native.flip_choices(
            _native.FlipWeights(weights, header_start(weights.shape[1], header_bits)),
            places,
            volatility.native(),
            header_bits,
            radius,
            threads,
            sets,
        )
    except _native.NotFinite as error:
        raise not_finite(error.query) from None
    return sets


def not_finite(query: int) -> ArgumentError:
    """Return the error for weights that are no numbers."""
    return ArgumentError(
        f"the weights of query {query} are not finite (NaN or infinite); expected numbers"
    )
