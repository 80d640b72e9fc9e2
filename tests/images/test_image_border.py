"""Blocks and tables that do not fit: refused by the core, before any of them is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lookalike import _native

WAVES = np.ones((3, 4))
GRAY = np.zeros((4, 5), np.uint8)
FIRST, SECOND = np.zeros(8, np.int64), np.full(8, 2)
ROW = np.zeros(1, np.uint8)


def pdq(*shape: int) -> _native.Pdq:
    hasher = _native.Pdq.of(6, 7)
    hasher.feed(np.zeros(shape, np.uint8))
    return hasher


def waves() -> _native.ImageBits:
    return _native.ImageBits.of_waves(WAVES, FIRST, SECOND, 1)


MISFITS: dict[str, Callable[[], object]] = {
    "a wave that is not there": lambda: _native.ImageBits.of_waves(WAVES, FIRST, SECOND + 1, 1),
    "a negative wave": lambda: _native.ImageBits.of_waves(WAVES, FIRST - 1, SECOND, 1),
    "waves of no length": lambda: _native.ImageBits.of_waves(WAVES[:, :0].copy(), FIRST, FIRST, 1),
    "one wave too few": lambda: _native.ImageBits.of_waves(WAVES, FIRST[1:], SECOND, 1),
    "bits that are no bytes": lambda: _native.ImageBits.of_waves(WAVES, FIRST[:7], SECOND[:7], 1),
    "no bits": lambda: _native.ImageBits.of_waves(WAVES, FIRST[:0], SECOND[:0], 1),
    "no height": lambda: _native.ImageBits.of_steps(8, 9, 0),
    "one column": lambda: _native.ImageBits.of_steps(8, 1, 1),
    "no rows": lambda: _native.ImageBits.of_steps(0, 9, 1),
    "too many rows": lambda: _native.ImageBits.of_steps(2**62, 9, 1),
    "rows that are not there": lambda: waves().sign(GRAY, (5, 1, False), (5, 1, False), ROW),
    "columns that are not there": lambda: waves().sign(GRAY, (4, 1, False), (11, 2, False), ROW),
    "no pixels": lambda: waves().sign(GRAY[:0], (0, 1, False), (5, 1, False), ROW),
    "blocks of no pixels": lambda: waves().sign(GRAY, (4, 0, False), (5, 1, False), ROW),
    "blocks larger than all": lambda: waves().sign(GRAY[:1], (4, 5, False), (5, 1, False), ROW),
    "pixels without number": lambda: waves().sign(
        GRAY, (2**42, 2**40, False), (5 * 2**20, 2**20, False), ROW
    ),
    "PDQ of no rows": lambda: _native.Pdq.of(0, 5),
    "PDQ of too many columns": lambda: _native.Pdq.of(5, 2**25),
    "more rows than declared": lambda: pdq(7, 7, 3),
    "rows of other columns": lambda: pdq(6, 6, 3),
    "pixels of two bytes": lambda: pdq(6, 7, 2),
    "rows that are missing": lambda: pdq(5, 7, 1).finish(np.zeros((1, 32), np.uint8)),
    "a PDQ signature": lambda: pdq(6, 7, 1).finish(np.zeros((1, 31), np.uint8)),
    "orientations": lambda: pdq(6, 7, 1).finish(np.zeros((9, 32), np.uint8)),
    "signature": lambda: waves().sign(GRAY, (4, 1, False), (5, 1, False), np.zeros(2, np.uint8)),
    "a thumbnail of another size": lambda: _native.image_thumbnail(
        GRAY, (4, 1, False), (5, 1, False), np.zeros((64, 63), np.uint8)
    ),
    "too few parts": lambda: _native.image_points(GRAY, (4, 1, False), (5, 1, False), 16, 15, 9),
    "an image that is not there": lambda: compared(right=np.array([2])),
    "a pair without a second": lambda: compared(right=np.array([0, 0])),
    "an image without a size": lambda: compared(placements=np.array([[0.0, 0, 1, 0]])),
    "room for other pairs": lambda: compared(agreements=np.zeros((2, 10))),
}


def compared(**changed: Any) -> None:
    thumbnails = np.zeros((2, 64, 64), np.uint8)
    arguments = {"right": np.array([1]), "placements": np.array([[1.0, 0, 1, 0]])}
    arguments = {**arguments, "agreements": np.zeros((1, 10)), **changed}
    _native.compare_images(
        thumbnails, thumbnails, np.array([0]), refine=True, threads=1, **arguments
    )


@pytest.mark.parametrize("misfit", MISFITS)
def test_what_does_not_fit_is_refused(misfit: str) -> None:
    with pytest.raises(_native.BorderError, match="the core was called with"):
        MISFITS[misfit]()


def test_what_fits_is_answered() -> None:
    assert waves().sign(GRAY, (4, 1, False), (10, 2, True), ROW) == 0
    assert waves().sign(GRAY + np.uint8(1), (4, 1, True), (10, 2, False), ROW) == 8
    assert ROW.tolist() == [255]
