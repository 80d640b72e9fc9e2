"""faiss on unit vectors: flat, and a graph, which is built once and kept."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from benchmarks.vectors.collection import Vectors

__all__ = ["Peer", "flat", "graph", "graph_file", "unit"]

LINKS, WIDTH = 32, 100
"""Links of a node of the graph, and candidates while it is built."""


@dataclass(frozen=True, eq=False)
class Peer:
    """An index of faiss."""

    name: str
    index: Any
    seconds: float | None
    """What it took to build; None if it came from the cache."""

    def search(self, queries: NDArray[np.float32], k: int, threads: int, width: int = 0) -> Any:
        """Return ids of the nearest; `width`: candidates that a graph keeps."""
        faiss.omp_set_num_threads(threads)
        if width:
            self.index.hnsw.efSearch = width
        return self.index.search(queries, k)[1]


def unit(vectors: NDArray[Any]) -> NDArray[np.float32]:
    """Return float32 of length 1, whose inner product is the cosine."""
    rows = np.ascontiguousarray(vectors, np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def flat(vectors: Vectors) -> Peer:
    """Return the index that compares all."""
    start = perf_counter()
    index = faiss.IndexFlatIP(vectors.rows.shape[1])
    index.add(unit(vectors.rows))
    return Peer("faiss flat", index, perf_counter() - start)


def graph_file(vectors: Vectors, cache: Path) -> Path:
    """Return where the graph of these vectors is kept."""
    return cache / f"hnsw-{len(vectors.rows)}x{vectors.rows.shape[1]}-{LINKS}-{WIDTH}.faiss"


def graph(vectors: Vectors, cache: Path) -> Peer:
    """Return HNSW, built with all threads, which takes minutes for a million."""
    path = graph_file(vectors, cache)
    if path.exists():
        return Peer("faiss HNSW", faiss.read_index(str(path)), None)
    faiss.omp_set_num_threads(os.cpu_count() or 1)
    index = faiss.IndexHNSWFlat(vectors.rows.shape[1], LINKS, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = WIDTH
    start = perf_counter()
    index.add(unit(vectors.rows))
    seconds = perf_counter() - start
    cache.mkdir(parents=True, exist_ok=True)
    faiss.write_index(index, str(path))
    return Peer("faiss HNSW", index, seconds)
