"""Spark MLlib's own join of similar documents: MinHashLSH on sets of word 5-grams."""

from __future__ import annotations

import threading
from typing import Any

__all__ = ["mllib_pairs"]

TABLES = 3
"""Of one hash each: a pair at 0.8 shares one of them with a chance of 99.2%."""

_DIMENSIONS = 1 << 20


def mllib_pairs(frame: Any, threshold: float, seconds: float) -> set[tuple[int, int]] | None:
    """Return pairs of ids whose Jaccard similarity reaches the threshold; None if it takes longer.

    Words are what the local job takes for words: letters and digits, in lower case. Sets are cached
    before they are joined.
    """
    from pyspark.ml.feature import HashingTF, MinHashLSH, NGram, RegexTokenizer
    from pyspark.sql import functions as sql

    words = RegexTokenizer(inputCol="text", outputCol="words", pattern=r"[^\p{L}\p{N}_]+")
    shingles = NGram(n=5, inputCol="words", outputCol="shingles")
    counts = HashingTF(
        inputCol="shingles", outputCol="features", numFeatures=_DIMENSIONS, binary=True
    )
    rows = frame.select("id", "text")
    for step in (words, shingles):
        rows = step.transform(rows)
    rows = counts.transform(rows.where(sql.size("shingles") > 0)).select("id", "features").cache()
    rows.count()
    context = frame.sparkSession.sparkContext
    context.setJobGroup("mllib", "approxSimilarityJoin", interruptOnCancel=True)
    timer = threading.Timer(seconds, lambda: context.cancelJobGroup("mllib"))
    timer.start()
    try:
        model = MinHashLSH(
            inputCol="features", outputCol="hashes", numHashTables=TABLES, seed=0
        ).fit(rows)
        near = model.approxSimilarityJoin(rows, rows, 1 - threshold + 1e-9, "distance")
        pairs = near.select(
            sql.col("datasetA.id").alias("left"), sql.col("datasetB.id").alias("right")
        )
        return {(row.left, row.right) for row in pairs.where("left < right").collect()}
    except Exception:
        if timer.is_alive():
            raise
        return None
    finally:
        timer.cancel()
        context.setJobGroup("", "")
        rows.unpersist()
