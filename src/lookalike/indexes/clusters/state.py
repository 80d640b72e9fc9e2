"""Groups and what was added to them or removed since: what `add`, `remove` and `compact` change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lookalike.errors import CorruptIndexError
from lookalike.indexes.clusters.groups import Groups, group_count
from lookalike.indexes.clusters.majority import nearest_centres
from lookalike.indexes.rows import Rows
from lookalike.indexes.slices.change import Segments, without_ids
from lookalike.indexes.slices.segments import BUFFER, Segment, extended

if TYPE_CHECKING:
    from lookalike.storage import Container

__all__ = ["State"]

_ADDED_SHARE = 64
"""Rows that were added are put into groups when they are more than this share of all."""


@dataclass(frozen=True, eq=False)
class State:
    """Groups, which rows of them are left, and rows that are in no group yet; never changed."""

    groups: Groups
    segments: Segments
    """The rows of the groups, then those that were added since."""

    @classmethod
    def of(cls, groups: Groups) -> State:
        """Return groups all of whose rows are there, and no others."""
        return cls(groups, (Segment(groups.rows, 1),))  # without lists: the width does not matter

    @classmethod
    def around(cls, centres: NDArray[np.uint8], rows: Rows, seed: int, threads: int) -> State:
        """Return the rows in groups around these centres, or around others if there are none."""
        if not len(centres) or not len(rows):
            return cls.of(Groups.build(rows, group_count(len(rows)), seed, threads))
        found = nearest_centres(rows.signatures, centres, threads)
        return cls.of(Groups.arranged(rows, centres, *found, seed, threads))

    @property
    def alive(self) -> int:
        """How many rows there are."""
        return sum(segment.alive for segment in self.segments)

    def living(self) -> Rows:
        """Return copies of all rows, in the order of ids."""
        parts = [segment.living() for segment in self.segments]
        ids = np.concatenate([part.all_ids() for part in parts])
        order = np.argsort(ids)
        return Rows(np.concatenate([part.signatures for part in parts])[order], ids[order])

    def with_rows(self, new: Rows, seed: int, threads: int) -> State:
        """Return the state with new rows, which are put into groups once they are many."""
        changed = list(self.segments)
        if len(changed) > 1 and len(changed[-1]) + len(new) <= BUFFER:
            changed[-1] = extended(changed[-1], new)
        elif len(new) <= BUFFER // 2:
            changed.append(extended(Segment(Rows(new.signatures[:0]), 1), new))
        else:
            changed.append(Segment(Rows(new.signatures.copy(), new.all_ids(), new.ascending), 1))
        state = State(self.groups, tuple(changed))
        added = sum(map(len, changed[1:]))
        if added <= max(BUFFER, len(self.groups.rows) // _ADDED_SHARE):
            return state
        return state.regrouped(seed, threads)

    def without(self, ids: NDArray[np.int64]) -> State:
        """Return the state without these ids; raises if one is not there."""
        return State(self.groups, without_ids(self.segments, ids))

    def without_room(self) -> State:
        """Return the state for a second owner: whoever adds next copies the rows first."""
        return State(self.groups, tuple(segment.without_room() for segment in self.segments))

    def regrouped(self, seed: int, threads: int) -> State:
        """Return the state with all rows in groups, and those of removed ones freed.

        Rows that were added go to the nearest of the centres there are. Where these have become
        too few, all groups are made anew.
        """
        groups, first = self.groups, self.segments[0]
        if not self.alive or 2 * len(groups) < group_count(self.alive):
            return State.of(Groups.build(self.living(), group_count(self.alive), seed, threads))
        kept = np.arange(len(first))
        if first.removed is not None:
            kept = np.flatnonzero(first.removed == 0)
        labels = np.repeat(np.arange(len(groups)), np.diff(groups.offsets))[kept]
        rows, far = first.rows.take(kept), groups.from_centre[kept]
        added = [segment.living() for segment in self.segments[1:]]
        signatures = np.concatenate([rows.signatures, *(part.signatures for part in added)])
        ids = np.concatenate([rows.all_ids(), *(part.all_ids() for part in added)])
        own, distances = nearest_centres(signatures[len(kept) :], groups.centres, threads)
        labels, far = np.concatenate([labels, own]), np.concatenate([far, distances])
        whole = Rows(signatures, ids, ascending=False)
        return State.of(Groups.arranged(whole, groups.centres, labels, far, seed, threads))

    # Saving

    def meta(self) -> dict[str, Any]:
        """Return what has to be saved beside the arrays."""
        return {
            "near_probe": self.groups.near_probe,
            "removals": self.segments[0].removals,
            "added": [segment.meta() for segment in self.segments[1:]],
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what has to be saved, by name."""
        arrays = self.groups.arrays()
        removed = self.segments[0].removed
        if removed is not None:
            arrays["removed"] = removed
        for number, segment in enumerate(self.segments[1:]):
            arrays |= segment.arrays(f"{number}.")
        return arrays

    @classmethod
    def restored(cls, container: Container) -> State:
        """Return what `arrays` and `meta` saved; raises what a description may that is damaged."""
        groups = Groups.restored(container)
        removals = int(container.meta.get("removals", 0))
        first = Segment(groups.rows, 1, removals=removals)
        if "removed" in container:
            first.removed = container.array("removed", np.uint8, 1)
        marked = 0 if first.removed is None else len(first.removed)
        added = tuple(
            Segment.restored(container, f"{number}.", 1, dict(segment))
            for number, segment in enumerate(container.meta.get("added", ()))
        )
        fits = marked in (0, len(groups.rows)) and 0 <= removals <= marked
        if not fits or any(segment.rows.bits != groups.rows.bits for segment in added):
            raise CorruptIndexError(
                f"{container.path} holds {len(groups.rows)} signatures in groups and marks "
                f"{removals} of {marked} as removed, or others of another width; it is damaged"
            )
        return cls(groups, (first, *added))
