"""Step 5, verify, on Spark: pairs of positions in, pairs with their similarities out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lookalike.dedup.settings import DedupSettings
from lookalike.spark.compare import (
    estimated,
    meet,
    needed_signatures,
    needed_texts,
    with_distances,
    with_similarities,
)
from lookalike.spark.packed import map_arrow
from lookalike.spark.position_set import collect_positions
from lookalike.spark.propose import SignedTable
from lookalike.spark.work import SparkWork

__all__ = ["Verifier"]

_PAIRS_A_TASK = 50_000
_DISTANCES = "left long, right long, distance int"
_SIMILARITIES = "left long, right long, similarity double, distance int"


@dataclass(eq=False)
class Verifier:
    """Compares the documents of pairs."""

    work: SparkWork
    settings: DedupSettings
    frame: Any
    text: str
    signed: SignedTable
    compared: int = field(default=0)
    """Pairs whose texts were compared so far."""

    def similarities(self, pairs: Any, *, all_of_them: bool = False) -> Any:
        """Return pairs with similarity and distance, kept: those whose signatures are near enough
        to make a look at the documents worth while, or all.
        """
        count = pairs.count()
        distances = self.distances(pairs, count, all_of_them=all_of_them)
        if not self.settings.verify:
            found = self.work.keep(map_arrow(distances, estimated(self.settings), _SIMILARITIES))
            self.compared += found.count()
            return found
        distances = self.work.keep(distances)
        near = distances.count()
        self.compared += near
        if not near:
            return self.work.spark.createDataFrame([], _SIMILARITIES)
        needed = self.work.send(collect_positions(distances, ["left", "right"], self._bound))
        texts = needed_texts(self.frame, self.text, self.signed.numbering, needed)
        compare = with_similarities(self.settings)
        places = self._places(near)
        return self.work.keep(meet(distances, texts, "text", places, compare, _SIMILARITIES))

    def distances(self, pairs: Any, count: int, *, all_of_them: bool) -> Any:
        """Return pairs with the distances of their signatures."""
        from pyspark.sql import functions as sql

        if not count:
            return self.work.spark.createDataFrame([], _DISTANCES)
        needed = self.work.send(collect_positions(pairs, ["left", "right"], self._bound))
        rows = needed_signatures(self.signed.table, self.signed.numbering, needed)
        pairs = pairs.select("left", "right", sql.lit(0).alias("distance"))
        compare = with_distances(self.settings, all_of_them)
        return meet(pairs, rows, "signature", self._places(count), compare, _DISTANCES)

    @property
    def _bound(self) -> int:
        return self.signed.documents

    def _places(self, pairs: int) -> int:
        return max(self.work.cores, -(-pairs // _PAIRS_A_TASK))
