"""The words of a recording, all samples at once and each band by itself."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray


def band_words(samples: NDArray[np.float32], rate: int) -> dict[int, tuple[int, int]]:
    """Return by millisecond (word, doubtful): bits of the second are so close that rounding may
    decide them.
    """
    length = round(0.4 * rate)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(1, length + 1) / (length + 1))
    scale = 2 / (length * (window**2).sum())
    edges = [300 * (2000 / 300) ** (band / 33) for band in range(34)]
    energies: list[list[float]] = []
    while round(len(energies) * rate / 20) + length <= len(samples):
        begin = round(len(energies) * rate / 20)
        frame = samples[begin : begin + length].astype(np.float64) * window
        power = np.abs(np.fft.rfft(frame)) ** 2 * scale
        bins = np.arange(len(power)) * rate / length
        energies.append(
            [power[(low <= bins) & (bins < high)].sum() for low, high in pairwise(edges)]
        )
    found = {}
    for number, (before, after) in enumerate(zip(energies, energies[8:], strict=False)):
        if min(sum(before), sum(after)) < 1e-7:
            continue
        least = 1e-6 * (sum(before) + sum(after))
        word = doubtful = 0
        changed = False
        for bit in range(32):
            change = (after[bit] - after[bit + 1]) - (before[bit] - before[bit + 1])
            word |= (change > least) << bit
            doubtful |= (abs(abs(change) - least) < 0.5 * least) << bit
            changed |= abs(change) > least
        if changed:
            found[50 * number] = word, doubtful
    return found
