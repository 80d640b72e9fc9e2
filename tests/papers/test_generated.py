"""Generated fingerprints are what they are said to be."""

from __future__ import annotations

import math

import numpy as np
import pytest
from papers.generated import (
    COPIED,
    EDIT_MEDIAN,
    EDIT_SPREAD,
    generate_fingerprints,
    signs,
)

import lookalike as la


def test_the_same_seed_gives_the_same_fingerprints() -> None:
    one, two = (generate_fingerprints(5000, 300, edited=0.5, seed=4) for _ in range(2))
    assert np.array_equal(one.signatures, two.signatures)
    assert np.array_equal(one.weights, two.weights)
    assert not np.array_equal(one.signatures, generate_fingerprints(5000, 300).signatures)


def test_weights_are_behind_the_bits() -> None:
    made = generate_fingerprints(1000, 2000)
    assert np.array_equal(signs(made.weights), made.queries)
    assert np.array_equal(
        np.packbits(made.weights >= 0, axis=1, bitorder="little").view("<u8")[:, 0], made.queries
    )


def test_the_collection_is_like_the_queries() -> None:
    """Bits of documents without weights are set as often as those that weights are behind."""
    made = generate_fingerprints(200_000, 50_000)
    shares = [
        np.unpackbits(words.view(np.uint8).reshape(-1, 8), axis=1, bitorder="little").mean(axis=0)
        for words in (made.signatures, made.queries)
    ]
    assert np.abs(shares[0] - shares[1]).max() < 0.015
    assert 0.04 < shares[0].std() < 0.12
    assert made.weights.std() == pytest.approx(math.hypot(1, 0.19), abs=0.03)


def test_partners_are_edited_copies() -> None:
    made = generate_fingerprints(300_000, 100_000, edited=0.2)
    query, row = made.partners.T
    assert len(np.unique(row)) == len(row)
    assert len(np.unique(query)) == pytest.approx(20_000, rel=0.05)
    assert len(query) / len(np.unique(query)) == pytest.approx(1.43, abs=0.03)
    distances = la.hamming(made.queries[query], made.signatures[row])
    # What the model gives, integrated numerically: the angle between weights that differ by s.
    spreads = np.exp(np.random.default_rng(0).normal(math.log(EDIT_MEDIAN), EDIT_SPREAD, 20_000))
    flip = np.arctan(spreads) / math.pi
    near = sum(math.comb(64, d) * flip**d * (1 - flip) ** (64 - d) for d in range(4))
    expected = COPIED + (1 - COPIED) * float(np.mean(near))
    assert (distances <= 3).mean() == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("edited", [0, 1.5, "much"])
def test_a_share_that_is_none_is_named(edited: float) -> None:
    with pytest.raises(la.errors.ArgumentError, match="edited is"):
        generate_fingerprints(10, 10, edited=edited)
