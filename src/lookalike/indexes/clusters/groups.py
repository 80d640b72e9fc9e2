"""Signatures in the order of their groups (`Groups`), and later changes (`State`)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.errors import CorruptIndexError
from lookalike.indexes.clusters.majority import ROUNDS, clustered, nearest_centers
from lookalike.indexes.rows import Rows, Signatures, empty_in_large_pages
from lookalike.indexes.segments import (
    BUFFER,
    Segment,
    Segments,
    appended,
    without_ids,
    without_room,
)
from lookalike.signatures.random import random_words
from lookalike.storage.container import Container

_LEAST = 32  # least number of signatures of a group, on average, by default
_PER_ROOT = 4  # groups for each unit of the root of the number of signatures
_LARGE, _LARGE_ROWS = 5, 256  # times larger than usual, and rows, of groups that are split
_MOST_SPLITS = 64  # times that parts are split again: most of a hub stays together
MOST_WORK = 4  # maximum number of rows that are reassigned in splits, in multiples of all rows


_PROBE_SHARE, _LEAST_PROBE = 12, 16


def least_probe(groups: int) -> int:
    """Return the smallest default number of groups to read."""
    return max(_LEAST_PROBE, -(-groups // _PROBE_SHARE))


def group_count(count: int) -> int:
    """Return the default number of groups for `count` signatures."""
    return max(1, min(round(_PER_ROOT * math.sqrt(count)), count // _LEAST))


@dataclass(frozen=True, eq=False)
class Groups:
    """Rows in the order of their groups; within a group by (distance from the center, id)."""

    rows: Rows
    offsets: NDArray[np.int64]  # start of each group, and the end of the last; no group is empty
    centers: Signatures
    from_center: NDArray[np.int32]  # distance of each row from the center of its group
    saved_probe: int | None = None  # `near_probe`, if it was saved

    @classmethod
    def build(cls, given: Rows, count: int, seed: int, threads: int) -> Groups:
        """Return copies of the rows in about `count` groups."""
        signatures = given.signatures
        if not len(given):
            nothing = np.empty((0, signatures.shape[1]), np.uint8)
            rows = Rows(nothing, given.all_ids())
            return cls(rows, np.zeros(1, np.int64), nothing, np.empty(0, np.int32))
        found = clustered(signatures, count, seed, ROUNDS, threads)
        return cls.arranged(given, *found, seed, threads)

    @classmethod
    def arranged(
        cls,
        given: Rows,
        centers: Signatures,
        labels: NDArray[np.int64],
        far: NDArray[np.int32],
        seed: int,
        threads: int,
    ) -> Groups:
        """Return copies of the rows in these groups; changes some labels and distances."""
        signatures, ids = given.signatures, given.all_ids()
        centers = _split(signatures, centers, labels, far, seed, threads)
        used, labels = np.unique(labels, return_inverse=True)
        if given.ascending:
            order = np.argsort(labels.astype(np.int64) << 32 | far, kind="stable")
        else:
            order = np.lexsort((ids, far, labels))
        own = empty_in_large_pages(signatures.shape, np.uint8)
        np.take(signatures, order, axis=0, out=own, mode="clip")  # which does not go by a buffer
        offsets = np.zeros(len(used) + 1, np.int64)
        np.cumsum(np.bincount(labels), out=offsets[1:])
        kept = np.ascontiguousarray(centers[used])
        return cls(Rows(own, ids[order], ascending=False), offsets, kept, far[order])

    def __len__(self) -> int:
        return len(self.centers)

    def __getstate__(self) -> dict[str, Any]:
        """Return everything but what the core has, which cannot be copied."""
        return {name: value for name, value in vars(self).items() if name != "native"}

    @cached_property
    def nearest(self) -> NDArray[np.int32]:
        """Distance of the nearest row of each group from the center."""
        return self.from_center[self.offsets[:-1]]

    @cached_property
    def farthest(self) -> NDArray[np.int32]:
        """Distance of the farthest row of each group from the center."""
        return self.from_center[self.offsets[1:] - 1]

    @cached_property
    def near_probe(self) -> int:
        """Number of groups to read to find near-duplicates; measured on first use."""
        if self.saved_probe is not None:
            return self.saved_probe
        return groups_until_near(self.rows.signatures, self.offsets, self.centers)

    @cached_property
    def row_of(self) -> NDArray[np.int32] | NDArray[np.int64]:
        """Row of each id; -1 if there is none. Ids should be dense."""
        ids = self.rows.all_ids()
        kind = np.int32 if len(ids) < 2**31 else np.int64
        rows: NDArray[Any] = np.full(int(ids.max(initial=-1)) + 1, -1, kind)
        rows[ids] = np.arange(len(ids))
        return rows

    @cached_property
    def native(self) -> _native.Groups:
        """The groups for the core."""
        parts = self.offsets, self.centers, self.from_center, self.nearest, self.farthest
        return _native.Groups(self.rows.signatures, self.rows.all_ids(), *parts)

    @property
    def usual_probe(self) -> int:
        """Default number of groups to read: enough to find 99.9% of near-duplicates."""
        return max(least_probe(len(self)), self.near_probe)

    def probes_needed(
        self, queries: Signatures, places: NDArray[np.int64], threads: int
    ) -> NDArray[np.int64]:
        """Return the number of groups that each query reads until it reaches these rows."""
        distances = np.empty((len(queries), len(self)), np.int32)
        _native.scan_all(queries, self.centers, threads, distances)
        ranks = np.empty(distances.shape, np.int64)
        order = np.argsort(distances, axis=1, kind="stable")  # ties by number
        numbers = np.broadcast_to(np.arange(1, len(self) + 1), distances.shape)
        np.put_along_axis(ranks, order, numbers, axis=1)
        return np.take_along_axis(ranks, self.group_of(places), axis=1)

    def group_of(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the groups of the rows at these positions."""
        return np.searchsorted(self.offsets, places, side="right") - 1

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays to save, by name."""
        return {
            **self.rows.arrays(),
            "offsets": self.offsets,
            "centres": self.centers,
            "from_centre": self.from_center,
        }

    @classmethod
    def restored(cls, container: Container) -> Groups:
        """Return the groups that `arrays` saved, memory-mapped."""
        probe = container.meta.get("near_probe")
        groups = cls(
            Rows.restored(container, ascending=False),
            container.array("offsets", np.int64, 1),
            container.array("centres", np.uint8, 2),
            container.array("from_centre", np.int32, 1),
            None if probe is None else int(probe),
        )
        rows, offsets, far = groups.rows, groups.offsets, groups.from_center
        fits = (
            rows.ids is not None
            and len(offsets) == len(groups) + 1
            and groups.centers.shape[1] == rows.signatures.shape[1]
            and len(far) == len(rows)
            and int(offsets[0]) == 0
            and int(offsets[-1]) == len(rows)
            and bool((offsets[1:] > offsets[:-1]).all())
            and bool((groups.nearest >= 0).all())
            and bool((groups.farthest <= rows.bits).all())
            and (probe is None or 0 <= int(probe) <= len(groups))
        )
        if not fits:
            raise CorruptIndexError(
                f"{container.path} holds {len(rows)} signatures and groups that do not fit them; "
                "it is damaged"
            )
        return groups


_SAMPLED = 1 << 14
_AT_ONCE = 256
_TENTH = (1 << 16) // 10  # of what 16 bits can be
_FOUND = 0.9995  # more than the 99.9% that is promised, because a sample is not exact


def groups_until_near(
    signatures: Signatures, offsets: NDArray[np.int64], centers: Signatures
) -> int:
    """Return the number of groups to read to find nearly all near-duplicates.

    Measured: signatures are changed in up to a tenth of their bits and searched for. The same
    groups give the same number.
    """
    if len(centers) < 2:
        return len(centers)
    count = min(_SAMPLED, len(signatures))
    places = (random_words(3, count) % np.uint64(len(signatures))).astype(np.int64)
    own = np.searchsorted(offsets, places, side="right") - 1
    read = np.empty(count, np.int64)
    distances = np.empty((_AT_ONCE, len(centers)), np.int32)
    numbers = np.arange(len(centers))
    for begin in range(0, count, _AT_ONCE):
        asked = _changed(signatures[places[begin : begin + _AT_ONCE]], begin)
        far, mine = distances[: len(asked)], own[begin : begin + _AT_ONCE, None]
        _native.scan_all(asked, centers, 1, far)
        to_own = np.take_along_axis(far, mine, axis=1)
        before = (far < to_own) | ((far == to_own) & (numbers < mine))  # ties by number
        read[begin : begin + len(asked)] = before.sum(axis=1) + 1
    read.sort()
    return int(read[math.ceil(_FOUND * count) - 1])


def _changed(rows: Signatures, seed: int) -> Signatures:
    """Return signatures that are changed in a random share of their bits, up to a tenth."""
    bits = 8 * rows.shape[1]
    drawn = random_words(seed, len(rows) * (1 + bits // 4)).reshape(len(rows), -1)
    share = (drawn[:, :1] % np.uint64(_TENTH)).astype(np.uint16)
    flips = np.ascontiguousarray(drawn[:, 1:]).view(np.uint16) < share
    changed: Signatures = rows ^ np.packbits(flips, axis=1)
    return changed


def _split(
    rows: Signatures,
    centers: Signatures,
    labels: NDArray[np.int64],
    far: NDArray[np.int32],
    seed: int,
    threads: int,
) -> Signatures:
    """Split groups that are so large that most queries read them, and return all centers."""
    usual = max(1, len(rows) // len(centers))
    limit = max(_LARGE_ROWS, _LARGE * usual)
    parts, first, work = [centers], 0, 0
    for _ in range(_MOST_SPLITS):
        count = sum(map(len, parts))
        sizes = np.bincount(labels, minlength=count)
        large = first + np.flatnonzero(sizes[first:] > limit)
        first = count
        for group in large.tolist():
            members = np.flatnonzero(labels == group)
            work += len(members)
            if not far[members].any() or work > MOST_WORK * len(rows):  # the first: all are equal
                continue
            some = rows[members]
            new, own, distances = clustered(some, -(-len(some) // usual), seed, ROUNDS, threads)
            labels[members], far[members] = count + own, distances
            parts.append(new)
            count += len(new)
        if count == first:
            break
    return np.concatenate(parts)


_ADDED_SHARE = 64  # added rows are put into groups when they exceed this share


@dataclass(frozen=True, eq=False)
class State:
    """Groups, which of their rows were removed, and rows that are not in a group yet; immutable."""

    groups: Groups
    segments: Segments  # rows of the groups, then rows that were added since

    @classmethod
    def of(cls, groups: Groups) -> State:
        """Return the state of groups without changes."""
        return cls(groups, (Segment(groups.rows, 1),))  # without lists: the width does not matter

    @classmethod
    def around(cls, centers: Signatures, rows: Rows, seed: int, threads: int) -> State:
        """Return the rows in groups around these centers, or around new ones if there are none."""
        if not len(centers) or not len(rows):
            return cls.of(Groups.build(rows, group_count(len(rows)), seed, threads))
        found = nearest_centers(rows.signatures, centers, threads)
        return cls.of(Groups.arranged(rows, centers, *found, seed, threads))

    @property
    def alive(self) -> int:
        """Number of rows that were not removed."""
        return sum(segment.alive for segment in self.segments)

    def living(self) -> Rows:
        """Return copies of all rows, by ascending id."""
        parts = [segment.living() for segment in self.segments]
        ids = np.concatenate([part.all_ids() for part in parts])
        order = np.argsort(ids)
        return Rows(np.concatenate([part.signatures for part in parts])[order], ids[order])

    def with_rows(self, new: Rows, seed: int, threads: int) -> State:
        """Return the state with new rows; many new rows are assigned to groups."""
        changed = appended(self.segments, new, lambda rows: Segment(rows, 1))
        state = State(self.groups, tuple(changed))
        added = sum(map(len, changed[1:]))
        if added <= max(BUFFER, len(self.groups.rows) // _ADDED_SHARE):
            return state
        return state.regrouped(seed, threads)

    def without(self, ids: NDArray[np.int64]) -> State:
        """Return the state without these ids; raise if an id is missing."""
        return State(self.groups, without_ids(self.segments, ids))

    def without_room(self) -> State:
        """Return the state without spare room, for a copy of the index."""
        return State(self.groups, without_room(self.segments))

    def regrouped(self, seed: int, threads: int) -> State:
        """Return the state with all rows in groups, which are rebuilt if they are too few."""
        groups, first = self.groups, self.segments[0]
        if not self.alive or 2 * len(groups) < group_count(self.alive):
            return State.of(Groups.build(self.living(), group_count(self.alive), seed, threads))
        kept = np.arange(len(first))
        if first.removed is not None:
            kept = np.flatnonzero(first.removed == 0)
        labels = np.repeat(np.arange(len(groups)), np.diff(groups.offsets))[kept]
        rows, far = first.rows.take(kept), groups.from_center[kept]
        added = [segment.living() for segment in self.segments[1:]]
        signatures = np.concatenate([rows.signatures, *(part.signatures for part in added)])
        ids = np.concatenate([rows.all_ids(), *(part.all_ids() for part in added)])
        own, distances = nearest_centers(signatures[len(kept) :], groups.centers, threads)
        labels, far = np.concatenate([labels, own]), np.concatenate([far, distances])
        whole = Rows(signatures, ids, ascending=False)
        return State.of(Groups.arranged(whole, groups.centers, labels, far, seed, threads))

    def meta(self) -> dict[str, Any]:
        """Return the metadata to save."""
        return {
            "near_probe": self.groups.near_probe,
            "removals": self.segments[0].removals,
            "added": [segment.meta() for segment in self.segments[1:]],
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays to save, by name."""
        arrays = self.groups.arrays()
        removed = self.segments[0].removed
        if removed is not None:
            arrays["removed"] = removed
        for number, segment in enumerate(self.segments[1:]):
            arrays |= segment.arrays(f"{number}.")
        return arrays

    @classmethod
    def restored(cls, container: Container) -> State:
        """Return the state that `arrays` and `meta` saved; raise if it is damaged."""
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
