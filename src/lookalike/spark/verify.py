"""Step 5, verify, on Spark: pairs of positions in, pairs with their similarities out.

A pair is compared at the place of its left document. The signatures, then texts, that its pairs
need are sent to each place once. Where few documents have many pairs, such as variants of one
template, every place gets all documents, and pairs go anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.corpora.base import pa
from lookalike.dedup.pairs import Floats, Ints
from lookalike.dedup.propose import promising, row_distances
from lookalike.dedup.settings import DedupSettings
from lookalike.dedup.verify import document_sizes, exact_similarities
from lookalike.features import unrounded
from lookalike.spark.bands import PAIR, PAIRS
from lookalike.spark.packed import (
    Batches,
    by_kind,
    gathered,
    map_arrow,
    rows_of,
    signatures_of,
    sql,
    table_of,
)
from lookalike.spark.positions import (
    KEY,
    Numbering,
    PositionSet,
    collect_positions,
    numbered_columns,
    pieces_of,
    row_keys,
)
from lookalike.spark.propose import signature_rows
from lookalike.spark.signing import SignedTable, documents_of, weights_of
from lookalike.spark.work import SparkWork

_DOCUMENTS_A_TASK = 20_000
_DISTANCES = "left long, right long, distance int, ones long"
_SIZES = "position long, size long"
SIMILARITIES = "left long, right long, similarity double, distance int"


@dataclass(eq=False)
class Verifier:
    """Compares the documents of pairs."""

    work: SparkWork
    settings: DedupSettings
    frame: Any
    text: str
    signed: SignedTable
    rarity: Any | None = None
    """What features weigh, a `SharedFeatures` that was sent; None: they have no weights."""

    def similarities(self, pairs: Any) -> Any | None:
        """Return the promising pairs with similarity and distance; None if there are no pairs."""
        needed = collect_positions(pairs, ["left", "right"], self.signed.documents)
        return self.compared(self.distances(pairs, needed)) if len(needed) else None

    def distances(self, pairs: Any, needed: PositionSet, *, all_of_them: bool = False) -> Any:
        """Return the promising pairs of these documents, or all, with their distances."""
        rows = signature_rows(self.signed, self.work.send(needed))
        rows = rows.selectExpr("position", "data as payload")
        pairs = pairs.select("left", "right", sql.lit(0).alias("distance"))
        compare = partial(with_distances, self.settings, all_of_them)
        return meet(pairs, rows, "binary", self._places(needed), compare, _DISTANCES)

    def compared(self, distances: Any) -> Any:
        """Return pairs with distances with their similarities, too, kept."""
        if not self.settings.verify:
            if "ones" not in distances.columns:  # pairs that were dealt out again
                needed = collect_positions(distances, ["left", "right"], self.signed.documents)
                distances = self.distances(distances, needed, all_of_them=True)
            return self.work.keep(map_arrow(distances, estimated, SIMILARITIES, self.settings))
        distances = self.work.keep(distances)
        near = collect_positions(distances, ["left", "right"], self.signed.documents)
        texts = self.texts(self.work.send(near))
        compare = partial(with_similarities, self.settings, self.rarity)
        met = meet(distances, texts, "string", self._places(near), compare, SIMILARITIES)
        return self.work.keep(met)

    def texts(self, needed: Any) -> Any:
        """Return `position, payload`: the texts of the needed documents."""
        column = sql.col(f"`{self.text}`")
        return needed_values(self.frame, column, self.signed.numbering, needed)

    def with_sizes(self, frame: Any, needed: Any) -> Any:
        """Return rows of documents, by `position`, with `size`: see `document_sizes`."""
        how = self.settings, self.rarity
        sizes = map_arrow(self.texts(needed), counted_features, _SIZES, *how)
        return frame.join(sizes, "position")

    def of_crowd(self, packed: Any, count: int, needed: PositionSet) -> Compared:
        """Return which of `count` packed pairs, of few documents, are near-duplicates."""
        places = max(self.work.cores, -(-count // PAIRS_A_TASK))
        sent = self.work.send(needed)
        everywhere = sql.explode(sql.sequence(sql.lit(0), sql.lit(places - 1))).alias("bucket")
        dealt = _place("data", places).alias("bucket")
        pairs = packed.where(f"kind = {PAIRS}").withColumn("position", sql.lit(0).cast("long"))
        signatures = signature_rows(self.signed, sent)
        all_of_it = _crowd_rows(PAIRS, pairs, dealt, data="data").union(
            _crowd_rows(_SIGNATURE, signatures, everywhere, data="data")
        )
        if self.settings.verify:
            texts = _crowd_rows(_TEXT, self.texts(sent), everywhere, text="payload")
            all_of_it = all_of_it.union(texts)
        met = all_of_it.repartitionById(places, "bucket")
        found = self.work.keep(map_arrow(met, _compare, _COMPARED, self.settings, self.rarity))
        told = found.where(f"kind = {_TOLD}").agg(sql.sum("left"), sql.sum("right")).first()
        accepted = found.where(f"kind = {_ALIKE}").drop("kind")
        return Compared(accepted, int(told[0] or 0), int(told[1] or 0))

    def _places(self, documents: PositionSet) -> int:
        return max(self.work.cores, -(-len(documents) // _DOCUMENTS_A_TASK))


def _crowd_rows(
    kind: int, frame: Any, place: Any, *, data: str = "null", text: str = "null"
) -> Any:
    payload = (
        sql.expr(data).cast("binary").alias("data"),
        sql.expr(text).cast("string").alias("text"),
    )
    return frame.select(place, sql.lit(kind).alias("kind"), "position", *payload)


def _place(column: str, places: int) -> Any:
    """Return where a row goes, by a hash of a column."""
    return sql.pmod(sql.xxhash64(column), sql.lit(places)).cast("int")


FEW = 1_000_000
"""Documents that are joined; each takes 16 bytes in the memory of every worker."""


def needed_values(frame: Any, column: Any, numbering: Any, needed: Any) -> Any:
    """Return `position, payload`: a column of needed documents; a few are joined in Java."""
    if len(needed.value) > FEW:
        return select_rows(frame, [column.alias("payload")], numbering, needed)
    return joined_rows(frame, [column.alias("payload")], numbering.value, needed.value)


def joined_rows(frame: Any, columns: list[Any], numbering: Numbering, needed: PositionSet) -> Any:
    """Return `position` and columns of needed rows, which are few, joined where they are."""
    positions = needed.positions()
    keys = numbering.keys_of(positions)
    wanted = frame.sparkSession.createDataFrame(pa.table({KEY: keys, "position": positions}))
    rows = frame.select(row_keys(frame).alias(KEY), *columns)
    return rows.join(sql.broadcast(wanted), KEY).drop(KEY)


def select_rows(
    frame: Any, columns: list[Any], numbering: Any, needed: Any, *, others: bool = False
) -> Any:
    """Return `position` and the columns of needed rows, or of all others."""
    from pyspark.sql.types import LongType, StructField, StructType

    fields = frame.select(*columns).schema.fields
    schema = StructType([StructField("position", LongType()), *fields])
    rows = numbered_columns(frame, columns)
    return map_arrow(rows, _selected, schema, schema.names, numbering, needed, others)


def _selected(
    names: list[str], numbering: Any, needed: Any, others: bool, batches: Batches
) -> Iterator[Any]:
    for piece, row, batch, _ in pieces_of(batches):
        first = numbering.value.first(piece, row, len(batch))
        positions = np.arange(first, first + len(batch))
        which = np.flatnonzero(needed.value.has(positions) != others)
        if len(which):
            some = batch.take(pa.array(which))
            yield pa.record_batch([pa.array(positions[which]), *some.columns], names)


Sides = tuple[Ints, Ints]
Compare = Callable[[Any, Sides, Any], Any]


def meet(pairs: Any, payload: Any, kind: str, places: int, compare: Compare, schema: str) -> Any:
    """Bring the payloads of both documents to each pair, and return what `compare` returns.

    It is given the payloads of a place, both sides of its pairs as places among these, and the
    pairs. `pairs` has the columns left, right and distance; `kind` is the type of payloads.
    """
    placed = pairs.select(_place("left", places).alias("place"), "left", "right", "distance")
    wanted = placed.selectExpr("place", "left as position").union(
        placed.selectExpr("place", "right as position")
    )
    sent = payload.join(wanted.distinct(), "position").selectExpr(
        "place", "position as left", "-1L as right", "0 as distance", "payload"
    )
    both = placed.withColumn("payload", sql.lit(None).cast(kind)).union(sent)
    return map_arrow(both.repartitionById(places, "place"), _meeting, schema, compare)


def _meeting(compare: Compare, batches: Batches) -> Iterator[Any]:
    table = table_of(batches)
    if table is None:
        return
    is_pair = table["right"].to_numpy() >= 0
    pairs = table.filter(pa.array(is_pair)).select(["left", "right", "distance"])
    found = table.filter(pa.array(~is_pair)).select(["left", "payload"]).sort_by("left")
    known = found["left"].to_numpy()
    pairs = pairs.sort_by([("left", "ascending"), ("right", "ascending")])
    left, right = (np.searchsorted(known, pairs[side].to_numpy()) for side in ("left", "right"))
    yield from compare(found["payload"], (left, right), pairs).to_batches()


def with_distances(
    settings: DedupSettings, all_of_them: bool, payload: Any, sides: Sides, pairs: Any
) -> Any:
    """Return pairs with the distances of their signatures: the promising pairs, or all."""
    rows = signatures_of(payload, settings.signer().bits // 8)
    distances = row_distances(settings, rows, *sides, 1)
    near = np.ones(len(pairs), bool) if all_of_them else promising(distances, settings)
    some = pairs.filter(pa.array(near))
    some = some.set_column(2, "distance", pa.array(distances[near]))
    ones = settings.ones(rows, *(side[near] for side in sides))
    return some.append_column("ones", pa.array(ones))


def with_similarities(
    settings: DedupSettings, rarity: Any | None, payload: Any, sides: Sides, pairs: Any
) -> Any:
    """Return pairs with the exact similarities of their texts."""
    return _with_similarity(pairs, _similarities(settings, rarity, payload)(*sides, None))


def counted_features(
    settings: DedupSettings, rarity: Any | None, batches: Batches
) -> Iterator[Any]:
    """Yield the sizes of the texts of `Verifier.texts`."""
    features, weights = settings.feature_kind(), weights_of(rarity)
    for batch in batches:
        documents, _ = documents_of(batch.column("payload"))
        sizes = document_sizes(features, documents, weights, threads=1)
        yield rows_of(_SIZES, position=batch.column("position"), size=sizes)


def estimated(settings: DedupSettings, batches: Batches) -> Iterator[Any]:
    """Yield pairs with the similarities that the distances of signatures suggest."""
    for batch in batches:
        found = settings.estimate(*(batch.column(name).to_numpy() for name in ("distance", "ones")))
        pairs = batch.select(["left", "right", "distance"])
        yield _with_similarity(pairs, unrounded(found, settings.threshold))


def _with_similarity(pairs: Any, similarity: Floats) -> Any:
    return pairs.add_column(2, "similarity", pa.array(similarity))


PAIRS_A_TASK = 4_000_000
_PAIRS_AT_A_TIME = 1 << 20

_SIGNATURE, _TEXT = 1, 2
_COMPARED = "kind int, left long, right long, similarity double, distance int"
_ALIKE, _TOLD = 0, 1


@dataclass(frozen=True, eq=False)
class Compared:
    """Pairs of which the texts were compared."""

    accepted: Any
    """Near-duplicates: `left, right, similarity, distance`."""
    count: int
    near: int


def _compare(settings: DedupSettings, rarity: Any | None, batches: Batches) -> Iterator[Any]:
    """Yield the near-duplicates of a place; then how many pairs were compared and accepted."""
    table = table_of(batches)
    if table is None:
        return
    of_pairs, signed, texts = by_kind(table, PAIRS, _SIGNATURE, _TEXT)
    of_pairs = of_pairs.select(["kind", "data"]).to_batches()
    pairs = gathered(iter(of_pairs), PAIR).get(PAIRS, np.empty(0, PAIR))
    signed, texts = signed.sort_by("position"), texts.sort_by("position")
    position = signed["position"].to_numpy()
    rows = signatures_of(signed["data"], settings.signer().bits // 8)
    similar = _similarities(settings, rarity, texts["text"], rows)
    count = accepted = 0
    for begin in range(0, len(pairs), _PAIRS_AT_A_TIME):
        some = pairs[begin : begin + _PAIRS_AT_A_TIME]
        left, right = (np.searchsorted(position, some[side]) for side in ("left", "right"))
        distances = row_distances(settings, rows, left, right, 1)
        near = np.flatnonzero(promising(distances, settings))
        left, right, distances = left[near], right[near], distances[near]
        similarity = similar(left, right, distances)
        which = similarity >= settings.threshold
        count, accepted = count + len(near), accepted + int(which.sum())
        yield rows_of(
            _COMPARED,
            kind=_ALIKE,
            left=position[left[which]],
            right=position[right[which]],
            similarity=similarity[which],
            distance=distances[which],
        )
    yield rows_of(_COMPARED, kind=_TOLD, left=[count], right=[accepted])


def _similarities(
    settings: DedupSettings,
    rarity: Any | None,
    texts: Any,
    signatures: NDArray[np.uint8] | None = None,
) -> Callable[[Ints, Ints, Any], Floats]:
    """Return what compares texts, by their places, or estimates similarities by `signatures`."""
    if signatures is not None and not settings.verify:
        return lambda left, right, distances: unrounded(
            settings.estimate(distances, settings.ones(signatures, left, right)), settings.threshold
        )
    documents, lengths = documents_of(texts.cast(pa.large_string()).combine_chunks())
    weights = weights_of(rarity)
    return lambda left, right, distances: exact_similarities(
        settings, documents.take, lengths, left, right, weights=weights, threads=1
    )
