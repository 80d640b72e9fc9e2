"""Decode images into few pixels: which files are images, and the memory that they need."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from lookalike.errors import DocumentError, LookalikeError
from lookalike.lazy import LazyModule
from lookalike.shown import brief, escape_terminal
from lookalike.storage.files import open_plain

if TYPE_CHECKING:
    from PIL.Image import Image

# Formats that Pillow may open; of others, some run programs or have no fixed first bytes.
FORMATS = (
    *("JPEG", "MPO", "PNG", "GIF", "WEBP", "TIFF", "BMP", "DIB", "AVIF", "HEIF"),
    *("JPEG2000", "ICO", "ICNS", "PPM", "QOI", "PSD"),
)

SUFFIXES = frozenset(
    ".jpg .jpeg .jpe .jfif .mpo .png .apng .gif .webp .tif .tiff .bmp .dib .avif .heic .heif .jp2 "
    ".j2k .jpx .ico .icns .ppm .pgm .pbm .pnm .qoi .psd".split()
)

_BEGINNINGS = (
    *(b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF87a", b"GIF89a", b"icns", b"qoif", b"8BPS\0\x01"),
    *(b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"),  # TIFF
    *(b"\0\0\0\x0cjP  \r\n\x87\n", b"\xff\x4f\xff\x51"),  # JPEG 2000
)
# brands of AVIF and HEIF files
_BRANDS = (b"avif", b"avis", b"mif1", b"msf1", b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx")
# sizes of the header after "BM", with which a text may begin, too
_BITMAP_HEADERS = (12, 40, 52, 56, 64, 108, 124)


def is_image(head: bytes) -> bool:
    """Return whether a file that begins with these bytes (at least 26) is an image."""
    if head.startswith(_BEGINNINGS):
        return True
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return True
    if head[4:8] == b"ftyp":
        return any(head[at : at + 4] in _BRANDS for at in (8, *range(16, len(head) - 3, 4)))
    if head[:2] == b"BM":
        return int.from_bytes(head[14:18], "little") in _BITMAP_HEADERS
    if head[:4] == b"\0\0\1\0":  # the number of icons, and a zero in the entry of the first
        return 0 < int.from_bytes(head[4:6], "little") < 256 and head[9:10] == b"\0"
    return head[:1] == b"P" and head[1:2] in b"456" and _is_portable(head[2:])


def _is_portable(rest: bytes) -> bool:
    """Return whether sizes or a comment follow "P5", as in portable bitmaps."""
    words = rest.split()[:2]
    if not rest[:1].isspace() or not words:
        return False
    return words[0].startswith(b"#") or all(map(bytes.isdigit, words))


_HEADER_BYTES = 30  # bytes that `_check_header` looks at
_ALWAYS = 16 << 20  # bytes for metadata and buffers of a decoder
# bytes per pixel in Pillow; 4 in every other mode
_OWN = {"1": 1, "L": 1, "P": 1, "I;16": 2, "I;16L": 2, "I;16B": 2, "I;16N": 2}

# Bytes per pixel that a decoder holds besides the image, measured with Pillow 13.
_BESIDE = {
    **dict.fromkeys(("PNG", "GIF", "BMP", "DIB", "PPM"), 0),
    **dict.fromkeys(("PSD", "TIFF", "ICO", "ICNS", "QOI"), 4),
    **dict.fromkeys(("AVIF", "HEIF"), 12),
    "WEBP": 15,
}
_UNKNOWN = 16


class MemoryNeededError(Exception):
    """An image needs more memory than it may take."""

    def __init__(self, needed: int, described: str) -> None:
        super().__init__(needed, described)
        self.needed = needed
        self.described = described  # such as "13,000 x 13,000 pixels, WEBP"


def _check_header(head: bytes, memory: int) -> None:
    """Raise `MemoryNeededError` for a WebP file that Pillow needs too much memory to open."""
    size = _webp_size(head) if head[:4] == b"RIFF" and head[8:12] == b"WEBP" else None
    if size is not None:
        _check(size, "WEBP", _ALWAYS + size[0] * size[1] * (_BESIDE["WEBP"] + 4), memory)


def _webp_size(head: bytes) -> tuple[int, int] | None:
    """Return the width and height in the header of a WebP file."""
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


def _check_memory(image: Image, size: tuple[int, int], memory: int | None) -> None:
    """Raise `MemoryNeededError` if decoding and reducing an image can take more than `memory`.

    `image` is not yet decoded; `size` is the size in its header, before draft mode reduces it.
    """
    if memory is None:
        return
    pixels, decoded = size[0] * size[1], image.width * image.height
    needed = _ALWAYS + decoded * (_OWN.get(image.mode, 4) + _work(image))
    if image.format in ("JPEG", "MPO"):
        # Progressive files and those of several scans are held as coefficients of two bytes.
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
    """Return the bytes for each pixel of the copies that are made to reduce an image."""
    if image.mode in ("I", "F"):
        return 26
    if image.mode.startswith("I;16"):
        return 6
    if image.has_transparency_data:
        return 4 if image.mode == "RGBA" else 8
    return {"L": 0, "RGB": 0, "1": 1}.get(image.mode, 4)


ImageSource: TypeAlias = "str | os.PathLike[str] | bytes | bytearray | memoryview | Image"
"""An image: the path of a file, its bytes, or a Pillow image."""
_FILE = (str, os.PathLike, bytes, bytearray, memoryview)

pillow = LazyModule("PIL.Image", "reading images", extra="images")

_ORIENTATION = 0x0112  # EXIF tag of the orientation
# By orientation: whether to swap rows and columns, then reverse rows, then columns.
TURNS = {
    1: (False, False, False),
    2: (False, False, True),
    3: (False, True, True),
    4: (False, True, False),
    5: (True, False, False),
    6: (True, False, True),
    7: (True, True, True),
    8: (True, True, False),
}
_OPERATIONS = ("TRANSPOSE", "FLIP_TOP_BOTTOM", "FLIP_LEFT_RIGHT")  # Pillow's names of these three
_QUALITIES = (80, 60, 40, 20)
_LONGEST_REASON = 200
_STRIP = 64  # rows that are converted to RGB at a time


class Axis(NamedTuple):
    """Blocks of pixels in one direction."""

    pixels: int
    block: int  # pixels of a block; the last one may have fewer
    turned: bool = False  # whether the first block may have fewer, instead of the last


@dataclass(frozen=True, eq=False)
class Decoded:
    """A reduced image: gray from 0 to 255, upright, on white where it is transparent."""

    gray: NDArray[np.uint8]  # averages of blocks of pixels
    rows: Axis
    columns: Axis
    width: int
    height: int  # pixels of the whole image
    format: str = ""  # such as JPEG; empty for a Pillow image that is not from a file

    def turned(self, turn: int) -> Decoded:
        """Return the image turned and mirrored by an entry of `TURNS`."""
        swap, upside_down, mirrored = TURNS[turn]
        gray, rows, columns, size = self.gray, self.rows, self.columns, (self.width, self.height)
        if swap:
            gray, rows, columns, size = gray.T, columns, rows, size[::-1]
        if upside_down:
            gray, rows = gray[::-1], rows._replace(turned=not rows.turned)
        if mirrored:
            gray, columns = gray[:, ::-1], columns._replace(turned=not columns.turned)
        return Decoded(gray, rows, columns, *size, self.format)


def is_one_image(value: object) -> bool:
    """Return whether this is one image, not several."""
    return isinstance(value, _FILE) or (hasattr(value, "getexif") and hasattr(value, "reduce"))


def is_in_memory(value: object) -> bool:
    """Return whether this is a Pillow image, which needs no decoding."""
    return not isinstance(value, _FILE)


def decoded(source: ImageSource, least: int, memory: int | None = None) -> Decoded:
    """Return an image in gray, reduced to at least `least` blocks each way where it is larger.

    A JPEG is decoded without colors, at an eighth, a quarter or half of its size where that is
    enough. Of several frames, the first is used.

    Raises:
        DocumentError: The image cannot be decoded, or exceeds Pillow's limit on pixels.
        MemoryNeededError: Decoding would take more than `memory` bytes.
    """
    with _opened(source, memory) as image:
        width, height = image.size
        _check_pixels(image)
        if image.format in ("JPEG", "MPO") and image is not source:
            image.draft("L", (least, least))  # fewer pixels from here on
        _check_memory(image, (width, height), memory)
        turn = _orientation(image)
        columns, rows = (Axis(size, max(1, size // least)) for size in image.size)
        gray = _gray(image, (columns.block, rows.block))
        pixels = np.frombuffer(gray.tobytes(), np.uint8).reshape(gray.height, gray.width)
        found = Decoded(pixels, rows, columns, width, height, image.format or "")
    return found.turned(turn)


@dataclass(frozen=True)
class RgbImage:
    """All pixels of an image in RGB, as they are stored: not turned, without transparency."""

    width: int
    height: int
    format: str
    strips: Iterator[NDArray[np.uint8]]  # `[rows, width, 3]`, from top to bottom


@contextmanager
def in_rgb(source: ImageSource, memory: int | None = None) -> Iterator[RgbImage]:
    """Yield the pixels of an image, a few rows at a time; raises as `decoded` does."""
    with _opened(source, memory) as image:
        _check_pixels(image)
        _check_memory(image, image.size, memory)
        image.load()
        whole = _from_numbers(image) if image.mode.startswith(("I", "F")) else image
        width, height = whole.size
        strips = (
            np.asarray(
                whole.crop((0, top, width, min(top + _STRIP, height))).convert("RGB"), np.uint8
            )
            for top in range(0, height, _STRIP)
        )
        yield RgbImage(width, height, image.format or "", strips)


def _check_pixels(image: Image) -> None:
    if 0 in image.size:
        raise DocumentError(f"has no pixels: it is {image.width} wide and {image.height} high")


def small_jpeg(
    source: ImageSource, size: int, most: int | None, memory: int | None = None
) -> tuple[bytes, int, int]:
    """Return an image as a JPEG of at most `size` pixels each way, its width and its height.

    With `most`, the quality is lowered until it has at most that many bytes; b"" if it never does.
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
    with _opened(source, memory) as image:
        full = image.size
        if image is not source:
            image.draft("RGB", (2 * size, 2 * size))
        _check_memory(image, full, memory)
        turn = _orientation(image)
        mode = "L" if image.mode in ("1", "L") else "RGB"
        if image.has_transparency_data:
            mode = "RGBA"
        whole = image if image.mode == mode else image.convert(mode)
        shrink = min(1, size / image.width, size / image.height)
        target = max(1, round(image.width * shrink)), max(1, round(image.height * shrink))
        small = whole.resize(target, pillow.Resampling.BICUBIC, reducing_gap=2.0)
        if small.mode == "RGBA":
            small = _on_white(small).convert("RGB")
        for wanted, operation in zip(TURNS[turn], _OPERATIONS, strict=True):
            if wanted:
                small = small.transpose(getattr(pillow.Transpose, operation))
        return small


