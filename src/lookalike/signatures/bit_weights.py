"""Weights of bits, which say how sure each bit is, and masks of the bits that count."""

from __future__ import annotations

from abc import abstractmethod
from functools import cache
from typing import Any, Literal, NamedTuple, SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import as_array, flag
from lookalike.errors import ArgumentError, Said
from lookalike.shown import brief
from lookalike.signatures.signer import DocumentSigner, Signer

_QUANTUM = 1 / 1024
NORMAL_UNIT = 4096  # whole units of a standard deviation of `normal_quantiles`
_NORMALS = 1 << 15
_AT_A_TIME = 1 << 12


class BitWeightSigner(Signer):
    """A signer whose bits are signs of numbers, which it can return."""

    def sign_with_weights(
        self, documents: Any, *, quantized: bool = False, threads: SupportsIndex | None = None
    ) -> tuple[NDArray[np.uint8], NDArray[Any]]:
        """Return the signatures of `sign`, and the weights of their bits, `float32[n, bits]`.

        Weights above 0 are bits 1, below 0 bits 0. They are divided by the Euclidean length of the
        document, so each has mean 0 and variance 1 over the random choices of the signer; a bit
        with a small weight easily flips. They are the same on every machine and for any number of
        threads. With `quantized`, they are `int16` (see `la.signatures.quantize_weights`).
        """
        short = flag("quantized", quantized)
        signatures, weights = self._sign_with_weights(documents, threads)
        return signatures, quantize_weights(weights) if short else weights

    @abstractmethod
    def _sign_with_weights(
        self, documents: Any, threads: SupportsIndex | None
    ) -> tuple[NDArray[np.uint8], NDArray[np.float32]]: ...


def quantize_weights(weights: ArrayLike) -> NDArray[np.int16]:
    """Return weights of bits as `int16`: rounded down to multiples of 1/1024, from -32 to 32."""
    values = as_array("weights", weights)
    if values.size and (values.dtype.kind not in "fiu" or np.isnan(values).any()):
        raise ArgumentError(f"weights are {brief(weights)}; expected numbers, float32")
    scaled = np.floor(np.clip(values, -32, 32).astype(np.float32) / np.float32(_QUANTUM))
    quantized: NDArray[np.int16] = np.clip(scaled, -(2**15), 2**15 - 1).astype(np.int16)
    return quantized


def restore_weights(quantized: ArrayLike) -> NDArray[np.float32]:
    """Return the weights that `quantize_weights` rounded, to within half a step."""
    values = as_array("weights", quantized)
    if values.size and values.dtype.kind not in "iu":
        raise ArgumentError(
            f"weights are {brief(quantized)}; expected whole numbers, as quantize_weights returns"
        )
    return (values.astype(np.float32) + np.float32(0.5)) * np.float32(_QUANTUM)


def as_bit_weights(weights: ArrayLike, signatures: NDArray[np.uint8]) -> NDArray[np.int16]:
    """Return quantized weights of these signatures; raise if weights and bits do not agree."""
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
    """Return the 2**15 quantiles of a normal distribution above 0, in whole units.

    They are the same on every machine: none is close enough to the middle of two units to be
    rounded differently.
    """
    from statistics import NormalDist  # takes some time to import

    quantile = NormalDist(sigma=NORMAL_UNIT).inv_cdf
    shares = (0.5 + (np.arange(_NORMALS) + 0.5) / (2 * _NORMALS)).tolist()
    return np.array([round(quantile(share)) for share in shares], np.int16)


Mask: TypeAlias = bool | Literal["auto"]  # whether texts are masked: all, none, or short ones
_SHORT = 7 / 8
"""A text is short if its words decide less than this share of the bits: about 40 words by default.

Titles and first words of abstracts, of which the abstract is searched for among 120,000: with 53%
of the bits decided, 94% are in the first ten results with masks and 18% without; with 74%, 100% and
92%; with 88%, masks make no difference.
"""


class MaskedTexts(NamedTuple):
    """Signatures of texts, and which of their bits count."""

    signatures: NDArray[np.uint8]
    masks: NDArray[np.uint8]
    masked: NDArray[np.bool_]  # which texts are searched for with their masks


def as_mask(mask: object) -> Mask:
    """Return a valid choice of masks, or raise."""
    if isinstance(mask, bool | np.bool_):
        return bool(mask)
    if isinstance(mask, str) and mask == "auto":
        return "auto"
    raise ArgumentError(Said("mask"), f" is {brief(mask)}; expected True, False or 'auto'")


def sign_masked(
    signer: DocumentSigner, texts: list[str], mask: Mask, threads: SupportsIndex | None = None
) -> MaskedTexts | None:
    """Return the signatures and masks of texts, or None if no text is masked."""
    if mask is False or (mask == "auto" and signer.masks != "short texts") or not texts:
        return None
    if signer.masks == "no":
        raise ArgumentError(
            Said("mask"),
            Said("=True", " yes"),
            " is for texts signed by TopSig or SimHash, not by ",
            signer.said(),
            "; leave it out",
        )
    signatures, masks = signer.sign(texts, mask=True, threads=threads)  # type: ignore[call-arg]
    masked = np.ones(len(texts), bool)
    if mask == "auto":
        counted = np.bitwise_count(masks).sum(axis=1, dtype=np.int64)
        masked = (counted > 0) & (counted < _SHORT * 8 * masks.shape[1])
    return MaskedTexts(signatures, masks, masked) if masked.any() else None
