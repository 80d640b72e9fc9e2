"""Which words of two recordings match, and the longest path through the matches, cell by cell."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["longest_path_of", "matching_of"]


def longest_path_of(matches: NDArray[np.bool_]) -> float:
    """Return the most matches of a path, less 5 for a gap and 0.5 for each further step in it."""
    values: dict[tuple[int, int], float] = {}
    best = 0.0
    for i in range(matches.shape[0]):
        for j in range(matches.shape[1]):
            before = [(i - 1, j - 1), (i - 2, j - 1), (i - 1, j - 2)]
            known = [one for one in before if one in values]
            if matches[i, j]:
                value = 1 + max((values[one] for one in known), default=0.0)
            else:
                left = (values[one] - (5 if matches[one] else 0.5) for one in known)
                value = max(0.0, *left, 0.0)
            values[i, j] = value
            best = max(best, value)
    return best


def matching_of(words: NDArray[np.uint8], others: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return which words are each among the nearest tenth of the other's recording."""
    apart = np.array(
        [
            [sum(int(a ^ b).bit_count() for a, b in zip(x, y, strict=True)) for y in others]
            for x in words
        ]
    )
    found = np.zeros(apart.shape, bool)
    for i in range(len(words)):
        for j in range(len(others)):
            row, column = apart[i].tolist(), apart[:, j].tolist()
            found[i, j] = _is_near(apart[i, j], row) and _is_near(apart[i, j], column)
    return found


def _is_near(distance: int, distances: list[int]) -> bool:
    most = max(1, len(distances) // 10)
    last = sorted(distances)[most - 1]
    if sum(one <= last for one in distances) > 2 * most:
        return distance < last
    return distance <= last
