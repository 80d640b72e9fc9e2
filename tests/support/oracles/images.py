"""The bits of an image hash, slowly, as docs/images.md defines them; points, and agreement."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["agreement_in_place", "dct_bits", "gradient_bits", "points"]

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


class Agreement(NamedTuple):
    """What `agreement_in_place` finds."""

    correlation: float
    windows: int
    agreeing: int
    evidence: float
    slow: float
    details: int
    difference: float


def agreement_in_place(first: Gray, second: Gray) -> Agreement:
    """Compare two thumbnails of 64 × 64, without plain borders or sides that differ."""
    one, two = (
        [
            [
                Fraction(sum(gray[2 * y + i][2 * x + j] for i in (0, 1) for j in (0, 1)), 4)
                for x in range(32)
            ]
            for y in range(32)
        ]
        for gray in (first, second)
    )
    windows = agreeing = 0
    for a, b in _windows(one, two):
        if max(_variance(a), _variance(b)) >= 4:
            windows += 1
            agreeing += _correlation(a, b) >= 0.7
    whole = _correlation([v for row in one for v in row], [v for row in two for v in row])
    fine = [_detail(gray) for gray in (first, second)]
    details = sum(
        max(_variance(a), _variance(b)) >= 1 and _correlation(a, b) >= 0.5
        for a, b in _windows(*fine)
    )
    waves, other = _waves(first), _waves(second)
    evidence = slow = 0.0
    for half, direction in product(range(12), range(3)):
        which = [
            (v, u)
            for v, u in product(range(64), repeat=2)
            if 2 ** (half / 2) - 1e-9 <= max(v, u) < 2 ** ((half + 1) / 2) - 1e-9
            and (0 if 2 * v < u else 1 if 2 * u < v else 2) == direction
        ]
        heights = [[found[v][u] for v, u in which] for found in (waves, other)]
        energies = [sum(value * value for value in values) for values in heights]
        both, noise = sum(map(float.__mul__, *heights)), len(which) / 4
        if not which or min(energies) <= noise or both <= 0:
            continue
        same = both * both / (energies[0] * energies[1])
        differ = min(1.0, math.sqrt(max(1 - same, noise / min(energies))))
        carrying = min(
            energy**2 / sum(value**4 for value in values)
            for energy, values in zip(energies, heights, strict=True)
        )
        bits = -carrying * math.log2(differ)
        evidence += bits
        slow += bits if half < 5 else 0
    energies = [
        sum(value * value for row in found for value in row) - found[0][0] ** 2
        for found in (waves, other)
    ]
    gain = math.sqrt(energies[1] / energies[0])
    slowest = [(v, u) for v, u in product(range(4), repeat=2) if v or u]
    apart = [(other[v][u] - gain * waves[v][u]) ** 2 / (1 + gain**2) for v, u in slowest]
    return Agreement(whole, windows, agreeing, evidence, slow, details, sum(apart) / len(apart))


def _windows(
    one: Sequence[Sequence[Fraction]], two: Sequence[Sequence[Fraction]]
) -> Iterator[tuple[list[Fraction], list[Fraction]]]:
    """Yield the values of both in windows of 8 × 8, at every fourth."""
    for top, left in product(range(0, len(one) - 7, 4), repeat=2):
        yield tuple(  # type: ignore[misc]
            [each[y][x] for y in range(top, top + 8) for x in range(left, left + 8)]
            for each in (one, two)
        )


def _detail(gray: Gray) -> list[list[Fraction]]:
    """Return what differs from the mean of 5 × 5 values; beyond a border is what is on it."""

    def mean(y: int, x: int) -> Fraction:
        near = product(range(y - 2, y + 3), range(x - 2, x + 3))
        return Fraction(sum(gray[min(63, max(0, v))][min(63, max(0, u))] for v, u in near), 25)

    return [[gray[y][x] - mean(y, x) for x in range(64)] for y in range(64)]


def _variance(values: list[Fraction]) -> Fraction:
    mean = sum(values, Fraction()) / len(values)
    return sum(((value - mean) ** 2 for value in values), Fraction()) / len(values)


def _correlation(one: list[Fraction], two: list[Fraction]) -> float:
    spread = _variance(one) * _variance(two)
    if not spread:
        return 0.0
    means = sum(one, Fraction()) / len(one), sum(two, Fraction()) / len(two)
    products = sum(
        ((a - means[0]) * (b - means[1]) for a, b in zip(one, two, strict=True)), Fraction()
    )
    return float(products / len(one)) / math.sqrt(spread)


def _waves(grid: Gray) -> list[list[float]]:
    size = len(grid)
    cosines = [
        [
            math.cos(math.pi * u * (2 * x + 1) / (2 * size)) * math.sqrt((2 if u else 1) / size)
            for x in range(size)
        ]
        for u in range(size)
    ]
    values = [[float(value) for value in row] for row in grid]
    across = [[sum(map(float.__mul__, wave, row)) for wave in cosines] for row in values]
    down = [list(column) for column in zip(*across, strict=True)]
    return [[sum(map(float.__mul__, wave, column)) for column in down] for wave in cosines]


def points(gray: Gray, rows: int, columns: int) -> list[tuple[int, int, int, int]]:
    """Return all points of an image, as (word, across, down, size), the clearest first."""
    grid = averages(gray, rows, columns)
    base = np.array(grid, np.float32)
    spots: list[tuple[float, int, int, int]] = []
    plane = _blurred(base, math.sqrt(1.2**2 - 0.5**2))
    for doubling in range(6):
        if min(plane.shape) < 12:
            break
        planes = [plane]
        for number in range(1, 6):
            narrow, wide = (1.2 * 2 ** (step / 3) for step in (number - 1, number))
            planes.append(_blurred(planes[-1], math.sqrt(wide**2 - narrow**2)))
        stack = np.stack([wide - narrow for narrow, wide in pairwise(planes)])
        height, width = plane.shape
        places = product(range(1, 4), range(1, height - 1), range(1, width - 1))
        found_here = (_spot(stack, *place, doubling) for place in places)
        spots += [spot for spot in found_here if spot is not None]
        plane = planes[3][::2, ::2]
    spots.sort(key=lambda spot: (-spot[0], spot[3], spot[2], spot[1]))
    found = []
    for _, across, down, size in spots:
        half = round(1.2 * 6 * 16 * 2 ** (size / 24))
        box = across - half, down - half, across + half, down + half
        if min(box) >= 0 and box[2] <= 16 * columns and box[3] <= 16 * rows:
            found.append((_word(grid, box[0], box[1], 2 * half), across, down, size))
    return found


def _blurred(plane: NDArray[np.float32], width: float) -> NDArray[np.float32]:
    reach = max(1, math.ceil(3 * width))
    heights = [math.exp(-at * at / (2 * width * width)) for at in range(-reach, reach + 1)]
    weights = [np.float32(round(65536 * height / sum(heights)) / 65536) for height in heights]
    for axis in (1, 0):
        padding = [(0, 0), (0, 0)]
        padding[axis] = (reach, reach)
        padded = np.pad(plane, padding, mode="edge")
        size = plane.shape[axis]
        plane = np.zeros_like(plane)
        for at, weight in enumerate(weights):
            plane += weight * (padded[:, at : at + size] if axis == 1 else padded[at : at + size])
    return plane


def _spot(
    stack: NDArray[np.float32], number: int, y: int, x: int, doubling: int
) -> tuple[float, int, int, int] | None:
    around = stack[number - 1 : number + 2, y - 1 : y + 2, x - 1 : x + 2].astype(np.float64)
    value = around[1, 1, 1]
    signed = around if value > 0 else -around
    if abs(value) < 200 or (signed >= signed[1, 1, 1]).sum() > 1:
        return None
    own = around[1]
    across, down = own[1, 0] + own[1, 2] - 2 * value, own[0, 1] + own[2, 1] - 2 * value
    slanted = (own[2, 2] + own[0, 0] - own[2, 0] - own[0, 2]) / 4
    curved = across * down - slanted**2
    if curved <= 0 or (across + down) ** 2 * 10 >= 121 * curved:
        return None

    def top(before: float, after: float, unit: int) -> int:
        bend = before + after - 2 * value
        place = (before - after) / (2 * bend) if bend else 0
        return _rounded(unit * min(0.5, max(-0.5, place)))

    far = 16 << doubling
    return (
        abs(value),
        x * far + top(own[1, 0], own[1, 2], far) + 8,
        y * far + top(own[0, 1], own[2, 1], far) + 8,
        8 * (3 * doubling + number) + top(around[0, 1, 1], around[2, 1, 1], 8),
    )


def _rounded(value: float) -> int:
    """Return a number rounded half away from 0."""
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def _word(grid: list[list[int]], left: int, top: int, side: int) -> int:
    edges = [side * at // 8 for at in range(9)]

    def mean(x: int, y: int, right: int, bottom: int) -> int:
        total = 0
        for row in range(y // 16, -(-bottom // 16)):
            high = min(bottom, 16 * row + 16) - max(y, 16 * row)
            for column in range(x // 16, -(-right // 16)):
                wide = min(right, 16 * column + 16) - max(x, 16 * column)
                total += grid[row][column] * high * wide
        return total // ((right - x) * (bottom - y))

    parts = [
        [
            mean(left + edges[x], top + edges[y], left + edges[x + 1], top + edges[y + 1])
            for x in range(8)
        ]
        for y in range(8)
    ]
    middle = sum(map(sum, parts)) // 64
    waves = [
        [_rounded(4096 * math.cos(math.pi * u * (2 * x + 1) / 16)) for x in range(8)]
        for u in range(8)
    ]
    frequencies = sorted(
        ((v, u) for v in range(8) for u in range(8) if v or u),
        key=lambda one: (sum(one), max(one), one[1]),
    )
    word = 0
    for bit, (v, u) in enumerate(frequencies[:32]):
        height = sum(
            (parts[y][x] - middle) * waves[v][y] * waves[u][x] for y in range(8) for x in range(8)
        )
        word |= (height > 0) << bit
    return word
