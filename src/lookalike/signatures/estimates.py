"""What a distance of signatures suggests about the documents."""

from __future__ import annotations

import math
from typing import SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import instance, real_array, share, whole_number
from lookalike.signatures.arrays import MAX_BITS
from lookalike.signatures.minhash import BBitMinHash
from lookalike.signatures.signer import Signer

__all__ = ["estimated_radius", "estimated_similarity", "proposal_radius"]

_DEVIATIONS = 2.4
"""Of a normal distribution, which leave one in a hundred above."""


def estimated_similarity(
    signer: Signer, distances: ArrayLike, bits: SupportsIndex
) -> NDArray[np.float64]:
    """Return the similarity that Hamming distances between signatures of `bits` bits suggest.

    The cosine where bits are signs of sums: a share of θ/π of them differs. Of b-bit MinHash, the
    Jaccard similarity: values that are not the same differ in half of their bits, on average.
    Chance takes it below 0 for what has nothing in common; that comes out as 0.
    """
    instance("signer", signer, Signer, "a signer, such as la.SimHash()")
    width = _width(bits)
    part = real_array("distances", distances, at_least=0, at_most=width) / width
    similarity = 1 - 2 * part if isinstance(signer, BBitMinHash) else np.cos(np.pi * part)
    return np.maximum(0.0, similarity)


def estimated_radius(signer: Signer, threshold: SupportsFloat, bits: SupportsIndex) -> int:
    """Return the largest distance whose `estimated_similarity` is at least the threshold."""
    instance("signer", signer, Signer, "a signer, such as la.SimHash()")
    wanted = share("threshold", threshold)
    # The estimate falls with the distance, so that the last one that is high enough can be halved
    # towards; rounding of the estimate itself is then part of the answer.
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


def proposal_radius(signer: Signer, threshold: SupportsFloat, bits: int) -> int:
    """Return a distance within which nearly all documents of that similarity are.

    Signatures scatter around the distance that a similarity comes to: half of the documents at the
    threshold are farther. Of those at most one in a hundred is beyond this distance; whoever can
    compare the documents themselves takes it, and leaves out what is less similar.
    """
    wanted = share("threshold", threshold)
    if isinstance(signer, BBitMinHash):
        # A value that differs does so in half of its bits, more or less.
        differing = signer.permutations * (1 - wanted)
        variance = differing * wanted * (signer.b / 2) ** 2 + differing * signer.b / 4
        mean = differing * signer.b / 2
    else:
        chance = math.acos(wanted) / math.pi
        mean, variance = bits * chance, bits * chance * (1 - chance)
    return min(bits, math.ceil(mean + _DEVIATIONS * math.sqrt(variance)))
