from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lookalike as la
from support.oracles import text as text_oracle

KINDS = ["uniform", "count", "log-count", "tfidf", "log-likelihood"]
texts = st.lists(st.sampled_from("alpha beta gamma delta epsilon zeta".split()), max_size=15)
documents = st.lists(texts.map(" ".join), min_size=1, max_size=4)
bit_counts = st.sampled_from([8, 16, 56, 64, 72, 128, 192, 1000])


@given(documents, bit_counts, st.sampled_from(KINDS), st.sampled_from([0, 1, 2**64 - 1]))
def test_signatures_and_weights_equal_the_oracle_with_every_kernel(
    kernel: str, texts: list[str], bits: int, kind: str, seed: int
) -> None:
    signer = la.SimHash(bits, weights=kind, seed=seed).fit(texts)
    signatures, counters = signer.sign_with_weights(texts)
    assert signatures.shape == (len(texts), bits // 8)
    assert counters.shape == (len(texts), bits)
    assert np.array_equal(signatures, signer.sign(texts))
    collection = [text_oracle.word_features(text) for text in texts]
    for row, document in enumerate(collection):
        weights = text_oracle.weigh(document, kind, collection)
        expected = np.array(text_oracle.simhash(weights, bits, seed))
        assert np.allclose(counters[row], expected, atol=1e-5)
        signs = np.array(text_oracle.unpacked(signatures[row].tolist(), bits))
        assert np.array_equal(signs, counters[row] >= 0)
        if kind in ("uniform", "count"):  # whole numbers: zero is exactly zero
            assert np.array_equal(signs, expected >= 0)
        else:
            assert np.array_equal(
                signs[np.abs(expected) > 1e-5], expected[np.abs(expected) > 1e-5] >= 0
            )


@pytest.mark.parametrize("count", [1, 7, 8, 9, 16, 120, 503, 504, 505, 511, 512, 1008, 1500])
def test_documents_of_any_number_of_occurrences_equal_the_oracle(kernel: str, count: int) -> None:
    """Few different characters, so that most counters are far from a tie, and some near one."""
    rng = np.random.default_rng(count)
    varied = "".join(rng.choice(list("abcdefgh"), count))
    texts = [varied, "a" * count]
    signatures = la.SimHash(128, la.Chars(1), "count").sign(texts)
    for text, signature in zip(texts, signatures, strict=True):
        features = text_oracle.char_features(text, 1)
        weights = text_oracle.weigh(features, "count", [features])
        expected = np.array(text_oracle.simhash(weights, 128)) >= 0
        assert np.array_equal(text_oracle.unpacked(signature.tolist(), 128), expected)


def test_zero_counts_as_one() -> None:
    signer = la.SimHash(bits=8, features=la.features.Features(hashed=True))
    signatures, counters = signer.sign_with_weights([[(0b00001111, 1.0), (0b11110011, 1.0)]])
    assert counters[0].tolist() == pytest.approx([2**0.5] * 2 + [0.0] * 6)
    assert signatures.tolist() == [[0b11111111]]


def test_documents_without_features_have_all_bits_set() -> None:
    signer = la.SimHash(bits=72)
    signatures, counters = signer.sign_with_weights(["", "... !"])
    assert (signatures == 255).all()
    assert (counters == 0).all()
    assert signer.feature_counts(["", "a b", "... !"]).tolist() == [0, 2, 0]


def test_weights_have_mean_zero_and_variance_one() -> None:
    """Over random hashes: 2,000 documents of 30 words, 64 counters each."""
    rng = np.random.default_rng(0)
    texts = [" ".join(map(str, rng.integers(0, 10**6, 30))) for _ in range(2_000)]
    signatures, counters = la.SimHash(64, weights="count").sign_with_weights(texts)
    samples = counters.size
    assert abs(counters.mean()) < 4 / samples**0.5  # four standard errors
    assert abs(counters.var() - 1) < 4 * (2 / samples) ** 0.5
    bits = np.unpackbits(signatures, axis=1, bitorder="little")
    assert np.array_equal(bits, counters >= 0)


def test_distance_follows_the_cosine() -> None:
    """Nearly as for Gaussian projections: a share θ/π of the bits differs."""
    rng = np.random.default_rng(1)
    bits = 4096
    for shared in (10, 50, 90):
        common = rng.integers(0, 10**9, shared).astype(str).tolist()
        a = " ".join(common + rng.integers(0, 10**9, 100 - shared).astype(str).tolist())
        b = " ".join(common + rng.integers(0, 10**9, 100 - shared).astype(str).tolist())
        distance = la.hamming(*la.SimHash(bits).sign([a, b])[:, None])[0]
        share = np.arccos(la.cosine(a, b)) / np.pi
        assert abs(distance / bits - share) < 5 * (share * (1 - share) / bits) ** 0.5 + 0.01


def test_quantized_weights_keep_signs_and_nearly_values() -> None:
    texts = [f"some words {i} and {i * i} more" for i in range(200)] + [""]
    signatures, counters = la.SimHash(128).sign_with_weights(texts)
    same, quantized = la.SimHash(128).sign_with_weights(texts, quantized=True)
    assert np.array_equal(signatures, same)
    assert quantized.dtype == np.int16
    assert np.array_equal(quantized >= 0, counters >= 0)
    assert np.abs(la.signatures.restore_weights(quantized) - counters).max() <= 0.5 / 1024 + 1e-6
    extreme = la.signatures.quantize_weights([-1e9, -1e-9, 0.0, 1e-9, 1e9])
    assert extreme.tolist() == [-(2**15), -1, 0, 0, 2**15 - 1]


def test_large_weights_and_long_documents_do_not_overflow() -> None:
    heavy = la.SimHash(features=la.features.Features(hashed=True))
    light = heavy.sign([{"a": 1.0, "b": 2.0, "c": 4.0}])
    for scale in (1e-300, 1e-9, 1e9, 2e14):
        scaled = heavy.sign([{"a": scale, "b": 2 * scale, "c": 4 * scale}])
        assert np.array_equal(scaled, light)
    text = "word " * 3_000_000 + "other"
    assert np.array_equal(la.SimHash().sign([text]), la.SimHash().sign(["word word other"]))


@pytest.mark.parametrize("bits", [0, 4, 65, -8, 2**40])
def test_bits_that_make_no_sense_are_named(bits: int) -> None:
    for make in (la.SimHash, la.TopSig):
        with pytest.raises(la.errors.ArgumentError, match=f"bits is {bits}; expected"):
            make(bits)
