"""Components of pairs, and deciding those that are too large for one task to compare.

All workers compare their documents. Then one task per component decides by `lookalike.dedup.decide`
from the verified pairs alone, and says which kept documents to compare next. Each of these rounds
is several jobs of Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from lookalike import _native
from lookalike.corpora.base import pa
from lookalike.dedup.decide import ROUNDS, best_of_equals, decide, unmet_pairs
from lookalike.dedup.pairs import VerifiedPairs, in_order
from lookalike.dedup.settings import DedupSettings
from lookalike.spark.collapse import ordered
from lookalike.spark.packed import Batches, by_kind, map_arrow, rows_of, sql, table_of
from lookalike.spark.positions import collect_positions
from lookalike.spark.propose import value_rows
from lookalike.spark.resolve import ResolvedFacts, arrange, group_rows
from lookalike.spark.signing import SignedTable
from lookalike.spark.verify import Compared, Verifier
from lookalike.spark.work import SparkWork

PAIRS_A_TASK = 4_000_000
"""Verified pairs of large components; of more, those that decide nothing are left out first."""

_DOCUMENTS_A_TASK = 200_000


@dataclass(frozen=True, eq=False)
class Decided:
    """Which documents that have pairs are kept, and why."""

    groups: Any
    """`first, group_id, kept, center, similarity`; see `lookalike.spark.resolve`."""
    verified: Any
    """Pairs of different texts: `left, right, similarity, distance`."""
    facts: ResolvedFacts
    by_name: Any | None = None
    """The same and equal texts, by the ids of documents, where these are known already."""


@dataclass(frozen=True, eq=False)
class Rounds:
    """Decides about large components."""

    work: SparkWork
    settings: DedupSettings
    signed: SignedTable
    verifier: Verifier

    def compare(self, near: Any) -> Compared:
        """Return which pairs with distances are near-duplicates."""
        found = self.verifier.compared(near)
        is_near = sql.count(sql.when(sql.expr(self._near), 1)).alias("near")
        total = found.agg(sql.count("*").alias("compared"), is_near).first()
        return Compared(found.where(self._near), total.compared, total.near)

    def decide(self, compared: Compared) -> Decided:
        """Return which documents of compared pairs are kept."""
        work, accepted = self.work, compared.accepted
        labels = work.keep(connected(accepted, work.keep))
        needed = work.send(collect_positions(labels, ["position"], self.signed.documents))
        values = value_rows(self.signed, needed)
        values = None if values is None else work.keep(values)
        many = compared.near > PAIRS_A_TASK
        if self.settings.contains:  # the larger stays, and rank decides too little
            labels, many = work.keep(self.verifier.with_sizes(labels, needed)), False
        accepted, chosen, of_rounds = self._decide_in_rounds(accepted, labels, values, many)
        split = chosen.where(f"kind = {SPLIT}")
        count, largest = split.agg(sql.sum("first"), sql.max("group_id")).first()
        of_pairs = ResolvedFacts(
            compared=compared.count,
            verified=compared.near,
            split=count or 0,
            split_largest=largest or 0,
        )
        groups = self._with_similarities(chosen.where(f"kind = {GROUP}").drop("kind"))
        return Decided(groups, accepted, self._facts(groups) + of_pairs + of_rounds)

    def _decide_in_rounds(
        self, accepted: Any, labels: Any, values: Any, many: bool
    ) -> tuple[Any, Any, ResolvedFacts]:
        """Decide, compare kept documents that share a neighbor, and decide again.

        Return all accepted pairs, the rows of `GROUPS`, and counts of the pairs compared here.
        """
        work, compared, verified = self.work, 0, 0
        done = work.spark.createDataFrame([], "left long, right long")
        for _ in range(ROUNDS):
            pairs = self._deciding(accepted, labels, values) if many else accepted
            joined = together(pairs, labels, self.signed.collapsed.originals, values, self._places)
            chosen = map_arrow(joined, choose, GROUPS, self.settings, self.signed.old)
            groups = work.keep(chosen)
            if self.settings.grouping != "star" or not self.settings.by_signatures:
                return accepted, groups, ResolvedFacts()
            unmet = groups.where(f"kind = {UNMET}").selectExpr("first as left", "group_id as right")
            unmet = work.keep(unmet.join(done, ["left", "right"], "left_anti"))
            found = self.verifier.similarities(unmet)
            near = None if found is None else found.where(self._near)
            more = 0 if near is None else near.count()
            compared += 0 if found is None else found.count()
            if not more:
                return accepted, groups, ResolvedFacts(compared=compared, verified=verified)
            verified += more
            done = done.union(unmet)
            accepted = accepted.union(near)
        return accepted, groups, ResolvedFacts(compared=compared, verified=verified, exhausted=1)

    def _deciding(self, accepted: Any, labels: Any, values: Any) -> Any:
        """Return the pairs without those of two documents that are surely dropped.

        A document that ranks before all that it is a pair with is kept, and these are dropped; so
        pairs of two of them decide nothing, unless keep is "none" or groups are components.
        """
        if self.settings.grouping != "star" or self.settings.keep == "none":
            return accepted
        known = self.signed.collapsed.originals.selectExpr(
            "first as position", "best", "best_value"
        )
        ranked = labels.select("position").join(known, "position", "left")
        value = sql.lit(0).cast("long")
        if values is not None:
            ranked, value = ranked.join(values, "position"), sql.col("value")
        order = sql.struct(sql.coalesce("best_value", value), sql.coalesce("best", "position"))
        ranked = self.work.keep(ranked.select("position", order.alias("rank")))
        both = accepted.select("left", "right")
        for side in ("left", "right"):
            both = both.join(ranked.toDF(side, f"{side}_rank"), side)
        turned = both.select("right", "left", "right_rank", "left_rank")
        ways = self.work.keep(both.union(turned).toDF("one", "two", "rank", "other"))
        least = sql.min("other").alias("least"), sql.min("rank").alias("rank")
        kept = ways.groupBy("one").agg(*least).where("rank < least").select("one")
        dropped = self.work.keep(ways.join(kept, "one").selectExpr("two as dropped").distinct())
        of_two = accepted.select("left", "right")
        for side in ("left", "right"):
            of_two = of_two.join(dropped, of_two[side] == dropped["dropped"], "left_semi")
        others = accepted.join(of_two, ["left", "right"], "left_anti")
        return self.work.keep(others.select(*accepted.columns))

    @property
    def _near(self) -> str:
        return f"similarity >= {float(self.settings.threshold)!r}D"

    @property
    def _places(self) -> int:
        return max(self.work.cores, -(-self.signed.documents // _DOCUMENTS_A_TASK))

    def _with_similarities(self, groups: Any) -> Any:
        """Return the groups with the similarities of documents that only a chain connects, too."""
        if self.settings.grouping == "star":
            return groups
        unknown = groups.where("similarity is null")
        sides = ordered("first", "center")
        pairs = self.work.keep(unknown.select(*sides).distinct())
        needed = collect_positions(pairs, ["left", "right"], self.signed.documents)
        if not len(needed):
            return groups
        distances = self.verifier.distances(pairs, needed, all_of_them=True)
        found = self.verifier.compared(distances)
        found = found.selectExpr("left", "right", "similarity as found")
        joined = groups.select("*", *sides).join(found, ["left", "right"], "left")
        known = joined.withColumn("similarity", sql.coalesce("similarity", "found"))
        return self.work.keep(known.select(*groups.columns))

    def _facts(self, groups: Any) -> ResolvedFacts:
        counts = self.signed.collapsed.originals.select("first", "count")
        sized = groups.join(counts, "first", "left").selectExpr(
            "group_id", "coalesce(count, 1) as size", "center <> first as other"
        )
        by_group = sized.groupBy("group_id").agg(
            sql.expr("sum(size) as size"),
            sql.expr("count(if(size > 1, 1, null)) as texts"),
            sql.expr("sum(size - 1) as copies"),
            sql.expr("sum(if(other, size - 1, 0)) as estimated"),
        )
        facts = by_group.selectExpr(
            "sum(texts) as texts",
            "sum(copies) as copies",
            "count(if(size > 1, 1, null)) as groups",
            "max(size) as largest",
            "sum(size) as documents",
            "count(*) as kept",
            "sum(estimated) as estimated",
        ).first()
        none, verify = self.settings.keep == "none", self.settings.verify
        return ResolvedFacts(
            texts=facts.texts or 0,
            copies=facts.copies or 0,
            groups=facts.groups,
            largest=facts.largest or 0,
            dropped=(facts.documents or 0) - (0 if none else facts.kept),
            estimated=0 if none or verify else facts.estimated or 0,
        )


GROUPS = "kind int, first long, group_id long, kept long, center long, similarity double"
"""As in `lookalike.spark.resolve.RESOLVED`; a similarity is null if it is not known."""

GROUP, UNMET, SPLIT = 0, 1, 2
"""Rows of documents; pairs to compare, as `first` and `group_id`; the number of components that
were split, and the size of the largest.
"""

_PAIR, _DOCUMENT = 0, 1


def together(pairs: Any, labels: Any, originals: Any, values: Any | None, places: int) -> Any:
    """Return pairs and documents by component; a `size` of labels stands as a similarity."""
    place = sql.pmod(sql.xxhash64("label"), sql.lit(places)).cast("int").alias("place")
    one = pairs.join(labels, pairs["left"] == labels["position"]).select(
        place,
        sql.lit(_PAIR).alias("kind"),
        "left",
        "right",
        "similarity",
        *(sql.lit(0).cast("long").alias(name) for name in ("second", "best", "best_value")),
    )
    known = originals.selectExpr("first as position", "second", "best", "best_value")
    documents = labels.join(known, "position", "left")
    value = sql.lit(0).cast("long")
    size = sql.col("size").cast("double") if "size" in labels.columns else sql.lit(0.0)
    if values is not None:
        documents, value = documents.join(values, "position"), sql.col("value")
    two = documents.select(
        place,
        sql.lit(_DOCUMENT).alias("kind"),
        sql.col("position").alias("left"),
        value.alias("right"),
        size.alias("similarity"),
        sql.coalesce("second", sql.lit(-1)).alias("second"),
        sql.coalesce("best", "position").alias("best"),
        sql.coalesce("best_value", value).alias("best_value"),
    )
    return one.union(two).repartitionById(places, "place")


def choose(settings: DedupSettings, old: int, batches: Batches) -> Iterator[Any]:
    """Put documents into groups and choose which are kept; see `GROUPS`.

    If groups are stars, also yield which kept documents to compare before that is final. The
    first `old` documents are those of an old corpus.
    """
    table = table_of(batches)
    if table is None:
        return
    pairs, documents = by_kind(table, _PAIR, _DOCUMENT)
    arranged = arrange(
        *(documents[name].to_numpy() for name in ("left", "right", "second", "best", "best_value"))
    )
    positions, rank, first = arranged.positions, arranged.rank, arranged.first
    left, right = (np.searchsorted(positions, pairs[side].to_numpy()) for side in ("left", "right"))
    similarity = pairs["similarity"].to_numpy()
    known = in_order([VerifiedPairs(left, right, similarity, np.zeros(len(left), np.int32))])
    sizes = None
    if settings.contains:
        sizes = np.zeros(len(positions), np.int64)
        sizes[arranged.own] = documents["similarity"].to_numpy().astype(np.int64)
    old = int(np.searchsorted(positions, old))
    decision = decide(known, rank, settings, first=first, old=old, sizes=sizes)
    groups, _ = group_rows(decision, np.sort(arranged.own), first, positions)
    found = groups.pop("similarity")
    unknown = pa.array(found, pa.float64(), mask=np.isnan(found))
    yield rows_of(GROUPS, kind=GROUP, **groups, similarity=unknown)
    if settings.grouping == "star" and settings.by_signatures:
        best = best_of_equals(rank, first)
        unmet = unmet_pairs(known[known.right >= old], best, old)
        left, right = np.divmod(unmet, len(positions))
        yield rows_of(GROUPS, kind=UNMET, first=positions[left], group_id=positions[right])
    if decision.split:
        yield rows_of(GROUPS, kind=SPLIT, first=[decision.split], group_id=[decision.largest])


IN_ONE_TASK = 4_000_000
"""Edges; 16 bytes each, and as much again four times while they are put together."""

_EDGES = "member long, least long"


def connected(pairs: Any, keep: Callable[[Any], Any], in_one_task: int = IN_ONE_TASK) -> Any:
    """Return `position, label` for documents that have pairs: the least they are connected with."""
    edges = keep(map_arrow(pairs.select("left", "right"), _trees, _EDGES))
    count = edges.count()
    if count <= in_one_task:
        return map_arrow(edges.coalesce(1), _labels, "position long, label long")
    edges = _stars(edges, keep)
    roots = edges.select("least").distinct().selectExpr("least as position", "least as label")
    return edges.select("member", "least").toDF("position", "label").union(roots)


def _trees(batches: Batches) -> Iterator[Any]:
    """Yield, for whatever is connected in this partition, an edge from each to the least."""
    for batch in _labels(batches):
        member, least = (column.to_numpy() for column in batch.columns)
        others = member != least
        yield rows_of(_EDGES, member=member[others], least=least[others])


def _labels(batches: Batches) -> Iterator[Any]:
    """Yield all that have edges in this partition, with the least that each is connected with."""
    parts = [np.stack([column.to_numpy() for column in batch.columns]) for batch in batches]
    if not parts:
        return
    edges = np.concatenate(parts, axis=1)
    members, places = np.unique(edges, return_inverse=True)
    left, right = np.ascontiguousarray(places.reshape(2, -1))
    labels = np.empty(len(members), np.int64)
    _native.components(left, right, labels)
    yield pa.record_batch({"position": pa.array(members), "label": pa.array(members[labels])})


def _stars(edges: Any, keep: Callable[[Any], Any]) -> Any:
    """Return edges from each member to the least of its component."""
    before = None
    while True:
        edges = keep(_small_star(_large_star(edges)))
        now = _digest(edges)
        if now == before:
            return edges
        before = now


def _large_star(edges: Any) -> Any:
    """Connect the larger neighbors of each with the least of it and its neighbors."""
    both = edges.union(edges.select("least", "member")).toDF("one", "two")
    least = both.groupBy("one").agg(sql.least(sql.min("two"), sql.col("one")).alias("least"))
    larger = both.where("two > one").join(least, "one")
    return larger.selectExpr("two as member", "least").distinct()


def _small_star(edges: Any) -> Any:
    """Connect each and its smaller neighbors with the least of these."""
    near = edges.toDF("one", "two")
    least = near.groupBy("one").agg(sql.min("two").alias("least"))
    smaller = near.join(least, "one").where("two <> least")
    own = least.selectExpr("one as member", "least")
    return own.union(smaller.selectExpr("two as member", "least")).distinct()


def _digest(edges: Any) -> tuple[int, int]:
    """Return what is equal for equal sets of edges, and for hardly any others."""
    mixed = sql.xxhash64("member", "least").cast("decimal(38,0)")
    row = edges.agg(sql.count("*").alias("count"), sql.sum(mixed).alias("sum")).first()
    return row["count"], row["sum"]
