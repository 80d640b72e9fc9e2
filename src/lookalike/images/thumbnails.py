"""Thumbnails of images as data URIs."""

from __future__ import annotations

import base64
import io
import os
from typing import TYPE_CHECKING, SupportsIndex

from lookalike.checks import whole_number
from lookalike.errors import DocumentError
from lookalike.images.decode import (
    ImageSource,
    check_memory,
    is_in_memory,
    on_white,
    opened,
    orientation,
    pillow,
)
from lookalike.images.workers import THUMBNAIL, ask_one
from lookalike.shown import brief

if TYPE_CHECKING:
    from PIL.Image import Image

_QUALITIES = (80, 60, 40, 20)
_ADDRESS = "data:image/jpeg;base64,"

_OPERATIONS = {
    2: "FLIP_LEFT_RIGHT",
    3: "ROTATE_180",
    4: "FLIP_TOP_BOTTOM",
    5: "TRANSPOSE",
    6: "ROTATE_270",
    7: "TRANSVERSE",
    8: "ROTATE_90",
}
"""Pillow's names of what makes an image upright, by EXIF orientation."""


def thumbnail(image: ImageSource, size: SupportsIndex = 160) -> str:
    """Return a thumbnail of an image, upright, at most `size` pixels each way, as a data URI.

    The page of `lookalike serve` shows such a URI (`data:image/jpeg;base64,...`) in the metadata of
    a document. A path or bytes are decoded in an isolated process.

    Raises:
        DocumentError: The image cannot be decoded, or not within the limits of docs/images.md.
    """
    pixels = whole_number("size", size, at_least=1, at_most=1024)
    try:
        data, _, _ = _small(image, pixels, None, None)
    except DocumentError as error:
        name = brief(str(image)) if isinstance(image, str | os.PathLike) else "the image"
        raise DocumentError(f"{name} {error}") from error
    return _address(data)


def shown_image(
    source: ImageSource, size: int, most: int, *, memory: int | None = None
) -> str | None:
    """Return an <img> of at most `size` pixels each way, with a data URI.

    None if the image cannot be read in `memory` bytes, or would take more than `most` characters.
    """
    markup = '<img alt="" width="{}" height="{}" src="{}">'
    room = (most - len(markup) - len(_ADDRESS) - 16) * 3 // 4
    try:
        data, width, height = _small(source, size, max(0, room), memory)
    except DocumentError:
        return None
    return markup.format(width, height, _address(data)) if data else None


def _small(
    source: ImageSource, size: int, most: int | None, memory: int | None
) -> tuple[bytes, int, int]:
    if is_in_memory(source):
        return small_jpeg(source, size, most)
    data, width, height = ask_one(source, (THUMBNAIL, size, most), memory)
    return data, width, height


def small_jpeg(
    source: ImageSource, size: int, most: int | None, memory: int | None = None
) -> tuple[bytes, int, int]:
    """Return an image as a JPEG of at most `size` pixels each way, its width and its height.

    With `most`, the quality is lowered until it has at most that many bytes; empty if it cannot.
    """
    small = _reduced(source, size, memory)
    for quality in _QUALITIES:
        made = io.BytesIO()
        small.save(made, "JPEG", quality=quality, optimize=True)
        if most is None or len(made.getvalue()) <= most:
            return made.getvalue(), small.width, small.height
    return b"", small.width, small.height


def _reduced(source: ImageSource, size: int, memory: int | None) -> Image:
    """Return an image reduced, upright, and on white where it is transparent."""
    with opened(source, memory) as image:
        full = image.size
        if image is not source:
            image.draft("RGB", (2 * size, 2 * size))
        check_memory(image, full, memory)
        turn = orientation(image)
        mode = "L" if image.mode in ("1", "L") else "RGB"
        if image.has_transparency_data:
            mode = "RGBA"
        whole = image if image.mode == mode else image.convert(mode)
        shrink = min(1, size / image.width, size / image.height)
        target = max(1, round(image.width * shrink)), max(1, round(image.height * shrink))
        small = whole.resize(target, pillow.Resampling.BICUBIC, reducing_gap=2.0)
        if small.mode == "RGBA":
            small = on_white(small).convert("RGB")
        if turn in _OPERATIONS:
            small = small.transpose(getattr(pillow.Transpose, _OPERATIONS[turn]))
        return small


def _address(data: bytes) -> str:
    return f"{_ADDRESS}{base64.b64encode(data).decode()}"
