"""Step 4, propose, by bands that very many documents share: these are sorted by rank over all
workers, cut into blocks, and paired block by block. The rule is that of `native/pairs/bands.hpp`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.corpora.base import pa
from lookalike.indexes.bands import LEADERS, BandLayout
from lookalike.spark.packed import Batches, table_of
from lookalike.spark.steps.bands import band_keys, send_pairs
from lookalike.spark.steps.signing import chunks

__all__ = [
    "LARGE_ROWS",
    "LargeGroups",
    "large_rows",
    "number_rows",
    "pair_blocks",
    "send_blocks",
]

BLOCK = 4096
"""Rows of a large group that are paired in one go."""

LARGE_ROWS = "group int, value long, best long, position long, keys binary"


class LargeGroups:
    """Keys of bands that more than `LARGEST_GROUP` documents have, by band and key."""

    def __init__(self, told: NDArray[Any]) -> None:
        order = np.lexsort((told["key"], told["band"]))
        self.bands = told["band"][order].astype(np.int64)
        self.keys = told["key"][order].astype(np.uint32)
        self.sizes = told["size"][order]

    def __len__(self) -> int:
        return len(self.keys)

    def members(self, keys: NDArray[np.uint32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
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


def large_rows(
    layout: BandLayout, numbering: Any, copies: Any, rule: str, large: Any
) -> Callable[[Batches], Iterator[Any]]:
    """Return what yields the documents of large groups, with the keys of all earlier bands."""

    def send(batches: Batches) -> Iterator[Any]:
        groups: LargeGroups = large.value
        for chunk in chunks(batches, numbering.value, rule):
            compared = chunk.compared(copies.value)
            keys = band_keys(chunk.array("signatures", np.uint8)[compared], layout)
            group, row = groups.members(keys)
            if not len(group):
                continue
            before = [
                keys[: groups.bands[one], at].tobytes()
                for one, at in zip(group.tolist(), row.tolist(), strict=True)
            ]
            positions = chunk.positions[compared][row]
            yield pa.record_batch(
                {
                    "group": pa.array(group.astype(np.int32)),
                    "value": pa.array(chunk.values[compared][row]),
                    "best": pa.array(positions),
                    "position": pa.array(positions),
                    "keys": pa.array(before, pa.binary()),
                }
            )

    return send


def number_rows(batches: Batches) -> Iterator[Any]:
    """Yield the rows of a partition, which are sorted, with their place among those of their group
    that are in the partition.
    """
    last, count = -1, 0
    for batch in batches:
        group = batch.column("group").to_numpy()
        begins = np.flatnonzero(np.diff(group, prepend=-1))
        places = np.arange(len(group)) - np.repeat(begins, np.diff(begins, append=len(group)))
        if group[0] == last:
            places[group == last] += count
        last, count = int(group[-1]), int(places[-1]) + 1
        yield pa.record_batch(
            {
                "partition": batch.column("partition"),
                "group": batch.column("group"),
                "nth": pa.array(places),
                "position": batch.column("position"),
                "keys": batch.column("keys"),
            }
        )


def send_blocks(places: Any, buckets: int) -> Callable[[Batches], Iterator[Any]]:
    """Return what sends rows to the blocks that they are paired in: the own one; the one before,
    for the first of a block; all that follow, for those that lead: the first of all, and the first
    of the new ones.

    `places` has, for each partition and group, how many of the group come before; the sizes; and
    how many of each are old, which come first.
    """

    def send(batches: Batches) -> Iterator[Any]:
        before, sizes, olds = places.value
        for batch in batches:
            group = batch.column("group").to_numpy()
            parts = batch.column("partition").to_numpy()
            place = np.array(batch.column("nth").to_numpy())
            changes = np.diff(group, prepend=-1, append=-1) | np.diff(parts, prepend=-1, append=-1)
            bounds = np.flatnonzero(changes)
            for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
                place[begin:end] += before[int(parts[begin]), int(group[begin])]
            block, last = place // BLOCK, (sizes[group] - 1) // BLOCK
            follows = np.flatnonzero((block > 0) & (place % BLOCK < LEADERS))
            among_new = place - olds[group]
            leading = (place < LEADERS) | ((among_new >= 0) & (among_new < LEADERS))
            leads = np.flatnonzero(leading & (last > block))
            later = (last - block)[leads]
            again = np.repeat(leads, later)
            behind = np.arange(len(again)) - np.repeat(np.cumsum(later) - later, later)
            rows = np.concatenate([np.arange(len(group)), follows, again])
            blocks = np.concatenate([block, block[follows] - 1, block[again] + behind + 1])
            bucket = (group[rows].astype(np.int64) * 31 + blocks) % buckets
            taken = batch.take(pa.array(rows))
            yield pa.record_batch(
                {
                    "bucket": pa.array(bucket.astype(np.int32)),
                    "group": taken.column("group"),
                    "block": pa.array(blocks.astype(np.int32)),
                    "place": pa.array(place[rows]),
                    "position": taken.column("position"),
                    "keys": taken.column("keys"),
                }
            )

    return send


def pair_blocks(
    bands: int, large: Any, buckets: int, old: int
) -> Callable[[Batches], Iterator[Any]]:
    """Return what pairs the rows of blocks by the rule of the core; no two of the first `old` are
    a pair.
    """

    def meet(batches: Batches) -> Iterator[Any]:
        table = table_of(batches)
        if table is None:
            return
        first_new = 0
        if old:  # the core tells old rows from new ones by their numbers
            is_new = table["position"].to_numpy() >= old
            first_new = int((~is_new).sum())
            table = table.take(pa.array(np.argsort(is_new, kind="stable")))
        group, block, place, position = (
            table[name].to_numpy().astype(np.int64)
            for name in ("group", "block", "place", "position")
        )
        groups: LargeGroups = large.value
        band_of = groups.bands[group]
        keys = np.zeros((bands, len(group)), np.uint32)
        for row, value in enumerate(table["keys"]):
            known = np.frombuffer(value.as_buffer(), np.uint32)
            keys[: len(known), row] = known
        order = np.lexsort((place, block, group, band_of))
        ends = np.diff(group[order], append=-1) | np.diff(block[order], append=-1)
        bounds = np.concatenate([[0], np.flatnonzero(ends) + 1])
        band_of_block = band_of[order[bounds[:-1]]]
        for band in np.unique(band_of_block).tolist():
            mine = np.flatnonzero(band_of_block == band)
            offsets = bounds[mine[0] : mine[-1] + 2]
            one, two = _native.group_pairs(
                keys,
                np.empty(0, np.uint32),
                np.zeros(band + 1, np.int64),
                band,
                order[offsets[0] : offsets[-1]].astype(np.uint32),
                offsets - offsets[0],
                0,  # a block is part of a large group, however few there are in it
                first_new,
                1,
            )
            yield from send_pairs(position[one], position[two], buckets)

    return meet
