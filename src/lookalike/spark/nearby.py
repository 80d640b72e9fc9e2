"""Step 4, propose, by a radius, on Spark: the rule of `lookalike.dedup.propose`.

One of several equal signatures stands for the others. The rest meet by tables of bits, and those
that meet are compared: see `lookalike.spark.tables`. Few signatures, and those of a radius so large
that tables cost more, are compared all with all: they are dealt out to blocks, and each task
compares two. A row's matches are those of better rank; where a task finds more than `LARGEST_GROUP`
for one, it sends those that could become pairs, and how many there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.corpora.base import pa
from lookalike.dedup.decide import rank_by
from lookalike.dedup.pairs import Flags, Ints
from lookalike.dedup.propose import LARGEST_GROUP, of_crowds
from lookalike.spark.packed import Batches, fixed_binary, rows_of, signatures_of, table_of
from lookalike.spark.signing import Chunks
from lookalike.spark.tables import ALONE, WHOLE, Leaf, first_shared, unpacked_bits

DEALT = "task int, leaf int, key long, block long, "
SIGNATURES = "position long, value long, best long, signature binary"
PAIRS = "left long, right long"
MATCHES = "worse long, better long, distance int, value long, best long, found long, left_out long"
"""`value` and `best` are the rank of `better`; `found` is told once for each `worse` of a task."""
_MATCH_NAMES = ("worse", "better", "distance", "value", "best", "found", "left_out")

_QUERIES_AT_A_TIME = 256
_MATCHES_AT_A_TIME = 1 << 22
_MOST_MATCHES = 1 << 24
_PAIRS_AT_A_TIME = 1 << 16
_KEY_BITS, _VARIED = 22, 4096
"""Bits by which the rows of a task are sorted, and rows that say which bits differ most."""
_LARGE_KEY = 256
_WHERE = ("task", "leaf", "key", "block")


def signature_rows(chunks: Chunks, batches: Batches) -> Iterator[Any]:
    """Yield a row for each signature that is compared."""
    for chunk, which in chunks.compared(batches):
        place, value = chunk.positions[which], chunk.values[which]
        signed = fixed_binary(chunk.array("signatures", np.uint8)[which])
        yield rows_of(SIGNATURES, position=place, value=value, best=place, signature=signed)


class _Block:
    """Signatures by rank; their places are those among all of the task."""

    def __init__(self, table: Any, places: Ints, which: Ints) -> None:
        mine = which[np.argsort(places[which])]
        some = table.take(pa.array(mine))
        self.sources, self.places = mine, places[mine]
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
            _Block(table, places, np.flatnonzero(here & (blocks == block)))
            for block in np.unique(blocks[here]).tolist()
        ]
        both = [(0, 0)] if table["alone"][int(np.argmax(here))].as_py() else [(0, 1), (1, 0)]
        for one, two in both:
            if two < len(parts):
                yield from _matches(parts[one], parts[two], radius, most)


def _matches(
    rows: _Block, queries: _Block, radius: int, most: int | None, leaf: Leaf | None = None
) -> Iterator[Any]:
    """Yield the rows of better rank that are within the radius of queries, and meet here first."""
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
        if leaf is not None:
            better[better] = _first(
                rows.rows, left[better], queries.rows, begin + right[better], leaf
            )
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


def deal_tables(tables: Any, tasks: int, batches: Batches) -> Iterator[Any]:
    """Send each signature to where those meet that agree in the bits of a table."""
    for batch in batches:
        rows, positions = signatures_of(batch.column("signature")), batch.column("position")
        for number, which, keys, blocks in tables.value.dealt(rows, positions.to_numpy()):
            mixed = keys + np.uint64(number) * np.uint64(_native.BAND_STEP)
            task = ((mixed >> np.uint64(16)) % np.uint64(tasks)).astype(np.int32)
            where = task, np.full(len(which), number, np.int32), keys.view(np.int64), blocks
            dealt = [pa.array(column) for column in where]
            own = batch.take(pa.array(which)).columns
            yield pa.record_batch([*dealt, *own], [*_WHERE, *batch.schema.names])


def compare_tables(tables: Any, most: int | None, batches: Batches) -> Iterator[Any]:
    """Compare those that meet, if no earlier table has compared them; see `MATCHES`."""
    table = table_of(batches)
    if table is None:
        return
    radius, leaves = tables.value.radius, tables.value.leaves()
    places = rank_by(table["value"].to_numpy(), table["best"].to_numpy())
    numbers, keys, blocks = (table[name].to_numpy() for name in _WHERE[1:])
    for number in np.unique(numbers).tolist():
        leaf, here = leaves[number], np.flatnonzero(numbers == number)
        here = here[np.argsort(keys[here], kind="stable")]
        few = blocks[here] == WHOLE
        try:
            if few.any():
                yield _of_table(_Block(table, places, here[few]), keys, radius, leaf, most)
        except _native.TooManyResults:
            yield from _of_crowds(table, places, here[few], keys, radius, leaf, most)
        for members in _by_key(here[~few], keys):
            yield from _of_key(table, places, members, blocks, radius, leaf, most)


def _by_key(rows: Ints, keys: Ints) -> list[Ints]:
    """Return rows, which are sorted by key, key by key."""
    own = keys[rows]
    return np.split(rows, np.flatnonzero(own[1:] != own[:-1]) + 1) if len(rows) else []


def _of_table(block: _Block, keys: Ints, radius: int, leaf: Leaf, most: int | None) -> Any:
    """Return the matches of a table whose keys are those of few signatures each."""
    rows, own = block.rows, keys[block.sources]
    some = unpacked_bits(rows[:: max(1, len(rows) // _VARIED)])[:, leaf.table.bits]
    varied = np.argsort(np.abs(some.mean(axis=0) - 0.5), kind="stable")[:_KEY_BITS]
    bits = leaf.table.bits[varied].astype(np.int32)[None, :]
    found = _native.drawn_pairs(
        rows, None, bits, bits.shape[1], 0, radius, np.inf, _MOST_MATCHES, 1
    )
    if found is None:
        raise RuntimeError("a search without a limit on its cost has given up")
    left, right, distances = found
    mine = own[left] == own[right]
    left, right = left[mine].astype(np.int64), right[mine].astype(np.int64)
    distances = distances[mine]
    mine = _first(rows, left, rows, right, leaf)
    left, right, distances = left[mine], right[mine], distances[mine]
    order = np.lexsort((left, distances, right))
    matches = left[order], right[order], distances[order]
    return _sent(block, block, 0, len(rows), matches, most)


def _of_crowds(
    table: Any, places: Ints, rows: Ints, keys: Ints, radius: int, leaf: Leaf, most: int | None
) -> Iterator[Any]:
    """Yield the matches of a table with too many for memory: large keys one by one."""
    small, count = [], 0
    for members in _by_key(rows, keys):
        if len(members) > _LARGE_KEY:
            block = _Block(table, places, members)
            yield from _matches(block, block, radius, most, leaf)
        elif len(members) > 1:
            small.append(members)
            count += len(members)
            if count > _MOST_MATCHES // _LARGE_KEY:
                yield _of_table(
                    _Block(table, places, np.concatenate(small)), keys, radius, leaf, most
                )
                small, count = [], 0
    if small:
        yield _of_table(_Block(table, places, np.concatenate(small)), keys, radius, leaf, most)


def _of_key(
    table: Any, places: Ints, members: Ints, blocks: Ints, radius: int, leaf: Leaf, most: int | None
) -> Iterator[Any]:
    """Yield the matches of one key: of all its rows, or of those of one block with the other's."""
    own = blocks[members]
    parts = [_Block(table, places, members[own == block]) for block in np.unique(own).tolist()]
    if own[0] == ALONE:
        yield from _matches(parts[0], parts[0], radius, most, leaf)
    elif len(parts) == 2:
        yield from _matches(parts[0], parts[1], radius, most, leaf)
        yield from _matches(parts[1], parts[0], radius, most, leaf)


def _first(
    rows: NDArray[np.uint8], left: Ints, queries: NDArray[np.uint8], right: Ints, leaf: Leaf
) -> Flags:
    """Return which pairs of rows and queries agree in no earlier table."""
    found = np.ones(len(left), bool)
    if leaf.before:
        for begin in range(0, len(left), _PAIRS_AT_A_TIME):
            some = slice(begin, begin + _PAIRS_AT_A_TIME)
            flips = unpacked_bits(rows[left[some]] ^ queries[right[some]])
            found[some] = first_shared(leaf, flips)
    return found


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
