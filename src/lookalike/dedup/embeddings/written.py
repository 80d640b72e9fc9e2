"""Vectors that are written as lists of numbers, as JSON has them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.errors import DocumentError
from lookalike.shown import brief

__all__ = ["written_vectors"]

_AT_A_TIME = 512
"""Lists that are held as objects of Python."""


def written_vectors(
    texts: Sequence[str],
    rows: NDArray[np.int64],
    dimensions: int | None,
    place_of: Callable[[int], str],
    *,
    like: str = "the first",
) -> NDArray[np.float32]:
    """Return vectors of which each is written as a list of numbers, all of one length: that of
    `dimensions`, which is that of `like`, or of the first.

    For the first that is none, `DocumentError` says where it is, by `place_of` its row, and what
    stands there.
    """
    parts = []
    for start in range(0, len(texts), _AT_A_TIME):
        found: list[list[float]] = []
        wrong: tuple[int, object] | None = None
        for text in texts[start : start + _AT_A_TIME]:
            try:
                found.append(_numbers(text, dimensions, like))
            except _NotOneError as error:
                wrong = len(found), error
                break
            dimensions = len(found[-1])
        held, too_large = _held(found)
        if wrong := too_large or wrong:
            place, what = wrong
            raise DocumentError(f"{place_of(int(rows[start + place]))}: the vector {what}")
        parts.append(held)
    return np.concatenate(parts) if parts else np.empty((0, dimensions or 0), np.float32)


class _NotOneError(Exception):
    """What was expected to be a vector is none."""


def _numbers(text: str, dimensions: int | None, like: str) -> list[float]:
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    if not isinstance(value, list):
        raise _NotOneError(f"is {brief(value)}; expected a list of numbers")
    if not set(map(type, value)) <= {int, float}:
        other = next(one for one in value if type(one) not in (int, float))
        raise _NotOneError(f"has the value {brief(other)}; expected numbers alone")
    if len(value) != (dimensions or len(value)) or not value:
        expected = f"{dimensions}, as {like} has" if dimensions else "one at least"
        raise _NotOneError(f"has {len(value)} dimensions; expected {expected}")
    return value


def _held(vectors: list[list[float]]) -> tuple[NDArray[np.float32], tuple[int, str] | None]:
    """Return vectors as they are held, or which is the first that cannot be, and why."""
    try:
        wide = np.array(vectors, np.float64)
    except OverflowError:  # a whole number of hundreds of digits
        wide = np.array([[_as_float(one) for one in vector] for vector in vectors], np.float64)
    bad = ~(np.abs(wide) <= np.finfo(np.float32).max)  # NaN is neither
    if bad.any():
        row, place = (int(one[0]) for one in np.nonzero(bad))
        what = f"has the value {wide[row, place]:g}; expected numbers that float32 can hold"
        return np.empty((0, 0), np.float32), (row, what)
    return wide.astype(np.float32), None


def _as_float(number: float) -> float:
    try:
        return float(number)
    except OverflowError:
        return np.inf if number > 0 else -np.inf
