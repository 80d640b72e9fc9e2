"""Clusters and groups as they are defined, one signature and one bit at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from support.oracles import scan as oracle

__all__ = ["clusters", "nearest", "probed"]

Signatures = NDArray[np.uint8]


def _word(seed: int, step: int) -> int:
    """Return one number of SplitMix64."""
    state = (seed + (step + 1) * 0x9E3779B97F4A7C15) % 2**64
    state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    state = (state ^ (state >> 27)) * 0x94D049BB133111EB % 2**64
    return state ^ (state >> 31)


def nearest(rows: Signatures, centers: Signatures) -> list[tuple[int, int]]:
    """Return (distance, number) of each row's nearest center."""
    return [
        min((oracle.distance(row, center), number) for number, center in enumerate(centers))
        for row in rows
    ]


def _majority(members: list[Signatures], before: Signatures) -> Signatures:
    bits = np.unpackbits(before, bitorder="little")
    for place in range(len(bits)):
        ones = sum(int(row[place // 8]) >> place % 8 & 1 for row in members)
        if 2 * ones != len(members):
            bits[place] = 2 * ones > len(members)
    return np.packbits(bits, bitorder="little")


def clusters(
    rows: Signatures, k: int, seed: int, rounds: int, each: int = 40
) -> tuple[Signatures, list[tuple[int, int]]]:
    """Return centers, found with so many rows for `each`, and (distance, number) of each row's."""
    drawn = sorted(range(len(rows)), key=lambda row: _word(seed, row))
    centers = np.array([rows[row] for row in drawn[:k]])
    sample = rows[sorted(drawn[: each * k])]
    for _ in range(rounds):
        found = nearest(sample, centers)
        farthest = sorted(range(len(sample)), key=lambda row: (-found[row][0], row))
        farthest = [row for row in farthest if found[row][0] > 0]
        for number in range(k):
            members = [row for row, (_, own) in zip(sample, found, strict=True) if own == number]
            if members:
                centers[number] = _majority(members, centers[number])
            elif farthest:
                centers[number] = sample[farthest.pop(0)]
    return centers, nearest(rows, centers)


def probed(
    centers: Signatures, sizes: list[int], query: Signatures, probe: int, k: int
) -> set[int]:
    """Return the groups that a query reads: of the nearest centers, until there are k rows."""
    chosen: set[int] = set()
    rows = 0
    order = sorted((oracle.distance(query, center), at) for at, center in enumerate(centers))
    for _, group in order:
        if len(chosen) >= probe and rows >= k:
            break
        chosen.add(group)
        rows += sizes[group]
    return chosen
