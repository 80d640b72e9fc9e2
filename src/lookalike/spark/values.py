"""What decides who stays, of documents that have pairs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lookalike.corpora.base import pa
from lookalike.spark.packed import Batches, map_arrow
from lookalike.spark.position_set import PositionSet, collect_positions
from lookalike.spark.propose import SignedTable
from lookalike.spark.signing import chunks
from lookalike.spark.work import SparkWork

__all__ = ["values_of"]


def values_of(work: SparkWork, signed: SignedTable, labels: Any) -> Any | None:
    """Return `position, value` of the labelled documents; None where the position decides."""
    if signed.rule == "first":
        return None
    needed = work.send(collect_positions(labels, ["position"], signed.documents))
    numbering, rule = signed.numbering, signed.rule

    def select(batches: Batches) -> Iterator[Any]:
        wanted: PositionSet = needed.value
        for chunk in chunks(batches, numbering.value, rule):
            which = np.flatnonzero(wanted.has(chunk.positions))
            if len(which):
                yield pa.record_batch(
                    {
                        "position": pa.array(chunk.positions[which]),
                        "value": pa.array(chunk.values[which]),
                    }
                )

    return work.keep(map_arrow(signed.columns("values"), select, "position long, value long"))
