"""The ways to compare two documents: what stands for them, and which similarity that estimates."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.features import FeatureKind
from lookalike.features.choice import FeatureChoice, chosen_features, chosen_words
from lookalike.features.text import Lengths
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

    `permutations` are MinHash's, `bits` the others'.
    """

    name: str
    features: FeatureKind
    permutations: int
    bits: int
    seed: SupportsIndex

    @classmethod
    def of(
        cls,
        name: str,
        *,
        features: FeatureChoice = "words",
        ngram: Lengths | None = None,
        stop_words: str | Iterable[str] | None = None,
        stem: str | None = None,
        permutations: int = PERMUTATIONS,
        bits: int | None = None,
        seed: SupportsIndex = 0,
    ) -> Method:
        """Return a method with the defaults that suit it where nothing was said."""
        return cls(
            name,
            chosen_features(
                features,
                ngram=ngram,
                words_ngram=NGRAMS[name],
                stop_words=stop_words,
                stem=stem,
            ),
            permutations,
            BITS[name] if bits is None else bits,
            seed,
        )

    @property
    def measure(self) -> str:
        """The similarity that its signatures estimate: "jaccard" or "cosine"."""
        return "jaccard" if self.name == "minhash" else "cosine"

    @property
    def ngram(self) -> Lengths | None:
        """Words or characters that make a feature; words, where both do. None where that is the
        caller's matter.
        """
        return getattr(chosen_words(self.features) or self.features, "ngram", None)

    def signer(self) -> BBitMinHash | SimHash | TopSig:
        """Return the signer; it raises where its numbers make no sense."""
        if self.name == "minhash":
            return BBitMinHash(self.permutations, 8 * VALUE_BYTES, self.features, self.seed)
        if self.name == "simhash":
            return SimHash(self.bits, self.features, seed=self.seed)
        return TopSig(self.bits, features=self.features, seed=self.seed, weights="count")

    def estimate(self, distances: ArrayLike) -> NDArray[np.float64]:
        """Return the similarity that distances of signatures suggest.

        Of MinHash, a distance is the number of values that differ.
        """
        far = np.asarray(distances, np.float64)
        if self.name == "minhash":
            return 1.0 - far / self.permutations
        return np.cos(math.pi * far / self.bits)
