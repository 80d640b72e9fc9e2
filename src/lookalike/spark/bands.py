"""Step 4, propose, by bands of MinHash signatures: `lookalike.indexes.bands`, spread over workers.

The rule is that of the local job (`native/pairs/bands.hpp`): all documents that share a band are
pairs, unless they are more than `LARGEST_GROUP`; then each is paired with the 16 of best rank and
the 16 that follow it, if it is the first band that the two share. The key of a band and a position,
16 bytes, go to where equal keys meet. A partition that has more than `LARGEST_GROUP` of a key sends
their number alone, so that no key is too much for one task. Documents of large groups are then
sorted by rank over all workers, cut into blocks, and paired block by block.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.corpora.base import pa
from lookalike.dedup.pairs import Ints, differing
from lookalike.dedup.propose import LARGEST_GROUP
from lookalike.indexes.bands import LEADERS, BandLayout
from lookalike.signatures.minhash import VALUE_BYTES
from lookalike.spark.packed import (
    Batches,
    gathered,
    packed,
    packed_by_bucket,
    packed_row,
    rows_of,
    runs,
    steps,
    table_of,
)
from lookalike.spark.positions import packed_positions
from lookalike.spark.signing import Chunks

BAND_ENTRY = np.dtype([("key", "<u4"), ("band", "<u4"), ("position", "<i8")])
"""A negative position is a number of rows, of a key that is large."""

PAIR = np.dtype([("left", "<i8"), ("right", "<i8")])
LARGE_KEY = np.dtype([("band", "<u8"), ("key", "<u8"), ("size", "<i8")])

PAIRS, LARGE, NEEDED = 0, 1, 2

_DOCUMENTS_AT_A_TIME = 1 << 17
_LargeRows = tuple[Ints, NDArray[np.uint32], Ints]
_NO_KEYS = np.empty(0, np.uint32), np.zeros(1, np.int64)


def band_keys(signatures: NDArray[np.uint8], layout: BandLayout) -> NDArray[np.uint32]:
    """Return the keys of bands: that of band i of a row is at [i, row]."""
    keys = np.empty((layout.bands, len(signatures)), np.uint32)
    rows = np.ascontiguousarray(signatures)
    _native.band_keys(rows, VALUE_BYTES * layout.rows, 0, keys)
    return keys


def send_bands(layout: BandLayout, chunks: Chunks, buckets: int, batches: Batches) -> Iterator[Any]:
    """Send the keys of bands to where equal ones meet."""
    positions: list[Ints] = []
    keys: list[NDArray[np.uint32]] = []
    for chunk, compared in chunks.compared(batches):
        positions.append(chunk.positions[compared])
        keys.append(band_keys(chunk.array("signatures", np.uint8)[compared], layout))
        if sum(map(len, positions)) >= _DOCUMENTS_AT_A_TIME:
            yield from band_entries(positions, keys, buckets)
            positions, keys = [], []
    if positions:
        yield from band_entries(positions, keys, buckets)


def band_entries(
    positions: list[Ints], keys: list[NDArray[np.uint32]], buckets: int
) -> Iterator[Any]:
    """Yield the keys of bands of documents as packed rows, each in its bucket."""
    rows, columns = np.concatenate(positions), np.concatenate(keys, axis=1)
    large = [_large_rows(column) for column in columns]
    if any(one is not None for one in large):
        yield from marked_entries(rows, columns, large, buckets)
        return
    entries, begins = np.empty(columns.size, BAND_ENTRY), np.empty(buckets + 1, np.int64)
    words = entries.view(np.uint64).reshape(-1, 2)
    _native.deal_bands(np.ascontiguousarray(columns), rows, buckets, words, begins)
    yield from packed_by_bucket(entries, np.arange(buckets), begins, PAIRS)


def marked_entries(
    rows: Ints, columns: NDArray[np.uint32], large: list[_LargeRows | None], buckets: int
) -> Iterator[Any]:
    """Yield the entries of documents; those of a large key as one, with their number."""
    parts = []
    for band, (column, found) in enumerate(zip(columns, large, strict=True)):
        alone = np.ones(len(rows), bool)
        if found is not None:
            alone[found[0]] = False
            marks = np.empty(len(found[1]), BAND_ENTRY)
            marks["key"], marks["band"], marks["position"] = found[1], band, -found[2]
            parts.append(marks)
        entries = np.empty(int(alone.sum()), BAND_ENTRY)
        entries["key"], entries["band"], entries["position"] = column[alone], band, rows[alone]
        parts.append(entries)
    entries = np.concatenate(parts)
    # Where a band meets, as in `_native.deal_bands`.
    mixed = entries["key"] + entries["band"].astype(np.uint64) * np.uint64(_native.BAND_STEP)
    yield from packed(entries, (mixed % np.uint64(buckets)).astype(np.int32), PAIRS)


def _large_rows(keys: NDArray[np.uint32]) -> _LargeRows | None:
    """Return the rows of keys that more than `LARGEST_GROUP` have, these keys, and their counts."""
    rows, offsets = _native.band_groups(keys[None, :], 0)
    sizes = np.diff(offsets)
    large = np.flatnonzero(sizes > LARGEST_GROUP)
    if not len(large):
        return None
    members = np.repeat(sizes > LARGEST_GROUP, sizes)
    return rows[members].astype(np.int64), keys[rows[offsets[large]]], sizes[large]


def meet_bands(buckets: int, old: int, batches: Batches) -> Iterator[Any]:
    """Pair the rows of groups, except two of the first `old`, and tell of large groups."""
    entries = gathered(batches, BAND_ENTRY).get(PAIRS)
    if entries is None:
        return
    bands = entries["band"].astype(np.uint16)
    order = np.argsort(bands, kind="stable")
    whole = entries.view(np.complex128)  # 16 bytes are copied as one number
    for begin, end in runs(bands[order].astype(np.int64)):
        some = whole[order[begin:end]].view(BAND_ENTRY)
        yield from _meet_band(int(some["band"][0]), some, buckets, old)


def _meet_band(band: int, entries: NDArray[Any], buckets: int, old: int) -> Iterator[Any]:
    keys, positions = (np.ascontiguousarray(entries[name]) for name in ("key", "position"))
    counted = positions < 0
    if counted.any():
        marked, places = np.unique(keys[counted], return_inverse=True)
        sizes = np.bincount(places, -positions[counted]).astype(np.int64)
        at = np.minimum(np.searchsorted(marked, keys), len(marked) - 1)
        with_marked = marked[at] == keys
        sizes += np.bincount(at[with_marked & ~counted], minlength=len(marked))
        yield from _tell(band, marked, sizes)
        keys, positions = keys[~with_marked], positions[~with_marked]
    rows, offsets = _native.band_groups(keys[None, :], 0)
    sizes = np.diff(offsets)
    large = sizes > LARGEST_GROUP
    if large.any():
        yield from _tell(band, keys[rows[offsets[:-1][large]]], sizes[large])
        rows = rows[np.repeat(~large, sizes)]
        offsets = np.concatenate([[0], np.cumsum(sizes[~large])])
    one, two = _native.group_pairs(keys[None, :], *_NO_KEYS, 0, rows, offsets, LARGEST_GROUP, 0, 1)
    one, two = positions[one], positions[two]
    if old:
        new = np.maximum(one, two) >= old
        one, two = one[new], two[new]
    yield from send_pairs(one, two, buckets)


def _tell(band: int, keys: NDArray[np.uint32], sizes: Ints) -> Iterator[Any]:
    told = np.empty(len(keys), LARGE_KEY)
    told["band"], told["key"], told["size"] = band, keys, sizes
    yield from packed(told, np.zeros(len(told), np.int64), LARGE)


def send_pairs(one: Ints, two: Ints, buckets: int) -> Iterator[Any]:
    """Yield pairs, each where those of its left document meet."""
    pairs = np.empty(len(one), PAIR)
    pairs["left"], pairs["right"] = np.minimum(one, two), np.maximum(one, two)
    # Neighboring positions are similar, so a hash spreads them.
    mixed = pairs["left"].astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(33)
    yield from packed(pairs, (mixed % np.uint64(buckets)).astype(np.int32), PAIRS)


def distinct_pairs(buckets: int, batches: Batches) -> Iterator[Any]:
    """Yield the pairs of a bucket, each once, and what they tell; large keys as they come."""
    found = gathered(batches, {PAIRS: PAIR, LARGE: LARGE_KEY, NEEDED: np.uint8})
    large = found.get(LARGE, np.empty(0, LARGE_KEY))
    yield from packed(large, np.zeros(len(large), np.int64), LARGE)
    pairs = found.get(PAIRS, np.empty(0, PAIR))
    yield from told_pairs(pairs[first_pairs(pairs["left"], pairs["right"])], buckets)


def first_pairs(left: Ints, right: Ints) -> Ints:
    """Return where each different pair is first, in the order of pairs."""
    order = np.lexsort((right, left))
    left, right = left[order], right[order]
    return order[differing(left, right)]


def told_pairs(pairs: NDArray[Any], buckets: int) -> Iterator[Any]:
    """Yield pairs as packed rows, how many there are, and which documents they need."""
    if len(pairs):
        yield from send_pairs(pairs["left"], pairs["right"], buckets)
        needed = packed_positions(np.concatenate([pairs["left"], pairs["right"]]))
        yield packed_row(NEEDED, np.int64(len(pairs)).tobytes() + needed)


def pack_pairs(batches: Batches) -> Iterator[Any]:
    """Yield rows of `left` and `right` as `told_pairs` does."""
    table = table_of(batches)
    if table is not None:
        pairs = np.empty(len(table), PAIR)
        pairs["left"], pairs["right"] = table["left"].to_numpy(), table["right"].to_numpy()
        yield from told_pairs(pairs, 1)


BLOCK = 4096
"""Rows of a large group that are paired in one go."""

LARGE_ROWS = "group int, value long, best long, position long, keys binary"
NUMBERED = "partition int, group int, nth long, position long, keys binary"
PLACED = "bucket int, group int, block int, place long, position long, keys binary"


class LargeGroups:
    """Keys of bands that more than `LARGEST_GROUP` documents have, by band and key."""

    def __init__(self, told: NDArray[Any]) -> None:
        order = np.lexsort((told["key"], told["band"]))
        self.bands = told["band"][order].astype(np.int64)
        self.keys = told["key"][order].astype(np.uint32)
        self.sizes = told["size"][order]

    def __len__(self) -> int:
        return len(self.keys)

    def members(self, keys: NDArray[np.uint32]) -> tuple[Ints, Ints]:
        """Return which group which row belongs to, of rows with these keys."""
        groups, rows = [], []
        for band in np.unique(self.bands).tolist():
            begin, end = np.searchsorted(self.bands, [band, band + 1])
            known = self.keys[begin:end]
            at = np.minimum(np.searchsorted(known, keys[band]), len(known) - 1)
            there = np.flatnonzero(known[at] == keys[band])
            rows.append(there)
            groups.append(begin + at[there])
        return np.concatenate(groups), np.concatenate(rows)


def large_rows(layout: BandLayout, chunks: Chunks, large: Any, batches: Batches) -> Iterator[Any]:
    """Yield the documents of large groups, with the keys of all earlier bands."""
    groups: LargeGroups = large.value
    for chunk, compared in chunks.compared(batches):
        keys = band_keys(chunk.array("signatures", np.uint8)[compared], layout)
        group, row = groups.members(keys)
        if len(group):
            value, position = (part[compared[row]] for part in (chunk.values, chunk.positions))
            before = [
                keys[: groups.bands[one], at].tobytes()
                for one, at in zip(group.tolist(), row.tolist(), strict=True)
            ]
            yield rows_of(
                LARGE_ROWS, group=group, value=value, best=position, position=position, keys=before
            )


def number_rows(batches: Batches) -> Iterator[Any]:
    """Yield the sorted rows of a partition with their place among those of their group here."""
    last, count = -1, 0
    for batch in batches:
        group = batch.column("group").to_numpy()
        begins = np.flatnonzero(np.diff(group, prepend=-1))
        places = steps(np.diff(begins, append=len(group)))
        if group[0] == last:
            places[group == last] += count
        last, count = int(group[-1]), int(places[-1]) + 1
        same = {name: batch.column(name) for name in ("partition", "group", "position", "keys")}
        yield rows_of(NUMBERED, nth=places, **same)


def send_blocks(places: Any, buckets: int, batches: Batches) -> Iterator[Any]:
    """Send rows to the blocks that they are paired in.

    These are their own; the one before, for the first rows of a block; and all that follow, for the
    first rows of all, or of the new ones.

    `places` has the rows of a group before each partition, and the sizes and old rows of groups.
    """
    before, sizes, olds = places.value
    for batch in batches:
        group = batch.column("group").to_numpy()
        parts = batch.column("partition").to_numpy()
        place = np.array(batch.column("nth").to_numpy())
        for begin, end in runs(parts.astype(np.int64) << 32 | group):
            place[begin:end] += before[int(parts[begin]), int(group[begin])]
        block, last = place // BLOCK, (sizes[group] - 1) // BLOCK
        follows = np.flatnonzero((block > 0) & (place % BLOCK < LEADERS))
        among_new = place - olds[group]
        leading = (place < LEADERS) | ((among_new >= 0) & (among_new < LEADERS))
        leads = np.flatnonzero(leading & (last > block))
        later = (last - block)[leads]
        again = np.repeat(leads, later)
        rows = np.concatenate([np.arange(len(group)), follows, again])
        blocks = np.concatenate([block, block[follows] - 1, block[again] + steps(later) + 1])
        bucket = (group[rows].astype(np.int64) * 31 + blocks) % buckets
        taken = batch.select(["group", "position", "keys"]).take(pa.array(rows))
        same = {name: taken.column(name) for name in taken.schema.names}
        yield rows_of(PLACED, bucket=bucket, block=blocks, place=place[rows], **same)


def pair_blocks(bands: int, large: Any, buckets: int, old: int, batches: Batches) -> Iterator[Any]:
    """Pair the rows of blocks by the rule of the core; no two of the first `old` are a pair."""
    table = table_of(batches)
    if table is None:
        return
    first_new = 0
    if old:  # the core tells old rows from new ones by their numbers
        is_new = table["position"].to_numpy() >= old
        first_new = int((~is_new).sum())
        table = table.take(pa.array(np.argsort(is_new, kind="stable")))
    group, block, place, position = (
        table[name].to_numpy().astype(np.int64) for name in ("group", "block", "place", "position")
    )
    band_of = large.value.bands[group]
    keys = np.zeros((bands, len(group)), np.uint32)
    for row, value in enumerate(table["keys"]):
        known = np.frombuffer(value.as_buffer(), np.uint32)
        keys[: len(known), row] = known
    order = np.lexsort((place, block, group, band_of))
    ends = np.diff(group[order], append=-1) | np.diff(block[order], append=-1)
    bounds = np.concatenate([[0], np.flatnonzero(ends) + 1])
    band_of_block = band_of[order[bounds[:-1]]]
    for begin, end in runs(band_of_block):
        band, offsets = int(band_of_block[begin]), bounds[begin : end + 1]
        one, two = _native.group_pairs(
            keys,
            np.empty(0, np.uint32),
            np.zeros(band + 1, np.int64),
            band,
            order[offsets[0] : offsets[-1]].astype(np.uint32),
            offsets - offsets[0],
            0,  # a block is part of a large group, however few rows it has
            first_new,
            1,
        )
        yield from send_pairs(position[one], position[two], buckets)
