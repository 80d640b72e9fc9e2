"""Results of searches, and how results of several parts are merged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike.display import Column, TableColumns, Tabular, record
from lookalike.errors import ResultTooLargeError, Said

NO_LIMIT = 2**63 - 1  # largest limit that the core accepts


def as_int64(array: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return NumPy's int64; the core returns C's `long long`, which prints differently."""
    return array.view(np.int64)


def too_many_matches(limit: int, radius: SupportsIndex, queries: int) -> ResultTooLargeError:
    """Return the error for more matches than the caller's limit."""
    return ResultTooLargeError(
        "more than ",
        Said(f"limit={limit}", f"{limit:,}"),
        f" matches within radius {radius} of {queries} queries. Use a smaller radius or fewer "
        "queries at once",
        Said(", or raise the limit", ""),
    )


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Explanation(Tabular):
    """What a search did: arrays with one number per query, unless stated otherwise."""

    exact: NDArray[np.bool_]
    """Whether the result of this query is proven exact."""
    lists: NDArray[np.int64]
    """Number of slice lists read."""
    postings: NDArray[np.int64]
    """Number of entries in these lists."""
    candidates: NDArray[np.int64]
    """Number of signatures that got a score, or were compared."""
    reranked: NDArray[np.int64]
    """Number of distances computed."""
    expanded: NDArray[np.int64] | None = None
    """Largest number of bits in which the lists that were read differ from the query."""
    optimistic: NDArray[np.int32] | None = None
    """int32[queries, k]: smallest distance that the score of each result allows."""
    pessimistic: NDArray[np.int32] | None = None
    """int32[queries, k]: largest distance that the score of each result allows."""

    @classmethod
    def of_scan(cls, queries: int, compared: int) -> Explanation:
        """Return the explanation of a scan over `compared` signatures."""
        none, every = np.zeros(queries, np.int64), np.full(queries, compared, np.int64)
        return cls(np.ones(queries, bool), none, none, every, every)

    def _columns(self, begin: int, end: int) -> TableColumns:
        columns: dict[str, NDArray[Any] | Column] = {"query": np.arange(begin, end)}
        for name, array in record(self).items():
            part = array[begin:end]
            columns[name] = part if part.ndim == 1 else Column(part.tolist(), list[int])
        return columns

    def _row_count(self) -> int:
        return len(self.exact)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Neighbors(Tabular):
    """The k nearest neighbors of each query, nearest first, ties by id.

    If a query has fewer than k neighbors, the rest of its row is -1. `result[i]` returns ids and
    distances of query i without this padding. A search by score alone (`rerank=0`) sorts by (score,
    id) and has distances of -1.

    Examples:
        >>> index = la.ScanIndex(np.array([[0], [1], [7]], np.uint8))
        >>> index.search(np.array([[3]], np.uint8), k=2)
        Neighbors(queries=1, k=2, exact=True)
        >>> ids, distances = index.search(np.array([[3]], np.uint8), k=2)[0]
        >>> ids.tolist(), distances.tolist()
        ([1, 2], [1, 1])
    """

    ids: NDArray[np.int64]
    """int64[queries, k]"""
    distances: NDArray[np.int32]
    """int32[queries, k]"""
    exact: bool
    """Whether these are guaranteed to be the nearest."""
    explanation: Explanation | None = None
    """What the search did, if `explain=True`."""
    scores: NDArray[np.int32] | None = None
    """int32[queries, k]: number of bits that agree in the slices that were read, or -1. None for
    indexes without slices.
    """
    unmasked: NDArray[np.int32] | None = None
    """int32[queries, k]: distances over all bits, if the queries had masks. They break ties."""
    missing: Mapping[int, str] = field(default_factory=dict)
    """Shards without an answer, by position, and why: see `ShardedIndex(allow_missing=True)`."""

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, query: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        found = self.ids[query] >= 0
        return self.ids[query][found], self.distances[query][found]

    def __iter__(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int32]]]:
        return (self[query] for query in range(len(self)))

    def _values(self) -> dict[str, object]:
        shown = {"queries": len(self), "k": self.ids.shape[1], "exact": self.exact}
        return shown | _without(self.missing)

    def _columns(self, begin: int, end: int) -> TableColumns:
        query, rank = (axis[begin:end] for axis in np.nonzero(self.ids >= 0))
        arrays: dict[str, NDArray[Any] | None] = {
            "id": self.ids,
            "distance": self.distances,
            "unmasked": self.unmasked,
            "score": self.scores,
        }
        known = {name: each[query, rank] for name, each in arrays.items() if each is not None}
        return {"query": query, **known}

    def _row_count(self) -> int:
        return int(np.count_nonzero(self.ids >= 0))


