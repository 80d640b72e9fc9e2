"""Sound files, decoded by libsndfile piece by piece: samples of one channel, and what is known.

A file is anybody's: nothing is allocated by what its header claims, and what it may cost is bounded
by how long a recording may be.
"""

from __future__ import annotations

import io
import math
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from lookalike.checks import optional_module
from lookalike.errors import DocumentError
from lookalike.lazy import LazyModule
from lookalike.recordings.bands import LEAST_RATE
from lookalike.shown import escape_terminal
from lookalike.storage.files import open_plain

_PAGE = 27
"""Bytes of a page's header before its table of segments."""

_FRAMES = (480, 960, 1920, 2880) * 3 + (480, 960) * 2 + (120, 240, 480, 960) * 4
"""Samples, at 48 kHz, of a frame of each configuration of Opus."""

_HEADERS = 2

_REVERSED = bytes(int(f"{value:08b}"[::-1], 2) for value in range(256))


@dataclass
class _Page:
    begin: int
    end: int
    position: int
    """Samples up to its end, as it says; -1 if no packet ends on it."""
    samples: int
    """Samples of the packets that end on it."""
    headers: int
    """Header packets that end on it."""


def with_counted_positions(data: bytes) -> bytes | None:
    """Return an Ogg Opus file with the granule position of each page counted from its packets.

    Programs that cut and join files leave positions that jump. Players accept such files, and
    libsndfile refuses a page whose position is less than the samples up to it. Returns None if
    nothing has to change, or if it is something else: several streams, or damaged pages.
    """
    pages = [page for page in _pages(data) if not page.headers and page.position != -1]
    if not pages:
        return None
    made, position, before, jumps = bytearray(data), 0, 0, False
    for page in pages:
        counted, before = page.position - before, page.position
        if counted < page.samples and page is not pages[-1]:
            jumps = True
        # On the last page, what is not counted is padding.
        is_padded = page is pages[-1] and 0 < counted < page.samples
        position += counted if is_padded else page.samples
        made[page.begin + 6 : page.begin + 14] = position.to_bytes(8, "little")
        made[page.begin + 22 : page.begin + 26] = bytes(4)
        made[page.begin + 22 : page.begin + 26] = page_checksum(made[page.begin : page.end])
    return bytes(made) if jumps else None


def page_checksum(page: bytes | bytearray) -> bytes:
    """Return the checksum of a page: that of zlib from the other end of each byte."""
    value = zlib.crc32(page.translate(_REVERSED), 0xFFFFFFFF) ^ 0xFFFFFFFF
    return int(f"{value:032b}"[::-1], 2).to_bytes(4, "little")


def _pages(data: bytes) -> list[_Page]:
    pages: list[_Page] = []
    packet, headers, begin, stream = b"", _HEADERS, 0, data[14:18]
    while begin + _PAGE <= len(data):
        table = data[begin + _PAGE :][: data[begin + 26]]
        at = begin + _PAGE + len(table)
        if data[begin : begin + 4] != b"OggS" or data[begin + 14 : begin + 18] != stream:
            return []
        if at + sum(table) > len(data):
            break  # cut off within a page
        samples = ended = 0
        for length in table:
            packet += data[at : at + min(length, 2 if len(packet) < 2 else 0)]
            at += length
            if length < 255:
                if headers:
                    headers, ended = headers - 1, ended + 1
                else:
                    samples += _samples(packet)
                packet = b""
        position = int.from_bytes(data[begin + 6 : begin + 14], "little", signed=True)
        pages.append(_Page(begin, at, position, samples, ended))
        begin = at
    return pages


def _samples(packet: bytes) -> int:
    """Return the samples of a packet that begins with these bytes."""
    if not packet:
        return 0
    code = packet[0] & 3
    frames = (1, 2, 2, packet[1] & 63 if len(packet) > 1 else 0)[code]
    return _FRAMES[packet[0] >> 3] * frames


_BIN = 21.5
"""Width of a bin of the spectrum in Hz, about: frames have a power of two samples."""

_EVERY = 4
"""One frame out of this many is transformed."""

