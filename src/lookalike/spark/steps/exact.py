"""Step 4 without signatures (`exact`, containment), on Spark: every pair at the threshold is among
those that are proposed; see `prefixes`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lookalike.dedup.propose import LARGEST_SAMPLED_GROUP, MISSED, sample_size
from lookalike.dedup.settings import DedupSettings
from lookalike.spark.numbering import numbered_columns
from lookalike.spark.packed import PACKED, Batches, map_arrow, packed_row, shuffled
from lookalike.spark.position_set import (
    PositionSet,
    collect_positions,
    packed_positions,
    told_rows,
)
from lookalike.spark.steps import prefixes
from lookalike.spark.steps.bands import distinct_pairs
from lookalike.spark.steps.propose import ENTRIES_A_TASK, Proposed, SignedTable
from lookalike.spark.steps.signing import chunks
from lookalike.spark.work import SparkWork

__all__ = ["propose_by_prefixes"]

_FEATURES_A_DOCUMENT = 32
"""That are sent, about: a fifth of those of an abstract, at a threshold of 0.8."""


def propose_by_prefixes(
    work: SparkWork, settings: DedupSettings, frame: Any, text: str, signed: SignedTable
) -> Proposed:
    """Return the pairs of documents that share a feature at the beginning of both."""
    from pyspark.sql import functions as sql

    column = sql.col(f"`{text}`").cast("string")
    common = map_arrow(frame.select(column), prefixes.common_slots(settings), prefixes.COMMON)
    counts = np.zeros(prefixes.SLOTS, np.uint32)
    sums = sql.sum("count").alias("count"), sql.max("count").alias("most")
    found = common.groupBy("slot").agg(*sums).toArrow()
    slots, sizes = found["slot"].to_numpy(), found["most"].to_numpy()
    told = slots >= 0
    counts[slots[told]] = np.minimum(found["count"].to_numpy()[told], 0xFFFFFFFF)
    largest = int(sizes[~told].max(initial=0))
    again = PositionSet.of([], signed.documents)
    if settings.exact and signed.old and signed.collapsed.count:  # every pair, also of copies
        new = signed.collapsed.copy_rows.where(f"position >= {signed.old}")
        again = collect_positions(new, ["first"], signed.documents)
    alone = signed.copies.value | _too_short(signed)
    lookup = work.send(prefixes.Lookup(counts, alone, signed.old, again))
    buckets = max(work.cores, -(-signed.documents * _FEATURES_A_DOCUMENT // ENTRIES_A_TASK))
    send = prefixes.send_prefixes(settings, signed.numbering, lookup, buckets)
    sent = map_arrow(numbered_columns(frame, [column]), send, PACKED)
    met = map_arrow(shuffled(sent, buckets), prefixes.meet_prefixes(settings, buckets), PACKED)
    pairs = work.keep(map_arrow(shuffled(met, buckets), distinct_pairs(buckets), PACKED))
    warnings = _more_than_local(settings, signed.documents, largest, int(counts.max()))
    return Proposed.of_packed(pairs, signed, warnings)


def _more_than_local(
    settings: DedupSettings, documents: int, features: int, shared_by: int
) -> list[str]:
    """Return what people should know who compare the result with that of one machine."""
    if settings.exact or (
        features <= sample_size(documents) and shared_by <= LARGEST_SAMPLED_GROUP
    ):
        return []
    return [
        "documents were looked up by all of their features; the job on one machine draws some of "
        f"each, and may miss a few of these pairs, with a chance of {MISSED:.1%} at the threshold"
    ]


def _too_short(signed: SignedTable) -> PositionSet:
    """Return the documents that are too short to be compared."""
    numbering, rule = signed.numbering, signed.rule

    def tell(batches: Batches) -> Iterator[Any]:
        found = [
            chunk.positions[~chunk.compared(None)]
            for chunk in chunks(batches, numbering.value, rule)
        ]
        yield packed_row(0, packed_positions(np.concatenate([np.empty(0, np.int64), *found])))

    told = told_rows(map_arrow(signed.columns("enough"), tell, PACKED), signed.documents)
    return PositionSet.of(told.get(0, []), signed.documents)
