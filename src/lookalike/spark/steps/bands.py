"""Step 4, propose, by bands of MinHash signatures: `lookalike.indexes.bands`, spread over workers.

The rule is that of the local job (`native/pairs/bands.hpp`): of those that share a band all are
pairs, unless they are more than `LARGEST_GROUP`; then each is one with the 16 of best rank and
the 16 that follow it, if it is the first band that the two share. What goes to where a band meets
is its key and the position, 16 bytes. Where a partition alone has more than `LARGEST_GROUP` of a
key it sends how many: so no key is too much for one task. Large groups are known then; see
`large_groups`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.dedup.pairs.propose import LARGEST_GROUP
from lookalike.indexes.bands import BandLayout
from lookalike.signatures.minhash import VALUE_BYTES
from lookalike.spark.packed import (
    Batches,
    gathered,
    packed,
    packed_by_bucket,
    packed_row,
    table_of,
)
from lookalike.spark.position_set import packed_positions
from lookalike.spark.steps.signing import chunks

__all__ = [
    "BAND_ENTRY",
    "LARGE",
    "NEEDED",
    "PAIR",
    "PAIRS",
    "band_keys",
    "distinct_pairs",
    "meet_bands",
    "pack_pairs",
    "send_bands",
    "send_pairs",
    "told_pairs",
]

BAND_ENTRY = np.dtype([("key", "<u4"), ("band", "<u4"), ("position", "<i8")])
"""A negative position is a number of rows, of a key that is large."""

PAIR = np.dtype([("left", "<i8"), ("right", "<i8")])
LARGE_KEY = np.dtype([("band", "<u8"), ("key", "<u8"), ("size", "<i8")])

PAIRS, LARGE, NEEDED = 0, 1, 2

_DOCUMENTS_AT_A_TIME = 1 << 17
_LargeRows = tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.int64]]
_NO_KEYS = np.empty(0, np.uint32), np.zeros(1, np.int64)


def band_keys(signatures: NDArray[np.uint8], layout: BandLayout) -> NDArray[np.uint32]:
    """Return the keys of bands: that of band i of a row is at [i, row]."""
    keys = np.empty((layout.bands, len(signatures)), np.uint32)
    rows = np.ascontiguousarray(signatures)
    _native.band_keys(rows, VALUE_BYTES * layout.rows, 0, keys)
    return keys


def send_bands(
    layout: BandLayout, numbering: Any, copies: Any, rule: str, buckets: int
) -> Callable[[Batches], Iterator[Any]]:
    """Return what sends the keys of bands to where equal ones meet."""

    def send(batches: Batches) -> Iterator[Any]:
        positions: list[NDArray[np.int64]] = []
        keys: list[NDArray[np.uint32]] = []
        for chunk in chunks(batches, numbering.value, rule):
            compared = chunk.compared(copies.value)
            positions.append(chunk.positions[compared])
            keys.append(band_keys(chunk.array("signatures", np.uint8)[compared], layout))
            if sum(map(len, positions)) >= _DOCUMENTS_AT_A_TIME:
                yield from _entries(positions, keys, buckets)
                positions, keys = [], []
        if positions:
            yield from _entries(positions, keys, buckets)

    return send


def _entries(
    positions: list[NDArray[np.int64]], keys: list[NDArray[np.uint32]], buckets: int
) -> Iterator[Any]:
    """Yield the entries of documents, packed by bucket."""
    rows, columns = np.concatenate(positions), np.concatenate(keys, axis=1)
    large = [_large_rows(column) for column in columns]
    if any(one is not None for one in large):
        yield from _marked_entries(rows, columns, large, buckets)
        return
    entries, begins = np.empty(columns.size, BAND_ENTRY), np.empty(buckets + 1, np.int64)
    words = entries.view(np.uint64).reshape(-1, 2)
    _native.deal_bands(np.ascontiguousarray(columns), rows, buckets, words, begins)
    yield from packed_by_bucket(entries, np.arange(buckets), begins, PAIRS)


def _marked_entries(
    rows: NDArray[np.int64],
    columns: NDArray[np.uint32],
    large: list[_LargeRows | None],
    buckets: int,
) -> Iterator[Any]:
    """Yield the entries of documents; those of a large key as one, which tells their number."""
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
    yield from packed(entries, _bucket(entries["key"], entries["band"], buckets), PAIRS)


def _bucket(
    keys: NDArray[np.uint32], bands: NDArray[np.integer[Any]], buckets: int
) -> NDArray[np.int32]:
    """Return where a band meets, as `_native.deal_bands` does."""
    mixed = keys.astype(np.uint64) + bands.astype(np.uint64) * np.uint64(_native.BAND_STEP)
    return (mixed % np.uint64(buckets)).astype(np.int32)


def _large_rows(keys: NDArray[np.uint32]) -> _LargeRows | None:
    """Return the rows of keys that more than `LARGEST_GROUP` have here, these keys, and how many
    each has; None if there are none.
    """
    rows, offsets = _native.band_groups(keys[None, :], 0)
    sizes = np.diff(offsets)
    large = np.flatnonzero(sizes > LARGEST_GROUP)
    if not len(large):
        return None
    members = np.repeat(sizes > LARGEST_GROUP, sizes)
    return rows[members].astype(np.int64), keys[rows[offsets[large]]], sizes[large]


def meet_bands(buckets: int, old: int) -> Callable[[Batches], Iterator[Any]]:
    """Return what pairs the rows of groups that are not too large, and tells of those that are; no
    two of the first `old` are a pair.
    """

    def meet(batches: Batches) -> Iterator[Any]:
        entries = gathered(batches, BAND_ENTRY).get(PAIRS)
        if entries is None:
            return
        bands = entries["band"].astype(np.uint16)
        order = np.argsort(bands, kind="stable")
        whole = entries.view(np.complex128)  # 16 bytes are copied as one number
        bounds = np.flatnonzero(np.diff(bands[order].astype(np.int64), prepend=-1, append=-1))
        for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            some = whole[order[begin:end]].view(BAND_ENTRY)
            yield from _meet_band(int(some["band"][0]), some, buckets, old)

    return meet


def _meet_band(band: int, entries: NDArray[Any], buckets: int, old: int) -> Iterator[Any]:
    """Yield pairs and large keys of one band."""
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


def _tell(band: int, keys: NDArray[np.uint32], sizes: NDArray[np.int64]) -> Iterator[Any]:
    told = np.empty(len(keys), LARGE_KEY)
    told["band"], told["key"], told["size"] = band, keys, sizes
    yield from packed(told, np.zeros(len(told), np.int64), LARGE)


def send_pairs(one: NDArray[np.int64], two: NDArray[np.int64], buckets: int) -> Iterator[Any]:
    """Yield pairs, each where those of its left document meet."""
    pairs = np.empty(len(one), PAIR)
    pairs["left"], pairs["right"] = np.minimum(one, two), np.maximum(one, two)
    # Positions that follow each other are alike, so they are spread.
    mixed = pairs["left"].astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(33)
    yield from packed(pairs, (mixed % np.uint64(buckets)).astype(np.int32), PAIRS)


def distinct_pairs(buckets: int) -> Callable[[Batches], Iterator[Any]]:
    """Return what yields the pairs of a bucket, each once, and what there is to know of them; large
    keys as they come.
    """

    def meet(batches: Batches) -> Iterator[Any]:
        found = gathered(batches, {PAIRS: PAIR, LARGE: LARGE_KEY, NEEDED: np.uint8})
        large = found.get(LARGE, np.empty(0, LARGE_KEY))
        yield from packed(large, np.zeros(len(large), np.int64), LARGE)
        pairs = found.get(PAIRS, np.empty(0, PAIR))
        pairs = pairs[np.lexsort((pairs["right"], pairs["left"]))]
        new = (np.diff(pairs["left"], prepend=-1) != 0) | (np.diff(pairs["right"], prepend=-1) != 0)
        yield from told_pairs(pairs[new], buckets)

    return meet


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
