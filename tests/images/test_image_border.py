"""Blocks and tables that do not fit: refused by the core, before any of them is read."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from lookalike import _native

WAVES = np.ones((3, 4))
GRAY = np.zeros((4, 5), np.uint8)
FIRST, SECOND = np.zeros(8, np.int64), np.full(8, 2)
ROW = np.zeros(1, np.uint8)


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
    "signature": lambda: waves().sign(GRAY, (4, 1, False), (5, 1, False), np.zeros(2, np.uint8)),
}


@pytest.mark.parametrize("misfit", MISFITS)
def test_what_does_not_fit_is_refused(misfit: str) -> None:
    with pytest.raises(_native.BorderError, match="the core was called with"):
        MISFITS[misfit]()


def test_what_fits_is_answered() -> None:
    assert waves().sign(GRAY, (4, 1, False), (10, 2, True), ROW) == 0
    assert waves().sign(GRAY + np.uint8(1), (4, 1, True), (10, 2, False), ROW) == 8
    assert ROW.tolist() == [255]
