"""Decode audio files with libsndfile, piece by piece, into samples of one channel.

Files are untrusted: no allocation depends on a header alone, and `LONGEST` limits the cost.
"""

from __future__ import annotations

import io
import math
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from lookalike.errors import DocumentError
from lookalike.lazy import LazyModule
from lookalike.recordings.bands import LEAST_RATE, BandWords
from lookalike.recordings.chroma import ChromaFrames
from lookalike.recordings.chromaprint import ChromaprintWords
from lookalike.shown import escape_terminal
from lookalike.storage.files import open_plain

Words = BandWords | ChromaprintWords | ChromaFrames

_PAGE = 27  # bytes of the header of an Ogg page before its table of segments
# samples, at 48 kHz, of a frame of each Opus configuration
_FRAMES = (480, 960, 1920, 2880) * 3 + (480, 960) * 2 + (120, 240, 480, 960) * 4
_HEADERS = 2
_REVERSED = bytes(int(f"{value:08b}"[::-1], 2) for value in range(256))


@dataclass
class _Page:
    begin: int
    end: int
    position: int  # samples up to its end, as its header says; -1 if no packet ends on it
    samples: int  # of the packets that end on it
    headers: int  # packets of headers that end on it


def with_counted_positions(data: bytes) -> bytes | None:
    """Return an Ogg Opus file with the granule positions of its pages counted from their packets.

    Programs that cut and join files leave gaps, which libsndfile does not accept. Returns None if
    there are none, if there are several streams, or if pages are damaged.
    """
    pages = [page for page in _pages(data) if not page.headers and page.position != -1]
    made, position, before, jumps = bytearray(data), 0, 0, False
    for page in pages:
        counted, before = page.position - before, page.position
        if page is not pages[-1]:
            jumps |= counted < page.samples
            counted = page.samples
        # What the last page does not count is padding.
        position += counted if 0 < counted < page.samples else page.samples
        made[page.begin + 6 : page.begin + 14] = position.to_bytes(8, "little")
        made[page.begin + 22 : page.begin + 26] = bytes(4)
        made[page.begin + 22 : page.begin + 26] = page_checksum(made[page.begin : page.end])
    return bytes(made) if jumps else None


def page_checksum(page: bytes | bytearray) -> bytes:
    """Return the checksum of a page: that of zlib, of bytes with reversed bits."""
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
    """Return the number of samples of a packet that begins with these bytes."""
    if not packet:
        return 0
    code = packet[0] & 3
    frames = (1, 2, 2, packet[1] & 63 if len(packet) > 1 else 0)[code]
    return _FRAMES[packet[0] >> 3] * frames


_BIN = 21.5  # approximate width of a bin of the spectrum in Hz; frames have a power of two samples
_EVERY = 4  # one frame out of this many is transformed
_QUIET = 1e-5  # amplitude, of full scale, of frames that are skipped
# power of a bin that counts: 80 dB below the peak, above the noise of 16 bits
_BELOW_PEAK, _FLOOR = 1e-8, 10.0**-11.5
_DROP = 100.0  # a bin 20 dB below the mean of the octave under it is on the slope of a filter
_SMOOTHED = 5


class Bandwidth:
    """Averages the power spectrum of samples: lossy encoders leave out high frequencies."""

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
        """Add the next samples of one channel."""
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


_STRETCHES, _MOST_PEAKS = 200, 4096


