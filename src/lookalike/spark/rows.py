"""Step 8: from what was found of positions to rows of the corpus, and their ids."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lookalike.corpora.base import pa
from lookalike.dedup.settings import DedupSettings
from lookalike.spark.numbering import Numbering, numbered_columns, pieces_of
from lookalike.spark.packed import Batches, map_arrow
from lookalike.spark.position_set import PositionSet, collect_positions
from lookalike.spark.rounds import Decided
from lookalike.spark.steps.collapse import Collapsed
from lookalike.spark.steps.compare import needed_values, select_rows
from lookalike.spark.work import SparkWork

__all__ = ["ResultRows"]

_FEW_IDS = 200_000
"""That every worker can hold."""


@dataclass(frozen=True, eq=False)
class ResultRows:
    """The corpus, and what was found of those of its rows that are like others."""

    work: SparkWork
    settings: DedupSettings
    frame: Any
    id: str | None
    numbering: Any
    count: int
    collapsed: Collapsed
    decided: Decided
    compared: PositionSet
    """Documents that may have pairs."""

    @cached_property
    def fates(self) -> Any:
        """What becomes of each document that has a pair or a copy."""
        from pyspark.sql import functions as sql

        first, none = sql.col("first"), self.settings.keep == "none"
        named = ("position", "cluster", "survivor", "similarity")
        groups = self.decided.groups
        every = groups.withColumn("position", first).select(*named)
        if self.collapsed.texts:
            alone = self.collapsed.originals.join(groups.select("first"), "first", "left_anti")
            alone = alone.select(
                "first",
                first.alias("cluster"),
                sql.col("second" if none else "best").alias("survivor"),
                first.alias("centre"),
                sql.lit(1.0).alias("similarity"),
            )
            groups = groups.union(alone)
            of_copies = self.collapsed.copy_rows.join(groups, "first")
            if none:  # of equal texts, all but the first name that
                of_copies = of_copies.withColumn("survivor", first)
                of_copies = of_copies.withColumn("similarity", sql.lit(1.0))
            every = groups.withColumn("position", first).select(*named)
            every = every.union(of_copies.select(*named))
        goes = sql.col("survivor") != sql.col("position")
        return self.work.keep(
            every.select(
                "position",
                "cluster",
                sql.when(goes, sql.col("survivor")).alias("duplicate_of"),
                sql.when(goes, sql.col("similarity")).alias("similarity"),
            )
        )

    @property
    def verified(self) -> Any:
        """Verified pairs, and equal texts with their first."""
        from pyspark.sql import functions as sql

        if not self.collapsed.count:
            return self.decided.verified
        return self.decided.verified.union(
            self.collapsed.copy_rows.select(
                sql.col("first").alias("left"),
                sql.col("position").alias("right"),
                sql.lit(1.0).alias("similarity"),
                sql.lit(0).alias("distance"),
            )
        )

    def survivors(self) -> Any:
        """Return the rows that stay; none is shuffled."""
        dropped = self.work.send(
            collect_positions(
                self.fates.where("duplicate_of is not null"), ["position"], self.count
            )
        )
        numbering = self.numbering

        def stay(batches: Batches) -> Iterator[Any]:
            known: Numbering = numbering.value
            gone: PositionSet = dropped.value
            for piece, row, batch, _ in pieces_of(batches):
                first = known.first(piece, row, len(batch))
                stays = ~gone.has(np.arange(first, first + len(batch)))
                yield batch if stays.all() else batch.filter(pa.array(stays))

        return map_arrow(
            numbered_columns(self.frame, self._columns), stay, self.frame.schema.simpleString()
        )

    def annotated(self) -> Any:
        """Return all rows; only those that are like others are joined with what was found."""
        from pyspark.sql import functions as sql

        fates = self.named_fates()
        needed = self.work.send(collect_positions(self.fates, ["position"], self.count))
        schema = ", ".join(
            f"`{part.name}` {part.dataType.simpleString()}" for part in self.frame.schema.fields
        )
        like, others = (
            select_rows(self.frame, self._columns, self.numbering, needed, schema, others=alone)
            for alone in (False, True)
        )
        kinds = {part.name: part.dataType for part in fates.schema.fields}
        added = ("cluster", "duplicate_of", "similarity")
        for name in added:
            others = others.withColumn(name, sql.lit(None).cast(kinds[name]))
        return others.union(like.join(fates, "position")).withColumnRenamed("position", "row")

    def named_fates(self) -> Any:
        """Return what was found, by id; who is alone is in no cluster."""
        from pyspark.sql import functions as sql

        sizes = self.fates.groupBy("cluster").agg(sql.count("*").alias("size"))
        fates = self.fates.join(sizes, "cluster").select(
            "position",
            sql.when(sql.col("size") > 1, sql.col("cluster")).alias("cluster"),
            "duplicate_of",
            "similarity",
        )
        if self.id is None:
            return fates
        ids = self._ids()
        for name in ("cluster", "duplicate_of"):
            fates = self._named(fates, name, ids)
        return fates.select("position", "cluster", "duplicate_of", "similarity")

    def pairs(self) -> Any:
        """Return the verified pairs by id."""
        if self.id is not None and self.decided.by_name is not None:
            return self.decided.by_name
        pairs = self.verified
        if self.id is not None:
            ids = self._ids()
            for side in ("left", "right"):
                pairs = self._named(pairs, side, ids)
        return pairs.select("left", "right", "similarity", "distance")

    def _ids(self) -> Any:
        """Return `position, id` of rows that may be like others."""
        from pyspark.sql import functions as sql

        needed = self.compared | self.collapsed.copies | self.collapsed.firsts
        # As the local job has them: text, and the number of the row where there is none.
        found = needed_values(
            self.frame,
            sql.col(f"`{self.id}`").cast("string"),
            self.numbering,
            self.work.send(needed),
        )
        name = sql.coalesce("payload", sql.col("position").cast("string")).alias("id")
        found = found.select("position", name)
        return sql.broadcast(found) if len(needed) <= _FEW_IDS else found

    def _named(self, frame: Any, column: str, ids: Any) -> Any:
        from pyspark.sql import functions as sql

        ids = ids.select(sql.col("position").alias("named"), sql.col("id").alias("name"))
        return (
            frame.join(ids, frame[column] == ids["named"], "left")
            .drop(column, "named")
            .withColumnRenamed("name", column)
        )

    @property
    def _columns(self) -> list[str]:
        return [f"`{name}`" for name in self.frame.columns]
