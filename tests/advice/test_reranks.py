"""What is measured of searches by score, of re-ranking few, and of orders of permuted bits."""

from __future__ import annotations

import numpy as np
import pytest

import lookalike as la
from lookalike.advice import cumulative_distance_ratio, evaluate, recall_at_k
from support.cases.clustered import clustered

ROWS, QUERIES = clustered(400, 16), clustered(15, 16, seed=1)


def test_figures_of_reranking_are_those_of_the_search() -> None:
    evaluation = evaluate(ROWS, QUERIES, k=5, slice_bits=[8], expand=[1], rerank=[0, 5, 60])
    index, truth = la.SliceIndex(ROWS, 8), la.ScanIndex(ROWS).search(QUERIES, 5)
    assert [row.get("rerank") for row in evaluation.options] == [None, 0, 5, 60]
    for row in evaluation.options[1:]:
        found = index.search(QUERIES, 5, expand=1, rerank=row.get("rerank"))
        far = np.stack(
            [la.hamming(query, ROWS[ids]) for query, ids in zip(QUERIES, found.ids, strict=True)]
        )
        assert row.recall == pytest.approx(recall_at_k(found.ids, truth.ids).mean())
        assert row.cdr == pytest.approx(cumulative_distance_ratio(far, truth.distances).mean())
    assert [row.recall for row in evaluation.options[1:]] == sorted(
        row.recall for row in evaluation.options[1:]
    )


def test_members_are_looked_for_among_the_others() -> None:
    """One more is re-ranked, as the query itself is the first of them."""
    made = evaluate(ROWS, k=5, sample=20, slice_bits=[8], expand=[2], rerank=[0, 5])
    _, alone, few = made.options
    assert (alone.get("rerank"), few.get("rerank")) == (0, 5)
    assert 0 < alone.cdr <= few.cdr <= 1
    assert alone.recall == few.recall  # the same six, in another order


def test_orders_of_permuted_bits_are_measured() -> None:
    progress = []
    evaluation = evaluate(
        ROWS,
        QUERIES,
        k=5,
        slice_bits=[8],
        expand=[0],
        orders=[2, 8],
        progress=lambda step, share: progress.append((step, share)),
    )
    assert progress == [("evaluate", 1 / 3), ("evaluate", 2 / 3), ("evaluate", 1)]
    for row in evaluation.options[2:]:
        assert row.get("orders") is not None
        index = la.PrefixIndex(ROWS, row.get("orders"))
        found = index.search(QUERIES, 5, explain=True)
        truth = la.ScanIndex(ROWS).search(QUERIES, 5)
        assert row.recall == pytest.approx(recall_at_k(found.ids, truth.ids).mean())
        assert row.bytes_per_signature == index.memory_bytes / 400
        assert found.explanation is not None
        assert row.touched == pytest.approx(found.explanation.candidates.mean() / 400)
    assert [line.split()[0] for line in str(evaluation).splitlines()[3:]] == ["2", "8"]


def test_fewer_than_k_cannot_be_reranked() -> None:
    with pytest.raises(la.errors.ArgumentError, match="rerank is 4; expected at least k=5"):
        evaluate(ROWS, QUERIES, k=5, rerank=[4])
