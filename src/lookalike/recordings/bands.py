"""Words of 32 bits for every 50 ms of sound, from the energies of frequency bands.

After Haitsma and Kalker (A Highly Robust Audio Fingerprinting System, 2002), with frames farther
apart. A frame is 0.4 s under a Hann window, with the energies of 33 bands between 300 and 2000 Hz,
each wider than the last by the same factor. Bit m of the word at frame n is set where

    E(n + 8, m) - E(n + 8, m + 1) > E(n, m) - E(n, m + 1)

so a word spans two adjacent frames, 0.8 s. Bits do not depend on the volume, and hardly on where a
frame begins within 25 ms: a snippet may begin anywhere. Frames have the same duration at any rate,
so bins are 2.5 Hz wide and nothing is resampled.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

HOP = 50
"""Milliseconds from one frame to the next."""
_FRAME = 400
_APART = _FRAME // HOP  # frames from the first of a word to the second
SPAN = 2 * _FRAME  # milliseconds of a word
_BANDS = 33
_LOWEST, _HIGHEST = 300.0, 2000.0
LEAST_RATE = 2 * int(_HIGHEST)
_SILENCE = 10.0 ** (-70 / 10)  # power of all bands below which a frame is silent; full scale is 1
_STEADY = 1e-6  # share of the energy of both frames up to which a difference is rounding
_TOGETHER = 32  # frames that are transformed at a time


class BandWords:
    """The words of a recording whose samples come piece by piece; about 2 s of them are held."""

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._length = round(rate * _FRAME / 1000)
        window = np.hanning(self._length + 2)[1:-1]
        self._window = window.astype(np.float32)
        self._scale = 2 / (self._length * float(np.square(window).sum()))
        edges = _LOWEST * (_HIGHEST / _LOWEST) ** (np.arange(_BANDS + 1) / _BANDS)
        bins = np.arange(self._length // 2 + 1) * (rate / self._length)
        self._edges = np.searchsorted(bins, edges)
        self._pieces: list[NDArray[np.float32]] = []
        self._first = 0  # the sample that the pieces begin with
        self._end = 0
        self._frame = 0
        self._last = np.zeros((_APART, _BANDS))
        """Energies of the frames in which the next words begin."""
        self._words: list[NDArray[np.uint32]] = []
        self._offsets: list[NDArray[np.int64]] = []

    def feed(self, samples: NDArray[np.float32]) -> None:
        """Add the next samples of one channel."""
        self._pieces.append(samples)
        self._end += len(samples)
        if self._end >= self._start(self._frame + _TOGETHER) + self._length:
            self._transform()

    def finish(self) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Return the words and their milliseconds, ascending; none for silent or equal frames."""
        self._transform()
        words = np.concatenate([np.empty(0, np.uint32), *self._words])
        return words, np.concatenate([np.empty(0, np.int64), *self._offsets])

    def _start(self, frame: int) -> int:
        return round(frame * HOP * self._rate / 1000)

    def _transform(self) -> None:
        """Make the words of all complete frames."""
        held = np.concatenate([np.empty(0, np.float32), *self._pieces])
        while self._start(self._frame) + self._length <= self._end:
            starts = [self._start(self._frame + number) for number in range(_TOGETHER)]
            starts = [one - self._first for one in starts if one + self._length <= self._end]
            self._take(self._energies(held, starts))
        begin = self._start(self._frame)
        self._pieces = [held[begin - self._first :].copy()]
        self._first = begin

    def _energies(self, held: NDArray[np.float32], starts: list[int]) -> NDArray[np.float64]:
        """Return the power of each band in the frames that begin at these samples."""
        loudest = float(np.abs(held[starts[0] : starts[-1] + self._length]).max())
        if 2 * loudest**2 < _SILENCE:  # no band can have more
            return np.zeros((len(starts), _BANDS))
        frames = sliding_window_view(held, self._length)[starts] * self._window
        spectrum = np.fft.rfft(frames)[:, : self._edges[-1]]
        power = np.square(spectrum.real, dtype=np.float64)
        power += np.square(spectrum.imag, dtype=np.float64)
        return np.asarray(np.add.reduceat(power, self._edges[:-1], axis=1) * self._scale)

    def _take(self, energies: NDArray[np.float64]) -> None:
        both = np.concatenate([self._last, energies])
        before, after = both[: len(energies)], both[_APART:]
        change = (after[:, :-1] - after[:, 1:]) - (before[:, :-1] - before[:, 1:])
        least = _STEADY * (before.sum(axis=1) + after.sum(axis=1))
        loud = np.minimum(before.sum(axis=1), after.sum(axis=1)) >= _SILENCE
        told = loud & (np.abs(change) > least[:, None]).any(axis=1)
        bits = np.packbits(change > least[:, None], axis=1, bitorder="little")
        numbers = np.arange(self._frame, self._frame + len(energies)) - _APART
        self._words.append(bits.view("<u4").ravel()[told].astype(np.uint32))
        self._offsets.append(numbers[told] * HOP)
        self._last = both[-_APART:]
        self._frame += len(energies)

    def close(self) -> None:
        """Drop all samples."""
        self._pieces = []
