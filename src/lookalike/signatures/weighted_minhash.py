"""Weighted MinHash: estimates of weighted Jaccard similarity (Ioffe)."""

from __future__ import annotations

from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.checks import thread_count, whole_number
from lookalike.features import FeatureKind, Weights, Words
from lookalike.features.below_zero import none_below_zero
from lookalike.features.growing import GrowingArray
from lookalike.signatures.signed_rows import ValueSigner, marked
from lookalike.signatures.signer import WeightedSigner

__all__ = ["WeightedMinHash"]


class WeightedMinHash(ValueSigner, WeightedSigner):
    """One feature drawn for each of `permutations`, the heavier the likelier (Ioffe's ICWS).

    Two documents draw the same with probability J, their weighted Jaccard similarity: the sum of
    the lesser weights of all features over that of the greater ones (`la.weighted_jaccard`). So the
    share of equal values estimates J without bias, with the standard error
    sqrt(J·(1 - J) / permutations). A value is a hash of what was drawn: it differs where the draws
    do, but for once in 2**32. Unlike those of `MinHash`, rows cannot be united. `weights` are as
    those of `SimHash`. A document without features has 2**32 - 1 everywhere. Costs some 40 ns for
    each feature and permutation, many times that of `MinHash`.
    """

    def __init__(
        self,
        permutations: SupportsIndex = 128,
        features: FeatureKind | None = None,
        weights: str | Weights = "count",
        seed: SupportsIndex = 0,
    ) -> None:
        super().__init__(Words() if features is None else features, weights, seed)
        self.permutations = whole_number("permutations", permutations, at_least=1, at_most=2**20)

    def sign(self, documents: Any, *, threads: SupportsIndex | None = None) -> NDArray[np.uint32]:
        """Return the values, `uint32[n, permutations]`, marked as those of `MinHash` are."""
        kind, vocabulary = self.weights.native()
        values = GrowingArray((self.permutations,), np.uint32, documents)
        for source in none_below_zero(self.features.sources(documents)):
            block = values.block(len(source))
            _native.weighted_minhash(
                source, kind, vocabulary, self.seed, thread_count(threads), block
            )
        return marked(values.take(), self.mark)
