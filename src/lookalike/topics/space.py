"""Documents as points: TF-IDF of their features in a few dimensions (latent semantic analysis).

A feature in `t` places of a document and in `d` of the `n` documents of a sample weighs

    (1 + log t) * log(1 + n / d) ** 1.5 * b

where `b` is 1 for features that come in bursts, and lower for function words, which come at random.
Words that are known to say nothing about topics weigh next to nothing.
The features that explain most of the sample are the columns of a matrix with rows of length 1. A
randomized singular value decomposition finds the directions in which the rows differ most. A
document is the point on the unit sphere in that direction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.dedup.pairs import Ints
from lookalike.topics.blocks import each_block
from lookalike.topics.listed import Listed, is_among, places_of

Points = NDArray[np.float32]
"""float32[n, dimensions]: rows of length 1; of length 0 for documents without known features."""

MOST_COLUMNS = 4096
_FEW_DIMENSIONS, MOST_DIMENSIONS = 8, 64
_DECOMPOSED = 4096
"""Rows that the directions are computed from."""
_ITERATIONS = 2
_IDF_POWER = 1.5
_RARE, _RARE_SHARE = 5, 0.02
"""Features in fewer documents than this, or than this share, weigh less: few can have them."""
_BURSTY, _STEADY = 0.5, 0.1
"""Residual IDF from which a feature has its full weight, and what is added to it before."""
_KNOWN = 40
"""Documents with a feature from which its residual IDF is believed."""
_ROWS = 512
"""Rows of a product that a thread computes at a time."""
_MEANINGLESS = 0.01
"""Factor of the weights of words that say nothing about topics."""


@dataclass(frozen=True, eq=False)
class Entries:
    """The known features of documents: where they are in the matrix."""

    documents: int
    rows: Ints
    columns: Ints
    counts: NDArray[np.float64]
    lengths: NDArray[np.float64]
    """The number of occurrences of all features in each document."""

    @property
    def having(self) -> NDArray[np.bool_]:
        """Which documents have a known feature."""
        return np.bincount(self.rows, minlength=self.documents) > 0


@dataclass(frozen=True, eq=False)
class TopicSpace:
    """What turns documents into points; learned from a sample."""

    features: NDArray[np.uint64]
    """The feature of each column, ascending."""
    weights: NDArray[np.float64]
    """The weight of each column."""
    directions: NDArray[np.float32]
    """float32[columns, dimensions]."""

    @classmethod
    def fit(
        cls, sample: Listed, seed: int, threads: int, meaningless: NDArray[np.uint64]
    ) -> TopicSpace:
        """Learn columns and directions from a sample of documents.

        `meaningless` are features that say nothing about topics, ascending.
        """
        columns, weights = _columns(sample, meaningless)
        space = cls(columns, weights, np.empty((len(columns), 0), np.float32))
        some = space.entries(sample.part(0, min(len(sample), _DECOMPOSED)))
        matrix = np.zeros((some.documents, len(columns)), np.float32)
        matrix[some.rows, some.columns] = space._values(some)
        return cls(columns, weights, _directions(matrix, seed, threads))

    def entries(self, listed: Listed) -> Entries:
        """Find the known features of documents."""
        places = places_of(listed.features, self.features)
        known = np.flatnonzero(places >= 0)
        return Entries(
            len(listed), listed.rows[known], places[known], listed.counts[known], listed.lengths
        )

    def points(self, entries: Entries, threads: int) -> Points:
        """Return the documents as points."""
        found = np.empty((entries.documents, self.directions.shape[1]), np.float32)
        counts = np.bincount(entries.rows, minlength=entries.documents)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        directions = np.ascontiguousarray(self.directions)
        _native.multiply_rows(
            offsets, entries.columns, self._values(entries), directions, threads, found
        )
        return unit(found)

    def _values(self, entries: Entries) -> NDArray[np.float32]:
        """Return the values of the matrix."""
        values = (1.0 + np.log(np.maximum(entries.counts, 1.0))) * self.weights[entries.columns]
        lengths = np.sqrt(np.bincount(entries.rows, values * values, minlength=entries.documents))
        return (values / lengths[entries.rows]).astype(np.float32)


def unit(rows: NDArray[np.float32]) -> Points:
    """Return rows of length 1; those of length 0 stay."""
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    found: Points = np.divide(rows, np.where(lengths > 1e-6, lengths, np.float32(1.0)))
    return found


def _columns(
    sample: Listed, meaningless: NDArray[np.uint64]
) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
    """Return the features that explain most, ascending, with their weights.

    Meaningless features are columns, too, so that a document with no others has a place.
    """
    documents, ordered = len(sample), np.sort(sample.features)
    begins = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]][: len(ordered)])
    every, having = ordered[begins], np.diff(np.r_[begins, len(ordered)]).astype(np.int64)
    weights = np.log1p(documents / np.maximum(having, 1)) ** _IDF_POWER
    weights *= np.minimum(1.0, having / min(max(1.0, documents * _RARE_SHARE), _RARE))
    says_nothing = is_among(every, meaningless)
    scores = having * weights * weights
    scores[says_nothing] *= _MEANINGLESS**2
    some = _best(every, scores, 2 * MOST_COLUMNS)
    every, having, weights = every[some], having[some], weights[some]
    entries = TopicSpace(every, weights, np.empty((len(every), 0), np.float32)).entries(sample)
    found = np.bincount(entries.columns, entries.counts, minlength=len(every)).astype(np.float64)
    weights *= _burstiness(having, found, documents)
    weights[says_nothing[some]] *= _MEANINGLESS
    some = _best(every, having * weights * weights, MOST_COLUMNS)
    return every[some], weights[some]


def _best(features: NDArray[np.uint64], scores: NDArray[np.float64], most: int) -> Ints:
    """Return the positions of the highest scores, ascending."""
    return np.sort(np.lexsort((features, -scores))[:most])


def _burstiness(having: Ints, found: NDArray[np.float64], documents: int) -> NDArray[np.float64]:
    """Return 1 for features that come in bursts, and less for those that come at random.

    The measure is residual IDF: in how many documents `found` places at random would be, beside
    the documents that have the feature. It is near 0 for function words of any language. Features
    in few documents are given the benefit of the doubt.
    """
    at_random = documents * -np.expm1(-found / max(1, documents))
    residual = np.log2(np.maximum(at_random / np.maximum(having, 1), 1.0))
    bursty = np.minimum(1.0, (_STEADY + residual) / (_STEADY + _BURSTY))
    return 1.0 - (1.0 - bursty) * np.minimum(1.0, having / _KNOWN)


def _directions(matrix: NDArray[np.float32], seed: int, threads: int) -> NDArray[np.float32]:
    """Return directions that span the right singular vectors of the largest singular values.

    They are found by iterating from random directions (Halko et al.). Cosines do not depend on how
    they are turned. A small sample gets few dimensions: more would separate documents, not topics.
    """
    documents, columns = matrix.shape
    dimensions = min(MOST_DIMENSIONS, max(_FEW_DIMENSIONS, math.isqrt(documents)))
    random = np.random.default_rng(seed)
    found: NDArray[np.float32] = random.standard_normal(
        (columns, min(dimensions, documents, columns)), dtype=np.float32
    )
    for _ in range(_ITERATIONS):
        found = np.linalg.qr(_product(matrix.T, _product(matrix, found, threads), threads))[0]
    return found


def _product(
    one: NDArray[np.float32], two: NDArray[np.float32], threads: int
) -> NDArray[np.float32]:
    found = np.empty((len(one), two.shape[1]), np.float32)

    def compute(begin: int, end: int) -> None:
        np.matmul(one[begin:end], two, out=found[begin:end])

    each_block(len(one), _ROWS, threads, compute)
    return found
