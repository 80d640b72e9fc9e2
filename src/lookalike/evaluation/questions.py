"""Queries whose true answers are known, and what it takes to ask an index for them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import seed_number, whole_number
from lookalike.errors import ArgumentError
from lookalike.indexes import Neighbors, ScanIndex
from lookalike.signatures import as_queries, as_signatures

__all__ = ["Answers", "Questions", "Search"]

Search = Callable[..., Neighbors]
"""Takes queries, k and `explain`, as the search of an index does."""

WIDE = 100
"""The truth has at least so many neighbours, for the draft's top 10 in the top 100."""


@dataclass(frozen=True, eq=False, slots=True)
class Answers:
    """What a search returned, and how long it took."""

    neighbors: Neighbors
    seconds: float
    """For one query, asked alone, on average."""
    batch_seconds: float
    """For one query, all asked at once."""


@dataclass(frozen=True, eq=False, slots=True)
class Questions:
    """Queries and the truth about their neighbours in a collection.

    Queries that were taken from the collection do not count as their own neighbours: one more is
    asked for, and the query itself left out. Otherwise each would have a neighbour at distance 0
    that no index misses, and everything would look better than it is.
    """

    queries: NDArray[np.uint8]
    members: NDArray[np.int64] | None
    """Where in the collection each query was taken from; None if it was not."""
    k: int
    threads: int
    truth: Neighbors
    """The true neighbours, the larger of k and 100 of them."""
    scan: Answers
    """What the exhaustive scan returned for k."""

    @classmethod
    def of(
        cls,
        signatures: ArrayLike,
        queries: ArrayLike | None = None,
        *,
        k: SupportsIndex,
        sample: SupportsIndex,
        seed: SupportsIndex,
        threads: int,
    ) -> Questions:
        """Find the true neighbours of the queries, or of `sample` signatures of the collection.

        Costs three exhaustive scans of all queries. The same seed takes the same sample.
        """
        collection = as_signatures(signatures)
        count, wanted = len(collection), whole_number("k", k, at_least=1)
        members = None
        if queries is not None:
            rows = as_queries(queries, 8 * collection.shape[1])
            if not len(rows):
                raise ArgumentError("there are no queries; expected at least one")
            if count == 0:
                raise ArgumentError("there are no signatures; expected at least one")
        else:
            size = whole_number("sample", sample, at_least=1)
            if count < 2:
                raise ArgumentError(
                    f"the collection has {count} signatures; expected at least 2, because a "
                    "sampled signature is looked for among the others"
                )
            rng = np.random.default_rng(seed_number(seed))
            members = np.sort(rng.choice(count, min(size, count), replace=False))
            rows = collection[members]
        index = ScanIndex(collection)

        def search(some: NDArray[np.uint8], number: int, *, explain: bool = False) -> Neighbors:
            return index.search(some, number, threads=threads)

        extra = 0 if members is None else 1
        truth = _without(search(rows, max(wanted, WIDE) + extra), members)
        return cls(rows, members, wanted, threads, truth, _ask(search, rows, wanted, members))

    def ask(self, search: Search) -> Answers:
        """Ask all queries at once, then each alone, and take the time."""
        return _ask(search, self.queries, self.k, self.members)


def _ask(
    search: Search, queries: NDArray[np.uint8], k: int, members: NDArray[np.int64] | None
) -> Answers:
    wanted = k if members is None else k + 1
    start = time.perf_counter()
    found = search(queries, wanted, explain=True)
    together = time.perf_counter() - start
    start = time.perf_counter()
    for query in queries:
        search(query, wanted, explain=False)
    alone = time.perf_counter() - start
    return Answers(_without(found, members), alone / len(queries), together / len(queries))


def _without(found: Neighbors, members: NDArray[np.int64] | None) -> Neighbors:
    """Return all but one column: without the query itself, or the last where it is not there."""
    if members is None:
        return found
    count, columns = found.ids.shape
    itself = found.ids == members[:, None]
    itself[~itself.any(axis=1), -1] = True
    ids = found.ids[~itself].reshape(count, columns - 1)
    distances = found.distances[~itself].reshape(count, columns - 1)
    scores = None if found.scores is None else found.scores[~itself].reshape(ids.shape)
    return Neighbors(ids, distances, found.exact, found.explanation, scores)
