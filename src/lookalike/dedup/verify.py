"""Step 5, verify: the exact similarity of the documents decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import partial

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.dedup.pairs import (
    COLUMNS,
    Flags,
    Floats,
    Ints,
    VerifiedPairs,
    differing,
    in_order,
    most_similar,
    numbered,
)
from lookalike.dedup.propose import Candidates, promising, row_distances
from lookalike.dedup.rarity import FeatureWeights
from lookalike.dedup.settings import DedupSettings
from lookalike.dedup.sign import DedupJob, Signed
from lookalike.features import FeatureKind, Weights, similarity_pairs, unrounded
from lookalike.features.weights import RARITY_UNIT
from lookalike.jobs.work_folder import digest
from lookalike.signatures.arrays import distinct

_PAIRS_AT_A_TIME = 1 << 20
_BYTES_AT_A_TIME = 96 << 20
"""Of text whose features are in memory; they take about four times as much."""

_SORTED_AT_A_TIME = 1 << 22
_COUNTED_AT_A_TIME = 1 << 15


@dataclass(frozen=True, eq=False)
class Verdict:
    """The result of verification."""

    accepted: VerifiedPairs
    rejected: VerifiedPairs
    """The most similar pairs below the threshold, at most 200."""
    compared: int
    candidates: Candidates


def earlier_verdict(job: DedupJob, signed: Signed) -> Verdict | None:
    """Return the verdict of an earlier run, if there was one."""
    facts = job.work.facts("pairs", _key(job, signed))
    if facts is None:
        return None
    limited = facts["warnings"] or job.settings.common is not None
    if "partly_compared" not in facts and limited:
        return None  # of an earlier version, which did not count what was left out
    job.progress.reuse("propose", "verify")
    accepted, rejected = (
        VerifiedPairs(
            *(np.array(job.work.array(f"{name}.{part}", kind)) for part, kind in COLUMNS.items())
        )
        for name in ("accepted", "rejected")
    )
    known = {one.name: facts[one.name] for one in fields(Candidates) if one.name in facts}
    return Verdict(accepted, rejected, facts["compared"], Candidates(**known))


def complete(job: DedupJob, signed: Signed, verdict: Verdict) -> Verdict:
    """Save a verdict for a later run in the same folder, and return it."""
    work = job.work
    if work.temporary:
        return verdict
    files = []
    for name, pairs in (("accepted", verdict.accepted), ("rejected", verdict.rejected)):
        for column, dtype in COLUMNS.items():
            files.append(f"{name}.{column}")
            with work.writer(files[-1]) as file:
                file.write(np.ascontiguousarray(getattr(pairs, column), dtype).data)
    facts = {"compared": verdict.compared, **vars(verdict.candidates)}
    work.complete("pairs", _key(job, signed), facts, files)
    return verdict


def _key(job: DedupJob, signed: Signed) -> str:
    chosen = ["threshold", "radius", "verify", "keep_rule", "exact", "measure"]
    chosen += ["common"] if job.settings.common is not None else []  # which is newer than files
    return digest("pairs", signed.key, *(getattr(job.settings, name) for name in chosen))


def verify_pairs(
    job: DedupJob, signed: Signed, candidates: Candidates, compare: Comparer
) -> Verdict:
    """Compare the documents of the candidates."""
    rows = [job.work.array(name, np.int64) for name in ("left", "right")]
    distances = job.work.array("distance", np.int32)
    accepted, rejected = [], []
    for begin in range(0, max(1, len(distances)), _SORTED_AT_A_TIME):
        part = slice(begin, begin + _SORTED_AT_A_TIME)
        order = np.lexsort((rows[1][part], rows[0][part]))
        order = order[differing(*(row[part][order] for row in rows))]
        left, right = (signed.positions[row[part][order]] for row in rows)
        distance = np.array(distances[part][order])
        tell = partial(_tell, job, begin, len(left), len(distances))
        some = compare.similarities(left, right, distance, tell)
        near = some.similarity >= job.settings.threshold
        accepted.append(some[near])
        rejected.append(most_similar(some[~near]))
    best = most_similar(in_order(rejected))
    found = Verdict(in_order(accepted), best, len(distances), candidates)
    for name in ("left", "right", "distance"):
        job.work.remove(name)
    return complete(job, signed, found)


def _tell(job: DedupJob, begin: int, count: int, total: int, share: float) -> None:
    job.progress.step("verify", (begin + count * share) / total)


@dataclass(frozen=True, eq=False)
class Comparer:
    """Compares documents: by their signatures, then by their texts. See `decide.Compare`."""

    settings: DedupSettings
    signatures: NDArray[np.uint8]
    positions: Ints
    """The document of each signature, ascending."""
    documents: _native.Documents
    lengths: Ints
    """The bytes of all documents."""
    without_text: int = 0
    """The number of documents without text, the first ones: their similarities are estimated."""
    threads: int = 1
    release: Callable[[], None] = lambda: None
    """Called after some texts were read."""
    rarity: FeatureWeights | None = None
    """What features weigh; None: nothing is known of the corpus, and they have no weights."""

    def __call__(self, left: Ints, right: Ints, *, screen: bool) -> VerifiedPairs:
        """Return pairs with similarities; with `screen`, only those with promising signatures."""
        distances = self.distances(left, right)
        if screen:
            near = promising(distances, self.settings)
            left, right, distances = left[near], right[near], distances[near]
        return self.similarities(left, right, distances)

    def distances(self, left: Ints, right: Ints) -> NDArray[np.int32]:
        """Return the distances of the signatures of documents; see `row_distances`."""
        one, two = (np.searchsorted(self.positions, side) for side in (left, right))
        return row_distances(self.settings, self.signatures, one, two, self.threads)

    def sizes(self, pairs: VerifiedPairs) -> Ints:
        """Return the size of each document with pairs, 0 for others; see `document_sizes`."""
        sizes = np.zeros(len(self.lengths), np.int64)
        features = self.settings.feature_kind()
        paired = distinct(np.concatenate([pairs.left, pairs.right]))
        for begin in range(0, len(paired), _COUNTED_AT_A_TIME):
            some = paired[begin : begin + _COUNTED_AT_A_TIME]
            texts = self.documents.take(some)
            sizes[some] = document_sizes(features, texts, self._weights, threads=self.threads)
            self.release()
        return sizes

    @property
    def _weights(self) -> Weights | None:
        return None if self.rarity is None else self.rarity.weights

    def estimated(self, left: Ints) -> Flags:
        """Return for which pairs, given their left documents, the similarity is an estimate.

        For all without `verify`, else for those of a document without text.
        """
        return left < (self.without_text if self.settings.verify else np.iinfo(np.int64).max)

    def similarities(
        self,
        left: Ints,
        right: Ints,
        distance: NDArray[np.int32],
        tell: Callable[[float], None] = lambda share: None,
    ) -> VerifiedPairs:
        """Return pairs with similarities: exact, or estimated from distances of signatures."""
        estimated = self.estimated(left)
        exact = ~estimated
        similarity = np.empty(len(left))
        if estimated.any():
            one, two = (np.searchsorted(self.positions, side[estimated]) for side in (left, right))
            ones = self.settings.ones(self.signatures, one, two)
            estimates = self.settings.estimate(distance[estimated], ones)
            similarity[estimated] = unrounded(estimates, self.settings.threshold)

        def told(share: float) -> None:
            self.release()
            tell(share)

        if exact.any():
            similarity[exact] = exact_similarities(
                self.settings,
                self.documents.take,
                self.lengths,
                left[exact],
                right[exact],
                weights=self._weights,
                threads=self.threads,
                tell=told,
            )
        return VerifiedPairs(left, right, similarity, distance)


def document_sizes(
    features: FeatureKind, texts: _native.Documents, weights: Weights | None, *, threads: int
) -> Ints:
    """Return the numbers of different features of texts, or what these weigh, in whole units."""
    if weights is None:
        return features.counts(texts, distinct=True, threads=threads)
    source = features.source(texts)
    totals = np.empty(len(source))
    _native.total_weights(source, *weights.native(), threads, totals)
    return np.rint(totals / RARITY_UNIT).astype(np.int64)


def exact_similarities(
    settings: DedupSettings,
    take: Callable[[Ints], _native.Documents],
    lengths: Ints,
    left: Ints,
    right: Ints,
    *,
    weights: Weights | None = None,
    threads: int,
    tell: Callable[[float], None] = lambda share: None,
) -> Floats:
    """Return the exact similarities of documents, some at a time, so that memory is bounded.

    `take` returns the documents at some positions, `lengths` are the bytes of all. `weights` are
    those of features, where these have some. A similarity that equals the threshold, or 1, up to
    rounding is returned as that.
    """
    measure = settings.measure if weights is None else f"weighted_{settings.set_measure}"
    features = settings.feature_kind()
    sizes = lengths if features.memory_factor == 1 else lengths * features.memory_factor
    order = _reading_order(sizes, left, right)
    left, right = left[order], right[order]
    found = np.empty(len(left))
    for part in bounded_parts(sizes, left, right):
        both = np.concatenate([left[part], right[part]])
        positions, places = numbered(both, len(lengths))
        half = len(places) // 2
        found[order[part]] = similarity_pairs(
            measure,
            take(positions),
            places[:half],
            places[half:],
            features,
            weights or "count",
            threads=threads,
        )
        tell(part.stop / len(left))
    return unrounded(found, settings.threshold)


def _reading_order(lengths: Ints, left: Ints, right: Ints) -> Ints:
    """Return the order of pairs in which fewer bytes are read.

    That is the given one, by left document, unless most documents are paired with many and do not
    fit into one run. Then it is block by block: all pairs of two blocks that fit into a run.
    """
    as_they_come = np.arange(len(left))
    positions, places = numbered(np.concatenate([left, right]), len(lengths))
    ends = np.cumsum(lengths[positions])
    if not len(left) or ends[-1] <= _BYTES_AT_A_TIME:
        return as_they_come
    blocks = (ends // (_BYTES_AT_A_TIME // 2))[places].reshape(2, -1)
    by_block = np.lexsort((right, left, blocks[1], blocks[0]))

    def bytes_read(order: Ints) -> int:
        one, two = left[order], right[order]
        return sum(
            int(lengths[distinct(np.concatenate([one[part], two[part]]))].sum())
            for part in bounded_parts(lengths, one, two)
        )

    return min(as_they_come, by_block, key=bytes_read)


def bounded_parts(lengths: Ints, left: Ints, right: Ints) -> Iterator[slice]:
    """Cut pairs into runs with a bounded number of pairs and bytes of text.

    A document is read once per run, and counts where it comes first.
    """
    begin = 0
    while begin < len(left):
        end = min(len(left), begin + _PAIRS_AT_A_TIME)
        both = np.stack([left[begin:end], right[begin:end]], axis=1).reshape(-1)
        positions, places = numbered(both, len(lengths))
        if int(lengths[positions].sum()) > _BYTES_AT_A_TIME:
            firsts = np.empty(len(positions), np.int64)
            firsts[places[::-1]] = np.arange(len(both))[::-1]
            sizes = np.zeros(len(both), np.int64)
            sizes[firsts] = lengths[positions]
            bytes_read = np.cumsum(sizes)[1::2]
            end = begin + max(1, int(np.searchsorted(bytes_read, _BYTES_AT_A_TIME)))
            end = min(end, len(left))
        yield slice(begin, end)
        begin = end
