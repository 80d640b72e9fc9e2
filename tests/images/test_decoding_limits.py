"""Images are decoded in isolated processes, within limits on memory and time."""

from __future__ import annotations

import io
import itertools
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest
from benchmarks.images.scenes import scene
from PIL import Image

import lookalike as la
from lookalike import processes
from lookalike.images import workers
from lookalike.images.workers import HASH, NEEDS_MEMORY, image_answers
from lookalike.processes import MemoryBudget

MIB = 1 << 20
WANTED = (HASH, 64, "dct", 1, None)


def saved(image: Image.Image, format: str, **settings: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, format, **settings)
    return file.getvalue()


def answer(data: bytes, memory: int) -> Any:
    (found,) = image_answers([data], WANTED, memory)
    return found


def large_png(width: int, height: int, *, empty: bool = False) -> bytes:
    """Return a PNG of one bit a pixel, all black; an empty one has colors and no pixels."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        checked = kind + content
        return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))

    head = struct.pack(">IIBBBBB", width, height, 8 if empty else 1, 2 if empty else 0, 0, 0, 0)
    body = zlib.compress(bytes(0 if empty else (1 + (width + 7) // 8) * height), 1)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def webp_of_size(width: int, height: int) -> bytes:
    """Return a lossless WebP file whose header has this size."""
    data = bytearray(saved(Image.new("RGB", (16, 16)), "WEBP", lossless=True))
    bits = int.from_bytes(data[21:25], "little") & ~0xFFFFFFF
    data[21:25] = (bits | (width - 1) | (height - 1) << 14).to_bytes(4, "little")
    return bytes(data)


def icon(picture: bytes) -> bytes:
    """Return an icon whose directory says 16 × 16, with another picture in it."""
    entry = struct.pack("<BBBBHHII", 16, 16, 0, 0, 1, 32, len(picture), 22)
    return struct.pack("<HHH", 0, 1, 1) + entry + picture


SIZE = 2600
FORMATS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "baseline JPEG": ("JPEG", "RGB", {}),
    "progressive JPEG": ("JPEG", "RGB", {"progressive": True, "subsampling": 0}),
    "CMYK JPEG": ("JPEG", "CMYK", {"progressive": True}),
    "PNG": ("PNG", "RGB", {"compress_level": 1}),
    "PNG of a palette": ("PNG", "P", {"compress_level": 1}),
    "transparent PNG": ("PNG", "RGBA", {"compress_level": 1}),
    "PNG of 16 bits": ("PNG", "I;16", {"compress_level": 1}),
    "GIF": ("GIF", "P", {}),
    "lossy WebP": ("WEBP", "RGB", {"method": 0}),
    "lossless WebP": ("WEBP", "RGB", {"method": 0, "lossless": True}),
    "transparent WebP": ("WEBP", "RGBA", {"method": 0}),
    "TIFF": ("TIFF", "RGB", {}),
    "compressed TIFF": ("TIFF", "RGBA", {"compression": "tiff_lzw"}),
    "TIFF of numbers": ("TIFF", "F", {}),
    "BMP": ("BMP", "RGB", {}),
    "PPM": ("PPM", "RGB", {}),
    "AVIF": ("AVIF", "RGB", {"speed": 10}),
    "transparent AVIF": ("AVIF", "RGBA", {"speed": 10}),
    "JPEG 2000": ("JPEG2000", "RGB", {"quality_mode": "rates", "quality_layers": [40]}),
}


@pytest.fixture(scope="module")
def picture() -> Image.Image:
    return scene(3, 650).resize((SIZE, SIZE))


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_counted_is_enough(picture: Image.Image, name: str) -> None:
    """The header tells how much memory an image needs; with that it can be decoded."""
    format, mode, settings = FORMATS[name]
    image = picture.convert("L").convert("I") if mode == "I;16" else picture.convert(mode)
    if mode == "I;16":
        image = Image.fromarray((np.asarray(image) * 257).astype(np.uint16))
    data = saved(image, format, **settings)
    told, needed, described = answer(data, 1 * MIB)
    assert told == NEEDS_MEMORY
    assert described == f"2,600 × 2,600 pixels, {format}"
    # A worker that has decoded other images still holds some of their memory.
    processes.end_idle_workers()
    (found,) = image_answers([data], WANTED, needed, spare=0)
    assert found[0] == la.ImageHash().sign(Image.open(io.BytesIO(data))).tobytes()
    assert answer(data, needed - 1)[:2] == (NEEDS_MEMORY, needed)


def test_webp_bombs_cost_nothing(tmp_path: Path) -> None:
    """A header of 36 bytes used to take 2.5 GB in each thread."""
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(4):
        (folder / f"bomb {number}.webp").write_bytes(webp_of_size(13_000, 13_000 - number))
    scene(1, 200).save(folder / "good.png")
    done = subprocess.run(
        [sys.executable, "-c", _PEAKS, str(folder)], capture_output=True, text=True, check=True
    )
    files, left_out, own, workers_ = done.stdout.split()
    assert (files, left_out) == ("1", "4")
    assert int(own) < 200 << 10 and int(workers_) < 150 << 10  # KiB
    (problem, *_) = la.dedup(folder).problems
    assert problem.path.name == "bomb 0.webp"
    assert problem.reason.startswith("needs up to 3,078 MiB of memory to be decoded (13,000 × 13,")
    assert problem.reason.endswith("raise the memory limit to read it")


_PEAKS = """
import os, sys
import lookalike as la
from lookalike import processes

