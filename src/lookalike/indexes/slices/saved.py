"""What a file says of an index of slices, checked before it is believed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from lookalike.errors import CorruptIndexError
from lookalike.indexes.slices.change import Segments
from lookalike.indexes.slices.segments import Segment
from lookalike.indexes.slices.width import MOST_SLICE_BITS

if TYPE_CHECKING:
    from lookalike.storage import Container

__all__ = ["Saved", "described", "saved_segments"]


class Saved(NamedTuple):
    """All that an index is restored from."""

    bits: int
    slice_bits: int
    next_id: int
    own_ids: bool
    segments: Segments


def described(kind: str, slice_bits: int, bits: int, next_id: int, own_ids: bool) -> dict[str, Any]:
    """Return what a file says of an index beside its segments."""
    return {
        "index": kind,
        "slice_bits": slice_bits,
        "bits": bits,
        "next_id": next_id,
        "own_ids": own_ids,
    }


def saved_segments(container: Container) -> Saved:
    """Return what an index of slices has saved, its arrays mapped; raise if it cannot be so."""
    try:
        meta = container.meta
        bits, slice_bits = int(meta["bits"]), int(meta["slice_bits"])
        next_id, own_ids = int(meta["next_id"]), bool(meta["own_ids"])
        if not 1 <= slice_bits <= MOST_SLICE_BITS or not 8 <= bits < 2**16:
            raise ValueError(f"slices of {slice_bits} of {bits} bits")
        if not 0 <= next_id <= 2**63:
            raise ValueError(f"the next id is {next_id}")
        segments = tuple(
            Segment.restored(container, f"{number}.", slice_bits, dict(segment))
            for number, segment in enumerate(meta["segments"])
        )
        if not segments or any(segment.rows.bits != bits for segment in segments):
            raise ValueError("segments of another width, or none")
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise CorruptIndexError(
            f"{container.path}: the description of the slices cannot be used: {error!r}"
        ) from error
    return Saved(bits, slice_bits, next_id, own_ids, segments)
