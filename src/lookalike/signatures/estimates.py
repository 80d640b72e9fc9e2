"""What a distance of signatures suggests about the documents."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.signatures.minhash import BBitMinHash
from lookalike.signatures.signer import Signer

__all__ = ["estimated_similarity"]


def estimated_similarity(signer: Signer, distances: ArrayLike, bits: int) -> NDArray[np.float64]:
    """Return the similarity that Hamming distances between signatures of `bits` bits suggest.

    The cosine where bits are signs of sums: a share of θ/π of them differs. Of b-bit MinHash, the
    Jaccard similarity: values that are not the same differ in half of their bits, on average.
    Chance takes it below 0 for what has nothing in common; that comes out as 0.
    """
    share = np.asarray(distances, np.float64) / bits
    similarity = 1 - 2 * share if isinstance(signer, BBitMinHash) else np.cos(np.pi * share)
    return np.maximum(0.0, similarity)
