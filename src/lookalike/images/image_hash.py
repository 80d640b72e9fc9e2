"""ImageHash: bits that rarely change when an image is scaled, recompressed or brightened.

An image becomes a grid of averages, in units of 1/256 of a gray level. Bits are signs of sums of
products of whole numbers below 2**53, so they are exact in doubles and equal on every machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.checks import one_of, thread_count, whole_number
from lookalike.errors import ArgumentError, DocumentError, Said
from lookalike.images.decode import TURNS, Decoded, ImageSource, decoded, in_rgb, is_one_image
from lookalike.images.details import LEAST_BLOCKS, Details, details_of
from lookalike.images.workers import HASH, LEAST_MEMORY, ask_each, decoding_budget
from lookalike.shown import brief
from lookalike.signatures.signer import Signer

KINDS = ("dct", "gradient", "pdq")
BITS = {"dct": (64, 256), "gradient": (64, 256), "pdq": (256,)}
"""Numbers of bits of each kind, the default first."""
# Rows and columns of the grid; a pixel on a border counts for both parts by its share.
GRIDS = {
    ("dct", 64): (32, 32),
    ("dct", 256): (64, 64),
    ("gradient", 64): (8, 9),
    ("gradient", 256): (16, 17),
}
RADIUS = {
    ("dct", 64): 11,
    ("dct", 256): 56,
    ("gradient", 64): 11,
    ("gradient", 256): 48,
    ("pdq", 256): 31,
}
"""Maximum distance of copies, chosen on other scenes than those of docs/images.md; that of PDQ is
recommended by its authors."""
LEAST_QUALITY = {"dct": 16, "gradient": 16, "pdq": 50}
"""Minimum quality of a meaningful hash; images of (nearly) one color or a gradient have less."""
PDQ_BYTES = 32
_LEVEL = 256  # units of a gray level
_ONE = 4096  # factor of cosines: with 64 by 64 averages of 16 bits, sums stay below 2**53


def write_bits(kind: str, bits: int, image: Decoded, signature: NDArray[np.uint8]) -> int:
    """Write the bits of an image, and return how many of them are clear.

    A bit is 1 if its wave is higher than 1/8 of a gray level, or its step higher than one, so that
    noise does not decide it. It is clear if the height or depth is at least twice that.
    """
    gray = np.ascontiguousarray(image.gray)
    return _loops(kind, bits).sign(gray, image.rows, image.columns, signature)


@cache
def _loops(kind: str, bits: int) -> _native.ImageBits:
    """Return the C++ code for the lowest frequencies of the cosine transform, or for steps."""
    rows, columns = GRIDS[kind, bits]
    if kind == "gradient":
        return _native.ImageBits.of_steps(rows, columns, _LEVEL)
    down, across = _frequencies(bits)
    # A wave that is one gray level high adds up to a quarter of all parts.
    least = _LEVEL * rows * columns // 4 * _ONE * _ONE // 8
    return _native.ImageBits.of_waves(_cosines(rows, int(down.max()) + 1), down, across, least)


def _cosines(size: int, count: int) -> NDArray[np.float64]:
    """Return waves of 0, 1, ... halves, rounded to whole numbers."""
    angles = np.pi * np.arange(count)[:, None] * (2 * np.arange(size) + 1) / (2 * size)
    cosines: NDArray[np.float64] = np.rint(_ONE * np.cos(angles))
    return cosines


def _frequencies(bits: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the frequencies (v, u) of each bit, in half waves down and across, without (0, 0).

    They are sorted by v + u, then by the larger one, then by u.
    """
    most = 2 * int(bits**0.5) + 1
    down, across = (half.ravel() for half in np.mgrid[:most, :most])
    order = np.lexsort((across, np.maximum(down, across), down + across))[1 : bits + 1]
    return down[order], across[order]


@dataclass(frozen=True, eq=False)
class HashedImage:
    """The hash of an image, and facts about it."""

    signatures: NDArray[np.uint8]  # one signature, or one for each of the eight orientations
    quality: int  # number of clear bits; for PDQ, its quality from 0 to 100
    width: int
    height: int
    format: str  # such as JPEG; empty for a Pillow image that is not from a file
    details: Details | None = None


