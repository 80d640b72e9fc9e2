"""Components that are too large for one task to compare: they are compared by all workers, and then
settled in rounds, each of which is several jobs of Spark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lookalike.dedup.decide import ROUNDS
from lookalike.dedup.settings import DedupSettings
from lookalike.spark.position_set import collect_positions
from lookalike.spark.steps.collapse import Collapsed
from lookalike.spark.steps.components import connected
from lookalike.spark.steps.crowd import Compared
from lookalike.spark.steps.propose import SignedTable
from lookalike.spark.steps.resolve import ResolvedFacts
from lookalike.spark.steps.survivors import GROUP, SPLIT, UNMET, chosen_frame, together
from lookalike.spark.steps.values import value_rows
from lookalike.spark.steps.verify import Verifier
from lookalike.spark.work import SparkWork

__all__ = ["Decided", "Rounds"]

PAIRS_A_TASK = 4_000_000
"""Verified pairs of large components; if there are more, those that decide nothing are left out
before the others come to one task.
"""

_DOCUMENTS_A_TASK = 200_000


@dataclass(frozen=True, eq=False)
class Decided:
    """Who stays of documents that have pairs, and why."""

    groups: Any
    """`first, cluster, survivor, centre, similarity`; see `lookalike.spark.steps.resolve`."""
    verified: Any
    """Pairs of different texts: `left, right, similarity, distance`."""
    facts: ResolvedFacts
    by_name: Any | None = None
    """The same and equal texts, by the ids of documents, where these are known already."""


@dataclass(frozen=True, eq=False)
class _Settled:
    accepted: Any
    groups: Any
    compared: int
    alike: int
    tired: bool


@dataclass(frozen=True, eq=False)
class Rounds:
    """Decides about large components."""

    work: SparkWork
    settings: DedupSettings
    signed: SignedTable
    collapsed: Collapsed
    verifier: Verifier

    def compare(self, near: Any) -> Compared:
        """Return which of pairs with distances are alike."""
        from pyspark.sql import functions as sql

        found = self.verifier.compared(near)
        is_near = sql.count(sql.when(sql.expr(self._near), 1)).alias("alike")
        total = found.agg(sql.count("*").alias("compared"), is_near).first()
        return Compared(found.where(self._near), total.compared, total.alike)

    def decide(self, compared: Compared) -> Decided:
        """Return who stays of pairs that were compared."""
        from pyspark.sql import functions as sql

        work, accepted = self.work, compared.accepted
        labels = work.keep(connected(accepted, work.keep))
        needed = work.send(collect_positions(labels, ["position"], self.signed.documents))
        values = value_rows(self.signed, needed)
        values = None if values is None else work.keep(values)
        many = compared.alike > PAIRS_A_TASK
        if self.settings.measure == "containment":  # the larger stays, and rank decides too little
            labels, many = work.keep(self.verifier.with_sizes(labels, needed)), False
        settled = self._settle(accepted, labels, values, many)
        split = settled.groups.where(f"kind = {SPLIT}").agg(
            sql.sum("first").alias("split"), sql.max("cluster").alias("largest")
        )
        split = split.first()
        groups = self._likeness(settled.groups.where(f"kind = {GROUP}").drop("kind"))
        facts = self._facts(groups) + ResolvedFacts(
            compared=settled.compared + compared.count,
            alike=settled.alike + compared.alike,
            split=split.split or 0,
            split_largest=split.largest or 0,
            tired=int(settled.tired),
        )
        return Decided(groups, settled.accepted, facts)

    def _settle(self, accepted: Any, labels: Any, values: Any, many: bool) -> _Settled:
        """Return who stays, with the pairs added that were found among those that would."""
        from pyspark.sql import functions as sql

        work, compared, alike = self.work, 0, 0
        done = work.spark.createDataFrame([], "left long, right long")
        for _ in range(ROUNDS):
            pairs = self._deciding(accepted, labels, values) if many else accepted
            joined = together(pairs, labels, self.signed.originals, values, self._places)
            groups = work.keep(chosen_frame(joined, self.settings, self.signed.old))
            if self.settings.cluster != "star" or not self.settings.by_signatures:
                return _Settled(accepted, groups, 0, 0, False)
            unmet = groups.where(f"kind = {UNMET}").select(
                sql.col("first").alias("left"), sql.col("cluster").alias("right")
            )
            unmet = work.keep(unmet.join(done, ["left", "right"], "left_anti"))
            found = self.verifier.similarities(unmet)
            near = None if found is None else found.where(self._near)
            more = 0 if near is None else near.count()
            compared += 0 if found is None else found.count()
            if not more:
                return _Settled(accepted, groups, compared, alike, False)
            alike += more
            done = done.union(unmet)
            accepted = accepted.union(near)
        return _Settled(accepted, groups, compared, alike, True)

    def _deciding(self, accepted: Any, labels: Any, values: Any) -> Any:
        """Return the pairs without those of two documents that surely go.

        Whoever stands before all that it is a pair with stays, and these go, whatever else there
        is; so pairs of two of them decide nothing. Of variants of one template few others are left.
        Where all pairs count, because none stays or clusters are components, they are returned.
        """
        from pyspark.sql import functions as sql

        if self.settings.cluster != "star" or self.settings.keep == "none":
            return accepted
        known = self.signed.originals.select(
            sql.col("first").alias("position"), "best", "best_value"
        )
        ranked = labels.select("position").join(known, "position", "left")
        value = sql.lit(0).cast("long")
        if values is not None:
            ranked, value = ranked.join(values, "position"), sql.col("value")
        order = sql.struct(sql.coalesce("best_value", value), sql.coalesce("best", "position"))
        ranked = self.work.keep(ranked.select("position", order.alias("rank")))
        both = accepted.select("left", "right")
        for side in ("left", "right"):
            rank = ranked.select(
                sql.col("position").alias(side), sql.col("rank").alias(f"{side}_rank")
            )
            both = both.join(rank, side)
        turned = both.select("right", "left", "right_rank", "left_rank")
        ways = self.work.keep(both.union(turned).toDF("one", "two", "rank", "other"))
        stays = ways.groupBy("one").agg(
            sql.min("other").alias("least"), sql.min("rank").alias("rank")
        )
        stays = stays.where("rank < least").select("one")
        goes = self.work.keep(
            ways.join(stays, "one").select(sql.col("two").alias("goes")).distinct()
        )
        of_two = accepted.select("left", "right")
        for side in ("left", "right"):
            of_two = of_two.join(goes, of_two[side] == goes["goes"], "left_semi")
        return self.work.keep(
            accepted.join(of_two, ["left", "right"], "left_anti").select(*accepted.columns)
        )

    @property
    def _near(self) -> str:
        return f"similarity >= {float(self.settings.threshold)!r}D"

    @property
    def _places(self) -> int:
        return max(self.work.cores, -(-self.signed.documents // _DOCUMENTS_A_TASK))

    def _likeness(self, groups: Any) -> Any:
        """Return the groups with all similarities: who is not a pair with the one that stands for
        it, which chains have brought together, is compared now.
        """
        from pyspark.sql import functions as sql

        if self.settings.cluster == "star":
            return groups
        unknown = groups.where("similarity is null")
        left, right = sql.least("first", "centre"), sql.greatest("first", "centre")
        pairs = self.work.keep(unknown.select(left.alias("left"), right.alias("right")).distinct())
        needed = collect_positions(pairs, ["left", "right"], self.signed.documents)
        if not len(needed):
            return groups
        distances = self.verifier.distances(pairs, needed, all_of_them=True)
        found = self.verifier.compared(distances)
        found = found.select("left", "right", sql.col("similarity").alias("found"))
        sides = groups.withColumn("left", left).withColumn("right", right)
        return self.work.keep(
            sides.join(found, ["left", "right"], "left").select(
                "first",
                "cluster",
                "survivor",
                "centre",
                sql.coalesce("similarity", "found").alias("similarity"),
            )
        )

    def _facts(self, groups: Any) -> ResolvedFacts:
        from pyspark.sql import functions as sql

        counts = self.signed.originals.select("first", "count")
        sized = groups.join(counts, "first", "left").select(
            "cluster",
            sql.coalesce("count", sql.lit(1)).alias("size"),
            (sql.col("centre") != sql.col("first")).alias("other"),
        )
        clusters = sized.groupBy("cluster").agg(
            sql.sum("size").alias("size"),
            sql.count(sql.when(sql.col("size") > 1, 1)).alias("texts"),
            sql.sum(sql.col("size") - 1).alias("copies"),
            sql.sum(sql.when(sql.col("other"), sql.col("size") - 1)).alias("estimated"),
        )
        facts = clusters.agg(
            sql.sum("texts").alias("texts"),
            sql.sum("copies").alias("copies"),
            sql.count(sql.when(sql.col("size") > 1, 1)).alias("clusters"),
            sql.max("size").alias("largest"),
            sql.sum("size").alias("documents"),
            sql.count("*").alias("stay"),
            sql.sum("estimated").alias("estimated"),
        ).first()
        none, verify = self.settings.keep == "none", self.settings.verify
        return ResolvedFacts(
            texts=facts.texts or 0,
            copies=facts.copies or 0,
            clusters=facts.clusters,
            largest=facts.largest or 0,
            dropped=(facts.documents or 0) - (0 if none else facts.stay),
            estimated=0 if none or verify else facts.estimated or 0,
        )
