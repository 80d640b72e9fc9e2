"""Step 2, collapse, on Spark: which texts have come before, and whose copies are they?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lookalike.spark.packed import PACKED, as_columns, map_arrow, shuffled
from lookalike.spark.position_set import PositionSet, told_rows
from lookalike.spark.steps.equals import (
    COPIES,
    COPY,
    COPY_HERE,
    COPY_SET,
    ENTRY,
    EQUALS,
    FACT,
    FACTS,
    FIRST_SET,
    equal_rows,
    meet_equals,
    send_fingerprints,
)
from lookalike.spark.work import SparkWork

__all__ = ["Collapsed", "collapse"]

_EQUALS = ", ".join(f"{name} long" for name in EQUALS.names or ())
_DOCUMENTS_A_TASK = 2_000_000
_COPIES = "position long, first long"


@dataclass(frozen=True, eq=False)
class Collapsed:
    """Texts that several documents have, and these documents."""

    work: SparkWork
    met: Any
    texts: int
    count: int
    """Of copies: all documents with one of these texts but its first."""
    largest: int
    """The most documents that have one text."""
    moved: int
    """Copies that are the first in their partition."""
    copies: PositionSet
    firsts: PositionSet

    @classmethod
    def of(
        cls, work: SparkWork, met: Any, told: dict[int, list[bytes]], documents: int
    ) -> Collapsed:
        """Return packed rows, of which some have told this."""
        facts = np.frombuffer(b"".join(told.get(FACT, [])), FACTS)
        sums = {name: int(facts[name].sum()) for name in ("texts", "copies", "moved")}
        copies, firsts = (
            PositionSet.of(told.get(kind, []), documents) for kind in (COPY_SET, FIRST_SET)
        )
        largest = int(facts["largest"].max(initial=0))
        return cls(work, met, sums["texts"], sums["copies"], largest, sums["moved"], copies, firsts)

    @cached_property
    def originals(self) -> Any:
        """The texts, as rows; see `lookalike.spark.steps.equals.EQUALS`."""
        return map_arrow(self.met.where(f"kind = {ENTRY}"), as_columns(EQUALS, ENTRY), _EQUALS)

    @cached_property
    def copy_rows(self) -> Any:
        """The copies, as rows: `position` and `first`, the first with the same text."""
        from pyspark.sql import functions as sql

        here, there = (
            map_arrow(self.met.where(f"kind = {kind}"), as_columns(COPIES, kind), _COPIES)
            for kind in (COPY_HERE, COPY)
        )
        if not self.moved:
            return here
        if self.moved == self.count:
            return there
        again = there.select(sql.col("position").alias("known"), sql.col("first").alias("least"))
        resolved = here.join(again, here["first"] == again["known"], "left").select(
            "position", sql.coalesce("least", "first").alias("first")
        )
        return self.work.keep(resolved.union(there))

    def entries(self, needed: Any) -> Any:
        """Return `position, data`: what there is to know of those of the needed documents that
        have copies.
        """
        rows = self.met.where(f"kind = {ENTRY}")
        return map_arrow(rows, equal_rows(needed), "position long, data binary")


def collapse(work: SparkWork, table: Any, numbering: Any, rule: str, documents: int) -> Collapsed:
    """Return equal texts of a table of signatures; those too short to be compared are not told."""
    buckets = max(work.cores, -(-documents // _DOCUMENTS_A_TASK))
    names = ("file", "start", "partition", "row", "count", "fingerprints", "values", "enough")
    sent = map_arrow(table.select(*names), send_fingerprints(numbering, rule, buckets), PACKED)
    met = work.keep(map_arrow(shuffled(sent, buckets), meet_equals, PACKED))
    told = told_rows(met.where(f"kind in ({FACT}, {COPY_SET}, {FIRST_SET})"), documents)
    return Collapsed.of(work, met, told, documents)
