"""Slice lists: their width, whether they are worthwhile, and their arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.checks import whole_number
from lookalike.errors import ArgumentError, Said

MOST_SLICE_BITS = 32
MOST_CHOSEN_BITS = 28  # of slices that are not given
_FREE_LIST_BYTES = 1 << 24
_LISTS_PER_ROW = 32
_LEAST_SEARCHED = 2048  # rows of lists whose values are searched for

Cut = int | tuple[int, ...]
"""Width of slices that cover a signature, or the width of each slice."""


def slice_width(count: int, bits: int, memory: int | None = None) -> int:
    """Return a slice width for `count` signatures: one bit more each time the number doubles.

    Lists have about 16 entries for wide signatures, 64 with sketches (64 to 127 bits), and one for
    other narrow signatures, which are searched by radius. With `memory`, return the nearest width
    whose lists fit, or raise.
    """
    in_list = 4 if bits >= 256 else 6 if _native.has_sketches(bits) else 0
    doublings = round(math.log2(max(1, count))) - in_list
    width = min(max(4, doublings), MOST_CHOSEN_BITS, bits)
    if memory is None:
        return width
    others = sorted(range(1, MOST_CHOSEN_BITS + 1), key=lambda other: abs(other - width))
    for other in others:
        if list_bytes(count, bits, other) <= memory:
            return other
    least = min(list_bytes(count, bits, other) for other in others)
    raise ArgumentError(
        Said("memory"),
        f" is {memory} bytes; the lists of {count} signatures of {bits} bits take at least {least}",
    )


def list_bytes(count: int, bits: int, slice_bits: Cut) -> int:
    """Return the size of the lists in bytes, with an offset for each value."""
    widths = _native.slice_widths(bits, slice_bits)
    number = number_bytes(count)
    posting = number + (2 if _native.has_sketches(bits) else 0)
    return posting * count * len(widths) + number * sum(1 << one for one in widths)


def number_bytes(count: int) -> int:
    """Return the bytes of a number in the lists of `count` signatures."""
    return 8 if count >= 2**32 else 4


def checked_cut(
    count: int,
    bits: int,
    slice_bits: SupportsIndex | Sequence[SupportsIndex] | None,
    memory: int | None = None,
) -> Cut:
    """Return the given width or widths of slices, or a suitable width."""
    if bits >= 2**16:
        raise ArgumentError(f"signatures have {bits} bits; a SliceIndex takes less than 65536")
    if slice_bits is None:
        return slice_width(count, bits, memory)
    if isinstance(slice_bits, np.ndarray) and slice_bits.ndim == 1:
        slice_bits = slice_bits.tolist()
    if not isinstance(slice_bits, list | tuple):
        return whole_number("slice_bits", slice_bits, at_least=1, at_most=MOST_SLICE_BITS)  # type: ignore[arg-type]
    widths = [
        whole_number("slice_bits", width, at_least=1, at_most=MOST_SLICE_BITS)
        for width in slice_bits
    ]
    if not widths or sum(widths) > bits:
        raise ArgumentError(
            Said("slice_bits"),
            f" has {len(widths)} widths with {sum(widths)} bits together; expected 1 to {bits} "
            "bits, which is what a signature has",
        )
    return tuple(widths)


def shown_cut(slice_bits: Cut) -> str:
    """Return widths as they are written: `16`, or `32 + 31`."""
    if isinstance(slice_bits, int):
        return str(slice_bits)
    return " + ".join(str(width) for width in slice_bits)


def directory_bits(rows: int, bits: int, slice_bits: Cut) -> int | None:
    """Return how many bits of a value tell where its list is; None if lists are not worthwhile.

    All bits tell it unless most lists would be empty. Then values are searched for among those
    with the same highest bits, so that memory depends on the number of rows alone.
    """
    widths = _native.slice_widths(bits, slice_bits)
    lists = sum(1 << width for width in widths)
    if 4 * lists <= max(_FREE_LIST_BYTES, 4 * _LISTS_PER_ROW * rows * len(widths)):
        return MOST_SLICE_BITS
    return rows.bit_length() if rows >= _LEAST_SEARCHED else None


class Lists(NamedTuple):
    """Slice lists, as the core builds and reads them."""

    offsets: NDArray[Any]  # start of each list
    postings: NDArray[Any]  # rows of all lists
    sketches: NDArray[np.uint16] | None
    """16 more bits of each of these rows, for signatures of 64 to 127 bits."""
    values: NDArray[np.uint32] | None
    """Value of the slice of each of these rows, if it is searched for."""
    directory: int
    """Highest bits of a value that tell its place in `offsets`."""

    @classmethod
    def empty(cls, rows: int, bits: int, slice_bits: Cut, directory: int, wide: bool) -> Lists:
        """Return uninitialized arrays of the right length."""
        widths = _native.slice_widths(bits, slice_bits)
        dtype = np.uint64 if wide or number_bytes(rows) == 8 else np.uint32
        size = rows * len(widths)
        return cls(
            np.empty(sum(1 << min(width, directory) for width in widths), dtype),
            np.empty(size, dtype),
            np.empty(size, np.uint16) if _native.has_sketches(bits) else None,
            np.empty(size, np.uint32) if directory < max(widths) else None,
            directory,
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays, by name."""
        arrays = {name: getattr(self, name) for name in ("offsets", "postings")}
        beside = {"sketches": self.sketches, "values": self.values}
        return arrays | {name: array for name, array in beside.items() if array is not None}
