"""Neighbors by cosine: what is found, what is promised, and on which machine."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import lookalike as la
from lookalike.vectors.search import radius_for
from support.oracles.vectors import check_nearest, cosines


def clustered(count: int, width: int, seed: int = 0) -> NDArray[np.float32]:
    """Return vectors around centers, as embeddings are."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(20, width))
    return (centers[rng.integers(0, 20, count)] + rng.normal(size=(count, width))).astype("f4")


@pytest.fixture(scope="module")
def rows() -> NDArray[np.float32]:
    return clustered(4000, 40)


@pytest.fixture(scope="module")
def index(rows: NDArray[np.float32]) -> la.VectorIndex:
    return la.VectorIndex(rows[:3900])


def recall(found: NDArray[np.int64], truth: NDArray[np.int64]) -> float:
    shares = [len(set(a) & set(b)) / len(b) for a, b in zip(found, truth, strict=True)]
    return float(np.mean(shares))


def test_what_is_found_without_settings(index: la.VectorIndex, rows: NDArray[np.float32]) -> None:
    queries = rows[3900:]
    truth = np.argsort(-cosines(queries, rows[:3900]), axis=1)[:, :10]
    found = index.search(queries, 10, explain=True)
    assert recall(found.ids, truth) > 0.97
    assert not found.exact
    assert found.explanation is not None
    assert (found.explanation.reranked == 64).all()
    assert not found.explanation.exact.any()
    proven = index.search(queries, 10, exact=True)
    assert proven.exact
    assert np.array_equal(proven.ids, truth)


