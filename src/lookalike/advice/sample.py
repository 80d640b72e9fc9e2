"""Properties of signatures and queries, and the recall of an index, measured on a sample.

`Sample` counts steps: a few queries are compared with a few thousand signatures, slice by slice.
The number of signatures that share a slice predicts the length of lists in the whole collection.

`Trial` measures recall before an index is recommended. If there are fewer signatures than in the
collection, the trial is scaled down: a search that compares the best 1000 of a million compares the
best 100 of a tenth of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.advice.evaluation import searched_index
from lookalike.advice.measures import recall_at_k
from lookalike.advice.planner import Question
from lookalike.indexes.base import Index
from lookalike.indexes.clusters.groups import group_count
from lookalike.indexes.kinds import KINDS
from lookalike.indexes.results import Neighbors
from lookalike.indexes.rows import Signatures
from lookalike.indexes.scan import ScanIndex
from lookalike.indexes.slices.search import usual_compared
from lookalike.indexes.tables.sorted_table import Runs
from lookalike.indexes.tuning import Option, build_option, other_columns, sampling_error

Work = tuple[float, float, float]  # lists looked up, entries of them, and signatures compared
_QUERIES = 32
_ROWS = 8192
_MATCHED_QUERIES = 256  # for the number of matches, most of which a few queries have
_NEAREST_QUERIES = 64
_NEAREST_ROWS = 2048  # for the share of neighbors that is expected to be found; a trial measures it
_SEED = 11
_ALIKE = 8  # lists on either side of one, in order of density, that are like it


class Sample:
    """Some queries and signatures. Queries that are not given are searched for among the others."""

    def __init__(self, signatures: Signatures, queries: Signatures | None) -> None:
        generator = np.random.default_rng(_SEED)
        self._asked = queries
        self._trial: Trial | None = None
        places = np.arange(0)
        if queries is None:
            places = generator.permutation(len(signatures))[:_MATCHED_QUERIES]
            queries = signatures[places]
        else:
            queries = queries[generator.permutation(len(queries))[:_MATCHED_QUERIES]]
        self.queries = np.ascontiguousarray(queries)
        self.given = len(signatures) - (1 if len(places) else 0)
        """How many signatures a query was looked for among."""
        others = np.setdiff1d(np.arange(len(signatures)), places, assume_unique=True)
        chosen = generator.permutation(others)[:_ROWS] if len(others) else places
        self.part = np.ascontiguousarray(signatures[chosen])
        self._all, self._own = signatures, places
        self._levels: dict[tuple[int, int], tuple[NDArray[np.int64], NDArray[np.int64]]] = {}

    def trial(self, question: Question) -> Trial:
        """Return the trial that measures recall; one per sample."""
        if self._trial is None:
            self._trial = Trial(self._all, self._asked, question, _SEED)
        return self._trial

    def matches(self, question: Question, radius: int) -> float:
        """Return the mean number of signatures within a radius of a query."""
        return question.count * float((self._distances <= radius).mean())

    def within(self, question: Question, radius: int, slice_bits: int) -> list[Work | None]:
        """Return the work of each query within a radius; None if the index scans."""
        levels, near = self._counted(slice_bits, radius)
        widths = _native.slice_widths(question.bits, slice_bits)
        lists = np.array(
            [[math.comb(width, ones) for ones in range(widths[0] + 1)] for width in widths], float
        )
        lengths = self._at_full_size(levels, question.count) / np.maximum(lists, 1)
        compared = near.sum(axis=0) / np.maximum(levels.sum(axis=0), 1)
        return [
            _native.expected_work(
                question.bits, slice_bits, question.count, radius, question.together, each, compared
            )
            for each in lengths
        ]

    def nearest(
        self, question: Question, slice_bits: int, most: int, rerank: int
    ) -> list[tuple[float, float, float]]:
        """Return mean postings, candidates and recall of a query, for 0 to `most` bits.

        A neighbor is found if at most `rerank` signatures have a better score.
        """
        levels, _ = self._counted(slice_bits, 0)
        postings = levels.sum(axis=1).mean(axis=0).cumsum() * question.count / len(self.part)
        part = self.part[:_NEAREST_ROWS]
        scale = question.count / len(part)
        queries = self.queries[:_NEAREST_QUERIES]
        scores = _scores(part, queries, slice_bits, most)
        near = self._neighbors(question)
        pairs = np.concatenate(  # of each query with its own neighbors
            [
                _scores(own, query[None], slice_bits, most)
                for own, query in zip(near, queries, strict=True)
            ],
            axis=1,
        )
        place = min(int(rerank / scale), len(part) - 1)
        wanted = np.arange(1, (question.k or 1) + 1) * min(1.0, self.given / question.count)
        steps = []
        for expand in range(most + 1):
            every = -np.partition(-scores[expand], place, axis=1)
            least = every[:, place, None] if rerank < question.count else np.zeros((len(every), 1))
            # Of those with the least score that is enough, as many as there is room for.
            above = (every > least).sum(axis=1, keepdims=True)
            ties = (every == least).sum(axis=1, keepdims=True)
            room = np.clip((rerank / scale - above) / np.maximum(ties, 1), 0, 1)
            found = np.where(pairs[expand] == least, room, pairs[expand] > least)
            found = np.where((least == 0) | (pairs[expand] == 0), pairs[expand] > 0, found)
            by_rank = found.mean(axis=0)  # interpolated from the neighbors in the sample
            recall = float(np.interp(wanted, np.arange(1, len(by_rank) + 1), by_rank).mean())
            steps.append(
                (float(postings[expand]), question.count * float((every > 0).mean()), recall)
            )
        return steps

    def bucket_rows(self, question: Question, headers: Iterable[Runs]) -> float:
        """Return the number of signatures that agree with a query in these headers, together."""
        pairs = 0
        for runs in headers:
            bits = np.zeros(question.bits, np.uint8)
            for start, width in runs:
                bits[start : start + width] = 1
            mask = np.packbits(bits, bitorder="little")
            places = np.flatnonzero(mask)
            part, queries = self.part[:, places], self.queries[:_QUERIES, places]
            pairs += sum(
                int((((part ^ query) & mask[places]) == 0).all(axis=1).sum()) for query in queries
            )
        return question.count * pairs / (len(self.queries[:_QUERIES]) * len(self.part))

    @cached_property
    def _distances(self) -> NDArray[np.int32]:
        # Of all queries: a few that have thousands of matches make up most of the mean.
        distances = np.empty((len(self.queries), len(self.part)), np.int32)
        _native.scan_all(self.queries, self.part, 1, distances)
        return distances

    def _neighbors(self, question: Question) -> Signatures:
        """Return the nearest of the sample that correspond to the k nearest of the collection."""
        k = question.k or 1
        if self.given < question.count:
            k = math.ceil(k * self.given / question.count)
        extra = 1 if len(self._own) else 0
        queries = self.queries[:_NEAREST_QUERIES]
        found = ScanIndex(self._all).search(queries, min(k + extra, len(self._all))).ids
        if extra:  # a query is not a neighbor of itself
            others = other_columns(found, self._own[: len(found)])
            found = found[others].reshape(len(found), -1)
        return self._all[found]

    def _counted(self, slice_bits: int, radius: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return numbers of signatures by differing bits of each slice, all and near ones."""
        if (slice_bits, radius) not in self._levels:
            widths = _native.slice_widths(8 * self.part.shape[1], slice_bits)
            queries = self.queries[:_QUERIES]
            shape = len(queries), len(widths), widths[0] + 1
            levels, near = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
            _native.slice_levels(self.part, queries, slice_bits, radius, levels, near)
            self._levels[slice_bits, radius] = levels, near
        return self._levels[slice_bits, radius]

    def _at_full_size(self, counts: NDArray[np.int64], count: int) -> NDArray[np.float64]:
        """Return the expected numbers in the whole collection.

        A rare value occurs once or never in a sample. It is weighed against lists of similar
        density (Poisson counts whose means have a gamma distribution).
        """
        scale = max(1.0, count / len(self.part))
        whole = counts.astype(np.float64)
        for level in range(counts.shape[2]):
            own, around = counts[..., level], counts[..., min(level + 1, counts.shape[2] - 1)]
            mean, variance = local_moments(own.ravel(), around.ravel())
            shape = mean**2 / np.maximum(variance - mean, 1e-9)
            expected = (own.ravel() + shape) / (1 + shape / mean)
            whole[..., level] += (scale - 1) * expected.reshape(own.shape)
        return whole


