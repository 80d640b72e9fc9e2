"""ClusterIndex: groups of signatures around majority centres.

A search compares a query with all centres, and then with the signatures of the nearest groups. It
is for far neighbours, which share no slice and no block with the query.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike import _native
from lookalike.checks import (
    flag,
    neighbor_count,
    seed_number,
    share,
    thread_count,
    whole_number,
)
from lookalike.errors import ArgumentError, CorruptIndexError, Said
from lookalike.indexes.among import Among, Chosen
from lookalike.indexes.base import DEFAULT_LIMIT, Index
from lookalike.indexes.clusters.groups import Groups, group_count
from lookalike.indexes.clusters.probing import SAMPLE, ProbeTuning, probes_needed, usual_probe
from lookalike.indexes.masks import no_masks
from lookalike.indexes.merging import padded
from lookalike.indexes.results import (
    NO_LIMIT,
    Explanation,
    Matches,
    Neighbors,
    as_int64,
    too_many_matches,
)
from lookalike.indexes.rows import Rows
from lookalike.indexes.scanning import scan_nearest, scan_within
from lookalike.indexes.slices.segments import Segment, chosen_of
from lookalike.signatures import as_queries
from lookalike.signatures.random import random_words

if TYPE_CHECKING:
    from lookalike.storage import Container

__all__ = ["ClusterIndex"]

_COPIED, _COPIED_SHARE = 4096, 64
"""Chosen rows that are compared one by one: so many, or this share of all; for more, groups."""


class ClusterIndex(Index):
    """Approximate nearest neighbours, best where these are far; exact neighbours within a radius.

    Signatures are put into groups around `clusters` centres (three times the root of their number
    unless told) by `la.cluster`, with the `seed`; groups that came out far larger than usual are
    split. The index has copies of the signatures in the order of their groups, 12 bytes beside
    each, and the centres. It is the same for any number of threads.
    """

    kind = "clusters"
    _tunings: tuple[ProbeTuning, ...] = ()

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
        self.seed = seed_number(seed)
        """What the centres were drawn with."""
        number = group_count(len(rows))
        if clusters is not None:
            number = whole_number("clusters", clusters, at_least=1, at_most=max(1, len(rows)))
        self._groups = Groups.build(rows, number, self.seed, thread_count(threads))
        self._own_ids, self._next_id = ids is not None, rows.next_id

    @property
    def bits(self) -> int:
        """How many bits each signature has."""
        return self._groups.rows.bits

    @property
    def clusters(self) -> int:
        """How many groups there are."""
        return len(self._groups)

    @property
    def centres(self) -> NDArray[np.uint8]:
        """The signatures that groups are around."""
        self._verify_rest()
        return self._groups.centres

    @property
    def own_ids(self) -> bool:
        """Whether ids are the caller's."""
        return self._own_ids

    @property
    def next_id(self) -> int:
        """One more than the largest id."""
        return self._next_id

    @property
    def tunings(self) -> tuple[ProbeTuning, ...]:
        """What was found out about groups and recall, the latest last."""
        return self._tunings

    def __len__(self) -> int:
        return len(self._groups.rows)

    def _living(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Return copies in the order of ids: where these are positions, in that of positions."""
        rows = self._groups.rows
        ids = rows.all_ids()
        order = np.argsort(ids)
        return rows.signatures[order], ids[order]

    def stats(self) -> dict[str, Any]:
        """Return what there is to know about the index, in plain values."""
        sizes = np.diff(self._groups.offsets)
        return {
            **super().stats(),
            "clusters": self.clusters,
            "largest_cluster": int(sizes.max(initial=0)),
            "probe": usual_probe(self.clusters),
            "seed": self.seed,
            "tunings": [asdict(tuning) for tuning in self._tunings],
        }

    def tune_probes(
        self,
        k: SupportsIndex = 10,
        recall: SupportsFloat = 0.95,
        queries: ArrayLike | None = None,
        *,
        sample: SupportsIndex = SAMPLE,
        threads: SupportsIndex | None = None,
    ) -> ProbeTuning:
        """Find out how many groups have to be read to find a share `recall` of the k nearest.

        `queries` are tried, or the first `sample` of them; without any, so many signatures of the
        index itself, each looking for others. All signatures are compared with each of them. From
        then on, and when the index was saved and loaded, `search` reads as many groups as were
        found when it is asked for the same recall, or less, of as many neighbours, or fewer. To
        leave the index as it is, tune a copy (`copy.copy`), and give `probe`.
        """
        wanted = whole_number("k", k, at_least=1)
        target, most = share("recall", recall), whole_number("sample", sample, at_least=1)
        workers = thread_count(threads)
        self._verify_rest()
        rows = self._groups.rows
        own = np.empty(0, np.int64)
        if queries is None:
            places = np.argsort(random_words(self.seed, len(rows)))[:most]
            asked, own = rows.signatures[places], rows.all_ids()[places]
        else:
            asked = as_queries(queries, self.bits)[:most]
        itself = int(queries is None)
        near = min(wanted + itself, len(self))
        if not len(asked) or near <= itself:
            raise ArgumentError("there is nothing to tune with; expected queries and signatures")
        found = scan_nearest(self._groups.segment, asked, near, workers).ids
        needed = probes_needed(self._groups, asked, found, workers)
        if itself:  # which is found in any case, and is the nearest but for equals
            needed = needed[found != own[:, None]]
        tuning = ProbeTuning.of(needed, wanted, target, len(asked))
        others = [each for each in self._tunings if (each.k, each.target) != (wanted, target)]
        self._tunings = (*others, tuning)
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
        among: Among | None = None,
        masks: None = None,
        threads: SupportsIndex | None = None,
    ) -> Neighbors:
        """Return k near signatures of each query, nearest first, ties by id. `masks` are refused.

        They are the nearest in the `probe` groups whose centres are nearest to the query, and in as
        many more as it takes to have k signatures. Unless told, that is every 16th group, and 16 at
        least; or as many as give the `recall` by `tune_probes`, which has to be called before.

        `exact` of the result is True if no other group can have a signature that is nearer, by the
        triangle inequality. With `exact=True` all groups are read of which that is not so.
        `explain=True` says what was read: groups are its `lists`, signatures in them its
        `postings`. `among`: only these ids are searched, or those whose place in a mask is True; of
        few, all are compared.

        Queries of a batch share the groups they read, and are answered the quicker the more there
        are of them.
        """
        no_masks(self, masks)
        rows = as_queries(queries, self.bits)
        wanted = neighbor_count(k, len(rows), len(self))
        number = self._probe(probe, recall, wanted)
        prove, tell = flag("exact", exact), flag("explain", explain)
        workers, part = thread_count(threads), self._among(among)
        if part.rows is not self._groups.rows or not part.alive:
            found = scan_nearest(part, rows, wanted, workers)
            told = Explanation.of_scan(len(rows), part.alive) if tell else None
            return Neighbors(found.ids, found.distances, True, told)
        width = min(wanted, part.alive)
        ids = np.full((len(rows), width), -1, np.int64)
        distances = np.full((len(rows), width), -1, np.int32)
        proven, work = np.zeros(len(rows), np.uint8), np.zeros((2, len(rows)), np.int64)
        self._groups.native().nearest(
            part.removed,
            rows,
            self.clusters if prove else min(number, self.clusters),
            workers,
            ids,
            distances,
            proven,
            work,
        )
        told = _explained(proven.astype(bool), work) if tell else None
        return Neighbors(padded(ids, wanted), padded(distances, wanted), bool(proven.all()), told)

    def within(
        self,
        queries: ArrayLike,
        radius: SupportsIndex,
        *,
        limit: SupportsIndex = DEFAULT_LIMIT,
        explain: bool = False,
        among: Among | None = None,
        masks: None = None,
        threads: SupportsIndex | None = None,
    ) -> Matches:
        """Return every signature at distance `radius` or less from each query; always exact.

        Groups, and signatures within them, are left out whose distances from the centre differ by
        more than the radius from the query's. `among` and `explain` as for `search`. More than
        `limit` matches in all raise `ResultTooLargeError`. `masks` are refused.
        """
        no_masks(self, masks)
        rows = as_queries(queries, self.bits)
        near = min(whole_number("radius", radius, at_least=0), self.bits)
        most = whole_number("limit", limit, at_least=0)
        tell = flag("explain", explain)
        workers, part = thread_count(threads), self._among(among)
        if part.rows is not self._groups.rows or not part.alive:
            found = scan_within(part, rows, near, most, workers, radius)
            told = Explanation.of_scan(len(rows), part.alive) if tell else None
            return Matches(found.offsets, found.ids, found.distances, True, told)
        work = np.zeros((2, len(rows)), np.int64)
        try:
            offsets, ids, distances = self._groups.native().within(
                part.removed, rows, near, min(most, NO_LIMIT), workers, work
            )
        except _native.TooManyResults:
            raise too_many_matches(most, radius, len(rows)) from None
        told = _explained(np.ones(len(rows), bool), work) if tell else None
        return Matches(as_int64(offsets), as_int64(ids), distances, True, told)

    # Within

    def _probe(self, probe: SupportsIndex | None, recall: SupportsFloat | None, k: int) -> int:
        """Return how many groups are read."""
        if probe is not None and recall is not None:
            raise ArgumentError(
                Said("probe"), " says how many groups are read, and ", Said("recall"), " how many "
                "neighbours are found; expected one of them"
            )  # fmt: skip
        if probe is not None:
            return whole_number("probe", probe, at_least=1)
        if recall is None:
            return usual_probe(self.clusters)
        target = share("recall", recall)
        enough = [each for each in self._tunings if each.k >= k and each.target >= target]
        if not enough:
            raise ArgumentError(
                Said("recall"),
                f" is {target:g}, and nobody has found out how many groups that takes for k={k}; "
                f"call tune_probes({k}, {target:g}) before, or say ",
                Said("probe"),
            )
        return min(each.probe for each in enough)

    def _among(self, among: Among | None) -> Segment:
        """Return what is to be searched: the rows, some of which are left out, or copies of few."""
        whole = self._groups.segment
        if among is None:
            return whole
        chosen = Chosen.of(among, self.next_id)
        (part,) = chosen_of([whole], chosen, max(_COPIED, len(self) // _COPIED_SHARE))
        return part

    # Saving

    def _meta(self) -> dict[str, Any]:
        return {
            **super()._meta(),
            "seed": self.seed,
            "own_ids": self._own_ids,
            "next_id": self._next_id,
            "tunings": [asdict(tuning) for tuning in self._tunings],
        }

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return self._groups.arrays()

    def _restore(self, container: Container) -> None:
        self._groups = Groups.restored(container)
        meta = container.meta
        try:
            self.seed, self._next_id = int(meta["seed"]), int(meta["next_id"])
            self._own_ids = bool(meta["own_ids"])
            self._tunings = tuple(ProbeTuning.restored(dict(each)) for each in meta["tunings"])
            if not 0 <= self.seed < 2**64 or not len(self) <= self._next_id <= 2**63:
                raise ValueError(f"the seed {self.seed}, or {self._next_id} as the next id")
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise CorruptIndexError(
                f"{container.path}: the description of the clusters cannot be used: {error!r}"
            ) from error


def _explained(proven: NDArray[np.bool_], work: NDArray[np.int64]) -> Explanation:
    return Explanation(proven, work[0], work[1], work[1], work[1])
