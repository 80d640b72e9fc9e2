"""De-duplication on Apache Spark, for corpora that one machine cannot hold.

Spark shuffles and schedules; the core computes, inside Arrow batches, and `lookalike.dedup`
decides. So answers are those of the local job, row for row, for any number of partitions. Only
where that proposes by chance (`lookalike.dedup.propose.may_be_drawn`), Spark compares all, may find
a few more pairs, and says so. PySpark is imported when a function is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lookalike.lazy import names_from

if TYPE_CHECKING:
    from lookalike.spark.job import dedup, pairs
    from lookalike.spark.result import SparkDedup
    from lookalike.spark.search import search
    from lookalike.spark.signing import fit, sign

__all__ = ["SparkDedup", "dedup", "fit", "pairs", "search", "sign"]

__getattr__ = names_from(
    globals(),
    {
        "lookalike.spark.job": ("dedup", "pairs"),
        "lookalike.spark.result": ("SparkDedup",),
        "lookalike.spark.search": ("search",),
        "lookalike.spark.signing": ("fit", "sign"),
    },
)
