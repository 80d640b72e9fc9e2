"""GpuBands: keys of bands of MinHash signatures, and the rows that share one, on a GPU."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lookalike.gpu.card import card
from lookalike.indexes.bands import CoreBands

_BYTES_OF_ROW = 48
"""Memory on the GPU to sort one key with its row, and to see which keys are equal."""


class GpuBands(CoreBands):
    """Makes keys and groups of bands on a GPU; they are those of `CoreBands`.

    Signatures and keys are in main memory. A batch of rows, or the keys of one band, is on the GPU
    at a time. If the keys of a band do not fit, the core groups them.
    """

    rows_at_a_time = 1 << 20

    def __init__(self, device: int = 0) -> None:
        self._card = card(device)

    def fill(
        self, rows: NDArray[np.uint8], band_bytes: int, first: int, keys: NDArray[np.uint32]
    ) -> None:
        """Write the keys of rows that begin at row `first` of all."""
        with self._card:
            made = self._card.band_keys(self._card.put(rows), band_bytes, len(keys))
            keys[:, first : first + len(rows)] = self._card.host(made)

    def groups(
        self, keys: NDArray[np.uint32], band: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Return the rows of a band whose key others have, by key and row, and their offsets."""
        count = keys.shape[1]
        if count * _BYTES_OF_ROW > self._card.free_bytes():
            return super().groups(keys, band)
        with self._card:
            xp = self._card.xp
            entries = self._card.put(keys[band]).astype(xp.uint64) << xp.uint64(32)
            entries |= xp.arange(count, dtype=xp.uint64)
            entries.sort()
            equal = entries[1:] >> xp.uint64(32) == entries[:-1] >> xp.uint64(32)
            shared, begins = xp.zeros(count, bool), xp.ones(count, bool)
            shared[1:] |= equal
            shared[:-1] |= equal
            begins[1:] = ~equal
            rows = self._card.host(entries[shared].astype(xp.uint32))  # the lower half
            offsets = self._card.host(xp.flatnonzero(begins[shared]))
        return rows, np.append(offsets, len(rows)).astype(np.int64)
