"""Step 5, verify, of many pairs of few documents, such as variants of one template.

Each document is in pairs everywhere; so every place is given all documents, once, and the pairs go
where they go, by the thousand. `compare` sends each pair to its documents, which is less where most
documents are in few pairs.
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
from lookalike.spark.packed import Batches, gathered, map_arrow, table_of
from lookalike.spark.position_set import PositionSet
from lookalike.spark.steps.bands import PAIR, PAIRS
from lookalike.spark.steps.compare import needed_texts
from lookalike.spark.steps.propose import SignedTable
from lookalike.spark.steps.signing import documents_of
from lookalike.spark.steps.values import signature_rows
from lookalike.spark.work import SparkWork

__all__ = ["Compared", "compare_crowd"]

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
    from pyspark.sql import functions as sql

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
            sides = position[left[which]], position[right[which]]
            yield _rows(_ALIKE, *sides, similarity[which], distances[which])
        one = np.ones(1)
        yield _rows(_TOLD, np.array([count]), np.array([alike]), one, one.astype(np.int32))

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


def _rows(
    kind: int,
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    similarity: NDArray[np.float64],
    distance: NDArray[np.int32],
) -> Any:
    return pa.record_batch(
        {
            "kind": pa.array(np.full(len(left), kind, np.int32)),
            "left": pa.array(left),
            "right": pa.array(right),
            "similarity": pa.array(similarity),
            "distance": pa.array(distance),
        }
    )
