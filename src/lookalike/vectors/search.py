"""Vector search: results, storage, and comparison of candidates."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.display import TableColumns, Tabular
from lookalike.errors import CorruptIndexError, ResultTooLargeError, Said
from lookalike.indexes import ClusterIndex
from lookalike.indexes.filters import Chosen
from lookalike.indexes.results import (
    NO_LIMIT,
    Explanation,
    MatchesByQuery,
    PairRows,
    as_int64,
)
from lookalike.indexes.rows import find_ids
from lookalike.signatures import Projection
from lookalike.vectors.given import in_single_precision
from lookalike.vectors.sketches import MOST_DIMENSIONS, Sketches, planned_groups

if TYPE_CHECKING:
    from lookalike.vectors.tuning import Effort


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class VectorNeighbors(Tabular):
    """The k most similar vectors of each query, most similar first, ties by id.

    If a query has fewer than k neighbors, the rest of its row is -1 in `ids` and NaN in
    `similarities`. `result[i]` returns ids and cosines of query i without this padding.
    """

    ids: NDArray[np.int64]
    """int64[queries, k]"""
    similarities: NDArray[np.float64]
    """float64[queries, k]: cosines of the stored vectors."""
    exact: bool
    """Whether each query was compared with all vectors."""
    explanation: Explanation | None = None
    """What the search did, if `explain=True`: groups are `lists`, signatures `postings`, cosines
    `reranked`.
    """

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, query: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        found = self.ids[query] >= 0
        return self.ids[query][found], self.similarities[query][found]

    def __iter__(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        return (self[query] for query in range(len(self)))

    def _values(self) -> dict[str, object]:
        return {"queries": len(self), "k": self.ids.shape[1], "exact": self.exact}

    def _columns(self, begin: int, end: int) -> TableColumns:
        query, rank = (axis[begin:end] for axis in np.nonzero(self.ids >= 0))
        found = query, rank
        return {"query": query, "id": self.ids[found], "similarity": self.similarities[found]}

    def _row_count(self) -> int:
        return int(np.count_nonzero(self.ids >= 0))


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class VectorMatches(MatchesByQuery):
    """All vectors of at least a similarity with each query, most similar first, ties by id.

    The matches of query i are at `offsets[i]` to `offsets[i + 1]`; `result[i]` returns their ids
    and cosines.
    """

    offsets: NDArray[np.int64]
    """int64[queries + 1]"""
    ids: NDArray[np.int64]
    similarities: NDArray[np.float64]
    exact: bool
    """Whether no match is missing."""

    def __getitem__(self, query: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        query = range(len(self))[query]
        part = slice(self.offsets[query], self.offsets[query + 1])
        return self.ids[part], self.similarities[part]

    def __iter__(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        return (self[query] for query in range(len(self)))

    def _columns(self, begin: int, end: int) -> TableColumns:
        rows = slice(begin, end)
        return {
            "query": self.query[rows],
            "id": self.ids[rows],
            "similarity": self.similarities[rows],
        }


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class VectorPairs(PairRows):
    """Pairs of vectors of at least a similarity, each once with left < right, sorted."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    similarities: NDArray[np.float64]
    exact: bool
    """Whether no pair is missing."""

    def _columns(self, begin: int, end: int) -> TableColumns:
        return {**self._sides(begin, end), "similarity": self.similarities[begin:end]}


_LEAST_ROOM = 256


