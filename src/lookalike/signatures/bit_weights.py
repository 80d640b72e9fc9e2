"""The numbers behind the bits: who gives them, how they are cut to 16 bits, and back."""

from __future__ import annotations

from abc import abstractmethod
from functools import cache
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import as_array, flag
from lookalike.errors import ArgumentError
from lookalike.shown import brief
from lookalike.signatures.signer import Signer

__all__ = [
    "NORMAL_UNIT",
    "BitWeightSigner",
    "as_bit_weights",
    "normal_quantiles",
    "quantize_weights",
    "restore_weights",
]

_QUANTUM = 1 / 1024

NORMAL_UNIT = 4096
"""Whole units that are 1, of random numbers that are normal."""

_NORMALS = 1 << 15
_AT_A_TIME = 1 << 12


class BitWeightSigner(Signer):
    """A signer whose bits are signs of numbers, which it gives, too."""

    def sign_with_weights(
        self, documents: Any, *, quantized: bool = False, threads: SupportsIndex | None = None
    ) -> tuple[NDArray[np.uint8], NDArray[Any]]:
        """Return the signatures of `sign`, and the numbers behind their bits, `float32[n, bits]`.

        Sums are divided by the Euclidean length of what was signed, so that each has mean 0 and
        variance 1 over the random choices of the signer; a small one is a bit that easily flips.
        Those above 0 are the bits 1, those below 0 the bits 0, and one that is 0 is what `sign`
        makes of it. The same on every machine, for any number of threads. With `quantized`, they
        come as `int16` (see `la.quantize_weights`), half the size.
        """
        short = flag("quantized", quantized)
        signatures, weights = self._sign_with_weights(documents, threads)
        return signatures, quantize_weights(weights) if short else weights

    @abstractmethod
    def _sign_with_weights(
        self, documents: Any, threads: SupportsIndex | None
    ) -> tuple[NDArray[np.uint8], NDArray[np.float32]]: ...


def quantize_weights(weights: ArrayLike) -> NDArray[np.int16]:
    """Return the weights of bits in 16 bits: the multiple of 1/1024 below, cut off at -32 and 32.

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
    """Return the weights that `quantize_weights` cut, to within half a step."""
    values = as_array("weights", quantized)
    if values.size and values.dtype.kind not in "iu":
        raise ArgumentError(
            f"weights are {brief(quantized)}; expected whole numbers, as quantize_weights returns"
        )
    return (values.astype(np.float32) + np.float32(0.5)) * np.float32(_QUANTUM)


def as_bit_weights(weights: ArrayLike, signatures: NDArray[np.uint8]) -> NDArray[np.int16]:
    """Return the weights behind the bits of signatures in 16 bits, or raise if they are others'."""
    array = as_array("weights", weights)
    shape = (len(signatures), 8 * signatures.shape[1])
    if array.shape != shape:
        raise ArgumentError(
            f"weights have shape {array.shape}; expected {shape}, one for each bit of each "
            "signature, as sign_with_weights returns them"
        )
    if array.dtype != np.int16:
        array = quantize_weights(array)
    for begin in range(0, len(array), _AT_A_TIME):
        part = slice(begin, begin + _AT_A_TIME)
        bits = np.unpackbits(signatures[part], axis=1, bitorder="little")
        wrong = np.where(bits == 1, array[part] < 0, array[part] > 0).any(axis=1)
        if wrong.any():
            raise ArgumentError(
                f"weights of signature {begin + int(wrong.argmax())} have other signs than its "
                "bits; expected those that sign_with_weights returned with it"
            )
    return np.ascontiguousarray(array)


@cache
def normal_quantiles() -> NDArray[np.int16]:
    """Return what 15 random bits choose from: normal numbers above 0, in whole units.

    They are the middles, by probability, of as many parts of that half, none so near the middle
    between two units that another logarithm would round it otherwise: the same on every machine.
    """
    from statistics import NormalDist  # takes some time to import

    quantile = NormalDist(sigma=NORMAL_UNIT).inv_cdf
    shares = (0.5 + (np.arange(_NORMALS) + 0.5) / (2 * _NORMALS)).tolist()
    return np.array([round(quantile(share)) for share in shares], np.int16)
