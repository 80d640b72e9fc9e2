"""Survivors, clusters and pairs of the job on Spark are those of the local job, row for row."""

from __future__ import annotations

import random
from typing import Any

import pytest

from support.spark_corpora import assert_as_local, frame_of_texts, mixed_corpus, template


def mixed_with_template(count: int, variants: int) -> list[str | None]:
    texts: list[str | None] = [*mixed_corpus(count), *template(variants)]
    random.Random(5).shuffle(texts)
    return texts


def test_bands_and_groups_that_are_too_large(session: Any, monkeypatch: Any) -> None:
    """More than 200 share a band, in blocks of fewer than they are; half of the rows are one text;
    a partition is empty, and some rows are null.
    """
    texts = mixed_with_template(200, 600)
    texts += ["the same text again and again, as often as all others together"] * len(texts)
    texts += [None, None, ""]
    frame = frame_of_texts(session, texts, 5).repartition(7)
    frame = session.createDataFrame(frame.rdd, frame.schema)
    local = assert_as_local(frame_of_texts(session, texts, 5), texts)
    assert "groups of more than 200" in local.warnings[0]


@pytest.mark.parametrize(
    ("partitions", "settings"),
    [
        (1, {"keep": "last", "threshold": 0.7}),
        (9, {"keep": "none"}),
        (3, {"keep": "longest", "verify": False}),
        (4, {"cluster": "components", "max_cluster": 20, "threshold": 0.6, "keep": "shortest"}),
        (4, {"method": "simhash"}),
        (2, {"method": "topsig", "bits": 256, "keep": "last"}),
    ],
)
def test_settings(session: Any, partitions: int, settings: dict[str, Any]) -> None:
    texts = mixed_with_template(120, 300)
    assert_as_local(frame_of_texts(session, texts, partitions), texts, **settings)
