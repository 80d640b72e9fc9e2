"""What is kept of images that were read, so that unchanged files need not be read again."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from lookalike.images.decode import pillow
from lookalike.images.details import Details, Points
from lookalike.images.image_hash import HashedImage, ImageHash
from lookalike.storage.file_cache import Kept, packed, unpacked


def kept_of_images(signer: ImageHash, orientations: int, points: int | None) -> Kept[HashedImage]:
    """Return what is kept of images that `ImageHash.each` reads with these arguments."""
    versions = [import_module("PIL").__version__, pillow.MAX_IMAGE_PIXELS]
    if "HEIF" in pillow.OPEN:  # of another package, which its user has registered
        versions.append(import_module("pillow_heif").__version__)
    made_by = ["images", versions, signer.to_dict(), orientations, points]
    return Kept(made_by, _pack, _unpack)


def _pack(image: HashedImage) -> bytes:
    facts: list[Any] = [image.quality, image.width, image.height, image.format]
    if image.details is None:
        return packed(facts, image.signatures)
    points = image.details.points
    places = np.concatenate([np.empty((0, 3), np.int32), *(one.places for one in points)])
    narrow = places.astype(np.int16)
    return packed(
        [*facts, [len(one.words) for one in points]],
        image.signatures,
        image.details.thumbnail,
        np.concatenate([np.empty(0, np.uint32), *(one.words for one in points)]),
        narrow if (narrow == places).all() else places,
    )


def _unpack(data: bytes) -> HashedImage:
    (quality, width, height, format, *counts), arrays = unpacked(data)
    details = None
    if counts:
        _, thumbnail, words, places = arrays
        wide, begin, points = places.astype(np.int32), 0, []
        for count in counts[0]:
            own = slice(begin, begin + count)
            points.append(Points(words[own], wide[own]))
            begin += count
        details = Details(thumbnail, tuple(points))
    return HashedImage(arrays[0], quality, width, height, format, details)
