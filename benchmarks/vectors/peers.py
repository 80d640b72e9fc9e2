"""Other indexes of unit vectors at settings that their documentation recommends."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import faiss
import hnswlib
import numpy as np
from numpy.typing import NDArray
from usearch.index import Index as UsearchIndex

from benchmarks.vectors.collection import Vectors

__all__ = ["Peer", "bit_graph", "coded_lists", "flat", "graphs", "inverted_lists", "unit"]

CONSTRUCTION = 100  # candidates while a graph is built
WIDTHS = (16, 32, 64, 128, 256)
LISTS = (4, 8, 16, 32, 64, 128)
SAMPLED = 64  # vectors per list that lists are trained with


@dataclass(frozen=True, eq=False)
class Peer:
    """An index at one setting."""

    name: str
    search: Callable[[NDArray[np.float32], int], NDArray[Any]]
    seconds: float | None
    bytes_each: float


def unit(vectors: NDArray[Any]) -> NDArray[np.float32]:
    """Return float32 of length 1, whose inner product is the cosine."""
    rows = np.ascontiguousarray(vectors, np.float32)
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return np.ascontiguousarray(rows, np.float32)


def flat(vectors: Vectors) -> Peer:
    """Return the index that compares all."""
    start = perf_counter()
    index = faiss.IndexFlatIP(vectors.rows.shape[1])
    index.add(unit(vectors.rows))
    seconds = perf_counter() - start
    return Peer("faiss flat", _faiss_search(index), seconds, 4.0 * vectors.rows.shape[1])


def inverted_lists(vectors: Vectors) -> Iterator[Peer]:
    """Yield faiss IVF: vectors as they are, and 4 bits for two dimensions, ranked again."""
    rows = unit(vectors.rows)
    count = round(4 * len(rows) ** 0.5)
    half = rows.shape[1] // 2
    for name, described, factor in (
        ("faiss IVF flat", f"IVF{count},Flat", 0),
        ("faiss IVF PQfs", f"IVF{count},PQ{half}x4fs,RFlat", 8),
    ):
        start = perf_counter()
        index: Any = faiss.index_factory(rows.shape[1], described, faiss.METRIC_INNER_PRODUCT)
        inner = faiss.extract_index_ivf(index)
        inner.cp.max_points_per_centroid = SAMPLED
        index.train(rows)
        index.add(rows)
        seconds = perf_counter() - start
        size = len(faiss.serialize_index(index)) / len(rows)
        if factor:
            index.k_factor = factor
        for probe in LISTS:

            def search(
                queries: Any, k: int, probe: int = probe, index: Any = index, lists: Any = inner
            ) -> Any:
                lists.nprobe = probe
                return index.search(queries, k)[1]

            yield Peer(f"{name}, nprobe {probe}", search, seconds, size)


def coded_lists(vectors: Vectors) -> Iterator[Peer]:
    """Yield faiss IVF of codes alone: one, two and four bits by RaBitQ, four by SQ, and PQ."""
    rows = unit(vectors.rows)
    count = round(3 * len(rows) ** 0.5)
    for code in ("RaBitQ", "RaBitQ2", "RaBitQ4", "SQ4", f"PQ{rows.shape[1] // 2}x8"):
        start = perf_counter()
        index: Any = faiss.index_factory(
            rows.shape[1], f"IVF{count},{code}", faiss.METRIC_INNER_PRODUCT
        )
        index.cp.max_points_per_centroid = SAMPLED
        index.train(rows)
        index.add(rows)
        seconds = perf_counter() - start
        size = len(faiss.serialize_index(index)) / len(rows)
        index.nprobe = max(1, count // 8)
        yield Peer(f"faiss IVF {code}", _faiss_search(index), seconds, size)


def bit_graph(
    signatures: NDArray[np.uint8], sign: Callable[[NDArray[np.float32]], NDArray[np.uint8]]
) -> Iterator[Peer]:
    """Yield a graph of usearch of the same bits, which compares bits with bits."""
    start = perf_counter()
    index: Any = UsearchIndex(
        ndim=8 * signatures.shape[1], metric="hamming", dtype="b1", connectivity=16
    )
    index.expansion_add = CONSTRUCTION
    index.add(np.arange(len(signatures)), signatures, threads=os.cpu_count() or 1)
    seconds = perf_counter() - start
    for width in (64, 256):

        def search(queries: Any, k: int, width: int = width) -> Any:
            index.expansion_search = width
            found = index.search(sign(queries), k, threads=1)
            return np.asarray(found.keys).reshape(len(queries), -1)

        name = f"usearch b1, {8 * signatures.shape[1]} bits, expansion {width}"
        yield Peer(name, search, seconds, index.serialized_length / len(signatures))


def _faiss_search(index: Any) -> Callable[[NDArray[np.float32], int], Any]:
    return lambda queries, k: index.search(queries, k)[1]


def graphs(vectors: Vectors) -> Iterator[Peer]:
    """Yield graphs of faiss, hnswlib and usearch, built with all threads."""
    rows = unit(vectors.rows)
    threads = os.cpu_count() or 1
    for links in (16, 32):
        faiss.omp_set_num_threads(threads)
        start = perf_counter()
        index: Any = faiss.IndexHNSWFlat(rows.shape[1], links, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = CONSTRUCTION
        index.add(rows)
        seconds = perf_counter() - start
        size = len(faiss.serialize_index(index)) / len(rows)
        for width in WIDTHS:

            def search(queries: Any, k: int, width: int = width, index: Any = index) -> Any:
                index.hnsw.efSearch = width
                return index.search(queries, k)[1]

            yield Peer(f"faiss HNSW {links}, efSearch {width}", search, seconds, size)
    faiss.omp_set_num_threads(1)
    yield from _hnswlib(rows, threads)
    for kind in ("f32", "f16", "i8"):
        yield from _usearch(rows, kind, threads)


def _hnswlib(rows: NDArray[np.float32], threads: int) -> Iterator[Peer]:
    start = perf_counter()
    index = hnswlib.Index("ip", rows.shape[1])
    index.init_index(len(rows), ef_construction=CONSTRUCTION, M=16)
    index.add_items(rows, num_threads=threads)
    seconds = perf_counter() - start
    with TemporaryDirectory() as folder:
        index.save_index(str(Path(folder, "graph")))
        size = Path(folder, "graph").stat().st_size / len(rows)
    for width in WIDTHS:

        def search(queries: Any, k: int, width: int = width) -> Any:
            index.set_ef(width)
            return index.knn_query(queries, k, num_threads=1)[0]

        yield Peer(f"hnswlib 16, ef {width}", search, seconds, size)


def _usearch(rows: NDArray[np.float32], kind: str, threads: int) -> Iterator[Peer]:
    start = perf_counter()
    index: Any = UsearchIndex(
        ndim=rows.shape[1],
        metric="cos",
        dtype=kind,
        connectivity=16,
        expansion_add=CONSTRUCTION,
    )
    index.add(np.arange(len(rows)), rows, threads=threads)
    seconds = perf_counter() - start
    for width in WIDTHS:

        def search(queries: Any, k: int, width: int = width) -> Any:
            index.expansion_search = width
            return np.asarray(index.search(queries, k, threads=1).keys).reshape(len(queries), -1)

        name = f"usearch {kind}, expansion {width}"
        yield Peer(name, search, seconds, index.serialized_length / len(rows))
