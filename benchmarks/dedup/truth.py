"""All pairs of documents that are similar enough: found exhaustively, without any signature.

An inverted index over the features themselves (AllPairs, Bayardo et al. 2007). The features of a
document are put in one order for all, the rarest first. A document's prefix are so many of them
that what follows cannot reach the threshold alone; so two documents that reach it have a feature in
common that is in both prefixes. Every pair that has one is compared exactly. Nothing is left to
chance, and `confirm` compares some documents with all others to see that the argument holds.

Single words are so frequent that nearly all pairs share one. There the product of every pair is
computed, of frequent words by a dense matrix product and of the others by a sparse one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import WrongAnswerError

__all__ = ["NearPairs", "confirm", "feature_matrix", "near_pairs"]

WORK = 20_000_000
"""About how many pairs of postings are looked at together."""
MUCH_WORK = 100_000_000
"""So many pairs of postings, and comparing all documents is the shorter way."""
FREQUENT = 512
"""Features that the dense product is for."""
ROWS_AT_A_TIME = 256
SINGLE_PRECISION = 1e-4
PAIRS_AT_A_TIME = 200_000
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class NearPairs:
    """Pairs of rows, left before right, by (left, right)."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    similarity: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.left)

    def at(self, threshold: float) -> NearPairs:
        """Return those that are at least so similar."""
        which = self.similarity >= threshold
        return NearPairs(self.left[which], self.right[which], self.similarity[which])

    def keys(self, count: int) -> NDArray[np.int64]:
        """Return a number for each pair, among `count` rows."""
        return self.left * count + self.right


def feature_matrix(offsets: NDArray[np.int64], hashes: NDArray[np.uint64], measure: str) -> Any:
    """Return documents as rows of a sparse matrix, the rarest features in the first columns.

    For "jaccard" a feature counts once; for "cosine" as often as it occurs, in rows of length 1.
    """
    sparse = import_module("scipy.sparse")
    count = len(offsets) - 1
    rows = np.repeat(np.arange(count), np.diff(offsets))
    _, columns, frequency = np.unique(hashes, return_inverse=True, return_counts=True)
    width = max(1, len(frequency))
    cells, times = np.unique(rows * width + columns, return_counts=True)
    rows, columns = np.divmod(cells, width)
    frequency = np.bincount(columns, minlength=width)
    place = np.empty(width, np.int64)
    place[np.argsort(frequency, kind="stable")] = np.arange(width)
    values = np.ones(len(cells)) if measure == "jaccard" else times.astype(np.float64)
    matrix = sparse.csr_matrix((values, (rows, place[columns])), shape=(count, width))
    matrix.sort_indices()
    if measure == "cosine":
        lengths = np.sqrt(_sums(matrix, matrix.data**2))
        matrix.data /= np.repeat(np.maximum(lengths, 1e-300), np.diff(matrix.indptr))
    return matrix


def near_pairs(matrix: Any, measure: str, threshold: float) -> NearPairs:
    """Return every pair of rows with at least this similarity; empty rows have none."""
    prefixes = _prefixes(matrix, measure, threshold)
    work = (np.bincount(prefixes.indices).astype(np.float64) ** 2).sum()
    if measure == "cosine" and work > MUCH_WORK:
        candidates = _all_compared(matrix, threshold - SINGLE_PRECISION)
    else:
        candidates = _sharing(prefixes)
    found = [_near(matrix, left, right, measure, threshold) for left, right in candidates]
    left, right, similarity = (
        np.concatenate([each[column] for each in found]) if found else np.empty(0, kind)
        for column, kind in enumerate((np.int64, np.int64, np.float64))
    )
    order = np.lexsort((right, left))
    return NearPairs(left[order], right[order], similarity[order])


def confirm(
    matrix: Any, measure: str, threshold: float, found: NearPairs, rows: NDArray[np.int64]
) -> None:
    """Compare some rows with all others; raise `WrongAnswerError` if a pair was not found."""
    count = matrix.shape[0]
    known = set(found.keys(count).tolist())
    sizes = np.diff(matrix.indptr)
    for row in rows.tolist():
        similar = (matrix @ matrix[[row]].T).toarray().ravel()
        if measure == "jaccard":
            similar /= np.maximum(1, sizes[row] + sizes - similar)
        near = np.flatnonzero(similar >= threshold + ROUNDING)
        for other in near[near != row].tolist():
            if min(row, other) * count + max(row, other) not in known:
                raise WrongAnswerError(f"the exhaustive search has missed {row} and {other}")


