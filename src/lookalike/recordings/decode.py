"""Sound files, decoded by libsndfile piece by piece: samples of one channel, and what is known.

A file is anybody's: nothing is allocated by what its header claims, and what it may cost is bounded
by how long a recording may be.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import optional_module
from lookalike.errors import DocumentError
from lookalike.lazy import LazyModule
from lookalike.recordings.bands import LEAST_RATE
from lookalike.recordings.bandwidth import Bandwidth
from lookalike.recordings.ogg_opus import with_counted_positions
from lookalike.shown import shown
from lookalike.storage.files import open_plain

__all__ = [
    "FASTEST",
    "LONGEST",
    "SUFFIXES",
    "Sound",
    "check_installed",
    "decode",
    "is_sound",
    "one_channel",
    "opened_sound",
]

_PURPOSE = "reading recordings"
_soundfile = LazyModule("soundfile", _PURPOSE, extra="audio")

LONGEST = 24 * 3600
"""Seconds; what is longer is refused."""
FASTEST = 768_000
"""Samples a second."""
_LOUDEST = 1e6
"""Of a full scale of 1; what is beyond is no sound, and its squares would be lost."""
_PIECE = 1 << 18
"""Samples, of all channels, that are decoded at a time."""
_REASON = 120
_MISSING = 0.25
"""Seconds that may be missing at the end: a decoder needs a block or two before it can begin."""
_HEAD = 1 << 18
_LARGEST_FRAME = 4096
_LARGEST_OPUS = 64 << 20
"""Bytes of a file whose beginning, and whose time stamps, are looked at."""

SUFFIXES = frozenset(
    ".wav .wave .flac .ogg .oga .opus .mp3 .mp2 .aif .aiff .aifc .au .snd .caf .w64 .rf64".split()
)

_BEGINNINGS = (b"fLaC", b"ID3", b"caff", b".snd", b"riff\x2e\x91\xcf\x11")
_LOSSY = ("MPEG", "VORBIS", "OPUS", "ADPCM", "ULAW", "ALAW", "GSM", "G72", "DWVW", "VOX")


@dataclass(frozen=True)
class Sound:
    """What is known of a sound file."""

    seconds: float
    rate: int
    """Samples a second of each channel."""
    channels: int
    format: str
    """Such as "FLAC"."""
    lossless: bool
    """Whether the format is lossless; a lossless copy of a lossy file is, too."""
    codec: str = ""
    """Such as "VORBIS" or "PCM_16"."""
    bandwidth: int = 0
    """Where the spectrum ends, in Hz; 0 for silence."""


def check_installed() -> None:
    """Raise `MissingDependencyError` where sound files cannot be read, before there is work."""
    optional_module("soundfile", _PURPOSE, extra="audio")


def is_sound(head: bytes) -> bool:
    """Return whether a file that begins with these bytes, 64 of them, is one of sound."""
    if head.startswith(_BEGINNINGS):
        return True
    if head[:4] in (b"RIFF", b"RIFX", b"RF64"):
        return head[8:12] == b"WAVE"
    if head[:4] == b"FORM":
        return head[8:12] in (b"AIFF", b"AIFC")
    if head[:4] == b"OggS":
        return any(codec in head for codec in (b"\x01vorbis", b"OpusHead", b"\x7fFLAC"))
    return len(head) >= 4 and _is_mpeg_frame(head)


def _is_mpeg_frame(head: bytes) -> bool:
    """Return whether bytes are the header of a frame of MPEG audio, layer II or III."""
    version, layer = head[1] >> 3 & 3, head[1] >> 1 & 3
    bit_rate, rate = head[2] >> 4, head[2] >> 2 & 3
    sync = head[0] == 0xFF and head[1] >> 5 == 7
    return sync and version != 1 and layer in (1, 2) and bit_rate not in (0, 15) and rate != 3


def decode(
    recording: str | os.PathLike[str] | bytes, begin: Callable[[int], Callable[[Any], None]]
) -> Sound:
    """Decode a file, or the bytes of one: `begin` hears the rate, and returns what hears samples.

    These are float32, full scale at 1, channels averaged. Raises `DocumentError` with what is wrong
    with the file, or `OSError`.
    """
    with opened_sound(recording) as (file, declares_length):
        return _decoded(file, begin, declares_length)


@contextmanager
def opened_sound(recording: str | os.PathLike[str] | bytes) -> Iterator[tuple[Any, bool]]:
    """Yield a `soundfile.SoundFile` to be read from the beginning to the end, and whether the
    number of its frames is known and not estimated.

    What goes wrong with it is a `DocumentError` or an `OSError`.
    """
    opened = io.BytesIO(recording) if isinstance(recording, bytes) else open_plain(recording)
    with opened:
        if opened.seek(0, io.SEEK_END) == 0:
            raise DocumentError("is empty")
        opened.seek(0)
        head = opened.read(_HEAD)
        source: Any = opened if isinstance(recording, bytes) else opened.fileno()
        if b"OpusHead" in head[:64]:
            opened.seek(0)
            repaired = with_counted_positions(opened.read(_LARGEST_OPUS))
            source = source if repaired is None else io.BytesIO(repaired)
        opened.seek(0)  # and so does its descriptor
        try:
            with closing(_stream(source)) as file:
                yield file, _declares_length(head)
        except (RuntimeError, ValueError, TypeError) as error:
            if isinstance(error, DocumentError):
                raise
            reason = getattr(error, "error_string", None) or str(error)
            raise DocumentError(f"cannot be decoded ({shown(str(reason), _REASON)})") from error


def _stream(source: Any) -> Any:
    """Return a file that is read without seeking.

    soundfile seeks after each read of a file that can seek, which fails in streams whose header
    does not say how long they are.
    """

    class Stream(_soundfile.SoundFile):  # type: ignore[misc,name-defined]
        def seekable(self) -> bool:
            return False

    return Stream(source, closefd=False)


def _declares_length(head: bytes) -> bool:
    """Return whether the number of samples that libsndfile reports is that of the file.

    For MP3 without a Xing, Info or VBRI header it is an estimate. FLAC may keep the number of a
    longer file that it was cut from; that a stream breaks off is noticed while it is decoded.
    """
    if head.startswith(b"fLaC"):
        return False
    frame = head
    if head.startswith(b"ID3") and len(head) >= 10:
        size = 0
        for value in head[6:10]:
            size = size << 7 | value & 127
        frame = head[10 + size :]
    if _is_mpeg_frame(frame.ljust(4, b"\0")) or head.startswith(b"ID3"):
        return any(name in frame[:_LARGEST_FRAME] for name in (b"Xing", b"Info", b"VBRI"))
    return True


def _decoded(
    file: Any, begin: Callable[[int], Callable[[Any], None]], declares_length: bool
) -> Sound:
    rate, channels = int(file.samplerate), int(file.channels)
    if not LEAST_RATE <= rate <= FASTEST:
        raise DocumentError(
            f"has {rate:,} samples a second; expected from {LEAST_RATE:,} to {FASTEST:,}"
        )
    hear, count, at_a_time = begin(rate), 0, max(1, _PIECE // max(1, channels))
    bandwidth = Bandwidth(rate)
    while len(samples := file.read(at_a_time, dtype="float32", always_2d=True)):
        count += len(samples)
        if count > LONGEST * rate:
            raise DocumentError(f"is longer than {LONGEST // 3600} hours")
        mixed = one_channel(samples)
        hear(mixed)
        bandwidth.feed(mixed)
    known = declares_length and file.frames <= LONGEST * rate
    if known and count < file.frames - rate * _MISSING:
        raise DocumentError(
            f"is cut off: {count / rate:,.1f} of {file.frames / rate:,.1f} seconds are there"
        )
    if count == 0:
        raise DocumentError("has no samples")
    codec = str(file.subtype)
    lossless = not any(name in codec for name in _LOSSY)
    seconds, end = count / rate, bandwidth.finish()
    return Sound(seconds, rate, channels, str(file.format), lossless, codec, end)


def one_channel(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the mean of all channels, or raise `DocumentError`: it is no sound."""
    mixed = samples[:, 0] if samples.shape[1] == 1 else samples.mean(axis=1)
    # A comparison with what is no number is false.
    if not bool((np.abs(mixed) <= _LOUDEST).all()):
        raise DocumentError("has samples that are no numbers, or beyond any sound")
    return mixed
