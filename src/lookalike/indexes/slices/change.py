"""Segments with more signatures, or fewer: what `add` and `remove` make of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lookalike.errors import ArgumentError
from lookalike.indexes.rows import Rows
from lookalike.indexes.slices.segments import BUFFER, Segment, extended, merged_segments

__all__ = ["Segments", "numbered", "refuse_known", "with_rows", "without_ids"]

Segments = tuple[Segment, ...]


def refuse_known(segments: Segments, ids: NDArray[np.int64]) -> None:
    """Raise if one of the ids is in use."""
    for segment in segments:
        known = segment.find(ids) >= 0
        if known.any():
            raise ArgumentError(f"the id {ids[known][0]} is in the index already; remove it first")


def numbered(new: Rows, start: int) -> Rows:
    """Return the rows with ids from `start` on."""
    if start + len(new) > 2**63:
        raise ArgumentError(
            f"the largest id so far is {start - 1}, and int64 ends at 2**63 - 1; "
            "give the new signatures ids of your own"
        )
    return Rows(new.signatures, np.arange(start, start + len(new), dtype=np.int64))


def with_rows(segments: Segments, new: Rows, slice_bits: int, threads: int) -> Segments:
    """Return the segments with new signatures in the last one, or in one of their own."""
    changed = list(segments)
    last = changed[-1]
    if len(changed) > 1 and last.lists is None and len(last) + len(new) <= BUFFER:
        changed[-1] = extended(last, new)
    elif len(new) <= BUFFER // 2:
        changed.append(extended(Segment(Rows(new.signatures[:0]), slice_bits), new))
    else:
        own = Rows(new.signatures.copy(), new.all_ids().copy(), new.ascending)
        changed.append(Segment.build(own, slice_bits, threads))
    if len(changed[-1]) >= BUFFER and changed[-1].lists is None:
        changed[-1] = merged_segments(changed[-1:], threads)
    # Merge while the last two are of similar size, so that their number stays logarithmic.
    while len(changed) > 2 and 2 * len(changed[-1]) >= len(changed[-2]) > BUFFER // 2:
        changed[-2:] = [merged_segments(changed[-2:], threads)]
    return tuple(changed)


def without_ids(segments: Segments, ids: NDArray[np.int64]) -> Segments:
    """Return the segments with these ids marked as removed; raises if one is not there."""
    changed = list(segments)
    missing = np.ones(len(ids), bool)
    for number, segment in enumerate(changed):
        positions = segment.find(ids)
        found = positions >= 0
        missing &= ~found
        if found.any():
            changed[number] = segment.remove(positions[found])
    if missing.any():
        raise ArgumentError(f"the id {ids[missing][0]} is not in the index; nothing was removed")
    return tuple(changed)
