"""Steps 5 to 7, on Spark: from proposed pairs to who stays.

Few documents are compared and decided about by one task. Of more, signatures are compared by all
workers; then whatever pairs connect is dealt out to tasks, each with all that it needs, and each
text is sent once. Only what is too large for a task takes rounds of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lookalike.dedup.settings import DedupSettings
from lookalike.spark.packed import map_arrow
from lookalike.spark.position_set import PositionSet, collect_positions
from lookalike.spark.rounds import Decided, Rounds
from lookalike.spark.steps.collapse import Collapsed
from lookalike.spark.steps.compare import needed_texts
from lookalike.spark.steps.components import connected
from lookalike.spark.steps.propose import Proposed, SignedTable
from lookalike.spark.steps.resolve import (
    EQUAL,
    FOUND,
    GROUP,
    PAIRS,
    RESOLVED,
    SIGNATURE,
    TEXT,
    TOLD,
    ResolvedFacts,
    resolve,
)
from lookalike.spark.steps.values import signature_rows
from lookalike.spark.steps.verify import SIMILARITIES, Verifier
from lookalike.spark.work import SparkWork

__all__ = ["Decider"]

DOCUMENTS_A_TASK = 20_000
"""That one task compares: their texts, and features, which are four times as large."""

_GROUPS = "first long, cluster long, survivor long, centre long, similarity double"


@dataclass(frozen=True, eq=False)
class Decider:
    """Decides who stays."""

    work: SparkWork
    settings: DedupSettings
    frame: Any
    text: str
    signed: SignedTable
    collapsed: Collapsed

    def decide(self, proposed: Proposed) -> Decided:
        """Return who stays of the documents of these pairs."""
        from pyspark.sql import functions as sql

        if not proposed.count:
            empty = self.work.spark.createDataFrame
            return Decided(empty([], _GROUPS), empty([], SIMILARITIES), ResolvedFacts())
        if len(proposed.needed) <= DOCUMENTS_A_TASK:
            pairs = proposed.rows().withColumn("place", sql.lit(0))
            return self._resolve(pairs, proposed.needed, None, 1)
        return self._by_components(proposed)

    def _by_components(self, proposed: Proposed) -> Decided:
        from pyspark.sql import functions as sql

        work, documents = self.work, self.signed.documents
        verifier = Verifier(work, self.settings, self.frame, self.text, self.signed)
        near = work.keep(verifier.distances(proposed.rows(), proposed.needed))
        labels = work.keep(connected(near, work.keep))
        sizes = labels.groupBy("label").count().where(f"count > {DOCUMENTS_A_TASK}")
        large = [row.label for row in sizes.collect()]
        rounds = Rounds(work, self.settings, self.signed, self.collapsed, verifier)
        if large:
            chosen = sql.broadcast(
                work.spark.createDataFrame([(one,) for one in large], "label long")
            )
            in_large = labels.join(chosen, "label", "left_semi")
            labels = labels.join(chosen, "label", "left_anti")
            of_large = near.join(in_large, near["left"] == in_large["position"], "left_semi")
            of_large = rounds.decide(work.keep(of_large))
        needed = collect_positions(labels, ["position"], documents)
        places = max(work.cores, -(-len(needed) // DOCUMENTS_A_TASK))
        place = sql.pmod(sql.xxhash64("label"), sql.lit(places)).cast("int").alias("place")
        wanted = work.keep(labels.select("position", place))
        pairs = near.join(wanted, near["left"] == wanted["position"])
        others = self._resolve(pairs.select("left", "right", "place"), needed, wanted, places)
        if not large:
            return others
        return Decided(
            others.groups.union(of_large.groups),
            others.verified.union(of_large.verified),
            others.facts + of_large.facts,
        )

    def _resolve(self, pairs: Any, needed: PositionSet, wanted: Any, places: int) -> Decided:
        """Return who stays, each place by itself. `wanted` says where documents go; None if there
        is one place.
        """
        from pyspark.sql import functions as sql

        sent = self.work.send(needed)
        none = {
            "value": sql.lit(None).cast("long"),
            "data": sql.lit(None).cast("binary"),
            "text": sql.lit(None).cast("string"),
        }

        def rows(kind: int, frame: Any, **named: str) -> Any:
            if "place" not in frame.columns:
                frame = (
                    frame.withColumn("place", sql.lit(0))
                    if wanted is None
                    else frame.join(wanted, "position")
                )
            columns = [
                (sql.col(named[name]) if name in named else empty).alias(name)
                for name, empty in none.items()
            ]
            position = sql.col(named.get("position", "position")).alias("position")
            return frame.select("place", sql.lit(kind).alias("kind"), position, *columns)

        parts = [
            rows(PAIRS, pairs, position="left", value="right"),
            rows(SIGNATURE, signature_rows(self.signed, sent), value="value", data="data"),
        ]
        if self.collapsed.texts:
            parts.append(rows(EQUAL, self.collapsed.entries(sent), data="data"))
        if self.settings.verify:
            texts = needed_texts(self.frame, self.text, self.signed.numbering, sent)
            parts.append(rows(TEXT, texts, text="payload"))
        gathered = parts[0]
        for part in parts[1:]:
            gathered = gathered.union(part)
        gathered = gathered.repartitionById(places, "place")
        found = self.work.keep(map_arrow(gathered, resolve(self.settings), RESOLVED))
        told = found.where(f"kind = {TOLD}").select("told").collect()
        groups = found.where(f"kind = {GROUP}").select(
            "first", "cluster", "survivor", "centre", "similarity"
        )
        verified = found.where(f"kind = {FOUND}").select(
            sql.col("first").alias("left"),
            sql.col("cluster").alias("right"),
            "similarity",
            "distance",
        )
        return Decided(groups, verified, ResolvedFacts.of([bytes(row.told) for row in told]))
