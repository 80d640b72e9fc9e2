"""Files that are no images, or mean harm: refused by name, never a crash, never a wait."""

from __future__ import annotations

import io
import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from benchmarks.images.scenes import scene
from PIL import Image

import lookalike as la
from lookalike.images.decode import FORMATS, SUFFIXES, is_image
from lookalike.storage.files import open_plain

WRITTEN = ("JPEG", "PNG", "GIF", "WEBP", "TIFF", "BMP", "AVIF", "JPEG2000", "ICO", "PPM")


def data_of(format: str, longest: int = 64) -> bytes:
    file = io.BytesIO()
    scene(1, longest).save(file, format)
    return file.getvalue()


def png(width: int, height: int) -> bytes:
    """Return a file that says it has so many pixels, in a few bytes."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        checked = kind + content
        return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = zlib.compress(b"\0" * 1000)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


@pytest.mark.parametrize("format", WRITTEN)
def test_images_are_known_by_their_beginning(format: str) -> None:
    data = data_of(format)
    assert is_image(data[:64])
    assert la.ImageHash().sign(data).shape == (1, 8)
    assert format in FORMATS


def test_texts_and_other_files_are_no_images() -> None:
    for head in (
        *(b"", b"B", b"BM", b"BM is a text about bitmaps, with more than 26 letters", b"P5"),
        *(b"P6 is a format", b"Python is a language", b"P5 x 3\n", b"II", b"GIF", b"RIFF....WAVE"),
        *(b"\0\0\0 ftypM4A ....", b"\0\0\0\x18ftypisom\0\0\2\0isomiso2mp41", b"\0" * 64),
        *(b"<svg xmlns='http://www.w3.org/2000/svg'>", b"%!PS-Adobe-3.0 EPSF-3.0", b"{}\n" * 20),
    ):
        assert not is_image(head), head
    assert is_image(b"P5\n# a comment\n3 3\n255\n") and is_image(b"P6 12 7 255 ")
    assert is_image(b"\0\0\0 ftypmif1\0\0\0\0mif1heic")
    assert all(suffix == suffix.lower() and suffix[0] == "." for suffix in SUFFIXES)


def test_bombs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        la.errors.DocumentError, match=r"image 0: has too many pixels .*MAX_IMAGE_PIXELS"
    ):
        la.ImageHash().sign([png(30_000, 30_000)])
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(la.errors.DocumentError, match="too many pixels"):
        la.ImageHash().sign(data_of("PNG"))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)
    assert la.ImageHash().sign(data_of("PNG")).shape == (1, 8)


@pytest.mark.filterwarnings("ignore")  # Pillow's, about what it reads all the same
@pytest.mark.parametrize("format", WRITTEN)
def test_damaged_files_are_refused_or_read(format: str) -> None:
    signer, data = la.ImageHash(), data_of(format)
    rng = np.random.default_rng(len(data))
    damaged = [data[:size] for size in (0, 1, 10, 30, len(data) // 2, len(data) - 1)]
    for _ in range(25):
        bytes_ = bytearray(data)
        for place in rng.integers(0, len(data), 3).tolist():
            bytes_[place] = int(rng.integers(256))
        damaged.append(bytes(bytes_))
    refused = 0
    for found in signer.each(damaged):
        if isinstance(found, la.errors.DocumentError):
            refused += 1
            assert "\n" not in str(found) and len(str(found)) < 600
        else:
            assert found.signatures.shape == (1, 8)
    assert refused >= 3


def test_errors_name_the_image(tmp_path: Path) -> None:
    good, signer = drawn_file(tmp_path / "good.png"), la.ImageHash()
    (tmp_path / "text.png").write_text("no image at all")
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "closed.png").mkdir()
    (tmp_path / "loop.png").symlink_to(tmp_path / "loop.png")
    for wrong, reason in {
        tmp_path / "text.png": "is not an image in a known format",
        tmp_path / "pipe.png": "not a plain file",
        tmp_path / "closed.png": "not a plain file",
        tmp_path / "loop.png": "cannot be read",
        tmp_path / "nowhere.png": "No such file",
    }.items():
        with pytest.raises(la.errors.DocumentError, match=reason) as error:
            signer.sign([good, good, wrong])
        assert str(error.value).startswith(f"image 2 ({str(wrong)!r}): ")
    for nothing in (3, None, [3], [None], np.zeros((4, 4), np.uint8), ["\0"], [b""]):
        with pytest.raises(la.errors.DocumentError):
            signer.sign(nothing)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [(0, 0), (0, 5), (5, 0)])
def test_images_without_pixels_are_refused(size: tuple[int, int]) -> None:
    file = b"GIF89a" + size[0].to_bytes(2, "little") + size[1].to_bytes(2, "little") + b"\0\0\0;"
    for source in (Image.new("RGB", size), Image.new("F", size), file):
        with pytest.raises(
            la.errors.DocumentError, match=r"image 0: (has no pixels|cannot|is not an image)"
        ):
            la.ImageHash().sign(source)


def test_programs_are_not_run_for_an_image(tmp_path: Path) -> None:
    """Encapsulated PostScript would be given to Ghostscript by Pillow."""
    postscript = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n"
    with pytest.raises(la.errors.DocumentError, match="not an image in a known format"):
        la.ImageHash().sign(postscript)


def test_plain_files_are_opened_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    with open_plain(tmp_path / "file") as file:
        assert file.read() == b"abc"
    os.mkfifo(tmp_path / "pipe")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for wrong in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        with pytest.raises(OSError, match="plain file"):
            open_plain(wrong)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def drawn_file(path: Path) -> Path:
    scene(1, 80).save(path)
    return path
