"""From few grey pixels to the bits of a hash, in whole numbers.

An image becomes a grid of averages, in units of 1/256 of a grey level; what follows are sums of
products below 2**53. So neither the machine nor the order of additions can show in a bit. No matrix
product goes to a linear algebra library: its threads are in the way of those that decode.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from lookalike.images.decode import Decoded

__all__ = ["GRIDS", "KINDS", "bits_of", "grid_of"]

KINDS = ("dct", "gradient")

GRIDS = {
    ("dct", 64): (32, 32),
    ("dct", 256): (64, 64),
    ("gradient", 64): (8, 9),
    ("gradient", 256): (16, 17),
}
"""Rows and columns of the grid that bits are made from."""

_LEVEL = 256
"""Units of a grey level."""
_ONE = 4096
"""That stands for 1 in the cosines: with 64 × 64 averages of 16 bits, sums stay below 2**53."""


def grid_of(image: Decoded, rows: int, columns: int) -> NDArray[np.int64]:
    """Return the average grey of each of rows × columns equal parts, in 1/256 of a level.

    A pixel on the border of two parts counts for each by the share of it that lies there.
    """
    grey = image.grey.astype(np.int64)
    sums = _summed(_summed(grey, image.rows, rows).T, image.columns, columns).T
    pixels = int(image.rows[-1]) * int(image.columns[-1])
    return (sums * _LEVEL + pixels // 2) // pixels


def _summed(values: NDArray[np.int64], edges: NDArray[np.int64], parts: int) -> NDArray[np.int64]:
    """Return the sums of rows of values over equal parts, times `parts`: row b counts for what lies
    between edges b and b + 1, in pixels.
    """
    ends = np.arange(parts + 1) * edges[-1]  # of parts, in pixels times `parts`
    inside = np.minimum(np.searchsorted(edges * parts, ends, "right") - 1, len(values) - 1)
    whole = np.zeros((len(values) + 1, values.shape[1]), np.int64)
    np.cumsum(values * np.diff(edges)[:, None], axis=0, out=whole[1:])
    before = whole[inside] * parts + values[inside] * (ends - edges[inside] * parts)[:, None]
    sums: NDArray[np.int64] = np.diff(before, axis=0)
    return sums


def bits_of(
    kind: str, bits: int, grids: Sequence[NDArray[np.int64]]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the signatures of grids, and how many bits of each are clear.

    A bit is 1 where the wave or the step behind it is higher than 1/8 of a grey level, or than one:
    more than nothing, or noise would decide all bits of even areas. It is clear where that is at
    least twice as high, or as deep: little noise does not turn it, and it says more than that there
    is nothing.
    """
    stacked = np.stack(grids) if grids else np.empty((0, *GRIDS[kind, bits]), np.int64)
    heights, step = (_waves if kind == "dct" else _steps)(stacked, bits)
    signatures = np.packbits(heights > step, axis=1, bitorder="little")
    return signatures, (np.abs(heights) >= 2 * step).sum(axis=1)


def _waves(grids: NDArray[np.int64], bits: int) -> tuple[NDArray[np.int64], int]:
    """Return the lowest frequencies of the cosine transform but for the mean, and what counts."""
    size = grids.shape[1]
    down, across = _frequencies(bits)
    cosines = _cosines(size, int(down.max()) + 1)
    waves = cosines @ grids @ cosines.T
    # A wave that is one grey level high adds up to a quarter of all parts.
    return waves[:, down, across], _LEVEL * size * size // 4 * _ONE * _ONE // 8


@cache
def _cosines(size: int, count: int) -> NDArray[np.int64]:
    """Return waves of 0, 1, ... halves over a length, rounded to whole numbers."""
    angles = np.pi * np.arange(count)[:, None] * (2 * np.arange(size) + 1) / (2 * size)
    cosines: NDArray[np.int64] = np.rint(_ONE * np.cos(angles)).astype(np.int64)
    return cosines


@cache
def _frequencies(bits: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (v, u), of halves of waves downwards and across, for each bit: those of the least
    v + u, of these the ones of the least larger one, then of the least u; without (0, 0).
    """
    most = 2 * int(bits**0.5) + 1
    down, across = (half.ravel() for half in np.mgrid[:most, :most])
    order = np.lexsort((across, np.maximum(down, across), down + across))[1 : bits + 1]
    return down[order], across[order]


def _steps(grids: NDArray[np.int64], bits: int) -> tuple[NDArray[np.int64], int]:
    """Return how much brighter each part is than its neighbour on the left, row by row, and what
    counts: a grey level.
    """
    return np.diff(grids, axis=2).reshape(len(grids), bits), _LEVEL
