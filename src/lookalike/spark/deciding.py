"""Steps 5 to 7, on Spark: from proposed pairs to the documents that are kept.

One task compares few documents and decides. Of more, all workers compare the signatures; then what
pairs connect is dealt out to tasks, each with all that it needs, and each text is sent once. Of
large components, all workers compare the texts, too, and a task is given their similarities. Only
what is too large even for that takes rounds of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import numpy as np

from lookalike import _native
from lookalike.corpora.columns import Columns
from lookalike.dedup.propose import promising, row_distances
from lookalike.dedup.settings import DedupSettings
from lookalike.signatures.arrays import distinct
from lookalike.spark import resolve
from lookalike.spark.packed import (
    Batches,
    by_kind,
    map_arrow,
    rows_of,
    signatures_of,
    sql,
    table_of,
)
from lookalike.spark.positions import PositionSet, collect_positions, packed_positions
from lookalike.spark.propose import Proposed, signature_rows
from lookalike.spark.rounds import Decided, Rounds, connected
from lookalike.spark.signing import SignedTable
from lookalike.spark.verify import SIMILARITIES, Verifier, joined_rows, select_rows
from lookalike.spark.work import SparkWork

DOCUMENTS_A_TASK = 20_000
"""That one task compares: their texts, and features, which are four times as large."""

SIGNATURES_A_TASK, PAIRS_A_TASK = 200_000, 4_000_000
"""That one task compares by signatures alone, or decides where all workers have compared the texts:
few kept documents have to be compared then.
"""

CROWD_PAIRS, CROWD_PARTNERS = 1_000_000, 8
"""More pairs, and more per document, are a crowd: few documents, each in pairs with many."""

CROWD_BYTES = 256 << 20
"""Of the texts of a crowd, estimated by the average of all: each task holds them."""

_Near = tuple[Any, Any, list[int], PositionSet]
"""Pairs with their distances, `position, label`, labels of large components, and documents."""

_GROUPS = "first long, group_id long, kept long, center long, similarity double"


@dataclass(frozen=True, eq=False)
class Decider:
    """Decides which documents are kept."""

    work: SparkWork
    settings: DedupSettings
    frame: Any
    columns: Columns
    names: list[str]
    """Columns that `keep` is given, if it is a function."""
    signed: SignedTable
    rarity: Any | None = None
    """What features weigh, a `SharedFeatures` that was sent; None: they have no weights."""

    def decide(self, proposed: Proposed, gathered: Any | None) -> Decided:
        """Decide; `gathered` has all that is needed of documents but the texts, if it is known."""
        if self.is_crowd(proposed):
            return self._of_crowd(proposed)
        collapsed = self.signed.collapsed
        named = proposed.needed | collapsed.copies | collapsed.firsts
        if gathered is not None and len(named) <= DOCUMENTS_A_TASK:
            return self._named(gathered, named)
        if self._asks:
            return self._by_components(proposed)
        if not proposed.count:
            empty = self.work.spark.createDataFrame
            return Decided(empty([], _GROUPS), empty([], SIMILARITIES), resolve.ResolvedFacts())
        if len(proposed.needed) <= DOCUMENTS_A_TASK:
            pairs = proposed.rows.withColumn("place", sql.lit(0))
            return self._resolve(pairs, proposed.needed, None, 1)
        return self._by_components(proposed)

    def is_crowd(self, proposed: Proposed) -> bool:
        """Return whether few documents are in many pairs: then all go to where the pairs are."""
        few = len(proposed.needed)
        dense = proposed.count > max(CROWD_PAIRS, CROWD_PARTNERS * few)
        held = few * self.signed.text_bytes // max(1, self.signed.documents)
        return dense and few <= SIGNATURES_A_TASK and held <= CROWD_BYTES and not self._asks

    def _of_crowd(self, proposed: Proposed) -> Decided:
        compared = self._verifier.of_crowd(proposed.packed, proposed.count, proposed.needed)
        if compared.near > PAIRS_A_TASK:
            return self._rounds.decide(compared)
        pairs = compared.accepted.select("left", "right", "similarity", sql.lit(0).alias("place"))
        return _also_compared(self._resolve(pairs, proposed.needed, None, 1), compared.count)

    @property
    def _verifier(self) -> Verifier:
        text = self.columns.text
        return Verifier(self.work, self.settings, self.frame, text, self.signed, self.rarity)

    @property
    def _rounds(self) -> Rounds:
        return Rounds(self.work, self.settings, self.signed, self._verifier)

    def _by_components(self, proposed: Proposed) -> Decided:
        work = self.work
        few = len(proposed.needed) <= SIGNATURES_A_TASK and proposed.count <= PAIRS_A_TASK
        compare = self._by_one_task if few and not self._asks else self._by_all
        near, labels, large, needed = compare(proposed)
        of_large = known = None
        if large:
            named = work.spark.createDataFrame([(one,) for one in large], "label long")
            chosen = sql.broadcast(named)
            in_large = work.keep(labels.join(chosen, "label", "left_semi"))
            is_large = near["left"] == in_large["position"]
            rounds = self._rounds
            compared = rounds.compare(work.keep(near.join(in_large, is_large, "left_semi")))
            near = near.join(in_large, is_large, "left_anti")
            members = collect_positions(in_large, ["position"], self.signed.documents)
            if len(members) <= SIGNATURES_A_TASK and compared.near <= PAIRS_A_TASK:
                known, needed = compared, needed | members
            else:
                labels = labels.join(chosen, "label", "left_anti")
                of_large = rounds.decide(compared)
        places = max(work.cores, -(-len(needed) // DOCUMENTS_A_TASK))
        place = sql.pmod(sql.xxhash64("label"), sql.lit(places)).cast("int").alias("place")
        wanted = work.keep(labels.select("position", place))
        if len(needed) <= SIGNATURES_A_TASK:
            wanted = sql.broadcast(wanted)
        sides = wanted.withColumnRenamed("position", "left")
        pairs = near.join(sides, "left").select("left", "right", "place")
        if known is not None:
            pairs = pairs.withColumn("similarity", sql.lit(None).cast("double")).union(
                known.accepted.join(sides, "left").select("left", "right", "place", "similarity")
            )
        others = self._resolve(pairs, needed, wanted, places)
        if known is not None:
            others = _also_compared(others, known.count)
        if of_large is None:
            return others
        return Decided(
            others.groups.union(of_large.groups),
            others.verified.union(of_large.verified),
            others.facts + of_large.facts,
        )

    def _by_one_task(self, proposed: Proposed) -> _Near:
        signatures = signature_rows(self.signed, self.work.send(proposed.needed))
        columns = "position", "value", "data"
        pairs = proposed.rows.selectExpr("left", "right", "cast(null as binary)").toDF(*columns)
        rows = pairs.select(sql.lit(resolve.PAIRS).alias("kind"), *columns).union(
            signatures.select(sql.lit(resolve.SIGNATURE).alias("kind"), *columns)
        )
        how = self.settings, DOCUMENTS_A_TASK
        found = self.work.keep(map_arrow(rows.repartition(1), neighbors, NEIGHBORS, *how))
        told = found.where(f"kind in ({LARGE}, {NEEDED})").collect()
        large = [row.left for row in told if row.kind == LARGE]
        needed = [bytes(row.data) for row in told if row.kind == NEEDED]
        near = found.where(f"kind = {NEAR}").select("left", "right", "distance")
        labels = found.where(f"kind = {LABEL}").selectExpr("left as position", "right as label")
        return near, labels, large, PositionSet.of(needed, self.signed.documents)

    def _by_all(self, proposed: Proposed) -> _Near:
        work = self.work
        near = self._verifier.distances(proposed.rows, proposed.needed)
        near = work.keep(near.select("left", "right", "distance"))
        edges = near.select("left", "right")
        if self._asks:  # the function is given whole groups, with every copy
            edges = edges.union(self.signed.collapsed.copy_rows.select("first", "position"))
        labels = work.keep(connected(edges, work.keep))
        large = []
        if not self._asks:
            sizes = labels.groupBy("label").count().where(f"count > {DOCUMENTS_A_TASK}")
            large = [row.label for row in sizes.collect()]
        return near, labels, large, collect_positions(labels, ["position"], self.signed.documents)

    def _resolve(self, pairs: Any, needed: PositionSet, wanted: Any, places: int) -> Decided:
        """Decide each place by itself; `wanted` says where documents go, None: to the only one."""
        sent = self.work.send(needed)
        none = self._nothing()

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

        similarity = {"similarity": "similarity"} if "similarity" in pairs.columns else {}
        parts = [
            rows(resolve.PAIRS, pairs, position="left", value="right", **similarity),
            rows(resolve.SIGNATURE, signature_rows(self.signed, sent), value="value", data="data"),
        ]
        if self._asks:
            copies = self.signed.collapsed.copy_rows.toDF("value", "position")
            parts.append(rows(resolve.COPIED, copies, value="value"))
            whole = [self._row, sql.col(f"`{self.columns.text}`").alias("text")]
            held = select_rows(self.frame, whole, self.signed.numbering, sent)
            parts.append(rows(resolve.TEXT, held, text="text", row="row"))
        elif self.signed.collapsed.texts:
            parts.append(rows(resolve.EQUAL, self.signed.collapsed.entries(sent), data="data"))
        if self.settings.verify and not self._asks:
            parts.append(rows(resolve.TEXT, self._verifier.texts(sent), text="payload"))
        gathered = reduce(lambda one, two: one.union(two), parts)
        return self._resolved(gathered.repartitionById(places, "place"))

    @property
    def _asks(self) -> bool:
        return callable(self.settings.keep)

    @property
    def _row(self) -> Any:
        return sql.struct(*(f"`{name}`" for name in self.names)).alias("row")

    def _nothing(self) -> dict[str, Any]:
        kinds = {"value": "long", "data": "binary", "text": "string", "name": "string"}
        kinds["similarity"] = "double"
        if self._asks:
            kinds["row"] = self.frame.select(self._row).schema["row"].dataType.simpleString()
        return {name: sql.lit(None).cast(kind).alias(name) for name, kind in kinds.items()}

    def _named(self, gathered: Any, named: PositionSet) -> Decided:
        """Decide by one task, which also returns pairs by the names of documents."""
        column, nothing = self.columns, "cast(null as string)"
        names = nothing if column.id is None else f"cast(`{column.id}` as string)"
        texts = f"`{column.text}`" if self.settings.verify else nothing
        wanted = [sql.expr(texts).alias("text"), sql.expr(names).alias("name")]
        if self._asks:
            wanted.append(self._row)
        rows = joined_rows(self.frame, wanted, self.signed.numbering.value, named)
        columns = self._nothing() | {
            "text": sql.col("text"),
            "name": sql.coalesce("name", sql.col("position").cast("string")).alias("name"),
        }
        if self._asks:
            gathered = gathered.withColumn("row", columns["row"])
            columns["row"] = sql.col("row")
        kind, place = sql.lit(resolve.TEXT).alias("kind"), sql.lit(0).alias("place")
        rows = rows.select(place, kind, "position", *columns.values())
        return self._resolved(gathered.union(rows).repartition(1), named=True)

    def _resolved(self, gathered: Any, *, named: bool = False) -> Decided:
        how = self.settings, self.signed.old, self.rarity
        found = self.work.keep(map_arrow(gathered, resolve.resolve, resolve.RESOLVED, *how))
        told = found.where(f"kind = {resolve.TOLD}").select("told").collect()
        groups = found.where(f"kind = {resolve.GROUP}").select(
            "first", "group_id", "kept", "center", "similarity"
        )
        known = "similarity", "distance"
        verified = found.where(f"kind = {resolve.FOUND}")
        verified = verified.selectExpr("first as left", "group_id as right", *known)
        by_name = found.where(f"kind in ({resolve.FOUND}, {resolve.SAME})")
        by_name = by_name.selectExpr("left_name as left", "right_name as right", *known)
        facts = resolve.ResolvedFacts.of([bytes(row.told) for row in told])
        return Decided(groups, verified, facts, by_name if named else None)


def _also_compared(decided: Decided, count: int) -> Decided:
    return replace(decided, facts=decided.facts + resolve.ResolvedFacts(compared=count))


NEIGHBORS = "kind int, left long, right long, distance int, data binary"

NEAR, LABEL, LARGE, NEEDED = range(4)
"""Pairs; documents (`left`) with the least that they are connected with (`right`); labels of large
components; and which documents are in the others.
"""


def neighbors(settings: DedupSettings, most: int, batches: Batches) -> Iterator[Any]:
    """Compare signatures; components of more than `most` documents are large."""
    table = table_of(batches)
    if table is None:
        return
    found = partial(rows_of, NEIGHBORS)
    pairs, signed = by_kind(table, resolve.PAIRS, resolve.SIGNATURE)
    signed = signed.sort_by("position")
    position = signed["position"].to_numpy()
    rows = signatures_of(signed["data"], settings.signer().bits // 8)
    left, right = (
        np.searchsorted(position, pairs[side].to_numpy()) for side in ("position", "value")
    )
    distances = row_distances(settings, rows, left, right, 1)
    near = promising(distances, settings)
    left, right = left[near], right[near]
    distance = distances[near]
    yield found(kind=NEAR, left=position[left], right=position[right], distance=distance)
    labels = np.empty(len(position), np.int64)
    _native.components(left, right, labels)
    members = distinct(np.concatenate([left, right]))
    yield found(kind=LABEL, left=position[members], right=position[labels[members]])
    sizes = np.bincount(labels[members], minlength=len(position))
    yield found(kind=LARGE, left=position[np.flatnonzero(sizes > most)])
    others = position[members[sizes[labels[members]] <= most]]
    yield found(kind=NEEDED, data=[packed_positions(others)])
