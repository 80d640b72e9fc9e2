"""SimHash: bits whose distance follows the cosine of weighted features (Charikar; Manku et al.)."""

from __future__ import annotations

from typing import Any, Literal, SupportsIndex, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike import _native
from lookalike.checks import as_array, flag, real_array, thread_count, whole_number
from lookalike.errors import ArgumentError, Said
from lookalike.features import FeatureKind, Weights, Words
from lookalike.features.growing import GrowingArray
from lookalike.shown import brief
from lookalike.signatures.arrays import MAX_BITS
from lookalike.signatures.signer import WeightedSigner

__all__ = ["SimHash", "quantize_weights", "restore_weights", "signature_bits"]

_QUANTUM = 1 / 1024

LEAST_WEIGHT = 0.5
"""Of bits that count in a mask: by titles that look for their abstracts, the best of 0.5 to 2."""


class SimHash(WeightedSigner):
    """Algorithm 1 of Sood and Loguinov, for any number of bits that is a multiple of 8.

    Each feature has a hash of `bits` bits; it adds its weight to every counter where its hash has a
    1, and subtracts it elsewhere. The signs of the counters are the signature; 0 counts as
    positive. `weights` are "uniform", "count", "log-count", "tfidf" or "log-likelihood"; the last
    two are learnt by `fit`. The first 64 bits of a feature's hash are the feature itself if the
    seed is 0. A document without features has all bits set.
    """

    def __init__(
        self,
        bits: SupportsIndex = 64,
        features: FeatureKind | None = None,
        weights: str | Weights = "count",
        seed: SupportsIndex = 0,
    ) -> None:
        super().__init__(Words() if features is None else features, weights, seed)
        self.bits = signature_bits(bits)

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
        """Return the signatures, `uint8[n, bits // 8]`; with `mask=True` their masks, too.

        A mask has the bits whose weight, as `sign_with_weights` gives it, is above `least_weight`
        or below its negative: those that the document's words are clear about. It is for queries
        (`index.search(signatures, k, masks=masks)`); weights take 4 bytes a bit meanwhile.
        """
        masked = flag("mask", mask)
        least = real_array("least_weight", least_weight, at_least=0)
        if least.ndim:
            raise ArgumentError(f"least_weight is {brief(least_weight)}; expected one number")
        signatures, weights = self._sign(documents, threads, weighted=masked)
        if not masked:
            return signatures
        return signatures, np.packbits(np.abs(weights) > least, axis=1, bitorder="little")

    def sign_with_weights(
        self, documents: Any, *, quantized: bool = False, threads: SupportsIndex | None = None
    ) -> tuple[NDArray[np.uint8], NDArray[Any]]:
        """Return signatures and the counters behind them, `float32[n, bits]`.

        Counters are divided by the Euclidean length of the document's weights, so that each has
        mean 0 and variance 1 over random hashes; a small one is a bit that easily flips. Negative
        counters are the bits 0, the others the bits 1. With `quantized`, the counters come as
        `int16` (see `la.quantize_weights`), half the size.
        """
        short = flag("quantized", quantized)
        signatures, counters = self._sign(documents, threads, weighted=True)
        return signatures, quantize_weights(counters) if short else counters

    def _sign(
        self, documents: Any, threads: SupportsIndex | None, weighted: bool
    ) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        kind, vocabulary = self.weights.native()
        signatures = GrowingArray((self.bits // 8,), np.uint8, documents)
        counters = GrowingArray((self.bits,), np.float32, documents if weighted else ())
        for source in self.features.sources(documents):
            _native.simhash(
                source,
                kind,
                vocabulary,
                self.seed,
                thread_count(threads),
                signatures.block(len(source)),
                counters.block(len(source)) if weighted else None,
            )
        return signatures.take(), counters.take()


def quantize_weights(weights: ArrayLike) -> NDArray[np.int16]:
    """Return SimHash counters in 16 bits: the multiple of 1/1024 below, cut off at -32 and 32.

    Signs are kept: what was negative stays so, and 0 stays at least 0.
    """
    values = as_array("weights", weights)
    if values.size and (values.dtype.kind not in "fiu" or np.isnan(values).any()):
        raise ArgumentError(f"weights are {brief(weights)}; expected numbers, float32")
    limited = np.clip(values, -32, 32).astype(np.float32)  # beyond it, what is infinite is too
    scaled = np.floor(limited / np.float32(_QUANTUM))
    quantized: NDArray[np.int16] = np.clip(scaled, -(2**15), 2**15 - 1).astype(np.int16)
    return quantized


def restore_weights(quantized: ArrayLike) -> NDArray[np.float32]:
    """Return the counters that `quantize_weights` cut, to within half a step."""
    values = as_array("weights", quantized)
    if values.size and values.dtype.kind not in "iu":
        raise ArgumentError(
            f"weights are {brief(quantized)}; expected whole numbers, as quantize_weights returns"
        )
    return (values.astype(np.float32) + np.float32(0.5)) * np.float32(_QUANTUM)


def signature_bits(bits: SupportsIndex) -> int:
    """Return a valid number of bits, or raise."""
    number = whole_number("bits", bits, at_least=8, at_most=MAX_BITS)
    if number % 8:
        raise ArgumentError(Said("bits"), f" is {number}; expected a multiple of 8")
    return number
