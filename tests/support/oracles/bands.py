"""A live index of MinHash rows, slowly and obviously: every row is compared with every query."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

EMPTY = 2**32 - 1


class BandOracle:
    """A dictionary of rows, in order of insertion."""

    def __init__(self, bands: int, rows: int) -> None:
        self.bands, self.rows = bands, rows
        self.values: dict[Any, NDArray[np.uint32]] = {}

    def insert(self, key: Any, row: NDArray[np.uint32]) -> None:
        self.values.pop(key, None)
        self.values[key] = np.array(row)

    def query(self, row: NDArray[np.uint32], least: int) -> list[tuple[Any, int]]:
        """Return keys and numbers of equal values, most first."""
        found = []
        for key, other in self.values.items():
            equal = (row == other) & (row != EMPTY)
            parts = equal[: self.bands * self.rows].reshape(self.bands, self.rows)
            if parts.all(axis=1).any() and equal.sum() >= least:
                found.append((key, int(equal.sum())))
        return sorted(found, key=lambda match: -match[1])