class MatchesByQuery(Tabular):
    """Matches of several queries, one after the other: a row for each match."""

    __slots__ = ()
    offsets: NDArray[np.int64]
    exact: bool

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def query(self) -> NDArray[np.int64]:
        """int64[matches]: position of the query of each match."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    def _values(self) -> dict[str, object]:
        return {"queries": len(self), "matches": self._row_count(), "exact": self.exact}

    def _row_count(self) -> int:
        return int(self.offsets[-1])


def _without(missing: Mapping[int, str]) -> dict[str, object]:
    """Return what a result shows of missing shards: their positions, if there are any."""
    return {"missing": sorted(missing)} if missing else {}


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Matches(MatchesByQuery):
    """All matches within a radius of each query, sorted by (distance, id).

    The matches of query i are at `offsets[i]` to `offsets[i + 1]`; `result[i]` returns their ids
    and distances.

    Examples:
        >>> index = la.ScanIndex(np.array([[0], [1], [7]], np.uint8))
        >>> index.within(np.array([[0], [7]], np.uint8), radius=1).to_numpy()["id"].tolist()
        [0, 1, 2]
    """

    offsets: NDArray[np.int64]
    """int64[queries + 1]"""
    ids: NDArray[np.int64]
    distances: NDArray[np.int32]
    exact: bool
    """Whether no match within the radius is missing."""
    explanation: Explanation | None = None
    """What the search did, if `explain=True`."""
    unmasked: NDArray[np.int32] | None = None
    """Distances over all bits, if the queries had masks. They break ties."""
    missing: Mapping[int, str] = field(default_factory=dict)
    """Shards without an answer, by position, and why: see `ShardedIndex(allow_missing=True)`."""

    def __getitem__(self, query: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        query = range(len(self))[query]
        part = slice(self.offsets[query], self.offsets[query + 1])
        return self.ids[part], self.distances[part]

    def _values(self) -> dict[str, object]:
        return super(Matches, self)._values() | _without(self.missing)

    def __iter__(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int32]]]:
        return (self[query] for query in range(len(self)))

    def _columns(self, begin: int, end: int) -> TableColumns:
        columns: dict[str, NDArray[Any]] = {
            "query": self.query,
            "id": self.ids,
            "distance": self.distances,
        }
        if self.unmasked is not None:
            columns["unmasked"] = self.unmasked
        return {name: column[begin:end] for name, column in columns.items()}


class PairRows(Tabular):
    """Pairs of one collection: a row for each pair."""

    __slots__ = ()
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    exact: bool

    def __len__(self) -> int:
        return len(self.left)

    def _values(self) -> dict[str, object]:
        return {"pairs": len(self), "exact": self.exact}

    def _sides(self, begin: int, end: int) -> dict[str, NDArray[np.int64]]:
        """Return the columns of the two ids."""
        return {"left": self.left[begin:end], "right": self.right[begin:end]}

    def _row_count(self) -> int:
        return len(self)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Pairs(PairRows):
    """Pairs of a collection within a radius, each once with left < right, sorted.

    Examples:
        >>> pairs = la.ScanIndex(np.array([[0], [1], [7]], np.uint8)).pairs(radius=1)
        >>> pairs.left.tolist(), pairs.right.tolist(), pairs.distances.tolist()
        ([0], [1], [1])
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    distances: NDArray[np.int32]
    exact: bool
    """Whether no pair within the radius is missing."""

    def _columns(self, begin: int, end: int) -> TableColumns:
        return {**self._sides(begin, end), "distance": self.distances[begin:end]}


MatchColumns = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]
"""The query, id and distance of every match."""


def merged_matches(queries: int, parts: Iterable[MatchColumns], *, exact: bool) -> Matches:
    """Return all matches of `queries` queries, sorted by (query, distance, id)."""
    none = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int32)
    query, ids, distances = (np.concatenate(columns) for columns in zip(none, *parts, strict=True))
    order = np.lexsort((ids, distances, query))
    return Matches(offsets_of(query, queries), ids[order], distances[order], exact)


def offsets_of(query: NDArray[np.int64], queries: int) -> NDArray[np.int64]:
    """Return the offsets of the matches of each query."""
    offsets = np.zeros(queries + 1, np.int64)
    np.cumsum(np.bincount(query, minlength=queries), out=offsets[1:])
    return offsets


def nearest_of(
    ids: NDArray[Any], distances: NDArray[Any], k: int, *others: NDArray[Any]
) -> tuple[NDArray[Any], ...]:
    """Return the k nearest of each row, by (distance, id), and the same columns of other arrays."""
    last = np.iinfo(np.int32).max
    order = np.lexsort((ids, np.where(ids >= 0, distances, last)), axis=1)[:, :k]
    return taken(order, k, ids, distances, *others)


def nearest_of_parts(
    parts: Sequence[Neighbors], k: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return ids and distances of the k nearest of all parts."""
    if len(parts) == 1:
        return padded(parts[0].ids, k), padded(parts[0].distances, k)
    ids = np.concatenate([part.ids for part in parts], axis=1)
    found, far = nearest_of(ids, np.concatenate([part.distances for part in parts], axis=1), k)
    return found, far


def best_of(
    ids: NDArray[Any], scores: NDArray[Any], k: int, *others: NDArray[Any]
) -> tuple[NDArray[Any], ...]:
    """Return the k best of each row, by (score, id), and the same columns of other arrays."""
    order = np.lexsort((ids, -scores), axis=1)[:, :k]  # what is not there has a score of -1
    return taken(order, k, ids, scores, *others)


def taken(order: NDArray[Any], k: int, *arrays: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Return these columns of each row of the arrays, padded to k columns."""
    return tuple(padded(np.take_along_axis(array, order, axis=1), k) for array in arrays)


def padded(array: NDArray[Any], k: int) -> NDArray[Any]:
    """Return the array with k columns, padded with -1."""
    if array.shape[1] == k:
        return array
    return np.pad(array, ((0, 0), (0, k - array.shape[1])), constant_values=-1)