@pytest.mark.parametrize("dtype", ["f2", "f4"])
@pytest.mark.parametrize("width", [1, 3, 15, 16, 17, 40, 100])
def test_every_kernel_gives_the_same_cosines(dtype: str, width: int, kernel: str) -> None:
    rows, queries = clustered(600, width).astype(dtype), clustered(9, width, 1)
    index = la.VectorIndex(rows, bits=64)
    truth = cosines(queries, rows)
    every = index.search(queries, 600, exact=True)
    for query in range(9):
        check_nearest(every[query], dict(enumerate(truth[query])), 600, exact=True)
    # The order in which sums are made is the same in all: so is every bit of the sum.
    lanes = np.zeros((600, 16))
    wide = np.zeros((600, -(-width // 16) * 16))
    wide[:, :width] = rows.astype("f8") * queries[0].astype("f8")
    for start in range(0, wide.shape[1], 16):
        lanes += wide[:, start : start + 16]
    for half in (8, 4, 2, 1):
        lanes = lanes[:, :half] + lanes[:, half : 2 * half]
    squares = [_sum_of_squares(row) for row in rows.astype("f8")]
    own = _sum_of_squares(queries[0].astype("f8"))
    expected = lanes[:, 0] / np.sqrt(np.array(squares) * own)
    ids, similarities = every[0]
    assert np.array_equal(similarities, np.clip(expected, -1, 1)[ids])


def _sum_of_squares(row: NDArray[np.float64]) -> float:
    wide = np.zeros(-(-len(row) // 16) * 16)
    wide[: len(row)] = row * row
    lanes = np.zeros(16)
    for start in range(0, len(wide), 16):
        lanes += wide[start : start + 16]
    for half in (8, 4, 2, 1):
        lanes = lanes[:half] + lanes[half : 2 * half]
    return float(lanes[0])


def test_every_half_there_is(kernel: str) -> None:
    """Each finite number of 16 bits, subnormals too, has the value NumPy gives it."""
    bits = np.arange(2**16, dtype=np.uint16)
    halves = bits.view(np.float16)
    halves = halves[np.isfinite(halves)]
    rows = np.stack([halves, np.ones(len(halves), np.float16)], axis=1)
    index = la.VectorIndex(rows, bits=8, clusters=1)
    found = index.search(np.array([[1, 0]]), len(rows), exact=True)
    values = rows[:, 0].astype("f8")
    expected = values / np.sqrt(values * values + 1)
    assert np.array_equal(found.similarities[0], expected[found.ids[0]])


def test_threads_and_batches_give_the_same(
    index: la.VectorIndex, rows: NDArray[np.float32]
) -> None:
    queries = rows[3900:]
    whole = index.search(queries, 7, threads=3)
    for at, query in enumerate(queries[:20]):
        one = index.search(query[None], 7, threads=1)
        assert np.array_equal(one.ids[0], whole.ids[at])
        assert np.array_equal(one.similarities[0], whole.similarities[at])
    exact = index.search(queries, 7, exact=True, threads=3)
    for at in range(0, 20, 2):
        two = index.search(queries[at : at + 2], 7, exact=True, threads=1)  # compared as they are
        assert np.array_equal(two.similarities, exact.similarities[at : at + 2])
    twin = la.VectorIndex(rows[:3900], threads=1)
    assert twin.to_bytes() == index.to_bytes()


def test_equal_vectors_have_a_cosine_of_exactly_1(rows: NDArray[np.float32]) -> None:
    index = la.VectorIndex(np.concatenate([rows[:50], rows[:50]]), bits=64)
    found = index.search(rows[:50], 2)
    assert found.exact  # there are fewer than candidates
    assert np.array_equal(found.ids, np.stack([np.arange(50), np.arange(50, 100)], axis=1))
    assert (found.similarities == 1).all()


def test_a_tuning_is_kept_and_reached(rows: NDArray[np.float32]) -> None:
    index = la.VectorIndex(rows[:3900])
    with pytest.raises(la.errors.ArgumentError, match=r"Call tune\(10, 0.9\) first"):
        index.search(rows[3900:], 10, recall=0.9)
    tuning = index.tune(10, 0.9)
    assert (tuning.k, tuning.target, tuning.queries) == (10, 0.9, 1000)
    assert 0.9 < (tuning.recall or 0) <= 1
    assert tuning.search_settings["candidates"] < 3900
    truth = index.search(rows[3900:], 10, exact=True)
    found = index.search(rows[3900:], 10, recall=0.9, explain=True)
    assert recall(found.ids, truth.ids) >= 0.9
    assert found.explanation is not None
    assert (found.explanation.reranked == tuning.search_settings["candidates"]).all()
    again = la.VectorIndex.from_bytes(index.to_bytes())
    assert again.tunings == (tuning,) == tuple(index.tunings)
    assert np.array_equal(again.search(rows[3900:], 5, recall=0.8).ids[:, 0], found.ids[:, 0])
    assert index.tune(10, 0.9) == tuning
    assert index.tunings == (tuning,)
    with pytest.raises(la.errors.ArgumentError, match="the index was not tuned to it for k=11"):
        index.search(rows[3900:], 11, recall=0.9)
    own = index.tune(10, 0.9, rows[3900:], sample=50)
    assert own.queries == 50


def test_no_sample_proves_that_nothing_is_missed(rows: NDArray[np.float32]) -> None:
    """A recall of 1 compares with every vector, tuned or not."""
    index = la.VectorIndex(rows[:3900])
    truth = index.search(rows[3900:], 10, exact=True)
    assert np.array_equal(index.search(rows[3900:], 10, recall=1).ids, truth.ids)
    tuning = index.tune(10, 1.0, sample=3)
    assert tuning.search_settings["candidates"] == 3900
    found = index.search(rows[3900:], 10, recall=1)
    assert found.exact
    assert np.array_equal(found.ids, truth.ids)


def test_what_no_effort_reaches_is_compared_with_all() -> None:
    """Eight bits say next to nothing, so that all vectors are candidates in the end."""
    rows = np.random.default_rng(0).normal(size=(3000, 50)).astype("f4")
    index = la.VectorIndex(rows, bits=8)
    tuning = index.tune(1, 1.0, sample=50)
    assert (tuning.search_settings["candidates"], tuning.recall) == (3000, 1.0)
    assert index.search(rows[:3], 1, recall=1.0).exact


def test_more_groups_find_more(index: la.VectorIndex, rows: NDArray[np.float32]) -> None:
    queries = rows[3900:]
    truth = np.argsort(-cosines(queries, rows[:3900]), axis=1)[:, :10]
    shares = [
        recall(index.search(queries, 10, probe=probe).ids, truth) for probe in (1, 8, 32, 121)
    ]
    assert shares == sorted(shares)
    assert shares[0] < 0.6 < 0.99 < shares[-1]


@pytest.mark.parametrize("similarity", [0.2, 0.7, 0.95])
def test_the_radius_for_a_recall_is_reached(similarity: float) -> None:
    """Vectors at exactly that cosine are found by that share of seeds, or more."""
    angle = np.arccos(similarity)
    query = np.array([[1.0, 0.0, 0.0]])
    row = np.array([[np.cos(angle - 1e-6), np.sin(angle - 1e-6), 0.0]])
    found = sum(
        len(la.VectorIndex(row, bits=64, seed=seed).within(query, similarity, recall=0.9).ids)
        for seed in range(200)
    )
    assert found >= 0.9 * 200 - 3 * np.sqrt(200 * 0.09)
    assert radius_for(similarity, 64, 0.9) < radius_for(similarity, 64, 0.999) < 64


def test_within_and_pairs_by_signatures_find_nearly_all(rows: NDArray[np.float32]) -> None:
    copies = rows[:300] + np.random.default_rng(1).normal(size=(300, 40)).astype("f4") * 0.2
    index = la.VectorIndex(np.concatenate([rows[:3000], copies]))
    every, likely = index.pairs(0.95), index.pairs(0.95, recall=0.99)
    assert every.exact
    assert not likely.exact
    assert len(every) >= 300
    found = set(zip(likely.left.tolist(), likely.right.tolist(), strict=True))
    truth = set(zip(every.left.tolist(), every.right.tolist(), strict=True))
    assert found <= truth
    assert len(found) >= 0.98 * len(truth)
    near = index.within(rows[:300], 0.95, recall=0.99)
    assert sum(3000 + at in near[at][0] for at in range(300)) >= 290


def test_limits_are_kept(rows: NDArray[np.float32]) -> None:
    index = la.VectorIndex(np.repeat(rows[:3], 4, axis=0), bits=64)
    assert len(index.pairs(0.9999)) == 18
    settings: list[dict[str, Any]] = [{}, {"recall": 0.9}]
    for options in settings:
        assert len(index.pairs(0.9999, limit=18, **options)) == 18
        with pytest.raises(la.errors.ResultTooLargeError, match="more than limit=17 results"):
            index.pairs(0.9999, limit=17, **options)
        assert len(index.within(rows[:1], 0.9999, limit=4, **options).ids) == 4
        with pytest.raises(la.errors.ResultTooLargeError, match="more than limit=3 results"):
            index.within(rows[:1], 0.9999, limit=3, **options)


def test_what_there_is_to_know(index: la.VectorIndex) -> None:
    stats: dict[str, Any] = index.stats()
    assert stats["vectors"] == len(index) == 3900
    assert (stats["dimensions"], stats["dtype"], stats["bits"]) == (40, "float32", 512)
    assert stats["memory_bytes"] >= 3900 * (160 + 64)
    assert repr(index) == "VectorIndex(3,900 vectors of 40 dimensions, float32, 512 bits)"
    found = index.search(index.vectors([5, 7]), 1)
    assert found.ids.tolist() == [[5], [7]]
    assert repr(found) == "VectorNeighbors(queries=2, k=1, exact=False)"
    assert list(found.to_numpy()) == ["query", "id", "similarity"]
    assert found.to_arrow().num_rows == 2


def test_fewer_than_k_are_padded() -> None:
    index = la.VectorIndex(np.eye(3))
    found = index.search(np.eye(3)[:1], 5)
    assert found.exact
    assert found.ids.tolist() == [[0, 1, 2, -1, -1]]
    assert np.isnan(found.similarities[0, 3:]).all()
    assert [ids.tolist() for ids, _ in found] == [[0, 1, 2]]
    empty = la.VectorIndex(np.empty((0, 3)))
    assert empty.search(np.eye(3), 2).ids.tolist() == [[-1, -1]] * 3
    assert len(empty.within(np.eye(3), 0.5).ids) == len(empty.pairs(0.5)) == 0
    assert index.search(np.empty((0, 3)), 2).ids.shape == (0, 2)
    assert empty.add(np.eye(3)).tolist() == [0, 1, 2]
    assert len(empty.search(np.eye(3), 1)) == 3


def test_one_query_after_the_other() -> None:
    """Questions that are asked again take a shorter way, to the same answers."""
    rng = np.random.default_rng(8)
    rows = rng.normal(size=(3000, 20)).astype(np.float32)
    queries = rng.normal(size=(20, 20)).astype(np.float32)
    index = la.VectorIndex(rows)

    def same(index: la.VectorIndex, k: int, **options: Any) -> None:
        whole = index.search(queries, k, **options)
        for _ in range(2):
            for at in range(len(queries)):
                one = index.search(queries[at : at + 1], k, **options)
                assert one.ids.tolist() == whole.ids[at : at + 1].tolist()
                np.testing.assert_array_equal(one.similarities, whole.similarities[at : at + 1])
                assert one.exact is whole.exact
                other = index.search(queries[at].astype("f8"), k, **options)
                assert other.ids.tolist() == one.ids.tolist()

    same(index, 10)
    same(index, 10, candidates=30, probe=2)
    same(index, 3, threads=2)
    nearest = index.search(queries[:1], 10).ids[0]
    index.remove(nearest[:3])
    assert not set(nearest[:3].tolist()) & set(index.search(queries[:1], 10).ids[0].tolist())
    same(index, 10)
    (new,) = index.add(queries[:1]).tolist()
    assert index.search(queries[:1], 10).ids[0, 0] == new
    same(index, 10)
    index.tune(10, 0.8)
    same(index, 10, recall=0.8)
    before = index.search(queries[:1], 10, recall=0.8, explain=True).explanation
    index.tune(10, 0.99)
    index._tunings = index._tunings[1:]  # as if it was tuned again, to something else
    same(index, 10, recall=0.8)
    after = index.search(queries[:1], 10, recall=0.8, explain=True).explanation
    assert after.reranked[0] >= before.reranked[0]  # type: ignore[union-attr]
    index.compact()
    same(index, 10)
    same(copy(index), 10)
    few = la.VectorIndex(rows[:300])
    same(few, 299)
    same(few, 400)


def test_checks_of_questions_that_are_asked_again() -> None:
    rows = np.random.default_rng(8).normal(size=(3000, 20)).astype(np.float32)
    index = la.VectorIndex(rows)
    query = rows[:1]
    for _ in range(2):
        index.search(query, 1, candidates=64, probe=1, threads=1)
    wrong: list[dict[str, Any]] = [
        {"k": True}, {"k": 1.0}, {"probe": True}, {"threads": True}, {"candidates": 64.0},
        {"k": 0}, {"threads": 0}, {"recall": 0.9}, {"exact": 0}, {"explain": None}, {"k": [1]},
    ]  # fmt: skip
    for change in wrong:
        options = {"k": 1, "candidates": 64, "probe": 1, "threads": 1, **change}
        with pytest.raises(la.errors.ArgumentError):
            index.search(query, **options)
    bad = query.copy()
    for value in (np.nan, np.inf, -np.inf):
        bad[0, 7] = value
        with pytest.raises(la.errors.DocumentError, match="infinite or not a number"):
            index.search(bad, 1, candidates=64, probe=1, threads=1)
    with pytest.raises(la.errors.DocumentError, match="19 dimensions"):
        index.search(query[:, 1:], 1, candidates=64, probe=1, threads=1)
    found = index.search(np.asfortranarray(np.repeat(query, 2, axis=1))[:, ::2], 1)
    assert found.ids.tolist() == [[0]]
    assert index.search(query, np.array(1)).ids.tolist() == [[0]]
