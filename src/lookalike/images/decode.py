"""From a file, bytes or a Pillow image to few grey pixels: all that a hash needs of it.

Which files are images, how much memory one takes to decode (known from its header), and decoding.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from lookalike.errors import DocumentError, LookalikeError
from lookalike.lazy import LazyModule
from lookalike.shown import brief, escape_terminal
from lookalike.storage.files import open_plain

if TYPE_CHECKING:
    from PIL.Image import Image

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


ImageSource: TypeAlias = "str | os.PathLike[str] | bytes | bytearray | memoryview | Image"
"""An image: the path of a file, what is in one, or one of Pillow."""

pillow = LazyModule("PIL.Image", "reading images", extra="images")

_ORIENTATION = 0x0112
"""The number by which EXIF says how the camera was held."""

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
"""What makes an image upright, by that number: rows and columns change places, then rows are
reversed, then columns.
"""

_LONGEST_REASON = 200


class Axis(NamedTuple):
    """How pixels lie in blocks, in one direction."""

    pixels: int
    block: int
    """Pixels of a block; the one at the end may have fewer."""
    turned: bool = False
    """The one at the beginning, then."""


@dataclass(frozen=True, eq=False)
class Decoded:
    """An image made small: grey from 0 to 255, upright, with white behind what is transparent."""

    grey: NDArray[np.uint8]
    """Averages of blocks of pixels."""
    rows: Axis
    columns: Axis
    width: int
    height: int
    """Of the image itself."""
    format: str = ""
    """Such as JPEG; empty for an image that is in no file."""

    def turned(self, turn: int) -> Decoded:
        """Return it turned and mirrored as `TURNS` has it."""
        swap, upside_down, mirrored = TURNS[turn]
        made = self
        if swap:
            made = Decoded(
                self.grey.T, self.columns, self.rows, self.height, self.width, self.format
            )
        if upside_down:
            made = replace(made, grey=made.grey[::-1], rows=_reversed(made.rows))
        if mirrored:
            made = replace(made, grey=made.grey[:, ::-1], columns=_reversed(made.columns))
        return made


def _reversed(axis: Axis) -> Axis:
    return axis._replace(turned=not axis.turned)


def is_one_image(value: object) -> bool:
    """Return whether this is one image, and not several."""
    if isinstance(value, str | os.PathLike | bytes | bytearray | memoryview):
        return True
    return hasattr(value, "getexif") and hasattr(value, "reduce")


def is_in_memory(value: object) -> bool:
    """Return whether this is an image of Pillow, which needs no decoding of untrusted bytes."""
    return not isinstance(value, str | os.PathLike | bytes | bytearray | memoryview)


def decoded(source: ImageSource, least: int, memory: int | None = None) -> Decoded:
    """Return an image in grey, of at least `least` blocks each way where it has as many pixels, and
    fewer than twice as many, but for images that are hardly larger.

    JPEG, also that of telephones with more pictures behind the first, is decoded at an eighth, a
    quarter or half of its size where that is enough, and without colors. Of several frames, the
    first is used.

    Raises:
        DocumentError: The image cannot be decoded, or exceeds Pillow's limit on pixels.
        MemoryNeededError: Decoding would take more than `memory` bytes.
    """
    with opened(source, memory) as image:
        width, height = image.size
        if 0 in image.size:
            raise DocumentError(f"has no pixels: it is {width} wide and {height} high")
        if image.format in ("JPEG", "MPO") and image is not source:
            image.draft("L", (least, least))  # fewer pixels from here on
        check_memory(image, (width, height), memory)
        turn = orientation(image)
        columns, rows = (Axis(size, max(1, size // least)) for size in image.size)
        grey = _grey(image, (columns.block, rows.block))
        pixels = np.frombuffer(grey.tobytes(), np.uint8).reshape(grey.height, grey.width)
        found = Decoded(pixels, rows, columns, width, height, image.format or "")
    return found.turned(turn)


@contextmanager
def opened(source: ImageSource, memory: int | None = None) -> Iterator[Image]:
    """Yield an image of Pillow, not yet decoded; what goes wrong with it is a `DocumentError`.

    `MemoryNeededError` or `MemoryError` if it takes more than `memory` bytes, or than there are.
    """
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
                "path, the bytes of a file, or an image of Pillow"
            )
    except (LookalikeError, MemoryNeededError, MemoryError):
        raise
    except Exception as error:  # a hostile file may make a decoder raise whatever it likes
        if "out of memory" in str(error).lower():  # how Pillow reports a codec that ran out of it
            raise MemoryError from error
        raise DocumentError(_reason(error)) from error


def _open(file: Any, memory: int | None) -> Any:
    pillow.init()  # or some formats are not known yet
    if memory is not None:
        check_header(file.read(HEADER_BYTES), memory)
        file.seek(0)
    return pillow.open(file, formats=[name for name in FORMATS if name in pillow.OPEN])


def _reason(error: Exception) -> str:
    if isinstance(error, pillow.DecompressionBombError):
        return (
            f"has too many pixels ({escape_terminal(error, _LONGEST_REASON)}); if it can be "
            "trusted, raise PIL.Image.MAX_IMAGE_PIXELS"
        )
    if isinstance(error, pillow.UnidentifiedImageError):
        return f"is no image in a format that is known ({', '.join(FORMATS)})"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read ({error.strerror})"
    said = escape_terminal(str(error) or type(error).__name__, _LONGEST_REASON)
    return f"cannot be decoded ({said})"


def orientation(image: Image) -> int:
    """Decode an image and return the number of EXIF's orientation: 1 unless it has another that is
    one.
    """
    image.load()  # some formats, as TIFF, Pillow makes upright with this, and takes the number away
    try:
        turn = image.getexif().get(_ORIENTATION, 1)
    except Exception:  # what is said about an image may be broken where the image is not
        return 1
    return turn if isinstance(turn, int) and turn in TURNS else 1


def _grey(image: Image, factors: tuple[int, int]) -> Image:
    """Return averages of blocks of pixels, in grey."""
    if image.mode.startswith(("I", "F")):
        return _from_numbers(image).reduce(factors)
    if image.mode in ("1", "L") and "transparency" not in image.info:
        grey = image if image.mode == "L" else image.convert("L")
        return grey if factors == (1, 1) else grey.reduce(factors)
    if image.mode == "LAB":
        return image.getchannel("L").reduce(factors)
    if image.has_transparency_data:
        # Reducing weighs colours by how opaque they are.
        small = (image if image.mode == "RGBA" else image.convert("RGBA")).reduce(factors)
        white = pillow.new("RGBA", small.size, "white")
        white.alpha_composite(small)
        return cast("Image", white.convert("L"))
    if image.mode != "RGB":
        image = image.convert("RGB")
    return image.reduce(factors).convert("L")


def _from_numbers(image: Image) -> Image:
    """Return an image of numbers as one of bytes: of 16 bits the upper 8, of others what lies
    between the least and the largest, spread evenly.
    """
    values = np.asarray(image)
    if image.mode.startswith("I;16"):
        return cast("Image", pillow.fromarray((values >> 8).astype(np.uint8)))
    numbers = np.nan_to_num(values.astype(np.float64), posinf=0, neginf=0)
    if image.mode == "I" and numbers.min() >= 0 and 255 < numbers.max() <= 65535:
        return cast("Image", pillow.fromarray((values >> 8).astype(np.uint8)))
    low, high = float(numbers.min()), float(numbers.max())
    if image.mode == "I" and low >= 0 and high <= 255:
        return cast("Image", pillow.fromarray(values.astype(np.uint8)))
    spread = (numbers - low) * (255 / (high - low) if high > low else 0)
    return cast("Image", pillow.fromarray(spread.astype(np.uint8)))
