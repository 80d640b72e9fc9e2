from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import lookalike as la
from support.oracles import text as text_oracle

texts = st.lists(st.sampled_from("a b c d e f g h".split()), max_size=15).map(" ".join)


@given(st.lists(texts, min_size=1, max_size=4), st.integers(1, 70), st.sampled_from([0, 5]))
def test_values_equal_the_oracle_with_every_kernel(
    kernel: str, documents: list[str], permutations: int, seed: int
) -> None:
    found = la.MinHash(permutations, la.Words(ngram=2), seed).sign(documents)
    assert found.dtype == np.uint32
    functions = text_oracle.permutations(seed, permutations)
    for row, document in enumerate(documents):
        elements = [feature >> 32 for feature in text_oracle.word_features(document, 2)]
        expected = text_oracle.minhash(elements, functions)
        assert found[row].tolist() == [2**32 - 1 if value is None else value for value in expected]


@given(st.lists(texts, min_size=1, max_size=4), st.integers(1, 16))
def test_packed_bits_equal_the_oracle(documents: list[str], b: int) -> None:
    plain, packed = la.MinHash(24, la.Words(), 3), la.BBitMinHash(24, b, la.Words(), 3)
    values, signatures = plain.sign(documents), packed.sign(documents)
    assert signatures.shape == (len(documents), 24 * b // 8)
    assert np.array_equal(signatures, packed.pack(values))
    for row, signature in zip(values, signatures, strict=True):
        bits = text_oracle.unpacked(signature.tolist(), 24 * b)
        for position, value in enumerate(row.tolist()):
            kept = text_oracle.low_bits(value, position, b)
            assert bits[position * b : (position + 1) * b] == [kept >> i & 1 for i in range(b)]
    agreeing = la.BBitMinHash(24, b, la.Words(), 3).similarity(signatures[:1], signatures)
    chance = 2.0**-b
    for row, estimate in enumerate(agreeing):
        same = np.mean(
            [
                text_oracle.low_bits(int(x), p, b) == text_oracle.low_bits(int(y), p, b)
                for p, (x, y) in enumerate(zip(values[0], values[row], strict=True))
            ]
        )
        assert estimate == pytest.approx((same - chance) / (1 - chance))


@given(st.lists(texts, max_size=4), st.integers(1, 3), st.integers(1, 16))
def test_vectors_for_linear_models_equal_the_oracle(
    documents: list[str], eights: int, b: int
) -> None:
    signer = la.BBitMinHash(8 * eights, b, la.Words(), 3)
    values = la.MinHash(8 * eights, la.Words(), 3).sign(documents)
    vectors = signer.to_csr(signer.sign(documents))
    assert vectors.shape == (len(documents), 8 * eights * 2**b)
    for row, document in enumerate(values.tolist()):
        expected = [
            position * 2**b + text_oracle.low_bits(value, position, b)
            for position, value in enumerate(document)
        ]
        assert vectors.indices[vectors.indptr[row] : vectors.indptr[row + 1]].tolist() == expected
    assert (vectors.data == 1).all()


def test_products_of_vectors_count_equal_values() -> None:
    signer = la.BBitMinHash(64, 2, la.Words())
    signatures = signer.sign(["a b c d e", "a b c d f", "x y", ""])
    vectors = signer.to_csr(signatures)
    shares = (vectors @ vectors.T).toarray() / 64
    for row in range(4):
        expected = signer.similarity(signatures[row], signatures)
        assert (shares[row] - 0.25) / 0.75 == pytest.approx(expected)
    assert signer.to_csr(signatures[0]).shape == (1, 256)
    with pytest.raises(la.errors.SignatureError, match="the signatures have 64 bits"):
        signer.to_csr(signatures[:, :8])


def test_many_signatures_are_unpacked_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    signer = la.BBitMinHash(64, 3)
    signatures = np.random.default_rng(1).integers(0, 256, (50, 24), np.uint8)
    whole = signer.to_csr(signatures)
    monkeypatch.setattr("lookalike.signatures.minhash._UNPACKED", 7 * 192 + 5)
    assert (signer.to_csr(signatures) != whole).nnz == 0


def pairs_with(
    similarity: float, size: int, count: int, seed: int
) -> tuple[list[list[int]], list[list[int]]]:
    """Make pairs of random sets whose Jaccard similarity is exactly `similarity`."""
    rng = np.random.default_rng(seed)
    common = round(similarity * size)
    left, right = [], []
    for _ in range(count):
        elements = rng.integers(0, 2**64, size, dtype=np.uint64).tolist()
        own = (size - common) // 2
        left.append(elements[:common] + elements[common : common + own])
        right.append(elements[:common] + elements[common + own :])
    return left, right


def check_estimates(
    estimates: NDArray[np.float64], similarity: float, standard_error: float
) -> None:
    """Mean and variance are as stated, each to within four standard errors of the sample's."""
    count = len(estimates)
    assert abs(estimates.mean() - similarity) < 4 * standard_error / count**0.5
    # The variance of a sample variance is about 2 / n of its square.
    assert abs(estimates.var() / standard_error**2 - 1) < 4 * (2 / count) ** 0.5


@pytest.mark.parametrize("size", [12, 200])
@pytest.mark.parametrize("similarity", [0.25, 0.5, 0.75])
def test_minhash_is_unbiased_with_the_variance_of_a_binomial(similarity: float, size: int) -> None:
    left, right = pairs_with(similarity, size, 2_000, seed=size)
    signer = la.MinHash(128, la.features.Features(hashed=True), seed=4)
    estimates = signer.similarity(signer.sign(left), signer.sign(right))
    check_estimates(estimates, similarity, float(signer.standard_error(similarity)))
    assert float(signer.standard_error(similarity)) ** 2 == pytest.approx(
        similarity * (1 - similarity) / 128
    )


@pytest.mark.parametrize("b", [1, 2, 4, 8])
@pytest.mark.parametrize("similarity", [0.25, 0.5, 0.75])
def test_b_bit_minhash_is_unbiased_with_the_stated_variance(similarity: float, b: int) -> None:
    left, right = pairs_with(similarity, 200, 2_000, seed=b)
    signer = la.BBitMinHash(256, b, la.features.Features(hashed=True), seed=4)
    estimates = signer.similarity(signer.sign(left), signer.sign(right))
    check_estimates(estimates, similarity, float(signer.standard_error(similarity)))


def test_small_sets_profit_from_more_permutations_too() -> None:
    """Without mixing, the chance collisions of few elements would be the same everywhere."""
    left, right = pairs_with(0.0, 4, 300, seed=1)
    signer = la.BBitMinHash(4096, 1, la.features.Features(hashed=True))
    estimates = signer.similarity(signer.sign(left), signer.sign(right))
    assert np.abs(estimates).max() < 5 * float(signer.standard_error(0.0))


def test_one_bit_at_one_half_has_three_times_the_variance() -> None:
    """The slides' claim: at most a factor of 3."""
    one, full = la.BBitMinHash(512, 1), la.MinHash(512)
    assert (one.standard_error(0.5) / full.standard_error(0.5)) ** 2 == pytest.approx(3)


def test_real_texts_are_estimated_well() -> None:
    words = [f"w{i}" for i in range(400)]
    edited = words.copy()
    edited[100:110] = ["x"] * 10
    a, b = " ".join(words), " ".join(edited)
    signer = la.MinHash(1024)
    truth = la.jaccard(a, b, la.Words(ngram=5))
    estimate = signer.similarity(*signer.sign([a, b])[:, None])[0]
    assert abs(estimate - truth) < 4 * float(signer.standard_error(truth))


def test_empty_documents_have_the_largest_values_and_resemble_nothing() -> None:
    signer = la.MinHash(16)
    values = signer.sign(["", "a text that has some words", "?"])
    assert (values[[0, 2]] == 2**32 - 1).all()
    assert signer.similarity(values[0], values).tolist() == [0, 0, 0]


def test_bad_arguments_are_named() -> None:
    with pytest.raises(la.errors.ArgumentError, match="permutations is 0"):
        la.MinHash(0)
    with pytest.raises(la.errors.ArgumentError, match="b is 17; expected .* from 1 to 16"):
        la.BBitMinHash(64, 17)
    with pytest.raises(la.errors.ArgumentError, match="permutations is 3, of 1 bit each: 3 bits"):
        la.BBitMinHash(3, 1)
    with pytest.raises(
        la.errors.ArgumentError, match="features is 'words' of type str; expected la.Words"
    ):
        la.MinHash(8, "words")  # type: ignore[arg-type]
    with pytest.raises(la.errors.ArgumentError, match="seed is -1"):
        la.MinHash(8, seed=-1)
    values = la.MinHash(8).sign(["a b c d e f"] * 3)
    with pytest.raises(la.errors.SignatureError, match=r"uint32 of shape \(3, 8\); .* 16 columns"):
        la.MinHash(16).similarity(values, values)
    with pytest.raises(la.errors.SignatureError, match="2 first rows and 3 second"):
        la.MinHash(8).similarity(values[:2], values)
    packed = la.BBitMinHash(8).pack(values)
    with pytest.raises(la.errors.SignatureError, match="2 first signatures and 3 second"):
        la.BBitMinHash(8).similarity(packed[:2], packed)
    with pytest.raises(la.errors.SignatureError, match="8 bits, this signer gives 16"):
        la.BBitMinHash(16).similarity(packed, packed)
