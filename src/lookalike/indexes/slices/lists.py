"""Slice lists: their width, whether they are worthwhile, and their arrays."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.checks import whole_number
from lookalike.errors import ArgumentError, Said

MOST_SLICE_BITS = 28
_FREE_LIST_BYTES = 1 << 24
_LISTS_PER_ROW = 32


def slice_width(count: int, bits: int, memory: int | None = None) -> int:
    """Return a slice width for `count` signatures: one bit more each time the number doubles.

    Lists have about 16 entries for wide signatures, 64 with sketches (64 to 127 bits), and one for
    other narrow signatures, which are searched by radius. With `memory`, return the nearest width
    whose lists fit, or raise.
    """
    in_list = 4 if bits >= 256 else 6 if _native.has_sketches(bits) else 0
    doublings = round(math.log2(max(1, count))) - in_list
    width = min(max(4, doublings), MOST_SLICE_BITS, bits)
    if memory is None:
        return width
    others = sorted(range(1, MOST_SLICE_BITS + 1), key=lambda other: abs(other - width))
    for other in others:
        if list_bytes(count, bits, other) <= memory:
            return other
    least = min(list_bytes(count, bits, other) for other in others)
    raise ArgumentError(
        Said("memory"),
        f" is {memory} bytes; the lists of {count} signatures of {bits} bits take at least {least}",
    )


def list_bytes(count: int, bits: int, width: int) -> int:
    """Return the size of the lists in bytes."""
    widths = _native.slice_widths(bits, width)
    number = number_bytes(count)
    posting = number + (2 if _native.has_sketches(bits) else 0)
    return posting * count * len(widths) + number * sum(1 << one for one in widths)


def number_bytes(count: int) -> int:
    """Return the bytes of a number in the lists of `count` signatures."""
    return 8 if count >= 2**32 else 4


def checked_width(
    count: int, bits: int, slice_bits: SupportsIndex | None, memory: int | None = None
) -> int:
    """Return the given slice width, or a suitable one."""
    if bits >= 2**16:
        raise ArgumentError(f"signatures have {bits} bits; a SliceIndex takes less than 65536")
    if slice_bits is None:
        return slice_width(count, bits, memory)
    return whole_number("slice_bits", slice_bits, at_least=1, at_most=MOST_SLICE_BITS)


def wants_lists(rows: int, bits: int, slice_bits: int) -> bool:
    """Return whether lists are worthwhile: not if most of them would be empty."""
    widths = _native.slice_widths(bits, slice_bits)
    lists = sum(1 << width for width in widths)
    return 4 * lists <= max(_FREE_LIST_BYTES, 4 * _LISTS_PER_ROW * rows * len(widths))


class Lists(NamedTuple):
    """Slice lists, as the core builds and reads them."""

    offsets: NDArray[Any]  # start of each list
    postings: NDArray[Any]  # rows of all lists
    sketches: NDArray[np.uint16] | None
    """16 more bits of each of these rows, for signatures of 64 to 127 bits."""

    @classmethod
    def empty(cls, rows: int, bits: int, slice_bits: int, wide: bool) -> Lists:
        """Return uninitialized arrays of the right length."""
        widths = _native.slice_widths(bits, slice_bits)
        dtype = np.uint64 if wide or number_bytes(rows) == 8 else np.uint32
        return cls(
            np.empty(sum(1 << width for width in widths), dtype),
            np.empty(rows * len(widths), dtype),
            np.empty(rows * len(widths), np.uint16) if _native.has_sketches(bits) else None,
        )