@contextmanager
def _opened(source: ImageSource, memory: int | None = None) -> Iterator[Image]:
    """Yield an image that is not yet decoded; most errors in the block become `DocumentError`."""
    try:
        if isinstance(source, str | os.PathLike):
            with open_plain(source) as file, _open(file, memory) as image:
                yield image
        elif isinstance(source, bytes | bytearray | memoryview):
            with _open(io.BytesIO(source), memory) as image:
                yield image
        elif isinstance(source, pillow.Image):
            yield source
        else:
            raise DocumentError(
                f"{brief(source)} of type {type(source).__name__} is not an image; expected a "
                "path, the bytes of a file, or a Pillow image"
            )
    except (LookalikeError, MemoryNeededError, MemoryError):
        raise
    except Exception as error:  # a malicious file may raise any error
        if "out of memory" in str(error).lower():  # Pillow's message for codecs
            raise MemoryError from error
        raise DocumentError(_reason(error)) from error


def _open(file: Any, memory: int | None) -> Any:
    pillow.init()  # registers all formats
    if memory is not None:
        _check_header(file.read(_HEADER_BYTES), memory)
        file.seek(0)
    return pillow.open(file, formats=[name for name in FORMATS if name in pillow.OPEN])


def _reason(error: Exception) -> str:
    if isinstance(error, pillow.DecompressionBombError):
        return (
            f"has too many pixels ({escape_terminal(error, _LONGEST_REASON)}); if you trust it, "
            "raise PIL.Image.MAX_IMAGE_PIXELS"
        )
    if isinstance(error, pillow.UnidentifiedImageError):
        return f"is not an image in a known format ({', '.join(FORMATS)})"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read ({error.strerror})"
    said = escape_terminal(str(error) or type(error).__name__, _LONGEST_REASON)
    return f"cannot be decoded ({said})"


