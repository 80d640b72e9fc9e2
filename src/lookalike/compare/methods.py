"""The ways to compare two documents: what stands for them, and which similarity that estimates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.features import Words
from lookalike.signatures import BBitMinHash, SimHash, TopSig

__all__ = ["BITS", "METHODS", "NGRAMS", "PERMUTATIONS", "VALUE_BYTES", "Method"]

METHODS = ("minhash", "simhash", "topsig")

VALUE_BYTES = 2
"""Of a MinHash value, as it is kept: 16 bits collide once in 65,536, which bands do not notice."""

PERMUTATIONS = 128
NGRAMS = {"minhash": 5, "simhash": 3, "topsig": 2}
BITS = {"minhash": 0, "simhash": 128, "topsig": 1024}
"""What suits each method; 0 where it goes by permutations."""


@dataclass(frozen=True, slots=True)
class Method:
    """MinHash (Jaccard similarity of sets), SimHash or TopSig (cosine of counts), and its numbers.

    Features are runs of `ngram` words. `permutations` are MinHash's, `bits` the others'.
    """

    name: str
    ngram: int
    permutations: int
    bits: int
    seed: SupportsIndex

    @classmethod
    def of(
        cls,
        name: str,
        *,
        ngram: int | None = None,
        permutations: int = PERMUTATIONS,
        bits: int | None = None,
        seed: SupportsIndex = 0,
    ) -> Method:
        """Return a method with the defaults that suit it where nothing was said."""
        return cls(
            name,
            NGRAMS[name] if ngram is None else ngram,
            permutations,
            BITS[name] if bits is None else bits,
            seed,
        )

    @property
    def measure(self) -> str:
        """What similarity means here: "jaccard" or "cosine"."""
        return "jaccard" if self.name == "minhash" else "cosine"

    def features(self) -> Words:
        """Return what documents are compared by."""
        return Words(ngram=self.ngram)

    def signer(self) -> BBitMinHash | SimHash | TopSig:
        """Return the signer; it raises where its numbers make no sense."""
        features = self.features()
        if self.name == "minhash":
            return BBitMinHash(self.permutations, 8 * VALUE_BYTES, features, self.seed)
        if self.name == "simhash":
            return SimHash(self.bits, features, seed=self.seed)
        return TopSig(self.bits, features=features, seed=self.seed, weights="count")

    def estimate(self, distances: ArrayLike) -> NDArray[np.float64]:
        """Return the similarity that distances of signatures suggest.

        Of MinHash, a distance is the number of values that differ.
        """
        far = np.asarray(distances, np.float64)
        if self.name == "minhash":
            return 1.0 - far / self.permutations
        return np.cos(math.pi * far / self.bits)
