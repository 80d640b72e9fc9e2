"""Step 4, propose, by a radius, on Spark: the rule of `lookalike.dedup.pairs.nearby`.

Of equal signatures one stands for the others. Those that are left are dealt out to blocks, and each
block is compared with each, by the core: every task has two blocks. A row's matches are those of
better rank; where a task finds more than `LARGEST_GROUP` for one, it sends those that could become
pairs, and how many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.corpora.base import pa
from lookalike.dedup.pairs.nearby import of_crowds
from lookalike.dedup.pairs.propose import LARGEST_GROUP
from lookalike.spark.packed import Batches, table_of
from lookalike.spark.signing import chunks

__all__ = ["MATCHES", "SIGNATURES", "compare_blocks", "merge_matches", "signature_rows"]

SIGNATURES = "position long, value long, best long, signature binary"
MATCHES = "worse long, better long, distance int, value long, best long, found long, left_out long"
"""`value` and `best` are the rank of `better`; `found` is told once for each `worse` of a task."""

_QUERIES_AT_A_TIME = 256
_MATCHES_AT_A_TIME = 1 << 22


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
        counts = np.bincount(right, minlength=end - begin)
        wanted = np.ones(len(left), bool)
        if most is not None:
            wanted, _ = of_crowds(left, right, counts, counts, most)
        found = np.where(np.diff(right, prepend=-1) != 0, counts[right], 0)
        left, right = left[wanted], right[wanted]
        distances, found = distances[wanted], found[wanted]
        sent = np.bincount(right, minlength=end - begin)
        yield pa.record_batch(
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
        begin, count = end, min(_QUERIES_AT_A_TIME, 2 * count)


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