class Waveform:
    """The loudest sample of each of some hundred equal stretches of a recording."""

    def __init__(self) -> None:
        self._each = 64  # samples of a peak
        self._peaks: list[NDArray[np.float32]] = []
        self._count = 0
        self._rest = np.empty(0, np.float32)

    def feed(self, samples: NDArray[np.float32]) -> None:
        """Add the next samples of one channel."""
        held = np.concatenate([self._rest, np.abs(samples)])
        whole = len(held) // self._each * self._each
        self._rest = held[whole:].copy()
        self._add(held[:whole].reshape(-1, self._each).max(axis=1))
        while self._count > _MOST_PEAKS:
            # A pair of peaks becomes one; what is left over is fed again as samples.
            peaks = np.concatenate(self._peaks)
            odd = peaks[len(peaks) // 2 * 2 :]
            self._rest = np.concatenate([np.repeat(odd, self._each), self._rest])
            self._peaks, self._count, self._each = [], 0, 2 * self._each
            self._add(peaks[: len(peaks) // 2 * 2].reshape(-1, 2).max(axis=1))

    def finish(self) -> bytes:
        """Return a byte for each of up to 200 stretches; the loudest one has 255."""
        rest = [self._rest.max(keepdims=True)] if len(self._rest) else []
        peaks = np.concatenate([np.empty(0, np.float32), *self._peaks, *rest])
        if not len(peaks):
            return b""
        stretches = min(_STRETCHES, len(peaks))
        peaks = np.maximum.reduceat(peaks, np.arange(stretches) * len(peaks) // stretches)
        loudest = float(peaks.max())
        scaled = peaks * (255 / loudest) if loudest > 0 else peaks
        return np.rint(scaled).astype(np.uint8).tobytes()

    def _add(self, peaks: NDArray[np.float32]) -> None:
        if len(peaks):
            self._peaks.append(peaks)
            self._count += len(peaks)


_soundfile = LazyModule("soundfile", "reading recordings", extra="audio")

LONGEST = 24 * 3600  # maximum seconds of a recording
FASTEST = 768_000  # maximum samples per second of a recording
_LOUDEST = 1e6  # samples beyond this, of a full scale of 1, are not valid
PIECE = 1 << 18  # samples, of all channels, that are processed at a time
_REASON = 120
_MISSING = 0.25  # seconds that may be missing at the end, since decoders drop a block or two
_HEAD = 1 << 18
_LARGEST_FRAME = 4096
_LARGEST_OPUS = 64 << 20  # bytes of an Opus file of which the positions of pages are checked
SUFFIXES = frozenset(
    ".wav .wave .flac .ogg .oga .opus .mp3 .mp2 .aif .aiff .aifc .au .snd .caf .w64 .rf64".split()
)
_BEGINNINGS = (b"fLaC", b"ID3", b"caff", b".snd", b"riff\x2e\x91\xcf\x11")
_LOSSY = ("MPEG", "VORBIS", "OPUS", "ADPCM", "ULAW", "ALAW", "GSM", "G72", "DWVW", "VOX")


@dataclass(frozen=True)
class AudioInfo:
    """Facts about an audio file."""

    seconds: float
    rate: int  # samples per second of each channel
    channels: int
    format: str  # such as "FLAC"
    lossless: bool  # whether the format is lossless, even if the file was made from a lossy one
    codec: str = ""  # such as "VORBIS" or "PCM_16"
    bandwidth: int = 0  # where the spectrum ends, in Hz; 0 for silence
    waveform: bytes = field(default=b"", repr=False)  # see `Waveform.finish`


def is_audio(head: bytes) -> bool:
    """Return whether a file that begins with these 64 bytes is an audio file."""
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
    """Return whether bytes begin with a frame of MPEG audio, layer II or III."""
    version, layer = head[1] >> 3 & 3, head[1] >> 1 & 3
    bit_rate, rate = head[2] >> 4, head[2] >> 2 & 3
    sync = head[0] == 0xFF and head[1] >> 5 == 7
    return sync and version != 1 and layer in (1, 2) and bit_rate not in (0, 15) and rate != 3


def decode(
    recording: str | os.PathLike[str] | bytes, words_at: Callable[[int], Words]
) -> tuple[NDArray[Any], NDArray[np.int64], AudioInfo]:
    """Return the words of a file or its bytes, their offsets, and facts about the file.

    `words_at` is called with the rate. Raises `DocumentError` or `OSError`.
    """
    with _opened(recording) as (file, declares_length):
        rate, channels = int(file.samplerate), int(file.channels)
        if not LEAST_RATE <= rate <= FASTEST:
            raise DocumentError(
                f"has {rate:,} samples per second; expected {LEAST_RATE:,} to {FASTEST:,}"
            )
        words, offsets, seconds, bandwidth, waveform = words_in(
            _pieces(file, declares_length), rate, words_at
        )
        codec = str(file.subtype)
        lossless = not any(name in codec for name in _LOSSY)
        facts = seconds, rate, channels, str(file.format), lossless, codec, bandwidth
        info = AudioInfo(*facts, waveform)
        return words, offsets, info


def words_in(
    pieces: Iterable[NDArray[np.float32]], rate: int, words_at: Callable[[int], Words]
) -> tuple[NDArray[Any], NDArray[np.int64], float, int, bytes]:
    """Return the words of samples, their offsets, the seconds, where the spectrum ends, and peaks.

    Pieces are `float32[n, channels]`, with full scale at 1; channels are averaged.
    """
    bandwidth, waveform, count = Bandwidth(rate), Waveform(), 0
    with closing(words_at(rate)) as words:
        for piece in pieces:
            count += len(piece)
            mixed = _one_channel(piece)
            words.feed(mixed)
            bandwidth.feed(mixed)
            waveform.feed(mixed)
        return *words.finish(), count / rate, bandwidth.finish(), waveform.finish()


def _pieces(file: Any, declares_length: bool) -> Iterator[NDArray[np.float32]]:
    """Yield the samples of a file; raise if there are none, or too many, or some are missing."""
    rate, count, at_a_time = file.samplerate, 0, max(1, PIECE // max(1, file.channels))
    while len(samples := file.read(at_a_time, dtype="float32", always_2d=True)):
        count += len(samples)
        if count > LONGEST * rate:
            raise DocumentError(f"is longer than {LONGEST // 3600} hours")
        yield samples
    known = declares_length and file.frames <= LONGEST * rate
    if known and count < file.frames - rate * _MISSING:
        raise DocumentError(
            f"is truncated: it has {count / rate:,.1f} of {file.frames / rate:,.1f} seconds"
        )
    if count == 0:
        raise DocumentError("has no samples")


@contextmanager
def _opened(recording: str | os.PathLike[str] | bytes) -> Iterator[tuple[Any, bool]]:
    """Yield a `soundfile.SoundFile`, and whether its number of frames is not an estimate."""
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
        opened.seek(0)  # also of its descriptor
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
    """Return a file that is read without seeking, which fails if the length is not declared."""

    class Stream(_soundfile.SoundFile):  # type: ignore[misc,name-defined]
        def seekable(self) -> bool:
            return False

    return Stream(source, closefd=False)


def _declares_length(head: bytes) -> bool:
    """Return whether the number of samples that libsndfile reports is that of the file.

    It is an estimate for MP3 without a Xing, Info or VBRI header. FLAC may keep the number of a
    longer file that it was cut from, but decoding notices a truncated stream.
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


def _one_channel(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the mean of all channels, or raise `DocumentError` for samples that are not valid."""
    mixed = samples[:, 0] if samples.shape[1] == 1 else samples.mean(axis=1)
    if not bool((np.abs(mixed) <= _LOUDEST).all()):  # false for NaN
        raise DocumentError("has samples that are not finite, or far beyond full scale")
    return mixed


_SECONDS = 8
_RATES = (8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000)  # rates of MP3
_COMPRESSION = 0.95  # compression level of MP3, from 0 to 1


def excerpt(file: Path, most: int) -> bytes | None:
    """Return up to 8 s from the middle of a file as MP3 of at most `most` bytes, or None."""
    for from_middle in (True, False):  # the header may say more than there is
        try:
            with _opened(file) as (sound, _):
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
    samples = _one_channel(sound.read(wanted, dtype="float32", always_2d=True))
    while len(samples):
        target = io.BytesIO()
        _soundfile.write(target, samples, rate, format="MP3", compression_level=_COMPRESSION)
        if len(target.getvalue()) <= most:
            return target.getvalue()
        samples = samples[: len(samples) // 2 if len(samples) > rate else 0]
    return None
