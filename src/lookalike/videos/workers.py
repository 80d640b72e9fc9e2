"""Decode videos in isolated worker processes, in order, with limits on memory and time."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np

from lookalike.checks import optional_module
from lookalike.errors import DocumentError
from lookalike.processes import Failure, Stop, Task, run, run_in_order
from lookalike.storage.file_cache import Kept, packed, unpacked
from lookalike.videos.decode import av, read_frames, small_jpeg
from lookalike.videos.frames import BYTES, VideoFrames, VideoInfo

_SECONDS, _PICTURE_SECONDS = 3600, 60  # processor time that a file may take
_MEMORY = 640 << 20  # bytes that decoding a file may take
LEAST_MEMORY = _MEMORY + (96 << 20)
"""Bytes of one worker."""


def read_videos(
    files: Iterable[Path | bytes], *, threads: int = 1
) -> Iterator[VideoFrames | DocumentError]:
    """Yield the frames of each file, or why it could not be read, by `threads` processes."""
    optional_module("av", "reading videos", extra="video")

    def read(file: Path | bytes, stop: Stop) -> Iterator[VideoFrames | DocumentError]:
        received = len(file) if isinstance(file, bytes) else 0
        task = Task(
            "lookalike.videos.workers:_hasher", seconds=_SECONDS, memory=_MEMORY + 2 * received
        )
        for found in run(task, [_packed(file)], stop):
            if isinstance(found, Failure | str):
                yield DocumentError(found if isinstance(found, str) else task.reason(found))
            else:
                hashes, offsets, qualities, info = found
                yield VideoFrames(
                    np.frombuffer(hashes, np.uint8).reshape(-1, BYTES),
                    np.frombuffer(offsets, np.int64),
                    np.frombuffer(qualities, np.uint8),
                    VideoInfo(*info),
                )

    return run_in_order(read, files, threads=threads)


def kept_of_videos() -> Kept[VideoFrames]:
    """Return what is kept of videos, so that unchanged files need not be read again."""

    def pack(one: VideoFrames) -> bytes:
        arrays = one.signatures, one.offsets, one.quality
        return zlib.compress(packed(astuple(one.info), *arrays), 1)

    def unpack(data: bytes) -> VideoFrames:
        info, (signatures, offsets, quality) = unpacked(zlib.decompress(data))
        return VideoFrames(signatures, offsets, quality, VideoInfo(*info))

    library = optional_module("av", "reading videos", extra="video")
    return Kept(["videos", library.__version__, library.library_versions], pack, unpack)


def picture_of(file: Path | bytes, size: int, most: int) -> tuple[bytes, int, int] | None:
    """Return a frame as a JPEG of at most `most` bytes, its width and its height, or None."""
    received = len(file) if isinstance(file, bytes) else 0
    task = Task(
        "lookalike.videos.workers:_drawer", (size, most), seconds=_PICTURE_SECONDS,
        memory=_MEMORY + 2 * received,
    )  # fmt: skip
    (found,) = run(task, [_packed(file)])
    return found if isinstance(found, tuple) else None


def _packed(file: Path | bytes) -> str | bytes:
    return file if isinstance(file, bytes) else str(file.absolute())


def _hasher() -> Callable[[str | bytes], Any]:
    """Return a function that returns hashes, offsets, qualities and facts, or a reason."""
    av.logging.set_level(av.logging.PANIC)

    def hash(source: str | bytes) -> Any:
        try:
            found = read_frames(source)
        except DocumentError as error:
            return str(error)
        except OSError as error:
            return f"cannot be read ({error.strerror or error})"
        arrays = (found.signatures, found.offsets, found.quality)
        return *(array.tobytes() for array in arrays), astuple(found.info)

    return hash


def _drawer() -> Callable[[str | bytes, int, int], tuple[bytes, int, int] | None]:
    av.logging.set_level(av.logging.PANIC)

    def draw(source: str | bytes, size: int, most: int) -> tuple[bytes, int, int] | None:
        try:
            return small_jpeg(source, size, most)
        except (DocumentError, OSError):
            return None

    return draw