def local_moments(
    counts: NDArray[np.int64], by: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return for each count the mean and variance of those that are next to it in order of `by`."""
    order = np.argsort(by, kind="stable")
    sums = np.cumsum(np.stack([counts[order], counts[order] ** 2]), axis=1, dtype=np.float64)
    sums = np.concatenate([np.zeros((2, 1)), sums], axis=1)
    places = by[order]
    # All that are equal, and some more on both sides.
    first = np.maximum(np.searchsorted(places, by) - _ALIKE, 0)
    last = np.minimum(np.searchsorted(places, by, "right") + _ALIKE, len(places))
    mean, square = (sums[:, last] - sums[:, first]) / (last - first)
    return np.maximum(mean, 1e-12), square - mean**2


def _scores(rows: Signatures, queries: Signatures, slice_bits: int, most: int) -> NDArray[np.int32]:
    scores = np.zeros((most + 1, len(queries), len(rows)), np.int32)
    _native.slice_scores(np.ascontiguousarray(rows), queries, slice_bits, scores)
    return scores


# Recall

QUERIES = 512
_QUERY_SHARE = 8  # of signatures that are a part, at most one in this many is a query
_TRIAL_ROWS = 1 << 17  # least number of signatures of a trial, if that many were given
_THINNED = 64  # a trial of less than one in this many compares too few to tell
_GROUP_ROWS = 52  # of a trial: with fewer, large groups are not split as they will be


class Tried(NamedTuple):
    """What a trial showed."""

    recall: float  # the share of the nearest that was found
    error: float  # by how much the recall of other queries may differ, 19 times out of 20
    compared: float  # the share of the signatures that a query was compared with


class Trial:
    """Queries, signatures, and the nearest signatures of each query.

    With all signatures of a collection, the trial builds the final index, and a query is not its
    own neighbor. Otherwise queries are held out.
    """

    def __init__(
        self, signatures: Signatures, queries: Signatures | None, question: Question, seed: int
    ) -> None:
        generator = np.random.default_rng(seed)
        order = generator.permutation(len(signatures))
        most = max(_TRIAL_ROWS, -(-question.count // _THINNED), self.group_rows(question.count))
        whole = len(signatures) == question.count <= most
        self._own: NDArray[np.int64] | None = None
        self._held = 0
        if queries is not None:
            asked = queries[generator.permutation(len(queries))[:QUERIES]]
        elif whole:
            # The index that is tried is the one that will be built.
            self._own = order[:QUERIES]
            asked = signatures[self._own]
        else:
            self._held = max(1, min(QUERIES, len(signatures) // _QUERY_SHARE))
            asked, order = signatures[order[: self._held]], order[self._held :]
        self.queries = np.ascontiguousarray(asked)
        self._places = np.sort(order[:most])
        self._signatures, self._question = signatures, question
        self.share = len(self._places) / question.count  # which part of the collection there is
        self.k = max(1, math.ceil(self.share * (question.k or 1)))
        self._built: tuple[tuple[Any, ...], Index] | None = None

    @staticmethod
    def group_rows(count: int) -> int:
        """Return the number of signatures needed to try groups of this size."""
        return _GROUP_ROWS * group_count(count)

    def __len__(self) -> int:
        return len(self._places)

    def lacks(self, index: str) -> int | None:
        """Return the number of signatures needed to try an index, if there are fewer; else None."""
        count = self._question.count
        needed = -(-count // _THINNED)
        if index == "clusters":
            needed = max(needed, min(self.group_rows(count), 3 * count // 4))
        return needed + self._held if len(self) < min(needed, count - self._held) else None

    def tried(self, option: Option) -> Tried:
        """Build an option, unless it was built last, and search it."""
        key = option.index, *option.parameters.values()
        if self._built is None or self._built[0] != key:
            self._built = None  # makes room for the next
            self._built = key, build_option(option, self._rows)
        found = self._nearest(self._built[1], explain=True, **self._settings(option))
        shares = recall_at_k(self._others(found.ids), self._truth)
        work = found.explanation
        compared = 1.0 if work is None else float(work.candidates.mean()) / max(1, len(self))
        return Tried(float(shares.mean()), sampling_error(shares), compared)

    def groups(self, option: Option) -> int:
        """Return the number of groups of an option of clusters, after splits."""
        self.tried(option)
        if self._built is None:
            return int(option.parameters["clusters"])
        return int(self._built[1].stats()["clusters"])

    def _settings(self, option: Option) -> dict[str, Any]:
        """Return the search settings, scaled to the number of signatures."""
        settings: dict[str, Any] = dict(option.settings)
        if name := KINDS[option.index].compares:
            # All neighbors, and of other signatures the same share as in the whole collection.
            k = self._question.k or 1
            others = int(self.share * (usual_compared(k) - k))
            settings[name] = self.k + int(self._own is not None) + others
        return settings

    def _nearest(self, index: Index, **settings: Any) -> Neighbors:
        """Search for the queries."""
        return searched_index(index, self.queries, self.k + int(self._own is not None), **settings)

    def _others(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return all columns except that of the query itself, or the last."""
        if self._own is None:
            return ids
        others: NDArray[np.int64] = ids[other_columns(ids, self._own)].reshape(len(ids), -1)
        return others

    @cached_property
    def _rows(self) -> Signatures:
        return np.ascontiguousarray(self._signatures[self._places])

    @cached_property
    def _truth(self) -> NDArray[np.int64]:
        return self._others(self._nearest(ScanIndex(self._rows)).ids)
