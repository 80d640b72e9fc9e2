"""Indexes that are searched with one thread: ours and faiss's, with what it took to build them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

import lookalike as la
from benchmarks.answers import Matched, Nearest

__all__ = [
    "SAMPLE_PER_LIST",
    "Built",
    "build_clusters",
    "build_flat",
    "build_hnsw",
    "build_ivf",
    "build_multi_hash",
    "build_prefixes",
    "build_slices",
]

Signatures = NDArray[np.uint8]

SAMPLE_PER_LIST = 256
"""Signatures that each list of the inverted file learns from, at most: the default of faiss."""
LINKS = 32
"""Of a node in HNSW: faiss's default, as its 40 candidates while building."""

POINTER = ID = 8
HASH_KEY_BYTES = 88
"""What glibc takes for a key of a C++ hash map of lists: its node of 48 bytes, a bucket of 8, a
block of at least 32 for the list, not counting ids."""


@dataclass(frozen=True, eq=False)
class Built:
    """An index, ready to be searched."""

    index: Any
    seconds: float
    bytes_per_signature: float
    """The signature itself included."""

    def search(
        self, queries: Signatures, k: int, settings: Callable[[Any], None] | None = None
    ) -> Nearest:
        """Ask faiss for the k nearest; where it has fewer, distances are -1 too."""
        if settings:
            settings(self.index)
        distances, ids = self.index.search(queries, k)
        return Nearest(ids, np.where(ids < 0, -1, distances))

    def search_singly(self, queries: Signatures, k: int) -> Nearest:
        """Ask faiss with one query after the other."""
        answers = [self.index.search(queries[i : i + 1], k) for i in range(len(queries))]
        distances, ids = (np.concatenate(parts) for parts in zip(*answers, strict=True))
        return Nearest(ids, distances)

    def within(self, queries: Signatures, radius: int, flips: int | None = None) -> Matched:
        """Ask faiss for all at `radius` or less; its own radius is exclusive."""
        if flips is not None:
            self.index.nflip = flips
        offsets, distances, ids = self.index.range_search(queries, radius + 1)
        return Matched(offsets, ids, distances)


def build_slices(signatures: Signatures, slice_bits: int | None, threads: int = 1) -> Built:
    """Build ours."""
    return _built(
        partial(la.SliceIndex, signatures, slice_bits, threads=threads),
        len(signatures),
        lambda index: float(index.memory_bytes),
    )


def build_prefixes(signatures: Signatures, orders: int) -> Built:
    """Build orders by random permutations, with one thread."""
    return _built(
        partial(la.PrefixIndex, signatures, orders, threads=1),
        len(signatures),
        lambda index: float(index.memory_bytes),
    )


def build_clusters(signatures: Signatures, threads: int) -> Built:
    """Build groups around majority centers."""
    return _built(
        partial(la.ClusterIndex, signatures, threads=threads),
        len(signatures),
        lambda index: float(index.memory_bytes),
    )


def build_flat(signatures: Signatures) -> Built:
    """Build faiss's exhaustive index: it only copies."""

    def make() -> Any:
        index: Any = faiss.IndexBinaryFlat(8 * signatures.shape[1])
        index.add(signatures)
        # One pass over the collection for all queries of a batch, which is faster than its default.
        index.query_batch_size = 1024
        return index

    return _built(make, len(signatures), lambda index: signatures.nbytes)


def build_ivf(signatures: Signatures, lists: int) -> Built:
    """Build faiss's inverted file, which learns centers of clusters first."""
    bits = 8 * signatures.shape[1]

    def make() -> Any:
        quantizer = faiss.IndexBinaryFlat(bits)
        index: Any = faiss.IndexBinaryIVF(quantizer, bits, lists)
        # Faiss draws these by itself, but only after it made floats of the bits of all.
        order = np.random.default_rng(0).permutation(len(signatures))
        index.train(signatures[np.sort(order[: SAMPLE_PER_LIST * lists])])
        index.add(signatures)
        index.quantizer_kept = quantizer  # which the index only points to
        return index

    per_list = signatures.shape[1] + 3 * POINTER
    return _built(
        make,
        len(signatures),
        lambda index: signatures.nbytes + ID * len(signatures) + per_list * lists,
    )


def build_hnsw(signatures: Signatures) -> Built:
    """Build faiss's graph."""

    def make() -> Any:
        index = faiss.IndexBinaryHNSW(8 * signatures.shape[1], LINKS)
        index.add(signatures)
        return index

    def size(index: Any) -> float:
        graph = index.hnsw
        links = 4 * graph.neighbors.size() + 4 * graph.levels.size()
        return float(signatures.nbytes + links + 8 * graph.offsets.size())

    return _built(make, len(signatures), size)


def build_multi_hash(signatures: Signatures, tables: int, bits: int) -> Built:
    """Build faiss's hash tables, of the first `bits` bits, the next, and so on."""

    def make() -> Any:
        index = faiss.IndexBinaryMultiHash(8 * signatures.shape[1], tables, bits)
        index.add(signatures)
        return index

    def size(index: Any) -> float:
        ids = ID * tables * len(signatures)
        return float(signatures.nbytes + ids + HASH_KEY_BYTES * index.hashtable_size())

    return _built(make, len(signatures), size)


def _built(make: Callable[[], Any], count: int, size: Callable[[Any], float]) -> Built:
    start = perf_counter()
    index = make()
    seconds = perf_counter() - start
    return Built(index, seconds, size(index) / count)
