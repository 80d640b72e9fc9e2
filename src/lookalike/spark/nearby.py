"""Step 4, propose, by a radius, on Spark: the rule of `lookalike.dedup.propose`.

One of several equal signatures stands for the others. The rest are dealt out to blocks, and each
task compares two blocks. A row's matches are those of better rank; where a task finds more than
`LARGEST_GROUP` for one, it sends those that could become pairs, and how many there are.

If the radius is small, signatures within it are equal in one of radius + 1 slices, which few others
share. Then signatures meet by slice, and the first slice that a pair shares tells of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.corpora.base import pa
from lookalike.dedup.decide import rank_by
from lookalike.dedup.pairs import Flags, Ints
from lookalike.dedup.propose import LARGEST_GROUP, of_crowds
from lookalike.signatures.random import random_words
from lookalike.spark.packed import Batches, fixed_binary, rows_of, signatures_of, table_of
from lookalike.spark.signing import Chunks

SIGNATURES = "position long, value long, best long, signature binary"
PAIRS = "left long, right long"
MATCHES = "worse long, better long, distance int, value long, best long, found long, left_out long"
"""`value` and `best` are the rank of `better`; `found` is told once for each `worse` of a task."""
_MATCH_NAMES = ("worse", "better", "distance", "value", "best", "found", "left_out")

_QUERIES_AT_A_TIME = 256
_MATCHES_AT_A_TIME = 1 << 22
_MOST_MATCHES = 1 << 24
_PAIRS_AT_A_TIME = 1 << 16
_LEAST_SLICE_BITS, _SHARED_BITS = 8, 6
"""Bits of a slice: the least, and by how many it may fall short of the bits of the number of
signatures; then 64 share one by chance.
"""


def signature_rows(chunks: Chunks, batches: Batches) -> Iterator[Any]:
    """Yield a row for each signature that is compared."""
    for chunk, which in chunks.compared(batches):
        place, value = chunk.positions[which], chunk.values[which]
        signed = fixed_binary(chunk.array("signatures", np.uint8)[which])
        yield rows_of(SIGNATURES, position=place, value=value, best=place, signature=signed)


class _Block:
    """Signatures by rank; their places are those among all of the task."""

    def __init__(self, table: Any, places: Ints, which: Flags) -> None:
        mine = np.flatnonzero(which)
        mine = mine[np.argsort(places[mine])]
        some = table.take(pa.array(mine))
        self.places = places[mine]
        self.positions, self.values, self.bests = (
            some[name].to_numpy() for name in ("position", "value", "best")
        )
        self.rows = signatures_of(some["signature"])


def compare_blocks(radius: int, most: int | None, batches: Batches) -> Iterator[Any]:
    """Compare the two blocks of a task, or one with itself; see `MATCHES` and `_sent`."""
    table = table_of(batches)
    if table is None:
        return
    places = rank_by(table["value"].to_numpy(), table["best"].to_numpy())
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
    matches: tuple[Ints, Ints, NDArray[np.int32]],
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
    return rows_of(
        MATCHES,
        worse=queries.positions[begin + right],
        better=rows.positions[left],
        distance=distances,
        value=rows.values[left],
        best=rows.bests[left],
        found=found,
        left_out=np.where(found > 0, (counts - sent)[right], 0),
    )


def slice_bounds(bits: int, radius: int, count: int) -> Ints | None:
    """Return where radius + 1 slices begin, and the end; None if comparing all is better."""
    slices = radius + 1
    if bits // slices < max(_LEAST_SLICE_BITS, count.bit_length() - _SHARED_BITS):
        return None
    return np.arange(slices + 1) * bits // slices


def deal_slices(bounds: Ints, buckets: int, batches: Batches) -> Iterator[Any]:
    """Send each signature to where each of its slices meets."""
    words = random_words(0, int(bounds[-1]))
    for batch in batches:
        rows = signatures_of(batch.column("signature"))
        flags = np.unpackbits(rows, axis=1).astype(np.uint64)
        for number, (begin, end) in enumerate(pairwise(bounds.tolist())):
            mixed = flags[:, begin:end] @ words[begin:end] >> np.uint64(32)
            task = number * buckets + (mixed % np.uint64(buckets)).astype(np.int64)
            columns = [pa.array(task.astype(np.int32)), *batch.columns]
            yield pa.record_batch(columns, ["task", *batch.schema.names])


def compare_slices(
    radius: int, bounds: Ints, buckets: int, most: int | None, batches: Batches
) -> Iterator[Any]:
    """Compare those that meet; see `MATCHES`. A negative `found`: there are too many for slices."""
    table = table_of(batches)
    if table is None:
        return
    places = rank_by(table["value"].to_numpy(), table["best"].to_numpy())
    block = _Block(table, places, np.ones(len(places), bool))
    number = table["task"][0].as_py() // buckets
    try:
        found = _native.block_pairs(block.rows, None, radius, _MOST_MATCHES, 1)
        if found is None:
            found = _native.scan_pairs(block.rows, None, True, radius, _MOST_MATCHES, 1)
    except _native.TooManyResults:
        yield rows_of(MATCHES, **{name: [-1] for name in _MATCH_NAMES})
        return
    left, right, distances = (np.asarray(column) for column in found)
    mine = _first_shared(block.rows, left, right, bounds) == number
    left, right = left[mine].astype(np.int64), right[mine].astype(np.int64)
    distances = distances[mine]
    order = np.lexsort((left, distances, right))
    matches = left[order], right[order], distances[order]
    yield _sent(block, block, 0, len(block.rows), matches, most)


def _first_shared(rows: NDArray[np.uint8], left: Any, right: Any, bounds: Ints) -> Ints:
    """Return the first slice in which rows are equal; pairs within the radius have one."""
    first = np.empty(len(left), np.int64)
    for begin in range(0, len(left), _PAIRS_AT_A_TIME):
        some = slice(begin, begin + _PAIRS_AT_A_TIME)
        flips = np.unpackbits(rows[left[some]] ^ rows[right[some]], axis=1)
        first[some] = (np.add.reduceat(flips, bounds[:-1], axis=1) == 0).argmax(axis=1)
    return first


def merge_matches(batches: Batches) -> Iterator[Any]:
    """Yield the pairs of matches where there are crowds; a negative left counts crowded rows."""
    table = table_of(batches)
    if table is None:
        return
    worse, better, distance, value, best, found = (
        table[name].to_numpy() for name in _MATCH_NAMES[:-1]
    )
    rank = rank_by(value, best)
    order = np.lexsort((rank, distance, worse))
    rows, right, known = np.unique(worse[order], return_inverse=True, return_counts=True)
    counts = np.bincount(right, found[order], minlength=len(rows)).astype(np.int64)
    wanted, crowded = of_crowds(rank[order], right, known, counts, LARGEST_GROUP)
    one, two = worse[order][wanted], better[order][wanted]
    left, right = np.minimum(one, two), np.maximum(one, two)
    yield rows_of(PAIRS, left=np.append(left, -1 - crowded), right=np.append(right, -1))
