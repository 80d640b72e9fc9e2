"""Who may stand for whom? Anybody for one that is like it; but what is contained, only in a larger
one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookalike.dedup.context import JobContext
from lookalike.dedup.distinct import distinct
from lookalike.dedup.pairs.verify import VerifiedPairs
from lookalike.dedup.read import DocumentTable
from lookalike.dedup.survivors.keep_function import GroupChoices

__all__ = ["Direction", "best_of_equals", "by_size", "direction", "orders"]

_AT_A_TIME = 1 << 15


@dataclass(frozen=True, eq=False)
class Direction:
    """The order in which documents are to stay, and between whom it decides."""

    rank: NDArray[np.int64]
    """A total order; old documents come first, whatever their size."""
    best: NDArray[np.int64]
    """The same, but the first of equal texts stands as high as the best of them."""
    old: int
    sizes: NDArray[np.int64] | None
    """Different features of documents; None where these do not matter."""

    def deciding(self, pairs: VerifiedPairs) -> VerifiedPairs:
        """Return the pairs of which the one of better rank may stand for the other.

        All but those of two old ones, and, for containment, of an old document inside a larger new
        one: the old one cannot go, and the new one has more than it. Of two new ones, the larger
        ranks before the smaller.
        """
        if not self.old:
            return pairs
        decided = pairs.right >= self.old
        if self.sizes is not None:
            larger = self.sizes[pairs.right] > self.sizes[pairs.left]
            decided &= (pairs.left >= self.old) | ~larger
        return pairs if decided.all() else pairs[decided]


def orders(
    job: JobContext,
    documents: DocumentTable,
    first: NDArray[np.int64],
    rank: NDArray[np.int64],
    choices: GroupChoices | None,
    pairs: VerifiedPairs,
) -> Callable[[VerifiedPairs], Direction]:
    """Return what gives the direction for more and more pairs of the documents that these have.

    It is always the same, unless a function of the caller's chooses, which is then asked.
    """
    if choices is None:
        same = direction(job, documents, first, rank, pairs)
        return lambda _: same

    def asked(pairs: VerifiedPairs) -> Direction:
        chosen = choices.ranks(pairs)
        return Direction(chosen, best_of_equals(chosen, first), documents.old, None)

    return asked


def direction(
    job: JobContext,
    documents: DocumentTable,
    first: NDArray[np.int64],
    rank: NDArray[np.int64],
    pairs: VerifiedPairs,
) -> Direction:
    """Return the direction for these pairs, and for others of the same documents.

    `first` is the first of equal texts, `rank` the order by the rule that was chosen. For
    containment the documents of the pairs are read once more, and those with more different
    features come first.
    """
    if job.settings.measure != "containment":
        return Direction(rank, best_of_equals(rank, first), documents.old, None)
    sizes = np.zeros(len(documents), np.int64)
    features = job.settings.feature_kind()
    paired = distinct(np.concatenate([pairs.left, pairs.right]))
    for begin in range(0, len(paired), _AT_A_TIME):
        some = paired[begin : begin + _AT_A_TIME]
        texts = documents.texts.documents.take(some)
        sizes[some] = features.counts(texts, distinct=True, threads=job.threads)
        documents.texts.release()
    return by_size(rank, first, documents.old, sizes)


def by_size(
    rank: NDArray[np.int64], first: NDArray[np.int64], old: int, sizes: NDArray[np.int64]
) -> Direction:
    """Return the direction for containment: of new documents, those with more different features
    come first. `sizes` are known of the first of equal texts.
    """
    sizes = sizes[first]
    order = np.lexsort((rank, -sizes, np.arange(len(rank)) >= old))
    larger_first = np.empty(len(rank), np.int64)
    larger_first[order] = np.arange(len(rank))
    return Direction(larger_first, best_of_equals(larger_first, first), old, sizes)


def best_of_equals(rank: NDArray[np.int64], first: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return ranks in which the first of equal texts stands as high as the best of them."""
    best = np.full(len(rank), len(rank), np.int64)
    np.minimum.at(best, first, rank)
    return np.where(best < len(rank), best, rank)
