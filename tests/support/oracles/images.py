"""The bits of an image hash, slowly, as docs/images.md defines them."""

from __future__ import annotations

import math
from fractions import Fraction

__all__ = ["dct_bits", "gradient_bits"]

Gray = list[list[int]]


def averages(gray: Gray, rows: int, columns: int) -> list[list[int]]:
    """Return the mean of each of rows × columns equal parts, in 1/256, rounded half up."""
    height, width = len(gray), len(gray[0])
    down, across = _shares(height, rows), _shares(width, columns)
    parts: list[list[int]] = []
    for row in down:
        parts.append([])
        for column in across:
            total = sum(
                (gray[y][x] * share * other for y, share in row for x, other in column), Fraction()
            )
            mean = total / (Fraction(height, rows) * Fraction(width, columns))
            parts[-1].append(math.floor(256 * mean + Fraction(1, 2)))
    return parts


def _shares(size: int, parts: int) -> list[list[tuple[int, Fraction]]]:
    """Return for each part which pixels lie in it, and how much of each."""
    found = []
    for part in range(parts):
        begin, end = Fraction(part * size, parts), Fraction((part + 1) * size, parts)
        pixels = range(math.floor(begin), math.ceil(end))
        found.append([(x, min(end, Fraction(x + 1)) - max(begin, Fraction(x))) for x in pixels])
    return found


def gradient_bits(gray: Gray, side: int) -> list[bool]:
    parts = averages(gray, side, side + 1)
    return [row[x + 1] - row[x] > 256 for row in parts for x in range(side)]


def dct_bits(gray: Gray, side: int) -> list[bool]:
    size = 4 * side
    parts = averages(gray, size, size)
    most = 2 * side + 1
    cosines = [
        [round(4096 * math.cos(math.pi * u * (2 * x + 1) / (2 * size))) for x in range(size)]
        for u in range(most)
    ]
    half = [[sum(map(int.__mul__, wave, row)) for wave in cosines] for row in parts]
    lines = [[half[y][u] for y in range(size)] for u in range(most)]
    frequencies = sorted(
        ((v, u) for v in range(most) for u in range(most) if v or u),
        key=lambda one: (sum(one), max(one), one[1]),
    )
    least = 256 * size * size // 4 * 4096 * 4096 // 8
    return [
        sum(map(int.__mul__, cosines[v], lines[u])) > least for v, u in frequencies[: side * side]
    ]
