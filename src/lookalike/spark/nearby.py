"""Step 4, propose, by a radius, on Spark: the rule of `lookalike.dedup.propose`.

Of equal signatures one stands for the others. Those that are left are dealt out to blocks, and each
block is compared with each, by the core: every task has two blocks. A row's matches are those of
better rank; where a task finds more than `LARGEST_GROUP` for one, it sends those that could become
pairs, and how many there are.

Where the radius is small, signatures within it are equal in one of radius + 1 slices, and these are
so wide that few others share them: then slices are the keys that they meet by, each pair is told of
by the first slice that it shares, and blocks are not needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.corpora.base import pa
from lookalike.dedup.propose import LARGEST_GROUP, of_crowds
from lookalike.signatures.random import random_words
from lookalike.spark.packed import Batches, table_of
from lookalike.spark.signing import chunks

SIGNATURES = "position long, value long, best long, signature binary"
MATCHES = "worse long, better long, distance int, value long, best long, found long, left_out long"
"""`value` and `best` are the rank of `better`; `found` is told once for each `worse` of a task."""

_QUERIES_AT_A_TIME = 256
_MATCHES_AT_A_TIME = 1 << 22
_MOST_MATCHES = 1 << 24
_PAIRS_AT_A_TIME = 1 << 16
_LEAST_SLICE_BITS, _SHARED_BITS = 8, 6
"""A slice is to have so many bits, and those of a number of signatures but for the second: then 64
share one by chance.
"""


def signature_rows(numbering: Any, copies: Any, rule: str) -> Callable[[Batches], Iterator[Any]]:
    """Return what makes a row of each signature that has a part in comparisons."""

    def select(batches: Batches) -> Iterator[Any]:
        for chunk in chunks(batches, numbering.value, rule):
            which = np.flatnonzero(chunk.compared(copies.value))
            rows = np.ascontiguousarray(chunk.array("signatures", np.uint8)[which])
            offsets = np.arange(len(rows) + 1, dtype=np.int32) * rows.shape[1]
            buffers = [None, pa.py_buffer(offsets), pa.py_buffer(rows)]
            positions = pa.array(chunk.positions[which])
            yield pa.record_batch(
                {
                    "position": positions,
                    "value": pa.array(chunk.values[which]),
                    "best": positions,
                    "signature": pa.Array.from_buffers(pa.binary(), len(rows), buffers),
                }
            )

    return select


class _Block:
    """Signatures by rank; their places are those among all of the task."""

    def __init__(self, table: Any, places: NDArray[np.int64], which: NDArray[np.bool_]) -> None:
        mine = np.flatnonzero(which)
        mine = mine[np.argsort(places[mine])]
        some = table.take(pa.array(mine))
        self.places = places[mine]
        self.positions, self.values, self.bests = (
            some[name].to_numpy() for name in ("position", "value", "best")
        )
        data = b"".join(value.as_py() for value in some["signature"])
        self.rows = np.frombuffer(data, np.uint8).reshape(len(mine), -1)


def compare_blocks(radius: int, most: int | None) -> Callable[[Batches], Iterator[Any]]:
    """Return what compares the two blocks of a task, or one with itself; see `MATCHES`.

    `most`: of a row that has more matches, only those are sent that may become pairs.
    """

    def compare(batches: Batches) -> Iterator[Any]:
        table = table_of(batches)
        if table is None:
            return
        rank = np.lexsort((table["best"].to_numpy(), table["value"].to_numpy()))
        places = np.empty(len(rank), np.int64)
        places[rank] = np.arange(len(rank))
        tasks, blocks = table["task"].to_numpy(), table["block"].to_numpy()
        for task in np.unique(tasks).tolist():
            here = tasks == task
            parts = [
                _Block(table, places, here & (blocks == block))
                for block in np.unique(blocks[here]).tolist()
            ]
            both = [(0, 0)] if table["alone"][int(np.argmax(here))].as_py() else [(0, 1), (1, 0)]
            for one, two in both:
                if two < len(parts):
                    yield from _matches(parts[one], parts[two], radius, most)

    return compare


def _matches(rows: _Block, queries: _Block, radius: int, most: int | None) -> Iterator[Any]:
    """Yield the rows of better rank that are within the radius of queries."""
    begin, count = 0, _QUERIES_AT_A_TIME
    while begin < len(queries.rows):
        end = min(len(queries.rows), begin + count)
        bound = int(np.searchsorted(rows.places, queries.places[end - 1]))
        limit = max(_MATCHES_AT_A_TIME, bound)  # one query is never too many
        try:
            offsets, ids, distances = _native.scan_within(
                rows.rows[:bound], None, True, queries.rows[begin:end], radius, limit, 1
            )
        except _native.TooManyResults:
            count = max(1, count // 2)
            continue
        right = np.repeat(np.arange(end - begin), np.diff(offsets))
        left = ids.astype(np.int64)
        better = rows.places[left] < queries.places[begin + right]
        left, right, distances = left[better], right[better], distances[better]
        yield _sent(rows, queries, begin, end, (left, right, distances), most)
        begin, count = end, min(_QUERIES_AT_A_TIME, 2 * count)


def _sent(
    rows: _Block,
    queries: _Block,
    begin: int,
    end: int,
    matches: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]],
    most: int | None,
) -> Any:
    """Return the matches of queries `begin` to `end`, by query and (distance, rank), as rows."""
    left, right, distances = matches
    counts = np.bincount(right, minlength=end - begin)
    wanted = np.ones(len(left), bool)
    if most is not None:
        wanted, _ = of_crowds(left, right, counts, counts, most)
    found = np.where(np.diff(right, prepend=-1) != 0, counts[right], 0)[wanted]
    left, right, distances = left[wanted], right[wanted], distances[wanted]
    sent = np.bincount(right, minlength=end - begin)
    return pa.record_batch(
        {
            "worse": pa.array(queries.positions[begin + right]),
            "better": pa.array(rows.positions[left]),
            "distance": pa.array(distances.astype(np.int32)),
            "value": pa.array(rows.values[left]),
            "best": pa.array(rows.bests[left]),
            "found": pa.array(found.astype(np.int64)),
            "left_out": pa.array(np.where(found > 0, (counts - sent)[right], 0)),
        }
    )


def slice_bounds(bits: int, radius: int, count: int) -> NDArray[np.int64] | None:
    """Return the first bits of radius + 1 slices, and the end of the last; None if so many
    signatures share slices of that width that comparing all is better.
    """
    slices = radius + 1
    if bits // slices < max(_LEAST_SLICE_BITS, count.bit_length() - _SHARED_BITS):
        return None
    return np.arange(slices + 1) * bits // slices


def deal_slices(bounds: NDArray[np.int64], buckets: int) -> Callable[[Batches], Iterator[Any]]:
    """Return what sends each signature to where each of its slices meets."""
    words = random_words(0, int(bounds[-1]))

    def deal(batches: Batches) -> Iterator[Any]:
        for batch in batches:
            data = b"".join(value.as_py() for value in batch.column("signature"))
            rows = np.frombuffer(data, np.uint8).reshape(len(batch), -1)
            flags = np.unpackbits(rows, axis=1).astype(np.uint64)
            for number, (begin, end) in enumerate(pairwise(bounds.tolist())):
                mixed = flags[:, begin:end] @ words[begin:end] >> np.uint64(32)
                task = number * buckets + (mixed % np.uint64(buckets)).astype(np.int64)
                yield pa.record_batch(
                    [pa.array(task.astype(np.int32)), *batch.columns],
                    ["task", *batch.schema.names],
                )

    return deal


def compare_slices(
    radius: int, bounds: NDArray[np.int64], buckets: int, most: int | None
) -> Callable[[Batches], Iterator[Any]]:
    """Return what compares those that meet; see `MATCHES`. A negative `found` says that there are
    too many for slices.
    """

    def compare(batches: Batches) -> Iterator[Any]:
        table = table_of(batches)
        if table is None:
            return
        rank = np.lexsort((table["best"].to_numpy(), table["value"].to_numpy()))
        places = np.empty(len(rank), np.int64)
        places[rank] = np.arange(len(rank))
        block = _Block(table, places, np.ones(len(rank), bool))
        number = table["task"][0].as_py() // buckets
        try:
            found = _native.block_pairs(block.rows, None, radius, _MOST_MATCHES, 1)
            if found is None:
                found = _native.scan_pairs(block.rows, None, True, radius, _MOST_MATCHES, 1)
        except _native.TooManyResults:
            nobody = np.array([-1])
            yield pa.record_batch(
                [pa.array(nobody)] * 2
                + [pa.array(nobody.astype(np.int32))]
                + [pa.array(nobody)] * 4,
                ["worse", "better", "distance", "value", "best", "found", "left_out"],
            )
            return
        left, right, distances = (np.asarray(column) for column in found)
        mine = _first_shared(block.rows, left, right, bounds) == number
        left, right = left[mine].astype(np.int64), right[mine].astype(np.int64)
        distances = distances[mine]
        order = np.lexsort((left, distances, right))
        matches = left[order], right[order], distances[order]
        yield _sent(block, block, 0, len(block.rows), matches, most)

    return compare


def _first_shared(
    rows: NDArray[np.uint8], left: Any, right: Any, bounds: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the first slice in which rows are equal; pairs within the radius have one."""
    first = np.empty(len(left), np.int64)
    for begin in range(0, len(left), _PAIRS_AT_A_TIME):
        some = slice(begin, begin + _PAIRS_AT_A_TIME)
        flips = np.unpackbits(rows[left[some]] ^ rows[right[some]], axis=1)
        first[some] = (np.add.reduceat(flips, bounds[:-1], axis=1) == 0).argmax(axis=1)
    return first


def merge_matches(batches: Batches) -> Iterator[Any]:
    """Yield the pairs that the matches of rows become where there are crowds; a negative left is
    the number of rows that had too many.
    """
    table = table_of(batches)
    if table is None:
        return
    worse, better, distance, value, best, found = (
        table[name].to_numpy() for name in ("worse", "better", "distance", "value", "best", "found")
    )
    rank = np.empty(len(worse), np.int64)
    rank[np.lexsort((best, value))] = np.arange(len(worse))
    order = np.lexsort((rank, distance, worse))
    rows, right, known = np.unique(worse[order], return_inverse=True, return_counts=True)
    counts = np.bincount(right, found[order], minlength=len(rows)).astype(np.int64)
    wanted, crowded = of_crowds(rank[order], right, known, counts, LARGEST_GROUP)
    one, two = worse[order][wanted], better[order][wanted]
    yield pa.record_batch(
        {
            "left": pa.array(np.append(np.minimum(one, two), -1 - crowded)),
            "right": pa.array(np.append(np.maximum(one, two), -1)),
        }
    )
