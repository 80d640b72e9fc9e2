"""Where clusters are on a map: near each other where their centres differ in few bits."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.signatures import hamming

__all__ = ["apart", "plane"]

_STEPS = 300
_GAP = 2.0


def plane(centres: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return a place for each centre, float64[k, 2]: classical scaling of their distances.

    Bits that differ are the square of the distance of corners of a cube, so that these two
    directions are those in which the centres are spread most. The larger half of each points to the
    right, and down.
    """
    count = len(centres)
    if count < 2:
        return np.zeros((count, 2))
    square = np.array([hamming(np.broadcast_to(one, centres.shape), centres) for one in centres])
    middle = np.eye(count) - 1.0 / count
    values, vectors = np.linalg.eigh(-0.5 * middle @ square.astype(np.float64) @ middle)
    places = np.zeros((count, 2))
    for axis, at in enumerate((count - 1, count - 2)):
        direction = vectors[:, at] * np.sqrt(max(values[at], 0.0))
        if direction[np.argmax(np.abs(direction))] < 0:
            direction = -direction
        places[:, axis] = direction
    return places


def apart(places: NDArray[np.float64], radii: ArrayLike) -> NDArray[np.float64]:
    """Return places where circles of these radii cover each other less, pushed as far as needed."""
    radius, moved = np.asarray(radii, np.float64), places.astype(np.float64).copy()
    least = radius[:, None] + radius[None, :] + _GAP
    # Equal places have no direction: each gets one of its own.
    angles = np.arange(len(moved)) * 2.399963
    moved += 0.01 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    across, down = moved.T
    for _ in range(_STEPS):
        x, y = across[:, None] - across[None, :], down[:, None] - down[None, :]
        far = np.sqrt(x * x + y * y)
        np.fill_diagonal(far, np.inf)
        push = np.maximum(least - far, 0.0) / far
        if not push.any():
            break
        across, down = across + 0.25 * (x * push).sum(axis=1), down + 0.25 * (y * push).sum(axis=1)
    return np.stack([across, down], axis=1)
