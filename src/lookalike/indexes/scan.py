"""ScanIndex: exhaustive search, the reference that other indexes are compared with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.indexes.base import ExhaustiveIndex, Masks, RowsIndex
from lookalike.indexes.filters import Among, Chosen, worth_copying
from lookalike.indexes.results import Matches, Neighbors
from lookalike.indexes.rows import Rows, Signatures
from lookalike.indexes.segments import Segment, chosen_of, scan_nearest, scan_within


class ScanIndex(RowsIndex, ExhaustiveIndex):
    """Compare every query with every signature; always exact.

    A single query reads the collection once, at memory bandwidth. A batch is compared in tiles, so
    that each part is read once for all queries. Takes no memory beyond the signatures.

    Args:
        signatures: Array `uint8[n, bits // 8]`; it is used in place.
        ids: Ids of the signatures, distinct and at least 0 (default: their positions).

    Examples:
        >>> signatures = np.array([[0b0000], [0b0001], [0b0111]], np.uint8)
        >>> la.ScanIndex(signatures).search(signatures[:1], k=2).distances
        array([[0, 1]], dtype=int32)
    """

    kind = "scan"
    takes_masks = True

    def __init__(self, signatures: ArrayLike, ids: ArrayLike | None = None) -> None:
        self._rows = Rows.of(signatures, ids)

    @property
    def signatures(self) -> Signatures:
        """The signatures, as given."""
        self._verify_rest()
        return self._rows.signatures

    @property
    def ids(self) -> NDArray[np.int64] | None:
        """Ids given by the caller, or None if ids are positions."""
        self._verify_rest()
        return self._rows.ids

    def _nearest(
        self, rows: Signatures, k: int, among: Among, masks: Masks, threads: int
    ) -> Neighbors:
        return scan_nearest(self._searched(among, len(rows)), rows, k, threads, masks)

    def _within(
        self, rows: Signatures, radius: int, limit: int, among: Among, masks: Masks, threads: int
    ) -> Matches:
        return scan_within(self._searched(among, len(rows)), rows, radius, limit, threads, masks)

    def _pairing(self, radius: int) -> dict[str, Any]:
        return {"each_with_each": True}

    def _searched(self, among: Among, queries: int) -> Segment:
        if among is None:
            return self._segment
        most = worth_copying(len(self), self.bits, queries)
        return chosen_of((self._segment,), Chosen.of(among, self), most)[0]
