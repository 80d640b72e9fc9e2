"""The result of a job on Spark: counts, and frames of rows with their ids."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from lookalike.corpora.base import pa
from lookalike.dedup.result import DedupCounts
from lookalike.dedup.settings import DedupSettings
from lookalike.dedup.summary import Wording, left_out_lines, size_text, summary_text, text_wording
from lookalike.spark.collapse import Collapsed, count_every_pair, every_pair
from lookalike.spark.packed import Batches, map_arrow, sql
from lookalike.spark.positions import (
    Numbering,
    PositionSet,
    collect_positions,
    numbered_columns,
    pieces_of,
)
from lookalike.spark.rounds import Decided
from lookalike.spark.sources import Sources
from lookalike.spark.verify import needed_values, select_rows
from lookalike.spark.work import SparkWork

__all__ = ["ResultRows", "SparkDedup"]


COUNTED = (
    *("documents", "kept", "exact_duplicates", "near_duplicates", "estimated_duplicates", "in_old"),
    *("clusters", "largest_cluster", "without_features", "compared_pairs", "verified_pairs"),
    *("bytes", "left_out"),
)
"""The counts that Spark knows; the others of `DedupCounts` keep their defaults."""


@dataclass(frozen=True, eq=False)
class SparkDedup:
    """Who stays, who goes, and why. Frames are read from tables that last until `close`."""

    settings: DedupSettings
    counts: DedupCounts
    """Counts as the local job has them, but only those in `COUNTED` are known on Spark.
    `compared_pairs` are pairs with similar signatures, each counted once.
    """
    seconds: dict[str, float]
    """Of each step."""
    warnings: list[str]
    left_out: dict[str, int]
    """What was left out, by kind."""
    _rows: ResultRows = field(repr=False)
    reused: tuple[str, ...] = ()
    overlapped: tuple[str, ...] = ()

    @cached_property
    def survivors(self) -> Any:
        """The rows that stay, with all their columns, in the partitions that Spark reads: it begins
        with the largest pieces of files, whatever their names.
        """
        return self._rows.survivors()

    @cached_property
    def annotated(self) -> Any:
        """All rows, with `row` (its number) and, as the local job has it, `cluster`,
        `duplicate_of` and `similarity`: ids, or the numbers of rows where there are none.
        """
        return self._rows.annotated()

    @cached_property
    def pairs(self) -> Any:
        """Verified pairs: `left`, `right`, `similarity` and `distance`. Equal texts are paired
        with their first; with `exact`, with each other, so that every pair is there. With an old
        corpus also `old`: whether left is one of it.
        """
        return self._rows.pairs()

    @cached_property
    def fates(self) -> Any:
        """What was found of rows that are like others, by their numbers: `position`, `cluster`,
        `duplicate_of` (null for those that stay) and `similarity`; with an old corpus also
        `matched_old`, the row of it that one is a duplicate of.
        """
        return self._rows.fates

    @property
    def complete(self) -> bool:
        """Whether every pair at or above the threshold is known: with `exact`."""
        return self.settings.exact

    def wording(self) -> Wording:
        """Return the words for its documents."""
        lines = left_out_lines(self.left_out)
        return text_wording(self.settings, size_text(self.counts.bytes), lines)

    def summary(self) -> str:
        """Return what was found in a few lines."""
        return summary_text(self)

    def to_dict(self) -> dict[str, Any]:
        """Return settings, whether pairs are complete, counts, seconds and warnings, in plain
        values.
        """
        return {
            "settings": self.settings.to_dict(),
            "complete": self.complete,
            "counts": {name: getattr(self.counts, name) for name in COUNTED},
            "seconds": {step: round(passed, 4) for step, passed in self.seconds.items()},
            "warnings": list(self.warnings),
        }

    def close(self) -> None:
        """Remove the tables; the frames cannot be used any more."""
        self._rows.work.close()

    def __enter__(self) -> SparkDedup:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_FEW_IDS = 200_000
"""That every worker can hold."""


@dataclass(frozen=True, eq=False)
class ResultRows:
    """The corpus, and what was found of those of its rows that are like others.

    Positions are those among all documents, of which old ones are the first; rows are counted in
    each corpus by itself.
    """

    work: SparkWork
    settings: DedupSettings
    sources: Sources
    numbering: Any
    count: int
    collapsed: Collapsed
    decided: Decided
    compared: PositionSet
    """Documents that may have pairs."""

    @property
    def old(self) -> int:
        """How many documents are of the old corpus."""
        return int(self.numbering.value.old)

    @cached_property
    def found(self) -> Any:
        """What becomes of each document of the corpus that has a pair or a copy: `position`,
        `cluster`, `duplicate_of`, `similarity` and `other`, whether that one has another text.
        """
        first, none = sql.col("first"), self.settings.keep == "none"
        named = ("position", "cluster", "survivor", "similarity", "other")
        is_other = sql.col("centre") != first
        groups = self.decided.groups
        every = groups.select(first.alias("position"), "*", is_other.alias("other")).select(*named)
        if self.collapsed.texts:
            alone = self.collapsed.originals.join(groups.select("first"), "first", "left_anti")
            stays = sql.col("second" if none else "best")
            alone = alone.select(
                "first",
                first.alias("cluster"),
                # An old one stays, and is what its copies are copies of.
                sql.when(first < self.old, first).otherwise(stays).alias("survivor"),
                first.alias("centre"),
                sql.lit(1.0).alias("similarity"),
            )
            groups = groups.union(alone).withColumn("other", is_other)
            of_copies = self.collapsed.copy_rows.join(groups, "first")
            if none:  # of equal texts, all but the first name that, or the old one that it names
                in_old = (sql.col("survivor") < self.old) & (first >= self.old)
                of_copies = of_copies.select(
                    "position",
                    "cluster",
                    sql.when(in_old, sql.col("survivor")).otherwise(first).alias("survivor"),
                    sql.when(in_old, sql.col("similarity")).otherwise(1.0).alias("similarity"),
                    in_old.alias("other"),
                )
            every = groups.withColumn("position", first).select(*named)
            every = every.union(of_copies.select(*named))
        goes = sql.col("survivor") != sql.col("position")
        every = every.select(
            "position",
            "cluster",
            sql.when(goes, sql.col("survivor")).alias("duplicate_of"),
            sql.when(goes, sql.col("similarity")).alias("similarity"),
            (goes & sql.col("other")).alias("other"),
        )
        return self.work.keep(self._of_corpus(every) if self.old else every)

    def _of_corpus(self, every: Any) -> Any:
        """Return what was found without old documents; clusters are called by the first others."""
        new = self.work.keep(every.where(f"position >= {self.old}"))
        firsts = new.groupBy("cluster").agg(sql.min("position").alias("first"))
        called = new.join(firsts, "cluster").drop("cluster").withColumnRenamed("first", "cluster")
        return called.select(*new.columns)

    def counted(self, documents: int) -> dict[str, int]:
        """Return how many there are of what in the corpus, which has so many documents."""
        other, copies, old = sql.col("duplicate_of"), self.collapsed.copies, self.old
        total = self.found.agg(
            sql.count(other).alias("dropped"), sql.count(sql.when(other < old, 1)).alias("in_old")
        ).first()
        sizes = self.found.groupBy("cluster").agg(sql.count("*").alias("size"))
        clusters = sizes.agg(
            sql.count(sql.when(sql.col("size") > 1, 1)).alias("count"),
            sql.max("size").alias("largest"),
        ).first()
        equal = copies | self.collapsed.firsts if self.settings.keep == "none" else copies
        if not self.settings.verify:  # what only signatures vouch for is no exact duplicate
            equal -= collect_positions(self.found.where("other"), ["position"], self.count)
        return {
            "kept": documents - total.dropped,
            "in_old": total.in_old,
            "clusters": clusters["count"],
            "largest_cluster": max(clusters.largest or 0, min(1, documents)),
            "exact_duplicates": equal.count_from(old),
            "verified_pairs": self.pair_count,
        }

    @property
    def fates(self) -> Any:
        """What was found, by the numbers of rows."""
        found = self.found.drop("other")
        if not self.old:
            return found
        other = sql.col("duplicate_of")
        return found.select(
            self._row("position"),
            self._row("cluster"),
            sql.when(other >= self.old, other - self.old).alias("duplicate_of"),
            sql.when(other < self.old, other).alias("matched_old"),
            "similarity",
        )

    def _row(self, name: str) -> Any:
        """Return a column of positions as one of rows, each counted in its own corpus."""
        position = sql.col(name)
        if not self.old:
            return position
        return sql.when(position < self.old, position).otherwise(position - self.old).alias(name)

    @property
    def pair_count(self) -> int:
        """How many pairs of the corpus there are."""
        if self.settings.exact and self.collapsed.count:
            return count_every_pair(self.decided.verified, self.collapsed.members, self.old)
        return self.decided.facts.alike + self.collapsed.copies.count_from(self.old)

    @cached_property
    def verified(self) -> Any:
        """Verified pairs, and equal texts with their first; with `exact`, every pair."""
        if not self.collapsed.count:
            return self.decided.verified
        if self.settings.exact:
            members = self.collapsed.members
            return every_pair(self.decided.verified, members).where(f"right >= {self.old}")
        return self.decided.verified.union(
            self.collapsed.copy_rows.where(f"position >= {self.old}").select(
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
                self.found.where("duplicate_of is not null"), ["position"], self.count
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

        frame = self.sources.corpus.frame
        schema = frame.select(*self._columns).schema
        return map_arrow(numbered_columns(frame, self._columns), stay, schema)

    def annotated(self) -> Any:
        """Return all rows; only those that are like others are joined with what was found."""
        fates = self.named_fates()
        needed = self.work.send(collect_positions(self.found, ["position"], self.count))
        corpus = self.sources.corpus
        like, others = (
            select_rows(corpus.frame, self._columns, self.numbering, needed, others=alone)
            for alone in (False, True)
        )
        kinds = {part.name: part.dataType for part in fates.schema.fields}
        added = ("cluster", "duplicate_of", "similarity")
        for name in added:
            others = others.withColumn(name, sql.lit(None).cast(kinds[name]))
        every = others.union(like.join(fates, "position"))
        return every.withColumn("position", self._row("position")).withColumnRenamed(
            "position", "row"
        )

    def named_fates(self) -> Any:
        """Return what was found, by id; who is alone is in no cluster."""
        sizes = self.found.groupBy("cluster").agg(sql.count("*").alias("size"))
        fates = self.found.join(sizes, "cluster").select(
            "position",
            sql.when(sql.col("size") > 1, sql.col("cluster")).alias("cluster"),
            "duplicate_of",
            "similarity",
        )
        by_name = [self.sources.corpus.columns.id is not None, self._by_name]
        for name, named in zip(("cluster", "duplicate_of"), by_name, strict=True):
            fates = (
                self._named(fates, name, self._ids)
                if named
                else fates.withColumn(name, self._row(name))
            )
        return fates.select("position", "cluster", "duplicate_of", "similarity")

    def pairs(self) -> Any:
        """Return the verified pairs by id; with an old corpus, `old` tells that left is of it."""
        by_name = self.decided.by_name
        if self.sources.plain_names and by_name is not None and not self.settings.exact:
            return by_name
        pairs, columns = self.verified, ["left", "right", "similarity", "distance"]
        if self.sources.has_old:
            pairs = pairs.selectExpr(*columns, f"left < {self.old} as old")
            columns.append("old")
        if self._by_name:
            for side in ("left", "right"):
                pairs = self._named(pairs, side, self._ids)
        return pairs.select(*columns)

    @property
    def _by_name(self) -> bool:
        """Whether documents are named: of two corpora, the numbers of rows say too little."""
        return self.sources.has_old or self.sources.corpus.columns.id is not None

    @cached_property
    def _ids(self) -> Any:
        """Return `position, id` of rows that may be like others."""
        needed = self.compared | self.collapsed.copies | self.collapsed.firsts
        # As the local job has them: text, and the number of the row where there is none.
        found = needed_values(
            self.sources.documents,
            sql.col(f"`{self.sources.compared.id}`").cast("string"),
            self.numbering,
            self.work.send(needed),
        )
        name = sql.coalesce("payload", self._row("position").cast("string")).alias("id")
        found = found.select("position", name)
        return sql.broadcast(found) if len(needed) <= _FEW_IDS else found

    def _named(self, frame: Any, column: str, ids: Any) -> Any:
        ids = ids.select(sql.col("position").alias("named"), sql.col("id").alias("name"))
        return (
            frame.join(ids, frame[column] == ids["named"], "left")
            .drop(column, "named")
            .withColumnRenamed("name", column)
        )

    @property
    def _columns(self) -> list[str]:
        return [f"`{name}`" for name in self.sources.corpus.names]
