"""Small pictures of images, for pages that need nothing else."""

from __future__ import annotations

import base64
import io

from lookalike.errors import DocumentError
from lookalike.images.decode import ImageSource, opened, orientation, pillow

__all__ = ["thumbnail"]

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


def thumbnail(source: ImageSource, size: int, most: int) -> str | None:
    """Return an <img> whose picture, upright and of at most `size` pixels each way, is in it.

    None if the image cannot be read, or would take more than `most` characters.
    """
    try:
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
            for quality in _QUALITIES:
                made = io.BytesIO()
                small.save(made, "JPEG", quality=quality, optimize=True)
                data = base64.b64encode(made.getvalue()).decode()
                markup = (
                    f'<img alt="" width="{small.width}" height="{small.height}" '
                    f'src="data:image/jpeg;base64,{data}">'
                )
                if len(markup) <= most:
                    return markup
    except DocumentError:
        return None
    return None
