"""Signing, learning, searching and components on Spark."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lookalike as la
from lookalike import _native
from lookalike import spark as on_spark
from lookalike.spark.rounds import connected
from support.cases.spark_corpora import frame_of_texts, mixed_corpus


def test_signing_and_searching(session: Any) -> None:
    """Signatures are those of the signer, weights those of one machine; the nearest those of one
    index, ties by id.
    """
    texts = mixed_corpus(300)
    frame = frame_of_texts(session, [*texts], 4)
    signer = la.TopSig(bits=128, features=la.Words(ngram=1)).fit(texts)
    fitted = on_spark.fit(frame, "text", la.TopSig(bits=128, features=la.Words(ngram=1)))
    assert fitted == signer
    signed = on_spark.sign(frame, "text", fitted)
    expected = signer.sign(texts)
    rows = {row.id: row.signature for row in signed.collect()}
    assert [rows[f"id{at}"] for at in range(len(texts))] == [row.tobytes() for row in expected]

    order = sorted(range(len(texts)), key=lambda at: f"id{at}")
    index = la.SliceIndex(expected[order])
    asked = signed.where("id in ('id3', 'id7', 'id250')")
    queries = expected[[3, 7, 250]]
    found = on_spark.search(asked, signed, k=7).collect()
    nearest = index.search(queries, 7)
    for place, name in enumerate(("id3", "id7", "id250")):
        mine = sorted((row.distance, row.id) for row in found if row.query == name)
        ids, distances = nearest[place]
        assert mine == [
            (far, f"id{order[at]}")
            for at, far in zip(ids.tolist(), distances.tolist(), strict=True)
        ]
    found = on_spark.search(asked, signed, radius=30).collect()
    assert len(found) == len(index.within(queries, 30).ids)
    with pytest.raises(la.errors.ArgumentError, match="k, or a radius"):
        on_spark.search(asked, signed)
    with pytest.raises(
        la.errors.ArgumentError, match="signature is the column 'text' of type string"
    ):
        on_spark.search(asked, signed, k=1, signature="text")


@pytest.mark.parametrize("in_one_task", [0, 10_000])
def test_components(session: Any, in_one_task: int) -> None:
    """Chains, hubs and pairs; by large-star and small-star, and in one task."""
    draw = np.random.default_rng(0)
    left = [*range(40), *draw.integers(100, 160, 60).tolist(), *[300] * 30]
    right = [*range(1, 41), *draw.integers(100, 160, 60).tolist(), *range(301, 331)]
    pairs = session.createDataFrame(
        [(one, two) for one, two in zip(left, right, strict=True) if one != two],
        "left long, right long",
    ).repartition(4)
    labels = np.empty(400, np.int64)
    _native.components(np.array(left), np.array(right), labels)
    found = connected(pairs, lambda frame: frame.localCheckpoint(), in_one_task).collect()
    members = sorted({*left, *right} - {one for one in left if (left + right).count(one) == 0})
    got = {row.position: row.label for row in found}
    assert len(got) == len(found)
    assert all(got[one] == labels[one] for one in got)
    assert {one for one in members if labels[one] != one or (labels == one).sum() > 1} == set(got)
