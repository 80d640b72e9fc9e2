"""What the table of signatures has of some documents, as rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lookalike.corpora.base import pa
from lookalike.spark.packed import Batches, fixed_binary, map_arrow
from lookalike.spark.position_set import PositionSet
from lookalike.spark.steps.propose import SignedTable
from lookalike.spark.steps.signing import chunks

__all__ = ["signature_rows", "value_rows"]


def signature_rows(signed: SignedTable, needed: Any) -> Any:
    """Return `position, value, data`: what decides who stays, and the signature."""
    return _rows(signed, needed, "values", "signatures")


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
