"""A kind of index: a linear scan in NumPy, exact and slow; weighed by plans, and evaluated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.advice.evaluation import GridRequest
from lookalike.advice.machine import MachineCosts
from lookalike.advice.planner import Prediction, Question
from lookalike.checks import neighbor_count, whole_number
from lookalike.indexes.base import DEFAULT_LIMIT, RowsIndex
from lookalike.indexes.filters import Among, Chosen
from lookalike.indexes.kinds import IndexKind
from lookalike.indexes.results import (
    Matches,
    Neighbors,
    merged_matches,
    nearest_of,
    too_many_matches,
)
from lookalike.indexes.rows import Rows
from lookalike.signatures import as_queries

__all__ = ["KIND", "LinearIndex"]


class LinearIndex(RowsIndex):
    """Compares a query with all signatures."""

    kind = "linear"

    def __init__(self, signatures: ArrayLike, ids: ArrayLike | None = None) -> None:
        self._rows = Rows.of(signatures, ids)

    def search(
        self,
        queries: ArrayLike,
        k: SupportsIndex,
        *,
        at_once: SupportsIndex = 1000,
        among: Among = None,
        threads: SupportsIndex | None = None,
    ) -> Neighbors:
        """Return the k nearest signatures of each query, `at_once` queries at a time; exact."""
        rows = as_queries(queries, self.bits)
        step = whole_number("at_once", at_once, at_least=1)
        wanted = neighbor_count(k, len(rows), len(self))
        parts = [
            nearest_of(*self._compared(rows[begin : begin + step], among), wanted)
            for begin in range(0, len(rows), step)
        ]
        ids, distances = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        return Neighbors(ids, distances, exact=True)

    def within(
        self,
        queries: ArrayLike,
        radius: SupportsIndex,
        *,
        limit: SupportsIndex = DEFAULT_LIMIT,
        among: Among = None,
        threads: SupportsIndex | None = None,
    ) -> Matches:
        """Return every signature at distance `radius` or less from each query; exact."""
        rows = as_queries(queries, self.bits)
        near = whole_number("radius", radius, at_least=0)
        ids, distances = self._compared(rows, among)
        query, place = np.nonzero((ids >= 0) & (distances <= near))
        if len(query) > (most := whole_number("limit", limit, at_least=0)):
            raise too_many_matches(most, near, len(rows))
        found = query, ids[query, place], distances[query, place]
        return merged_matches(len(rows), [found], exact=True)

    def _compared(
        self, queries: NDArray[np.uint8], among: Among
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return ids and distances of all signatures for each query; -1 where none is wanted."""
        ids = self._rows.all_ids()
        if (chosen := Chosen.of(among, self)) is not None:
            ids = np.where(chosen.has(ids), ids, -1)
        differing = queries[:, None] ^ self._rows.signatures[None]
        distances = np.bitwise_count(differing).sum(axis=2, dtype=np.int32)
        return np.broadcast_to(ids, distances.shape), np.where(ids >= 0, distances, -1)


def predicted(question: Question, costs: MachineCosts) -> Iterator[Prediction]:
    """Yield what `la.plan` weighs, for 40 bits alone: a hundred times as long as in the core."""
    size = question.signature_bytes
    if question.bits == 40:
        time = 1e-3 * 100 * (costs.query + costs.scanned_byte * size)
        yield Prediction(index="linear", microseconds=time, memory_bytes=size, remark="in NumPy")


def grid(request: GridRequest) -> list[tuple[Mapping[str, Any], list[Mapping[str, Any]]]]:
    """Return what `la.evaluate` measures: one index, searched with two settings."""
    return [({}, [{"at_once": 1}, {"at_once": request.count}])]


KIND = IndexKind(
    "linear",
    LinearIndex,
    "a linear scan in NumPy: exact, and slow",
    predictor=predicted,
    grid=grid,
)
