"""Measuring the recall of an index that is not exact, before it is recommended.

The index is built over the signatures that were given and searched for some of them. If they are
fewer than the collection has, the trial is the collection thinned out: a search that compares the
best 1000 of a million compares the best 100 of a tenth of them, and of the ten nearest, one is
there on average.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lookalike.indexes.base import Index
from lookalike.indexes.clusters.groups import group_count
from lookalike.indexes.results import Neighbors
from lookalike.indexes.scan import ScanIndex
from lookalike.indexes.slices.search import usual_rerank
from lookalike.indexes.tables.prefixes import examined
from lookalike.planning.building import build_option
from lookalike.planning.question import Option, Question

__all__ = ["Trial", "Tried", "sampling_error"]

QUERIES = 512
_QUERY_SHARE = 8
"""Of signatures that are some of the collection, at most one in this many is a query."""
_ROWS = 1 << 17
"""The least number of signatures that an index is tried with, if that many were given."""
_THINNED = 64
"""A trial has at least one in this many of the collection: with fewer, too few are compared to tell
whether a neighbor is among them."""
_GROUP_ROWS = 52
"""Signatures of a group in a trial: with fewer, large groups are not split as they will be."""


class Tried(NamedTuple):
    """What a trial showed."""

    recall: float
    """The share of the nearest that was found."""
    error: float
    """By how much the recall of other queries may differ, 19 times out of 20."""
    compared: float
    """The share of the signatures that a query was compared with."""


def sampling_error(values: NDArray[np.float64]) -> float:
    """Return two standard errors of a mean, and what a query more or less would change."""
    return 2 * float(values.std()) / math.sqrt(len(values)) + 1 / (1 + len(values))


def _shares(found: NDArray[np.int64], true: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the share of the true ids of each query that was found; -1 stands for none."""
    first = (1 + int(max(found.max(initial=0), true.max(initial=0)))) * np.arange(len(true))
    there = true >= 0
    every = np.where(found >= 0, found + first[:, None], -1)
    hits = np.isin(true + first[:, None], every) & there
    wanted = there.sum(axis=1)
    return np.where(wanted, hits.sum(axis=1) / np.maximum(wanted, 1), 1.0)


class Trial:
    """Queries, signatures, and which of these are nearest to each query.

    With all signatures of a collection, the index is the one that will be built: a query is one of
    its signatures and is not its own neighbor. Otherwise queries are held out.
    """

    def __init__(
        self,
        signatures: NDArray[np.uint8],
        queries: NDArray[np.uint8] | None,
        question: Question,
        seed: int,
    ) -> None:
        generator = np.random.default_rng(seed)
        order = generator.permutation(len(signatures))
        most = max(_ROWS, -(-question.count // _THINNED), self.group_rows(question.count))
        whole = len(signatures) == question.count <= most
        self._own: NDArray[np.int64] | None = None
        self._held = 0
        if queries is not None:
            asked = queries[generator.permutation(len(queries))[:QUERIES]]
        elif whole:
            # The index that is tried is the one that will be built.
            self._own = order[:QUERIES]
            asked = signatures[self._own]
        else:
            self._held = max(1, min(QUERIES, len(signatures) // _QUERY_SHARE))
            asked, order = signatures[order[: self._held]], order[self._held :]
        self.queries = np.ascontiguousarray(asked)
        self._places = np.sort(order[:most])
        self._signatures, self._question = signatures, question
        self.share = len(self._places) / question.count
        """Which part of the collection there is."""
        self.k = max(1, math.ceil(self.share * (question.k or 1)))
        self._built: tuple[tuple[Any, ...], Index] | None = None

    @staticmethod
    def group_rows(count: int) -> int:
        """Return how many signatures it takes to try groups of this size."""
        return _GROUP_ROWS * group_count(count)

    def __len__(self) -> int:
        return len(self._places)

    def lacks(self, index: str) -> int | None:
        """Return how many signatures it takes to try an index, if that is more than there are."""
        count = self._question.count
        needed = -(-count // _THINNED)
        if index == "clusters":
            needed = max(needed, min(self.group_rows(count), 3 * count // 4))
        return needed + self._held if len(self) < min(needed, count - self._held) else None

    def tried(self, option: Option) -> Tried:
        """Build an option, unless the last one was the same, and search it."""
        key = option.index, *option.parameters.values()
        if self._built is None or self._built[0] != key:
            self._built = None  # makes room for the next
            self._built = key, build_option(option, self._rows)
        found = self._nearest(self._built[1], explain=True, **self._settings(option))
        shares = _shares(self._others(found.ids), self._truth)
        work = found.explanation
        compared = 1.0 if work is None else float(work.candidates.mean()) / max(1, len(self))
        return Tried(float(shares.mean()), sampling_error(shares), compared)

    def groups(self, option: Option) -> int:
        """Return how many groups an option of clusters has, large ones split."""
        self.tried(option)
        if self._built is None:
            return option.parameters["clusters"]
        return int(self._built[1].stats()["clusters"])

    def _settings(self, option: Option) -> dict[str, Any]:
        """Return what to search with, for as few signatures as there are."""
        settings: dict[str, Any] = dict(option.settings)
        k = self._question.k or 1
        if option.index == "slices":
            settings["rerank"] = self._thinned(usual_rerank(k), k)
        if option.index == "prefix":
            settings["examine"] = self._thinned(examined(k), k)
        return settings

    def _thinned(self, compared: int, k: int) -> int:
        """Return how many are compared here: neighbors, and of others the same share."""
        itself = int(self._own is not None)
        return self.k + itself + int(self.share * (compared - k))

    def _nearest(self, index: Index, **settings: Any) -> Neighbors:
        """Search for the queries, and for one neighbor more if each is its own."""
        return index.search(self.queries, self.k + int(self._own is not None), **settings)

    def _others(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return all columns but one: without the query itself, or the last."""
        if self._own is None:
            return ids
        itself = ids == self._own[:, None]
        itself[~itself.any(axis=1), -1] = True
        others: NDArray[np.int64] = ids[~itself].reshape(len(ids), -1)
        return others

    @cached_property
    def _rows(self) -> NDArray[np.uint8]:
        return np.ascontiguousarray(self._signatures[self._places])

    @cached_property
    def _truth(self) -> NDArray[np.int64]:
        return self._others(self._nearest(ScanIndex(self._rows)).ids)
