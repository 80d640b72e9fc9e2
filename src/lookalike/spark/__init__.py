"""Jobs on Apache Spark, for corpora that one machine cannot hold: dedup, clean and decontaminate.

Spark shuffles and schedules; the core computes, inside Arrow batches, and `lookalike.dedup`
decides. So answers are those of the local job, row for row, for any number of partitions. Only
where that proposes by chance (`lookalike.dedup.propose.may_be_drawn`), Spark may find a few other
pairs, and says so. PySpark is imported when a function is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lookalike.lazy import lazy_names

if TYPE_CHECKING:
    from lookalike.spark.cleaning import SparkClean as SparkClean
    from lookalike.spark.cleaning import clean as clean
    from lookalike.spark.contamination import SparkContamination as SparkContamination
    from lookalike.spark.contamination import decontaminate as decontaminate
    from lookalike.spark.incoming import incoming_links as incoming_links
    from lookalike.spark.job import dedup as dedup
    from lookalike.spark.result import SparkDedup as SparkDedup
    from lookalike.spark.search import search as search
    from lookalike.spark.signing import fit as fit
    from lookalike.spark.signing import sign as sign
else:
    __all__, __getattr__, __dir__ = lazy_names(
        globals(),
        {
            "lookalike.spark.cleaning": "SparkClean clean",
            "lookalike.spark.contamination": "SparkContamination decontaminate",
            "lookalike.spark.incoming": "incoming_links",
            "lookalike.spark.job": "dedup",
            "lookalike.spark.result": "SparkDedup",
            "lookalike.spark.search": "search",
            "lookalike.spark.signing": "fit sign",
        },
    )
