"""Step 2, collapse, on Spark: which texts have come before, and what are they copies of?

Fingerprints meet by a shuffle. A partition sends one of several equal ones, so that a frequent text
is no more work than another. Its other documents are sent apart, with the first of the partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.spark.packed import (
    PACKED,
    Batches,
    as_columns,
    fixed_binary,
    gathered,
    map_arrow,
    packed,
    packed_row,
    rows_of,
    shuffled,
    sql,
)
from lookalike.spark.positions import PositionSet, packed_positions, told_rows
from lookalike.spark.signing import FINGERPRINT, Chunk, Chunks, SignedTable
from lookalike.spark.work import SparkWork

_NUMBERS = ("first", "second", "value", "best", "best_value", "count")
EQUALS = np.dtype([("high", "<u8"), ("low", "<u8"), *((name, "<i8") for name in _NUMBERS)])
"""Of equal texts: the first two positions (-1: no second), the one that is kept before the others,
and how many there are.
"""

COPIES = np.dtype([("position", "<i8"), ("first", "<i8")])

FACTS = np.dtype([("texts", "<i8"), ("copies", "<i8"), ("largest", "<i8"), ("moved", "<i8")])
"""Texts that there are copies of, copies, the most documents that have one text, and how many
firsts of partitions are copies themselves.
"""

ENTRY, COPY, COPY_HERE, FACT, COPY_SET, FIRST_SET = range(6)
"""Rows: entries; copies; copies within a partition, with its first; how many there are of each, and
their positions.
"""

_EQUALS = ", ".join(f"{name} long" for name in EQUALS.names or ())
_DOCUMENTS_A_TASK = 2_000_000
_COPIES = "position long, first long"
_ENTRIES = "position long, data binary"


@dataclass(frozen=True, eq=False)
class Collapsed:
    """Texts that several documents have, and these documents."""

    work: SparkWork
    met: Any
    texts: int
    count: int
    """Of copies: all documents with one of these texts but its first."""
    largest: int
    """The most documents that have one text."""
    moved: int
    """Copies that are the first in their partition."""
    copies: PositionSet
    firsts: PositionSet

    @classmethod
    def of(
        cls, work: SparkWork, met: Any, told: dict[int, list[bytes]], documents: int
    ) -> Collapsed:
        """Return packed rows, some of which have `told` the numbers and positions."""
        facts = np.frombuffer(b"".join(told.get(FACT, [])), FACTS)
        sums = {name: int(facts[name].sum()) for name in ("texts", "copies", "moved")}
        copies, firsts = (
            PositionSet.of(told.get(kind, []), documents) for kind in (COPY_SET, FIRST_SET)
        )
        largest = int(facts["largest"].max(initial=0))
        return cls(work, met, sums["texts"], sums["copies"], largest, sums["moved"], copies, firsts)

    @cached_property
    def originals(self) -> Any:
        """The texts, as rows; see `EQUALS`."""
        return self._records(ENTRY, EQUALS, _EQUALS)

    @cached_property
    def copy_rows(self) -> Any:
        """The copies, as rows: `position` and `first`, the first with the same text."""
        here, there = (self._records(kind, COPIES, _COPIES) for kind in (COPY_HERE, COPY))
        if not self.moved:
            return here
        if self.moved == self.count:
            return there
        again = there.toDF("known", "least")
        resolved = here.join(again, here["first"] == again["known"], "left").select(
            "position", sql.coalesce("least", "first").alias("first")
        )
        return self.work.keep(resolved.union(there))

    @property
    def members(self) -> Any:
        """All documents of texts that have copies: `first`, and `position`."""
        firsts = self.originals.selectExpr("first", "first as position")
        return firsts.union(self.copy_rows.select("first", "position"))

    def entries(self, needed: Any) -> Any:
        """Return `position, data`: the entries of needed documents that have copies."""
        return map_arrow(self.met.where(f"kind = {ENTRY}"), equal_rows, _ENTRIES, needed)

    def _records(self, kind: int, dtype: Any, schema: str) -> Any:
        return map_arrow(self.met.where(f"kind = {kind}"), as_columns, schema, dtype, kind)


def every_pair(pairs: Any, members: Any) -> Any:
    """Return pairs of texts as pairs of all documents, `members`, that have one of these texts."""
    spread = pairs
    for side in ("left", "right"):
        copies = members.select("first", "position").toDF(side, "copy")
        spread = spread.join(copies, side, "left")
        spread = spread.withColumn(side, sql.coalesce("copy", side)).drop("copy")
    spread = spread.select(*ordered("left", "right"), "similarity", "distance")
    one, two = (members.select("first", "position").toDF("first", at) for at in ("left", "right"))
    return spread.union(equal_pairs(one.join(two, "first").where("left < right"), "left", "right"))


def equal_pairs(rows: Any, left: str, right: str) -> Any:
    """Return two columns of positions of equal texts as pairs."""
    return rows.select(
        sql.col(left).alias("left"),
        sql.col(right).alias("right"),
        sql.lit(1.0).alias("similarity"),
        sql.lit(0).alias("distance"),
    )


def ordered(one: str, two: str) -> tuple[Any, Any]:
    """Return two columns of positions as `left` and `right`, the lower one first."""
    return sql.least(one, two).alias("left"), sql.greatest(one, two).alias("right")


def count_every_pair(pairs: Any, members: Any, old: int) -> int:
    """Return the number of pairs of `every_pair`, by group sizes, except those of two old ones."""
    olds = sql.count(sql.when(sql.col("position") < old, 1)).alias("olds")
    sizes = members.groupBy("first").agg(sql.count("*").alias("all"), olds)
    inside = sizes.selectExpr("sum(all * (all - 1) div 2 - olds * (olds - 1) div 2) as pairs")
    met = pairs.select("left", "right")
    for side in ("left", "right"):
        named = sizes.toDF(side, f"{side}_all", f"{side}_olds")
        is_old = sql.when(sql.col(side) < old, 1).otherwise(0)
        met = met.join(named, side, "left").withColumns(
            {
                f"{side}_all": sql.coalesce(f"{side}_all", sql.lit(1)),
                f"{side}_olds": sql.coalesce(f"{side}_olds", is_old),
            }
        )
    between = met.selectExpr("sum(left_all * right_all - left_olds * right_olds) as pairs")
    return sum(int(row["pairs"] or 0) for row in inside.union(between).collect())


def collapse(work: SparkWork, signed: SignedTable) -> Collapsed:
    """Return the equal texts of a table of signatures that are long enough to be compared."""
    buckets = max(work.cores, -(-signed.documents // _DOCUMENTS_A_TASK))
    table = signed.columns("fingerprints", "values", "enough")
    sent = map_arrow(table, send_fingerprints, PACKED, signed.chunks, buckets)
    met = work.keep(map_arrow(shuffled(sent, buckets), meet_equals, PACKED))
    told = told_rows(met.where(f"kind in ({FACT}, {COPY_SET}, {FIRST_SET})"), signed.documents)
    return Collapsed.of(work, met, told, signed.documents)


def send_fingerprints(chunks: Chunks, buckets: int, batches: Batches) -> Iterator[Any]:
    """Send fingerprints to where equal ones meet; tell copies within the partition at once."""
    entries, copies = merged_entries(chunks.of(batches))
    yield from packed(copies, copies["first"] % buckets, COPY_HERE)
    yield from packed(entries, (entries["high"] % buckets).astype(np.int64), ENTRY)


def merged_entries(documents: Iterable[Chunk]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return an entry for each different text, and the copies, of all that are long enough."""
    parts = [np.empty(0, EQUALS)]
    for chunk in documents:
        entries = np.empty(len(chunk.positions), EQUALS)
        prints = chunk.array("fingerprints", FINGERPRINT)
        entries["high"], entries["low"] = prints["high"], prints["low"]
        entries["first"] = entries["best"] = chunk.positions
        entries["second"], entries["count"] = -1, 1
        entries["value"] = entries["best_value"] = chunk.values
        parts.append(entries[chunk.enough])
    return distinct_entries(np.concatenate(parts))


