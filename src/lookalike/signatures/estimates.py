"""Similarities estimated from distances of signatures, and exact ones."""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import lru_cache
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import instance, real_array, share, whole_number
from lookalike.features.similarity import similarity_pairs
from lookalike.signatures.arrays import MAX_BITS
from lookalike.signatures.signer import DocumentSigner, Signer, WeightedSigner

_DEVIATIONS = 2.4  # standard deviations that 1% of a normal distribution exceeds
_FEWER = 4  # standard deviations by which a pair decides fewer bits than all
_COUNTED_AT_A_TIME = 1 << 16
_RARE = 100  # one divided by the probability that random signatures are this near


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


@lru_cache(maxsize=1024)
def chance_distance(bits: int, count: int) -> int:
    """Return the largest distance that none of `count` random signatures is expected to have.

    With a probability of at least 99%, all of them are farther; -1 if even 0 is not rare enough.
    """
    most, reached, ways = (1 << bits) // (_RARE * max(1, count)), 0, 1
    for distance in range(bits + 1):
        reached += ways  # signatures up to this distance
        if reached > most:
            return distance - 1
        ways = ways * (bits - distance) // (distance + 1)
    return bits


def set_bits(signatures: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return the number of set bits of each signature."""
    counts = np.empty(len(signatures), np.int64)
    for begin in range(0, len(signatures), _COUNTED_AT_A_TIME):
        part = slice(begin, begin + _COUNTED_AT_A_TIME)
        counts[part] = np.bitwise_count(signatures[part]).sum(axis=1, dtype=np.int64)
    return counts


def ones_of_pairs(
    signer: Signer, signatures: NDArray[np.uint8], left: NDArray[np.int64], right: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the number of set bits of pairs of rows; 0 where the signer's estimates ignore it."""
    if not signer.sparse:
        return np.zeros(len(left), np.int64)
    used, places = np.unique(np.concatenate([left, right]), return_inverse=True)
    counts = set_bits(signatures[used])[places]
    ones: NDArray[np.int64] = counts[: len(left)] + counts[len(left) :]
    return ones


def decided_distances(
    signer: Signer, distances: ArrayLike, bits: int, ones: ArrayLike
) -> NDArray[np.float64]:
    """Return distances of pairs as if the words of each pair decided all bits.

    A word decides few bits of a sparse signature, and all others are 0. So texts of a few words
    agree in most bits without a word in common. Of the bits that a pair decides, those that differ
    are set on one side. Of those that agree, half are set on both. So the set bits of both, `ones`,
    and the distance add up to the number of decided bits. The distance is scaled by that number if
    it is clearly below `bits`. A pair without a set bit gets the distance of unrelated texts.
    """
    far = np.asarray(distances, np.float64)
    if not signer.sparse:
        return far
    decided = np.asarray(ones, np.float64) + far
    few = decided < bits - _FEWER * math.sqrt(bits)
    scaled = np.where(decided > 0, far / np.maximum(decided, 1) * bits, bits / 2)
    return np.where(few, scaled, far)


def estimated_pairs(
    signer: Signer, distances: ArrayLike, bits: int, ones: ArrayLike
) -> NDArray[np.float64]:
    """Return `estimated_similarity` over the bits that the words of each pair decide.

    `ones` is the number of set bits of both signatures of each pair (`set_bits`).
    """
    return estimated_similarity(signer, decided_distances(signer, distances, bits, ones), bits)


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
