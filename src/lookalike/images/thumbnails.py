"""Thumbnails of images as data URIs."""

from __future__ import annotations

import os
from typing import SupportsIndex

from lookalike.checks import whole_number
from lookalike.errors import DocumentError
from lookalike.images.decode import ImageSource, is_in_memory, small_jpeg
from lookalike.images.workers import THUMBNAIL, ask_one
from lookalike.media import picture_address
from lookalike.shown import brief

_ADDRESS = len(picture_address(b""))


def thumbnail(image: ImageSource, size: SupportsIndex = 160) -> str:
    """Return a thumbnail of an image, upright, as a data URI (`data:image/jpeg;base64,...`).

    The page of `lookalike serve` shows such a URI in the metadata of a document. Paths and bytes
    are decoded in an isolated process.

    Args:
        image: a path, the bytes of a file, or a Pillow image.
        size: maximum width and height in pixels (default: 160).

    Raises:
        DocumentError: The image cannot be decoded, or not within the limits of docs/images.md.

    Examples:
        >>> import lookalike as la
        >>> from PIL import Image
        >>> la.images.thumbnail(Image.new("RGB", (64, 48)), size=16)[:23]
        'data:image/jpeg;base64,'
    """
    pixels = whole_number("size", size, at_least=1, at_most=1024)
    try:
        data, _, _ = _small(image, pixels, None, None)
    except DocumentError as error:
        name = brief(str(image)) if isinstance(image, str | os.PathLike) else "the image"
        raise DocumentError(f"{name} {error}") from error
    return picture_address(data)


def image_tag(
    source: ImageSource, size: int, most: int, *, memory: int | None = None
) -> str | None:
    """Return an <img> with a data URI; None if it needs more `memory` or `most` characters."""
    markup = '<img alt="" width="{}" height="{}" src="{}">'
    room = (most - len(markup) - _ADDRESS - 16) * 3 // 4
    try:
        data, width, height = _small(source, size, max(0, room), memory)
    except DocumentError:
        return None
    return markup.format(width, height, picture_address(data)) if data else None


def small_jpeg_of(source: ImageSource, size: int, most: int) -> bytes:
    """Return an image as a small JPEG, made in an isolated process; b"" if that is not possible."""
    try:
        return _small(source, size, most, None)[0]
    except DocumentError:
        return b""


def _small(
    source: ImageSource, size: int, most: int | None, memory: int | None
) -> tuple[bytes, int, int]:
    if is_in_memory(source):
        return small_jpeg(source, size, most)
    data, width, height = ask_one(source, (THUMBNAIL, size, most), memory)
    return data, width, height
