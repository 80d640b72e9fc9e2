"""Step 7, choose: who stays, and whom the others are duplicates of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lookalike.dedup.pairs.verify import VerifiedPairs
from lookalike.dedup.read import DocumentTable
from lookalike.dedup.settings import DedupSettings

__all__ = ["choose_survivors", "ranks"]


def ranks(documents: DocumentTable, settings: DedupSettings) -> NDArray[np.int64]:
    """Return the place of each document in the order in which they are to survive, from 0.

    A total order: old documents before new ones, then by the rule, then by position. So the choice
    depends on nothing else.
    """
    count = len(documents)
    positions = np.arange(count)
    rule = settings.keep_rule.partition(":")[0]
    if rule == "first":
        return positions
    if rule == "last":
        value = -positions
    elif rule in ("longest", "shortest"):
        value = documents.texts.lengths * (-1 if rule == "longest" else 1)
    else:
        if documents.order is None:
            raise ValueError("the deciding column was not read")
        missing = documents.order < 0
        value = np.where(missing, count + 1, documents.order * (-1 if rule == "max" else 1))
    order = np.lexsort((positions, value, positions >= documents.old))
    rank = np.empty(count, np.int64)
    rank[order] = positions
    return rank


def choose_survivors(
    labels: NDArray[np.int64],
    first: NDArray[np.int64],
    rank: NDArray[np.int64],
    old: int,
    pairs: VerifiedPairs,
) -> NDArray[np.int64]:
    """Return for each document the one that it is a duplicate of; -1 for those that stay.

    Of each cluster the one of best rank stays. A new document that was paired with old ones is a
    duplicate of the most similar of these.

    With stars, each is paired with the one that it is a duplicate of, or equal to it: the best of a
    cluster is its centre, or equal to that, and nobody's duplicate. For no centre is paired with an
    old document: old ones rank first and are paired with new ones only, so each is a centre itself,
    and those paired with it are not.
    """
    best = np.full(len(labels), len(labels), np.int64)
    np.minimum.at(best, labels, rank)
    survivors = np.argsort(rank, kind="stable")[best[labels]]
    duplicate_of = np.where(survivors == np.arange(len(labels)), -1, survivors)
    if old:
        matched = (pairs.left < old) & (pairs.right >= old)
        left, right = pairs.left[matched], pairs.right[matched]
        order = np.lexsort((left, -pairs.similarity[matched], right))
        news, firsts = np.unique(right[order], return_index=True)
        match = np.full(len(labels), -1, np.int64)
        match[news] = left[order][firsts]
        match = match[first]  # equal texts have the same match
        equal_to_old = (first < old) & (np.arange(len(labels)) >= old)
        match[equal_to_old] = first[equal_to_old]
        duplicate_of = np.where(match >= 0, match, duplicate_of)
        duplicate_of[:old] = -1
    return duplicate_of
