"""The numbers behind the bits of every signer that has them; normal vectors; weights below 0."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import lookalike as la
from lookalike.errors import ArgumentError, DocumentError
from lookalike.signatures.bit_weights import NORMAL_UNIT, normal_quantiles
from support.oracles import text as text_oracle

KINDS = ["uniform", "count", "log-count", "tfidf", "log-likelihood"]
hashes = st.integers(0, 7).map(lambda value: value * 0x0123456789ABCDEF % 2**64)
amounts = st.integers(-4, 4).map(lambda value: value / 2)
pages = st.lists(st.dictionaries(hashes, amounts, max_size=6), min_size=1, max_size=4)
seeds = st.sampled_from([0, 3, 2**64 - 1])
FEATURES = la.features.Features(hashed=True)


def _check(
    signer: Any, documents: Any, expected: NDArray[np.float64], zero_is_one: bool, whole: bool
) -> None:
    """Compare bits and weights with sums in which 0 is 0 if everything is whole."""
    signatures, weights = signer.sign_with_weights(documents)
    again = signer.sign_with_weights(documents, threads=3)
    assert np.array_equal(signatures, signer.sign(documents))
    assert np.array_equal(signatures, again[0])
    assert weights.dtype == np.float32
    assert weights.tobytes() == again[1].tobytes()
    assert np.allclose(weights, expected, atol=1e-4)
    bits = np.array([text_oracle.unpacked(row, signer.bits) for row in signatures.tolist()])
    assert np.array_equal(bits.astype(bool), weights >= 0 if zero_is_one else weights > 0)
    sure = np.ones(expected.shape, bool) if whole else np.abs(expected) > 1e-4
    signs = expected >= 0 if zero_is_one else expected > 0
    assert np.array_equal(bits[sure].astype(bool), signs[sure])


@given(pages, st.sampled_from([8, 72, 128]), st.sampled_from(KINDS), seeds)
def test_simhash_of_signed_weights_is_the_oracles(
    documents: list[dict[int, float]], bits: int, kind: str, seed: int
) -> None:
    signer = la.SimHash(bits, FEATURES, kind, seed).fit(documents)
    weighed = [text_oracle.weigh_given(one, kind, documents) for one in documents]
    expected = np.array([text_oracle.simhash(one, bits, seed) for one in weighed])
    _check(signer, documents, expected, True, kind in ("uniform", "count"))


@given(pages, st.sampled_from([8, 72]), st.sampled_from(KINDS), seeds)
def test_normal_vectors_are_the_oracles(
    documents: list[dict[int, float]], bits: int, kind: str, seed: int
) -> None:
    signer = la.SimHash(bits, FEATURES, kind, seed, vectors="gaussian").fit(documents)
    weighed = [text_oracle.weigh_given(one, kind, documents) for one in documents]
    expected = np.array([text_oracle.normal_simhash(one, bits, seed) for one in weighed])
    _check(signer, documents, expected, True, False)


@given(pages, st.sampled_from([(64, 5), (104, 21)]), st.sampled_from(KINDS), seeds)
def test_topsig_of_signed_weights_is_the_oracles(
    documents: list[dict[int, float]], shape: tuple[int, int], kind: str, seed: int
) -> None:
    bits, density = shape
    signer = la.TopSig(bits, density, FEATURES, seed, kind).fit(documents)
    expected = np.zeros((len(documents), bits))
    for row, one in enumerate(documents):
        weighed = text_oracle.weigh_given(one, kind, documents)
        if weighed:
            sums = np.array(text_oracle.topsig(weighed, bits, density, seed))
            expected[row] = sums * math.sqrt(density) / math.hypot(*weighed.values())
    _check(signer, documents, expected, False, kind in ("uniform", "count"))


def test_topsig_that_has_learned_nothing_counts() -> None:
    texts = ["one two two three", ""]
    signatures, weights = la.TopSig(256).sign_with_weights(texts)
    counted = la.TopSig(256, weights="count").sign_with_weights(texts)
    assert np.array_equal(signatures, counted[0])
    assert np.array_equal(weights, counted[1])
    assert not weights[1].any()


@given(st.integers(1, 40), st.sampled_from([8, 40, 256]), st.integers(0, 2**32))
def test_projection_has_the_products_behind_its_bits(
    kernel: str, dimensions: int, bits: int, seed: int
) -> None:
    signer = la.Projection(bits, dimensions, seed=seed)
    rng = np.random.default_rng(seed)
    vectors = rng.integers(-3, 4, (6, dimensions)).astype(np.float32)
    vectors[0] = 0
    vectors[1] = signer._matrix[:, 0] * np.float32(1e-30)  # tiny, and beyond what rounds to 0
    matrix = signer._matrix.astype(np.float64)
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)[:, None]
    expected = vectors.astype(np.float64) @ matrix / np.where(lengths == 0, 1, lengths)
    _check(signer, vectors, expected, True, False)


SIGNERS: list[tuple[str, Callable[[], Any]]] = [
    ("normal", lambda: la.SimHash(64, vectors="gaussian")),
    ("ternary", lambda: la.TopSig(64, 7, weights="count")),
    ("signs", lambda: la.SimHash(64)),
]


@pytest.mark.parametrize(("name", "made"), SIGNERS, ids=[name for name, _ in SIGNERS])
def test_weights_have_mean_zero_and_variance_one(name: str, made: Callable[[], Any]) -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(map(str, rng.integers(0, 10**6, 30))) for _ in range(1_000)]
    signatures, weights = made().sign_with_weights(texts)
    assert abs(weights.mean()) < 0.02
    assert abs(weights.var() - 1) < 0.03
    short = made().sign_with_weights(texts, quantized=True)
    assert np.array_equal(short[0], signatures)
    assert np.array_equal(short[1], la.signatures.quantize_weights(weights))
    assert np.array_equal(short[1] >= 0, weights >= 0)


def test_projected_weights_are_normal() -> None:
    vectors = np.random.default_rng(0).normal(5, 1, (1_000, 30)) * 100
    weights = la.Projection(64, 30).sign_with_weights(vectors)[1]
    assert abs(weights.var() - 1) < 0.3  # of 64 vectors of 30 numbers
    assert not la.Projection(64, 30).sign_with_weights(np.zeros((2, 30)))[1].any()


def test_normal_numbers_are_normal_and_the_same_everywhere() -> None:
    """No quantile is so near the middle of two units that a last digit could decide."""
    from statistics import NormalDist

    exact = [4096 * NormalDist().inv_cdf(0.5 + (at + 0.5) / 2**16) for at in range(2**15)]
    assert min(abs(value - math.floor(value) - 0.5) for value in exact) > 1e-6
    values = normal_quantiles() / NORMAL_UNIT
    assert (np.diff(values) >= 0).all()
    assert values[0] >= 0
    for power, moment in ((2, 1), (4, 3), (6, 15)):
        assert np.mean(values**power) == pytest.approx(moment, rel=0.01)


def test_the_angle_of_few_features_follows_normal_vectors() -> None:
    """One heavy feature in common, a light one not: where +1 and -1 are alone, it decides."""
    rng = np.random.default_rng(1)
    left, right = [], []
    for _ in range(400):
        a, b, c = (int(value) for value in rng.integers(0, 2**63, 3))
        left.append({a: 3.0, b: 1.3})
        right.append({a: 3.0, c: 1.3})
    truth = la.cosine(left[0], right[0], FEATURES)
    signer = la.SimHash(256, FEATURES, vectors="gaussian")
    share = np.mean(np.unpackbits(signer.sign(left) ^ signer.sign(right)))
    assert share == pytest.approx(math.acos(truth) / math.pi, rel=0.05)
    signs = la.SimHash(256, FEATURES)
    assert not (signs.sign(left) ^ signs.sign(right)).any()  # the heavy one decides all bits


def test_signers_say_their_vectors_and_older_descriptions_mean_signs() -> None:
    normal, signs = la.SimHash(vectors="gaussian"), la.SimHash()
    assert la.Signer.from_bytes(normal.to_bytes()) == normal != signs
    assert "vectors='gaussian'" in repr(normal)
    assert "vectors" not in signs.to_dict()
    assert la.SimHash.from_dict(signs.to_dict()).vectors == "signs"
    with pytest.raises(ArgumentError, match="vectors is 'normal'; expected one of"):
        la.SimHash(vectors="normal")


def test_cosines_of_weights_below_zero() -> None:
    assert la.cosine({"a": 1, "b": 2}, {"a": -1, "b": -2}, la.features.Features()) == pytest.approx(
        -1
    )
    assert la.cosine({"a": 1, "b": 2}, {"a": -2, "b": 1}, la.features.Features()) == 0
    turned = la.SimHash(64, la.features.Features()).sign([{"a": 1.0}, {"a": -1.0}])
    assert (turned[0] ^ turned[1] == 255).all()


SETS: list[tuple[str, Callable[[Any], Any]]] = [
    ("MinHash", la.MinHash(16, la.features.Features()).sign),
    ("BBitMinHash", la.BBitMinHash(16, 1, la.features.Features()).sign),
    ("WeightedMinHash", la.WeightedMinHash(16, la.features.Features()).sign),
    ("jaccard", lambda pages: la.jaccard(pages, pages, la.features.Features())),
    ("containment", lambda pages: la.containment(pages, pages, la.features.Features())),
    ("weighted_jaccard", lambda pages: la.weighted_jaccard(pages, pages, la.features.Features())),
    (
        "jaccard_pairs",
        lambda pages: la.features.similarity_pairs(
            "jaccard", pages, [0], [1], la.features.Features()
        ),
    ),
]


@pytest.mark.parametrize(("name", "call"), SETS, ids=[name for name, _ in SETS])
def test_sets_refuse_weights_below_zero(name: str, call: Callable[[Any], Any]) -> None:
    pages: list[Any] = [["a"]] * 8_200
    call(pages)
    pages[8_195] = {"a": 2.0, "b": -1.0}
    with pytest.raises(DocumentError, match="document 8195 has a feature with a negative weight"):
        call(pages)


def test_dedup_counts_them_by_cosine_and_refuses_them_by_sets() -> None:
    texts = ["one two three four five six seven", "one two three four five six eight"]
    doubtful = {"one", "two"}

    def signed(text: str) -> dict[str, float]:
        return {word: -1.0 if word in doubtful else 1.0 for word in text.split()}

    result = la.dedup(texts, method="simhash", bits=512, features=signed, threshold=0.8)
    assert result.keep.tolist() == [True, False]
    for settings in ({}, {"exact": True}, {"measure": "containment"}):
        with pytest.raises(DocumentError, match="a negative weight"):
            la.dedup(texts, features=signed, **settings)
