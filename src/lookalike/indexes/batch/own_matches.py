"""Queries of a batch that are near others of the same batch."""

from __future__ import annotations

import numpy as np

from lookalike.errors import ResultTooLargeError
from lookalike.indexes.all_pairs import pairs_of_rows
from lookalike.indexes.base import DEFAULT_LIMIT
from lookalike.indexes.batch.chunks import Ids, MatchesSoFar, Signatures
from lookalike.indexes.results import too_many_matches

__all__ = ["OwnMatches"]


class OwnMatches:
    """Each query with those before it, exactly."""

    def __init__(self, queries: Signatures, radius: int, threads: int) -> None:
        self._queries = queries
        self._radius = radius
        self._threads = threads
        self._part: int | None = None
        """Which part of the matches is theirs."""

    def match(self, found: MatchesSoFar) -> None:
        """Add the matches, with positions in the batch in place of ids, which are not known yet."""
        positions = np.arange(len(self._queries))
        # The nearest one is the first of its equals, so that others are not needed; of the pairs
        # that are left, one is kept for each query, so that the limit is not of these.
        most = max(found.limit, DEFAULT_LIMIT) if found.first else found.limit
        try:
            pairs = pairs_of_rows(
                self._queries, positions, self._radius, most, found.first, self._threads
            )
        except ResultTooLargeError:
            raise too_many_matches(most, self._radius, found.queries) from None
        earlier = np.minimum(pairs.left, pairs.right)
        later = np.maximum(pairs.left, pairs.right)
        order = np.lexsort((earlier, pairs.distances, later))
        self._part = len(found.parts)
        found.add(later[order], earlier[order], pairs.distances[order])

    def name(self, found: MatchesSoFar, ids: Ids) -> None:
        """Put the ids of the queries in place of their positions."""
        if self._part is not None:
            query, positions, distances = found.parts[self._part]
            found.parts[self._part] = query, ids[positions], distances
