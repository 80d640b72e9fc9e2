"""Which images are copies of old ones that are known only by their hashes.

There are no gray values to compare, so fewer bits may differ. Bits that are not clear are mostly
those of smooth images, and say little: two different pictures of a sky have them in common. So the
clear bits have to agree more than they would by chance.
"""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import NDArray

from lookalike.errors import ArgumentError, Said
from lookalike.images.image_hash import ImageHash
from lookalike.indexes import SliceIndex
from lookalike.media import SignedItems
from lookalike.signatures.signer import Signer

RADIUS = {("dct", 64): 1, ("dct", 256): 10, ("pdq", 256): 31}
"""Maximum distance where hashes alone decide; docs/images.md has what they find. That of PDQ is
recommended by its authors. Of "gradient", even equal hashes are often those of different images."""
_EVIDENCE = 40.0
"""Bits: one in 2**40 different images would agree as well in the clear bits, were these random."""


def signer_of(signed: SignedItems, usual: ImageHash) -> ImageHash:
    """Return the signer of old images; a list of hashes is one of PDQ, if the job uses these."""
    signer: Signer | None = signed.signer
    if isinstance(signer, ImageHash) and (signer.kind, signer.bits) in RADIUS:
        return signer
    if isinstance(signer, ImageHash):
        raise ArgumentError(
            Said("against"),
            f" is {signed.name} with hashes of the kind {signer.kind!r}, which are too often those "
            "of different images to decide alone. Sign old images by 'dct' or 'pdq', or give files",
        )
    if signer is not None or signed.parts:
        raise ArgumentError(
            Said("against"),
            f" is {signed.name}, which was not signed by la.ImageHash; expected hashes of images",
        )
    bits = 8 * signed.signatures.shape[1]
    if usual.kind != "pdq" or bits != usual.bits:
        raise ArgumentError(
            Said("against"),
            f" is {signed.name}, a list of hashes of {bits} bits, which does not tell how they "
            "were made. If these are PDQ hashes (of 256 bits), use ",
            Said("hash='pdq'", "--hash pdq"),
            "; otherwise give a file that `lookalike sign` wrote",
        )
    return usual


def most_differing(signer: ImageHash, quality: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return in how many bits images may differ from an old one, by the quality of their hashes."""
    radius = RADIUS[signer.kind, signer.bits]
    if signer.kind == "pdq":  # all bits count, and the quality is not a number of bits
        return np.where(quality >= signer.least_quality, radius, -1)
    by_bits = np.array([_within(clear, radius) for clear in range(signer.bits + 1)])
    most: NDArray[np.int64] = by_bits[np.clip(quality, 0, signer.bits)]
    return most


def _within(clear: int, radius: int) -> int:
    """Return in how many of the clear bits an image may differ; -1: even equal bits say nothing."""
    chances, most = 0, -1
    while most < radius:
        chances += comb(clear, most + 1)
        if chances > 2.0 ** (clear - _EVIDENCE):
            break
        most += 1
    return most


def pairs_by_hashes(
    old: NDArray[np.uint8],
    hashes: NDArray[np.uint8],
    most: NDArray[np.int64],
    *,
    threads: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """Return the old image, the new one and the distance of each pair.

    `hashes` has those of new images in each orientation, `most` in how many bits they may differ.
    """
    rows = np.flatnonzero(most >= 0)
    found = []
    if len(rows) and len(old):
        index = SliceIndex(old, threads=threads)
        for number in range(hashes.shape[1]):
            queries = np.ascontiguousarray(hashes[rows, number])
            matches = index.within(queries, int(most.max()), threads=threads)
            right = np.repeat(rows, np.diff(matches.offsets))
            near = matches.distances <= most[right]
            found.append((matches.ids[near], right[near], matches.distances[near]))
    left, right, distance = (
        np.concatenate([np.empty(0, kind), *(one[place] for one in found)]).astype(kind)
        for place, kind in enumerate((np.int64, np.int64, np.int32))
    )
    return left, right, distance
