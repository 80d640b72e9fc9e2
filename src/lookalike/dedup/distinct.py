"""Numbers without those that are there twice."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def distinct(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return them ascending, each once, as `np.unique` does.

    That imports `numpy.ma`, which takes as long as the rest of a small job.
    """
    ascending = np.sort(numbers)
    is_first = np.append(True, ascending[1:] != ascending[:-1])[: len(ascending)]
    found: NDArray[np.int64] = ascending[is_first]
    return found


def numbered(numbers: NDArray[np.int64], bound: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return them ascending, each once, and the place of each number among these.

    They are below `bound`; if that is not much more than their count, nothing is sorted.
    """
    if bound > 16 * len(numbers):
        found, places = np.unique(numbers, return_inverse=True)
        return found, places
    there = np.zeros(bound, bool)
    there[numbers] = True
    place = np.cumsum(there) - 1
    return np.flatnonzero(there), place[numbers]
