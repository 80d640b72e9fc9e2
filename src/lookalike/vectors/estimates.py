"""Cosines of queries with vectors of which only signatures are stored: estimates.

A signature has the signs of a vector's projections. A query keeps its numbers: each bit of a
signature has a weight for it, the query's share in the best linear guess of a vector by its signs.
The sum of the weights, with the signs of the bits, is divided by what it is for the vector itself,
which is stored with the signature. The estimate is right on average.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.indexes.filters import Chosen
from lookalike.indexes.results import Explanation
from lookalike.signatures import Projection
from lookalike.vectors.search import Parts, VectorNeighbors, check_places, empty_answer

if TYPE_CHECKING:
    from lookalike.vectors.tuning import Effort

_BLOCK = 256  # queries whose candidates are held at a time
_ROWS = 4096  # vectors whose weights are held at a time
_NOISE = math.pi / 2 - 1  # variance of a sign, in units of what the projection explains of it


@dataclass(frozen=True, eq=False)
class Estimator:
    """Weights of bits, and what they estimate."""

    signer: Projection

    @cached_property
    def _matrix(self) -> NDArray[np.float32]:
        """Linear guess of vectors by signs: float32[dimensions, bits], the same everywhere.

        That is (G G' + n I)^-1 G for projections G and noise n, by sums in a fixed order.
        """
        given = np.asarray(self.signer._matrix, np.float64)
        wide = given if given.shape[0] <= given.shape[1] else np.ascontiguousarray(given.T)
        size = len(wide)
        both = np.zeros((size, size))
        for column in wide.T:
            both += column[:, None] * column[None, :]
        both[np.diag_indices(size)] += _NOISE * self.signer.dimensions
        solved = wide.copy()
        for at in range(size):  # Gauss and Jordan; the matrix is positive definite
            solved[at] /= both[at, at]
            both[at] /= both[at, at]
            share = both[:, at].copy()
            share[at] = 0
            both -= share[:, None] * both[at][None, :]
            solved -= share[:, None] * solved[at][None, :]
        guess = solved if wide is given else solved.T
        return np.ascontiguousarray(guess, np.float32)

    def weights(self, vectors: NDArray[np.float32], threads: int) -> NDArray[np.float32]:
        """Return the weight of each bit for each vector of length 1: float32[n, bits]."""
        weights = np.empty((len(vectors), self.signer.bits), np.float32)
        unused = np.empty((len(vectors), self.signer.bits // 8), np.uint8)
        _native.project_with_sums(vectors, self._matrix, threads, unused, weights)
        return weights

    def scales(
        self, vectors: NDArray[np.float32], signatures: NDArray[np.uint8], threads: int
    ) -> NDArray[np.float32]:
        """Return what a vector of length 1 has with its own signature: float32[n, 1]."""
        scales = np.zeros((len(vectors), 1), np.float32)
        for start in range(0, len(vectors), _ROWS):
            part = slice(start, start + _ROWS)
            rows = vectors[part].astype(np.float32)
            numbers = np.arange(len(rows))
            sums = np.empty(len(rows), np.float64)
            bits = np.ascontiguousarray(signatures[part])
            _native.signed_sums(self.weights(rows, threads), bits, numbers, threads, sums)
            scales[part, 0] = sums
        return scales

    def estimates(
        self,
        queries: NDArray[np.float32],
        signatures: NDArray[np.uint8],
        scales: NDArray[np.float32],
        numbers: NDArray[np.int64],
        threads: int,
    ) -> NDArray[np.float64]:
        """Return the estimated cosine of each signature with the query of its number.

        It may be beyond 1. Zero vectors have 0.
        """
        sums = np.empty(len(signatures), np.float64)
        _native.signed_sums(self.weights(queries, threads), signatures, numbers, threads, sums)
        found = np.zeros(len(sums))
        np.divide(sums, scales, out=found, where=scales > 0)
        return found


def best_estimates(
    parts: Parts,
    estimator: Estimator,
    queries: NDArray[np.float32],
    k: int,
    effort: Effort,
    among: NDArray[np.int64] | None,
    threads: int,
    *,
    explain: bool,
) -> VectorNeighbors:
    """Return the k with the largest estimated cosines of those with the nearest signatures."""
    ids, similarities = empty_answer(len(queries), k)
    groups, read, ranked = (np.zeros(len(queries), np.int64) for _ in range(3))
    chosen = None if among is None else Chosen(among, None)
    for start in range(0, len(queries), _BLOCK):
        asked = queries[start : start + _BLOCK]
        signatures = parts.signer.sign(asked, threads=threads)
        found = parts.signatures.search(
            signatures,
            effort.candidates,
            probe=effort.probe,
            explain=True,
            among=chosen,
            threads=threads,
        )
        store = parts.store
        check_places(store, found.ids)
        numbers, ranks = np.nonzero(found.ids >= 0)
        places = found.ids[numbers, ranks]
        bits, there = parts.signatures._signatures_of(places)
        numbers, places = numbers[there], places[there]  # some may be gone by now
        scales = store.rows(places)[:, 0]
        estimates = estimator.estimates(asked, bits[there], scales, numbers, threads)
        own = store.ids_of(places)
        order = np.lexsort((own, -estimates, numbers))
        counts = np.bincount(numbers, minlength=len(asked))
        begins = np.cumsum(counts) - counts
        rank = np.arange(len(order)) - np.repeat(begins, counts)
        best = rank < k
        at = start + numbers[order][best], rank[best]
        ids[at] = own[order][best]
        similarities[at] = estimates[order][best].clip(-1, 1)
        part = slice(start, start + len(asked))
        ranked[part] = counts
        if found.explanation is not None:
            groups[part], read[part] = found.explanation.lists, found.explanation.postings
    told = None
    if explain:
        told = Explanation(np.zeros(len(queries), bool), groups, read, read, ranked)
    return VectorNeighbors(ids, similarities, not len(queries), told)
