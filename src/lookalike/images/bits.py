"""From few grey pixels to the bits of a hash, in whole numbers.

An image becomes a grid of averages, in units of 1/256 of a grey level; what follows are sums of
products of whole numbers below 2**53, which are exact in doubles. So neither the machine nor the
order of additions can show in a bit. The core does it all without the GIL: no thread that decodes
waits for it.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.images.decode import Decoded

__all__ = ["GRIDS", "KINDS", "write_bits"]

KINDS = ("dct", "gradient")

GRIDS = {
    ("dct", 64): (32, 32),
    ("dct", 256): (64, 64),
    ("gradient", 64): (8, 9),
    ("gradient", 256): (16, 17),
}
"""Rows and columns of the grid that bits are made from: equal parts of an image. A pixel on the
border of two parts counts for each by the share of it that lies there.
"""

_LEVEL = 256
"""Units of a grey level."""
_ONE = 4096
"""That stands for 1 in the cosines: with 64 × 64 averages of 16 bits, sums stay below 2**53."""


def write_bits(kind: str, bits: int, image: Decoded, signature: NDArray[np.uint8]) -> int:
    """Write the bits of an image, and return how many of them are clear.

    A bit is 1 where the wave or the step behind it is higher than 1/8 of a grey level, or than one:
    more than nothing, or noise would decide all bits of even areas. It is clear where that is at
    least twice as high, or as deep: little noise does not turn it, and it says more than that there
    is nothing.
    """
    grey = np.ascontiguousarray(image.grey)
    return _loops(kind, bits).sign(grey, image.rows, image.columns, signature)


@cache
def _loops(kind: str, bits: int) -> _native.ImageBits:
    """Return the loops of the core for the lowest frequencies of the cosine transform but for the
    mean; or for how much brighter each part is than its neighbour on the left, row by row.
    """
    rows, columns = GRIDS[kind, bits]
    if kind == "gradient":
        return _native.ImageBits.of_steps(rows, columns, _LEVEL)
    down, across = _frequencies(bits)
    # A wave that is one grey level high adds up to a quarter of all parts.
    least = _LEVEL * rows * columns // 4 * _ONE * _ONE // 8
    return _native.ImageBits.of_waves(_cosines(rows, int(down.max()) + 1), down, across, least)


def _cosines(size: int, count: int) -> NDArray[np.float64]:
    """Return waves of 0, 1, ... halves over a length, rounded to whole numbers."""
    angles = np.pi * np.arange(count)[:, None] * (2 * np.arange(size) + 1) / (2 * size)
    cosines: NDArray[np.float64] = np.rint(_ONE * np.cos(angles))
    return cosines


def _frequencies(bits: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (v, u), of halves of waves downwards and across, for each bit: those of the least
    v + u, of these the ones of the least larger one, then of the least u; without (0, 0).
    """
    most = 2 * int(bits**0.5) + 1
    down, across = (half.ravel() for half in np.mgrid[:most, :most])
    order = np.lexsort((across, np.maximum(down, across), down + across))[1 : bits + 1]
    return down[order], across[order]
