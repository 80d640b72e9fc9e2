"""ImageHash: bits that stay when an image is scaled, recompressed or made brighter."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, ClassVar, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import one_of, thread_count, whole_number
from lookalike.errors import ArgumentError, DocumentError, Said
from lookalike.images.bits import GRIDS, KINDS, write_bits
from lookalike.images.decode import TURNS, ImageSource, decoded, is_one_image
from lookalike.shown import brief
from lookalike.signatures.signer import Signer

__all__ = ["LEAST_QUALITY", "RADIUS", "HashedImage", "ImageHash"]

BITS = (64, 256)

LEAST_QUALITY = 16
"""Clear bits below which a hash says nothing of an image: it is (nearly) of one colour, or one
shade that passes into another.
"""

RADIUS = {("dct", 64): 11, ("dct", 256): 56, ("gradient", 64): 11, ("gradient", 256): 48}
"""Most bits in which copies differ: chosen on drawn scenes other than those of docs/images.md."""

_BATCH = 4
"""Images that a thread is given at once: to hand over each by itself would take as long as a small
one.
"""
_BATCHES_AHEAD = 4
"""For each thread."""


@dataclass(frozen=True, eq=False)
class HashedImage:
    """What was found out about one image."""

    signatures: NDArray[np.uint8]
    """One, or one for each of the eight orientations."""
    quality: int
    """How many bits are clear."""
    width: int
    height: int
    format: str
    """Such as JPEG; empty for an image that was in no file."""


class ImageHash(Signer):
    """A perceptual hash of images: 64 or 256 bits, most of which stay when an image is scaled,
    recompressed, made brighter, or cut a little at its edges.

    `kind="dct"`: the lowest frequencies of the cosine transform of the image's luminance but for
    the mean; a bit is 1 where the wave is higher than 1/8 of a grey level. `kind="gradient"`: 1
    where a part of the image is brighter than its neighbour on the left, by more than a level.
    docs/images.md has the definition to the last bit, which is the same on every machine for the
    same pixels; how a JPEG is decoded is up to the library that does it.
    Colours do not count. `radius` is in how many bits copies differ at most, as a rule.
    Needs the extra `images`.
    """

    _seeded: ClassVar[bool] = False

    def __init__(self, bits: SupportsIndex = 64, kind: str = "dct") -> None:
        self.bits = whole_number("bits", bits, at_least=1)
        if self.bits not in BITS:
            raise ArgumentError(Said("bits"), f" is {self.bits}; expected 64 or 256")
        self.kind = one_of("kind", kind, KINDS)

    @property
    def radius(self) -> int:
        """In how many bits copies of an image differ at most, as a rule."""
        return RADIUS[self.kind, self.bits]

    def sign(
        self,
        images: ImageSource | Iterable[ImageSource],
        *,
        orientations: SupportsIndex = 1,
        threads: SupportsIndex | None = None,
    ) -> NDArray[np.uint8]:
        """Return the signatures, `uint8[n, bits // 8]`, of one image or many.

        An image is the path of a file, its bytes, or an image of Pillow, upright as EXIF says. With
        `orientations=8`, `uint8[n, 8, bits // 8]`: as it is, and turned and mirrored in all ways,
        from one decoding. That is for queries: the index has each image once, and a turned copy is
        within the radius of one of the eight.
        `DocumentError` names the first image that cannot be read; Pillow's limit against
        decompression bombs is one reason.
        """
        turns = _orientations(orientations)
        found = [one.signatures for one in self._hashed(images, turns, threads)]
        rows = np.array(found, np.uint8).reshape(len(found), turns, self.bits // 8)
        return rows[:, 0] if turns == 1 else rows

    def sign_with_quality(
        self,
        images: ImageSource | Iterable[ImageSource],
        *,
        threads: SupportsIndex | None = None,
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Return the signatures, and of each how many of its bits are clear.

        Below 16 a hash says nothing: the image is of one colour, or nearly. All such images have
        much the same bits, whatever they are.
        """
        found = list(self._hashed(images, 1, threads))
        rows = np.array([one.signatures[0] for one in found], np.uint8)
        quality = np.array([one.quality for one in found], np.int64)
        return rows.reshape(len(found), self.bits // 8), quality

    def each(
        self,
        images: Iterable[ImageSource],
        *,
        orientations: int = 1,
        threads: int = 1,
    ) -> Iterator[HashedImage | DocumentError]:
        """Yield what was found out about each image, or why it could not be read, in their order.

        Some are decoded ahead, by so many threads: Pillow lets others work meanwhile.
        """
        work = partial(self._one, orientations=orientations)
        if threads == 1:
            yield from map(work, images)
            return
        ahead: deque[Future[list[HashedImage | DocumentError]]] = deque()
        pool = ThreadPoolExecutor(threads)
        try:
            for some in _batches(images, threads):
                ahead.append(pool.submit(lambda batch: list(map(work, batch)), some))
                if len(ahead) >= _BATCHES_AHEAD * threads:
                    yield from ahead.popleft().result()
            while ahead:
                yield from ahead.popleft().result()
        finally:  # nobody asks for the others, if there are any
            pool.shutdown(cancel_futures=True)

    def _one(self, source: ImageSource, orientations: int) -> HashedImage | DocumentError:
        try:
            image = decoded(source, self._least_size)
        except DocumentError as error:
            return error
        signatures = np.empty((orientations, self.bits // 8), np.uint8)
        clear = [
            write_bits(self.kind, self.bits, image.turned(turn), row)
            for turn, row in zip(TURNS, signatures, strict=False)
        ]
        return HashedImage(signatures, clear[0], image.width, image.height, image.format)

    def _hashed(
        self, images: Any, orientations: int, threads: SupportsIndex | None
    ) -> Iterator[HashedImage]:
        workers, sources = thread_count(threads), _sources(images)
        for position, found in enumerate(
            self.each(sources, orientations=orientations, threads=workers)
        ):
            if isinstance(found, DocumentError):
                raise DocumentError(f"image {position}", *_named(images, position), f": {found}")
            yield found

    @property
    def _grid(self) -> tuple[int, int]:
        return GRIDS[self.kind, self.bits]

    @property
    def _least_size(self) -> int:
        """Blocks that an image is reduced to at least: enough for parts of a grid to differ."""
        return 2 * self._grid[1] if self.kind == "dct" else 8 * self._grid[0]


def _batches(images: Iterable[ImageSource], threads: int) -> Iterator[list[ImageSource]]:
    """Yield batches, of few images smaller ones, so that all threads have work."""
    remaining = iter(images)
    while some := list(islice(remaining, _BATCH * threads)):
        size = -(-len(some) // threads)
        yield from (some[at : at + size] for at in range(0, len(some), size))


def _orientations(count: SupportsIndex) -> int:
    turns = whole_number("orientations", count, at_least=1)
    if turns not in (1, len(TURNS)):
        raise ArgumentError(Said("orientations"), f" is {turns}; expected 1 or 8")
    return turns


def _sources(images: Any) -> Iterable[ImageSource]:
    """Return several images; columns of Arrow as what is in them."""
    if is_one_image(images):
        return [images]
    if hasattr(images, "to_pylist"):
        images = images.to_pylist()
    if not isinstance(images, Iterable) or (isinstance(images, np.ndarray) and not images.ndim):
        raise DocumentError(
            f"images are {brief(images)} of type {type(images).__name__}; expected paths, bytes or "
            "images of Pillow, one or many"
        )
    return images


def _named(images: Any, position: int) -> list[str]:
    """Return the path of an image, if it is known."""
    if isinstance(images, list | tuple):
        images = images[position]
    return [f" ({os.fspath(images)!r})"] if isinstance(images, str | os.PathLike) else []
