from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lookalike as la
from lookalike.advice import (
    cumulative_distance_ratio,
    near_duplicate_recall,
    nearest_hit_rate,
    recall_at_k,
    recall_by_distance,
    top_in_top,
)
from support.cases import strategies
from support.oracles import scan as oracle


def plain_cdr(found: list[int], true: list[int]) -> float:
    """The paper's definition, one sum at a time; a missing result makes its ratios 0."""
    true = [distance for distance in true if distance >= 0]
    ratios = []
    for p in range(1, len(true) + 1):
        first = found[:p]
        if len(first) < p or -1 in first:
            ratios.append(0.0)
        elif sum(first) == 0:
            ratios.append(1.0)
        else:
            ratios.append(sum(true[:p]) / sum(first))
    return sum(ratios) / len(ratios) if ratios else 1.0


@st.composite
def answers(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Distances of a true answer, and those of some other members of the same collection."""
    everything = sorted(draw(st.lists(st.integers(0, 40), max_size=20)))
    k = draw(st.integers(1, 12))
    kept = sorted(draw(st.permutations(everything))[: draw(st.integers(0, k))])
    return kept + [-1] * (k - len(kept)), (everything + [-1] * k)[:k]


def test_cdr_by_hand() -> None:
    # DR = 2/4, (2+4)/(4+4), (2+4+6)/(4+4+10)
    assert cumulative_distance_ratio([[4, 4, 10]], [[2, 4, 6]]).tolist() == pytest.approx(
        [(1 / 2 + 6 / 8 + 12 / 18) / 3]
    )


def test_cdr_of_duplicates() -> None:
    assert cumulative_distance_ratio([[0, 0]], [[0, 0]]).tolist() == [1.0]  # 0/0 = 1
    assert cumulative_distance_ratio([[0, 3]], [[0, 3]]).tolist() == [1.0]
    assert cumulative_distance_ratio([[3, 3]], [[0, 3]]).tolist() == [(0 + 1 / 2) / 2]


@pytest.mark.parametrize("found", [[[2, 4, -1]], [[2, 4]], [[2, 4, -1, 7]]])
def test_a_short_answer_never_looks_good(found: list[list[int]]) -> None:
    assert cumulative_distance_ratio(found, [[2, 4, 6]]).tolist() == pytest.approx([2 / 3])
    assert recall_by_distance(found, [[2, 4, 6]]).tolist() == pytest.approx([2 / 3])


def test_what_is_not_there_need_not_be_found() -> None:
    assert cumulative_distance_ratio([[2, 4, -1]], [[2, 4, -1]]).tolist() == [1.0]
    assert recall_at_k([[7, -1]], [[7, -1]]).tolist() == [1.0]
    assert recall_at_k([[-1, -1]], [[-1, -1]]).tolist() == [1.0]


@given(
    st.lists(answers(), min_size=1, max_size=4).filter(lambda a: len({len(x) for x, _ in a}) < 2)
)
def test_cdr_is_the_papers(rows: list[tuple[list[int], list[int]]]) -> None:
    found, true = [row for row, _ in rows], [row for _, row in rows]
    values = cumulative_distance_ratio(found, true)
    assert values.tolist() == pytest.approx([plain_cdr(*row) for row in rows])
    assert ((values >= 0) & (values <= 1)).all()


@given(answers())
def test_recall_by_distance_counts_ties(row: tuple[list[int], list[int]]) -> None:
    found, true = row
    wanted = [distance for distance in true if distance >= 0]
    hits = [distance for distance in found if 0 <= distance <= max(wanted, default=-1)]
    expected = min(len(hits), len(wanted)) / len(wanted) if wanted else 1.0
    assert recall_by_distance(found, true).tolist() == [expected]


ids = st.lists(st.integers(0, 15), unique=True, max_size=8).map(lambda some: (some + [-1] * 8)[:8])


@given(ids, ids, st.integers(1, 8), st.integers(0, 4))
def test_overlaps_are_those_of_sets(found: list[int], true: list[int], top: int, more: int) -> None:
    there, wanted = set(found) - {-1}, set(true) - {-1}
    expected = len(there & wanted) / len(wanted) if wanted else 1.0
    assert recall_at_k(found, true).tolist() == [expected]

    first, among = set(found[:top]) - {-1}, set(true[: top + more]) - {-1}
    due = min(top, len(among))
    share = len(first & among) / due if due else 1.0
    assert top_in_top(found, true, top, top + more).tolist() == [share]


def test_the_drafts_top_ten() -> None:
    true = np.arange(100)[None]
    found = [[0, 1, 2, 50, 60, 70, 3, 200, 201, 99]]
    assert top_in_top(found, true, 10, 10).tolist() == [0.4]
    assert top_in_top(found, true, 10, 100).tolist() == [0.8]


def test_nearest_hit_rate_allows_ties() -> None:
    assert nearest_hit_rate([[3], [4], [-1], [0]], [[3], [3], [3], [0]]) == 0.5
    assert nearest_hit_rate(np.empty((0, 5), int), np.empty((0, 5), int)) == 1.0


@given(strategies.collections_with_queries(), st.integers(0, 60), st.integers(1, 12))
def test_near_duplicate_recall(
    data: tuple[oracle.Signatures, oracle.Signatures], radius: int, k: int
) -> None:
    rows, queries = data
    index = la.ScanIndex(rows)
    truth = index.within(queries, radius)
    matches = oracle.within(rows, queries, radius)
    found = index.search(queries, k)
    expected = None if not any(matches) else 1.0
    assert near_duplicate_recall(found, truth, radius) == expected
    assert near_duplicate_recall(truth, truth, radius) == expected
    assert near_duplicate_recall(found, index.search(queries, k + 3), radius) == expected

    half = la.ScanIndex(rows[::2], ids=np.arange(0, len(rows), 2)).within(queries, radius)
    if expected is not None:
        even = sum(name % 2 == 0 for row in matches for _, name in row)
        share = even / sum(map(len, matches))
        assert near_duplicate_recall(half, truth, radius) == pytest.approx(share)


def test_more_near_duplicates_than_columns() -> None:
    rows = np.zeros((20, 8), np.uint8)
    index = la.ScanIndex(rows)
    truth = index.within(rows[:1], 0)
    assert near_duplicate_recall(index.search(rows[:1], 5), truth, 0) == 1.0
    short = la.results.Neighbors(
        np.array([[3, 3, -1]]), np.array([[0, 0, -1]], np.int32), exact=False
    )
    assert near_duplicate_recall(short, truth, 0) == pytest.approx(1 / 3)  # an id counts once


def test_wrong_input_is_refused() -> None:
    with pytest.raises(la.errors.ArgumentError, match="swapped"):
        cumulative_distance_ratio([[1, 2]], [[1, 3]])
    with pytest.raises(la.errors.ArgumentError, match="2 rows of results and 1 true rows"):
        recall_at_k([[1], [2]], [[1]])
    with pytest.raises(la.errors.ArgumentError, match="float64 of shape"):
        recall_by_distance([[0.5]], [[1]])
    with pytest.raises(la.errors.ArgumentError, match="among is 5"):
        top_in_top([[1]], [[1]], 10, 5)
    one, two = (
        la.ScanIndex(np.zeros((3, 8), np.uint8)).within(np.zeros((n, 8), np.uint8), 1)
        for n in (1, 2)
    )
    with pytest.raises(la.errors.ArgumentError, match="found has 1 queries, truth has 2"):
        near_duplicate_recall(one, two, 1)
