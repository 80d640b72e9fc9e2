"""Parts of like size, with the fewest false answers to expect (Zhu et al., section 5)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["optimal_partitions"]


def optimal_partitions(
    sizes: Sequence[int], counts: Sequence[int], num_part: int
) -> list[tuple[int, int]]:
    """Return the least and the largest size of each part; sizes ascend.

    A set of size x in a part up to u counts (u - x) / u: it is taken to be as large as u.
    """
    if num_part < 2:
        return [(sizes[0], sizes[-1])]
    if num_part >= len(sizes):
        return [(size, size) for size in sizes]
    size, count = np.array(sizes, np.float64), np.array(counts, np.float64)
    sets = np.concatenate([[0.0], np.cumsum(count)])
    mass = np.concatenate([[0.0], np.cumsum(count * size)])

    def cost(first: int, last: int) -> float:
        return float((sets[last + 1] - sets[first]) - (mass[last + 1] - mass[first]) / size[last])

    # best[last] is the least cost of the sizes up to it, in as many parts as there were rounds.
    best = [cost(0, last) for last in range(len(sizes))]
    ends: list[list[int]] = []  # of the part before the last one, in each round
    for part in range(1, num_part):
        before, best, chosen = best, [float("inf")] * len(sizes), [0] * len(sizes)
        for last in range(part, len(sizes)):
            best[last], chosen[last] = min(
                (before[end] + cost(end + 1, last), end) for end in range(part - 1, last)
            )
        ends.append(chosen)
    bounds = [len(sizes) - 1]
    for chosen in reversed(ends):
        bounds.insert(0, chosen[bounds[0]])
    firsts = [0, *(end + 1 for end in bounds[:-1])]
    return [(sizes[first], sizes[last]) for first, last in zip(firsts, bounds, strict=True)]
