"""What is compared of images besides their hashes: small gray copies, and words of stable points.

A point is a bright or dark spot that stays where it is in the image when that is cropped, framed or
scaled. Its word has the bits of what is around it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.images.decode import TURNS, Decoded

THUMBNAIL = 64
"""Gray values of a thumbnail each way, whatever the shape of the image."""
LEAST_BLOCKS = 128
"""Blocks each way that an image is reduced to for its points."""
WORD_BITS = 32
MOST_POINTS = 128
"""Points of an image, the clearest first."""
UNIT, DOUBLING = 16, 24
"""Positions of points are in 1/16 of a part; 24 more is twice as large."""
_PARTS = 160  # an image is averaged over as many parts as a square of 160 by 160 has
_FEWEST, _MOST = 16, 640  # parts of a long image, each way


class Points(NamedTuple):
    """The points of an image in one orientation."""

    words: NDArray[np.uint32]
    places: NDArray[np.int32]  # `[points, 3]`: across, down, size

    @property
    def signatures(self) -> NDArray[np.uint8]:
        """The words as signatures of 32 bits."""
        return self.words.astype("<u4").view(np.uint8).reshape(-1, WORD_BITS // 8)


@dataclass(frozen=True, eq=False)
class Details:
    """A gray copy of an image, and its points in each orientation."""

    thumbnail: NDArray[np.uint8]  # `[64, 64]`, upright
    points: tuple[Points, ...]

    def to_plain(self) -> tuple[bytes, list[tuple[bytes, bytes]]]:
        """Return values that a worker can send."""
        return self.thumbnail.tobytes(), [
            (one.words.astype("<u4").tobytes(), one.places.astype("<i4").tobytes())
            for one in self.points
        ]

    @classmethod
    def from_plain(cls, thumbnail: bytes, points: list[tuple[bytes, bytes]]) -> Details:
        """Return what `to_plain` was made of."""
        gray = np.frombuffer(thumbnail, np.uint8).reshape(THUMBNAIL, THUMBNAIL)
        return cls(
            gray,
            tuple(
                Points(
                    np.frombuffer(words, "<u4").astype(np.uint32),
                    np.frombuffer(places, "<i4").astype(np.int32).reshape(-1, 3),
                )
                for words, places in points
            ),
        )


def parts_of(width: int, height: int) -> tuple[int, int]:
    """Return the rows and columns of parts that an image is averaged over to find its points."""
    ratio = (width / height) ** 0.5
    rows, columns = (
        min(_MOST, max(_FEWEST, round(_PARTS * share))) for share in (1 / ratio, ratio)
    )
    return rows, columns


def details_of(image: Decoded, orientations: int, most_points: int = MOST_POINTS) -> Details:
    """Return the details of an image, with points in the first `orientations` of `TURNS`."""
    thumbnail = np.empty((THUMBNAIL, THUMBNAIL), np.uint8)
    gray = np.ascontiguousarray(image.gray)
    _native.image_thumbnail(gray, image.rows, image.columns, thumbnail)
    points = []
    for turn, _ in zip(TURNS, range(orientations if most_points else 0), strict=False):
        one = image.turned(turn)
        rows, columns = parts_of(one.width, one.height)
        words, *places = _native.image_points(
            np.ascontiguousarray(one.gray), one.rows, one.columns, rows, columns, most_points
        )
        points.append(Points(words, np.stack(places, 1)))
    return Details(thumbnail, tuple(points))


def turned_thumbnails(thumbnails: NDArray[np.uint8], turn: int) -> NDArray[np.uint8]:
    """Return thumbnails of images that were turned and mirrored by an entry of `TURNS`."""
    swap, upside_down, mirrored = TURNS[turn]
    found = thumbnails.transpose(0, 2, 1) if swap else thumbnails
    found = found[:, ::-1] if upside_down else found
    return np.ascontiguousarray(found[:, :, ::-1] if mirrored else found)
