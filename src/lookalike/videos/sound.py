"""The sound of a video, as words of `la.AudioHash` at the times of its frames."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from lookalike.lazy import LazyModule
from lookalike.recordings.audio_hash import Fingerprint
from lookalike.recordings.bands import LEAST_RATE, BandWords
from lookalike.recordings.decode import FASTEST, AudioInfo

av = LazyModule("av", "reading videos", extra="video")

_RATE = 8000  # samples per second that words are made of; they end at 2000 Hz
_MOST_CHANNELS = 64
_LEAST_WORDS = 20  # of a second
_FARTHEST = 3600 * 1000  # milliseconds from the first frame to the first sound


class SoundReader:
    """Decodes the packets of an audio stream, as far as that is possible.

    A video is compared without its sound if that has an unknown codec. Damaged packets are left
    out, and all that follows a change of the format.
    """

    def __init__(self, stream: Any, longest: int) -> None:
        """Read at most `longest` seconds."""
        self.stream = stream
        self._words = BandWords(_RATE)
        self._left = longest * _RATE
        self._samples = 0
        self._begin: float | None = None
        context = stream.codec_context
        context.thread_count = 1
        context.thread_type = "NONE"
        self._resampler: Any = av.AudioResampler("fltp", "mono", _RATE)

    @classmethod
    def of(cls, container: Any, longest: int) -> SoundReader | None:
        """Return a reader of the first audio stream; None if there is none that can be read."""
        for stream in container.streams.audio:
            context = stream.codec_context
            if context is None:
                continue
            rate, channels = int(context.sample_rate or 0), int(context.channels or 0)
            if LEAST_RATE <= rate <= FASTEST and 1 <= channels <= _MOST_CHANNELS:
                return cls(stream, longest)
        return None

    def feed(self, packet: Any) -> None:
        """Decode the next packet."""
        if self._left <= 0:
            return
        try:
            for frame in packet.decode():
                if self._begin is None:
                    self._begin = float(frame.time or 0.0)
                self._take(self._resampler.resample(frame))
        except av.error.InvalidDataError:  # a damaged packet; others may be good
            return
        except (av.error.FFmpegError, ValueError, TypeError, RuntimeError) as error:
            if isinstance(error, MemoryError):
                raise MemoryError from error
            self._left = 0

    def finish(self, zero: float) -> Fingerprint | None:
        """Return the words; their offsets count from the second `zero` of the file."""
        if self._left > 0 and self._begin is not None:
            with suppress(av.error.FFmpegError, ValueError):
                self._take(self._resampler.resample(None))
        words, offsets = self._words.finish()
        later = round(1000 * ((self._begin or 0.0) - zero))
        if len(words) < _LEAST_WORDS or abs(later) > _FARTHEST:
            return None
        context = self.stream.codec_context
        info = AudioInfo(
            self._samples / _RATE,
            int(context.sample_rate),
            int(context.channels),
            "video",
            lossless=False,
            codec=str(context.name),
        )
        return Fingerprint(words, offsets + later, info)

    def _take(self, frames: Any) -> None:
        for frame in frames:
            samples = frame.to_ndarray()[0, : self._left]
            self._left -= len(samples)
            self._samples += len(samples)
            self._words.feed(np.clip(np.nan_to_num(samples), -1, 1).astype(np.float32))
