"""Clusters and survivors of pairs that people already have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import one_of, real_array, whole_number
from lookalike.dedup.settings import CLUSTERINGS, DedupSettings
from lookalike.dedup.survivors.choose import choose_survivors
from lookalike.dedup.survivors.cluster import cluster_documents
from lookalike.dedup.survivors.drop_groups import drop_groups, with_named
from lookalike.dedup.survivors.given_pairs import GivenPairs, listed, read_pairs
from lookalike.dedup.survivors.keep_function import GroupChoices
from lookalike.errors import ArgumentError
from lookalike.indexes.results import Result
from lookalike.shown import brief

__all__ = ["KEEP_RULES", "PairClusters", "cluster_pairs"]

KEEP_RULES = ("first", "last", "none", "max", "min")


@dataclass(frozen=True, eq=False, repr=False)
class PairClusters(Result):
    """Which documents belong together, and who of them stays; arrays have an element each."""

    ids: Sequence[Any]
    """What documents are called, in their order."""
    clusters: NDArray[np.int64]
    """The position of the first of each one's cluster; its own where it stands alone."""
    duplicate_of: NDArray[np.int64]
    """The position of the one that stands for it; -1 for those that stay."""
    warnings: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def keep(self) -> NDArray[np.bool_]:
        """Whether each stays."""
        return self.duplicate_of < 0

    def survivors(self) -> list[Any]:
        """Return the ids of those that stay."""
        return [self.ids[place] for place in np.flatnonzero(self.keep).tolist()]

    def groups(self) -> list[list[Any]]:
        """Return the ids of each cluster of two or more, by their first."""
        order = np.argsort(self.clusters, kind="stable")
        parts = np.split(order, np.flatnonzero(np.diff(self.clusters[order])) + 1)
        return [[self.ids[place] for place in part.tolist()] for part in parts if len(part) > 1]

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return `id`, `cluster` (the id of its first, None for one alone), `stays` and
        `duplicate_of` (an id, or None).
        """
        alone = np.bincount(self.clusters, minlength=len(self))[self.clusters] < 2
        return {
            "id": self._named(np.arange(len(self))),
            "cluster": self._named(np.where(alone, -1, self.clusters)),
            "stays": self.keep,
            "duplicate_of": self._named(self.duplicate_of),
        }

    def _named(self, places: NDArray[np.int64]) -> NDArray[Any]:
        named = np.empty(len(places), object)
        named[:] = [None if place < 0 else self.ids[place] for place in places.tolist()]
        return named

    def __repr__(self) -> str:
        return (
            f"PairClusters(documents={len(self)}, kept={int(self.keep.sum())}, "
            f"clusters={len(self.groups())})"
        )


def cluster_pairs(
    pairs: Any,
    *,
    ids: Iterable[Any] | None = None,
    cluster: str = "star",
    keep: str | Callable[[list[Any]], Any] = "first",
    values: Iterable[Any] | None = None,
    max_cluster: SupportsIndex = 1000,
) -> PairClusters:
    """Put documents together by pairs of alike ones, whoever found them, and choose who stays.

    `pairs`: `la.Pairs`, an array (n, 2), pairs of ids of any sort, a table or the path of a file
    with the columns `left` and `right`. Order and repetition do not matter. `ids` are all documents
    in their order; without it those that occur, numbers ascending, others as they appear.
    `cluster` and `max_cluster` are those of `la.dedup`. `keep`: "first", "last", "max" or "min" of
    `values` (numbers, one for each of `ids`), "none", or a function that is given the ids of a
    group and returns the one that stays.

    With "star" everyone that goes is a pair with the one that stands for it, and of those that stay
    no two are a pair. With "components" one stays of whatever pairs connect. With `keep="none"`
    everyone goes that is in a pair, and names one that goes, too.
    """
    one_of("cluster", cluster, CLUSTERINGS)
    most = whole_number("max_cluster", max_cluster, at_least=2)
    if not callable(keep):
        one_of("keep", keep, KEEP_RULES)
    if values is not None and ids is None:
        raise ArgumentError("values has a number for each of ids; give ids, too")
    if (values is not None) != (keep in ("max", "min")):
        raise ArgumentError('keep="max" and keep="min" go with values, and no other rule does')
    given = read_pairs(pairs, ids)
    count = len(given.ids)
    own = np.arange(count)
    settings = DedupSettings(cluster=cluster, max_cluster=most)
    rank = _rank(given, settings, keep, values)
    clusters = cluster_documents(count, own, given.pairs, settings, rank)
    if keep == "none":
        duplicate_of = drop_groups(own, 0, given.pairs)
        clusters = replace(clusters, labels=with_named(clusters.labels, duplicate_of))
    else:
        duplicate_of = choose_survivors(clusters.labels, own, rank, 0, given.pairs)
    return PairClusters(given.ids, clusters.labels, duplicate_of, clusters.warnings)


def _rank(
    given: GivenPairs,
    settings: DedupSettings,
    keep: str | Callable[[list[Any]], Any],
    values: Iterable[Any] | None,
) -> NDArray[np.int64]:
    """Return the place of each document in the order in which they are to survive."""
    own = np.arange(len(given.ids))
    if not isinstance(keep, str):

        def rows(places: NDArray[np.int64]) -> list[dict[str, Any]]:
            return [{"id": given.ids[place]} for place in places.tolist()]

        return GroupChoices(_by_place(keep), settings, own, 0, rows).ranks(given.pairs)
    if keep == "last":
        return own[::-1].copy()
    if values is None:
        return own
    numbers = real_array("values", listed("values", values))
    if numbers.shape != own.shape:
        raise ArgumentError(
            f"values has the shape {numbers.shape}; expected a number for each of {len(own):,} ids"
        )
    order = np.lexsort((own, -numbers if keep == "max" else numbers))
    rank = np.empty(len(own), np.int64)
    rank[order] = own
    return rank


def _by_place(keep: Callable[[list[Any]], Any]) -> Callable[[list[dict[str, Any]]], int]:
    """Return the place of the id that a function chooses."""

    def choose(rows: list[dict[str, Any]]) -> int:
        ids = [row["id"] for row in rows]
        answer = keep(list(ids))
        for place, id in enumerate(ids):
            if type(id) is type(answer) and id == answer:
                return place
        raise ArgumentError(
            f"keep returned {brief(answer)} for a group of {len(ids):,}; expected one of the ids "
            "that it was given"
        )

    return choose
