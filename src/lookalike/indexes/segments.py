"""Segments: rows that are searched, added to and removed from together.

A segment never changes: adding and removing return new segments. A segment has slice lists, or is
scanned if it is small or its index has no slices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.errors import ArgumentError, CorruptIndexError
from lookalike.indexes.filters import Among, Chosen
from lookalike.indexes.results import NO_LIMIT, Matches, Neighbors, as_int64, padded
from lookalike.indexes.rows import Rows, Signatures, find_ids
from lookalike.indexes.slices.lists import MOST_SLICE_BITS, Cut, Lists, directory_bits
from lookalike.storage.container import Container

if TYPE_CHECKING:
    from lookalike.indexes.base import GrowingIndex, Index

BUFFER = 2048  # maximum number of rows of a segment that is still added to
_COPIED, _COPIED_SHARE = 4096, 64  # the most chosen rows that are copied: a number, or a share


@dataclass(eq=False)
class Segment:
    """Rows, the rows of them that were removed, and their slice lists."""

    rows: Rows
    slice_bits: Cut
    removed: NDArray[np.uint8] | None = None  # a byte per row: 1 if it was removed
    lists: Lists | None = None
    removals: int = 0
    store: tuple[Signatures, NDArray[np.int64]] | None = None
    """Larger arrays that start with the rows and have room for more."""

    @classmethod
    def build(cls, rows: Rows, slice_bits: Cut, threads: int, wide: bool = False) -> Segment:
        """Return a segment, with lists if they are worthwhile. `wide` forces 64-bit lists."""
        segment = cls(rows, slice_bits)
        directory = directory_bits(len(rows), rows.bits, slice_bits)
        if directory is not None:
            segment.lists = Lists.empty(len(rows), rows.bits, slice_bits, directory, wide)
            _native.build_lists(rows.signatures, slice_bits, threads, *segment.lists)
        return segment

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def alive(self) -> int:
        """Number of rows that were not removed."""
        return len(self) - self.removals

    @cached_property
    def native(self) -> _native.Segment:
        """The segment for the core."""
        rows = self.rows
        segment = _native.Segment(
            rows.signatures, rows.ids, rows.ascending, self.removed, self.alive
        )
        if self.lists:
            segment.use_lists(self.slice_bits, *self.lists)
        return segment

    @cached_property
    def _order(self) -> NDArray[np.int64] | None:
        """Positions by ascending id, if ids do not ascend; a reused id has several."""
        return None if self.rows.ascending else np.argsort(self.rows.all_ids(), kind="stable")

    def find(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the position of each id, or -1 if it is missing or removed."""
        return find_ids(ids, self.rows.ids, len(self), self._order, self.removed)

    def remove(self, positions: NDArray[np.int64]) -> Segment:
        """Return the segment without these rows."""
        removed = np.zeros(len(self), np.uint8) if self.removed is None else self.removed.copy()
        removed[positions] = 1
        segment = replace(self, removed=removed, removals=self.removals + len(positions))
        if "_order" in vars(self):
            vars(segment)["_order"] = self._order  # the rows are the same
        return segment

    def living(self) -> Rows:
        """Return the rows that were not removed."""
        if self.removed is None:
            return self.rows
        return self.rows.take(np.flatnonzero(self.removed == 0))

    def places(self, chosen: Chosen) -> NDArray[np.int64]:
        """Return the positions of the chosen rows that were not removed, ascending."""
        found = self.find(chosen.listed())
        return np.sort(found[found >= 0])

    def only(self, chosen: Chosen) -> Segment:
        """Return the segment with all rows removed that are not chosen."""
        removed = np.ones(len(self), np.uint8)
        if chosen.mask is None:
            removed[self.places(chosen)] = 0
        elif self.rows.ids is None:
            np.logical_not(chosen.mask[: len(self)], out=removed[: len(chosen.mask)], dtype=bool)
        else:
            np.logical_not(chosen.has(self.rows.ids), out=removed, dtype=bool)
        if self.removed is not None:
            removed |= self.removed
        return Segment(self.rows, self.slice_bits, removed, self.lists, int(removed.sum()))

    def arrays(self, prefix: str) -> dict[str, NDArray[Any]]:
        """Return the arrays to save, by name."""
        arrays = self.rows.arrays(prefix)
        if self.removed is not None:
            arrays[f"{prefix}removed"] = self.removed
        for name, array in self.lists.arrays().items() if self.lists else ():
            arrays[f"{prefix}{name}"] = array
        return arrays

    def meta(self) -> dict[str, Any]:
        """Return the metadata to save."""
        wide = self.lists is not None and self.lists.offsets.dtype == np.uint64
        searched = self.lists is not None and self.lists.values is not None
        return {
            "ascending_ids": self.rows.ascending,
            "removals": self.removals,
            "lists": "wide" if wide else "narrow" if self.lists else None,
            **({"directory": self.lists.directory} if self.lists and searched else {}),
        }

    @classmethod
    def restored(
        cls, container: Container, prefix: str, slice_bits: Cut, meta: dict[str, Any]
    ) -> Segment:
        """Return the segment that `arrays` and `meta` saved, memory-mapped."""
        rows = Rows.restored(container, meta.get("ascending_ids") is not False, prefix)
        segment = cls(rows, slice_bits, removals=int(meta.get("removals", 0)))
        if f"{prefix}removed" in container:
            segment.removed = container.array(f"{prefix}removed", np.uint8, 1)
        if meta.get("lists"):
            dtype = np.uint64 if meta["lists"] == "wide" else np.uint32
            sketches, values = f"{prefix}sketches", f"{prefix}values"
            directory = int(meta.get("directory", MOST_SLICE_BITS))
            if not 1 <= directory <= MOST_SLICE_BITS:
                raise ValueError(f"a directory of {directory} bits")
            segment.lists = Lists(
                container.array(f"{prefix}offsets", dtype, 1),
                container.array(f"{prefix}postings", dtype, 1),
                container.array(sketches, np.uint16, 1) if sketches in container else None,
                container.array(values, np.uint32, 1) if values in container else None,
                directory,
            )
        removed = 0 if segment.removed is None else len(segment.removed)
        if (segment.removed is not None and removed != len(rows)) or not (
            0 <= segment.removals <= removed
        ):
            raise CorruptIndexError(
                f"{container.path} holds {len(rows)} signatures and marks {segment.removals} of "
                f"{removed} as removed; it is damaged"
            )
        try:
            _ = segment.native
        except _native.CorruptLists:
            raise CorruptIndexError(
                f"{container.path} holds slice lists of the wrong length; it is damaged"
            ) from None
        return segment


