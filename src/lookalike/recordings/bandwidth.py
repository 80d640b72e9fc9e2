"""Where the spectrum of a recording ends: what its sampling rate and format only promise.

Encoders leave out what is above some frequency, and a copy made from that file has nothing above
it either, whatever its own format, rate and size.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

__all__ = ["Bandwidth"]

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
    """Averages the power spectrum of samples that come piece by piece."""

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
