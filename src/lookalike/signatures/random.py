"""Random numbers that are the same for ever: SplitMix64 (Steele, Lea and Flood)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def random_words(seed: int, count: int) -> NDArray[np.uint64]:
    """Return `count` random 64-bit words."""
    steps = np.arange(1, count + 1, dtype=np.uint64)
    state = np.uint64(seed) + steps * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


def random_normals(seed: int, count: int) -> NDArray[np.float32]:
    """Return `count` standard normal numbers (Box and Muller), the same on every machine."""
    uniform = ((random_words(seed, 2 * count) >> np.uint64(11)) + 0.5) * 2.0**-53
    radius = np.sqrt(-2 * np.log(uniform[:count]))
    normals: NDArray[np.float64] = radius * np.cos(2 * np.pi * uniform[count:])
    return normals.astype(np.float32)  # without the last digits, in which machines may differ
