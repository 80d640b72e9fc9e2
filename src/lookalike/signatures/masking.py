"""Which texts are compared by the bits that their words decide, and not by all."""

from __future__ import annotations

from typing import Literal, NamedTuple, SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lookalike.errors import ArgumentError, Said
from lookalike.shown import brief
from lookalike.signatures.signer import DocumentSigner
from lookalike.signatures.simhash import SimHash
from lookalike.signatures.topsig import TopSig

__all__ = ["Mask", "MaskedTexts", "as_mask", "masks_short_texts", "sign_masked"]

Mask: TypeAlias = bool | Literal["auto"]
"""Whether texts are masked: all, none, or those that are short."""

_SHORT = 7 / 8
"""Of the bits, which a short text's words touch less than: with the usual density some 40 words.

Of titles, and of the first words of abstracts, that look for the abstract they belong to, among
120,000: with 53% of the bits touched, 94% are found among the first ten with masks and 18% without;
with 74%, 100% and 92%; with 88%, as many either way.
"""


class MaskedTexts(NamedTuple):
    """Signatures of texts, and which of their bits count."""

    signatures: NDArray[np.uint8]
    masks: NDArray[np.uint8]
    masked: NDArray[np.bool_]
    """Which texts are to be searched for with their masks."""


def as_mask(mask: object) -> Mask:
    """Return whether texts are to be masked, or say what was expected."""
    if isinstance(mask, bool | np.bool_):
        return bool(mask)
    if isinstance(mask, str) and mask == "auto":
        return "auto"
    raise ArgumentError(Said("mask"), f" is {brief(mask)}; expected True, False or 'auto'")


def masks_short_texts(signer: object) -> bool:
    """Return whether short texts are masked without being asked for.

    Of TopSig alone, of whose bits a word touches one in `density`. With SimHash every word speaks
    about every bit: masks find a few titles in a hundred more, and distances would change meaning.
    """
    return isinstance(signer, TopSig)


def sign_masked(
    signer: DocumentSigner, texts: list[str], mask: Mask, threads: SupportsIndex | None = None
) -> MaskedTexts | None:
    """Return texts with their masks; None if none is to be used, and plain signatures will do.

    Signers without masks are refused if they are asked for.
    """
    if mask is False or (mask == "auto" and not masks_short_texts(signer)) or not texts:
        return None
    if not isinstance(signer, TopSig | SimHash):
        raise ArgumentError(
            Said("mask"),
            Said("=True", " yes"),
            " is for texts signed by TopSig or SimHash, not by ",
            signer.said(),
            "; leave it out",
        )
    signatures, masks = signer.sign(texts, mask=True, threads=threads)
    masked = np.ones(len(texts), bool)
    if mask == "auto":
        counted = np.bitwise_count(masks).sum(axis=1, dtype=np.int64)
        masked = (counted > 0) & (counted < _SHORT * signer.bits)  # without words, nothing counts
    return MaskedTexts(signatures, masks, masked) if masked.any() else None
