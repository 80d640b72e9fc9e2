"""The searches that are compared, each in its best setting and with one common interface.

What a peer builds before it can search is built when it is made, and not timed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any, ClassVar

import faiss
import numkong
import numpy as np
from numpy.typing import NDArray
from usearch.compiled import MetricKind, ScalarKind
from usearch.index import search as usearch_search

import lookalike as la
from benchmarks.answers import Matched, Nearest

__all__ = ["Faiss", "FaissShards", "Lookalike", "NumKong", "NumPy", "Peer", "USearch"]

Signatures = NDArray[np.uint8]


class Peer(ABC):
    """One way to search a collection, with its queries and its number of threads."""

    name: ClassVar[str]
    most_queries: ClassVar[int | None] = None
    """Slow peers answer only that many queries of a batch; their time is scaled up."""

    def __init__(self, signatures: Signatures, queries: Signatures, threads: int) -> None:
        self.signatures = signatures
        self.queries = queries[: self.most_queries]
        self.threads = threads

    @abstractmethod
    def search(self, k: int) -> Nearest:
        """Find the k nearest of every query."""

    def within(self, radius: int) -> Matched:
        """Find all at distance `radius` or less of every query, if the peer can."""
        raise NotImplementedError(f"{self.name} cannot search within a radius")


class Lookalike(Peer):
    """Ours."""

    name = "lookalike"

    def __init__(self, signatures: Signatures, queries: Signatures, threads: int) -> None:
        super().__init__(signatures, queries, threads)
        self.index = la.ScanIndex(signatures)

    def search(self, k: int) -> Nearest:
        """Find the k nearest of every query."""
        found = self.index.search(self.queries, k, threads=self.threads)
        return Nearest(found.ids, found.distances)

    def within(self, radius: int) -> Matched:
        """Find all at distance `radius` or less of every query."""
        found = self.index.within(self.queries, radius, threads=self.threads)
        return Matched(found.offsets, found.ids, found.distances)


class Faiss(Peer):
    """IndexBinaryFlat. Shares out queries among threads, so one query has one thread."""

    name = "faiss"

    def __init__(self, signatures: Signatures, queries: Signatures, threads: int) -> None:
        super().__init__(signatures, queries, threads)
        # Threads without a query would only wait, and cost time.
        faiss.omp_set_num_threads(min(threads, len(self.queries)))
        self.index = _faiss_index(signatures)
        # One pass over the collection for all queries; by default there is one for each 32.
        self.index.query_batch_size = max(32, len(self.queries))

    def search(self, k: int) -> Nearest:
        """Find the k nearest of every query."""
        distances, ids = self.index.search(self.queries, k)
        return Nearest(ids, distances)

    def within(self, radius: int) -> Matched:
        """Find all at distance `radius` or less of every query; faiss's own radius is exclusive."""
        offsets, distances, ids = self.index.range_search(self.queries, radius + 1)
        return Matched(offsets, ids, distances)


class FaissShards(Faiss):
    """One part of the collection per thread: how faiss gives several threads to one query.

    Only for the k nearest, and not for batches: each part would use all threads for its queries,
    more than the others have.
    """

    name = "faiss shards"

    def __init__(self, signatures: Signatures, queries: Signatures, threads: int) -> None:
        Peer.__init__(self, signatures, queries, threads)
        self.index = faiss.IndexBinaryShards(8 * signatures.shape[1], True)  # threaded
        self.parts = [_faiss_index(rows) for rows in np.array_split(signatures, threads)]
        for part in self.parts:
            self.index.add_shard(part)


class USearch(Peer):
    """Exact search without an index. Keeps all distances before it sorts: few queries at once."""

    name = "usearch"
    most_queries = 10

    def search(self, k: int) -> Nearest:
        """Find the k nearest of every query."""
        found = usearch_search(
            self.signatures,
            self.queries,
            k,
            MetricKind.Hamming,
            exact=True,
            threads=self.threads,
            dtype=ScalarKind.B1,
        )
        shape = (len(self.queries), k)
        return Nearest(found.keys.reshape(shape), found.distances.reshape(shape))


