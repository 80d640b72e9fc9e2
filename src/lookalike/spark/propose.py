"""Step 4, propose, on Spark: which pairs of signatures are worth a look?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lookalike.dedup.pairs.propose import LARGEST_GROUP, band_warnings
from lookalike.dedup.settings import DedupSettings
from lookalike.indexes.bands import choose_bands
from lookalike.spark import bands
from lookalike.spark.packed import PACKED, map_arrow, shuffled
from lookalike.spark.work import SparkWork

__all__ = ["Proposed", "SignedTable", "propose_by_bands"]

_ENTRIES_A_TASK = 4_000_000
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
    originals: Any
    """First of equal texts; see `lookalike.spark.equals.EQUALS`."""
    rule: str
    documents: int

    def columns(self, *names: str) -> Any:
        """Return the table without what is not needed."""
        return self.table.select("file", "start", "partition", "row", "count", *names)


@dataclass(frozen=True, eq=False)
class Proposed:
    """Pairs of positions, `left` and `right`, each once."""

    pairs: Any
    warnings: list[str]


def propose_by_bands(work: SparkWork, settings: DedupSettings, signed: SignedTable) -> Proposed:
    """Return the pairs of MinHash signatures that share a band; see `lookalike.spark.bands`."""
    layout = choose_bands(settings.permutations, settings.threshold)
    buckets = max(work.cores, -(-signed.documents * layout.bands // _ENTRIES_A_TASK))
    reads = layout, signed.numbering, signed.copies, signed.rule
    table = signed.columns("values", "enough", "signatures")
    entries = map_arrow(table, bands.send_bands(*reads, buckets), PACKED)
    met = work.keep(map_arrow(shuffled(entries, buckets), bands.meet_bands(buckets), PACKED))
    told = [
        np.frombuffer(row.data, bands.LARGE_KEY)
        for row in met.where(f"kind = {bands.LARGE}").select("data").toLocalIterator()
    ]
    pairs = met.where(f"kind = {bands.PAIRS}")
    found = np.concatenate(told) if told else np.empty(0, bands.LARGE_KEY)
    if len(found):
        large = bands.LargeGroups(found)
        rows = map_arrow(
            table, bands.large_rows(*reads, work.send(large)), bands.LARGE_ROWS
        )
        pairs = pairs.union(_large_pairs(work, signed, layout.bands, large, rows, buckets))
    warnings = band_warnings(settings, layout, len(found), int(found["size"].sum()))
    distinct = map_arrow(shuffled(pairs, buckets), bands.distinct_pairs, _PAIRS)
    return Proposed(work.keep(distinct), warnings)


def _large_pairs(
    work: SparkWork,
    signed: SignedTable,
    band_count: int,
    large: bands.LargeGroups,
    rows: Any,
    buckets: int,
) -> Any:
    """Return the pairs of large groups, packed: rows by rank, cut into blocks over all workers."""
    from pyspark.sql import functions as sql

    if signed.rule != "first":
        best = signed.originals.select(
            sql.col("first").alias("position"),
            sql.col("best").alias("better"),
            sql.col("best_value").alias("better_value"),
        )
        rows = rows.join(best, "position", "left").select(
            "group",
            sql.coalesce("better_value", "value").alias("value"),
            sql.coalesce("better", "best").alias("best"),
            "position",
            "keys",
        )
    count = int(large.sizes.sum())
    parts = max(work.cores, -(-count // (64 * bands.BLOCK)))
    order = ("group", "value", "best")
    by_rank = rows.repartitionByRange(parts, *order).sortWithinPartitions(*order)
    by_rank = by_rank.select(sql.spark_partition_id().alias("partition"), "*")
    by_rank = work.keep(map_arrow(by_rank, bands.number_rows, _NUMBERED))
    counts = by_rank.groupBy("partition", "group").count().collect()
    before: dict[tuple[int, int], int] = {}
    seen: dict[int, int] = {}
    for row in sorted(counts):
        before[row.partition, row.group] = seen.get(row.group, 0)
        seen[row.group] = seen.get(row.group, 0) + row["count"]
    places = work.send((before, large.sizes))
    placed = map_arrow(by_rank, bands.send_blocks(places, parts), _PLACED)
    pairing: Callable[[Any], Any] = bands.pair_blocks(band_count, work.send(large), buckets)
    return map_arrow(shuffled(placed, parts), pairing, PACKED)


