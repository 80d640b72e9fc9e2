"""Chroma: how strong each of the twelve notes of the scale is, ten times a second.

A frame is 0.4 s under a Hann window; frames begin every 0.1 s. Peaks of the spectrum between 100
and 2200 Hz count with the square root of their amplitude, octaves together. How far all peaks of a
recording are from the notes of a piano says how it is tuned; then each peak counts for the nearest
note, and less for the next one. A frame is scaled to its strongest note.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

NOTES = 12
HOP = 100
"""Milliseconds from one frame to the next."""
FRAME = 400
_LOWEST, _HIGHEST = 100.0, 2200.0
_CONCERT_PITCH = 440.0
_FINE = 5  # parts of a semitone that are counted apart, until the tuning is known
_OCTAVES = 10  # so that no note is negative
_QUIET = 1e-4  # amplitude, of full scale, of peaks that do not count
_BELOW_PEAK = 0.01  # nor do peaks below this share of the highest one of their frame
_TOGETHER = 32  # frames that are transformed at a time
_STRONGEST = 255


class ChromaFrames:
    """The chroma of a recording whose samples come piece by piece; some 3 s of them are held."""

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._length = round(rate * FRAME / 1000)
        window = np.hanning(self._length + 2)[1:-1]
        self._window = window.astype(np.float32)
        self._scale = np.float32(2 / float(window.sum()))
        self._width = rate / self._length
        self._lowest = int(np.ceil(_LOWEST / self._width))
        self._end = min(int(_HIGHEST / self._width) + 1, self._length // 2)
        self._pieces: list[NDArray[np.float32]] = []
        self._first = 0  # the sample that the pieces begin with
        self._fed = 0
        self._frame = 0
        self._fine: list[NDArray[np.uint8]] = []
        self._total = np.zeros(_FINE)  # of all peaks, by where they are in their semitone

    def feed(self, samples: NDArray[np.float32]) -> None:
        """Add the next samples of one channel."""
        self._pieces.append(samples)
        self._fed += len(samples)
        if self._fed >= self._start(self._frame + _TOGETHER) + self._length:
            self._transform()

    def finish(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Return `uint8[frames, 12]`, from C on, and the milliseconds; zeros where it is silent."""
        self._transform()
        begins = np.arange(self._frame, dtype=np.int64) * HOP
        if not self._fine:
            return np.empty((0, NOTES), np.uint8), begins
        weights = _folding(self._total)
        return np.concatenate([_scaled(fine @ weights) for fine in self._fine]), begins

    def close(self) -> None:
        """Drop all samples."""
        self._pieces = []

    def _start(self, frame: int) -> int:
        return round(frame * HOP * self._rate / 1000)

    def _transform(self) -> None:
        """Take in all complete frames."""
        held = np.concatenate([np.empty(0, np.float32), *self._pieces])
        while self._start(self._frame) + self._length <= self._fed:
            starts = [self._start(self._frame + number) for number in range(_TOGETHER)]
            starts = [one - self._first for one in starts if one + self._length <= self._fed]
            frames = sliding_window_view(held, self._length)[starts] * self._window
            spectrum = np.fft.rfft(frames)[:, self._lowest - 1 : self._end + 1]
            peaks = self._peaks(np.abs(spectrum).astype(np.float32) * self._scale)
            self._total += peaks.sum(axis=0).reshape(NOTES, _FINE).sum(axis=0)
            self._fine.append(_scaled(peaks))
            self._frame += len(starts)
        begin = self._start(self._frame)
        self._pieces = [held[begin - self._first :].copy()]
        self._first = begin

    def _peaks(self, amplitudes: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the sum of the peaks of each frame in each part of a semitone, from A on."""
        left, middle, right = amplitudes[:, :-2], amplitudes[:, 1:-1], amplitudes[:, 2:]
        least = np.maximum(middle.max(axis=1, keepdims=True) * _BELOW_PEAK, _QUIET)
        frame, bin = np.nonzero((middle > left) & (middle >= right) & (middle > least))
        # The parabola through the logarithms of three amplitudes has its vertex at the frequency.
        low, top, high = (
            np.log(np.maximum(one[frame, bin].astype(np.float64), 1e-12))
            for one in (left, middle, right)
        )
        moved = 0.5 * (low - high) / np.minimum(low - 2 * top + high, -1e-9)
        pitch = np.log2((self._lowest + bin + moved) * self._width / _CONCERT_PITCH) + _OCTAVES
        place = np.floor((NOTES * pitch + 0.5 / _FINE) * _FINE).astype(np.int64) % (NOTES * _FINE)
        size = NOTES * _FINE
        weights = np.exp(top / 2)
        sums = np.bincount(frame * size + place, weights, len(amplitudes) * size)
        return np.asarray(sums.reshape(-1, size), np.float64)


def _folding(total: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how much each part of a semitone, from A on, counts for each note, from C on."""
    turns = np.exp(2j * np.pi * np.arange(_FINE) / _FINE)
    tuning = float(np.angle((total * turns).sum())) / (2 * np.pi) * _FINE
    size = NOTES * _FINE
    notes = (np.arange(NOTES) + 3) % NOTES  # C is three semitones above A
    apart = np.arange(size)[:, None] - notes * _FINE - tuning
    apart = np.abs((apart + size / 2) % size - size / 2)
    near = np.cos(np.pi / 2 * np.minimum(apart / _FINE, 1)) ** 2
    return np.where(apart < _FINE, near, 0.0)


def _scaled(rows: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Return rows in bytes, the largest value of each as 255."""
    most = rows.max(axis=1, keepdims=True)
    scaled: NDArray[np.float64] = np.rint(rows * (_STRONGEST / np.maximum(most, 1e-12)))
    return scaled.astype(np.uint8)
