"""Step 5, verify, on Spark: pairs of positions in, pairs with their similarities out.

A pair is compared at the place of its left document. Signatures, and then texts, are sent there
once per place; what no pair needs is not sent. Where few documents have many pairs, such as
variants of one template, every place gets all documents instead, and pairs go anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.corpora.base import pa
from lookalike.dedup.propose import promising, row_distances
from lookalike.dedup.settings import DedupSettings
from lookalike.dedup.verify import exact_similarities
from lookalike.features import unrounded
from lookalike.spark.bands import PAIR, PAIRS
from lookalike.spark.packed import Batches, gathered, map_arrow, rows_of, sql, table_of
from lookalike.spark.positions import (
    KEY,
    Numbering,
    PositionSet,
    collect_positions,
    numbered_columns,
    pieces_of,
    row_keys,
)
from lookalike.spark.propose import SignedTable, signature_rows
from lookalike.spark.signing import documents_of
from lookalike.spark.work import SparkWork

_DOCUMENTS_A_TASK = 20_000
_DISTANCES = "left long, right long, distance int"
SIMILARITIES = "left long, right long, similarity double, distance int"


@dataclass(eq=False)
class Verifier:
    """Compares the documents of pairs."""

    work: SparkWork
    settings: DedupSettings
    frame: Any
    text: str
    signed: SignedTable

    def similarities(self, pairs: Any) -> Any | None:
        """Return pairs with similarity and distance, kept: those whose signatures are near enough
        to make a look at the documents worth while. None if there are no pairs.
        """
        needed = collect_positions(pairs, ["left", "right"], self.signed.documents)
        return self.compared(self.distances(pairs, needed)) if len(needed) else None

    def distances(self, pairs: Any, needed: PositionSet, *, all_of_them: bool = False) -> Any:
        """Return pairs of these documents with the distances of their signatures: those that are
        near enough, or all.
        """
        rows = signature_rows(self.signed, self.work.send(needed)).select(
            "position", sql.col("data").alias("payload")
        )
        pairs = pairs.select("left", "right", sql.lit(0).alias("distance"))
        compare = with_distances(self.settings, all_of_them)
        return meet(pairs, rows, "signature", self._places(needed), compare, _DISTANCES)

    def compared(self, distances: Any) -> Any:
        """Return pairs with distances with their similarities, too, kept."""
        if not self.settings.verify:
            return self.work.keep(map_arrow(distances, estimated(self.settings), SIMILARITIES))
        distances = self.work.keep(distances)
        near = collect_positions(distances, ["left", "right"], self.signed.documents)
        texts = needed_texts(self.frame, self.text, self.signed.numbering, self.work.send(near))
        compare = with_similarities(self.settings)
        met = meet(distances, texts, "text", self._places(near), compare, SIMILARITIES)
        return self.work.keep(met)

    def of_crowd(self, packed: Any, count: int, needed: PositionSet) -> Compared:
        """Return which of many packed pairs of few documents are alike."""
        return compare_crowd(
            self.work, self.settings, self.frame, self.text, self.signed, packed, count, needed
        )

    def with_sizes(self, frame: Any, needed: Any) -> Any:
        """Return rows of documents, by `position`, with `size`: how many different features they
        have.
        """
        texts = needed_texts(self.frame, self.text, self.signed.numbering, needed)
        sizes = map_arrow(texts, counted_features(self.settings), "position long, size long")
        return frame.join(sizes, "position")

    def _places(self, documents: PositionSet) -> int:
        return max(self.work.cores, -(-len(documents) // _DOCUMENTS_A_TASK))


FEW = 1_000_000
"""Texts; what says which they are is 16 bytes each, in the memory of every worker."""

_PAYLOAD = {"signature": "binary", "text": "string"}


def needed_texts(frame: Any, text: str, numbering: Any, needed: Any) -> Any:
    """Return `position, payload`: the texts of the needed documents."""
    return needed_values(frame, sql.col(f"`{text}`"), numbering, needed)


def needed_values(frame: Any, column: Any, numbering: Any, needed: Any) -> Any:
    """Return `position, payload`: what a column of text has of the needed documents.

    If these are few, Spark joins them where they are, and no other value leaves Java.
    """

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
    frame: Any,
    columns: list[Any],
    numbering: Any,
    needed: Any,
    *,
    others: bool = False,
) -> Any:
    """Return `position` and the columns of needed rows, or of all others."""
    from pyspark.sql.types import LongType, StructField, StructType

    fields = frame.select(*columns).schema.fields
    schema = StructType([StructField("position", LongType()), *fields])
    names = schema.names

    def select(batches: Batches) -> Iterator[Any]:
        known: Numbering = numbering.value
        wanted: PositionSet = needed.value
        for piece, row, batch, _ in pieces_of(batches):
            first = known.first(piece, row, len(batch))
            positions = np.arange(first, first + len(batch))
            which = np.flatnonzero(wanted.has(positions) != others)
            if len(which):
                some = batch.take(pa.array(which))
                yield pa.record_batch([pa.array(positions[which]), *some.columns], names)

    return map_arrow(numbered_columns(frame, columns), select, schema)


def meet(
    pairs: Any,
    payload: Any,
    kind: str,
    places: int,
    compare: Callable[[Any, NDArray[np.int64], NDArray[np.int64], Any], Iterator[Any]],
    schema: str,
) -> Any:
    """Bring what is needed of both documents to each pair, and return what `compare` yields.

    It is given the payloads of a place, both sides of its pairs as places among these, and the
    pairs. `pairs` has the columns left, right and distance.
    """
    place = sql.pmod(sql.xxhash64("left"), sql.lit(places)).cast("int").alias("place")
    placed = pairs.select(place, "left", "right", "distance")
    wanted = placed.select("place", sql.col("left").alias("position")).union(
        placed.select("place", sql.col("right").alias("position"))
    )
    none, no_payload = sql.lit(-1).cast("long"), sql.lit(None).cast(_PAYLOAD[kind])
    sent = payload.join(wanted.distinct(), "position").select(
        "place",
        sql.col("position").alias("left"),
        none.alias("right"),
        sql.lit(0).alias("distance"),
        "payload",
    )
    both = placed.withColumn("payload", no_payload).union(sent).repartitionById(places, "place")

    def meeting(batches: Batches) -> Iterator[Any]:
        table = table_of(batches)
        if table is None:
            return
        is_pair = table["right"].to_numpy() >= 0
        pairs = table.filter(pa.array(is_pair)).select(["left", "right", "distance"])
        found = table.filter(pa.array(~is_pair)).select(["left", "payload"]).sort_by("left")
        known = found["left"].to_numpy()
        pairs = pairs.sort_by([("left", "ascending"), ("right", "ascending")])
        left, right = (np.searchsorted(known, pairs[side].to_numpy()) for side in ("left", "right"))
        yield from compare(found["payload"].combine_chunks(), left, right, pairs)

    return map_arrow(both, meeting, schema)


def with_distances(settings: DedupSettings, all_of_them: bool) -> Any:
    """Return what yields pairs with the distances of their signatures: those that are promising,
    or all.
    """

    def compare(
        payload: Any, left: NDArray[np.int64], right: NDArray[np.int64], pairs: Any
    ) -> Iterator[Any]:
        if isinstance(payload, pa.ChunkedArray):
            payload = pa.concat_arrays(payload.chunks)
        _, _, data = payload.buffers()
        rows = np.frombuffer(data, np.uint8).reshape(-1, settings.signer().bits // 8)
        rows = rows[payload.offset : payload.offset + len(payload)]
        distances = row_distances(settings, np.ascontiguousarray(rows), left, right, 1)
        near = np.ones(len(left), bool) if all_of_them else promising(distances, settings)
        some = pairs.filter(pa.array(near))
        yield from pa.table(
            {
                "left": some["left"],
                "right": some["right"],
                "distance": pa.array(distances[near]),
            }
        ).to_batches()

    return compare


def with_similarities(settings: DedupSettings) -> Any:
    """Return what yields pairs with the exact similarities of their texts."""

    def compare(
        payload: Any, left: NDArray[np.int64], right: NDArray[np.int64], pairs: Any
    ) -> Iterator[Any]:
        if isinstance(payload, pa.ChunkedArray):
            payload = pa.concat_arrays(payload.cast(pa.large_string()).chunks)
        documents, lengths = documents_of(payload)
        found = exact_similarities(settings, documents.take, lengths, left, right, threads=1)
        yield from _with_similarity(pairs, found)

    return compare


def counted_features(settings: DedupSettings) -> Callable[[Batches], Iterator[Any]]:
    """Return what yields how many different features the texts of `needed_texts` have."""

    def count(batches: Batches) -> Iterator[Any]:
        features = settings.feature_kind()
        for batch in batches:
            documents, _ = documents_of(batch.column("payload"))
            sizes = features.counts(documents, distinct=True, threads=1)
            yield pa.record_batch({"position": batch.column("position"), "size": pa.array(sizes)})

    return count


def estimated(settings: DedupSettings) -> Callable[[Batches], Iterator[Any]]:
    """Return what yields pairs with the similarities that the distances of signatures suggest."""

    def estimate(batches: Batches) -> Iterator[Any]:
        for batch in batches:
            found = settings.estimate(batch.column("distance").to_numpy())
            yield from _with_similarity(
                pa.Table.from_batches([batch]), unrounded(found, settings.threshold)
            )

    return estimate


def _with_similarity(pairs: Any, similarity: NDArray[np.float64]) -> Iterator[Any]:
    yield from pa.table(
        {
            "left": pairs["left"],
            "right": pairs["right"],
            "similarity": pa.array(similarity),
            "distance": pairs["distance"],
        }
    ).to_batches()


PAIRS_A_TASK = 4_000_000
_PAIRS_AT_A_TIME = 1 << 20

_SIGNATURE, _TEXT = 1, 2
_COMPARED = "kind int, left long, right long, similarity double, distance int"
_ALIKE, _TOLD = 0, 1


@dataclass(frozen=True, eq=False)
class Compared:
    """Pairs of which the texts were compared."""

    accepted: Any
    """Those that are alike: `left, right, similarity, distance`."""
    count: int
    alike: int


def compare_crowd(
    work: SparkWork,
    settings: DedupSettings,
    frame: Any,
    text: str,
    signed: SignedTable,
    packed: Any,
    count: int,
    needed: PositionSet,
) -> Compared:
    """Return which of packed pairs are alike; there are `count`, of the needed documents."""
    places = max(work.cores, -(-count // PAIRS_A_TASK))
    sent = work.send(needed)
    everywhere = sql.explode(sql.sequence(sql.lit(0), sql.lit(places - 1))).alias("bucket")
    nothing = {"data": sql.lit(None).cast("binary"), "text": sql.lit(None).cast("string")}

    def rows(kind: int, frame: Any, place: Any, **named: str) -> Any:
        columns = [
            (sql.col(named[name]) if name in named else none).alias(name)
            for name, none in nothing.items()
        ]
        position = sql.col("position") if "position" in frame.columns else sql.lit(0).cast("long")
        return frame.select(
            place, sql.lit(kind).alias("kind"), position.alias("position"), *columns
        )

    dealt = sql.pmod(sql.xxhash64("data"), sql.lit(places)).cast("int").alias("bucket")
    all_of_it = rows(PAIRS, packed.where(f"kind = {PAIRS}"), dealt, data="data").union(
        rows(_SIGNATURE, signature_rows(signed, sent), everywhere, data="data")
    )
    if settings.verify:
        texts = needed_texts(frame, text, signed.numbering, sent)
        all_of_it = all_of_it.union(rows(_TEXT, texts, everywhere, text="payload"))
    met = all_of_it.repartitionById(places, "bucket")
    found = work.keep(map_arrow(met, _compare(settings), _COMPARED))
    told = found.where(f"kind = {_TOLD}").agg(sql.sum("left"), sql.sum("right")).first()
    columns = ("left", "right", "similarity", "distance")
    return Compared(
        found.where(f"kind = {_ALIKE}").select(*columns), int(told[0] or 0), int(told[1] or 0)
    )


def _compare(settings: DedupSettings) -> Callable[[Batches], Iterator[Any]]:
    """Return what yields the pairs of a place that are alike, and how many were compared and are
    alike.
    """

    def compare(batches: Batches) -> Iterator[Any]:
        table = table_of(batches)
        if table is None:
            return
        kinds = table["kind"].to_numpy()
        parts = [table.filter(pa.array(kinds == kind)) for kind in (PAIRS, _SIGNATURE, _TEXT)]
        of_pairs = parts[0].select(["kind", "data"]).to_batches()
        pairs = gathered(iter(of_pairs), PAIR).get(PAIRS, np.empty(0, PAIR))
        signed, texts = (part.sort_by("position") for part in parts[1:])
        position = signed["position"].to_numpy()
        data = b"".join(value.as_py() for value in signed["data"])
        rows = np.frombuffer(data, np.uint8).reshape(len(position), settings.signer().bits // 8)
        similar = _similarities(settings, texts["text"])
        count = alike = 0
        for begin in range(0, len(pairs), _PAIRS_AT_A_TIME):
            some = pairs[begin : begin + _PAIRS_AT_A_TIME]
            left, right = (np.searchsorted(position, some[side]) for side in ("left", "right"))
            distances = row_distances(settings, rows, left, right, 1)
            near = np.flatnonzero(promising(distances, settings))
            left, right, distances = left[near], right[near], distances[near]
            similarity = similar(left, right, distances)
            which = similarity >= settings.threshold
            count, alike = count + len(near), alike + int(which.sum())
            yield rows_of(
                _COMPARED,
                kind=_ALIKE,
                left=position[left[which]],
                right=position[right[which]],
                similarity=similarity[which],
                distance=distances[which],
            )
        yield rows_of(_COMPARED, kind=_TOLD, left=[count], right=[alike])

    return compare


def _similarities(
    settings: DedupSettings, texts: Any
) -> Callable[
    [NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]], NDArray[np.float64]
]:  # fmt: skip
    """Return what compares documents, by their places; or takes the word of their signatures."""
    if not settings.verify:
        return lambda left, right, distances: unrounded(
            settings.estimate(distances), settings.threshold
        )
    documents, lengths = documents_of(texts.cast(pa.large_string()).combine_chunks())
    return lambda left, right, distances: exact_similarities(
        settings, documents.take, lengths, left, right, threads=1
    )
