"""Nearest neighbors over all partitions: one `SliceIndex` in each, and their answers merged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import whole_number
from lookalike.corpora.base import pa
from lookalike.errors import ArgumentError, Said, SignatureError
from lookalike.shown import escape_terminal
from lookalike.spark.packed import Batches, map_arrow, sql, table_of
from lookalike.spark.sources import frame_of

_SIGNATURES_AT_A_TIME = 1 << 20
"""Of an index; a larger partition has several, one after the other."""


def search(
    queries: Any,
    collection: Any,
    *,
    k: SupportsIndex | None = None,
    radius: SupportsIndex | None = None,
    id: str = "id",
    signature: str = "signature",
) -> Any:
    """Return `query`, `id` and `distance`: the `k` nearest of each query, or all within `radius`.

    `queries` and `collection` are DataFrames with an id and a signature, as `sign` makes them, of
    the same width. Queries are sent to every worker, so they should be far fewer than the
    collection, which is not moved. Answers are exactly those of one `SliceIndex` of the whole
    collection, with ties in the order of ids.
    """
    from pyspark.sql import Window

    if (k is None) == (radius is None):
        raise ArgumentError("search takes k, or a radius; give one of them")
    most = None if k is None else whole_number("k", k, at_least=1)
    far = None if radius is None else whole_number("radius", radius, at_least=0)
    queries, collection = frame_of("queries", queries), frame_of("collection", collection)
    for name, frame in (("queries", queries), ("collection", collection)):
        _check(name, frame, id, signature)
    columns = f"`{id}`", f"`{signature}`"
    asked = queries.select(*columns).collect()
    rows = _rows([row[1] for row in asked], "queries")
    kind = dict(collection.dtypes)[id]
    spark = collection.sparkSession
    names = [(place, row[0]) for place, row in enumerate(asked)]
    numbered = spark.createDataFrame(names, f"place int, query {dict(queries.dtypes)[id]}")
    if not len(rows):
        return spark.createDataFrame([], f"query {kind}, id {kind}, distance int")
    sent = spark.sparkContext.broadcast(rows)
    stored = collection.select(*columns).toDF("id", "signature")
    found = map_arrow(stored, _look_up, f"place int, id {kind}, distance int", sent, most, far)
    if most is not None:
        nearest = Window.partitionBy("place").orderBy("distance", "id")
        found = found.withColumn("nth", sql.row_number().over(nearest)).where(f"nth <= {most}")
    return found.join(sql.broadcast(numbered), "place").select("query", "id", "distance")


def _look_up(queries: Any, most: int | None, far: int | None, batches: Batches) -> Iterator[Any]:
    held, count = [], 0
    for batch in batches:
        held.append(batch)
        count += len(batch)
        if count >= _SIGNATURES_AT_A_TIME:
            yield from _answers(table_of(iter(held)), queries.value, most, far)
            held, count = [], 0
    if count:
        yield from _answers(table_of(iter(held)), queries.value, most, far)


def _answers(
    table: Any, queries: NDArray[np.uint8], most: int | None, far: int | None
) -> Iterator[Any]:
    from lookalike.indexes import SliceIndex

    table = table.sort_by("id")  # so that ties are broken by id
    rows = _rows(table["signature"].to_pylist(), "the collection")
    if rows.shape[1] != queries.shape[1]:
        raise SignatureError(
            f"queries have {8 * queries.shape[1]} bits, the collection {8 * rows.shape[1]}; sign "
            "both in the same way"
        )
    index = SliceIndex(rows, threads=1)
    if most is not None:
        answer = index.search(queries, min(most, len(rows)), threads=1)
        places = np.repeat(np.arange(len(queries)), answer.ids.shape[1])
        ids, distances = answer.ids.reshape(-1), answer.distances.reshape(-1)
    else:
        within = index.within(queries, far or 0, threads=1, limit=len(rows) * len(queries))
        places = np.repeat(np.arange(len(queries)), np.diff(within.offsets))
        ids, distances = within.ids, within.distances
    there = ids >= 0
    columns = {
        "place": pa.array(places[there].astype(np.int32)),
        "id": table["id"].take(pa.array(ids[there].astype(np.int64))),
        "distance": pa.array(distances[there].astype(np.int32)),
    }
    yield from pa.table(columns).to_batches()


def _rows(signatures: list[bytes | None], whose: str) -> NDArray[np.uint8]:
    widths = {len(one) if one is not None else None for one in signatures}
    if len(widths) > 1 or None in widths:
        told = ", ".join(
            "none" if one is None else f"{8 * one} bits"
            for one in sorted(widths, key=lambda one: -1 if one is None else one)
        )
        raise SignatureError(f"signatures of {whose} have {told}; expected one width for all")
    width = widths.pop() if widths else 1
    return np.frombuffer(b"".join(signatures), np.uint8).reshape(-1, width or 1)  # type: ignore[arg-type]


def _check(name: str, frame: Any, id: str, signature: str) -> None:
    kinds = dict(frame.dtypes)
    for what, column in (("id", id), ("signature", signature)):
        if column not in kinds:
            raise ArgumentError(
                f"{name} have the columns {', '.join(map(escape_terminal, kinds))}; expected one "
                f"called {escape_terminal(column)!r}, or say which it is with ",
                Said(what),
            )
    if kinds[signature] != "binary":
        raise ArgumentError(
            Said("signature"),
            f" is the column {escape_terminal(signature)!r} of type {kinds[signature]} in {name}; "
            "expected bytes, as lookalike.spark.sign makes them",
        )
