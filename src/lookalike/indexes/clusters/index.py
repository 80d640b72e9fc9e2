"""ClusterIndex: groups of signatures around majority centers.

A search compares a query with all centers, and then with the signatures of the nearest groups. It
finds distant neighbors, which share no slice or block with the query.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike import _native
from lookalike.checks import flag, neighbor_count, seed_number, share, thread_count, whole_number
from lookalike.errors import ArgumentError, Said
from lookalike.indexes.base import DEFAULT_LIMIT, GrowingIndex, Index, described
from lookalike.indexes.clusters.groups import Groups, State, group_count
from lookalike.indexes.filters import Among, no_masks
from lookalike.indexes.results import (
    NO_LIMIT,
    Explanation,
    Matches,
    Neighbors,
    as_int64,
    merged_matches,
    nearest_of_parts,
    too_many_matches,
)
from lookalike.indexes.rows import Rows, Signatures
from lookalike.indexes.segments import Segments, only_among, refuse_known, scan_nearest, scan_within
from lookalike.indexes.tuning import Option, SelfTuned, Tuning, least_enough, own_tuning, sufficient
from lookalike.shown import counted
from lookalike.signatures import as_queries
from lookalike.signatures.random import random_words
from lookalike.storage.container import Container

_SAMPLE = 1000  # signatures of the index that are searched for to tune it, by default


def nearest_in(
    state: State,
    parts: Segments,
    queries: Signatures,
    k: int,
    probe: int,
    threads: int,
    *,
    explain: bool,
) -> Neighbors:
    """Return the nearest rows in parts of the state."""
    asked = len(queries)
    # Only one of the parts has groups, and says whether there can be nearer rows in others.
    found, proven, work = [], np.ones(asked, np.uint8), np.zeros((2, asked), np.int64)
    for part in parts:
        if part.rows is not state.groups.rows or not part.alive:
            found.append(scan_nearest(part, queries, min(k, max(1, part.alive)), threads))
            work[1] += part.alive
            continue
        shape = asked, min(k, part.alive)
        ids, distances = np.full(shape, -1, np.int64), np.full(shape, -1, np.int32)
        state.groups.native.nearest(
            part.removed, queries, probe, threads, ids, distances, proven, work
        )
        found.append(Neighbors(ids, distances, False))
    known = proven.view(np.bool_)
    told = _explained(known, work) if explain else None
    return Neighbors(*nearest_of_parts(found, k), bool(known.all()), told)


def within_in(
    state: State, parts: Segments, queries: Signatures, radius: int, limit: int, threads: int
) -> Matches:
    """Return all rows within a radius in parts of the state, or raise `TooManyResults`."""
    work = np.zeros((2, len(queries)), np.int64)
    found = []
    for part in parts:
        if part.rows is not state.groups.rows or not part.alive:
            found.append(scan_within(part, queries, radius, limit, threads))
            work[1] += part.alive
            continue
        offsets, ids, distances = state.groups.native.within(
            part.removed, queries, radius, min(limit, NO_LIMIT), threads, work
        )
        found.append(Matches(as_int64(offsets), as_int64(ids), distances, True))
    whole = found[0]
    if len(found) > 1:
        if sum(len(one.ids) for one in found) > limit:
            raise _native.TooManyResults
        columns = ((one.query, one.ids, one.distances) for one in found)
        whole = merged_matches(len(queries), columns, exact=True)
    told = _explained(np.ones(len(queries), bool), work)
    return Matches(whole.offsets, whole.ids, whole.distances, True, told)


def _explained(proven: NDArray[np.bool_], work: NDArray[np.int64]) -> Explanation:
    """Return an explanation with groups as lists and rows as everything else."""
    return Explanation(proven, work[0], work[1], work[1], work[1])


class ClusterIndex(SelfTuned, GrowingIndex, Index):
    """Find approximate nearest neighbors that may be far, and exact neighbors within a radius.

    The index copies the signatures in the order of their groups, and takes 12 bytes more for each.
    It is the same for any number of threads.

    Args:
        signatures: Array `uint8[n, bits // 8]`; it is copied.
        clusters: Number of groups (default: four times the square root of the number of
            signatures). Groups that are much too large are split.
        ids: Ids of the signatures, distinct and at least 0 (default: their positions).
        seed: Random seed for the first centers (default: 0).
        threads: Number of threads (default: all cores).

    Examples:
        >>> signatures = np.random.default_rng(0).integers(0, 256, (1000, 32), np.uint8)
        >>> index = la.ClusterIndex(signatures)
        >>> index.search(signatures[7:8], k=1).ids.tolist()
        [[7]]
    """

    kind = "clusters"

    def __init__(
        self,
        signatures: ArrayLike,
        clusters: SupportsIndex | None = None,
        ids: ArrayLike | None = None,
        *,
        seed: SupportsIndex = 0,
        threads: SupportsIndex | None = None,
    ) -> None:
        rows = Rows.of(signatures, ids)
        self.seed = seed_number(seed)  # random seed of the centers
        number = group_count(len(rows))
        if clusters is not None:
            number = whole_number("clusters", clusters, at_least=1, at_most=max(1, len(rows)))
        self._state = State.of(Groups.build(rows, number, self.seed, thread_count(threads)))
        self._own_ids, self._next_id = ids is not None, rows.next_id
        self._writing = threading.Lock()

    def _without_room(self) -> None:
        self._state = self._state.without_room()

    @property
    def bits(self) -> int:
        """Number of bits of a signature."""
        return self._state.groups.rows.bits

    @property
    def clusters(self) -> int:
        """Number of groups."""
        return len(self._state.groups)

    @property
    def centers(self) -> Signatures:
        """Centers of the groups, `uint8[clusters, bits // 8]`."""
        self._verify_rest()
        return self._state.groups.centers

    def __len__(self) -> int:
        return self._state.alive

    def _signatures_of(self, ids: NDArray[np.int64]) -> tuple[Signatures, NDArray[np.bool_]]:
        """Return copies of the signatures with these ids, and which of the ids are there.

        For ids that are positions, or nearly so: a table of all ids is made.
        """
        first, *added = self._state.segments
        table = self._state.groups.row_of
        rows: Signatures = np.zeros((len(ids), self.bits // 8), np.uint8)
        there = np.zeros(len(ids), np.bool_)
        known = np.flatnonzero((ids >= 0) & (ids < len(table)))
        places = table[ids[known]]
        known, places = known[places >= 0], places[places >= 0]
        rows[known], there[known] = first.rows.signatures[places], True
        for segment in added:
            found = segment.find(ids)
            rows[found >= 0] = segment.rows.signatures[found[found >= 0]]
            there |= found >= 0
        return rows, there

    def _living(self) -> tuple[Signatures, NDArray[np.int64]]:
        """Return copies by ascending id."""
        rows = self._state.living()
        return rows.signatures, rows.all_ids()

    def summary(self) -> str:
        """Return a one-line description of the index."""
        return f"{super().summary()}, in {counted(self.clusters, 'group')}"

    def stats(self) -> dict[str, Any]:
        """Return facts about the index, fit for JSON."""
        state = self._state
        sizes = np.diff(state.groups.offsets)
        return {
            **super().stats(),
            "clusters": self.clusters,
            "largest_cluster": int(sizes.max(initial=0)),
            "probe": state.groups.usual_probe,
            "removed": sum(segment.removals for segment in state.segments),
            "added": sum(segment.alive for segment in state.segments[1:]),
            "seed": self.seed,
            "tunings": self._saved_tunings(),
        }

    def tune_probes(
        self,
        k: SupportsIndex = 10,
        recall: SupportsFloat = 0.95,
        queries: ArrayLike | None = None,
        *,
        sample: SupportsIndex = _SAMPLE,
        threads: SupportsIndex | None = None,
    ) -> Tuning[Option]:
        """Measure the number of groups to read to reach a recall, and save it with the index.

        `search` uses it for `recall` up to this recall and `k` up to this k. To leave the index
        unchanged, tune a copy (`copy.copy`) and pass `probe`.

        Args:
            k: Number of neighbors (default: 10).
            recall: Share of the k nearest to find (default: 0.95).
            queries: Signatures to search for (default: signatures of the index, each among the
                others).
            sample: Maximum number of queries (default: 1000).
            threads: Number of threads (default: all cores).
        """
        wanted = whole_number("k", k, at_least=1)
        target, most = share("recall", recall), whole_number("sample", sample, at_least=1)
        workers = thread_count(threads)
        self._verify_rest()
        groups, segment = self._state.groups, self._state.segments[0]
        rows = groups.rows
        own = np.empty(0, np.int64)
        if queries is None:
            places = np.argsort(random_words(self.seed, len(rows)))
            if segment.removed is not None:
                places = places[segment.removed[places] == 0]
            places = places[:most]
            asked, own = rows.signatures[places], rows.all_ids()[places]
        else:
            asked = as_queries(queries, self.bits, signer=self.signer)[:most]
        itself = int(queries is None)
        near = min(wanted + itself, segment.alive)
        if not len(asked) or near <= itself:
            raise ArgumentError("there is nothing to tune with; expected queries and signatures")
        found = scan_nearest(segment, asked, near, workers).ids
        at = segment.find(found.ravel()).reshape(found.shape)
        needed = groups.probes_needed(asked, at, workers)
        if itself:  # which is found in any case, and is the nearest but for equals
            needed = needed[found != own[:, None]]
        probe, reached = least_enough(needed, target, len(asked), none=1)
        if target == 1:  # no sample proves that fewer groups find all
            probe, reached = len(groups), 1.0
        question = {"target": target, "k": wanted, "queries": len(asked)}
        tuning = own_tuning(self.kind, {"probe": probe}, reached, **question)
        self._keep(tuning)
        return tuning

    def search(
        self,
        queries: ArrayLike,
        k: SupportsIndex,
        *,
        probe: SupportsIndex | None = None,
        recall: SupportsFloat | None = None,
        exact: bool = False,
        explain: bool = False,
        among: Among = None,
        masks: None = None,
        threads: SupportsIndex | None = None,
    ) -> Neighbors:
        """Return k near signatures of each query, nearest first, ties by id.

        Large batches are faster per query.

        Args:
            queries: Signatures, `uint8[n, bits // 8]`, or a single signature.
            k: Number of neighbors.
            probe: Number of groups to read, nearest centers first (default: every 12th group, at
                least 16, and enough to find 99.9% of near-duplicates).
            recall: Read as many groups as `tune_probes` measured for this recall.
            exact: Read all groups that can contain a nearer signature.
            explain: Return what was read as `explanation`: groups are `lists`, signatures
                `postings`.
            among: Ids to search, or a mask `bool[next_id]` (default: all ids).
            masks: Not supported; raises if given.
            threads: Number of threads (default: all cores).

        Returns:
            The neighbors. `exact` is True if no other group can contain a nearer signature, by the
            triangle inequality.
        """
        no_masks(self, masks)
        rows = as_queries(queries, self.bits, signer=self.signer)
        wanted = neighbor_count(k, len(rows), len(self))
        prove, tell = flag("exact", exact), flag("explain", explain)
        workers, state = thread_count(threads), self._state
        number = self._groups_to_read(probe, recall, wanted, state.groups)
        read = len(state.groups) if prove else min(number, len(state.groups))
        parts = only_among(state.segments, among, self)
        return nearest_in(state, parts, rows, wanted, read, workers, explain=tell)

    def _groups_to_read(
        self, probe: SupportsIndex | None, recall: SupportsFloat | None, k: int, groups: Groups
    ) -> int:
        """Return the number of groups to read: as given, as tuned, or the default."""
        if probe is not None and recall is not None:
            raise ArgumentError(
                Said("probe"), " and ", Said("recall"), " are both given; expected one of them"
            )
        if probe is not None:
            return whole_number("probe", probe, at_least=1)
        if recall is None:
            return groups.usual_probe
        target = share("recall", recall)
        if target == 1:
            return len(groups)  # no sample proves that fewer find all
        enough = sufficient(self._tunings, k, target)
        if not enough:
            raise ArgumentError(
                Said("recall"),
                f" is {target:g}, and the index was not tuned to it for k={k}. "
                f"Call tune_probes({k}, {target:g}) first, or pass ",
                Said("probe"),
            )
        return min(int(each.search_settings["probe"]) for each in enough)

    def within(
        self,
        queries: ArrayLike,
        radius: SupportsIndex,
        *,
        limit: SupportsIndex = DEFAULT_LIMIT,
        explain: bool = False,
        among: Among = None,
        masks: None = None,
        threads: SupportsIndex | None = None,
    ) -> Matches:
        """Return every signature within Hamming distance `radius` of each query; always exact.

        Skips groups and signatures that the triangle inequality excludes.

        Args:
            queries: Signatures, `uint8[n, bits // 8]`, or a single signature.
            radius: Largest Hamming distance.
            limit: Maximum number of matches of all queries together.
            explain: Return what was read as `explanation`.
            among: Ids to search, or a mask `bool[next_id]` (default: all ids).
            masks: Not supported; raises if given.
            threads: Number of threads (default: all cores).

        Raises:
            ResultTooLargeError: If there are more matches than `limit`.
        """
        no_masks(self, masks)
        rows = as_queries(queries, self.bits, signer=self.signer)
        near = min(whole_number("radius", radius, at_least=0), self.bits)
        most = whole_number("limit", limit, at_least=0)
        tell = flag("explain", explain)
        workers, state = thread_count(threads), self._state
        parts = only_among(state.segments, among, self)
        try:
            found = within_in(state, parts, rows, near, most, workers)
        except _native.TooManyResults:
            raise too_many_matches(most, radius, len(rows)) from None
        return found if tell else replace(found, explanation=None)

    @classmethod
    def merge(
        cls, indexes: Iterable[ClusterIndex], *, threads: SupportsIndex | None = None
    ) -> ClusterIndex:
        """Merge indexes into one, around the centers of the largest.

        Ids that are positions are renumbered: those of an index follow the ids of the one before.
        Other ids must be distinct.
        """
        merged, parts, starts = cls._merging(indexes)
        if len({part.bits for part in parts}) > 1:
            raise ArgumentError(f"bits are {[part.bits for part in parts]}; expected the same")
        living = [part.living() for part in parts]
        ids = [own + start for (_, own), start in zip(living, starts, strict=True)]
        rows = Rows.of(np.concatenate([rows for rows, _ in living]), np.concatenate(ids))
        largest = max(parts, key=len)
        merged.seed = largest.seed
        centers, workers = largest._state.groups.centers, thread_count(threads)
        merged._state = State.around(centers, rows, merged.seed, workers)
        return merged

    def add(
        self,
        signatures: ArrayLike,
        ids: ArrayLike | None = None,
        *,
        threads: SupportsIndex | None = None,
    ) -> NDArray[np.int64]:
        """Add signatures and return their ids: the given ids, or the next free numbers.

        New signatures are scanned until they are more than 2048 and more than a 64th of all. Then
        they are assigned to groups.
        """
        new = Rows.of(as_queries(signatures, self.bits, "the new signatures"), ids)
        workers = thread_count(threads)
        self._verify_rest()
        with self._writing:
            names = self._ids_for(new.ids, len(new))
            if len(new):
                rows = Rows(new.signatures, names, new.ascending)
                self._state = self._state.with_rows(rows, self.seed, workers)
        return names

    def _refuse_known(self, ids: NDArray[np.int64]) -> None:
        refuse_known(self._state.segments, ids)

    def _remove(self, ids: NDArray[np.int64]) -> None:
        self._state = self._state.without(ids)

    def compact(self, *, threads: SupportsIndex | None = None) -> None:
        """Assign all signatures to groups, and free the space of removed ones."""
        workers = thread_count(threads)
        self._verify_rest()
        with self._writing:
            self._state = self._state.regrouped(self.seed, workers)

    def _meta(self) -> dict[str, Any]:
        return {
            **super()._meta(),
            "seed": self.seed,
            "own_ids": self._own_ids,
            "next_id": self._next_id,
            "tunings": self._saved_tunings(),
            **self._state.meta(),
        }

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return self._state.arrays()

    def _restore(self, container: Container) -> None:
        self._writing = threading.Lock()
        meta = container.meta
        with described(container, "clusters"):
            self._state = State.restored(container)
            self.seed, self._next_id = int(meta["seed"]), int(meta["next_id"])
            self._own_ids = bool(meta["own_ids"])
            self._restore_tunings(meta["tunings"], "probe")
            if not 0 <= self.seed < 2**64 or not len(self) <= self._next_id <= 2**63:
                raise ValueError(f"the seed {self.seed}, or {self._next_id} as the next id")
