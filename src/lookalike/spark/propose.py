"""Step 4, propose, on Spark: which pairs of signatures are worth comparing?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from lookalike.corpora.base import pa
from lookalike.dedup.propose import (
    LARGEST_GROUP,
    band_warnings,
    crowd_warnings,
    drawn_warning,
    may_be_drawn,
    most_pairs,
)
from lookalike.dedup.settings import DedupSettings
from lookalike.indexes.bands import choose_bands
from lookalike.shown import counted
from lookalike.spark import bands, nearby
from lookalike.spark.collapse import ordered
from lookalike.spark.nearby import PAIRS
from lookalike.spark.packed import (
    PACKED,
    Batches,
    as_columns,
    fixed_binary,
    map_arrow,
    rows_of,
    shuffled,
    signatures_of,
    sql,
)
from lookalike.spark.positions import PositionSet, told_rows
from lookalike.spark.signing import BEFORE_NEW, Chunks, SignedTable
from lookalike.spark.tables import SAMPLE, Tables, choose_tables
from lookalike.spark.work import SparkWork

ENTRIES_A_TASK = 4_000_000
"""Keys of bands that one task puts together."""

_SIGNATURES_A_BLOCK, _MOST_BLOCKS = 8192, 64
_ROWS_A_TASK = 1 << 20
_SIGNATURES = "position long, value long, data binary"


@dataclass(frozen=True, eq=False)
class Proposed:
    """Pairs of positions, `left` and `right`, each once."""

    packed: Any
    """By the thousand; see `bands.PAIR`."""
    count: int
    needed: PositionSet
    """Their documents."""
    warnings: list[str]

    @classmethod
    def of(
        cls, packed: Any, others: dict[int, list[bytes]], documents: int, warnings: list[str]
    ) -> Proposed:
        """Return packed pairs; `others` are the rows of other kinds, as `bands` packs them."""
        told = others.get(bands.NEEDED, [])
        count = sum(int(np.frombuffer(one, np.int64, 1)[0]) for one in told)
        needed = PositionSet.of((one[8:] for one in told), documents)
        return cls(packed.where(f"kind = {bands.PAIRS}"), count, needed, warnings)

    @property
    def rows(self) -> Any:
        """Each by itself."""
        return map_arrow(self.packed, as_columns, PAIRS, bands.PAIR, bands.PAIRS)


def propose_by_bands(work: SparkWork, settings: DedupSettings, signed: SignedTable) -> Proposed:
    """Return the pairs of MinHash signatures that share a band; see `bands`."""
    layout = choose_bands(settings.permutations, settings.threshold)
    buckets = max(work.cores, -(-signed.documents * layout.bands // ENTRIES_A_TASK))
    table = signed.columns("values", "enough", "signatures")
    entries = map_arrow(table, bands.send_bands, PACKED, layout, signed.chunks, buckets)
    met = map_arrow(shuffled(entries, buckets), bands.meet_bands, PACKED, buckets, signed.old)
    pairs = distinct_pairs(work, met, buckets)
    told = other_rows(pairs, signed)
    found = [np.frombuffer(data, bands.LARGE_KEY) for data in told.get(bands.LARGE, [])]
    sizes = np.concatenate(found) if found else np.empty(0, bands.LARGE_KEY)
    if len(sizes):
        large = bands.LargeGroups(sizes)
        reads = layout, signed.chunks, work.send(large)
        rows = map_arrow(table, bands.large_rows, bands.LARGE_ROWS, *reads)
        more = _large_pairs(work, signed, layout.bands, large, rows, buckets)
        both = pairs.where(f"kind = {bands.PAIRS}").union(more)
        pairs = distinct_pairs(work, both, buckets)
        told = other_rows(pairs, signed)
    warnings = band_warnings(settings, layout, len(sizes), int(sizes["size"].sum()))
    return Proposed.of(pairs, told, signed.documents, warnings)


def distinct_pairs(work: SparkWork, pairs: Any, buckets: int) -> Any:
    """Return packed pairs, each once."""
    return work.keep(map_arrow(shuffled(pairs, buckets), bands.distinct_pairs, PACKED, buckets))


def other_rows(packed: Any, signed: SignedTable) -> dict[int, list[bytes]]:
    """Return what packed rows tell the driver, by kind: all that are not pairs."""
    return told_rows(packed.where(f"kind <> {bands.PAIRS}"), signed.documents)


def _large_pairs(
    work: SparkWork,
    signed: SignedTable,
    band_count: int,
    large: bands.LargeGroups,
    rows: Any,
    buckets: int,
) -> Any:
    """Return the pairs of large groups, packed: rows by rank, cut into blocks over all workers."""
    rows = _with_best(signed, rows)
    count = int(large.sizes.sum())
    parts = max(work.cores, -(-count // (64 * bands.BLOCK)))
    order = ("group", "value", "best")
    by_rank = rows.repartitionByRange(parts, *order).sortWithinPartitions(*order)
    by_rank = by_rank.select(sql.spark_partition_id().alias("partition"), "*")
    by_rank = work.keep(map_arrow(by_rank, bands.number_rows, bands.NUMBERED))
    is_old = sql.count(sql.when(sql.col("position") < signed.old, 1))
    counted = by_rank.groupBy("partition", "group").agg(sql.count("*"), is_old)
    before: dict[tuple[int, int], int] = {}
    seen: dict[int, int] = {}
    olds = np.zeros(len(large), np.int64)
    for partition, group, rows_here, old_here in sorted(counted.collect()):
        before[partition, group] = seen.get(group, 0)
        seen[group] = seen.get(group, 0) + rows_here
        olds[group] += old_here
    places = work.send((before, large.sizes, olds))
    placed = map_arrow(by_rank, bands.send_blocks, bands.PLACED, places, parts)
    paired = band_count, work.send(large), buckets, signed.old
    return map_arrow(shuffled(placed, parts), bands.pair_blocks, PACKED, *paired)


def propose_by_radius(work: SparkWork, settings: DedupSettings, signed: SignedTable) -> Proposed:
    """Return the pairs of signatures within the radius; see `lookalike.spark.nearby`."""
    radius = settings.radius or 0
    table = signed.columns("values", "enough", "signatures")
    rows = map_arrow(table, nearby.signature_rows, nearby.SIGNATURES, signed.chunks)
    rows = work.keep(_with_best(signed, rows))
    first = sql.min(sql.struct("value", "best", "position")).alias("leader")
    leaders = work.keep(rows.groupBy("signature").agg(first).select("signature", "leader.*"))
    names = leaders.selectExpr("signature", "position as leader")
    equal = rows.join(names, "signature").where("position <> leader")
    equal = work.keep(equal.select(*ordered("position", "leader")))
    signatures = rows.count()
    limit = most_pairs(signatures, LARGEST_GROUP)
    count, bits = leaders.count(), settings.signer().bits
    tables = _chosen_tables(leaders, count, radius, may_be_drawn(signatures, bits // 8))
    found = work.keep(_matches(work, leaders, count, radius, tables, LARGEST_GROUP))
    warnings = _other_than_local(signatures, bits // 8, radius, tables)
    count_found, left_out = found.agg(sql.sum("found"), sql.sum("left_out")).first()
    if (count_found or 0) + equal.count() <= limit:
        if left_out:  # all of them fit, so none is left out
            found = _matches(work, leaders, count, radius, tables, None)
        every = equal.union(found.select(*ordered("worse", "better")))
        return _of_rows(work, signed, every, warnings)
    parts = max(work.cores, int(work.spark.conf.get("spark.sql.shuffle.partitions")))
    merged = map_arrow(found.repartition(parts, "worse"), nearby.merge_matches, PAIRS)
    merged = work.keep(merged)
    crowded = -(merged.where("left < 0").agg(sql.sum(sql.col("left") + 1)).first()[0] or 0)
    some = equal.union(merged.where("left >= 0"))
    return _of_rows(work, signed, some, [*crowd_warnings(radius, crowded), *warnings])


def _chosen_tables(leaders: Any, count: int, radius: int, may_draw: bool) -> Tables | None:
    """Return the tables by which distinct signatures meet, chosen by a sample; None: no tables."""
    part = min(1.0, SAMPLE / max(1, count))
    some = leaders.select("signature")
    if part < 1:
        some = some.sample(fraction=part, seed=0)
    rows = some.toArrow()["signature"]
    if not len(rows):
        return None
    return choose_tables(signatures_of(rows), count, radius, may_draw=may_draw)


def _other_than_local(signatures: int, width: int, radius: int, tables: Tables | None) -> list[str]:
    """Return a warning if some pairs may be missed, or if the local job may find fewer pairs."""
    if tables is not None and not tables.is_exact:
        return [drawn_warning(signatures, radius)]
    if not may_be_drawn(signatures, width):
        return []
    return [
        f"all pairs of {counted(signatures, 'signature')} were found; the local job samples "
        "pairs of that many, and may miss a few"
    ]


def _of_rows(work: SparkWork, signed: SignedTable, rows: Any, warnings: list[str]) -> Proposed:
    if signed.old:
        rows = rows.where(f"right >= {signed.old}")
    pairs = work.keep(map_arrow(rows, bands.pack_pairs, PACKED))
    return Proposed.of(pairs, other_rows(pairs, signed), signed.documents, warnings)


def _matches(
    work: SparkWork,
    leaders: Any,
    count: int,
    radius: int,
    tables: Tables | None,
    most: int | None,
) -> Any:
    """Return what is within the radius of each, by tables, or by comparing all with all."""
    names = ("position", "value", "best", "signature")
    if tables is not None:
        tasks, sent = max(work.cores, -(-int(tables.rows) // _ROWS_A_TASK)), work.send(tables)
        schema = nearby.DEALT + nearby.SIGNATURES
        dealt = map_arrow(leaders.select(*names), nearby.deal_tables, schema, sent, tasks)
        dealt = dealt.repartitionById(tasks, "task")
        return map_arrow(dealt, nearby.compare_tables, nearby.MATCHES, sent, most)
    blocks = min(_MOST_BLOCKS, max(2, -(-count // _SIGNATURES_A_BLOCK)))
    block = sql.pmod(sql.xxhash64("position"), sql.lit(blocks)).cast("int")
    every = sql.explode(sql.sequence(sql.lit(0), sql.lit(blocks - 1))).alias("other")
    low, high = sql.least("block", "other"), sql.greatest("block", "other")
    # Of a triangle of tasks: those with the higher block h begin at h * (h + 1) / 2.
    begin = sql.expr("greatest(block, other) * (greatest(block, other) + 1) div 2")
    task, alone = (begin + low).cast("int").alias("task"), (low == high).alias("alone")
    dealt = leaders.select("*", block.alias("block")).select("*", every)
    dealt = dealt.select(task, alone, "block", *names)
    dealt = dealt.repartitionById(blocks * (blocks + 1) // 2, "task")
    return map_arrow(dealt, nearby.compare_blocks, nearby.MATCHES, radius, most)


def _with_best(signed: SignedTable, rows: Any) -> Any:
    """Return rows in which the first of equal texts has the rank of the best of them."""
    if signed.rule == "first":
        return rows
    better = signed.collapsed.originals.selectExpr(
        "first as position", "best as better_best", "best_value as better_value"
    )
    return rows.join(better, "position", "left").select(
        *(
            sql.coalesce(f"better_{name}", name).alias(name) if name in ("value", "best") else name
            for name in rows.columns
        )
    )


FEW = 1_000_000
"""Documents; what says which they are is 24 bytes each, in the memory of every worker."""


def signature_rows(signed: SignedTable, needed: Any) -> Any:
    """Return `position, value, data`: what decides which document is kept, and the signature.

    If few are needed, Spark takes them out of the table, and no other leaves Java, unless the
    deciding value is in the table, too.
    """
    if len(needed.value) > FEW or signed.rule not in ("first", "last"):
        return _rows(signed, needed, "values", "signatures")
    positions = needed.value.positions()
    keys = signed.numbering.value.keys_of(positions)
    chunk = signed.chunk_keys[np.searchsorted(signed.chunk_keys, keys, side="right") - 1]
    wanted = signed.table.sparkSession.createDataFrame(
        pa.table({"key": chunk, "begin": keys - chunk, "position": positions})
    )
    rows = signed.table.select("key", "count", "signatures").join(sql.broadcast(wanted), "key")
    width = "(length(signatures) div count)"
    last = f"if(position < {signed.old}, -position - {BEFORE_NEW}L, -position)"
    return rows.selectExpr(
        "position",
        f"{'0L' if signed.rule == 'first' else last} as value",
        f"substring(signatures, cast(begin * {width} + 1 as int), cast({width} as int)) as data",
    )


def value_rows(signed: SignedTable, needed: Any) -> Any | None:
    """Return `position, value`; None where the position alone decides."""
    if signed.rule == "first":
        return None
    return _rows(signed, needed, "values").drop("data")


def _rows(signed: SignedTable, needed: Any, *columns: str) -> Any:
    return map_arrow(signed.columns(*columns), _needed, _SIGNATURES, signed.chunks, needed)


def _needed(chunks: Chunks, needed: Any, batches: Batches) -> Iterator[Any]:
    for chunk in chunks.of(batches):
        which = np.flatnonzero(needed.value.has(chunk.positions))
        if len(which):
            data = None
            if "signatures" in chunk.batch.schema.names:
                data = fixed_binary(chunk.array("signatures", np.uint8)[which])
            position, value = chunk.positions[which], chunk.values[which]
            yield rows_of(_SIGNATURES, position=position, value=value, data=data)
