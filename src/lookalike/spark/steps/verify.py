"""Step 5, verify, on Spark: pairs of positions in, pairs with their similarities out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lookalike.dedup.settings import DedupSettings
from lookalike.spark.packed import map_arrow
from lookalike.spark.position_set import PositionSet, collect_positions
from lookalike.spark.steps.compare import (
    counted_features,
    estimated,
    meet,
    needed_texts,
    with_distances,
    with_similarities,
)
from lookalike.spark.steps.crowd import Compared, compare_crowd
from lookalike.spark.steps.propose import SignedTable
from lookalike.spark.steps.values import signature_rows
from lookalike.spark.work import SparkWork

__all__ = ["SIMILARITIES", "Verifier"]

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
        from pyspark.sql import functions as sql

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
