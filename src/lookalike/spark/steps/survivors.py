"""Steps 5 to 7, settle, cluster and choose, of components that are too large to be compared by one
task: their verified pairs come to one, where the functions of the local job decide.

They are given a corpus of the documents that have pairs; the others do not matter to them. Of
equal texts it has the first, the second and the one that stays before the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.corpora.base import pa
from lookalike.dedup.decide import best_of_equals, decide, unmet_pairs
from lookalike.dedup.pairs import VerifiedPairs
from lookalike.dedup.settings import DedupSettings
from lookalike.spark.packed import Batches, map_arrow, table_of
from lookalike.spark.steps.resolve import arrange

__all__ = ["GROUP", "GROUPS", "SPLIT", "UNMET", "choose", "chosen_frame", "together"]

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
    from pyspark.sql import functions as sql

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
    return _rows(UNMET, corpus.positions[left], corpus.positions[right])


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
        unknown = np.isnan(similarity)
        yield _rows(
            GROUP,
            positions[members],
            positions[decision.clusters[members]],
            positions[survivor],
            positions[centre],
            pa.array(similarity, pa.float64(), mask=unknown),
        )
        if settings.cluster == "star" and settings.by_signatures:
            yield _unmet(corpus)
        if decision.split:
            yield _rows(SPLIT, np.array([decision.split]), np.array([decision.largest]))

    return chosen


def _rows(
    kind: int,
    first: NDArray[np.int64],
    cluster: NDArray[np.int64],
    survivor: NDArray[np.int64] | None = None,
    centre: NDArray[np.int64] | None = None,
    similarity: Any = None,
) -> Any:
    return pa.record_batch(
        {
            "kind": pa.array(np.full(len(first), kind, np.int32)),
            "first": pa.array(first),
            "cluster": pa.array(cluster),
            "survivor": pa.array(first if survivor is None else survivor),
            "centre": pa.array(first if centre is None else centre),
            "similarity": pa.nulls(len(first), pa.float64()) if similarity is None else similarity,
        }
    )


def chosen_frame(joined: Any, settings: DedupSettings, old: int) -> Any:
    """Return `choose` of all places."""
    return map_arrow(joined, choose(settings, old), GROUPS)
