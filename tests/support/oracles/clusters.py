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
    rows: Signatures, k: int, seed: int, rounds: int, each: int, *, together: int, candidates: int
) -> tuple[Signatures, list[tuple[int, int]]]:
    """Return centers, found with `each` rows per center, and (distance, number) of each row's.

    A row chooses among its `candidates` nearest centers, which are found anew after `together`
    rounds, or after a round that changes nothing.
    """
    drawn = sorted(range(len(rows)), key=lambda row: _word(seed, row))
    centers = np.array([rows[row] for row in drawn[:k]])
    sample = rows[sorted(drawn[: each * k])]
    near: list[list[int]] = []
    age = 0
    for _ in range(rounds):
        if age == 0:
            near = [
                sorted(range(k), key=lambda number: (oracle.distance(row, centers[number]), number))
                for row in sample
            ]
        found = [
            min((oracle.distance(row, centers[number]), number) for number in own[:candidates])
            for row, own in zip(sample, near, strict=True)
        ]
        before = centers.copy()
        farthest = sorted(range(len(sample)), key=lambda row: (-found[row][0], row))
        farthest = [row for row in farthest if found[row][0] > 0]
        for number in range(k):
            members = [row for row, (_, own) in zip(sample, found, strict=True) if own == number]
            if members:
                centers[number] = _majority(members, centers[number])
            elif farthest:
                centers[number] = sample[farthest.pop(0)]
        if np.array_equal(before, centers):
            if age == 0:
                break
            age = 0
        else:
            age = (age + 1) % together
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
