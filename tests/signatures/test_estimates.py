"""From similarities to distances and back."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lookalike as la
from lookalike.signatures.estimates import (
    estimated_pairs,
    exact_similarity,
    ones_of_pairs,
    proposal_radius,
    set_bits,
)
from support.cases.report_pages import edited, text_of

SIGNERS: dict[str, Any] = {
    "simhash": la.SimHash(256, la.Words()),
    "topsig": la.TopSig(512, features=la.Words(), weights="count"),
    "minhash": la.BBitMinHash(64, 8, la.Words(ngram=2)),
    "one bit": la.BBitMinHash(256, 1, la.Words(ngram=2)),
}


@given(st.sampled_from(sorted(SIGNERS)), st.floats(0.001, 1))
def test_the_radius_is_the_last_whose_estimate_is_high_enough(name: str, threshold: float) -> None:
    signer = SIGNERS[name]
    estimates = la.estimated_similarity(signer, np.arange(signer.bits + 1), signer.bits)
    (near,) = np.nonzero(estimates >= threshold)
    assert la.estimated_radius(signer, threshold, signer.bits) == near[-1]


@pytest.mark.parametrize("name", SIGNERS)
@pytest.mark.parametrize("wrong", [0, -1, 1.01, math.nan, "much", True])
def test_only_shares_are_thresholds(name: str, wrong: object) -> None:
    for radius in (la.estimated_radius, proposal_radius):
        with pytest.raises(
            la.errors.ArgumentError, match="threshold is .*; expected a number above 0"
        ):
            radius(SIGNERS[name], wrong, 64)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", SIGNERS)
def test_nearly_all_documents_of_a_similarity_are_within_its_radius(name: str) -> None:
    """Of pairs of every similarity, one in a hundred may be beyond what is proposed for it."""
    signer, rng = SIGNERS[name], random.Random(3)
    texts = [text_of(rng) for _ in range(400)]
    others = [edited(rng, text, 1 + place % 30) for place, text in enumerate(texts)]
    places = np.arange(len(texts))
    exact = exact_similarity(signer, texts + others, places, places + len(texts))
    distances = la.hamming(signer.sign(texts), signer.sign(others))
    within = [
        far <= proposal_radius(signer, value, signer.bits)
        for far, value in zip(distances.tolist(), exact.tolist(), strict=True)
        if value > 0
    ]
    assert len(within) > 390
    assert np.mean(within) > 0.975
    halves = [
        far <= la.estimated_radius(signer, value, signer.bits)
        for far, value in zip(distances.tolist(), exact.tolist(), strict=True)
        if value > 0
    ]
    assert np.mean(halves) < np.mean(within), "that is what the proposing radius is for"


def test_exact_similarities_are_those_that_signatures_estimate() -> None:
    texts = ["a b c d e", "a b c d f", "x y z"]
    left, right = [0, 0], [1, 2]
    jaccard = exact_similarity(la.BBitMinHash(64, 8, la.Words()), texts, left, right)
    assert jaccard.tolist() == [4 / 6, 0]
    cosine = exact_similarity(la.SimHash(64, la.Words()), texts, left, right)
    assert cosine == pytest.approx([4 / 5, 0])
    learned = la.SimHash(64, la.Words(), weights="tfidf").fit(texts)
    weighted = exact_similarity(learned, texts, left, right)
    assert weighted[0] == pytest.approx(la.cosine(texts[0], texts[1], la.Words(), learned.weights))
    assert weighted[0] < cosine[0], "what all have counts less"


def test_topsig_that_has_learned_nothing_is_compared_by_counts() -> None:
    texts = ["one two two three", "one two three three"]
    exact = exact_similarity(la.TopSig(1024), texts, [0], [1])
    assert exact == pytest.approx(la.cosine(texts[0], texts[1], weights="count"))
    learned = la.TopSig(1024).fit([*texts, "four", "four three"])
    expected = la.cosine(texts[0], texts[1], weights=learned.weights)
    assert exact_similarity(learned, texts, [0], [1]) == pytest.approx(expected)
    assert expected != pytest.approx(exact[0])


def pair_estimates(signer: Any, left: list[str], right: list[str]) -> np.ndarray[Any, Any]:
    one, two = signer.sign(left), signer.sign(right)
    ones = set_bits(one) + set_bits(two)
    return estimated_pairs(signer, la.hamming(one, two), signer.bits, ones)


@pytest.mark.parametrize("words", [1, 2, 3, 5, 10, 20, 40])
def test_short_texts_without_a_common_word_are_not_similar(words: int) -> None:
    """Most bits of a short text are 0 for want of words; they say nothing of a similarity."""
    signer = la.TopSig(1024, weights="count")
    texts = [" ".join(f"w{number}x{at}" for at in range(words)) for number in range(400)]
    found = pair_estimates(signer, texts[:200], texts[200:])
    assert found.max() < 0.5
    assert pair_estimates(signer, texts, texts).min() == 1
    naive = la.estimated_similarity(signer, la.hamming(*signer.sign(texts[:2])), signer.bits)
    assert words > 2 or naive[0] > 0.9


@pytest.mark.parametrize(("words", "shared"), [(2, 1), (4, 2), (6, 4), (10, 5), (20, 16)])
def test_estimates_of_short_texts_are_near_their_cosine(words: int, shared: int) -> None:
    signer = la.TopSig(1024, weights="count")
    both = [[f"s{n}x{at}" for at in range(shared)] for n in range(200)]
    left, right = (
        [" ".join([*own, *(f"{side}{n}x{at}" for at in range(words - shared))])
         for n, own in enumerate(both)]
        for side in "lr"
    )  # fmt: skip
    assert abs(pair_estimates(signer, left, right).mean() - shared / words) < 0.1


@pytest.mark.parametrize("name", SIGNERS)
def test_estimates_of_long_texts_are_those_of_their_distances(name: str) -> None:
    signer, rng = SIGNERS[name], random.Random(5)
    texts = [" ".join(text_of(rng) for _ in range(10)) for _ in range(50)]
    others = [edited(rng, text, 1 + place) for place, text in enumerate(texts)]
    distances = la.hamming(signer.sign(texts), signer.sign(others))
    expected = la.estimated_similarity(signer, distances, signer.bits)
    assert np.array_equal(pair_estimates(signer, texts, others), expected)


@given(st.lists(st.binary(min_size=4, max_size=4), min_size=1, max_size=9), st.data())
def test_scaled_estimates_are_at_most_those_of_distances(
    rows: list[bytes], data: st.DataObject
) -> None:
    """So a radius of a threshold misses no pair whose scaled estimate reaches it."""
    signer = la.TopSig(32)
    signatures = np.frombuffer(b"".join(rows), np.uint8).reshape(-1, 4)
    place = st.integers(0, len(rows) - 1)
    pairs = np.array(data.draw(st.lists(st.tuples(place, place), min_size=1)), np.int64)
    left, right = pairs.T
    ones = ones_of_pairs(signer, signatures, left, right)
    counted = [int.from_bytes(rows[one] + rows[two]).bit_count() for one, two in pairs.tolist()]
    assert ones.tolist() == counted
    distances = la.hamming(signatures[left], signatures[right])
    found = estimated_pairs(signer, distances, 32, ones)
    assert (found <= la.estimated_similarity(signer, distances, 32)).all()
    assert (found[ones == 0] < 1e-9).all(), "nothing is known of a pair without a bit"