def _orientation(image: Image) -> int:
    """Decode an image and return its EXIF orientation; 1 if it has no valid one."""
    image.load()  # makes some formats, such as TIFF, upright and removes their orientation
    try:
        turn = image.getexif().get(_ORIENTATION, 1)
    except Exception:  # the metadata may be broken
        return 1
    return turn if isinstance(turn, int) and turn in TURNS else 1


def _gray(image: Image, factors: tuple[int, int]) -> Image:
    """Return averages of blocks of pixels, in gray."""
    if image.mode.startswith(("I", "F")):
        return _from_numbers(image).reduce(factors)
    if image.mode in ("1", "L") and "transparency" not in image.info:
        gray = image if image.mode == "L" else image.convert("L")
        return gray if factors == (1, 1) else gray.reduce(factors)
    if image.mode == "LAB":
        return image.getchannel("L").reduce(factors)
    if image.has_transparency_data:
        # Reducing weights colors by their opacity.
        small = (image if image.mode == "RGBA" else image.convert("RGBA")).reduce(factors)
        return _on_white(small).convert("L")
    if image.mode != "RGB":
        image = image.convert("RGB")
    return image.reduce(factors).convert("L")


def _on_white(image: Image) -> Image:
    """Return an RGBA image on a white background."""
    white = pillow.new("RGBA", image.size, "white")
    white.alpha_composite(image)
    return cast("Image", white)


def _from_numbers(image: Image) -> Image:
    """Return an image of numbers as one of bytes: the upper 8 of 16 bits, or scaled to 0 to 255."""
    values = np.asarray(image)
    gray: NDArray[Any]
    if image.mode.startswith("I;16"):
        gray = values >> 8
    else:
        numbers = np.nan_to_num(values.astype(np.float64), posinf=0, neginf=0)
        low, high = float(numbers.min()), float(numbers.max())
        if image.mode == "I" and low >= 0 and high <= 65535:
            gray = values >> 8 if high > 255 else values
        else:
            gray = (numbers - low) * (255 / (high - low) if high > low else 0)
    return cast("Image", pillow.fromarray(gray.astype(np.uint8)))
