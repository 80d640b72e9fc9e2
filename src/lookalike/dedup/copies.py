"""Pairs of different texts, and what they mean for documents of which there are copies."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lookalike.dedup.pairs.verify import VerifiedPairs, in_order

__all__ = ["count_every_pair", "count_with_copies", "every_pair", "with_copies"]

_PAIRS_AT_A_TIME = 1 << 20


def with_copies(
    pairs: VerifiedPairs, first: NDArray[np.int64], old: int
) -> Iterator[VerifiedPairs]:
    """Yield the pairs, and equal texts with their first, by (left, right); of new documents, each
    text is paired once.
    """
    copies = np.flatnonzero(first != np.arange(len(first)))
    copies = copies[copies >= old]
    similarity, distance = np.ones(len(copies)), np.zeros(len(copies), np.int32)
    yield in_order([pairs, VerifiedPairs(first[copies], copies, similarity, distance)])


def count_with_copies(pairs: VerifiedPairs, first: NDArray[np.int64], old: int) -> int:
    """Return how many `with_copies` yields."""
    return len(pairs) + int(np.count_nonzero((first != np.arange(len(first)))[old:]))


def count_every_pair(pairs: VerifiedPairs, first: NDArray[np.int64], old: int) -> int:
    """Return how many `every_pair` yields. Without copies, it is the number of pairs."""
    all_sizes = np.bincount(first, minlength=len(first))
    old_sizes = np.bincount(first[:old], minlength=len(first))
    between = sum(
        int((sizes[pairs.left] * sizes[pairs.right]).sum()) * sign
        for sizes, sign in ((all_sizes, 1), (old_sizes, -1))
    )
    inside = all_sizes * (all_sizes - 1) // 2 - old_sizes * (old_sizes - 1) // 2
    return between + int(inside.sum())


def every_pair(pairs: VerifiedPairs, first: NDArray[np.int64], old: int) -> Iterator[VerifiedPairs]:
    """Yield every pair of documents, by (left, right), about a million at a time.

    Each copy of a text is paired with the other copies, and with all copies of whatever text the
    pairs have for it; two old documents are no pair.
    """
    count = len(first)
    if (first == np.arange(count)).all():
        for begin in range(0, max(1, len(pairs)), _PAIRS_AT_A_TIME):
            yield pairs[np.arange(begin, min(len(pairs), begin + _PAIRS_AT_A_TIME))]
        return
    members = np.argsort(first, kind="stable")
    sizes = np.bincount(first, minlength=count)
    begins = np.cumsum(sizes) - sizes
    # What each text is paired with: others, in both directions, and itself.
    texts = np.flatnonzero(sizes)
    one = np.concatenate([pairs.left, pairs.right, texts])
    order = np.argsort(one, kind="stable")
    two = np.concatenate([pairs.right, pairs.left, texts])[order]
    similarity = np.concatenate([pairs.similarity] * 2 + [np.ones(len(texts))])[order]
    distance = np.concatenate([pairs.distance] * 2 + [np.zeros(len(texts), np.int32)])[order]
    degrees = np.bincount(one, minlength=count)
    edges = np.cumsum(degrees) - degrees
    partners = np.bincount(one[order], sizes[two], minlength=count).astype(np.int64)[first]
    parts = np.cumsum(partners) // _PAIRS_AT_A_TIME
    bounds = np.flatnonzero(np.diff(parts, prepend=-1, append=-1))
    for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        documents = np.arange(begin, end)
        left, edge = _spread(documents, edges[first[documents]], degrees[first[documents]])
        place, member = _spread(np.arange(len(edge)), begins[two[edge]], sizes[two[edge]])
        left, edge, right = left[place], edge[place], members[member]
        wanted = np.flatnonzero((right > left) & (right >= old))
        wanted = wanted[np.lexsort((right[wanted], left[wanted]))]
        left, edge, right = left[wanted], edge[wanted], right[wanted]
        yield VerifiedPairs(left, right, similarity[edge], distance[edge])


def _spread(
    values: NDArray[np.int64], begins: NDArray[np.int64], counts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return each value as often as its count says, beside the places from its beginning on."""
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(values, counts), np.repeat(begins, counts) + within
