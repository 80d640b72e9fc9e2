"""Step 4, propose, on Spark: which pairs of signatures are worth comparing?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.corpora.base import pa
from lookalike.dedup.propose import (
    LARGEST_GROUP,
    band_warnings,
    crowd_warnings,
    may_be_drawn,
    most_pairs,
)
from lookalike.dedup.settings import DedupSettings
from lookalike.indexes.bands import choose_bands
from lookalike.shown import counted
from lookalike.spark import bands, nearby
from lookalike.spark.collapse import Collapsed
from lookalike.spark.packed import (
    PACKED,
    Batches,
    as_columns,
    fixed_binary,
    map_arrow,
    shuffled,
    sql,
)
from lookalike.spark.positions import PositionSet, told_rows
from lookalike.spark.signing import BEFORE_NEW, chunks
from lookalike.spark.work import SparkWork

ENTRIES_A_TASK = 4_000_000
"""Keys of bands that one task puts together."""

_SIGNATURES_A_BLOCK, _MOST_BLOCKS = 8192, 64
_SIGNATURES_A_BUCKET = 1 << 20
_PAIRS = "left long, right long"
_NUMBERED = "partition int, group int, nth long, position long, keys binary"
_PLACED = "bucket int, group int, block int, place long, position long, keys binary"


@dataclass(frozen=True, eq=False)
class SignedTable:
    """Signatures, and what is needed to read them."""

    table: Any
    """See `lookalike.spark.signing.SIGNED`."""
    numbering: Any
    copies: Any
    """Positions of texts that have come before."""
    collapsed: Collapsed
    chunk_keys: NDArray[np.int64]
    """Spark's numbers of the first documents of the table's rows, ascending."""
    rule: str
    documents: int
    text_bytes: int = 0
    """Of all documents."""

    @property
    def originals(self) -> Any:
        """Texts that have copies, as rows; see `lookalike.spark.collapse.EQUALS`."""
        return self.collapsed.originals

    @property
    def old(self) -> int:
        """Documents of an old corpus, of which no two are compared: the first ones."""
        return int(self.numbering.value.old)

    def columns(self, *names: str) -> Any:
        """Return the table without what is not needed."""
        return self.table.select("file", "start", "partition", "row", "count", *names)


@dataclass(frozen=True, eq=False)
class Proposed:
    """Pairs of positions, `left` and `right`, each once."""

    packed: Any
    """By the thousand; see `bands.PAIR`."""
    count: int
    needed: PositionSet
    """The documents that they are of."""
    warnings: list[str]

    @classmethod
    def of(cls, packed: Any, told: list[bytes], documents: int, warnings: list[str]) -> Proposed:
        """Return packed pairs, of which rows of the kind `bands.NEEDED` have told this."""
        count = sum(int(np.frombuffer(one, np.int64, 1)[0]) for one in told)
        needed = PositionSet.of((one[8:] for one in told), documents)
        return cls(packed.where(f"kind = {bands.PAIRS}"), count, needed, warnings)

    @classmethod
    def of_packed(
        cls,
        packed: Any,
        signed: SignedTable,
        warnings: list[str],
        told: dict[int, list[bytes]] | None = None,
    ) -> Proposed:
        """Return pairs as `bands` packs them, and what they have told, if that is known."""
        told = _told(packed, signed) if told is None else told
        return cls.of(packed, told.get(bands.NEEDED, []), signed.documents, warnings)

    @property
    def rows(self) -> Any:
        """Each by itself."""
        return map_arrow(self.packed, as_columns(bands.PAIR, bands.PAIRS), _PAIRS)


def propose_by_bands(work: SparkWork, settings: DedupSettings, signed: SignedTable) -> Proposed:
    """Return the pairs of MinHash signatures that share a band; see `bands`."""
    layout = choose_bands(settings.permutations, settings.threshold)
    buckets = max(work.cores, -(-signed.documents * layout.bands // ENTRIES_A_TASK))
    reads = layout, signed.numbering, signed.copies, signed.rule
    table = signed.columns("values", "enough", "signatures")
    entries = map_arrow(table, bands.send_bands(*reads, buckets), PACKED)
    meet = bands.meet_bands(buckets, signed.old)
    met = map_arrow(shuffled(entries, buckets), meet, PACKED)
    distinct = bands.distinct_pairs(buckets)
    pairs = work.keep(map_arrow(shuffled(met, buckets), distinct, PACKED))
    told = _told(pairs, signed)
    found = [np.frombuffer(data, bands.LARGE_KEY) for data in told.get(bands.LARGE, [])]
    sizes = np.concatenate(found) if found else np.empty(0, bands.LARGE_KEY)
    if len(sizes):
        large = bands.LargeGroups(sizes)
        rows = map_arrow(table, bands.large_rows(*reads, work.send(large)), bands.LARGE_ROWS)
        more = _large_pairs(work, signed, layout.bands, large, rows, buckets)
        both = pairs.where(f"kind = {bands.PAIRS}").union(more)
        pairs = work.keep(map_arrow(shuffled(both, buckets), distinct, PACKED))
        told = _told(pairs, signed)
    warnings = band_warnings(settings, layout, len(sizes), int(sizes["size"].sum()))
    return Proposed.of_packed(pairs, signed, warnings, told)


def _told(packed: Any, signed: SignedTable) -> dict[int, list[bytes]]:
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
    by_rank = work.keep(map_arrow(by_rank, bands.number_rows, _NUMBERED))
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
    placed = map_arrow(by_rank, bands.send_blocks(places, parts), _PLACED)
    pairing: Callable[[Any], Any] = bands.pair_blocks(
        band_count, work.send(large), buckets, signed.old
    )
    return map_arrow(shuffled(placed, parts), pairing, PACKED)


def propose_by_radius(work: SparkWork, settings: DedupSettings, signed: SignedTable) -> Proposed:
    """Return the pairs of signatures within the radius; see `lookalike.spark.nearby`."""
    radius = settings.radius or 0
    select = nearby.signature_rows(signed.numbering, signed.copies, signed.rule)
    table = signed.columns("values", "enough", "signatures")
    rows = _with_best(signed, map_arrow(table, select, nearby.SIGNATURES))
    rows = work.keep(rows)
    first = sql.min(sql.struct("value", "best", "position")).alias("leader")
    leaders = work.keep(rows.groupBy("signature").agg(first).select("signature", "leader.*"))
    names = leaders.select(sql.col("signature"), sql.col("position").alias("leader"))
    equal = rows.join(names, "signature").where("position <> leader")
    equal = equal.select(
        sql.least("position", "leader").alias("left"),
        sql.greatest("position", "leader").alias("right"),
    )
    equal = work.keep(equal)
    signatures = rows.count()
    limit = most_pairs(signatures, LARGEST_GROUP)
    count, bits = leaders.count(), settings.signer().bits
    bounds = nearby.slice_bounds(bits, radius, count)
    found = work.keep(_matches(work, leaders, count, radius, bounds, LARGEST_GROUP))
    if bounds is not None and found.where("found < 0").limit(1).count():
        bounds = None  # too many are near: whole blocks of them, and by blocks they are compared
        found = work.keep(_matches(work, leaders, count, radius, bounds, LARGEST_GROUP))
    warnings = _more_than_local(signatures, bits // 8)
    facts = found.agg(sql.sum("found").alias("found"), sql.sum("left_out").alias("left_out"))
    total = facts.first()
    pairs = (
        sql.least("worse", "better").alias("left"),
        sql.greatest("worse", "better").alias("right"),
    )
    if (total.found or 0) + equal.count() <= limit:
        if total.left_out:  # all of them fit, so none is left out
            found = _matches(work, leaders, count, radius, bounds, None)
        return _of_rows(work, signed, equal.union(found.select(*pairs)), warnings)
    merged = map_arrow(found.repartition(_parts(work), "worse"), nearby.merge_matches, _PAIRS)
    merged = work.keep(merged)
    crowded = -(merged.where("left < 0").agg(sql.sum(sql.col("left") + 1)).first()[0] or 0)
    some = equal.union(merged.where("left >= 0"))
    return _of_rows(work, signed, some, [*crowd_warnings(radius, crowded), *warnings])


def _more_than_local(signatures: int, width: int) -> list[str]:
    """Return what people should know who compare the result with that of one machine."""
    if not may_be_drawn(signatures, width):
        return []
    return [
        f"{counted(signatures, 'signature')} were compared each with each; so many, the job on one "
        "machine proposes by chance, and may miss a few of these pairs"
    ]


def _of_rows(work: SparkWork, signed: SignedTable, rows: Any, warnings: list[str]) -> Proposed:
    if signed.old:
        rows = rows.where(f"right >= {signed.old}")
    pairs = work.keep(map_arrow(rows, bands.pack_pairs, PACKED))
    return Proposed.of_packed(pairs, signed, warnings)


def _parts(work: SparkWork) -> int:
    return max(work.cores, int(work.spark.conf.get("spark.sql.shuffle.partitions")))


def _matches(
    work: SparkWork, leaders: Any, count: int, radius: int, bounds: Any, most: int | None
) -> Any:
    """Return what is within the radius of each, by slices if there are bounds of them, else by
    comparing blocks with blocks.
    """
    if bounds is not None:
        buckets = max(1, -(-count // _SIGNATURES_A_BUCKET))
        names = ("position", "value", "best", "signature")
        schema = f"task int, {nearby.SIGNATURES}"
        dealt = map_arrow(leaders.select(*names), nearby.deal_slices(bounds, buckets), schema)
        tasks = buckets * (len(bounds) - 1)
        compare = nearby.compare_slices(radius, bounds, buckets, most)
        return map_arrow(dealt.repartitionById(tasks, "task"), compare, nearby.MATCHES)
    blocks = min(_MOST_BLOCKS, max(2, -(-count // _SIGNATURES_A_BLOCK)))
    block = sql.pmod(sql.xxhash64("position"), sql.lit(blocks)).cast("int")
    every = sql.explode(sql.sequence(sql.lit(0), sql.lit(blocks - 1))).alias("other")
    low, high = sql.least("block", "other"), sql.greatest("block", "other")
    # Of a triangle of tasks: those with the higher block h begin at h * (h + 1) / 2.
    task = (sql.expr("greatest(block, other) * (greatest(block, other) + 1) div 2") + low).cast(
        "int"
    )
    dealt = leaders.select("*", block.alias("block")).select("*", every)
    dealt = dealt.select(
        task.alias("task"),
        (low == high).alias("alone"),
        "block",
        "position",
        "value",
        "best",
        "signature",
    )
    tasks = blocks * (blocks + 1) // 2
    compare = nearby.compare_blocks(radius, most)
    return map_arrow(dealt.repartitionById(tasks, "task"), compare, nearby.MATCHES)


def _with_best(signed: SignedTable, rows: Any) -> Any:
    """Return rows of which the first of equal texts stands as high as the best of them."""
    if signed.rule == "first":
        return rows
    better = signed.originals.select(
        sql.col("first").alias("position"),
        sql.col("best").alias("better"),
        sql.col("best_value").alias("better_value"),
    )
    joined = rows.join(better, "position", "left")
    return joined.select(
        *(
            sql.coalesce({"value": "better_value", "best": "better"}[name], name).alias(name)
            if name in ("value", "best")
            else name
            for name in rows.columns
        )
    )


FEW = 1_000_000
"""Documents; what says which they are is 24 bytes each, in the memory of every worker."""


def signature_rows(signed: SignedTable, needed: Any) -> Any:
    """Return `position, value, data`: what decides who stays, and the signature.

    If few are needed, Spark takes them out of the table, and no other leaves Java; unless what
    decides is in the table, too.
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
    numbering, rule = signed.numbering, signed.rule

    def select(batches: Batches) -> Iterator[Any]:
        wanted: PositionSet = needed.value
        for chunk in chunks(batches, numbering.value, rule):
            which = np.flatnonzero(wanted.has(chunk.positions))
            if len(which):
                data = pa.nulls(len(which), pa.binary())
                if "signatures" in columns:
                    data = fixed_binary(chunk.array("signatures", np.uint8)[which])
                yield pa.record_batch(
                    {
                        "position": pa.array(chunk.positions[which]),
                        "value": pa.array(chunk.values[which]),
                        "data": data,
                    }
                )

    return map_arrow(signed.columns(*columns), select, "position long, value long, data binary")
