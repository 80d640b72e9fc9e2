"""Step 5, verify, the first half, of pairs that are not too many: one task compares their
signatures, and finds out what those that are near connect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.corpora.base import pa
from lookalike.dedup.pairs import distinct
from lookalike.dedup.propose import promising, row_distances
from lookalike.dedup.settings import DedupSettings
from lookalike.spark.packed import Batches, table_of
from lookalike.spark.position_set import packed_positions
from lookalike.spark.steps.resolve import PAIRS, SIGNATURE

__all__ = ["LABEL", "LARGE", "NEAR", "NEEDED", "NEIGHBOURS", "neighbours"]

NEIGHBOURS = "kind int, left long, right long, distance int, data binary"
"""Pairs; documents (`left`) with the least that they are connected with (`right`); labels of
components that are large; and which documents are in the others.
"""

NEAR, LABEL, LARGE, NEEDED = range(4)


def neighbours(settings: DedupSettings, most: int) -> Callable[[Batches], Iterator[Any]]:
    """Return what compares signatures; components of more than `most` documents are large."""

    def compare(batches: Batches) -> Iterator[Any]:
        table = table_of(batches)
        if table is None:
            return
        kinds = table["kind"].to_numpy()
        pairs, signed = (table.filter(pa.array(kinds == kind)) for kind in (PAIRS, SIGNATURE))
        signed = signed.sort_by("position")
        position = signed["position"].to_numpy()
        data = b"".join(value.as_py() for value in signed["data"])
        rows = np.frombuffer(data, np.uint8).reshape(len(position), settings.signer().bits // 8)
        left, right = (
            np.searchsorted(position, pairs[side].to_numpy()) for side in ("position", "value")
        )
        distances = row_distances(settings, rows, left, right, 1)
        near = promising(distances, settings)
        left, right = left[near], right[near]
        yield _rows(NEAR, position[left], position[right], distances[near])
        labels = np.empty(len(position), np.int64)
        _native.components(left, right, labels)
        members = distinct(np.concatenate([left, right]))
        yield _rows(LABEL, position[members], position[labels[members]])
        sizes = np.bincount(labels[members], minlength=len(position))
        large = np.flatnonzero(sizes > most)
        yield _rows(LARGE, position[large], position[large])
        others = position[members[sizes[labels[members]] <= most]]
        none = np.zeros(1, np.int64)
        yield _rows(NEEDED, none, none, data=packed_positions(others))

    return compare


def _rows(
    kind: int,
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    distance: NDArray[np.int32] | None = None,
    data: bytes | None = None,
) -> Any:
    count = len(left)
    return pa.record_batch(
        {
            "kind": pa.array(np.full(count, kind, np.int32)),
            "left": pa.array(left),
            "right": pa.array(right),
            "distance": pa.array(np.zeros(count, np.int32) if distance is None else distance),
            "data": pa.nulls(count, pa.binary()) if data is None else pa.array([data], pa.binary()),
        }
    )