class DistanceMatrix(Peer):
    """Distances by somebody else, the choice among them by NumPy.

    Goes through the collection in blocks, shared out among threads, so that signatures and
    distances are still in the cache when they are needed again.
    """

    def __init__(self, signatures: Signatures, queries: Signatures, threads: int) -> None:
        super().__init__(signatures, queries, threads)
        rows = self.block_rows()
        self.blocks = [
            (start, self.prepare(signatures[start : start + rows]))
            for start in range(0, len(signatures), rows)
        ]
        self.pool = ThreadPoolExecutor(threads)

    @abstractmethod
    def block_rows(self) -> int:
        """Return how many rows a block has: the fastest of several numbers tried."""

    @abstractmethod
    def prepare(self, rows: Signatures) -> Any:
        """Bring one block into the form that `distances` wants; not timed."""

    @abstractmethod
    def distances(self, block: Any) -> NDArray[Any]:
        """Return the distances [queries, rows] between all queries and a block."""

    def search(self, k: int) -> Nearest:
        """Find the k nearest of every query: those of each block, then those among them."""

        def search_share(first: int) -> list[Nearest]:
            return [
                _nearest(start + np.arange(distances.shape[1]), distances, k)
                for start, distances in self._share(first)
            ]

        found = list(chain.from_iterable(self.pool.map(search_share, range(self.threads))))
        ids = np.concatenate([near.ids for near in found], axis=1)
        return _nearest(ids, np.concatenate([near.distances for near in found], axis=1), k)

    def within(self, radius: int) -> Matched:
        """Find all at distance `radius` or less of every query."""

        def search_share(first: int) -> list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]:
            found = []
            for start, distances in self._share(first):
                query, row = np.nonzero(distances <= radius)
                found.append((query, start + row, distances[query, row]))
            return found

        found = chain.from_iterable(self.pool.map(search_share, range(self.threads)))
        queries, ids, distances = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        order = np.argsort(queries, kind="stable")
        counts = np.bincount(queries, minlength=len(self.queries))
        return Matched(np.append(0, np.cumsum(counts)), ids[order], distances[order])

    def _share(self, first: int) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield the start and the distances of every block of one thread."""
        for start, block in self.blocks[first :: self.threads]:
            yield start, self.distances(block)


class NumKong(DistanceMatrix):
    """The kernels of NumKong (once SimSIMD), the ones for packed matrices: its fastest."""

    name = "numkong"

    def block_rows(self) -> int:
        """Return fewer for a batch, whose distances take more room than the signatures."""
        return 65536 if len(self.queries) == 1 else 4096

    def prepare(self, rows: Signatures) -> Any:
        """Pack a block."""
        return numkong.hammings_pack(rows, dtype="uint1")

    def distances(self, block: Any) -> NDArray[Any]:
        """Return the distances [queries, rows] between all queries and a block."""
        return np.asarray(numkong.hammings_packed(self.queries, block))


class NumPy(DistanceMatrix):
    """Exclusive or and bitwise_count, in words of 64 bits: what everybody has at hand."""

    name = "NumPy"
    most_queries = 10

    def block_rows(self) -> int:
        """Return half a megabyte of them; smaller blocks would be mostly Python's overhead."""
        return 2**19 // int(self.signatures.shape[1])

    def prepare(self, rows: Signatures) -> Any:
        """Regard bytes as words."""
        return rows.view(np.uint64)

    def distances(self, block: Any) -> NDArray[Any]:
        """Return the distances [queries, rows] between all queries and a block."""
        distances = np.empty((len(self.queries), len(block)), np.uint16)
        for query, row in zip(self.queries.view(np.uint64), distances, strict=True):
            counts = np.bitwise_count(block ^ query)
            if counts.shape[1] == 1:  # nothing to add up, and adding is slow
                row[:] = counts[:, 0]
            else:
                counts.sum(axis=1, dtype=np.uint16, out=row)
        return distances


def _faiss_index(rows: Signatures) -> Any:
    """Return an exhaustive index; untyped, because faiss's types leave out some attributes."""
    index = faiss.IndexBinaryFlat(8 * rows.shape[1])
    index.add(rows)
    return index


def _nearest(ids: NDArray[Any], distances: NDArray[Any], k: int) -> Nearest:
    """Return the k nearest, sorted, given ids for each distance or for each column of them."""
    chosen = np.argpartition(distances, min(k, distances.shape[1]) - 1, axis=1)[:, :k]
    near = np.take_along_axis(distances, chosen, axis=1)
    order = np.argsort(near, axis=1, kind="stable")
    chosen = np.take_along_axis(chosen, order, axis=1)
    ids = np.take_along_axis(np.broadcast_to(ids, distances.shape), chosen, axis=1)
    return Nearest(ids, np.take_along_axis(near, order, axis=1))
