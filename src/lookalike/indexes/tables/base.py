"""What indexes of sorted tables have in common: everything that is not their own search."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike import _native
from lookalike.checks import neighbor_count, thread_count
from lookalike.errors import CorruptIndexError, ResultTooLargeError
from lookalike.indexes.among import Among, Chosen, only_chosen, worth_copying
from lookalike.indexes.base import Index
from lookalike.indexes.masks import no_masks
from lookalike.indexes.merging import MatchColumns, merged_matches, nearest_of, padded
from lookalike.indexes.results import NO_LIMIT, Matches, Neighbors, as_int64, too_many_matches
from lookalike.indexes.rows import Rows
from lookalike.indexes.scanning import scan_nearest, scan_within
from lookalike.indexes.slices.segments import Segment, chosen_of
from lookalike.indexes.tables.sorted_table import SortedTable
from lookalike.signatures import as_queries
from lookalike.signatures.arrays import MAX_BITS

if TYPE_CHECKING:
    from lookalike.storage import Container

__all__ = ["TabledIndex", "first_of_each"]

_CHUNK = 1 << 22


class TabledIndex(Index):
    """An index whose tables hold the signatures; the caller's array is not kept.

    Whatever tables cannot answer is answered by a scan over the first of them.
    """

    _tables: tuple[SortedTable, ...]
    _ids: NDArray[np.int64] | None
    """The ids of rows; None if rows are the ids."""

    @property
    def bits(self) -> int:
        """How many bits each signature has."""
        return 8 * int(self._tables[0].signatures.shape[1])

    @property
    def own_ids(self) -> bool:
        """Whether ids are the caller's."""
        return self._ids is not None

    @property
    def next_id(self) -> int:
        """One more than the largest id."""
        return len(self) if self._ids is None else int(self._ids.max(initial=-1)) + 1

    def __len__(self) -> int:
        return len(self._tables[0].signatures)

    def _living(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Return copies of all signatures, in the order they were given in, and their ids."""
        table = self._tables[0]
        signatures = np.empty_like(table.signatures)
        signatures[self._rows_of(slice(None))] = table.signatures
        return signatures, np.arange(len(self)) if self._ids is None else self._ids

    def search(
        self,
        queries: ArrayLike,
        k: SupportsIndex,
        *,
        among: Among | None = None,
        masks: None = None,
        threads: SupportsIndex | None = None,
    ) -> Neighbors:
        """Return the k nearest signatures of each query, nearest first, ties by id; exact.

        Tables serve to search by radius, not for this: it scans all signatures. `masks` are
        refused.
        """
        no_masks(self, masks)
        rows = as_queries(queries, self.bits)
        wanted = neighbor_count(k, len(rows), len(self))
        chosen = None if among is None else Chosen.of(among, self.next_id)
        return self._scan_nearest(rows, wanted, thread_count(threads), chosen)

    # Scanning

    def _scan_nearest(
        self, rows: NDArray[np.uint8], k: int, threads: int, chosen: Chosen | None = None
    ) -> Neighbors:
        if chosen is not None:
            return scan_nearest(self._among(chosen, len(rows)), rows, k, threads)
        ids = np.empty((len(rows), 0), np.int64)
        distances = np.empty((len(rows), 0), np.int32)
        for signatures, own in self._chunks():
            found = min(k, len(signatures))
            near = np.empty((len(rows), found), np.int64)
            far = np.empty((len(rows), found), np.int32)
            _native.scan_nearest(signatures, own, False, rows, found, threads, near, far)
            ids, distances = nearest_of(
                np.concatenate([ids, near], axis=1), np.concatenate([distances, far], axis=1), k
            )
        return Neighbors(padded(ids, k), padded(distances, k), exact=True)

    def _scan_within(
        self, rows: NDArray[np.uint8], radius: int, limit: int, threads: int
    ) -> Matches:
        parts: list[MatchColumns] = []
        left = limit
        for signatures, own in self._chunks():
            try:
                offsets, ids, distances = _native.scan_within(
                    signatures, own, False, rows, radius, min(left, NO_LIMIT), threads
                )
            except _native.TooManyResults:
                raise too_many_matches(limit, radius, len(rows)) from None
            left -= len(ids)
            query = np.repeat(np.arange(len(rows)), np.diff(offsets))
            parts.append((query, as_int64(ids), distances))
        return merged_matches(len(rows), parts, exact=True)

    def _within_among(
        self,
        ask: Callable[[], Matches] | None,
        among: Among,
        rows: NDArray[np.uint8],
        radius: int,
        limit: int,
        first: bool,
        threads: int,
    ) -> Matches:
        """Return those that are chosen of all matches, for which to `ask`.

        Where they cannot be asked for, or all would be too many, the chosen are scanned.
        """
        chosen, matches = Chosen.of(among, self.next_id), None
        if ask is not None:
            with suppress(ResultTooLargeError):
                matches = only_chosen(ask(), chosen)
        if matches is None:
            part = self._among(chosen, len(rows))
            matches = scan_within(part, rows, radius, limit, threads, radius)
        return first_of_each(matches) if first else matches

    @cached_property
    def _segment(self) -> Segment:
        """The first table as rows with ids, which find places by them."""
        rows = self._rows_of(slice(None))
        ids = rows.astype(np.int64) if self._ids is None else self._ids[rows]
        return Segment(Rows(self._tables[0].signatures, ids, ascending=False), 1)

    def _among(self, chosen: Chosen, queries: int) -> Segment:
        """Return what is to be scanned."""
        (part,) = chosen_of([self._segment], chosen, worth_copying(len(self), self.bits, queries))
        return part

    def _chunks(self) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.int64]]]:
        """Yield signatures and their ids, some at a time; at least once."""
        for begin in range(0, max(1, len(self)), _CHUNK):
            part = slice(begin, begin + _CHUNK)
            rows = self._rows_of(part)
            ids = rows.astype(np.int64) if self._ids is None else self._ids[rows]
            yield self._tables[0].signatures[part], ids

    def _rows_of(self, part: slice) -> NDArray[Any]:
        table = self._tables[0]
        if table.rows is None or table.compressed:
            return np.arange(len(self))[part]
        rows = table.rows[part]
        if len(rows) and int(rows.max()) >= len(self):
            raise self._damaged()
        return rows

    def _damaged(self) -> CorruptIndexError:
        name = self._container.path if self._container else "the index"
        return CorruptIndexError(f"{name}: a table points outside of the collection; rebuild it")

    # Saving

    def _take_rows(self, signatures: ArrayLike, ids: ArrayLike | None) -> NDArray[np.uint8]:
        rows = Rows.of(signatures, ids)
        self._ids = None if rows.ids is None else rows.ids
        return rows.signatures

    def _arrays(self) -> dict[str, NDArray[Any]]:
        arrays: dict[str, NDArray[Any]] = {}
        for number, table in enumerate(self._tables):
            arrays |= table.arrays(f"{number}.")
        if self._ids is not None:
            arrays["ids"] = self._ids
        return arrays

    def _restore_tables(self, container: Container, runs: list[Any]) -> None:
        tables = tuple(
            SortedTable.restored(container, f"{number}.", own) for number, own in enumerate(runs)
        )
        shapes = {table.signatures.shape for table in tables}
        if len(shapes) != 1 or not 1 <= tables[0].signatures.shape[1] <= MAX_BITS // 8:
            raise CorruptIndexError(
                f"{container.path} holds tables of the shapes {sorted(shapes)}; it is damaged"
            )
        self._tables = tables
        self._ids = None
        if "ids" in container:
            self._ids = container.array("ids", np.int64, 1)
            if len(self._ids) != len(self):
                raise CorruptIndexError(
                    f"{container.path} holds {len(self)} signatures and {len(self._ids)} ids; "
                    "it is damaged"
                )


def first_of_each(matches: Matches) -> Matches:
    """Return the nearest match of each query only."""
    some = np.diff(matches.offsets) > 0
    places: NDArray[np.int64] = matches.offsets[:-1][some]
    offsets = np.concatenate([[0], np.cumsum(some)]).astype(np.int64)
    return Matches(offsets, matches.ids[places], matches.distances[places], matches.exact)
