"""MinHash rows united, counted and updated; weighted MinHash: what they estimate, how well."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Mapping
from math import sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la

words = st.lists(st.sampled_from("a b c d e f g h i j k".split()), max_size=20)


@given(words, words, st.integers(1, 40))
def test_a_union_is_what_signing_all_features_gives(
    left: list[str], right: list[str], permutations: int
) -> None:
    signer = la.MinHash(permutations, la.Words(), 5)
    one, two, both = signer.sign([" ".join(left), " ".join(right), " ".join(left + right)])
    assert np.array_equal(signer.union(one, two), both[None])
    assert np.array_equal(signer.update(one, [" ".join(right)]), both[None])
    assert signer.similarity(signer.union(one, two), both)[0] == (1 if left + right else 0)


@pytest.mark.parametrize("count", [1, 10, 300, 5000])
def test_counts_are_unbiased_with_the_error_they_promise(count: int) -> None:
    signer = la.MinHash(256, la.features.Features(hashed=True))
    random = np.random.default_rng(count)
    documents = random.integers(0, 2**64, (200, count), dtype=np.uint64).tolist()
    counted = signer.count(signer.sign(documents))
    error = count / sqrt(254)
    assert abs(counted.mean() - count) < 4 * error / sqrt(200)
    assert 0.8 * error < counted.std() < 1.2 * error
    assert signer.count(signer.sign([[]])).tolist() == [0]


weights = st.dictionaries(st.integers(0, 8), st.floats(0.01, 50), max_size=7)


def exact(one: Mapping[Any, float], two: Mapping[Any, float]) -> float:
    keys = one.keys() | two.keys()
    lesser = sum(min(one.get(key, 0), two.get(key, 0)) for key in keys)
    greater = sum(max(one.get(key, 0), two.get(key, 0)) for key in keys)
    return lesser / greater if greater else 0.0


@given(weights, weights)
def test_weighted_jaccard_is_the_lesser_over_the_greater(
    one: dict[int, float], two: dict[int, float]
) -> None:
    features = la.features.Features()
    found = la.weighted_jaccard([one, two], [two, two], features)
    assert found == pytest.approx([exact(one, two), 1 if two else 0])
    same = la.features.similarity_pairs("weighted_jaccard", [one, two], [0, 1], [1, 0], features)
    assert same == pytest.approx([exact(one, two)] * 2)
    plain = la.weighted_jaccard(one, two, features, "uniform")
    assert plain == la.jaccard(one, two, features)


@given(words, words)
def test_weighted_jaccard_of_texts_counts_words(left: list[str], right: list[str]) -> None:
    found = la.weighted_jaccard(" ".join(left), " ".join(right))
    assert found == pytest.approx(exact(Counter(left), Counter(right)))


@given(weights, weights, st.integers(0, 2**64 - 1))
@settings(max_examples=25)
def test_weighted_values_agree_as_often_as_they_should(
    one: dict[int, float], two: dict[int, float], seed: int
) -> None:
    """Of 4,000 draws each, within five standard errors."""
    signer = la.WeightedMinHash(4000, la.features.Features(), seed=seed)
    rows = signer.sign([one, two])
    truth = exact(one, two)
    estimate = signer.similarity(rows[0], rows[1])[0]
    assert abs(estimate - truth) <= 5 * signer.standard_error(truth) + 1e-3
    assert (rows[0] == 2**32 - 1).all() == (not one)
    threads = signer.sign([one, two] * 70, threads=3)
    assert np.array_equal(threads[-2:], rows)


def test_weights_that_all_grow_change_no_similarity() -> None:
    """Draws depend on weights, estimates on their proportions."""
    random = np.random.default_rng(1)
    vectors = random.uniform(0.1, 10, (40, 20))
    signer = la.WeightedMinHash(512, la.features.Features())
    documents = [dict(enumerate(vector.tolist())) for vector in vectors]
    scaled = [{key: 1e6 * value for key, value in one.items()} for one in documents]
    errors = []
    for several in (documents, scaled):
        rows = signer.sign(several)
        truth = np.array([exact(several[0], one) for one in several])
        errors.append(signer.similarity(rows[0], rows) - truth)
    for error in errors:
        assert abs(error).max() < 5 * 0.5 / sqrt(512)
        assert abs(error.mean()) < 0.03


def test_rows_know_their_signer() -> None:
    signer, other = la.MinHash(16, seed=1), la.MinHash(16, seed=2)
    rows, others = signer.sign(["a b c d e f"] * 3), other.sign(["a b c d e f"])
    for call in (signer.similarity, signer.union):
        with pytest.raises(la.errors.SignatureError, match="seed=2 cannot be compared .* seed=1"):
            call(rows, others)
    with pytest.raises(la.errors.SignatureError, match="cannot be compared"):
        signer.count(others)
    with pytest.raises(la.errors.SignatureError, match="cannot be compared"):
        signer.update(others, ["x"])
    parts = [rows[0], rows[1:], rows.copy(), rows[::-1], pickle.loads(pickle.dumps(rows))]
    for part in parts:
        with pytest.raises(la.errors.SignatureError, match="cannot be compared"):
            other.count(part)
    assert type(rows == rows) is type(rows.min(axis=1)) is np.ndarray
    assert signer.similarity(np.asarray(rows), np.concatenate([rows])).tolist() == [1, 1, 1]
