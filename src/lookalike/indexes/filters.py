"""Restrictions of a search: to some signatures (`among`) or to some bits (`masks`).

With masks, `distances` count differing bits where the query's mask is 1. Results are sorted by
(masked distance, unmasked distance, id), and exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import as_array
from lookalike.errors import ArgumentError, Said
from lookalike.indexes.results import Matches, Neighbors, offsets_of, taken
from lookalike.indexes.rows import as_ids
from lookalike.signatures import as_queries

if TYPE_CHECKING:
    from lookalike.indexes.base import GrowingIndex, Index

_COPY, _COPIED_BYTES = 16, 1024  # comparisons that copying a row costs: these, or by its bytes
_MARKED = 32  # ids are marked in a mask where it has no more places for each of them than these


@dataclass(frozen=True, eq=False, slots=True)
class Chosen:
    """Ids that may be found: a sorted list, or a mask over all ids."""

    ids: NDArray[np.int64] | None  # distinct, ascending
    mask: NDArray[np.bool_] | None

    @classmethod
    def of(cls, among: Among, index: Index | GrowingIndex) -> Chosen | None:
        """Return which ids of an index `among` chooses; None if it does not restrict them."""
        if among is None or isinstance(among, Chosen):
            return among
        array, next_id = as_array("among", among), index.next_id
        if array.dtype != np.bool_:
            try:
                return cls._listed(as_ids(array), next_id)
            except ArgumentError as error:
                raise ArgumentError(f"among: {error}; or a mask of bool") from None
        if array.shape != (next_id,):
            raise ArgumentError(
                f"among is a mask of shape {array.shape}; expected ({next_id},), one value per id. "
                "If ids are large, pass a list of ids"
            )
        return cls(None, array)

    @classmethod
    def _listed(cls, ids: NDArray[np.int64], next_id: int) -> Chosen:
        if next_id <= _MARKED * len(ids):  # quicker than to sort them
            mask = np.zeros(next_id, bool)
            mask[ids[ids < next_id]] = True
            return cls(None, mask)
        ordered = np.sort(ids)
        first = np.ones(len(ordered), bool)
        first[1:] = ordered[1:] != ordered[:-1]
        return cls(ordered[first], None)

    def __len__(self) -> int:
        """Return the number of chosen ids, including ids that do not exist."""
        if self.mask is not None:
            return int(np.count_nonzero(self.mask))
        return 0 if self.ids is None else len(self.ids)

    def listed(self) -> NDArray[np.int64]:
        """Return the chosen ids, ascending."""
        if self.mask is not None:
            return np.flatnonzero(self.mask)
        return np.empty(0, np.int64) if self.ids is None else self.ids

    def has(self, ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of these ids are chosen."""
        found: NDArray[np.bool_] = np.zeros(len(ids), bool)
        if self.mask is not None:
            inside = ids < len(self.mask)
            found[inside] = self.mask[ids[inside]]
            return found
        if self.ids is None or not len(self.ids):
            return found
        places = np.searchsorted(self.ids, ids).clip(max=len(self.ids) - 1)
        found[:] = self.ids[places] == ids
        return found

    def shifted(self, shift: int, count: int) -> Chosen:
        """Return the choice for a shard with `count` ids that start at `shift`."""
        if self.mask is not None:
            return Chosen(None, self.mask[shift : shift + count])
        if self.ids is None:
            return self
        last = min(shift + count - 1, np.iinfo(np.int64).max)  # one more may be no int64
        begin, end = np.searchsorted(self.ids, shift), np.searchsorted(self.ids, last, "right")
        return Chosen(self.ids[begin:end] - shift, None)


Among = ArrayLike | Chosen | None
"""What callers pass, and what an index passes to its shards; None: all ids."""


def worth_copying(count: int, bits: int, queries: int) -> int:
    """Return the largest number of chosen rows, of `count`, that are worth copying."""
    return queries * count // (max(_COPY, 8 * _COPIED_BYTES // bits) + queries)


def as_masks(masks: ArrayLike, bits: int, queries: int) -> NDArray[np.uint8]:
    """Return one mask per query, or raise."""
    rows = as_queries(masks, bits, "masks")
    if len(rows) != queries:
        raise ArgumentError(
            f"expected one mask per query, got {len(rows)} masks for {queries} queries; "
            "sign(..., mask=True) returns both"
        )
    return rows


def no_masks(index: Index, masks: object) -> None:
    """Raise if there are masks, for an index that does not support them."""
    if masks is not None:
        raise ArgumentError(
            f"{type(index).__name__} does not support masks. Use ScanIndex or SliceIndex"
        )


def without_settings(**settings: object) -> None:
    """Raise if an option is given that would make the result approximate."""
    for name, value in settings.items():
        if value is not None:
            raise ArgumentError(
                Said(name), " does not apply to a search with masks, which is exact. Leave it out"
            )


def nearest_masked(
    ids: Sequence[NDArray[np.int64]], parts: Sequence[Neighbors], k: int, *, exact: bool
) -> Neighbors:
    """Return the k nearest of all parts; `ids` are their ids."""
    every = np.concatenate(ids, axis=1)
    distances = np.concatenate([part.distances for part in parts], axis=1)
    unmasked = np.concatenate([_unmasked(part) for part in parts], axis=1)
    order = np.lexsort((every, unmasked, distances, every < 0), axis=1)[:, :k]
    every, distances, unmasked = taken(order, k, every, distances, unmasked)
    return Neighbors(every, distances, exact, unmasked=unmasked)


def merged_masked_matches(
    ids: Sequence[NDArray[np.int64]], parts: Sequence[Matches], queries: int, *, exact: bool
) -> Matches:
    """Return the matches of all parts; `ids` are their ids."""
    every = np.concatenate(ids)
    query = np.concatenate([part.query for part in parts])
    distances = np.concatenate([part.distances for part in parts])
    unmasked = np.concatenate([_unmasked(part) for part in parts])
    order = np.lexsort((every, unmasked, distances, query))
    offsets = offsets_of(query, queries)
    return Matches(offsets, every[order], distances[order], exact, unmasked=unmasked[order])


def _unmasked(part: Neighbors | Matches) -> NDArray[np.int32]:
    if part.unmasked is None:
        raise RuntimeError("a search with masks has to tell unmasked distances")
    return part.unmasked
