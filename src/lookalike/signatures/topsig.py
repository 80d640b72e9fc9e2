"""TopSig: ternary random indexing, cut to its signs (Geva and De Vries)."""

from __future__ import annotations

from typing import Any, Literal, SupportsIndex, overload

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.checks import flag, thread_count, whole_number
from lookalike.features import FeatureKind, Weights, Words
from lookalike.features.base import GrowingArray
from lookalike.signatures.bit_weights import BitWeightSigner
from lookalike.signatures.signer import DedupDefaults, DocumentSigner, WeightedSigner
from lookalike.signatures.simhash import signature_bits


class TopSig(WeightedSigner, BitWeightSigner):
    """Signatures of texts by ternary random indexing (Geva and De Vries).

    Each term has a random vector: one of every `density` adjacent values is +1 or -1, the others
    are 0. A signature is the sign of the weighted sum. A document without features has no bit set.

    Args:
        bits: Number of bits, a multiple of 8 (default: 1024).
        density: One value in this many is not 0 (default: 21).
        features: Features of a document (default: `la.Words()`).
        seed: Random seed (default: 0).
        weights: Kind of weights (default: "log-likelihood"; counts until `fit` was called).

    Examples:
        >>> signer = la.TopSig(bits=1024).fit(["some text", "other words"])
        >>> signer.sign(["some text"]).shape
        (1, 128)
    """

    usual_bits = 1024
    # Pairs lie nearer than the mean distance.
    dedup_defaults = DedupDefaults(ngram=2, deviations=1.2, fitted_weights="log-likelihood")
    # A word decides one bit in `density`; in SimHash it counts for all of them, and masks find few
    # more titles.
    masks = "short texts"
    sparse = True

    def __init__(
        self,
        bits: SupportsIndex = 1024,
        density: SupportsIndex = 21,
        features: FeatureKind | None = None,
        seed: SupportsIndex = 0,
        weights: str | Weights = "log-likelihood",
    ) -> None:
        super().__init__(Words() if features is None else features, weights, seed)
        self.bits = signature_bits(bits)
        self.density = whole_number("density", density, at_least=1, at_most=self.bits)

    @classmethod
    def _for_dedup(
        cls, features: FeatureKind, *, bits: int, permutations: int, seed: SupportsIndex
    ) -> DocumentSigner:
        return cls(bits, features=features, seed=seed, weights="count")

    @property
    def weights_in_use(self) -> Weights:
        """The weights that `sign` uses now: counts until `fit` was called."""
        weights = self.weights
        return Weights("count") if weights.learns and weights.vocabulary is None else weights

    @overload
    def sign(
        self, documents: Any, *, mask: Literal[False] = False, threads: SupportsIndex | None = None
    ) -> NDArray[np.uint8]: ...
    @overload
    def sign(
        self, documents: Any, *, mask: Literal[True], threads: SupportsIndex | None = None
    ) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]: ...
    def sign(
        self, documents: Any, *, mask: bool = False, threads: SupportsIndex | None = None
    ) -> NDArray[np.uint8] | tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """Return signatures `uint8[n, bits // 8]`; with `mask=True` also their masks.

        A mask has the bits that the words of a document decide: those whose sum is not 0. A query
        of a few words, searched with its mask (`index.search(signatures, k, masks=masks)`), finds
        documents that contain these words.
        """
        masked = flag("mask", mask)
        signatures, _, masks = self._sign(documents, 0, threads, masked)
        return (signatures, masks) if masked else signatures

    def sign_parts(
        self, documents: Any, terms: SupportsIndex, *, threads: SupportsIndex | None = None
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Return signatures of parts of documents, and the position of the document of each part.

        A document is cut into parts of about equal length, each of at most `terms` features.
        """
        most = whole_number("terms", terms, at_least=1)
        signatures, parts, _ = self._sign(documents, most, threads, False)
        return signatures, np.repeat(np.arange(len(parts)), parts)

    def _sign_with_weights(
        self, documents: Any, threads: SupportsIndex | None
    ) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        sums = GrowingArray((self.bits,), np.float32, documents)
        signatures, _, _ = self._sign(documents, 0, threads, False, sums)
        return signatures, sums.take()

    def _sign(
        self,
        documents: Any,
        terms: int,
        threads: SupportsIndex | None,
        masked: bool,
        sums: GrowingArray | None = None,
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.uint8]]:
        kind, vocabulary = self.weights_in_use.native()
        width = self.bits // 8
        parts = GrowingArray((), np.int64, documents)
        signatures = GrowingArray((width,), np.uint8, documents)
        masks = GrowingArray((width,), np.uint8, documents if masked else ())
        for source in self.features.sources(documents):
            totals = None if sums is None else sums.block(len(source))
            settings = (kind, vocabulary, width, self.density, self.seed, terms)
            counts, rows, touched = _native.topsig(
                source, *settings, thread_count(threads), masked, totals
            )
            parts.block(len(counts))[:] = counts
            signatures.block(int(counts.sum()))[:] = rows.reshape(-1, width)
            if masked:
                masks.block(int(counts.sum()))[:] = touched.reshape(-1, width)
        return signatures.take(), parts.take(), masks.take()
