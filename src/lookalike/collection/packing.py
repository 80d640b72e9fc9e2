"""The parts of a document as one value of a table, known by its digest.

Positions, 8 bytes each, are followed by signatures; how many there are the length tells.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lookalike.parts.index import FARTHEST
from lookalike.parts.signer import SignedParts

__all__ = ["DIGEST_BYTES", "MOST_PARTS_BYTES", "digest_of", "packed", "unpacked"]

DIGEST_BYTES = 32
MOST_PARTS_BYTES = 256 << 20
"""That the parts of a document may take: 24 hours of sound take 21 MB."""

_POSITION = np.dtype("<i8")


def packed(signatures: NDArray[np.uint8], offsets: NDArray[np.int64]) -> bytes:
    """Return parts as they are stored."""
    return offsets.astype(_POSITION).tobytes() + np.ascontiguousarray(signatures).tobytes()


def unpacked(data: bytes, bits: int) -> SignedParts | None:
    """Return parts of so many bits that were packed; None if these bytes cannot be."""
    width = bits // 8
    count, rest = divmod(len(data), _POSITION.itemsize + width)
    if rest:
        return None
    end = count * _POSITION.itemsize
    offsets = np.frombuffer(data[:end], _POSITION).astype(np.int64)
    if ((offsets < -FARTHEST) | (offsets > FARTHEST)).any():
        return None
    return SignedParts(np.frombuffer(data[end:], np.uint8).reshape(count, width), offsets)


def digest_of(data: bytes) -> bytes:
    """Return what packed parts are known by: nobody finds others of the same digest."""
    import hashlib  # takes milliseconds to import, which not everybody needs

    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest()