@dataclass(frozen=True, eq=False)
class Store:
    """Vectors in two arrays: as given, possibly memory-mapped, and added later."""

    first: NDArray[Any]
    added: NDArray[Any]  # start of `room`, if there is any
    ids: NDArray[np.int64] | None = None  # id of each position, or None if ids are positions
    removed: NDArray[np.uint8] | None = None
    """A byte per position: 1 if it was removed; None if none was."""
    room: NDArray[Any] | None = None
    """Larger array with space for more rows; only its owner writes to it."""

    def __len__(self) -> int:
        return len(self.first) + len(self.added)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the vectors: float32 or float16."""
        return self.first.dtype

    @property
    def shape(self) -> tuple[int, int]:
        """Number of positions and of dimensions."""
        return len(self), self.first.shape[1]

    @cached_property
    def alive(self) -> int:
        """Number of positions that were not removed."""
        return len(self) - (0 if self.removed is None else int(self.removed.sum()))

    @cached_property
    def native(self) -> _native.Vectors:
        """The vectors for the core."""
        if self.dtype == np.float16:
            return _native.Vectors(self.first.view(np.uint16), self.added.view(np.uint16), self.ids)
        return _native.Vectors(self.first, self.added, self.ids)

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """Positions that were not removed."""
        if self.removed is None:
            return np.arange(len(self))
        return np.flatnonzero(self.removed == 0)

    def ids_of(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the ids of positions."""
        return places if self.ids is None else self.ids[places]

    def rows(self, places: NDArray[np.int64]) -> NDArray[Any]:
        """Return copies of the vectors at positions."""
        rows: NDArray[Any] = np.empty((len(places), self.first.shape[1]), self.dtype)
        early = places < len(self.first)
        rows[early] = self.first[places[early]]
        rows[~early] = self.added[places[~early] - len(self.first)]
        return rows

    def all_rows(self) -> NDArray[Any]:
        """Return all vectors by position, including removed ones."""
        return np.concatenate([self.first, self.added]) if len(self.added) else self.first

    @cached_property
    def _order(self) -> NDArray[np.int64] | None:
        """Positions by ascending id."""
        return None if self.ids is None else np.argsort(self.ids, kind="stable")

    def find(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the position of each id, or -1 if it is missing or removed."""
        return find_ids(ids, self.ids, len(self), self._order, self.removed)

    def chosen(self, chosen: Chosen) -> NDArray[np.int64]:
        """Return the positions of the chosen ids that were not removed, ascending."""
        found = self.find(chosen.listed())
        return np.sort(found[found >= 0])

    def skipped(self, places: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return a byte per position: 0 for these, else 1."""
        skip = np.ones(len(self), np.uint8)
        skip[places] = 0
        return skip

    def with_rows(self, new: NDArray[Any], ids: NDArray[np.int64], start: int) -> Store:
        """Return the first `start` positions, followed by new rows with these ids."""
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
        """Return the store with these positions removed."""
        removed = np.zeros(len(self), np.uint8) if self.removed is None else self.removed.copy()
        removed[places] = 1
        return replace(self, removed=removed)

    def __deepcopy__(self, memo: dict[int, Any]) -> Store:
        """Return a store with its own arrays in memory."""
        own = None if self.ids is None else np.array(self.ids)
        removed = None if self.removed is None else np.array(self.removed)
        return Store(np.array(self.first), np.array(self.added), own, removed)

    def compacted(self) -> Store:
        """Return only the rows that were not removed, at new positions, with their ids."""
        places = self.places
        ids = self.ids_of(places)
        plain = np.array_equal(ids, np.arange(len(places)))
        return Store(self.rows(places), self.first[:0], None if plain else ids)


Queries = NDArray[np.float32]
_BLOCK = 4096  # queries whose candidates are held at a time
_LISTED, _LISTED_SHARE = 1 << 22, 8  # places listed for queries at a time, up to this share
_PAIRS = 1 << 18  # pairs whose vectors are copied at a time


_SKETCHING = threading.Lock()
_SINGLE = np.dtype(np.float32)
_KNOWN = 64  # questions that are remembered


class Remembered:
    """Valid questions about one query, with their effort, so that they need no checks again."""

    def __init__(self, store: Store, sketches: Sketches, tunings: object) -> None:
        self.of = store, sketches, tunings
        self._shape = 1, store.shape[1]
        self._natives = sketches.native.best, store.native, store.removed
        self._efforts: dict[tuple[object, ...], tuple[int, int, int]] = {}

    @staticmethod
    def key(*question: object) -> tuple[object, ...]:
        """Return what a question is known by: True is not 1."""
        return (*question, *map(type, question))

    def add(self, key: tuple[object, ...], k: int, effort: Effort) -> None:
        """Remember a question, unless a value cannot be a key, such as an array of one number."""
        if len(self._efforts) >= _KNOWN:
            self._efforts.clear()
        with suppress(TypeError):
            self._efforts[key] = k, effort.candidates, effort.probe

    def answer(self, key: tuple[object, ...], vectors: Any) -> VectorNeighbors | None:
        """Return the answer to a question for a row of float32; None if it is not known."""
        try:
            effort = self._efforts.get(key)
        except TypeError:  # a value that cannot be a key
            return None
        if (
            effort is None
            or type(vectors) is not np.ndarray
            or vectors.shape != self._shape
            or vectors.dtype is not _SINGLE
            or not vectors.flags.c_contiguous
        ):
            return None
        row = vectors[0]
        if not math.isfinite(row.dot(row)):  # or it is very long, and checked as usual
            return None
        k, candidates, probe = effort
        best, rows, removed = self._natives
        ids, cosines, done = (
            np.empty((1, k), np.int64),
            np.empty((1, k)),
            np.empty((3, 1), np.int64),
        )
        best(rows, removed, vectors, candidates, probe, 1, ids, cosines, done)
        return VectorNeighbors(ids, cosines, False)


@dataclass(eq=False)
class Parts:
    """Signatures, vectors and sketches. A vector is stored before its signature and its sketch."""

    signatures: ClusterIndex
    store: Store
    signer: Projection
    wanted: int | None = None  # number of groups of sketches; None: the usual
    known: Sketches | None = None  # sketches, once they are needed
    remembered: Remembered | None = None

    @property
    def groups(self) -> int:
        """Number of groups of sketches, also of those that are not there yet."""
        known = self.known
        return planned_groups(len(self.store), self.wanted) if known is None else known.groups

    def sketches(self, threads: int) -> Sketches | None:
        """Return the sketches, which are made on first use.

        None: there are no vectors, or they are too wide.
        """
        if self.known is None and len(self.store) and self.signer.dimensions <= MOST_DIMENSIONS:
            with _SKETCHING:
                if self.known is None:
                    store, seed = self.store, self.signer.seed
                    self.known = Sketches.build(
                        store.native, store.shape, self.wanted, seed, threads
                    )
        return self.known

    def extend_sketches(self, threads: int) -> None:
        """Make sketches of vectors that were added, if there are others."""
        known, store = self.known, self.store
        if known is not None:
            self.known = known.extended(store.native, store.shape, threads)


def radius_for(similarity: float, bits: int, recall: float) -> int:
    """Return the radius that contains vectors of this cosine with this probability."""
    chance = math.acos(max(-1.0, min(1.0, similarity))) / math.pi
    if chance <= 0 or chance >= 1:
        return bits if chance >= 1 else 0
    total = 0.0
    for radius in range(bits + 1):
        total += math.exp(
            math.lgamma(bits + 1)
            - math.lgamma(radius + 1)
            - math.lgamma(bits - radius + 1)
            + radius * math.log(chance)
            + (bits - radius) * math.log1p(-chance)
        )
        if total >= recall:
            return radius
    return bits


def empty_answer(queries: int, k: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return ids and cosines of an empty result."""
    return np.full((queries, k), -1, np.int64), np.full((queries, k), np.nan)


def all_compared(
    store: Store,
    places: NDArray[np.int64] | None,
    queries: Queries,
    k: int,
    threads: int,
    sketches: Sketches | None = None,
    *,
    explain: bool = False,
) -> VectorNeighbors:
    """Return the k most similar vectors at these positions (None: all that are left); exact."""
    if places is None and sketches is not None:
        ids, cosines = empty_answer(len(queries), k)
        done = np.zeros((3, len(queries)), np.int64)
        sketches.native.best_of_all(
            store.native, store.removed, queries, threads, ids, cosines, done
        )
        told = Explanation.of_scan(len(queries), store.alive) if explain else None
        return VectorNeighbors(ids, cosines, True, told)
    places = store.places if places is None else places
    ids, cosines = empty_answer(len(queries), k)
    if len(places) * _LISTED_SHARE <= len(store) or len(places) <= k:
        step = max(1, _LISTED // max(1, len(places)))
        for start in range(0, len(queries) if len(places) else 0, step):
            part = slice(start, start + step)
            shape = len(queries[part]), len(places)
            listed = np.ascontiguousarray(np.broadcast_to(places, shape))
            store.native.best_candidates(queries[part], listed, threads, ids[part], cosines[part])
    else:
        skip = None if len(places) == len(store) else store.skipped(places)
        store.native.best_of_all(skip, queries, threads, ids, cosines)
    told = Explanation.of_scan(len(queries), len(places)) if explain else None
    return VectorNeighbors(ids, cosines, True, told)


def among_candidates(
    store: Store,
    sketches: Sketches,
    queries: Queries,
    k: int,
    effort: Effort,
    among: NDArray[np.int64] | None,
    threads: int,
    *,
    explain: bool,
) -> VectorNeighbors:
    """Return the k most similar vectors of those that sketches propose."""
    ids, cosines = empty_answer(len(queries), k)
    done = np.zeros((3, len(queries)), np.int64)
    skip = store.removed if among is None else store.skipped(among)
    sketches.native.best(
        store.native,
        skip,
        queries,
        min(effort.candidates, len(store)),
        effort.probe,
        threads,
        ids,
        cosines,
        done,
    )
    told = None
    if explain:
        proven = np.zeros(len(queries), bool)  # groups that were not read may have others
        told = Explanation(proven, done[0], done[1], done[1], done[2])
    return VectorNeighbors(ids, cosines, not len(queries), told)


def proposed(
    store: Store, sketches: Sketches, queries: Queries, effort: Effort, threads: int
) -> NDArray[np.int64]:
    """Return the positions of candidates, nearest sketches first; -1: there are no more."""
    places = np.full((len(queries), effort.candidates), -1, np.int64)
    sketches.native.candidates(store.native, store.removed, queries, effort.probe, threads, places)
    return places


def check_places(store: Store, places: NDArray[np.int64]) -> None:
    """Raise if signatures refer to positions that do not exist."""
    wrong = (places < -1) | (places >= len(store))  # -1: there are no more
    if wrong.any():
        raise CorruptIndexError(
            f"a signature belongs to the vector {int(places[wrong][0])}, and there are "
            f"{len(store)}; the file of the index is damaged"
        )


def everything_near(
    store: Store,
    places: NDArray[np.int64],
    queries: Queries,
    least: float,
    limit: int,
    threads: int,
) -> VectorMatches:
    """Return all vectors at these positions that are similar enough; exact."""
    skip = None if len(places) == len(store) else store.skipped(places)
    try:
        offsets, ids, cosines = store.native.at_least(
            skip, queries, least, min(limit, NO_LIMIT), threads
        )
    except _native.TooManyResults:
        raise _too_many(limit, least, f"{len(queries)} queries") from None
    return VectorMatches(as_int64(offsets), as_int64(ids), cosines, True)


def near_by_signatures(
    parts: Parts,
    queries: Queries,
    least: float,
    recall: float,
    among: NDArray[np.int64] | None,
    limit: int,
    threads: int,
) -> VectorMatches:
    """Return those that are similar enough and have a signature within the radius for that."""
    radius = radius_for(least, parts.signer.bits, recall)
    chosen = None if among is None else Chosen(among, None)
    counts, found_ids, found_cosines = [np.zeros(1, np.int64)], [], []
    for start in range(0, len(queries), _BLOCK):
        asked = queries[start : start + _BLOCK]
        signatures = parts.signer.sign(asked, threads=threads)
        found = parts.signatures.within(
            signatures, radius, limit=NO_LIMIT, among=chosen, threads=threads
        )
        store = parts.store
        check_places(store, found.ids)
        numbers = np.repeat(np.arange(len(asked)), np.diff(found.offsets))
        cosines = np.empty(len(numbers), np.float64)
        store.native.cosines(asked, numbers, found.ids, threads, cosines)
        kept = np.flatnonzero(cosines >= least)
        ids = store.ids_of(found.ids[kept])
        order = np.lexsort((ids, -cosines[kept], numbers[kept]))
        counts.append(np.bincount(numbers[kept], minlength=len(asked)))
        found_ids.append(ids[order])
        found_cosines.append(cosines[kept][order])
        if sum(map(len, found_ids)) > limit:
            raise _too_many(limit, least, f"{len(queries)} queries")
    return VectorMatches(
        np.cumsum(np.concatenate(counts)),
        np.concatenate([np.empty(0, np.int64), *found_ids]),
        np.concatenate([np.empty(0, np.float64), *found_cosines]),
        False,
    )


def pairs_by_signatures(
    parts: Parts, least: float, recall: float, limit: int, threads: int, most_near: int = NO_LIMIT
) -> VectorPairs:
    """Return pairs that are similar enough and have signatures within the radius.

    At most `most_near` pairs may have such signatures, else `ResultTooLargeError` is raised.
    """
    radius = radius_for(least, parts.signer.bits, recall)
    near = parts.signatures.pairs(radius, limit=most_near, threads=threads)
    store = parts.store
    check_places(store, near.right)
    found: list[_PairColumns] = []
    for start in range(0, len(near), _PAIRS):
        some = slice(start, start + _PAIRS)
        first, numbers = np.unique(near.left[some], return_inverse=True)
        others = np.ascontiguousarray(near.right[some])
        measured = np.empty(len(others), np.float64)
        rows = in_single_precision(store.rows(first))
        store.native.cosines(rows, numbers.astype(np.int64), others, threads, measured)
        kept = measured >= least
        found.append((near.left[some][kept], others[kept], measured[kept]))
    if sum(len(left) for left, _, _ in found) > limit:
        raise _too_many(limit, least, f"{store.alive} vectors with each other")
    return _sorted_pairs(store, found, exact=False)


def all_pairs(store: Store, least: float, limit: int, threads: int) -> VectorPairs:
    """Return every pair that is similar enough; exact."""
    places = store.places
    skip = None if len(places) == len(store) else store.skipped(places)
    by_place = replace(store, ids=None)
    pairs: list[_PairColumns] = []
    total = 0
    for start in range(0, len(places), _BLOCK):
        own = places[start : start + _BLOCK]
        room = 2 * (limit - total) + len(own) * (len(own) + 1)
        try:
            offsets, found, measured = by_place.native.at_least(
                skip, in_single_precision(store.rows(own)), least, min(room, NO_LIMIT), threads
            )
        except _native.TooManyResults:
            raise _too_many(limit, least, f"{len(places)} vectors with each other") from None
        asked = np.repeat(own, np.diff(as_int64(offsets)))
        later = np.flatnonzero(found > asked)
        pairs.append((asked[later], as_int64(found)[later], measured[later]))
        # Rows before these are not looked at again.
        skip = store.skipped(places) if skip is None else skip
        skip[own] = 1
        total += len(later)
        if total > limit:
            raise _too_many(limit, least, f"{len(places)} vectors with each other")
    return _sorted_pairs(store, pairs, exact=True)


_PairColumns = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]


def _sorted_pairs(store: Store, pairs: list[_PairColumns], *, exact: bool) -> VectorPairs:
    none = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float64)
    left, right, measured = (np.concatenate(columns) for columns in zip(none, *pairs, strict=True))
    one, two = store.ids_of(left), store.ids_of(right)
    first, second = np.minimum(one, two), np.maximum(one, two)
    order = np.lexsort((second, first))
    return VectorPairs(first[order], second[order], measured[order], exact)


def _too_many(limit: int, least: float, what: str) -> ResultTooLargeError:
    return ResultTooLargeError(
        "more than ",
        Said(f"limit={limit}", f"{limit:,}"),
        f" results of similarity {least:g} or more for {what}; ask for a larger similarity",
        Said(", or raise the limit", ""),
    )