def _prefixes(matrix: Any, measure: str, threshold: float) -> Any:
    """Return the matrix without what alone cannot reach the threshold, and unshared columns."""
    sparse = import_module("scipy.sparse")
    sizes = np.diff(matrix.indptr)
    rows = np.repeat(np.arange(matrix.shape[0]), sizes)
    if measure == "jaccard":
        # Of n features, at least threshold * n must be shared, with whomever.
        lengths = sizes - np.ceil(threshold * sizes - ROUNDING).astype(np.int64) + 1
        inside = np.arange(matrix.nnz) - matrix.indptr[rows] < lengths[rows]
    else:
        # By Cauchy and Schwarz, the rest has a product of at most its own length with anyone.
        sums = np.concatenate([[0.0], np.cumsum(matrix.data**2)])
        rest = sums[matrix.indptr[rows + 1]] - sums[:-1]
        inside = rest >= threshold**2 - ROUNDING
    columns = matrix.indices[inside]
    shared = np.bincount(columns, minlength=matrix.shape[1])[columns] > 1
    cells = (rows[inside][shared], columns[shared])
    return sparse.csr_matrix((np.ones(len(cells[0]), np.float32), cells), shape=matrix.shape)


def _sharing(prefixes: Any) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield all pairs of rows that have a column in common, the left one first."""
    others = prefixes.T.tocsr()
    lists = np.diff(others.indptr)
    costs = np.cumsum(_sums(prefixes, lists[prefixes.indices].astype(np.float64)))
    begin = 0
    while begin < prefixes.shape[0]:
        before = costs[begin - 1] if begin else 0.0
        end = max(begin + 1, int(np.searchsorted(costs, before + WORK, side="right")))
        common = (prefixes[begin:end] @ others).tocoo()
        left, right = common.row.astype(np.int64) + begin, common.col.astype(np.int64)
        yield left[left < right], right[left < right]
        begin = end


def _all_compared(
    matrix: Any, threshold: float
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield all pairs of rows whose product, in single precision, is at least the threshold."""
    split = max(0, matrix.shape[1] - FREQUENT)
    frequent = np.ascontiguousarray(matrix[:, split:].toarray(), np.float32)
    rare = matrix[:, :split].astype(np.float32)
    rare_columns = rare.T.tocsc()
    for begin in range(0, matrix.shape[0], ROWS_AT_A_TIME):
        rows = slice(begin, begin + ROWS_AT_A_TIME)
        products = frequent[rows] @ frequent[begin:].T
        products += (rare[rows] @ rare_columns[:, begin:]).toarray()
        left, right = np.nonzero(products >= threshold)
        above = left < right
        yield left[above] + begin, right[above] + begin


def _near(
    matrix: Any, left: NDArray[np.int64], right: NDArray[np.int64], measure: str, threshold: float
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    if measure == "jaccard":
        sizes = np.diff(matrix.indptr)
        fitting = (
            np.minimum(sizes[left], sizes[right])
            >= threshold * np.maximum(sizes[left], sizes[right]) - ROUNDING
        )
        left, right = left[fitting], right[fitting]
    similarity = _similarities(matrix, left, right, measure)
    near = similarity >= threshold
    return left[near], right[near], similarity[near]


def _similarities(
    matrix: Any, left: NDArray[np.int64], right: NDArray[np.int64], measure: str
) -> NDArray[np.float64]:
    found = np.empty(len(left))
    sizes = np.diff(matrix.indptr)
    for begin in range(0, len(left), PAIRS_AT_A_TIME):
        part = slice(begin, begin + PAIRS_AT_A_TIME)
        one, two = left[part], right[part]
        common = np.asarray(matrix[one].multiply(matrix[two]).sum(axis=1)).ravel()
        if measure == "jaccard":
            common = common / np.maximum(1, sizes[one] + sizes[two] - common)
        found[part] = common
    return found


def _sums(matrix: Any, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sum of the values in each row."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    summed: NDArray[np.float64] = sums[matrix.indptr[1:]] - sums[matrix.indptr[:-1]]
    return summed
