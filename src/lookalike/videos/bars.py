"""Black bars around the picture of a video, which players and editors add and remove.

A bar is as wide on both sides, above and below or left and right, and stays as it is for seconds. A
frame without its bars is the same as one that never had any: what is dark at the border of the
picture itself, too, is left out of both.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Gray = NDArray[np.uint8]
Bars = tuple[float, float]
"""How wide the bars are above and left, as a share of the height and of the width."""
Moment = TypeVar("Moment")

NONE: Bars = 0.0, 0.0
_DARK = 32  # the brightest gray level of a bar
_SPECKS = 64  # in a line of a bar, at most one pixel in this many is brighter
_NARROWEST, _WIDEST = 0.02, 0.4
_STEADY = 8  # hashed frames before and after one that must have the same bars


def bars_of(gray: Gray) -> Bars | None:
    """Return the bars of a frame, or None if all of it is dark."""
    bright = gray > _DARK
    lines = [bright.sum(axis=other) * _SPECKS > bright.shape[other] for other in (1, 0)]
    if not all(one.any() for one in lines):
        return None
    above, left = (
        min(int(one.argmax()), int(one[::-1].argmax())) / len(one) if len(one) else 0.0
        for one in lines
    )
    return _bar(above), _bar(left)


def _bar(share: float) -> float:
    return share if _NARROWEST <= share <= _WIDEST else 0.0


def without_bars(gray: Gray, bars: Bars) -> Gray:
    """Return a frame without its bars, and without a line beside each that may be a part of it."""
    rows, columns = (
        slice(line, size - line)
        for size, share in zip(gray.shape, bars, strict=True)
        for line in (round(share * size) + 1 if share else 0,)
    )
    return gray[rows, columns]


def without_steady_bars(frames: Iterable[tuple[Moment, Gray]]) -> Iterator[tuple[Moment, Gray]]:
    """Yield frames without the bars that they and all their neighbors have."""
    coming: deque[tuple[Moment, Gray]] = deque()
    near: deque[Bars | None] = deque(maxlen=2 * _STEADY + 1)
    rest = iter(frames)
    for moment, gray in islice(rest, _STEADY):
        coming.append((moment, gray))
        near.append(bars_of(gray))
    for moment, gray in rest:
        coming.append((moment, gray))
        near.append(bars_of(gray))
        yield _next(coming, near)
    while coming:
        while len(near) > len(coming) + _STEADY:  # those before the next frame
            near.popleft()
        yield _next(coming, near)


def _next(coming: deque[tuple[Moment, Gray]], near: deque[Bars | None]) -> tuple[Moment, Gray]:
    moment, gray = coming.popleft()
    known = [one for one in near if one is not None]
    if not known:
        return moment, gray
    return moment, without_bars(gray, (min(one[0] for one in known), min(one[1] for one in known)))
