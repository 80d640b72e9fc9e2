"""What distances of signatures suggest about documents, and what is true of them."""

from __future__ import annotations

import math
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import instance, real_array, share, whole_number
from lookalike.features.similarity import cosine_pairs, jaccard_pairs, weighted_jaccard_pairs
from lookalike.signatures.arrays import MAX_BITS
from lookalike.signatures.signer import DocumentSigner, Signer, WeightedSigner

_DEVIATIONS = 2.4
"""Of a normal distribution, which leave one in a hundred above."""


def estimated_similarity(
    signer: Signer, distances: ArrayLike, bits: SupportsIndex
) -> NDArray[np.float64]:
    """Return the similarity that Hamming distances between signatures of `bits` bits suggest.

    It is the measure of the signer: the cosine where bits are signs of sums, the Jaccard similarity
    of b-bit MinHash. Estimates below 0, which chance gives to documents that share nothing, become
    0.
    """
    instance("signer", signer, Signer, "a signer, such as la.SimHash()")
    width = _width(bits)
    part = real_array("distances", distances, at_least=0, at_most=width) / width
    return np.maximum(0.0, signer._estimate(part, 1))


def estimated_radius(signer: Signer, threshold: SupportsFloat, bits: SupportsIndex) -> int:
    """Return the largest distance whose `estimated_similarity` is at least the threshold."""
    instance("signer", signer, Signer, "a signer, such as la.SimHash()")
    wanted = share("threshold", threshold)
    # The estimate falls with the distance. Bisection makes rounding of the estimate part of the
    # answer.
    low, high = 0, _width(bits)
    while low < high:
        middle = (low + high + 1) // 2
        if estimated_similarity(signer, middle, bits) >= wanted:
            low = middle
        else:
            high = middle - 1
    return low


def _width(bits: SupportsIndex) -> int:
    return whole_number("bits", bits, at_least=1, at_most=MAX_BITS)


def expected_distance(signer: Signer, similarity: SupportsFloat, bits: int) -> float:
    """Return the mean distance of signatures of `bits` bits of documents at a similarity."""
    return signer._expected_distance(share("similarity", similarity), bits)[0]


def proposal_radius(signer: Signer, threshold: SupportsFloat, bits: int) -> int:
    """Return a distance within which nearly all documents of that similarity are.

    Signatures scatter around the distance that a similarity comes to: half of the documents at the
    threshold are farther. At most one in a hundred of them is beyond this distance. It is for
    callers that compare the documents themselves afterwards.
    """
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
    """Return the similarity of `documents[left[i]]` and `documents[right[i]]`, by the features and
    the measure of the signer; nothing is estimated.
    """
    if signer.measure == "jaccard":
        return jaccard_pairs(documents, left, right, signer.features, threads=threads)
    compare = weighted_jaccard_pairs if signer.measure == "weighted_jaccard" else cosine_pairs
    weights = signer.weights_in_use if isinstance(signer, WeightedSigner) else "count"
    return compare(documents, left, right, signer.features, weights, threads=threads)
