"""Corpora for the job on Spark, and what it has to agree with: the local job."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

import lookalike as la
from lookalike import spark as on_spark

__all__ = ["assert_as_local", "frame_of_texts", "mixed_corpus", "template"]


def mixed_corpus(count: int, seed: int = 0) -> list[str]:
    """Return texts of which some are equal, some alike, some short and most alone."""
    chance = random.Random(seed)
    words = [f"w{number}" for number in range(400)]
    texts: list[str] = []
    for _ in range(count):
        kind = chance.random()
        if texts and kind < 0.2:
            texts.append(chance.choice(texts))
        elif texts and kind < 0.5:
            changed = chance.choice(texts).split() or ["a"]
            for _ in range(chance.randint(1, 4)):
                changed[chance.randrange(len(changed))] = chance.choice(words)
            texts.append(" ".join(changed))
        elif kind < 0.53:
            texts.append(chance.choice(["", "a", "a b"]))
        else:
            texts.append(" ".join(chance.choices(words, k=chance.randint(20, 60))))
    return texts


def template(count: int, seed: int = 1, words: int = 60) -> list[str]:
    """Return variants of one text, all alike; more than 200 share their bands."""
    chance = random.Random(seed)
    base = [f"t{number}" for number in range(words)]
    texts = []
    for number in range(count):
        changed = list(base)
        changed[chance.randrange(words)] = f"v{number}"
        texts.append(" ".join(changed))
    return texts


def frame_of_texts(
    session: Any, texts: Sequence[str | None], partitions: int, prefix: str = "id"
) -> Any:
    """Return a DataFrame of texts, in their order, with ids that are strings."""
    rows = [(f"{prefix}{number}", text) for number, text in enumerate(texts)]
    spread = session.sparkContext.parallelize(rows, partitions)
    return session.createDataFrame(spread, "id string, text string")


def assert_as_local(
    frame: Any,
    texts: Sequence[str | None],
    *,
    against: tuple[Any, Sequence[str | None]] | None = None,
    **settings: Any,
) -> la.results.TextResult:
    """Compare kept rows, groups, duplicates, similarities, pairs, counts, warnings and settings.

    `against` is an old corpus, as a frame and as texts.
    """
    own = ("work", "order")
    spark_only: dict[str, Any] = {name: settings.pop(name) for name in own if name in settings}
    rows = [{"id": f"id{number}", "text": text} for number, text in enumerate(texts)]
    old = None
    if against is not None:
        old = [{"id": f"old{number}", "text": text} for number, text in enumerate(against[1])]
        spark_only["against"] = against[0]
    local = la.dedup(rows, against=old, **settings)
    with on_spark.dedup(frame, **settings, **spark_only) as found:
        grouped = found.grouped.collect()
        pairs = found.pairs.toArrow()
        kept = [row.id for row in found.kept.select("id").collect()]
    groups = np.arange(len(texts))
    duplicate_of, matched_old = np.full((2, len(texts)), -1)
    similarity = np.full(len(texts), np.nan)
    for row in grouped:
        groups[row.position] = row.group_id
        if row.duplicate_of is not None:
            duplicate_of[row.position] = row.duplicate_of
            similarity[row.position] = row.similarity
        elif against is not None and row.matched_old is not None:
            matched_old[row.position] = row.matched_old
            similarity[row.position] = row.similarity
    assert groups.tolist() == local.group_of.tolist()
    assert duplicate_of.tolist() == local.duplicate_of.tolist()
    assert matched_old.tolist() == local.matched_old.tolist()
    np.testing.assert_array_equal(similarity, local.similarity)
    assert kept == [f"id{row}" for row in local.kept_rows.tolist()]
    assert len(grouped) == len({row.position for row in grouped})
    expected = _named_pairs(local, rows, old)
    by_name = [("left", "ascending"), ("right", "ascending")]
    pairs, expected = (table.sort_by(by_name).to_pydict() for table in (pairs, expected))
    assert pairs == expected
    assert found.warnings == local.warnings
    assert found.settings.to_dict() == local.settings.to_dict()
    assert found.features_reason == local.features_reason
    for name, count in found.to_dict()["counts"].items():
        if name == "compared_pairs":  # there, one of a large group may come twice
            assert count <= getattr(local.counts, name) or not local.settings.by_signatures
        else:
            assert count == getattr(local.counts, name), name
    return local


def _named_pairs(local: la.results.TextResult, rows: list[Any], old: list[Any] | None) -> Any:
    """Return the pairs of a local job by the ids of rows; `old` tells that left is an old one."""
    names = pa.array([row["id"] for row in rows])
    parts = []
    for pairs, of_left in ((local.pairs, rows), *([] if old is None else [(local.old_pairs, old)])):
        left_names = pa.array([row["id"] for row in of_left], pa.string())
        columns = {
            "left": left_names.take(pa.array(pairs.left)),
            "right": names.take(pa.array(pairs.right)),
            "similarity": pairs.similarity,
            "distance": pairs.distance,
        }
        if old is not None:
            columns["old"] = pa.array([of_left is old] * len(pairs), pa.bool_())
        parts.append(pa.table(columns))
    return pa.concat_tables(parts)