def peak(process):
    with open(f"/proc/{process}/status") as file:
        return int(file.read().split("VmHWM:")[1].split()[0])

found = la.dedup(sys.argv[1], threads=4)
print(found.counts.documents, found.counts.left_out, peak(os.getpid()))
print(max(peak(worker.process.pid) for worker in processes._IDLE))
"""


def bombs() -> dict[str, tuple[bytes, str]]:
    """Small files that take hundreds of megabytes, and why they are left out."""
    counted, stopped = "needs up to", "takes more than"
    palette = Image.new("P", (16, 16))
    gif = bytearray(saved(palette, "GIF"))
    gif[6:10] = struct.pack("<HH", 13_000, 12_000)
    tiff = saved(Image.new("L", (64, 64)), "TIFF", compression="tiff_lzw")
    width = struct.pack("<HHIHH", 256, 3, 1, 64, 0)
    assert width in tiff
    wide = tiff.replace(width, struct.pack("<HHII", 256, 4, 1, 170_000_000 // 64))
    return {
        "a.webp": (webp_of_size(12_000, 12_000), counted),
        "b.png": (large_png(26_000, 6_000, empty=True), counted),
        "c.ico": (icon(large_png(26_000, 6_000, empty=True)), stopped),
        "d.gif": (bytes(gif), counted),
        "e.tif": (wide, counted),
        "f.bmp": (bmp(13_000, 13_000), counted),
        "g.png": (text_bomb(), "cannot be decoded"),
    }


def bmp(width: int, height: int) -> bytes:
    head = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, 0, 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54, 0, 0, 54) + head


def text_bomb() -> bytes:
    """Return a PNG with a compressed text of 200 MB."""
    good = saved(Image.new("L", (8, 8)), "PNG")
    text = b"zTXtComment\0\0" + zlib.compress(bytes(200_000_000), 1)
    chunk = struct.pack(">I", len(text) - 4) + text + struct.pack(">I", zlib.crc32(text))
    return good[:33] + chunk + good[33:]


def test_bombs_of_every_format_are_left_out_and_the_job_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    expected = bombs()
    for name, (data, _) in expected.items():
        (folder / name).write_bytes(data)
    scene(1, 200).save(folder / "good.png")
    scene(1, 100).save(folder / "good.jpg")
    result = la.dedup(folder, kind="images", memory_limit=600 * MIB, threads=2)
    reasons = {one.path.name: one.reason for one in result.problems}
    assert set(reasons) == set(expected)
    for name, (_, reason) in expected.items():
        assert reasons[name].startswith(reason), (name, reasons[name])
    assert [path.name for path in result.kept()] == ["good.png"]


def test_large_images_wait_for_room_and_are_read(tmp_path: Path) -> None:
    """What does not fit beside others is decoded alone."""
    sources = [large_png(26_000, 6_000), saved(scene(1, 100), "PNG")] * 2
    rows = la.ImageHash().sign(sources, threads=4)
    alone = la.ImageHash().sign(sources, threads=1, memory_limit=400 * MIB)
    assert np.array_equal(rows, alone)
    with pytest.raises(
        la.errors.DocumentError, match="image 0: needs up to 314 MiB .* the limit is 120 MiB"
    ):
        la.ImageHash().sign(sources, memory_limit=200 * MIB)
    with pytest.raises(la.errors.ArgumentError, match="memory_limit"):
        la.ImageHash().sign(sources, memory_limit=1000)


@pytest.mark.parametrize("format", ["GIF", "WEBP", "PNG", "AVIF"])
def test_of_several_frames_the_first_counts(format: str) -> None:
    frames = [scene(number, 200).resize((200, 150)) for number in range(3)]
    settings = {"lossless": True} if format == "WEBP" else {}
    moving = saved(frames[0], format, save_all=True, append_images=frames[1:], **settings)
    still = saved(frames[0], format, **settings)
    signer = la.ImageHash()
    moved, stands = signer.sign([moving, still])
    assert np.bitwise_count(moved ^ stands).sum() <= 2


def test_an_image_that_takes_too_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_SECONDS", 0.001)
    slow = saved(scene(3, 650).resize((2000, 2000)), "WEBP", method=0)
    small = saved(scene(1, 16), "BMP")
    first, _ = la.ImageHash().each([slow, small])
    assert isinstance(first, la.errors.DocumentError)
    assert str(first) == "takes more than 0.001 s to be decoded"


def test_an_image_that_crashes_its_process_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    data = saved(scene(1, 64), "PNG")
    with monkeypatch.context() as patch:
        patch.setattr(processes, "_COMMAND", "import os; os._exit(7)")
        patch.setattr(processes, "_IDLE", [])
        found = list(la.ImageHash().each([data, data]))
        with pytest.raises(la.errors.DocumentError, match="the image crashes the process"):
            la.images.thumbnail(data)
    assert [str(one) for one in found] == ["crashes the process that decodes it (status 7)"] * 2
    assert len(la.ImageHash().sign([data])) == 1


def test_thumbnails_keep_the_limits(tmp_path: Path) -> None:
    with pytest.raises(la.errors.DocumentError, match="the image needs up to .* MiB of memory"):
        la.images.thumbnail(webp_of_size(13_000, 13_000))
    assert la.images.thumbnail(saved(scene(1, 64), "PNG")).startswith("data:image/jpeg;base64,/9j/")


def test_paths_bytes_and_pillow_images_together(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    scene(5, 90).save(path)
    data = memoryview(bytearray(path.read_bytes()))
    kinds: Iterator[Any] = itertools.cycle([path, str(path), data, bytes(data), Image.open(path)])
    sources = list(itertools.islice(kinds, 41))
    rows = la.ImageHash().sign(sources, threads=3)
    assert len(np.unique(rows, axis=0)) == 1 and len(rows) == 41


def test_budgets_are_never_exceeded_and_large_work_gets_its_turn() -> None:
    budget, used, most = MemoryBudget(100), [0], [0]
    finished = Event()

    def small(amount: int) -> None:
        while not finished.is_set():
            with budget.taken(amount):
                used[0] += amount
                most[0] = max(most[0], budget._used)
                used[0] -= amount

    threads = [Thread(target=small, args=(amount,)) for amount in (10, 20, 30, 40)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        with budget.taken(100):  # only when nothing else is there
            assert budget._used == 100
    finished.set()
    for thread in threads:
        thread.join()
    assert most[0] <= 100 and budget._used == 0
