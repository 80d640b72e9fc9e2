"""Common code of indexes of sorted tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike import _native
from lookalike.errors import CorruptIndexError
from lookalike.indexes.base import Masks, PlainSearch
from lookalike.indexes.filters import Among, Chosen, worth_copying
from lookalike.indexes.results import (
    MatchColumns,
    Matches,
    Neighbors,
    as_int64,
    merged_matches,
    nearest_of_parts,
    too_many_matches,
)
from lookalike.indexes.rows import Rows, Signatures
from lookalike.indexes.segments import Segment, chosen_of, scan_nearest, scan_within
from lookalike.indexes.tables.sorted_table import Part, part_arrays, restored_parts
from lookalike.storage.container import Container

_CHUNK = 1 << 22

Ask = Callable[
    [Part, NDArray[np.int64] | None, Any, int],
    tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]],
]
"""Searches a part: takes its ids, the queries to ask, and the maximum number of matches."""


class TabledIndex(PlainSearch):
    """An index whose tables hold the signatures; the caller's array is not kept."""

    _pointers = "a table points"
    _parts: tuple[Part, ...]  # more than one part only if there are more rows than a table can have
    _ids: NDArray[np.int64] | None  # ids of rows, or None if ids are positions

    @property
    def bits(self) -> int:
        """Number of bits of a signature."""
        return 8 * int(self._parts[0].tables[0].signatures.shape[1])

    @property
    def own_ids(self) -> bool:
        """Whether the caller gave ids; otherwise ids are positions."""
        return self._ids is not None

    @property
    def next_id(self) -> int:
        """One more than the largest id."""
        return len(self) if self._ids is None else int(self._ids.max(initial=-1)) + 1

    def __len__(self) -> int:
        return self._parts[-1].end

    def _living(self) -> tuple[Signatures, NDArray[np.int64]]:
        """Return copies of all signatures, in their original order, and their ids."""
        signatures = np.empty((len(self), self.bits // 8), np.uint8)
        for part in self._parts:
            signatures[self._rows_of(part)] = part.tables[0].signatures
        return signatures, np.arange(len(self)) if self._ids is None else self._ids

    def _nearest(
        self, rows: Signatures, k: int, among: Among, masks: Masks, threads: int
    ) -> Neighbors:
        return self._scan_nearest(rows, k, threads, Chosen.of(among, self))

    def _scan_nearest(
        self, rows: Signatures, k: int, threads: int, chosen: Chosen | None = None
    ) -> Neighbors:
        found = [
            scan_nearest(segment, rows, min(k, max(1, segment.alive)), threads)
            for segment in self._scanned(chosen, len(rows))
        ]
        return Neighbors(*nearest_of_parts(found, k), exact=True)

    def _scan_within(
        self,
        rows: Signatures,
        radius: int,
        limit: int,
        threads: int,
        chosen: Chosen | None = None,
        first: bool = False,
    ) -> Matches:
        parts: list[MatchColumns] = []
        left = limit
        for segment in self._scanned(chosen, len(rows)):
            try:
                found = scan_within(segment, rows, radius, left, threads)
            except _native.TooManyResults:
                raise too_many_matches(limit, radius, len(rows)) from None
            left -= len(found.ids)
            parts.append((found.query, found.ids, found.distances))
        matches = merged_matches(len(rows), parts, exact=True)
        return first_of_each(matches) if first else matches

    def _ask_parts(
        self, queries: int, first: bool, limit: int, shift: bool, ask: Ask
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
        """Return offsets, ids and distances of the matches of all parts.

        With `first`, only queries without a match are asked in the next part. `shift`: ids are rows
        of a part.
        """
        if len(self._parts) == 1:
            offsets, ids, distances = ask(self._parts[0], self._ids, slice(None), limit)
            return as_int64(offsets), as_int64(ids), distances
        found: list[MatchColumns] = []
        asked, left = np.arange(queries), limit
        for part in self._parts:
            own = None if self._ids is None else self._ids[part.first : part.end]
            offsets, ids, distances = ask(part, own, asked, left)
            left -= len(ids)
            rows = as_int64(ids) + (part.first if shift and own is None else 0)
            counts = np.diff(offsets)
            found.append((np.repeat(asked, counts), rows, distances))
            if first:
                asked = asked[counts == 0]
        whole = merged_matches(queries, found, exact=True)
        return whole.offsets, whole.ids, whole.distances

    @cached_property
    def _segments(self) -> tuple[Segment, ...]:
        """The first table of each part as rows with ids."""
        return tuple(self._segment(part) for part in self._parts)

    def _segment(self, part: Part, some: slice = slice(None)) -> Segment:
        rows = self._rows_of(part, some)
        ids = rows if self._ids is None else self._ids[rows]
        return Segment(Rows(part.tables[0].signatures[some], ids, ascending=False), 1)

    def _scanned(self, chosen: Chosen | None, queries: int) -> Iterable[Segment]:
        """Return the segments to scan: the chosen rows, or all rows in chunks."""
        if chosen is None:
            return self._chunks()
        return chosen_of(self._segments, chosen, worth_copying(len(self), self.bits, queries))

    def _chunks(self) -> Iterator[Segment]:
        for part in self._parts:
            for begin in range(0, max(1, len(part)), _CHUNK):
                yield self._segment(part, slice(begin, begin + _CHUNK))

    def _rows_of(self, part: Part, some: slice = slice(None)) -> NDArray[np.int64]:
        rows = part.rows(some)
        if rows is None:
            raise self._damaged()
        return rows

    def _take_rows(self, signatures: ArrayLike, ids: ArrayLike | None) -> Signatures:
        rows = Rows.of(signatures, ids)
        self._ids = rows.ids
        return rows.signatures

    def _meta(self) -> dict[str, Any]:
        parts = {"parts": len(self._parts)} if len(self._parts) > 1 else {}
        return {**super()._meta(), **parts}

    def stats(self) -> dict[str, Any]:
        """Return facts about the index, fit for JSON."""
        return {**super().stats(), "parts": len(self._parts)}

    def _arrays(self) -> dict[str, NDArray[Any]]:
        arrays = part_arrays(self._parts)
        if self._ids is not None:
            arrays["ids"] = self._ids
        return arrays

    def _restore_tables(self, container: Container, runs: list[Any]) -> None:
        self._parts = restored_parts(container, runs)
        self._ids = None
        if "ids" in container:
            self._ids = container.array("ids", np.int64, 1)
            if len(self._ids) != len(self):
                raise CorruptIndexError(
                    f"{container.path} holds {len(self)} signatures and {len(self._ids)} ids; "
                    "it is damaged"
                )


def only_chosen(matches: Matches, chosen: Chosen, first: bool) -> Matches:
    """Return the matches whose ids are chosen; with `first`, the nearest match of each query."""
    kept = chosen.has(matches.ids)
    offsets = np.concatenate([[0], np.cumsum(kept)])[matches.offsets]
    some = Matches(offsets, matches.ids[kept], matches.distances[kept], matches.exact)
    return first_of_each(some) if first else some


def first_of_each(matches: Matches) -> Matches:
    """Return the nearest match of each query."""
    some = np.diff(matches.offsets) > 0
    places: NDArray[np.int64] = matches.offsets[:-1][some]
    offsets = np.concatenate([[0], np.cumsum(some)]).astype(np.int64)
    return Matches(offsets, matches.ids[places], matches.distances[places], matches.exact)
