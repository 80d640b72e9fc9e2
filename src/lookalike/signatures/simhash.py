"""SimHash: bits whose distance follows the cosine of weighted features (Charikar; Manku et al.)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, SupportsIndex, overload

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.checks import flag, one_of, real_array, thread_count, whole_number
from lookalike.errors import ArgumentError, Said
from lookalike.features import FeatureKind, Weights, Words
from lookalike.features.base import GrowingArray
from lookalike.shown import brief
from lookalike.signatures.arrays import MAX_BITS
from lookalike.signatures.bit_weights import NORMAL_UNIT, BitWeightSigner, normal_quantiles
from lookalike.signatures.signer import DedupDefaults, WeightedSigner

_VECTORS = ("signs", "gaussian")
LEAST_WEIGHT = 0.5
"""Weight of bits in a mask: titles find their abstracts best with it, of 0.5 to 2."""


class SimHash(WeightedSigner, BitWeightSigner):
    """Signatures of texts whose Hamming distance follows the cosine of weighted features.

    Each feature has a hash of `bits` bits. It adds its weight to every counter where its hash has a
    1, and subtracts it elsewhere. The signature is the signs of the counters (algorithm 1 of Sood
    and Loguinov). A document without features has all bits set.

    Args:
        bits: Number of bits, a multiple of 8 (default: 64).
        features: Features of a document (default: `la.Words()`).
        weights: "uniform", "count", "log-count", "tfidf" or "log-likelihood" (default: "count").
            Call `fit` first for the last two.
        seed: Random seed (default: 0).
        vectors: "signs", or "gaussian" for a normal random number per feature and bit. That is
            better for short documents, and several times slower.

    Examples:
        >>> signer = la.SimHash(bits=64)
        >>> a, b, c = signer.sign(["the quick brown fox", "the quick brown dog", "lorem ipsum"])
        >>> bool(la.hamming(a, b)[0] < la.hamming(a, c)[0])
        True
    """

    usual_bits = 128
    dedup_defaults = DedupDefaults(ngram=3, deviations=2.2)
    masks = "on request"
    _added_later: ClassVar[dict[str, Any]] = {"vectors": "signs"}

    def __init__(
        self,
        bits: SupportsIndex = 64,
        features: FeatureKind | None = None,
        weights: str | Weights = "count",
        seed: SupportsIndex = 0,
        vectors: str = "signs",
    ) -> None:
        super().__init__(Words() if features is None else features, weights, seed)
        self.bits = signature_bits(bits)
        self.vectors = one_of("vectors", vectors, _VECTORS)

    @overload
    def sign(
        self,
        documents: Any,
        *,
        mask: Literal[False] = False,
        least_weight: float = LEAST_WEIGHT,
        threads: SupportsIndex | None = None,
    ) -> NDArray[np.uint8]: ...
    @overload
    def sign(
        self,
        documents: Any,
        *,
        mask: Literal[True],
        least_weight: float = LEAST_WEIGHT,
        threads: SupportsIndex | None = None,
    ) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]: ...
    def sign(
        self,
        documents: Any,
        *,
        mask: bool = False,
        least_weight: float = LEAST_WEIGHT,
        threads: SupportsIndex | None = None,
    ) -> NDArray[np.uint8] | tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """Return signatures `uint8[n, bits // 8]`; with `mask=True` also their masks.

        A mask has the bits that the words of a document decide clearly. Masks are for queries:
        `index.search(signatures, k, masks=masks)`.

        Args:
            documents: List, Arrow column or iterable of `str`.
            mask: Return masks, too.
            least_weight: Smallest magnitude of the weight of a bit in a mask (default: 0.5).
            threads: Number of threads (default: all cores).
        """
        masked = flag("mask", mask)
        least = real_array("least_weight", least_weight, at_least=0)
        if least.ndim:
            raise ArgumentError(f"least_weight is {brief(least_weight)}; expected one number")
        signatures, weights = self._sign(documents, threads, weighted=masked)
        if not masked:
            return signatures
        return signatures, np.packbits(np.abs(weights) > least, axis=1, bitorder="little")

    def _sign_with_weights(
        self, documents: Any, threads: SupportsIndex | None
    ) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        return self._sign(documents, threads, weighted=True)

    def _sign(
        self, documents: Any, threads: SupportsIndex | None, weighted: bool
    ) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        kind, vocabulary = self.weights.native()
        signatures = GrowingArray((self.bits // 8,), np.uint8, documents)
        counters = GrowingArray((self.bits,), np.float32, documents if weighted else ())
        for source in self.features.sources(documents):
            sums = counters.block(len(source)) if weighted else None
            rows, workers = signatures.block(len(source)), thread_count(threads)
            if self.vectors == "signs":
                _native.simhash(source, kind, vocabulary, self.seed, workers, rows, sums)
            else:
                normals = (normal_quantiles(), NORMAL_UNIT)
                _native.normal_simhash(
                    source, kind, vocabulary, self.seed, *normals, workers, rows, sums
                )
        return signatures.take(), counters.take()


def signature_bits(bits: SupportsIndex) -> int:
    """Return a valid number of bits, or raise."""
    number = whole_number("bits", bits, at_least=8, at_most=MAX_BITS)
    if number % 8:
        raise ArgumentError(Said("bits"), f" is {number}; expected a multiple of 8")
    return number
