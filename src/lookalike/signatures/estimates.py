"""Similarities estimated from distances of signatures, and exact ones."""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import instance, real_array, share, whole_number
from lookalike.features.similarity import similarity_pairs
from lookalike.signatures.arrays import MAX_BITS
from lookalike.signatures.signer import DocumentSigner, Signer, WeightedSigner

_DEVIATIONS = 2.4  # standard deviations that 1% of a normal distribution exceeds


def estimated_similarity(
    signer: Signer, distances: ArrayLike, bits: SupportsIndex
) -> NDArray[np.float64]:
    """Estimate the similarity of documents from the Hamming distance of their signatures.

    Args:
        signer: Signer of the signatures; its measure is estimated (cosine or Jaccard similarity).
        distances: Hamming distances.
        bits: Number of bits of a signature.

    Returns:
        Similarities from 0 to 1.

    Examples:
        >>> la.estimated_similarity(la.SimHash(bits=64), [0, 32], bits=64).round(2).tolist()
        [1.0, 0.0]
    """
    instance("signer", signer, Signer, "a signer, such as la.SimHash()")
    width = whole_number("bits", bits, at_least=1, at_most=MAX_BITS)
    part = real_array("distances", distances, at_least=0, at_most=width) / width
    return np.maximum(0.0, signer._estimate(part, 1))


def estimated_radius(signer: Signer, threshold: SupportsFloat, bits: SupportsIndex) -> int:
    """Return the largest distance whose `estimated_similarity` is at least the threshold.

    Examples:
        >>> la.estimated_radius(la.SimHash(bits=64), 0.9, bits=64)
        9
    """
    instance("signer", signer, Signer, "a signer, such as la.SimHash()")
    wanted = share("threshold", threshold)
    width = whole_number("bits", bits, at_least=1, at_most=MAX_BITS)

    def is_less(distance: int) -> bool:
        return bool(estimated_similarity(signer, distance, width) < wanted)

    return bisect_left(range(width + 1), True, lo=1, key=is_less) - 1


def expected_distance(signer: Signer, similarity: SupportsFloat, bits: int) -> float:
    """Return the mean distance of signatures of `bits` bits at a similarity of documents."""
    return signer._expected_distance(share("similarity", similarity), bits)[0]


def proposal_radius(signer: Signer, threshold: SupportsFloat, bits: int) -> int:
    """Return a distance within which 99% of all pairs at the threshold are, to be verified."""
    mean, variance = signer._expected_distance(share("threshold", threshold), bits)
    return min(bits, math.ceil(mean + _DEVIATIONS * math.sqrt(variance)))


def exact_similarity(
    signer: DocumentSigner,
    documents: Any,
    left: ArrayLike,
    right: ArrayLike,
    *,
    threads: SupportsIndex | None = None,
) -> NDArray[np.float64]:
    """Return the exact similarity of pairs of documents, by the signer's features and measure."""
    weights = signer.weights_in_use if isinstance(signer, WeightedSigner) else "count"
    return similarity_pairs(
        signer.measure, documents, left, right, signer.features, weights, threads=threads
    )
