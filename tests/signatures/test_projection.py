from __future__ import annotations

import numpy as np
import pytest

import lookalike as la
from lookalike.signatures.random import random_normals, random_words


@pytest.mark.parametrize("bits", [8, 24, 256, 264])
@pytest.mark.parametrize("dimensions", [1, 7, 100])
def test_bits_are_signs_of_products_with_every_kernel(
    kernel: str, bits: int, dimensions: int
) -> None:
    rng = np.random.default_rng(bits)
    vectors = rng.standard_normal((150, dimensions)).astype(np.float32)
    signer = la.Projection(bits, dimensions, seed=7)
    matrix = random_normals(7, dimensions * bits).reshape(dimensions, bits).astype(np.float64)
    products = vectors.astype(np.float64) @ matrix
    found = np.unpackbits(signer.sign(vectors), axis=1, bitorder="little")
    clear = np.abs(products) > 1e-9
    assert np.array_equal(found[clear], (products >= 0)[clear])


def test_signs_in_doubt_are_settled_exactly(kernel: str) -> None:
    """Vectors that are nearly orthogonal to a column: single precision alone would guess."""
    bits, dimensions = 64, 40
    matrix = random_normals(3, dimensions * bits).reshape(dimensions, bits).astype(np.float64)
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((300, dimensions))
    for row, vector in enumerate(vectors):
        column = matrix[:, row % bits]
        vector -= column * (vector @ column) / (column @ column)
    vectors = vectors.astype(np.float32)
    sums = np.zeros((300, bits))
    for dimension in range(dimensions):  # in the order that the core promises
        sums += vectors[:, dimension, None].astype(np.float64) * matrix[dimension]
    doubtful = np.abs(sums) < 1e-6
    assert doubtful.sum() > 200
    found = np.unpackbits(
        la.Projection(bits, dimensions, seed=3).sign(vectors), axis=1, bitorder="little"
    )
    assert np.array_equal(found, sums >= 0)


def test_bits_collide_with_probability_one_minus_angle_over_pi() -> None:
    bits, dimensions = 8192, 50
    rng = np.random.default_rng(0)
    signer = la.Projection(bits, dimensions)
    for angle in (0.1, 0.5, 1.0, np.pi / 2, 2.5):
        a, b = np.linalg.qr(rng.standard_normal((dimensions, 2)))[0].T
        turned = np.cos(angle) * a + np.sin(angle) * b
        signatures = signer.sign(np.stack([a, turned]))
        share = la.hamming(signatures[0], signatures[1])[0] / bits
        expected = angle / np.pi
        assert abs(share - expected) < 4 * (expected * (1 - expected) / bits) ** 0.5


def test_random_numbers_are_normal_and_as_published() -> None:
    # The first outputs of SplitMix64 with the seed 1234567, from its reference implementation.
    assert random_words(1234567, 3).tolist() == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]
    sample = random_normals(0, 200_000)
    assert abs(sample.mean()) < 4 / 200_000**0.5
    assert abs(sample.var() - 1) < 4 * (2 / 200_000) ** 0.5
    assert abs(np.mean(np.abs(sample) < 1) - 0.682689) < 4 * (0.22 / 200_000) ** 0.5


def test_any_real_type_and_layout() -> None:
    rng = np.random.default_rng(1)
    vectors = rng.standard_normal((20, 6)).astype(np.float16)
    signer = la.Projection(64, 6)
    expected = signer.sign(vectors.astype(np.float32))
    for same in (vectors, vectors.astype(np.float64), np.asfortranarray(vectors), vectors.tolist()):
        assert np.array_equal(signer.sign(same), expected)
    assert (signer.sign(np.zeros((1, 6))) == 255).all()
    assert signer.sign(np.empty((0, 6), np.float32)).shape == (0, 8)
    for threads in (1, 3):
        assert np.array_equal(signer.sign(vectors, threads=threads), expected)


def test_large_finite_values() -> None:
    rng = np.random.default_rng(5)
    vectors = (rng.standard_normal((100, 20)) * 1e38).clip(-3e38, 3e38).astype(np.float32)
    small = vectors / np.float32(2.0**100)
    signer = la.Projection(128, 20)
    assert np.array_equal(signer.sign(vectors), signer.sign(small))


def test_bad_vectors_are_named() -> None:
    signer = la.Projection(64, 3)
    with pytest.raises(la.errors.DocumentError, match=r"shape \(2, 4\); expected \(count, 3\)"):
        signer.sign(np.zeros((2, 4)))
    with pytest.raises(la.errors.DocumentError, match=r"shape \(3,\)"):
        signer.sign(np.zeros(3))
    with pytest.raises(la.errors.DocumentError, match="vectors are complex128; expected float32"):
        signer.sign(np.zeros((2, 3), complex))
    with pytest.raises(la.errors.DocumentError, match="vector 1 has a value that is infinite"):
        signer.sign(np.array([[1, 2, 3], [1, np.nan, 3]]))
    with pytest.raises(la.errors.ArgumentError, match="dimensions is 0"):
        la.Projection(64)
