"""One query whose scoring, choosing and re-ranking are shared among threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lookalike as la
from lookalike import _native
from support.oracles import scan as oracle

ROWS = oracle.collection(30_000, 128, "uniform", 1)
ROWS[::7] = ROWS[3]  # whose scores are more than a byte holds, in the tables of threads too
ROWS[::11, 64:] = ROWS[5, 64:]
WIDE = la.SliceIndex(ROWS, 8)
NAMED = la.SliceIndex(ROWS, 8, np.random.default_rng(2).permutation(30_000) + 50)
MANY = la.SliceIndex(oracle.collection(2_300_000, 1, "uniform", 3), 4)


def answer(found: la.results.Neighbors) -> list[Any]:
    assert found.scores is not None
    return [found.exact, found.ids.tolist(), found.distances.tolist(), found.scores.tolist()]


@pytest.mark.parametrize("rerank", [0, 40, 25_000])
@pytest.mark.parametrize(("expand", "admit"), [(2, 2), (3, 1), (4, 0)])
@pytest.mark.parametrize("index", [WIDE, NAMED], ids=["positions", "ids"])
def test_the_answer_is_that_of_one_thread(
    index: la.SliceIndex, expand: int, admit: int, rerank: int
) -> None:
    for query in (ROWS[3], ROWS[5], ROWS[1] ^ 1):
        one, *others = (
            answer(index.search(query, 30, expand=expand, admit=admit, rerank=rerank, threads=n))
            for n in (1, 2, 3, 8)
        )
        assert others == [one] * 3


def test_scores_of_threads_are_those_of_the_bits() -> None:
    query = ROWS[5]
    scores = np.zeros((4, 1, len(ROWS)), np.int32)
    _native.slice_scores(ROWS, query[None], 8, scores)
    expected = np.lexsort((np.arange(len(ROWS)), -scores[3, 0]))[:200]
    found = WIDE.search(query, 200, expand=3, rerank=0, threads=4)
    assert found.scores is not None
    assert found.ids[0].tolist() == expected.tolist()
    assert found.scores[0].tolist() == scores[3, 0, expected].tolist()


@pytest.mark.parametrize("rerank", [0, 10_000])
@pytest.mark.parametrize("removed", [False, True])
def test_so_many_scores_that_they_are_gone_through_by_several(rerank: int, removed: bool) -> None:
    among = np.arange(MANY.next_id) % 3 != 0 if removed else None
    query = np.array([[77]], np.uint8)
    one, *others = (
        answer(MANY.search(query, 5_000, expand=1, rerank=rerank, among=among, threads=threads))
        for threads in (1, 2, 5)
    )
    assert others == [one] * 2
    assert one[1][0] == sorted(one[1][0]), "all of them are equal to the query"
