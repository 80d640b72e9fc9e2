"""The result of a job on Spark: counts, and frames of rows with their ids."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from lookalike.corpora.base import pa
from lookalike.dedup.settings import DedupSettings
from lookalike.dedup.summary import (
    Summarized,
    Wording,
    features_lines,
    left_out_lines,
    size_text,
    text_wording,
)
from lookalike.spark.collapse import Collapsed, count_every_pair, equal_pairs, every_pair
from lookalike.spark.packed import Batches, map_arrow, sql
from lookalike.spark.positions import PositionSet, collect_positions, numbered_columns, pieces_of
from lookalike.spark.rounds import Decided
from lookalike.spark.signing import SignedTable
from lookalike.spark.sources import Sources
from lookalike.spark.verify import needed_values, select_rows
from lookalike.spark.work import HeldFrames, SparkWork

COUNTED = (
    *("documents", "kept", "exact_duplicates", "near_duplicates", "estimated_duplicates", "in_old"),
    *("groups", "largest_group", "without_features", "compared_pairs", "verified_pairs"),
    *("bytes", "left_out", "short_documents"),
)
"""The counts that Spark knows; the others of `DedupCounts` keep their defaults."""


ANNOTATED = ("row", "group_id", "duplicate_of", "similarity")
"""The columns that annotated rows have more than others."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SparkDedup(Summarized, HeldFrames):
    """The kept rows, the dropped rows, and why. Its frames can be read until `close`.

    Of the counts of the local job, Spark knows those in `COUNTED`. `compared_pairs` are pairs with
    similar signatures, each counted once.
    """

    settings: DedupSettings
    features_reason: str | None
    """Why these features were chosen; None if the caller chose them."""
    left_out: dict[str, int]
    """Documents that were left out, by kind."""
    _rows: ResultRows = field(repr=False)

    @cached_property
    def kept(self) -> Any:
        """The kept rows, with all their columns, in the partitions that Spark reads."""
        return self._rows.kept()

    @cached_property
    def annotated(self) -> Any:
        """All rows with `row`, their number, and as in the local job `group_id`, `duplicate_of` and
        `similarity`: ids, or row numbers where there are no ids.
        """
        return self._rows.annotated()

    @cached_property
    def pairs(self) -> Any:
        """Verified pairs: `left`, `right`, `similarity` and `distance`. Equal texts are paired
        with their first; with `exact`, with each other. With an old corpus also `old`: whether left
        is in it.
        """
        return self._rows.pairs()

    @cached_property
    def grouped(self) -> Any:
        """Rows that have duplicates, by number: `position`, `group_id`, `duplicate_of` (null for
        kept rows) and `similarity`; with an old corpus also `matched_old`, a row of that.
        """
        return self._rows.grouped

    @property
    def complete(self) -> bool:
        """Whether every pair at or above the threshold is known: with `exact`."""
        return self.settings.exact

    def wording(self) -> Wording:
        """Return the words for its documents."""
        features = features_lines(self.settings, self.features_reason)
        lines = [*features, *left_out_lines(self.left_out)]
        return text_wording(self.settings, size_text(self.counts.bytes), lines)

    def to_dict(self) -> dict[str, Any]:
        """Return settings, why features were chosen, completeness, counts, seconds and warnings, in
        plain values.
        """
        return {
            "settings": self.settings.to_dict(),
            "features_reason": self.features_reason,
            "complete": self.complete,
            "counts": {name: getattr(self.counts, name) for name in COUNTED},
            "seconds": {step: round(passed, 4) for step, passed in self.seconds.items()},
            "warnings": list(self.warnings),
        }


_FEW_IDS = 200_000
"""That every worker can hold."""


