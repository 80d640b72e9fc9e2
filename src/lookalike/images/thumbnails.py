"""Small pictures of images, for pages that need nothing else."""

from __future__ import annotations

import base64
import io
import os
from typing import TYPE_CHECKING, SupportsIndex

from lookalike.checks import whole_number
from lookalike.errors import DocumentError
from lookalike.images.decode import ImageSource, opened, orientation, pillow
from lookalike.shown import brief

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["shown_image", "thumbnail"]

_QUALITIES = (80, 60, 40, 20)

_OPERATIONS = {
    2: "FLIP_LEFT_RIGHT",
    3: "ROTATE_180",
    4: "FLIP_TOP_BOTTOM",
    5: "TRANSPOSE",
    6: "ROTATE_270",
    7: "TRANSVERSE",
    8: "ROTATE_90",
}
"""What Pillow calls the turns that make an image upright, by EXIF's number."""


def thumbnail(image: ImageSource, size: SupportsIndex = 160) -> str:
    """Return a small picture of an image, upright, at most `size` pixels each way, as an address.

    It is all in itself (`data:image/jpeg;base64,...`): in the metadata of a document, the page of
    `lookalike serve` shows it. What is no image, or broken, is a `DocumentError`.
    """
    pixels = whole_number("size", size, at_least=1, at_most=1024)
    try:
        return _address(_reduced(image, pixels), _QUALITIES[0])
    except DocumentError as error:
        name = brief(str(image)) if isinstance(image, str | os.PathLike) else "the image"
        raise DocumentError(f"{name} {error}") from error


def shown_image(source: ImageSource, size: int, most: int) -> str | None:
    """Return an <img> that has its picture in itself, of at most `size` pixels each way.

    None if the image cannot be read, or would take more than `most` characters.
    """
    try:
        small = _reduced(source, size)
    except DocumentError:
        return None
    for quality in _QUALITIES:
        markup = (
            f'<img alt="" width="{small.width}" height="{small.height}" '
            f'src="{_address(small, quality)}">'
        )
        if len(markup) <= most:
            return markup
    return None


def _reduced(source: ImageSource, size: int) -> Image:
    """Return it small, upright, and on white where one can see through it."""
    with opened(source) as image:
        if image is not source:
            image.draft("RGB", (2 * size, 2 * size))
        turn = orientation(image)
        small = image.convert("RGBA" if image.has_transparency_data else "RGB")
        small.thumbnail((size, size))
        if small.mode == "RGBA":
            white = pillow.new("RGBA", small.size, "white")
            white.alpha_composite(small)
            small = white.convert("RGB")
        if turn in _OPERATIONS:
            small = small.transpose(getattr(pillow.Transpose, _OPERATIONS[turn]))
        return small


def _address(small: Image, quality: int) -> str:
    made = io.BytesIO()
    small.save(made, "JPEG", quality=quality, optimize=True)
    return f"data:image/jpeg;base64,{base64.b64encode(made.getvalue()).decode()}"
