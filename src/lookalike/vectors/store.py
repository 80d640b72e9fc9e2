"""Vectors at places, which ids they have, and which were removed; a store never changes.

A place is the number that a vector had when it came, and what the index of signatures calls it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.errors import ArgumentError
from lookalike.indexes.among import Chosen

__all__ = ["Store"]

_LEAST_ROOM = 256


@dataclass(frozen=True, eq=False)
class Store:
    """Rows in two parts: as they were given, perhaps in a file, and those added since."""

    first: NDArray[Any]
    added: NDArray[Any]
    """The beginning of `room`, if that is there."""
    ids: NDArray[np.int64] | None = None
    """The id of each place; None where places are ids."""
    removed: NDArray[np.uint8] | None = None
    """A byte per place, 1 where it was removed; None where none was."""
    room: NDArray[Any] | None = None
    """An array of our own with place for more rows; whoever has another store does not write it."""

    def __len__(self) -> int:
        return len(self.first) + len(self.added)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the numbers: float32 or float16."""
        return self.first.dtype

    @property
    def alive(self) -> int:
        """How many places have not been removed."""
        return len(self) - (0 if self.removed is None else int(self.removed.sum()))

    @cached_property
    def native(self) -> _native.Vectors:
        """The vectors as the core sees them."""
        if self.dtype == np.float16:
            return _native.Vectors(self.first.view(np.uint16), self.added.view(np.uint16), self.ids)
        return _native.Vectors(self.first, self.added, self.ids)

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """The places that have not been removed."""
        if self.removed is None:
            return np.arange(len(self))
        return np.flatnonzero(self.removed == 0)

    def ids_of(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the ids of places."""
        return places if self.ids is None else self.ids[places]

    def rows(self, places: NDArray[np.int64]) -> NDArray[Any]:
        """Return copies of the vectors at places."""
        rows: NDArray[Any] = np.empty((len(places), self.first.shape[1]), self.dtype)
        early = places < len(self.first)
        rows[early] = self.first[places[early]]
        rows[~early] = self.added[places[~early] - len(self.first)]
        return rows

    def all_rows(self) -> NDArray[Any]:
        """Return all vectors, also those removed, by place; copied only if some were added."""
        return np.concatenate([self.first, self.added]) if len(self.added) else self.first

    @cached_property
    def _order(self) -> NDArray[np.int64]:
        """Living places by ascending id."""
        living = self.places
        return living[np.argsort(self.ids_of(living), kind="stable")]

    def find(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the place of each id, or -1 where it is not here or was removed."""
        if self.ids is None:
            found = np.where((ids >= 0) & (ids < len(self)), ids, -1)
            if self.removed is None or not len(self):
                return found
            return np.where((found >= 0) & (self.removed[found] == 0), found, -1)
        if not len(self._order):
            return np.full(len(ids), -1)
        known = self.ids[self._order]
        at = np.searchsorted(known, ids).clip(max=len(known) - 1)
        return np.where(known[at] == ids, self._order[at], -1)

    def chosen(self, chosen: Chosen) -> NDArray[np.int64]:
        """Return the living places whose ids are chosen, in ascending order."""
        found = self.find(chosen.listed())
        return np.sort(found[found >= 0])

    def skipped(self, places: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return a byte per place: 0 for these, else 1."""
        skip = np.ones(len(self), np.uint8)
        skip[places] = 0
        return skip

    def with_rows(self, new: NDArray[Any], ids: NDArray[np.int64], start: int) -> Store:
        """Return the first `start` places, and new ones with these ids behind them."""
        kept, count = start - len(self.first), start - len(self.first) + len(new)
        room = self.room
        if room is None or len(room) < count:
            size = max(_LEAST_ROOM, count + count // 2)
            room = np.empty((size, self.first.shape[1]), self.dtype)
            room[:kept] = self.added[:kept]
        room[kept:count] = new
        known = self.ids
        positions = np.arange(start, start + len(new))
        if known is not None or not np.array_equal(ids, positions):
            known = np.concatenate([np.arange(start) if known is None else known[:start], ids])
        removed = self.removed
        if removed is not None:
            removed = np.concatenate([removed[:start], np.zeros(len(new), np.uint8)])
        return Store(self.first, room[:count], known, removed, room)

    def without(self, places: NDArray[np.int64]) -> Store:
        """Return the store with these places marked as removed."""
        removed = np.zeros(len(self), np.uint8) if self.removed is None else self.removed.copy()
        removed[places] = 1
        return replace(self, removed=removed)

    def without_room(self) -> Store:
        """Return the store for a second owner: whoever adds next copies what was added."""
        return replace(self, room=None)

    def compacted(self) -> Store:
        """Return the living alone, at new places, with the ids they have."""
        places = self.places
        ids = self.ids_of(places)
        plain = np.array_equal(ids, np.arange(len(places)))
        return Store(self.rows(places), self.first[:0], None if plain else ids)

    def refuse_known(self, ids: NDArray[np.int64]) -> None:
        """Raise if one of the ids is in use."""
        known = self.find(ids) >= 0
        if known.any():
            raise ArgumentError(f"the id {ids[known][0]} is in the index already; remove it first")

    def places_of_all(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the places of ids, or raise if one is not there."""
        found = self.find(ids)
        if (found < 0).any():
            raise ArgumentError(
                f"the id {ids[found < 0][0]} is not in the index; nothing was removed"
            )
        return found
