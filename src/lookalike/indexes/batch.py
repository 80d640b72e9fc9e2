"""match_batch: a batch of signatures against a collection that stays on disk, then appended to it.

The batch mode of Sood and Loguinov (section 6.3): the file is read once, in chunks; memory is
bounded by the chunk and the batch.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import share, thread_count, whole_number
from lookalike.errors import ArgumentError, CorruptIndexError
from lookalike.indexes.base import DEFAULT_LIMIT
from lookalike.indexes.blocks import BlockIndex
from lookalike.indexes.flips import FlipIndex, all_sets, upper_bits
from lookalike.indexes.results import Matches, too_many_matches
from lookalike.indexes.rows import Rows
from lookalike.indexes.sorted_table import SortedTable, header_width
from lookalike.indexes.volatility import as_weights
from lookalike.signatures import as_signatures

if TYPE_CHECKING:
    from lookalike.storage import SignatureFile

__all__ = ["Progress", "match_batch"]

Progress = Callable[[int, int], None]
"""Called with how many signatures of the file have been read, and how many there are."""

_CHUNK_BYTES = 1 << 27
_SMALL = 1 << 16
_MOST_KEPT = 64
"""Flips a query whose sets are kept from chunk to chunk."""

Signatures = NDArray[np.uint8]
Ids = NDArray[np.int64]
Numbers = NDArray[np.int64]


def match_batch(
    file: str | os.PathLike[str],
    queries: ArrayLike,
    radius: SupportsIndex = 3,
    *,
    method: str = "flips",
    weights: ArrayLike | None = None,
    flips: SupportsIndex | None = None,
    recall: SupportsFloat = 0.95,
    first: bool = False,
    tables: SupportsIndex | None = None,
    ids: ArrayLike | None = None,
    append: bool = True,
    chunk: SupportsIndex | None = None,
    limit: SupportsIndex = DEFAULT_LIMIT,
    threads: SupportsIndex | None = None,
    progress: Progress | None = None,
) -> Matches:
    """Find what is within the radius of each query in a signature file, then append the queries.

    The file is made if it is not there. It is read from beginning to end in chunks of at most
    `chunk` signatures: as many as the batch has unless told, or 128 MB if that is more. Runs of the
    file that are smaller than the batch are put together to chunks of its size.

    `method="flips"`: each chunk is a `FlipIndex`, asked with `weights` as `FlipIndex.within` is;
    how many flips reach the `recall` is found out on the first chunk. Runs of the file are sorted
    already, so that a chunk needs no more than its header table; larger chunks are quicker.
    `method="blocks"`: the batch becomes a `BlockIndex` of `tables` tables, and every signature of
    the file is looked up in it; exact.

    With `first=True` each query gets one match, the first that is met, and is not asked any more;
    reading stops when all have one. Matches have the ids of the file. The batch itself is not
    compared with itself.

    Afterwards, unless `append=False`, the queries are sorted and appended as one run, whole or not
    at all, with `ids`, or the numbers that follow the largest id of the file.
    """
    from lookalike.storage import SignatureFile  # not needed to search, so not at import

    rows = as_signatures(queries, "queries")
    bits = 8 * rows.shape[1]
    near = min(whole_number("radius", radius, at_least=0), bits)
    most = whole_number("limit", limit, at_least=0)
    workers = thread_count(threads)
    size = max(len(rows), _CHUNK_BYTES // rows.shape[1], 1)
    if chunk is not None:
        size = whole_number("chunk", chunk, at_least=1)
    names = None if ids is None else Rows.of(rows, ids).all_ids()
    if method == "blocks":
        matcher: _Matcher = _ByBlocks(rows, near, tables, workers)
    elif method == "flips":
        values = None if weights is None else as_weights(weights, len(rows), bits)
        tries = None if flips is None else whole_number("flips", flips, at_least=0)
        matcher = _ByFlips(rows, near, workers, values, tries, share("recall", recall), first)
    else:
        raise ArgumentError(f"method is {method!r}; expected 'flips' or 'blocks'")

    if not append and not Path(file).exists():
        raise ArgumentError(f"there is no file {file}; with append=True it is made")
    store = SignatureFile(file) if Path(file).exists() else SignatureFile.create(file, bits)
    if store.bits != bits:
        raise ArgumentError(
            f"queries have {bits} bits, the signatures of {store.path} {store.bits}; expected the "
            "same"
        )
    found = _Found(len(rows), first, most, near)
    _match(store, matcher, found, size, min(size, max(len(rows), _SMALL)), progress)
    matches = found.matches(matcher.exact)
    if append:
        header = upper_bits(bits, min(header_width(len(rows)), bits))
        table = SortedTable.build(rows, header, workers)
        own = np.arange(len(rows)) if names is None else names
        store.append(table.signatures, own[table.rows], number_on=names is None)
    return matches


def _match(
    store: SignatureFile,
    matcher: _Matcher,
    found: _Found,
    size: int,
    joined: int,
    progress: Progress | None,
) -> None:
    """Read the file and gather matches, until there is nothing left to be asked."""
    done, total = 0, len(store)
    for chunk in _chunks(store, size, joined):
        asked = found.open_queries()
        if not len(asked):
            return
        matcher.match(chunk, asked, found)
        done += len(chunk.ids)
        if progress is not None:
            progress(done, total)


@dataclass
class _Chunk:
    """Signatures of the file, in memory of our own, with their ids, which may be mapped."""

    signatures: Signatures
    ids: Ids
    is_sorted: bool


def _chunks(store: SignatureFile, size: int, joined: int) -> Iterator[_Chunk]:
    """Cut runs into chunks of at most `size`, and put small ones together, up to `joined`."""
    waiting: list[tuple[Signatures, Ids]] = []
    for signatures, ids in store.each_run():
        for begin in range(0, len(ids), size):
            part = signatures[begin : begin + size], ids[begin : begin + size]
            if waiting and sum(len(each) for _, each in waiting) + len(part[1]) > joined:
                yield _joined(waiting)
                waiting = []
            waiting.append(part)
    if waiting:
        yield _joined(waiting)


def _joined(parts: list[tuple[Signatures, Ids]]) -> _Chunk:
    # Copies, because mapped pages of files are small ones, and slow to look things up in.
    signatures = np.concatenate([signatures for signatures, _ in parts])
    if len(parts) == 1:
        return _Chunk(signatures, parts[0][1], is_sorted=True)
    return _Chunk(signatures, np.concatenate([ids for _, ids in parts]), is_sorted=False)


@dataclass
class _Found:
    """The matches so far."""

    queries: int
    first: bool
    limit: int
    radius: int
    parts: list[tuple[Numbers, Ids, NDArray[np.int32]]] = field(default_factory=list)
    count: int = 0

    def __post_init__(self) -> None:
        self._open = np.ones(self.queries, bool)

    def open_queries(self) -> Numbers:
        """Return the queries that are still to be asked."""
        return np.flatnonzero(self._open)

    def add(self, query: Numbers, ids: Ids, distances: NDArray[np.int32]) -> None:
        """Take matches; with `first`, only one of each query."""
        if self.first:
            query, places = np.unique(query, return_index=True)
            ids, distances = ids[places], distances[places]
            self._open[query] = False
        if len(ids) and int(ids.min()) < 0:
            raise CorruptIndexError("the signature file has negative ids; it is damaged")
        self.count += len(ids)
        if self.count > self.limit:
            raise too_many_matches(self.limit, self.radius, self.queries)
        self.parts.append((query, ids, distances))

    def matches(self, exact: bool) -> Matches:
        """Return all, sorted by (query, distance, id)."""
        none = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int32)
        query, ids, distances = (
            np.concatenate(columns) for columns in zip(none, *self.parts, strict=True)
        )
        order = np.lexsort((ids, distances, query))
        counts = np.bincount(query, minlength=self.queries)
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return Matches(offsets, ids[order], distances[order].astype(np.int32), exact)


class _Matcher(ABC):
    """A way to find the matches of queries in a chunk."""

    exact: bool

    @abstractmethod
    def match(self, chunk: _Chunk, asked: Numbers, found: _Found) -> None:
        """Add the matches of the queries that are still asked."""


class _ByBlocks(_Matcher):
    """Tables over the queries, in which every signature of the file is looked up."""

    exact = True

    def __init__(
        self, queries: Signatures, radius: int, tables: SupportsIndex | None, threads: int
    ) -> None:
        self._threads = threads
        self._index = BlockIndex(queries, radius, tables, threads=threads)

    def match(self, chunk: _Chunk, asked: Numbers, found: _Found) -> None:
        matches = self._index.within(chunk.signatures, limit=found.limit, threads=self._threads)
        place = np.repeat(np.arange(len(matches)), np.diff(matches.offsets))
        query, ids, distances = matches.ids, chunk.ids[place], matches.distances
        if found.first:
            still = np.isin(query, asked)
            query, ids, distances = query[still], ids[still], distances[still]
        found.add(query, ids, distances)


class _ByFlips(_Matcher):
    """A header table over each chunk, in which the queries are looked up."""

    def __init__(
        self,
        queries: Signatures,
        radius: int,
        threads: int,
        weights: NDArray[Any] | None,
        flips: int | None,
        recall: float,
        first: bool,
    ) -> None:
        self._queries = queries
        self._radius = radius
        self._threads = threads
        self._weights = weights
        self._flips = flips
        self._recall = recall
        self._first = first
        self._sets: dict[int, NDArray[np.uint32]] = {}
        self.exact = True

    def match(self, chunk: _Chunk, asked: Numbers, found: _Found) -> None:
        bits = 8 * chunk.signatures.shape[1]
        index = FlipIndex.of_chunk(chunk.signatures, chunk.is_sorted, self._threads)
        everybody = len(asked) == len(self._queries)
        rows = self._queries if everybody else self._queries[asked]
        weights, kept = self._weights, None
        if self._flips is None and weights is not None:
            if self._recall == 1:
                self._flips = all_sets(min(bits, 64), self._radius)
            else:
                self._flips = index.flips_for(
                    self._queries, weights, self._radius, self._recall, self._first, self._threads
                )
        flips = self._flips
        if weights is not None and flips is not None and flips <= _MOST_KEPT:
            kept = self._kept_sets(index, min(flips, all_sets(index.header_bits, self._radius)))
            kept = kept if everybody else kept[asked]
        elif weights is not None and not everybody:
            weights = weights[asked]  # a copy, and a large one: not where sets are kept
        matches = index.within_chunk(
            rows, weights, kept, self._radius, flips, self._first, found.limit, self._threads
        )
        self.exact &= matches.exact
        query = asked[np.repeat(np.arange(len(matches)), np.diff(matches.offsets))]
        found.add(query, chunk.ids[matches.ids], matches.distances)

    def _kept_sets(self, index: FlipIndex, flips: int) -> NDArray[np.uint32]:
        """Return the sets of all queries for headers of that length, made once."""
        if index.header_bits not in self._sets:
            sets = np.empty((len(self._queries), flips), np.uint32)
            index.choose_sets(self._weights, self._radius, self._threads, sets)
            self._sets = {index.header_bits: sets}  # of one length only: they take memory
        return self._sets[index.header_bits]