_QUIET = 1e-5
"""Of full scale: frames below have nothing to tell."""

_BELOW_PEAK, _FLOOR = 1e-8, 10.0**-11.5
"""Power of a bin that counts: 80 dB below the loudest one, and above the noise of 16 bits."""

_DROP = 100.0
"""A bin that is 20 dB below the mean of the octave under it lies on the slope of a filter."""

_SMOOTHED = 5


class Bandwidth:
    """Averages the power spectrum of samples that come piece by piece, to find where it ends.

    Encoders leave out what is above some frequency, and a copy made from such a file has nothing
    above it either, whatever its own format, rate and size.
    """

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._length = 1 << round(math.log2(rate / _BIN))
        window = np.hanning(self._length + 2)[1:-1]
        self._window = window.astype(np.float32)
        self._scale = (2 / float(window.sum())) ** 2
        self._power = np.zeros(self._length // 2 + 1)
        self._frames = 0
        self._rest = np.empty(0, np.float32)

    def feed(self, samples: NDArray[np.float32]) -> None:
        """Take in the next samples, of one channel."""
        held = np.concatenate([self._rest, samples])
        step = _EVERY * self._length
        count = len(held) // step
        self._rest = held[count * step :].copy()
        if count:
            self._add(sliding_window_view(held, self._length)[: count * step : step])

    def finish(self) -> int:
        """Return the frequency in Hz at which the spectrum ends; 0 for silence."""
        if not self._frames and len(self._rest):  # a recording shorter than a step
            padded = np.zeros(self._length, np.float32)
            padded[: len(self._rest)] = self._rest[: self._length]
            self._add(padded[None])
        power = self._power * (self._scale / max(1, self._frames))
        power = np.convolve(power, np.full(_SMOOTHED, 1 / _SMOOTHED), "same")
        loud = np.flatnonzero(power > max(float(power.max()) * _BELOW_PEAK, _FLOOR))
        if not len(loud):
            return 0
        sums = np.concatenate([[0.0], np.cumsum(power)])
        end = int(loud[-1])
        while end > _SMOOTHED:
            octave = (sums[end + 1] - sums[end // 2]) / (end + 1 - end // 2)
            if power[end] * _DROP >= octave:
                break
            end -= 1
        return round(end * self._rate / self._length)

    def _add(self, frames: NDArray[np.float32]) -> None:
        heard = frames[np.abs(frames).max(axis=1) > _QUIET]
        if len(heard):
            spectrum = np.fft.rfft(heard * self._window)
            self._power += np.square(np.abs(spectrum), dtype=np.float64).sum(axis=0)
            self._frames += len(heard)


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
            raise DocumentError(
                f"cannot be decoded ({escape_terminal(str(reason), _REASON)})"
            ) from error


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


_SECONDS = 8

_RATES = (8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000)
"""Those that MP3 has."""

_SMALLEST = 0.95
"""How much MP3 leaves out, from 0 to 1."""


def excerpt(file: Path, most: int) -> bytes | None:
    """Return some seconds from the middle of a file, or all of a short one, as MP3 of one channel
    and at most so many bytes; None where that cannot be done.
    """
    for from_middle in (True, False):  # the header may say more than there is
        try:
            with opened_sound(file) as (sound, _):
                found = _excerpt(sound, most, from_middle)
        except (OSError, DocumentError):
            found = None
        if found is not None:
            return found
    return None


def _excerpt(sound: Any, most: int, from_middle: bool) -> bytes | None:
    rate = int(sound.samplerate)
    if rate not in _RATES:
        return None
    wanted = _SECONDS * rate
    middle = (sound.frames - wanted) // 2
    if from_middle and 0 < middle < LONGEST * rate:
        sound.seek(middle)
    samples = one_channel(sound.read(wanted, dtype="float32", always_2d=True))
    while len(samples):
        target = io.BytesIO()
        _soundfile.write(target, samples, rate, format="MP3", compression_level=_SMALLEST)
        if len(target.getvalue()) <= most:
            return target.getvalue()
        samples = samples[: len(samples) // 2 if len(samples) > rate else 0]
    return None
