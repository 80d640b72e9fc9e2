"""What signatures and queries are like, measured on some of them in place of assumed.

A few queries are compared with a few thousand signatures, slice by slice; how many of these have a
slice in common tells how long the lists of a whole collection will be, without building them.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.indexes.scan import ScanIndex
from lookalike.planning.question import Question

__all__ = ["Sample", "Work"]

Signatures = NDArray[np.uint8]
Work = tuple[float, float, float]
"""Lists looked up, entries of them, and signatures compared."""

_QUERIES = 32
_ROWS = 8192
_SEED = 11


class Sample:
    """Some queries, some signatures of all that were given, and the nearest of all of them.

    Queries that are not given are signatures of the sample, each looked for among the others.
    """

    def __init__(self, signatures: Signatures, queries: Signatures | None) -> None:
        generator = np.random.default_rng(_SEED)
        places = np.arange(0)
        if queries is None:
            places = np.sort(generator.permutation(len(signatures))[:_QUERIES])
            queries = signatures[places]
        asked = np.sort(generator.permutation(len(queries))[:_QUERIES])
        self.queries = np.ascontiguousarray(queries[asked])
        self.given = len(signatures) - (1 if len(places) else 0)
        """How many signatures a query was looked for among."""
        others = np.setdiff1d(np.arange(len(signatures)), places, assume_unique=True)
        chosen = np.sort(generator.permutation(others)[:_ROWS]) if len(others) else places
        self.part = np.ascontiguousarray(signatures[chosen])
        self._all, self._own = signatures, places
        self._levels: dict[tuple[int, int], tuple[NDArray[np.int64], NDArray[np.int64]]] = {}

    def matches(self, question: Question, radius: int) -> float:
        """Return how many signatures are within a radius of a query, on average."""
        return question.count * float((self._distances <= radius).mean())

    def within(self, question: Question, radius: int, slice_bits: int) -> list[Work | None]:
        """Return what each query takes within a radius; None where the index scans."""
        levels, near = self._counted(slice_bits, radius)
        widths = _native.slice_widths(question.bits, slice_bits)
        lists = np.array(
            [[math.comb(width, ones) for ones in range(widths[0] + 1)] for width in widths], float
        )
        lengths = self._at_full_size(levels, question.count) / np.maximum(lists, 1)
        compared = near.sum(axis=0) / np.maximum(levels.sum(axis=0), 1)
        return [
            _native.expected_work(
                question.bits, slice_bits, question.count, radius, question.batch, each, compared
            )
            for each in lengths
        ]

    def nearest(
        self, question: Question, slice_bits: int, most: int, rerank: int
    ) -> list[tuple[float, float, float]]:
        """Return postings, candidates and recall of a query, on average, for 0 to `most` bits.

        A neighbour is found if no more than `rerank` signatures have a better score than it has.
        """
        levels, _ = self._counted(slice_bits, 0)
        scale = question.count / len(self.part)
        postings = scale * levels.sum(axis=1).mean(axis=0).cumsum()
        scores = _scores(self.part, self.queries, slice_bits, most)
        near = self._neighbours(question)
        pairs = _scores(near.reshape(-1, near.shape[2]), self.queries, slice_bits, most)
        own = np.arange(near.shape[0] * near.shape[1]).reshape(near.shape[:2])
        place = min(int(rerank / scale), len(self.part) - 1)
        steps = []
        for expand in range(most + 1):
            every = -np.partition(-scores[expand], place, axis=1)
            least = every[:, place, None] if rerank < question.count else np.zeros((len(every), 1))
            reached = np.take_along_axis(pairs[expand], own, axis=1)
            # Of equal scores, about half are among the best.
            found = np.where(reached == least, 0.5, reached > least)
            recall = float(
                np.where((least == 0) & (reached > 0), 1.0, found * (reached > 0)).mean()
            )
            steps.append(
                (float(postings[expand]), question.count * float((every > 0).mean()), recall)
            )
        return steps

    def bucket_rows(self, question: Question, widths: list[int], lead: int) -> float:
        """Return how many signatures the buckets of a query have, of tables led by blocks."""
        starts = np.concatenate([[0], np.cumsum(widths)[:-1]])
        pairs = 0.0
        part = self.part[: _ROWS * 64 // max(64, question.bits)]
        choices = np.array([math.comb(equal, lead) for equal in range(len(widths) + 1)], float)
        for query in self.queries:
            differing = np.unpackbits(part ^ query, axis=1, bitorder="little")
            equal = (np.add.reduceat(differing, starts, axis=1, dtype=np.int32) == 0).sum(axis=1)
            pairs += float(choices[equal].sum())
        return question.count * pairs / (len(self.queries) * len(part))

    def header_rows(self, question: Question, start: int, bits: int) -> float:
        """Return how many signatures agree with a query in bits from `start` on."""
        header = slice(start, start + bits)
        differing = [
            np.unpackbits(self.part ^ query, axis=1, bitorder="little")[:, header].any(axis=1)
            for query in self.queries
        ]
        return question.count * (1 - float(np.mean(differing)))

    @cached_property
    def _distances(self) -> NDArray[np.int32]:
        distances = np.empty((len(self.queries), len(self.part)), np.int32)
        _native.scan_all(self.queries, self.part, 1, distances)
        return distances

    def _neighbours(self, question: Question) -> NDArray[np.uint8]:
        """Return signatures as near as the k nearest of the whole collection will be."""
        k = max(1, round((question.k or 1) * self.given / question.count))
        extra = 1 if len(self._own) else 0
        found = ScanIndex(self._all).search(self.queries, min(k + extra, len(self._all))).ids
        if extra:  # a query is no neighbour of its own
            others = found != self._own[: len(found), None]
            others[others.all(axis=1), -1] = False
            found = found[others].reshape(len(found), -1)
        return self._all[found]

    def _counted(self, slice_bits: int, radius: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return how many differ in so many bits of each slice, and have a near sketch."""
        if (slice_bits, radius) not in self._levels:
            widths = _native.slice_widths(8 * self.part.shape[1], slice_bits)
            shape = len(self.queries), len(widths), widths[0] + 1
            levels, near = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
            _native.slice_levels(self.part, self.queries, slice_bits, radius, levels, near)
            self._levels[slice_bits, radius] = levels, near
        return self._levels[slice_bits, radius]

    def _at_full_size(self, counts: NDArray[np.int64], count: int) -> NDArray[np.float64]:
        """Return how many there will be of a whole collection, by what is in the sample.

        Of a value that few have, a sample has none or one. What it has is weighed against what
        others of the same sort have: fully where all are alike, not at all where they differ more
        than by chance (Poisson counts whose means have a gamma distribution).
        """
        scale = max(1.0, count / len(self.part))
        mean = counts.mean(axis=(0, 1))
        more = np.maximum(counts.var(axis=(0, 1)) - mean, 1e-9)
        shape = np.maximum(mean, 1e-12) ** 2 / more
        expected = (counts + shape) / (1 + shape / np.maximum(mean, 1e-12))
        whole: NDArray[np.float64] = counts + (scale - 1) * expected
        return whole


def _scores(rows: Signatures, queries: Signatures, slice_bits: int, most: int) -> NDArray[np.int32]:
    scores = np.zeros((most + 1, len(queries), len(rows)), np.int32)
    _native.slice_scores(np.ascontiguousarray(rows), queries, slice_bits, scores)
    return scores
