"""How much memory an image takes to decode: known from its header, before it is decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["HEADER_BYTES", "MemoryNeededError", "check_header", "check_memory"]

HEADER_BYTES = 30
"""Bytes at the beginning of a file that `check_header` looks at."""

_ALWAYS = 16 << 20
"""Bytes for metadata and for the buffers of a decoder."""

_OWN = {"1": 1, "L": 1, "P": 1, "I;16": 2, "I;16L": 2, "I;16B": 2, "I;16N": 2}
"""Bytes of a pixel as Pillow holds it: 4 for every other mode."""

_BESIDE = {
    **dict.fromkeys(("PNG", "GIF", "BMP", "DIB", "PPM"), 0),
    **dict.fromkeys(("PSD", "TIFF", "ICO", "ICNS", "QOI"), 4),
    **dict.fromkeys(("AVIF", "HEIF"), 12),
    "WEBP": 15,
}
"""Bytes for each pixel that a decoder holds beside the image it makes, measured with Pillow 13."""
_UNKNOWN = 16


class MemoryNeededError(Exception):
    """An image needs more memory than it may take."""

    def __init__(self, needed: int, described: str) -> None:
        super().__init__(needed, described)
        self.needed = needed
        self.described = described
        """Such as "13,000 × 13,000 pixels, WEBP"."""


def check_header(head: bytes, memory: int) -> None:
    """Raise `MemoryNeededError` for an image that would take too much when it is opened.

    Pillow allocates all pixels of a WebP file, several times, before it tells how many there are.
    """
    size = _webp_size(head) if head[:4] == b"RIFF" and head[8:12] == b"WEBP" else None
    if size is not None:
        _check(size, "WEBP", _ALWAYS + size[0] * size[1] * (_BESIDE["WEBP"] + 4), memory)


def _webp_size(head: bytes) -> tuple[int, int] | None:
    """Return the width and height that a WebP file begins with."""
    kind = head[12:16]
    if kind == b"VP8X":
        sizes = int.from_bytes(head[24:27], "little"), int.from_bytes(head[27:30], "little")
        return sizes[0] + 1, sizes[1] + 1
    if kind == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        width, height = head[26:28], head[28:30]
        return int.from_bytes(width, "little") & 0x3FFF, int.from_bytes(height, "little") & 0x3FFF
    return None


def check_memory(image: Image, size: tuple[int, int], memory: int | None) -> None:
    """Raise `MemoryNeededError` if decoding an image and making it small can take more bytes.

    `image` is opened and not yet decoded; `size` is the size in its header, which is larger than
    that of a JPEG in draft mode. Files that lie are stopped by the limit of the worker process.
    """
    if memory is None:
        return
    pixels, decoded = size[0] * size[1], image.width * image.height
    needed = _ALWAYS + decoded * (_OWN.get(image.mode, 4) + _work(image))
    if image.format in ("JPEG", "MPO"):
        # Progressive files, and those of several scans, are held as coefficients of two bytes.
        needed += 2 * pixels * int(getattr(image, "layers", 4))
    elif image.format == "JPEG2000":
        needed += 6 * pixels * len(image.getbands())
    else:
        needed += pixels * _BESIDE.get(image.format or "", _UNKNOWN)
    _check(size, image.format or "", needed, memory)


def _check(size: tuple[int, int], format: str, needed: int, memory: int) -> None:
    if needed > memory:
        raise MemoryNeededError(needed, f"{size[0]:,} × {size[1]:,} pixels, {format}")


def _work(image: Image) -> int:
    """Return the bytes for each pixel of the copies made on the way to a small image."""
    if image.mode in ("I", "F"):
        return 26
    if image.mode.startswith("I;16"):
        return 6
    if image.has_transparency_data:
        return 4 if image.mode == "RGBA" else 8
    return {"L": 0, "RGB": 0, "1": 1}.get(image.mode, 4)
