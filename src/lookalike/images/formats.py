"""Which files are images: by what they begin with, and by their names."""

from __future__ import annotations

__all__ = ["FORMATS", "SUFFIXES", "is_image"]

FORMATS = (
    *("JPEG", "MPO", "PNG", "GIF", "WEBP", "TIFF", "BMP", "DIB", "AVIF", "HEIF"),
    *("JPEG2000", "ICO", "ICNS", "PPM", "QOI", "PSD"),
)
"""What Pillow may open. It knows more: some of them run other programs, some have no beginning by
which a file could be told from anything else.
"""

SUFFIXES = frozenset(
    ".jpg .jpeg .jpe .jfif .mpo .png .apng .gif .webp .tif .tiff .bmp .dib .avif .heic .heif .jp2 "
    ".j2k .jpx .ico .icns .ppm .pgm .pbm .pnm .qoi .psd".split()
)

_BEGINNINGS = (
    b"\xff\xd8\xff",  # JPEG
    b"\x89PNG\r\n\x1a\n",
    b"GIF87a",
    b"GIF89a",
    b"II*\0",  # TIFF
    b"MM\0*",
    b"II+\0",
    b"MM\0+",
    b"\0\0\0\x0cjP  \r\n\x87\n",  # JPEG 2000
    b"\xff\x4f\xff\x51",
    b"icns",
    b"qoif",
    b"8BPS\0\x01",
)
_BRANDS = (b"avif", b"avis", b"mif1", b"msf1", b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx")
_BITMAP_HEADERS = (12, 40, 52, 56, 64, 108, 124)
"""Sizes of the header that follows "BM", which alone may begin a text."""


def is_image(head: bytes) -> bool:
    """Return whether a file that begins so, in at least 26 bytes of it, is an image.

    Nothing that is text is one: a beginning that words can have is not enough.
    """
    if head.startswith(_BEGINNINGS):
        return True
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return True
    if head[4:8] == b"ftyp":
        return any(head[at : at + 4] in _BRANDS for at in (8, *range(16, len(head) - 3, 4)))
    if head[:2] == b"BM":
        return int.from_bytes(head[14:18], "little") in _BITMAP_HEADERS
    if head[:4] == b"\0\0\1\0":  # icons: how many there are, then the first one's planes
        return 0 < int.from_bytes(head[4:6], "little") < 256 and head[9:10] == b"\0"
    return head[:1] == b"P" and head[1:2] in b"456" and _is_portable(head[2:])


def _is_portable(rest: bytes) -> bool:
    """Return whether two sizes follow "P5", as in portable bitmaps, but for comments."""
    words = rest.split()[:2]
    if not rest[:1].isspace() or not words:
        return False
    return words[0].startswith(b"#") or all(map(bytes.isdigit, words))
