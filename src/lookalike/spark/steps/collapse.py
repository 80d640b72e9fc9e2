"""Step 2, collapse, on Spark: which texts have come before, and whose copies are they?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lookalike.spark.packed import PACKED, as_columns, map_arrow, shuffled
from lookalike.spark.position_set import PositionSet, told_rows
from lookalike.spark.steps.equals import (
    COPIES,
    COPY,
    COPY_HERE,
    COPY_SET,
    ENTRY,
    EQUALS,
    FACT,
    FACTS,
    FIRST_SET,
    equal_rows,
    meet_equals,
    send_fingerprints,
)
from lookalike.spark.work import SparkWork

__all__ = ["Collapsed", "collapse", "every_pair"]

_EQUALS = ", ".join(f"{name} long" for name in EQUALS.names or ())
_DOCUMENTS_A_TASK = 2_000_000
_COPIES = "position long, first long"


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
        """Return packed rows, of which some have told this."""
        facts = np.frombuffer(b"".join(told.get(FACT, [])), FACTS)
        sums = {name: int(facts[name].sum()) for name in ("texts", "copies", "moved")}
        copies, firsts = (
            PositionSet.of(told.get(kind, []), documents) for kind in (COPY_SET, FIRST_SET)
        )
        largest = int(facts["largest"].max(initial=0))
        return cls(work, met, sums["texts"], sums["copies"], largest, sums["moved"], copies, firsts)

    @cached_property
    def originals(self) -> Any:
        """The texts, as rows; see `lookalike.spark.steps.equals.EQUALS`."""
        return map_arrow(self.met.where(f"kind = {ENTRY}"), as_columns(EQUALS, ENTRY), _EQUALS)

    @cached_property
    def copy_rows(self) -> Any:
        """The copies, as rows: `position` and `first`, the first with the same text."""
        from pyspark.sql import functions as sql

        here, there = (
            map_arrow(self.met.where(f"kind = {kind}"), as_columns(COPIES, kind), _COPIES)
            for kind in (COPY_HERE, COPY)
        )
        if not self.moved:
            return here
        if self.moved == self.count:
            return there
        again = there.select(sql.col("position").alias("known"), sql.col("first").alias("least"))
        resolved = here.join(again, here["first"] == again["known"], "left").select(
            "position", sql.coalesce("least", "first").alias("first")
        )
        return self.work.keep(resolved.union(there))

    @property
    def members(self) -> Any:
        """All documents of texts that have copies: `first`, and `position`."""
        from pyspark.sql import functions as sql

        firsts = self.originals.select("first", sql.col("first").alias("position"))
        return firsts.union(self.copy_rows.select("first", "position"))

    def entries(self, needed: Any) -> Any:
        """Return `position, data`: what there is to know of those of the needed documents that
        have copies.
        """
        rows = self.met.where(f"kind = {ENTRY}")
        return map_arrow(rows, equal_rows(needed), "position long, data binary")


def every_pair(pairs: Any, members: Any) -> Any:
    """Return pairs of texts as pairs of documents: each copy of the one with each of the other, and
    the copies of each text, `members`, with each other.
    """
    from pyspark.sql import functions as sql

    spread = pairs
    for side in ("left", "right"):
        copies = members.select(sql.col("first").alias(side), sql.col("position").alias("copy"))
        spread = spread.join(copies, side, "left")
        spread = spread.withColumn(side, sql.coalesce("copy", side)).drop("copy")
    spread = spread.select(
        sql.least("left", "right").alias("left"),
        sql.greatest("left", "right").alias("right"),
        "similarity",
        "distance",
    )
    one = members.select("first", sql.col("position").alias("left"))
    two = members.select("first", sql.col("position").alias("right"))
    same = one.join(two, "first").where("left < right")
    return spread.union(
        same.select(
            "left",
            "right",
            sql.lit(1.0).alias("similarity"),
            sql.lit(0).alias("distance"),
        )
    )


def count_every_pair(pairs: Any, members: Any, old: int) -> int:
    """Return how many pairs `every_pair` returns that are not of two old documents.

    It counts by the sizes of groups: a million copies are 5 * 10**11 pairs, and one row here.
    """
    from pyspark.sql import functions as sql

    sizes = members.groupBy("first").agg(
        sql.count("*").alias("all"),
        sql.sum(sql.when(sql.col("position") < old, 1).otherwise(0)).alias("olds"),
    )
    inside = sizes.selectExpr("sum(all * (all - 1) div 2 - olds * (olds - 1) div 2) as pairs")
    met = pairs.select("left", "right")
    for side in ("left", "right"):
        named = sizes.toDF(side, f"{side}_all", f"{side}_olds")
        met = met.join(named, side, "left").withColumns(
            {
                f"{side}_all": sql.coalesce(f"{side}_all", sql.lit(1)),
                f"{side}_olds": sql.coalesce(
                    f"{side}_olds", sql.when(sql.col(side) < old, 1).otherwise(0)
                ),
            }
        )
    between = met.selectExpr("sum(left_all * right_all - left_olds * right_olds) as pairs")
    return sum(int(row["pairs"] or 0) for row in inside.union(between).collect())


def collapse(work: SparkWork, table: Any, numbering: Any, rule: str, documents: int) -> Collapsed:
    """Return equal texts of a table of signatures; those too short to be compared are not told."""
    buckets = max(work.cores, -(-documents // _DOCUMENTS_A_TASK))
    names = ("file", "start", "partition", "row", "count", "fingerprints", "values", "enough")
    sent = map_arrow(table.select(*names), send_fingerprints(numbering, rule, buckets), PACKED)
    met = work.keep(map_arrow(shuffled(sent, buckets), meet_equals, PACKED))
    told = told_rows(met.where(f"kind in ({FACT}, {COPY_SET}, {FIRST_SET})"), documents)
    return Collapsed.of(work, met, told, documents)
