"""Step 5, verify: the signatures, and then the texts, of pairs come to where the pairs are.

A pair is at the place of its left document. What is sent there is sent once a place, whatever the
number of pairs there; what no pair needs is not sent at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.corpora.base import pa
from lookalike.dedup.propose import promising, row_distances
from lookalike.dedup.settings import DedupSettings
from lookalike.dedup.verify import exact_similarities
from lookalike.features import unrounded
from lookalike.spark.numbering import KEY, Numbering, numbered_columns, pieces_of, row_keys
from lookalike.spark.packed import Batches, map_arrow, table_of
from lookalike.spark.position_set import PositionSet
from lookalike.spark.steps.signing import documents_of

__all__ = [
    "counted_features",
    "joined_rows",
    "meet",
    "needed_texts",
    "needed_values",
    "with_distances",
    "with_similarities",
]

FEW = 1_000_000
"""Texts; what says which they are is 16 bytes each, in the memory of every worker."""

_PAYLOAD = {"signature": "binary", "text": "string"}


def needed_texts(frame: Any, text: str, numbering: Any, needed: Any) -> Any:
    """Return `position, payload`: the texts of the needed documents."""
    from pyspark.sql import functions as sql

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
    from pyspark.sql import functions as sql

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
    from pyspark.sql import functions as sql

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