class ImageHash(Signer):
    """A perceptual hash of images: 64 or 256 bits that small edits rarely change.

    Scaling, compressing, brightening and small crops change few bits. With `kind="dct"`, a bit is 1
    if a low frequency of the luminance is higher than 1/8 of a gray level. With `kind="gradient"`,
    it is 1 if a part of the image is brighter than its left neighbor by more than one level.
    docs/images.md defines every bit; equal pixels have equal bits on every machine. Needs the extra
    `images`.

    With `kind="pdq"`, the hash is Meta's PDQ, equal in every bit to that of `pdqhash.compute`, so
    lists of hashes that others share can be searched. As other programs hash files, it ignores EXIF
    orientation and transparency.

    Args:
        bits: 64 or 256 (default: 64; always 256 for "pdq").
        kind: "dct", "gradient" or "pdq" (default: "dct").

    Examples:
        >>> import lookalike as la
        >>> from PIL import Image
        >>> la.ImageHash().sign([Image.new("L", (64, 64)), Image.linear_gradient("L")]).shape
        (2, 8)
    """

    medium = "images"
    reads_files = True
    _seeded: ClassVar[bool] = False

    def __init__(self, bits: SupportsIndex | None = None, kind: str = "dct") -> None:
        self.kind = one_of("kind", kind, KINDS)
        allowed = BITS[self.kind]
        self.bits = allowed[0] if bits is None else whole_number("bits", bits, at_least=1)
        if self.bits not in allowed:
            expected = " or ".join(map(str, allowed))
            raise ArgumentError(Said("bits"), f" is {self.bits}; expected {expected}")

    @property
    def radius(self) -> int:
        """The usual maximum Hamming distance of copies of an image."""
        return RADIUS[self.kind, self.bits]

    @property
    def least_quality(self) -> int:
        """The minimum quality of a meaningful hash; see `sign_with_quality`."""
        return LEAST_QUALITY[self.kind]

    def sign(
        self,
        images: ImageSource | Iterable[ImageSource],
        *,
        orientations: SupportsIndex = 1,
        threads: SupportsIndex | None = None,
        memory_limit: SupportsIndex | None = None,
    ) -> NDArray[np.uint8]:
        """Return the signatures, `uint8[n, bits // 8]`, of one image or many.

        An image is the path of a file, its bytes, or a Pillow image. EXIF orientation is applied.

        Args:
            orientations: 1, or 8 to return `uint8[n, 8, bits // 8]`: the image in all orientations,
                turned and mirrored. Search with these to find turned copies.
            threads: number of isolated processes that decode paths and bytes.
            memory_limit: bytes of memory for all processes (default: 1 GiB, or 176 MiB for each
                processor core if that is more).

        Raises:
            DocumentError: An image cannot be decoded within the limits; it names the first.
        """
        turns = whole_number("orientations", orientations, at_least=1)
        if turns not in (1, len(TURNS)):
            raise ArgumentError(Said("orientations"), f" is {turns}; expected 1 or 8")
        found = [one.signatures for one in self._hashed(images, turns, threads, memory_limit)]
        rows = np.array(found, np.uint8).reshape(len(found), turns, self.bits // 8)
        return rows[:, 0] if turns == 1 else rows

    def sign_with_quality(
        self,
        images: ImageSource | Iterable[ImageSource],
        *,
        threads: SupportsIndex | None = None,
        memory_limit: SupportsIndex | None = None,
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Return the signatures, and the quality of each; see `sign`.

        The quality is the number of clear bits, or for PDQ its quality from 0 to 100. An image with
        less than `least_quality` has (nearly) one color, and its hash is meaningless.
        """
        found = list(self._hashed(images, 1, threads, memory_limit))
        rows = np.array([one.signatures[0] for one in found], np.uint8)
        quality = np.array([one.quality for one in found], np.int64)
        return rows.reshape(len(found), self.bits // 8), quality

    def each(
        self,
        images: Iterable[ImageSource],
        *,
        orientations: int = 1,
        points: int | None = None,
        threads: int = 1,
        memory: int | None = None,
    ) -> Iterator[HashedImage | DocumentError]:
        """Yield the hash of each image, or why it could not be read, in order; see `sign`.

        With `points`, also details of each image with at most this number of points.
        """
        wanted = HASH, self.bits, self.kind, orientations, points
        budget = decoding_budget(memory)

        def here(image: ImageSource) -> HashedImage | DocumentError:
            try:
                return hashed_image(self, image, orientations, points)
            except DocumentError as error:
                return error

        for answer in ask_each(images, wanted, here, threads=threads, budget=budget):
            if isinstance(answer, HashedImage | DocumentError):
                yield answer
            else:
                packed, quality, width, height, format, plain = answer
                rows = np.frombuffer(packed, np.uint8).reshape(orientations, self.bits // 8)
                details = None if plain is None else Details.from_plain(*plain)
                yield HashedImage(rows, quality, width, height, format, details)

    def _hashed(
        self,
        images: Any,
        orientations: int,
        threads: SupportsIndex | None,
        memory_limit: SupportsIndex | None,
    ) -> Iterator[HashedImage]:
        workers, sources = thread_count(threads), _sources(images)
        memory = None
        if memory_limit is not None:
            memory = whole_number("memory_limit", memory_limit, at_least=LEAST_MEMORY)
        for position, found in enumerate(
            self.each(sources, orientations=orientations, threads=workers, memory=memory)
        ):
            if isinstance(found, DocumentError):
                raise DocumentError(f"image {position}", *_named(images, position), f": {found}")
            yield found


def hashed_image(
    signer: ImageHash,
    source: ImageSource,
    orientations: int,
    points: int | None = None,
    memory: int | None = None,
) -> HashedImage:
    """Decode and hash an image in this process; `MemoryNeededError` beyond `memory` bytes."""
    if signer.kind == "pdq":
        found = _pdq(source, orientations, memory)
        if points is None:
            return found
        image = decoded(source, LEAST_BLOCKS, memory)  # upright, unlike the hash
        details = details_of(image, orientations, points)
        return replace(found, width=image.width, height=image.height, details=details)
    rows, columns = GRIDS[signer.kind, signer.bits]
    least = 2 * columns if signer.kind == "dct" else 8 * rows  # enough for parts to differ
    if points is not None:
        least = max(least, LEAST_BLOCKS)
    image = decoded(source, least, memory)
    signatures = np.empty((orientations, signer.bits // 8), np.uint8)
    clear = [
        write_bits(signer.kind, signer.bits, image.turned(turn), row)
        for turn, row in zip(TURNS, signatures, strict=False)
    ]
    shown = None if points is None else details_of(image, orientations, points)
    return HashedImage(signatures, clear[0], image.width, image.height, image.format, shown)


def _pdq(source: ImageSource, orientations: int, memory: int | None) -> HashedImage:
    signatures = np.empty((orientations, PDQ_BYTES), np.uint8)
    with in_rgb(source, memory) as image:
        hasher = _native.Pdq.of(image.height, image.width)
        for strip in image.strips:
            hasher.feed(strip)
    quality = hasher.finish(signatures)
    return HashedImage(signatures, quality, image.width, image.height, image.format)


def _sources(images: Any) -> Iterable[ImageSource]:
    """Return several images; the values of an Arrow column."""
    if is_one_image(images):
        return [images]
    if hasattr(images, "to_pylist"):
        images = images.to_pylist()
    if not isinstance(images, Iterable) or (isinstance(images, np.ndarray) and not images.ndim):
        raise DocumentError(
            f"images is {brief(images)} of type {type(images).__name__}; expected one or many "
            "paths, bytes or Pillow images"
        )
    return images


def _named(images: Any, position: int) -> list[str]:
    """Return the path of an image, if it is known."""
    if isinstance(images, list | tuple):
        images = images[position]
    return [f" ({os.fspath(images)!r})"] if isinstance(images, str | os.PathLike) else []
