"""The similarity that signatures of a signer estimate, of the documents themselves."""

from __future__ import annotations

from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.features.similarity import cosine_pairs, jaccard_pairs
from lookalike.signatures.minhash import BBitMinHash, MinHash
from lookalike.signatures.signer import DocumentSigner, WeightedSigner

__all__ = ["estimated_measure", "exact_similarity"]


def estimated_measure(signer: DocumentSigner) -> str:
    """Return what similarity signatures of a signer estimate: "jaccard" or "cosine"."""
    return "jaccard" if isinstance(signer, MinHash | BBitMinHash) else "cosine"


def exact_similarity(
    signer: DocumentSigner,
    documents: Any,
    left: ArrayLike,
    right: ArrayLike,
    *,
    threads: SupportsIndex | None = None,
) -> NDArray[np.float64]:
    """Return how similar `documents[left[i]]` and `documents[right[i]]` are.

    Jaccard similarity of the signer's features for MinHash, for the others the cosine by its
    weights: nothing is estimated.
    """
    if estimated_measure(signer) == "jaccard":
        return jaccard_pairs(documents, left, right, signer.features, threads=threads)
    weights = signer.weights_in_use if isinstance(signer, WeightedSigner) else "count"
    return cosine_pairs(documents, left, right, signer.features, weights, threads=threads)
