"""The same de-duplication on Apache Spark, for what one machine cannot hold.

Functions on DataFrames. Spark shuffles and schedules; what is computed, the core computes, inside
Arrow batches; and what is decided, the functions of `lookalike.dedup` decide. So the answers are
those of the local job, row for row, for any number of partitions; but where that one proposes by
chance (very many SimHash or TopSig signatures, `lookalike.dedup.propose.may_be_drawn`), Spark
compares all, may find a few pairs more, and says so. PySpark is imported when one of them is
called.
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
