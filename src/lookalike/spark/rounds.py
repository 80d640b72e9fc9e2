"""Components of pairs, and how those are decided that are too large for one task to compare.

All workers compare their documents. Then one task per component decides by `lookalike.dedup.decide`
from the verified pairs alone, and says which kept documents to compare. This goes on in rounds,
each of which is several jobs of Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.corpora.base import pa
from lookalike.dedup.decide import ROUNDS, best_of_equals, decide, unmet_pairs
from lookalike.dedup.pairs import VerifiedPairs
from lookalike.dedup.settings import DedupSettings
from lookalike.spark.collapse import Collapsed
from lookalike.spark.packed import Batches, map_arrow, rows_of, sql, table_of
from lookalike.spark.positions import collect_positions
from lookalike.spark.propose import SignedTable, value_rows
from lookalike.spark.resolve import ResolvedFacts, arrange
from lookalike.spark.verify import Compared, Verifier
from lookalike.spark.work import SparkWork

PAIRS_A_TASK = 4_000_000
"""Verified pairs of large components; if there are more, those that decide nothing are left out
before the others come to one task.
"""

_DOCUMENTS_A_TASK = 200_000


@dataclass(frozen=True, eq=False)
class Decided:
    """Who stays of documents that have pairs, and why."""

    groups: Any
    """`first, cluster, survivor, centre, similarity`; see `lookalike.spark.resolve`."""
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
        found = self.verifier.compared(near)
        is_near = sql.count(sql.when(sql.expr(self._near), 1)).alias("alike")
        total = found.agg(sql.count("*").alias("compared"), is_near).first()
        return Compared(found.where(self._near), total.compared, total.alike)

    def decide(self, compared: Compared) -> Decided:
        """Return who stays of pairs that were compared."""
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


GROUPS = "kind int, first long, cluster long, survivor long, centre long, similarity double"
"""For each first of equal texts that has pairs: its cluster, the document that stands for it (or
itself), the first with the text of that one, and how similar the two are: null if not known.

