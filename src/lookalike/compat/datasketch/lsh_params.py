"""How datasketch chooses bands: by the area of false answers under the S-curve, weighted."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lookalike.errors import ArgumentError

__all__ = ["best_params", "best_params_for_containment", "check_threshold", "check_weights"]

_MOST_NODES = 128


def check_threshold(threshold: float, num_perm: int) -> None:
    """Raise unless both are what an index can be made of."""
    if not 0 <= threshold <= 1:
        raise ArgumentError(f"threshold is {threshold}; expected a number from 0 to 1")
    if num_perm < 2:
        raise ArgumentError(f"num_perm is {num_perm}; expected 2 or more")


def check_weights(weights: tuple[float, float]) -> None:
    """Raise unless these are weights of false positives and false negatives."""
    if any(not 0 <= weight <= 1 for weight in weights) or sum(weights) != 1:
        raise ArgumentError(f"weights are {weights}; expected two from 0 to 1 that sum to 1")


@lru_cache(maxsize=256)
def best_params(
    threshold: float, num_perm: int, false_positive: float, false_negative: float
) -> tuple[int, int]:
    """Return the bands, and the values of each, with the least weighted sum of both areas."""
    shapes = [(b, r) for b in range(1, num_perm + 1) for r in range(1, num_perm // b + 1)]
    nodes = min(_MOST_NODES, num_perm // 2 + 2)  # so many integrate such a polynomial exactly
    below, above = _Interval(0, threshold, nodes), _Interval(threshold, 1, nodes)
    return _least(shapes, below, above, false_positive, false_negative)


@lru_cache(maxsize=4096)
def best_params_for_containment(
    threshold: float,
    num_perm: int,
    most_r: int,
    ratio: float,
    false_positive: float,
    false_negative: float,
) -> tuple[int, int]:
    """Return the same by containment, where a set is `ratio` times as large as the query."""
    shapes = [
        (b, r) for b in range(1, num_perm + 1) for r in range(1, min(most_r, num_perm // b) + 1)
    ]
    below = _Interval(0, min(threshold, ratio), _MOST_NODES)
    above = _Interval(threshold, max(threshold, min(1.0, ratio)), _MOST_NODES)
    for part in (below, above):  # as Jaccard similarities
        part.nodes = part.nodes / (1 + ratio - part.nodes)
    return _least(shapes, below, above, false_positive, false_negative)


@lru_cache(maxsize=64)
def _legendre(count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return np.polynomial.legendre.leggauss(count)


class _Interval:
    """Nodes and weights to integrate over an interval (Gauss and Legendre)."""

    def __init__(self, begin: float, end: float, count: int) -> None:
        places, weights = _legendre(count)
        half = (end - begin) / 2
        self.nodes: NDArray[np.float64] = begin + half * (places + 1)
        self.weights: NDArray[np.float64] = half * weights


def _least(
    shapes: list[tuple[int, int]],
    below: _Interval,
    above: _Interval,
    false_positive: float,
    false_negative: float,
) -> tuple[int, int]:
    """Return the first shape with the least error."""
    best, least = (0, 0), float("inf")
    for b, r in shapes:
        found = 1 - (1 - below.nodes**r) ** b
        missed = (1 - above.nodes**r) ** b
        error = float(found @ below.weights) * false_positive
        error += float(missed @ above.weights) * false_negative
        if error < least:
            best, least = (b, r), error
    return best
