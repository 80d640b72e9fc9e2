"""VideoHash: PDQ hashes of frames, by which copies and clips of videos are found."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import file_path, flag, instance, optional_module, thread_count
from lookalike.errors import DocumentError, FileError
from lookalike.parts.signer import PartSigner, SignedParts, VoteSettings
from lookalike.videos.decode import STEP, Reading
from lookalike.videos.frames import BYTES, VideoFrames, read_vpdq

RADIUS = 64
"""Bits in which frames that vote may differ."""
_LEAST_VOTES = 4
_LEAST_SCORE = 0.25

Video = str | os.PathLike[str] | bytes


class VideoHash(PartSigner):
    """Hashes of video frames, four per second, which vote for a video and a time in it.

    A frame is hashed by PDQ of its luminance, 256 bits. Plain frames, such as black ones, do not
    vote, nor do frames that repeat the one before them. So re-encoded, resized and cut copies are
    found, and clips within longer videos. A video is the path or the bytes of a file. Needs the
    extra `video`.

    Args:
        crop_bars: Leave out black bars around the picture (default: True). Lists of hashes that
            other programs made need False.

    Examples:
        >>> import lookalike as la
        >>> la.VideoHash().bits
        256
    """

    bits = 8 * BYTES
    medium = "videos"
    unit = "milliseconds"
    reads_files = True
    _seeded = False

    def __init__(self, crop_bars: bool = True) -> None:
        super().__init__(0)
        self.crop_bars = flag("crop_bars", crop_bars)

    @property
    def votes(self) -> VoteSettings:
        """Settings for searching: frames within a step of each other vote together."""
        return VoteSettings(RADIUS, STEP, _LEAST_VOTES, _LEAST_SCORE, STEP, nearness=True)

    def sign(self, video: Video, *, threads: SupportsIndex | None = None) -> NDArray[np.uint8]:
        """Return the hashes of the voting frames of one video, `uint8[n, 32]`."""
        return self.sign_parts(video, threads=threads)[0]

    def sign_parts(
        self, video: Video, *, threads: SupportsIndex | None = None
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Return the hashes of the voting frames, and the millisecond of each."""
        thread_count(threads)
        return _voting(self.frames(video))

    def sign_each(
        self, things: Sequence[str], *, threads: SupportsIndex | None = None
    ) -> Iterator[SignedParts | DocumentError]:
        """Yield the voting frames of each file, or an error, decoded by `threads` processes."""
        from lookalike.videos.workers import read_videos  # which imports this module

        for one in read_videos(
            map(Path, things), Reading(self.crop_bars), threads=thread_count(threads)
        ):
            yield one if isinstance(one, DocumentError) else _voting(one)

    def sign_query(
        self, thing: Video | VideoFrames, *, threads: SupportsIndex | None = None
    ) -> SignedParts:
        """Return the voting frames of a query, decoded in an isolated process, or of frames."""
        thread_count(threads)
        return _voting(thing if isinstance(thing, VideoFrames) else self.frames(thing, query=True))

    def frames(self, video: Video, *, query: bool = False) -> VideoFrames:
        """Return the hashes of sampled frames, four per second, decoded in an isolated process.

        With `query`, there are sixteen per second in the first minute, so that a clip is found that
        begins between two frames of the indexed video. A `.txt` file is a list of hashes of frames,
        as vPDQ writes it.

        Raises:
            FileError: The file cannot be read.
            FormatError: A list of hashes is not valid; it names the line and the column.
        """
        from lookalike.videos.workers import read_videos

        dense = flag("query", query)
        source = bytes(video) if isinstance(video, bytes | bytearray | memoryview) else video
        path = source if isinstance(source, bytes) else file_path("video", source)
        if isinstance(path, Path) and path.suffix.lower() == ".txt":
            return read_vpdq(path)
        (found,) = read_videos([path], Reading(self.crop_bars, query=dense))
        if isinstance(found, DocumentError):
            name = "the video" if isinstance(path, bytes) else path
            raise FileError(f"{name} {found}") from found
        return found

    def check_installed(self) -> None:
        """Raise `MissingDependencyError` if files cannot be read."""
        optional_module("av", "reading videos", extra="video")


def _voting(frames: VideoFrames) -> SignedParts:
    chosen = instance("video", frames, VideoFrames, "a path or bytes").voting
    return SignedParts(frames.signatures[chosen], frames.offsets[chosen])