def meet_equals(batches: Batches) -> Iterator[Any]:
    """Yield copies, the entries of texts that have copies, and how many there are."""
    kinds = {ENTRY: EQUALS, COPY_HERE: COPIES}
    found = {kind: np.empty(0, dtype) for kind, dtype in kinds.items()} | gathered(batches, kinds)
    entries, copies = distinct_entries(found[ENTRY])
    yield from told_equals(entries, copies, found[COPY_HERE])


def told_equals(entries: NDArray[Any], copies: NDArray[Any], here: NDArray[Any]) -> Iterator[Any]:
    """Yield rows of all kinds; `here` are the copies within partitions."""
    several = entries[entries["second"] >= 0]
    largest = several["count"].max(initial=0)
    facts = np.array([(len(several), len(copies) + len(here), largest, len(copies))], FACTS)
    of_copies = np.concatenate([copies["position"], here["position"]])
    for kind, records in ((COPY, copies), (COPY_HERE, here), (ENTRY, several), (FACT, facts)):
        yield from packed(records, np.zeros(len(records), np.int64), kind)
    for kind, positions in ((COPY_SET, of_copies), (FIRST_SET, several["first"])):
        if len(positions):
            yield packed_row(kind, packed_positions(positions))


def distinct_entries(entries: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return an entry for each fingerprint, and the copies: positions that are no longer first."""
    order = np.argsort(entries["high"])
    high = entries["high"][order]
    same = np.append(high[1:] == high[:-1], False)[: len(high)]
    same[1:] |= same[:-1].copy()  # few: only these are looked at
    alone, entries = entries[order[~same]], entries[order[same]]
    merged, copies = _merged_few(entries)
    return np.concatenate([alone, merged]) if len(merged) else alone, copies


def _merged_few(entries: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    entries = entries[np.lexsort((entries["first"], entries["low"], entries["high"]))]
    same = (np.diff(entries["high"]) == 0) & (np.diff(entries["low"]) == 0)
    if not same.any():
        return entries, np.empty(0, COPIES)
    copied = np.concatenate([[False], same])
    begins, group = np.flatnonzero(~copied), np.cumsum(~copied) - 1
    merged = entries[begins]
    # The second of all is the second of the first entry, or the first of another.
    huge = np.iinfo(np.int64).max
    others = np.where(copied, entries["first"], huge)
    seconds = np.where(entries["second"] < 0, huge, entries["second"])
    second = np.minimum.reduceat(np.minimum(others, seconds), begins)
    merged["second"] = np.where(second == huge, -1, second)
    merged["count"] = np.add.reduceat(entries["count"], begins)
    by_value = np.lexsort((entries["best"], entries["best_value"], group))
    best = entries[by_value[begins]]
    merged["best"], merged["best_value"] = best["best"], best["best_value"]
    copies = np.empty(int(same.sum()), COPIES)
    copies["position"] = entries["first"][copied]
    copies["first"] = merged["first"][group[copied]]
    return merged, copies


def equal_rows(needed: Any, batches: Batches) -> Iterator[Any]:
    """Yield `position, data`: the entries of needed documents that have copies."""
    for batch in batches:
        entries = gathered(iter([batch]), EQUALS)[ENTRY]
        entries = entries[needed.value.has(entries["first"])]
        yield rows_of(_ENTRIES, position=entries["first"], data=fixed_binary(entries))