@dataclass(frozen=True, eq=False)
class ResultRows:
    """The corpus, and what was found of rows that have duplicates.

    Positions count all documents, old ones first; row numbers count each corpus by itself.
    """

    work: SparkWork
    settings: DedupSettings
    sources: Sources
    signed: SignedTable
    decided: Decided
    compared: PositionSet
    """Documents that may have pairs."""

    @property
    def old(self) -> int:
        """How many documents are of the old corpus."""
        return self.signed.old

    @property
    def collapsed(self) -> Collapsed:
        """What is known of equal texts."""
        return self.signed.collapsed  # type: ignore[no-any-return]

    @cached_property
    def found(self) -> Any:
        """The documents of the corpus that have a pair or a copy: `position`, `group_id`,
        `duplicate_of`, `similarity` and `other`, whether the duplicate has another text.
        """
        first, none = sql.col("first"), self.settings.keep == "none"
        named = ("position", "group_id", "kept", "similarity", "other")
        is_other = sql.col("center") != first
        groups = self.decided.groups
        every = groups.select(first.alias("position"), "*", is_other.alias("other")).select(*named)
        if self.collapsed.texts:
            alone = self.collapsed.originals.join(groups.select("first"), "first", "left_anti")
            stays = sql.col("second" if none else "best")
            alone = alone.select(
                "first",
                first.alias("group_id"),
                # An old one is kept, and its copies are duplicates of it.
                sql.when(first < self.old, first).otherwise(stays).alias("kept"),
                first.alias("center"),
                sql.lit(1.0).alias("similarity"),
            )
            groups = groups.union(alone).withColumn("other", is_other)
            of_copies = self.collapsed.copy_rows.join(groups, "first")
            if none:  # of equal texts, all but the first name that, or the old one that it names
                in_old = (sql.col("kept") < self.old) & (first >= self.old)
                of_copies = of_copies.select(
                    "position",
                    "group_id",
                    sql.when(in_old, sql.col("kept")).otherwise(first).alias("kept"),
                    sql.when(in_old, sql.col("similarity")).otherwise(1.0).alias("similarity"),
                    in_old.alias("other"),
                )
            every = groups.withColumn("position", first).select(*named)
            every = every.union(of_copies.select(*named))
        dropped = sql.col("kept") != sql.col("position")
        every = every.select(
            "position",
            "group_id",
            sql.when(dropped, sql.col("kept")).alias("duplicate_of"),
            sql.when(dropped, sql.col("similarity")).alias("similarity"),
            (dropped & sql.col("other")).alias("other"),
        )
        return self.work.keep(self._of_corpus(every) if self.old else every)

    def _of_corpus(self, every: Any) -> Any:
        """Return rows without old documents; groups are named by their first new document."""
        new = self.work.keep(every.where(f"position >= {self.old}"))
        firsts = new.groupBy("group_id").agg(sql.min("position").alias("first"))
        called = (
            new.join(firsts, "group_id").drop("group_id").withColumnRenamed("first", "group_id")
        )
        return called.select(*new.columns)

    def counted(self, documents: int) -> dict[str, int]:
        """Return the counts of a corpus of this number of documents, with an old one."""
        other, copies, old = sql.col("duplicate_of"), self.collapsed.copies, self.old
        in_old = sql.count(sql.when(other < old, 1))
        dropped, matched = self.found.agg(sql.count(other), in_old).first()
        sizes = self._sizes.where("size > 1").agg(sql.count("*"), sql.max("size"))
        groups, largest = sizes.first()
        equal = copies | self.collapsed.firsts if self.settings.keep == "none" else copies
        if not self.settings.verify:  # a duplicate by signatures alone is not an exact one
            equal -= self._positions(self.found.where("other"))
        return {
            "kept": documents - dropped,
            "in_old": matched,
            "groups": groups,
            "largest_group": largest or 0,
            "exact_duplicates": equal.count_from(old),
            "verified_pairs": self.pair_count,
        }

    @property
    def _sizes(self) -> Any:
        return self.found.groupBy("group_id").agg(sql.count("*").alias("size"))

    def _positions(self, found: Any) -> PositionSet:
        return collect_positions(found, ["position"], self.signed.documents)

    @property
    def grouped(self) -> Any:
        """What was found, by row numbers."""
        found = self.found.drop("other")
        if not self.old:
            return found
        other = sql.col("duplicate_of")
        return found.select(
            self._row("position"),
            self._row("group_id"),
            sql.when(other >= self.old, other - self.old).alias("duplicate_of"),
            sql.when(other < self.old, other).alias("matched_old"),
            "similarity",
        )

    def _row(self, name: str) -> Any:
        """Return a column of positions as row numbers."""
        position = sql.col(name)
        if not self.old:
            return position
        return sql.when(position < self.old, position).otherwise(position - self.old).alias(name)

    @property
    def pair_count(self) -> int:
        """The number of pairs of the corpus."""
        if self.settings.exact and self.collapsed.count:
            return count_every_pair(self.decided.verified, self.collapsed.members, self.old)
        return self.decided.facts.verified + self.collapsed.copies.count_from(self.old)

    @cached_property
    def verified(self) -> Any:
        """Verified pairs, and equal texts with their first; with `exact`, every pair."""
        if not self.collapsed.count:
            return self.decided.verified
        if self.settings.exact:
            members = self.collapsed.members
            return every_pair(self.decided.verified, members).where(f"right >= {self.old}")
        copies = self.collapsed.copy_rows.where(f"position >= {self.old}")
        return self.decided.verified.union(equal_pairs(copies, "first", "position"))

    def kept(self) -> Any:
        """Return the kept rows; none is shuffled."""
        dropped = self.work.send(self._positions(self.found.where("duplicate_of is not null")))
        frame = self.sources.corpus.frame
        schema = frame.select(*self._columns).schema
        rows = numbered_columns(frame, self._columns)
        return map_arrow(rows, _kept_rows, schema, self.signed.numbering, dropped)

    def annotated(self) -> Any:
        """Return all rows; those that have duplicates are joined with what was found."""
        grouped = self.named_groups()
        needed = self.work.send(self._positions(self.found))
        frame, numbering = self.sources.corpus.frame, self.signed.numbering
        # A column of the corpus may have the name of one that is joined.
        hidden = [
            sql.col(name).alias(f"column {number}") for number, name in enumerate(self._columns)
        ]
        like, others = (
            select_rows(frame, hidden, numbering, needed, others=alone) for alone in (False, True)
        )
        kinds = {part.name: part.dataType for part in grouped.schema.fields}
        for name in ("group_id", "duplicate_of", "similarity"):
            others = others.withColumn(name, sql.lit(None).cast(kinds[name]))
        every = others.union(like.join(grouped, "position"))
        every = every.withColumn("position", self._row("position"))
        return every.toDF("row", *self.sources.corpus.names, *every.columns[1 + len(hidden) :])

    def named_groups(self) -> Any:
        """Return what was found, by id; a document that is alone is in no group."""
        rows = self.found.join(self._sizes, "group_id").selectExpr(
            "position", "if(size > 1, group_id, null) as group_id", "duplicate_of", "similarity"
        )
        by_name = {
            "group_id": self.sources.corpus.columns.id is not None,
            "duplicate_of": self._by_name,
        }
        for name, named in by_name.items():
            rows = self._named(rows, name) if named else rows.withColumn(name, self._row(name))
        return rows.select("position", "group_id", "duplicate_of", "similarity")

    def pairs(self) -> Any:
        """Return the verified pairs by id."""
        by_name = self.decided.by_name
        if self.sources.plain_names and by_name is not None and not self.settings.exact:
            return by_name
        pairs, columns = self.verified, ["left", "right", "similarity", "distance"]
        if self.sources.has_old:
            pairs = pairs.selectExpr(*columns, f"left < {self.old} as old")
            columns.append("old")
        if self._by_name:
            for side in ("left", "right"):
                pairs = self._named(pairs, side)
        return pairs.select(*columns)

    @property
    def _by_name(self) -> bool:
        """Whether documents are named: row numbers of two corpora would be ambiguous."""
        return self.sources.has_old or self.sources.corpus.columns.id is not None

    @cached_property
    def _ids(self) -> Any:
        """`position, id` of rows that may have duplicates."""
        needed = self.compared | self.collapsed.copies | self.collapsed.firsts
        # As the local job has them: text, and the row number where there is none.
        column = sql.col(f"`{self.sources.compared.id}`").cast("string")
        numbering, sent = self.signed.numbering, self.work.send(needed)
        found = needed_values(self.sources.documents, column, numbering, sent)
        name = sql.coalesce("payload", self._row("position").cast("string")).alias("id")
        found = found.select("position", name)
        return sql.broadcast(found) if len(needed) <= _FEW_IDS else found

    def _named(self, frame: Any, column: str) -> Any:
        """Return a frame with ids in place of the positions in a column."""
        ids = self._ids.toDF("named", "name")
        named = frame.join(ids, frame[column] == ids["named"], "left").drop(column, "named")
        return named.withColumnRenamed("name", column)

    @property
    def _columns(self) -> list[str]:
        return [f"`{name}`" for name in self.sources.corpus.names]


def _kept_rows(numbering: Any, dropped: Any, batches: Batches) -> Iterator[Any]:
    for piece, row, batch, _ in pieces_of(batches):
        first = numbering.value.first(piece, row, len(batch))
        kept = ~dropped.value.has(np.arange(first, first + len(batch)))
        yield batch if kept.all() else batch.filter(pa.array(kept))