Rows of other kinds: pairs to be compared, as `first` and `cluster`; and how many components were
split, and how large one was.
"""

GROUP, UNMET, SPLIT = 0, 1, 2

_PAIR, _DOCUMENT = 0, 1


def together(pairs: Any, labels: Any, originals: Any, values: Any | None, places: int) -> Any:
    """Return pairs and documents, all that pairs connect in one place. Labels may have a `size`, if
    the larger stays; it takes the place of a similarity.
    """

    def number(name: str) -> Any:
        return sql.lit(0).cast("long").alias(name)

    place = sql.pmod(sql.xxhash64("label"), sql.lit(places)).cast("int").alias("place")
    labelled = pairs.join(labels, pairs["left"] == labels["position"])
    one = labelled.select(
        place,
        sql.lit(_PAIR).alias("kind"),
        "left",
        "right",
        "similarity",
        number("second"),
        number("best"),
        number("best_value"),
    )
    known = originals.select(sql.col("first").alias("position"), "second", "best", "best_value")
    documents = labels.join(known, "position", "left")
    value = number("value")
    size = sql.col("size").cast("double") if "size" in labels.columns else sql.lit(0.0)
    if values is not None:
        documents = documents.join(values, "position")
        value = sql.col("value")
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


@dataclass(frozen=True, eq=False)
class _Corpus:
    """Documents by position, with their pairs and the order in which they are to stay."""

    positions: NDArray[np.int64]
    first: NDArray[np.int64]
    rank: NDArray[np.int64]
    pairs: VerifiedPairs
    members: NDArray[np.int64]
    """Those that have pairs; each is the first with its text."""
    old: int
    """How many are of an old corpus; they come first."""
    sizes: NDArray[np.int64]
    """Different features of documents, where these matter."""

    @classmethod
    def of(cls, batches: Batches, old: int) -> _Corpus | None:
        """Return what is in a partition; None if there is nothing."""
        table = table_of(batches)
        if table is None:
            return None
        kinds = table["kind"].to_numpy()
        pairs, documents = (table.filter(pa.array(kinds == kind)) for kind in (_PAIR, _DOCUMENT))
        position, value, second, best, best_value = (
            documents[name].to_numpy() for name in ("left", "right", "second", "best", "best_value")
        )
        arranged = arrange(position, value, second, best, best_value)
        positions = arranged.positions
        left, right = (
            np.searchsorted(positions, pairs[side].to_numpy()) for side in ("left", "right")
        )
        order = np.lexsort((right, left))
        found = VerifiedPairs(
            left[order],
            right[order],
            pairs["similarity"].to_numpy()[order],
            np.zeros(len(order), np.int32),
        )
        sizes = np.zeros(len(positions), np.int64)
        sizes[arranged.own] = documents["similarity"].to_numpy().astype(np.int64)
        own, old = np.sort(arranged.own), int(np.searchsorted(positions, old))
        return cls(positions, arranged.first, arranged.rank, found, own, old, sizes)


def _unmet(corpus: _Corpus) -> Any:
    """Return the pairs of those that would stay and are like the same one that goes."""
    count = len(corpus.positions)
    best = best_of_equals(corpus.rank, corpus.first)
    deciding = corpus.pairs[corpus.pairs.right >= corpus.old]
    left, right = np.divmod(unmet_pairs(deciding, best, corpus.old), count)
    positions = corpus.positions
    return rows_of(GROUPS, kind=UNMET, first=positions[left], cluster=positions[right])


def choose(settings: DedupSettings, old: int) -> Callable[[Batches], Iterator[Any]]:
    """Return what puts documents into clusters and chooses who stays; see `GROUPS`. If clusters
    are stars, it also tells who would stay and has to be compared before that is final. The first
    `old` documents are those of an old corpus.
    """

    def chosen(batches: Batches) -> Iterator[Any]:
        corpus = _Corpus.of(batches, old)
        if corpus is None:
            return
        positions, first, members = corpus.positions, corpus.first, corpus.members
        decision = decide(
            corpus.pairs,
            corpus.rank,
            settings,
            first=first,
            old=corpus.old,
            sizes=corpus.sizes if settings.measure == "containment" else None,
        )
        named = decision.duplicate_of[members]
        survivor = np.where(named < 0, members, named)
        centre = first[survivor]
        similarity = np.where(members == centre, 1.0, decision.similarity[members])
        yield rows_of(
            GROUPS,
            kind=GROUP,
            first=positions[members],
            cluster=positions[decision.clusters[members]],
            survivor=positions[survivor],
            centre=positions[centre],
            similarity=pa.array(similarity, pa.float64(), mask=np.isnan(similarity)),
        )
        if settings.cluster == "star" and settings.by_signatures:
            yield _unmet(corpus)
        if decision.split:
            yield rows_of(GROUPS, kind=SPLIT, first=[decision.split], cluster=[decision.largest])

    return chosen


def chosen_frame(joined: Any, settings: DedupSettings, old: int) -> Any:
    """Return `choose` of all places."""
    return map_arrow(joined, choose(settings, old), GROUPS)


IN_ONE_TASK = 4_000_000
"""Edges; 16 bytes each, and as much again four times while they are put together."""

_EDGES = "member long, least long"


def connected(pairs: Any, keep: Callable[[Any], Any], in_one_task: int = IN_ONE_TASK) -> Any:
    """Return `position, label` for each document that has a pair: the least that it is connected
    with.

    `keep` makes a frame last: it is used more than once.
    """
    edges = keep(map_arrow(pairs.select("left", "right"), _trees, _EDGES))
    count = edges.count()
    if count <= in_one_task:
        return map_arrow(edges.coalesce(1), _labels, "position long, label long")
    edges = _stars(edges, keep)
    roots = edges.select(sql.col("least").alias("position")).distinct()
    return edges.select(sql.col("member").alias("position"), sql.col("least").alias("label")).union(
        roots.select("position", sql.col("position").alias("label"))
    )


def _trees(batches: Batches) -> Iterator[Any]:
    """Yield, for whatever is connected in this partition, an edge from each to the least."""
    for batch in _labels(batches):
        member, least = (column.to_numpy() for column in batch.columns)
        others = member != least
        yield pa.record_batch(
            {"member": pa.array(member[others]), "least": pa.array(least[others])}
        )


def _labels(batches: Batches) -> Iterator[Any]:
    """Yield all that have edges in this partition, with the least that each is connected with."""
    parts = [np.stack([column.to_numpy() for column in batch.columns]) for batch in batches]
    if not parts:
        return
    edges = np.concatenate(parts, axis=1)
    members, places = np.unique(edges, return_inverse=True)
    left, right = np.ascontiguousarray(places.reshape(2, -1))
    labels = np.empty(len(members), np.int64)
    _native.components(np.ascontiguousarray(left), np.ascontiguousarray(right), labels)
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
    """Connect the larger neighbours of each with the least of it and its neighbours."""
    turned = edges.select(sql.col("least").alias("member"), sql.col("member").alias("least"))
    both = edges.union(turned).toDF("one", "two")
    least = both.groupBy("one").agg(sql.least(sql.min("two"), sql.col("one")).alias("least"))
    larger = both.where("two > one").join(least, "one")
    return larger.select(sql.col("two").alias("member"), "least").distinct()


def _small_star(edges: Any) -> Any:
    """Connect each and its smaller neighbours with the least of these."""
    near = edges.toDF("one", "two")
    least = near.groupBy("one").agg(sql.min("two").alias("least"))
    smaller = near.join(least, "one").where("two <> least")
    return (
        least.select(sql.col("one").alias("member"), "least")
        .union(smaller.select(sql.col("two").alias("member"), "least"))
        .distinct()
    )


def _digest(edges: Any) -> tuple[int, int]:
    """Return what is equal for equal sets of edges, and for hardly any others."""
    mixed = sql.xxhash64("member", "least").cast("decimal(38,0)")
    row = edges.agg(sql.count("*").alias("count"), sql.sum(mixed).alias("sum")).first()
    return row["count"], row["sum"]
