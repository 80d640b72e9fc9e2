"""What searches of vectors return: ids and cosines, and whether that is all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.indexes.results import Explanation, Result

__all__ = ["VectorMatches", "VectorNeighbors", "VectorPairs"]


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class VectorNeighbors(Result):
    """The k most similar of each query, most similar first, ties by id.

    Where there are fewer than k, the rest of the row is -1 in `ids` and NaN in `similarities`.
    `result[i]` gives ids and cosines of query i without that padding.
    """

    ids: NDArray[np.int64]
    """int64[queries, k]"""
    similarities: NDArray[np.float64]
    """float64[queries, k]: true cosines of the vectors as they are held."""
    exact: bool
    """Whether these are the most similar of all: each was compared with the query."""
    explanation: Explanation | None = None
    """What the search did, if it was asked to explain: groups read are its `lists`, signatures in
    them its `postings`, cosines computed its `reranked`."""

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, query: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        found = self.ids[query] >= 0
        return self.ids[query][found], self.similarities[query][found]

    def __iter__(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        return (self[query] for query in range(len(self)))

    def __repr__(self) -> str:
        return f"VectorNeighbors(queries={len(self)}, k={self.ids.shape[1]}, exact={self.exact})"

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return `query`, `id` and `similarity` of every neighbour found."""
        query, rank = np.nonzero(self.ids >= 0)
        return {
            "query": query,
            "id": self.ids[query, rank],
            "similarity": self.similarities[query, rank],
        }


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class VectorMatches(Result):
    """Everything at least so similar to each query, most similar first, ties by id.

    The matches of query i are at `offsets[i]` to `offsets[i + 1]`; `result[i]` gives its ids and
    cosines.
    """

    offsets: NDArray[np.int64]
    """int64[queries + 1]"""
    ids: NDArray[np.int64]
    similarities: NDArray[np.float64]
    exact: bool
    """Whether nothing that similar is missing."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, query: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        query = range(len(self))[query]
        part = slice(self.offsets[query], self.offsets[query + 1])
        return self.ids[part], self.similarities[part]

    def __iter__(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        return (self[query] for query in range(len(self)))

    def __repr__(self) -> str:
        return f"VectorMatches(queries={len(self)}, matches={len(self.ids)}, exact={self.exact})"

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return `query`, `id` and `similarity` of every match."""
        query = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        return {"query": query, "id": self.ids, "similarity": self.similarities}


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class VectorPairs(Result):
    """Pairs of one collection that are at least so similar, each once with left < right, sorted."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    similarities: NDArray[np.float64]
    exact: bool
    """Whether no pair that similar is missing."""

    def __len__(self) -> int:
        return len(self.left)

    def __repr__(self) -> str:
        return f"VectorPairs(pairs={len(self)}, exact={self.exact})"

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return `left`, `right` and `similarity` of every pair."""
        return {"left": self.left, "right": self.right, "similarity": self.similarities}
