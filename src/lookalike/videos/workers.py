"""Decode videos in isolated worker processes, in order, with limits on memory and time."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import optional_module
from lookalike.errors import DocumentError
from lookalike.processes import Failure, Stop, Task, run, run_in_order
from lookalike.recordings.audio_hash import Fingerprint
from lookalike.recordings.decode import AudioInfo
from lookalike.recordings.workers import facts_of
from lookalike.storage.file_cache import Kept, packed, unpacked
from lookalike.videos.decode import PICTURES, Reading, av, read_frames, small_jpeg
from lookalike.videos.frames import BYTES, VideoFrames, VideoInfo

_SECONDS, _PICTURE_SECONDS = 3600, 60  # processor time that a file may take
_MEMORY = 640 << 20  # bytes that decoding a file may take
LEAST_MEMORY = _MEMORY + (96 << 20)
"""Bytes of one worker."""


def read_videos(
    files: Iterable[Path | bytes], reading: Reading = PICTURES, *, threads: int = 1
) -> Iterator[VideoFrames | DocumentError]:
    """Yield the frames of each file, or why it could not be read, by `threads` processes."""
    optional_module("av", "reading videos", extra="video")

    def read(file: Path | bytes, stop: Stop) -> Iterator[VideoFrames | DocumentError]:
        received = len(file) if isinstance(file, bytes) else 0
        task = Task(
            "lookalike.videos.workers:_hasher",
            astuple(reading),
            seconds=_SECONDS,
            memory=_MEMORY + 2 * received,
        )
        for found in run(task, [_packed(file)], stop):
            if isinstance(found, Failure | str):
                yield DocumentError(found if isinstance(found, str) else task.reason(found))
            else:
                yield _unpacked(*found)

    return run_in_order(read, files, threads=threads)


def _unpacked(
    hashes: bytes,
    offsets: bytes,
    qualities: bytes,
    info: tuple[Any, ...],
    turned: bytes,
    sound: tuple[bytes, bytes, tuple[Any, ...]] | None,
) -> VideoFrames:
    rows = np.frombuffer(hashes, np.uint8).reshape(-1, BYTES)
    heard = None
    if sound is not None:
        words, times = np.frombuffer(sound[0], np.uint32), np.frombuffer(sound[1], np.int64)
        heard = Fingerprint(words, times, AudioInfo(*sound[2]))
    return VideoFrames(
        rows,
        np.frombuffer(offsets, np.int64),
        np.frombuffer(qualities, np.uint8),
        VideoInfo(*info),
        np.frombuffer(turned, np.uint8).reshape(-1, *rows.shape),
        heard,
    )


def kept_of_videos(reading: Reading) -> Kept[VideoFrames]:
    """Return what is kept of videos, so that unchanged files need not be read again."""

    def pack(one: VideoFrames) -> bytes:
        arrays: list[NDArray[Any]] = [one.signatures, one.offsets, one.quality, one.turned]
        heard = None
        if one.sound is not None:
            heard = facts_of(one.sound.info)
            arrays += [one.sound.words, one.sound.offsets]
        return zlib.compress(packed([astuple(one.info), heard], *arrays), 1)

    def unpack(data: bytes) -> VideoFrames:
        (info, heard), (signatures, offsets, quality, turned, *sound) = unpacked(
            zlib.decompress(data)
        )
        known = None if heard is None else Fingerprint(sound[0], sound[1], AudioInfo(*heard))
        return VideoFrames(signatures, offsets, quality, VideoInfo(*info), turned, known)

    library = optional_module("av", "reading videos", extra="video")
    versions = library.__version__, library.library_versions
    return Kept(["videos", versions, astuple(reading)], pack, unpack)


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


def _hasher() -> Callable[..., Any]:
    """Return a function that returns what `_unpacked` takes, or a reason."""
    av.logging.set_level(av.logging.PANIC)

    def hash(source: str | bytes, *reading: Any) -> Any:
        try:
            found = read_frames(source, Reading(*reading))
        except DocumentError as error:
            return str(error)
        except OSError as error:
            return f"cannot be read ({error.strerror or error})"
        arrays = (found.signatures, found.offsets, found.quality)
        heard = found.sound and (
            found.sound.words.tobytes(),
            found.sound.offsets.tobytes(),
            astuple(found.sound.info),
        )
        packed = (array.tobytes() for array in arrays)
        return *packed, astuple(found.info), found.turned.tobytes(), heard

    return hash


def _drawer() -> Callable[[str | bytes, int, int], tuple[bytes, int, int] | None]:
    av.logging.set_level(av.logging.PANIC)

    def draw(source: str | bytes, size: int, most: int) -> tuple[bytes, int, int] | None:
        try:
            return small_jpeg(source, size, most)
        except (DocumentError, OSError):
            return None

    return draw
