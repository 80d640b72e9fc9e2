"""What the table of signatures has of some documents, as rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lookalike.corpora.base import pa
from lookalike.spark.packed import Batches, fixed_binary, map_arrow
from lookalike.spark.position_set import PositionSet
from lookalike.spark.steps.propose import SignedTable
from lookalike.spark.steps.signing import BEFORE_NEW, chunks

__all__ = ["FEW", "signature_rows", "value_rows"]

FEW = 1_000_000
"""Documents; what says which they are is 24 bytes each, in the memory of every worker."""


def signature_rows(signed: SignedTable, needed: Any) -> Any:
    """Return `position, value, data`: what decides who stays, and the signature.

    If few are needed, Spark takes them out of the table, and no other leaves Java; unless what
    decides is in the table, too.
    """
    from pyspark.sql import functions as sql

    if len(needed.value) > FEW or signed.rule not in ("first", "last"):
        return _rows(signed, needed, "values", "signatures")
    positions = needed.value.positions()
    keys = signed.numbering.value.keys_of(positions)
    chunk = signed.chunk_keys[np.searchsorted(signed.chunk_keys, keys, side="right") - 1]
    wanted = signed.table.sparkSession.createDataFrame(
        pa.table({"key": chunk, "begin": keys - chunk, "position": positions})
    )
    rows = signed.table.select("key", "count", "signatures").join(sql.broadcast(wanted), "key")
    width = "(length(signatures) div count)"
    last = f"if(position < {signed.old}, -position - {BEFORE_NEW}L, -position)"
    return rows.selectExpr(
        "position",
        f"{'0L' if signed.rule == 'first' else last} as value",
        f"substring(signatures, cast(begin * {width} + 1 as int), cast({width} as int)) as data",
    )


def value_rows(signed: SignedTable, needed: Any) -> Any | None:
    """Return `position, value`; None where the position alone decides."""
    if signed.rule == "first":
        return None
    return _rows(signed, needed, "values").drop("data")


def _rows(signed: SignedTable, needed: Any, *columns: str) -> Any:
    numbering, rule = signed.numbering, signed.rule

    def select(batches: Batches) -> Iterator[Any]:
        wanted: PositionSet = needed.value
        for chunk in chunks(batches, numbering.value, rule):
            which = np.flatnonzero(wanted.has(chunk.positions))
            if len(which):
                data = pa.nulls(len(which), pa.binary())
                if "signatures" in columns:
                    data = fixed_binary(chunk.array("signatures", np.uint8)[which])
                yield pa.record_batch(
                    {
                        "position": pa.array(chunk.positions[which]),
                        "value": pa.array(chunk.values[which]),
                        "data": data,
                    }
                )

    return map_arrow(signed.columns(*columns), select, "position long, value long, data binary")
