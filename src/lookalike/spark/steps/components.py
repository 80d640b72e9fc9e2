"""Connected components of pairs: large-star and small-star in turn (Kiveris et al., 2014).

First each partition puts a tree in the place of whatever its pairs connect; these are few. If they
fit one task, that finishes. Else every document is connected to the least of its neighbours, over
and over, until nothing changes. No pair comes to the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from lookalike import _native
from lookalike.corpora.base import pa
from lookalike.spark.packed import Batches, map_arrow

__all__ = ["IN_ONE_TASK", "connected"]

IN_ONE_TASK = 4_000_000
"""Edges; 16 bytes each, and as much again four times while they are put together."""

_EDGES = "member long, least long"


def connected(pairs: Any, keep: Callable[[Any], Any], in_one_task: int = IN_ONE_TASK) -> Any:
    """Return `position, label` for each document that has a pair: the least that it is connected
    with.

    `keep` makes a frame last: it is used more than once.
    """
    from pyspark.sql import functions as sql

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
    from pyspark.sql import functions as sql

    turned = edges.select(sql.col("least").alias("member"), sql.col("member").alias("least"))
    both = edges.union(turned).toDF("one", "two")
    least = both.groupBy("one").agg(sql.least(sql.min("two"), sql.col("one")).alias("least"))
    larger = both.where("two > one").join(least, "one")
    return larger.select(sql.col("two").alias("member"), "least").distinct()


def _small_star(edges: Any) -> Any:
    """Connect each and its smaller neighbours with the least of these."""
    from pyspark.sql import functions as sql

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
    from pyspark.sql import functions as sql

    mixed = sql.xxhash64("member", "least").cast("decimal(38,0)")
    row = edges.agg(sql.count("*").alias("count"), sql.sum(mixed).alias("sum")).first()
    return row["count"], row["sum"]
