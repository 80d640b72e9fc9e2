"""Decode videos with PyAV (FFmpeg), a few frames of each second, within limits.

The container is recognized by the first bytes and only that demuxer is used. Files are read through
a file object, so that nothing in a file can open another file or an address.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.errors import DocumentError
from lookalike.images.decode import is_image
from lookalike.lazy import LazyModule
from lookalike.shown import escape_terminal
from lookalike.storage.files import open_plain
from lookalike.videos.bars import without_steady_bars
from lookalike.videos.frames import BYTES, VideoFrames, VideoInfo
from lookalike.videos.sound import SoundReader

av = LazyModule("av", "reading videos", extra="video")

STEP = 250  # milliseconds from one hashed frame to the next
_QUERY_STEP, _QUERY_SECONDS = STEP / 4, 60  # of a query, for as many seconds
LONGEST = 24 * 3600  # maximum seconds of a video
MOST_PIXELS = 4096 * 2304  # of a frame
MOST_STREAMS = 64
_SIDE = 512  # pixels of a frame that is hashed; larger ones are reduced
_REASON = 200
_QUALITIES = (4, 10, 20, 31)  # of MJPEG, from the best on
_TRIED, _GOOD = 48, 50  # frames that are looked at for a picture, and the quality that is enough

SUFFIXES = frozenset(
    ".mp4 .m4v .mov .3gp .3g2 .mkv .webm .avi .ogv .ogm .flv .f4v .wmv .asf .mpg .mpeg .vob .ts "
    ".m2ts .mts .y4m".split()
)
_BEGINNINGS = {
    b"\x1a\x45\xdf\xa3": "matroska",
    b"FLV\x01": "flv",
    b"\x30\x26\xb2\x75\x8e\x66\xcf\x11": "asf",
    b"\x00\x00\x01\xba": "mpeg",
    b"\x00\x00\x01\xb3": "mpegvideo",
    b"YUV4MPEG2 ": "yuv4mpegpipe",
    b"G@\x00": "mpegts",
    b"G@\x11": "mpegts",
}
_ATOMS = (b"moov", b"mdat", b"wide", b"free", b"skip", b"pnot")  # of QuickTime files without brands
_AUDIO_BRANDS = (b"M4A ", b"M4B ", b"M4P ", b"aax ")
_OGG_VIDEO = (b"\x80theora", b"\x01video", b"BBCD\0", b"OVP80", b"fishead\0")


@dataclass(frozen=True)
class Reading:
    """What is read of a video."""

    crop_bars: bool = True  # leave out black bars
    orientations: int = 1  # 8: hash each frame in all orientations
    sound: bool = False  # also read the sound
    query: bool = False
    """Hash more frames, so that one of them is near each frame that was hashed of another copy,
    also if that was cut elsewhere and much changes within a step."""


PICTURES = Reading()


def container_of(head: bytes) -> str | None:
    """Return the demuxer for a file that begins with these 64 bytes, or None for other files."""
    for beginning, name in _BEGINNINGS.items():
        if head.startswith(beginning):
            return name
    if head[4:7] in (b"G@\x00", b"G@\x11"):
        return "mpegts"
    if head[:4] == b"RIFF" and head[8:12] == b"AVI ":
        return "avi"
    if head[:4] == b"OggS" and any(codec in head for codec in _OGG_VIDEO):
        return "ogg"
    if head[4:8] == b"ftyp" and not is_image(head) and head[8:12] not in _AUDIO_BRANDS:
        return "mov"
    return "mov" if head[4:8] in _ATOMS else None


def read_frames(video: str | os.PathLike[str] | bytes, reading: Reading = PICTURES) -> VideoFrames:
    """Return the hashes of frames of a file or its bytes; raise `DocumentError` or `OSError`."""
    hashes: list[NDArray[np.uint8]] = []
    offsets: list[int] = []
    qualities: list[int] = []
    with opened(video) as (container, stream):
        reader = _Reader(
            container, stream, SoundReader.of(container, LONGEST) if reading.sound else None
        )
        if reading.query:
            stream.codec_context.skip_frame = "DEFAULT"
        sampled = reader.sampled(_QUERY_STEP if reading.query else STEP)
        for offset, gray in without_steady_bars(sampled) if reading.crop_bars else sampled:
            signatures, quality = hash_frame(gray, reading.orientations)
            hashes.append(signatures)
            offsets.append(offset)
            qualities.append(quality)
        rate = float(stream.average_rate or 0)
        info = VideoInfo(
            seconds=reader.now + (1 / rate if rate > 0 else 0),
            width=reader.size[0],
            height=reader.size[1],
            rate=rate,
            format=container.format.name.partition(",")[0],
            codec=stream.codec_context.name,
        )
        heard = None if reader.sound is None else reader.sound.finish(reader.first or 0.0)
    if not hashes:
        raise DocumentError("has no frames that can be decoded")
    rows = np.array(hashes, np.uint8)
    return VideoFrames(
        np.ascontiguousarray(rows[:, 0]),
        np.array(offsets, np.int64),
        np.array(qualities, np.uint8),
        info,
        turned=np.ascontiguousarray(rows[:, 1:].transpose(1, 0, 2)),
        sound=heard,
    )


def hash_frame(gray: NDArray[np.uint8], orientations: int = 1) -> tuple[NDArray[np.uint8], int]:
    """Return the PDQ of a gray image in 1 or 8 orientations, and its quality."""
    signatures = np.empty((orientations, BYTES), np.uint8)
    hasher = _native.Pdq.of(*gray.shape)
    hasher.feed(np.ascontiguousarray(gray)[..., None])
    return signatures, hasher.finish(signatures)


class _Reader:
    """Reads the frames of a container, and the sound between them."""

    def __init__(self, container: Any, stream: Any, sound: SoundReader | None = None) -> None:
        self._container, self._stream, self.sound = container, stream, sound
        self.first: float | None = None  # second of the first frame, as the file has it
        self.now = 0.0
        self.size = 0, 0

    def sampled(self, step: float) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """Yield milliseconds and the gray values of a frame every `step`, or `STEP` at last."""
        due = 0.0
        for seconds, frame in self.frames():
            if 1000 * seconds < due:
                continue
            step = step if seconds < _QUERY_SECONDS else STEP
            due = (1000 * seconds // step + 1) * step
            self.size = frame.width, frame.height
            yield round(1000 * seconds), _gray(frame)

    def frames(self) -> Iterator[tuple[float, Any]]:
        """Yield frames with their times in seconds, from 0 on and never backward."""
        step, count = 1 / float(self._stream.average_rate or 25), 0
        for packet in self._packets():
            try:
                frames = packet.decode()
            except av.error.InvalidDataError:  # a damaged frame; others may be good
                continue
            for frame in frames:
                if frame.is_corrupt and not count:
                    continue
                seconds = frame.time
                if seconds is None:
                    seconds = (self.first or 0.0) + self.now + step
                self.first = seconds if self.first is None else self.first
                self.now = max(self.now, seconds - self.first)
                if self.now > LONGEST:
                    raise DocumentError(f"is longer than {LONGEST // 3600} hours")
                count += 1
                yield self.now, frame

    def _packets(self) -> Iterator[Any]:
        """Yield packets of the video stream, and read those of the audio stream."""
        if self.sound is None:
            yield from self._container.demux(self._stream)
            return
        for packet in self._container.demux(self._stream, self.sound.stream):
            if packet.stream_index == self._stream.index:
                yield packet
            else:
                self.sound.feed(packet)


def _gray(frame: Any) -> NDArray[np.uint8]:
    """Return the luminance of a frame, upright, reduced where it is large."""
    width, height = (
        max(1, round(side / -(-side // _SIDE))) for side in (frame.width, frame.height)
    )
    gray = frame.reformat(width, height, "gray", interpolation="AREA")
    plane = gray.planes[0]
    pixels = np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)[:, :width]
    turns = round((getattr(frame, "rotation", 0) or 0) / 90)
    return np.rot90(pixels, turns)


def small_jpeg(
    video: str | os.PathLike[str] | bytes, size: int, most: int
) -> tuple[bytes, int, int] | None:
    """Return a frame as a JPEG of at most `size` pixels each way, its width and its height.

    It is the first good one after a third of the video. None if it takes more than `most` bytes.
    """
    with opened(video) as (container, stream):
        length = container.duration or 0
        if 0 < length < LONGEST * 1_000_000:
            with suppress(av.error.FFmpegError):
                container.seek(length // 3)
        chosen = None
        for tried, (_, frame) in enumerate(_Reader(container, stream).frames()):
            chosen = frame
            if tried >= _TRIED or hash_frame(_gray(frame))[1] >= _GOOD:
                break
        if chosen is None:
            return None
        shrink = min(1.0, size / chosen.width, size / chosen.height)
        width, height = (max(2, round(side * shrink)) for side in (chosen.width, chosen.height))
        small = chosen.reformat(width, height, "yuvj420p")
        small.pts = None
        for quality in _QUALITIES:
            encoder = av.CodecContext.create("mjpeg", "w")
            encoder.width, encoder.height, encoder.pix_fmt = width, height, "yuvj420p"
            encoder.time_base = Fraction(1, 25)
            encoder.options = {"qmin": str(quality), "qmax": str(quality)}
            data = b"".join(bytes(one) for one in (*encoder.encode(small), *encoder.encode(None)))
            if len(data) <= most:
                return data, width, height
    return None


@contextmanager
def opened(video: str | os.PathLike[str] | bytes) -> Iterator[tuple[Any, Any]]:
    """Yield the container and the video stream of a file; errors become `DocumentError`."""
    file = io.BytesIO(video) if isinstance(video, bytes) else open_plain(video)
    with file:
        head = file.read(64)
        file.seek(0)
        format = container_of(head)
        if format is None:
            raise DocumentError("is not a video in a known format" if head else "is empty")
        try:
            with _container(file, format) as container:
                yield container, _stream(container)
        except av.error.FFmpegError as error:
            if isinstance(error, MemoryError):
                raise MemoryError from error
            said = escape_terminal(error.strerror or str(error), _REASON)
            raise DocumentError(f"cannot be decoded ({said})") from error
        except (ValueError, TypeError, RuntimeError) as error:
            if isinstance(error, DocumentError):
                raise
            said = escape_terminal(str(error), _REASON)
            raise DocumentError(f"cannot be decoded ({said})") from error


def _container(file: Any, format: str) -> Any:
    try:
        return av.open(
            file,
            format=format,
            metadata_errors="replace",
            container_options={
                "protocol_whitelist": "",
                "max_streams": str(MOST_STREAMS),
                "probesize": str(4 << 20),
            },
        )
    except MemoryError as error:  # FFmpeg says the same of too many streams
        raise DocumentError(
            f"has more than {MOST_STREAMS} streams, or headers that take too much memory"
        ) from error


def _stream(container: Any) -> Any:
    """Return the first video stream that is not a cover picture, prepared for decoding."""
    streams = [
        one
        for one in container.streams.video
        if not one.disposition & av.stream.Disposition.attached_pic
    ]
    if not streams:
        raise DocumentError("has no video stream")
    stream = streams[0]
    context = stream.codec_context
    if context is None:
        raise DocumentError("has a codec that is not known")
    if context.width * context.height > MOST_PIXELS:
        raise DocumentError(
            f"has frames of {context.width:,} × {context.height:,} pixels; at most "
            f"{MOST_PIXELS:,} are decoded"
        )
    context.thread_count = 1  # videos are decoded by several processes
    context.thread_type = "NONE"
    context.options = {"max_pixels": str(MOST_PIXELS)}
    context.skip_frame = "NONREF"
    return stream
