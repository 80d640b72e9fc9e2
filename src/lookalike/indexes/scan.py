"""ScanIndex: every signature, every time. The truth that other indexes are measured by."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.indexes.base import ExhaustiveIndex, Masks, RowsIndex, Signatures
from lookalike.indexes.filters import Among, Chosen, worth_copying
from lookalike.indexes.results import Matches, Neighbors
from lookalike.indexes.rows import Rows
from lookalike.indexes.segments import Segment, chosen_of, scan_nearest, scan_within


class ScanIndex(RowsIndex, ExhaustiveIndex):
    """Exhaustive search, always exact, nothing to build.

    One query reads the collection once, at the speed of memory; a batch is compared tile by tile,
    so that what was read serves all its queries. Costs no memory beside the signatures. `pairs`
    compares each signature with each.
    """

    kind = "scan"

    def __init__(self, signatures: ArrayLike, ids: ArrayLike | None = None) -> None:
        self._rows = Rows.of(signatures, ids)

    @property
    def signatures(self) -> NDArray[np.uint8]:
        """The signatures, where the caller has them."""
        self._verify_rest()
        return self._rows.signatures

    @property
    def ids(self) -> NDArray[np.int64] | None:
        """The caller's ids; None if positions are the ids."""
        self._verify_rest()
        return self._rows.ids

    @property
    def takes_masks(self) -> bool:
        """Whether queries may have masks: yes."""
        return True

    def _nearest(
        self, rows: Signatures, k: int, among: Among | None, masks: Masks, threads: int
    ) -> Neighbors:
        part = self._segment if among is None else self._chosen(among, len(rows))
        return scan_nearest(part, rows, k, threads, masks)

    def _within(
        self,
        rows: Signatures,
        radius: int,
        limit: int,
        among: Among | None,
        masks: Masks,
        threads: int,
    ) -> Matches:
        part = self._segment if among is None else self._chosen(among, len(rows))
        return scan_within(part, rows, radius, limit, threads, masks)

    def _pairing(self, radius: int) -> dict[str, Any]:
        return {"each_with_each": True}

    def _chosen(self, among: Among, queries: int) -> Segment:
        chosen = Chosen.of(among, self.next_id)
        (part,) = chosen_of([self._segment], chosen, worth_copying(len(self), self.bits, queries))
        return part
