"""The slow, obvious truth that everything fast is compared with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Signatures = NDArray[np.uint8]


def distance(a: Signatures, b: Signatures) -> int:
    """Count the differing bits of two signatures, byte by byte."""
    return sum((int(x) ^ int(y)).bit_count() for x, y in zip(a, b, strict=True))


def distances(a: Signatures, b: Signatures) -> NDArray[np.int64]:
    """Return the matrix of distances of every row of `a` to every row of `b`."""
    matrix = np.empty((len(a), len(b)), np.int64)
    for row, signature in enumerate(a):
        matrix[row] = np.unpackbits(signature ^ b, axis=1).sum(axis=1, dtype=np.int64)
    return matrix


def search(
    rows: Signatures, queries: Signatures, k: int, ids: list[int] | None = None
) -> tuple[list[list[int]], list[list[int]]]:
    """Return ids and distances of the k nearest, by (distance, id), padded with -1."""
    names = list(range(len(rows))) if ids is None else ids
    all_ids, all_distances = [], []
    for line in distances(queries, rows):
        nearest = sorted(zip(line.tolist(), names, strict=True))[:k]
        padding = [-1] * (k - len(nearest))
        all_ids.append([name for _, name in nearest] + padding)
        all_distances.append([far for far, _ in nearest] + padding)
    return all_ids, all_distances


def within(
    rows: Signatures, queries: Signatures, radius: int, ids: list[int] | None = None
) -> list[list[tuple[int, int]]]:
    """Return, per query, the (distance, id) of everything within the radius, sorted."""
    names = list(range(len(rows))) if ids is None else ids
    return [
        sorted((far, name) for far, name in zip(line.tolist(), names, strict=True) if far <= radius)
        for line in distances(queries, rows)
    ]


def pairs(
    rows: Signatures, radius: int, ids: list[int] | None = None
) -> list[tuple[int, int, int]]:
    """Return the sorted (left, right, distance) of every pair within the radius."""
    names = list(range(len(rows))) if ids is None else ids
    matrix = distances(rows, rows).tolist()
    return sorted(
        (min(names[i], names[j]), max(names[i], names[j]), matrix[i][j])
        for i in range(len(rows))
        for j in range(i)
        if matrix[i][j] <= radius
    )


def collection(count: int, width: int, style: str, seed: int) -> Signatures:
    """Make `count` signatures of `width` bytes in one of the styles of `STYLES`."""
    rng = np.random.default_rng(seed)
    uniform: Signatures = rng.integers(0, 256, (count, width), dtype=np.uint8)
    if style == "uniform" or count == 0:
        return uniform
    if style == "equal":
        return np.repeat(uniform[:1], count, axis=0)
    if style == "extreme":
        return rng.choice(np.array([0, 255], np.uint8), (count, 1)).repeat(width, axis=1)
    few = uniform[rng.integers(0, min(3, count), count)]  # many exact duplicates ...
    return few ^ (rng.random((count, width)) < 0.5 / width).astype(np.uint8)  # ... and near ones


STYLES = ("uniform", "equal", "extreme", "clustered")
