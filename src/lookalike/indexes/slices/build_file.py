"""Slice indexes that are built into a file, for lists that do not fit into memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.indexes.rows import Rows
from lookalike.indexes.slices.segments import Lists, Segment
from lookalike.storage import new_container

__all__ = ["write_with_lists"]


def write_with_lists(
    path: str | os.PathLike[str],
    meta: dict[str, Any],
    rows: Rows,
    slice_bits: int,
    memory: int,
    threads: int,
) -> None:
    """Write rows and their slice lists to a file, with `memory` bytes of lists at a time.

    Beside those there are only the offsets, and while filling, as much again for the lists at hand.
    Signatures are read once to count, and once for every `memory` bytes of lists.
    """
    postings = len(rows) * len(_native.slice_widths(rows.bits, slice_bits))
    empty = Lists.empty(0, rows.bits, slice_bits, wide=len(rows) >= 2**32)
    offsets = empty.offsets
    _native.count_lists(rows.signatures, slice_bits, threads, offsets)
    lists = {"offsets": offsets, "postings": empty.postings, "sketches": empty.sketches}
    arrays = Segment(rows, slice_bits).arrays("0.")
    layout = {name: (array.dtype, array.shape) for name, array in arrays.items()}
    layout |= {
        f"0.{name}": (array.dtype, (len(offsets) if name == "offsets" else postings,))
        for name, array in lists.items()
        if array is not None
    }
    posting_bytes = empty.postings.itemsize + (0 if empty.sketches is None else 2)
    with new_container(path, {**meta, "segments": [_described(rows, empty)]}, layout) as file:
        for name, array in arrays.items():
            file.write(name, 0, array)
        file.write("0.offsets", 0, offsets)
        at_once = max(1, memory // posting_bytes)
        for first, end, start, size in _pieces(offsets, len(rows), rows.bits, slice_bits, at_once):
            filled = np.empty(size, empty.postings.dtype)
            sketches = None if empty.sketches is None else np.empty(size, np.uint16)
            _native.fill_lists(
                rows.signatures, slice_bits, threads, offsets, first, end, filled, sketches
            )
            file.write("0.postings", start, filled)
            if sketches is not None:
                file.write("0.sketches", start, sketches)
            del filled, sketches  # before there are the next


def _described(rows: Rows, lists: Lists) -> dict[str, Any]:
    return Segment(rows, 1, lists=lists).meta()


def _pieces(
    offsets: NDArray[Any], rows: int, bits: int, slice_bits: int, at_once: int
) -> Iterator[tuple[int, int, int, int]]:
    """Cut the lists into runs of at most so many postings, or one list if that is longer.

    Yields the first list, the one behind the last, the place of the first posting, and how many.
    """
    widths = _native.slice_widths(bits, slice_bits)
    before = np.concatenate([[0], np.cumsum([1 << width for width in widths])]).tolist()

    def place(number: int) -> int:
        """Return where a list begins among all postings."""
        if number == before[-1]:
            return rows * len(widths)
        position = int(np.searchsorted(before, number, side="right")) - 1
        return position * rows + int(offsets[number])

    first = 0
    while first < before[-1]:
        start = place(first)
        target = start + at_once
        if target >= rows * len(widths):
            end = before[-1]
        else:
            # The last list that begins no later than the target; it is left for the next piece.
            position = target // rows
            begins = offsets[before[position] : before[position + 1]]
            last = np.searchsorted(begins, np.asarray(target % rows, begins.dtype), side="right")
            end = max(before[position] + int(last) - 1, first + 1)
        yield first, end, start, place(end) - start
        first = end