def only_among(segments: Segments, among: Among, index: Index | GrowingIndex) -> Segments:
    """Return the segments with the chosen rows only; few rows are copied."""
    if among is None:
        return segments
    most = max(_COPIED, sum(segment.alive for segment in segments) // _COPIED_SHARE)
    return chosen_of(segments, Chosen.of(among, index), most)


def chosen_of(segments: Segments, chosen: Chosen | None, most: int) -> Segments:
    """Return the chosen rows only: at most `most` copies, or segments without the other rows."""
    if chosen is None:
        return segments
    if len(chosen) > most:
        return tuple(segment.only(chosen) for segment in segments)
    copied = [segment.rows.take(segment.places(chosen)) for segment in segments]
    return (Segment(_joined(copied), segments[0].slice_bits),)


def merged_segments(segments: Sequence[Segment], threads: int) -> Segment:
    """Return one segment with the rows of all segments, in order, without removed rows."""
    slice_bits = segments[0].slice_bits
    parts = [segment.living() for segment in segments]
    rows = _joined(parts)
    whole = all(segment.lists and segment.removed is None for segment in segments)
    kinds = {
        (part.lists.offsets.dtype, part.lists.sketches is None)
        for part in segments
        if part.lists and part.lists.values is None
    }
    directory = directory_bits(len(rows), rows.bits, slice_bits)
    whole = whole and all(part.lists and part.lists.values is None for part in segments)
    if not (whole and len(kinds) == 1 and directory == MOST_SLICE_BITS):
        return Segment.build(rows, slice_bits, threads)
    # Lists of parts are laid end to end, which is quicker than sorting again.
    dtype, plain = kinds.pop()
    lists = Lists.empty(len(rows), rows.bits, slice_bits, directory, dtype == np.uint64)
    if plain:
        lists = lists._replace(sketches=None)
    try:
        _native.merge_lists([part.native for part in segments], slice_bits, threads, *lists[:3])
    except _native.CorruptLists:
        raise CorruptIndexError(
            "slice lists point outside of the collection: a file of the index is damaged"
        ) from None
    return Segment(rows, slice_bits, lists=lists)


def _joined(parts: list[Rows]) -> Rows:
    signatures = np.concatenate([part.signatures for part in parts])
    if len(parts) == 1 and parts[0].ids is None:
        return Rows(signatures)
    ids = np.concatenate([part.all_ids() for part in parts])
    ascending = bool((ids[1:] > ids[:-1]).all())
    return Rows(signatures, ids, ascending)


def extended(segment: Segment, new: Rows) -> Segment:
    """Return the segment with more rows, in its spare room."""
    count, total = len(segment), len(segment) + len(new)
    store = segment.store
    if store is None:
        old, ids = segment.rows.signatures, segment.rows.all_ids()
        store = np.empty((BUFFER, old.shape[1]), np.uint8), np.empty(BUFFER, np.int64)
        store[0][:count], store[1][:count] = old, ids
    store[0][count:total], store[1][count:total] = new.signatures, new.all_ids()
    fresh = store[1][max(0, count - 1) : total]  # with the last old one
    ascending = segment.rows.ascending and bool((fresh[1:] > fresh[:-1]).all())
    rows = Rows(store[0][:total], store[1][:total], ascending)
    removed = segment.removed
    if removed is not None:
        removed = np.concatenate([removed, np.zeros(len(new), np.uint8)])
    return Segment(rows, segment.slice_bits, removed, None, segment.removals, store)


def without_room(segments: Segments) -> Segments:
    """Return the segments without spare room, for a copy of the index."""
    return tuple(replace(segment, store=None) for segment in segments)


def renumbered(segment: Segment, shift: int) -> Segment:
    """Return the segment with `shift` added to its ids."""
    ids = segment.rows.all_ids() + shift
    rows = Rows(segment.rows.signatures, ids, segment.rows.ascending)
    return replace(segment, rows=rows, store=None)


Segments = tuple[Segment, ...]


def refuse_known(segments: Segments, ids: NDArray[np.int64]) -> None:
    """Raise if one of the ids is in use."""
    for segment in segments:
        known = segment.find(ids) >= 0
        if known.any():
            raise ArgumentError(f"the id {ids[known][0]} is in the index already; remove it first")


def appended(segments: Segments, new: Rows, made: Callable[[Rows], Segment]) -> list[Segment]:
    """Return the segments with new rows, in the last segment or in a new one."""
    changed = list(segments)
    last = changed[-1]
    if len(changed) > 1 and last.lists is None and len(last) + len(new) <= BUFFER:
        changed[-1] = extended(last, new)
    elif len(new) <= BUFFER // 2:
        changed.append(extended(Segment(Rows(new.signatures[:0]), last.slice_bits), new))
    else:
        changed.append(made(Rows(new.signatures.copy(), new.all_ids().copy(), new.ascending)))
    return changed


def with_rows(segments: Segments, new: Rows, slice_bits: Cut, threads: int) -> Segments:
    """Return the segments with new rows, with lists if they are worthwhile."""
    changed = appended(segments, new, lambda rows: Segment.build(rows, slice_bits, threads))
    if len(changed[-1]) >= BUFFER and changed[-1].lists is None:
        changed[-1] = merged_segments(changed[-1:], threads)
    # Merge while the last two are of similar size, so that their number stays logarithmic.
    while len(changed) > 2 and 2 * len(changed[-1]) >= len(changed[-2]) > BUFFER // 2:
        changed[-2:] = [merged_segments(changed[-2:], threads)]
    return tuple(changed)


def without_ids(segments: Segments, ids: NDArray[np.int64]) -> Segments:
    """Return the segments with these ids removed; raise if an id is missing."""
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


def scan_nearest(
    segment: Segment, queries: Signatures, k: int, threads: int, masks: Signatures | None = None
) -> Neighbors:
    """Return the k nearest of each query, over the bits of its mask if there are masks; exact."""
    rows, found = segment.rows, min(k, segment.alive)
    stored = rows.signatures, rows.ids, rows.ascending
    ids = np.empty((len(queries), found), np.int64)
    distances = np.empty((len(queries), found), np.int32)
    if masks is None:
        _native.scan_nearest(*stored, queries, found, threads, ids, distances, segment.removed)
        return Neighbors(padded(ids, k), padded(distances, k), exact=True)
    unmasked = np.empty_like(distances)
    _native.scan_nearest_masked(
        *stored, queries, masks, found, threads, ids, distances, unmasked, segment.removed
    )
    ids, distances, unmasked = (padded(array, k) for array in (ids, distances, unmasked))
    return Neighbors(ids, distances, exact=True, unmasked=unmasked)


def scan_within(
    segment: Segment,
    queries: Signatures,
    radius: int,
    limit: int,
    threads: int,
    masks: Signatures | None = None,
) -> Matches:
    """Return all matches within the radius; exact. Raise `TooManyResults` beyond the limit."""
    rows, most, unmasked = segment.rows, min(limit, NO_LIMIT), None
    stored = rows.signatures, rows.ids, rows.ascending
    if masks is None:
        offsets, ids, distances = _native.scan_within(
            *stored, queries, radius, most, threads, segment.removed
        )
    else:
        offsets, ids, distances, unmasked = _native.scan_within_masked(
            *stored, queries, masks, radius, most, threads, segment.removed
        )
    return Matches(as_int64(offsets), as_int64(ids), distances, True, unmasked=unmasked)
