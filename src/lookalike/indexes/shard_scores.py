"""What shards of slices have found, as one answer: the best of all by score, and the nearest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.indexes.merging import nearest_of, padded
from lookalike.indexes.results import Explanation, Neighbors
from lookalike.indexes.slices.core_answer import CoreAnswer
from lookalike.indexes.slices.search import Settings

__all__ = ["best_of_shards", "told_together"]


def best_of_shards(
    tops: list[CoreAnswer],
    ids: NDArray[np.int64],
    k: int,
    settings: Settings,
    bits: int,
    slice_bits: int,
    explain: bool,
) -> Neighbors:
    """Return the k nearest of the best candidates of all shards, whose ids are these.

    Or, if none are to be re-ranked, the best themselves.
    """
    expand, admit, rerank, _ = settings
    alone, rerank = not rerank, rerank or k
    distances = np.concatenate([top.distances for top in tops], axis=1)
    scores = np.concatenate([top.scores for top in tops], axis=1)
    rest = np.max([top.rest for top in tops], axis=0)
    order = np.lexsort((ids, -scores), axis=1)
    if order.shape[1] > rerank:
        cut = np.take_along_axis(scores, order[:, rerank : rerank + 1], axis=1)[:, 0]
        rest = np.maximum(rest, cut)
        order = order[:, :rerank]
    ids, distances, scores = (
        np.take_along_axis(array, order, axis=1) for array in (ids, distances, scores)
    )
    alive = sum(top.alive for top in tops)
    merged = CoreAnswer(len(ids), k, alive)
    merged.work[:] = np.sum([top.work for top in tops], axis=0)
    merged.work[4] = expand
    if alone:
        merged.ids, merged.distances, merged.scores = ids, distances, scores
        merged.proven[:] = 0
    else:
        merged.ids, merged.distances, merged.scores = nearest_of(ids, distances, k, scores)
        kth = np.ascontiguousarray(merged.distances[:, -1])
        _native.slice_proofs(bits, slice_bits, expand, admit, rest, kth, merged.proven)
        merged.proven |= (ids >= 0).sum(axis=1) == alive  # nothing is left to be found
        merged.work[3] = (ids >= 0).sum(axis=1)
    explanation = merged.explanation(bits, slice_bits, k) if explain else None
    exact = bool(merged.proven.all())
    near, far, best = (padded(each, k) for each in (merged.ids, merged.distances, merged.scores))
    return Neighbors(near, far, exact, explanation, best)


def told_together(results: list[Neighbors]) -> Explanation | None:
    """Return what all shards did together; None if one of them does not tell."""
    parts = [result.explanation for result in results if result.explanation]
    if len(parts) < len(results):
        return None
    return Explanation(
        np.logical_and.reduce([part.exact for part in parts]),
        *(
            np.sum([getattr(part, name) for part in parts], axis=0)
            for name in ("lists", "postings", "candidates", "reranked")
        ),
    )
