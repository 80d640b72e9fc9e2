"""Arrays that grow with what an iterable yields."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["GrowingArray"]

_SPARE_BYTES = 4 << 20


class GrowingArray:
    """Rows appended one block after the other, in one piece of memory.

    As long as `source` from the beginning, where that has a length. Otherwise growing moves pages
    instead of copying them where the system can, and leaves no second copy at the end, as joining a
    list of blocks would.
    """

    def __init__(self, shape: tuple[int, ...], dtype: type[np.generic], source: Any = ()) -> None:
        try:
            length = len(source)
        except TypeError:  # arrays of no dimension have a method for it, and no length
            length = 0
        self._array: NDArray[Any] = np.empty((length, *shape), dtype)
        self._count = 0
        self._row = math.prod(shape)

    def block(self, rows: int) -> NDArray[Any]:
        """Return a view of that many new rows, to be filled before the next block is asked for."""
        total = self._count + rows
        if total > len(self._array):
            spare = max(1, _SPARE_BYTES // max(1, self._array.itemsize * self._row))
            room = max(total, min(len(self._array) * 5 // 4, total + spare))
            self._array.resize((room, *self._array.shape[1:]), refcheck=False)
        block = self._array[self._count : total]
        self._count = total
        return block

    def take(self) -> NDArray[Any]:
        """Return all rows; nothing may be appended afterwards."""
        if len(self._array) != self._count:
            self._array.resize((self._count, *self._array.shape[1:]), refcheck=False)
        return self._array
