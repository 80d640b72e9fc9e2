"""Step 5, verify: the exact similarity of the documents themselves decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.dedup.context import JobContext
from lookalike.dedup.distinct import distinct, numbered
from lookalike.dedup.pairs.propose import Candidates
from lookalike.dedup.read import DocumentTable
from lookalike.dedup.settings import DedupSettings
from lookalike.dedup.sign import Signed
from lookalike.dedup.work_folder import WorkFolder, digest
from lookalike.features import similarity_pairs, unrounded
from lookalike.indexes.results import Result

__all__ = [
    "Verdict",
    "VerifiedPairs",
    "compare_documents",
    "complete_pairs",
    "concatenated",
    "earlier_verdict",
    "exact_similarities",
    "in_order",
    "merged",
    "most_similar",
    "only_estimated",
    "verify_pairs",
]

_PAIRS_AT_A_TIME = 1 << 20
_BYTES_AT_A_TIME = 96 << 20
"""Of text whose features are held, which take some four times as much."""

_REJECTED = 200
_SORTED_AT_A_TIME = 1 << 22


@dataclass(frozen=True, eq=False)
class VerifiedPairs(Result):
    """Pairs of documents, left before right, by (left, right)."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    similarity: NDArray[np.float64]
    distance: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.left)

    def __getitem__(self, which: NDArray[np.generic]) -> VerifiedPairs:
        return VerifiedPairs(
            self.left[which], self.right[which], self.similarity[which], self.distance[which]
        )

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return `left`, `right`, `similarity` and `distance` of every pair."""
        return {
            "left": self.left,
            "right": self.right,
            "similarity": self.similarity,
            "distance": self.distance,
        }

    def moved(self, left: int, right: int) -> VerifiedPairs:
        """Return the same pairs counted from other documents on."""
        return VerifiedPairs(self.left - left, self.right - right, self.similarity, self.distance)


@dataclass(frozen=True, eq=False)
class Verdict:
    """What verification found."""

    accepted: VerifiedPairs
    rejected: VerifiedPairs
    """The most similar ones of those that were not accepted, at most 200."""
    proposed: int
    compared: int
    warnings: list[str]


def earlier_verdict(job: JobContext, signed: Signed) -> Verdict | None:
    """Return what an earlier run has proposed and verified, if there was one."""
    facts = job.work.facts("pairs", _key(job, signed))
    if facts is None:
        return None
    job.progress.reuse("propose", "verify")
    return _verdict(job, facts)


def verify_pairs(
    job: JobContext, documents: DocumentTable, signed: Signed, candidates: Candidates
) -> Verdict:
    """Compare the documents of the candidates.

    Of old documents there may be only signatures: estimates stand for these.
    """
    compared = _compare(job, documents, signed)
    return _complete(job, signed, candidates.proposed, compared, candidates.warnings)


def complete_pairs(
    job: JobContext,
    signed: Signed,
    columns: Mapping[str, NDArray[Any]],
    order: NDArray[np.int64],
    proposed: int,
    compared: int,
) -> Verdict:
    """Accept all these pairs, in that order; none was rejected."""
    for column in _COLUMNS:
        with job.work.writer(f"accepted.{column}") as file:
            file.write(np.ascontiguousarray(columns[column][order]).data)
    nothing = [np.empty(0, kind) for kind in _COLUMNS.values()]
    _save(job.work, "rejected", VerifiedPairs(*nothing))
    return _complete(job, signed, proposed, compared, [])


def _complete(
    job: JobContext, signed: Signed, proposed: int, compared: int, warnings: list[str]
) -> Verdict:
    facts = {"compared": compared, "proposed": proposed, "warnings": warnings}
    files = [f"{name}.{column}" for name in ("accepted", "rejected") for column in _COLUMNS]
    job.work.complete("pairs", _key(job, signed), facts, files)
    return _verdict(job, facts)


def _key(job: JobContext, signed: Signed) -> str:
    settings = job.settings
    chosen = (
        settings.threshold,
        settings.radius,
        settings.verify,
        settings.keep_rule,
        settings.exact,
        settings.measure,
    )
    return digest("pairs", signed.key, *chosen)


def _verdict(job: JobContext, facts: dict[str, Any]) -> Verdict:
    accepted, rejected = (_load(job.work, name) for name in ("accepted", "rejected"))
    return Verdict(accepted, rejected, facts["proposed"], facts["compared"], facts["warnings"])


def exact_similarities(
    settings: DedupSettings,
    take: Callable[[NDArray[np.int64]], _native.Documents],
    lengths: NDArray[np.int64],
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    *,
    threads: int,
    tell: Callable[[float], None] = lambda share: None,
) -> NDArray[np.float64]:
    """Return the exact similarity of documents, some at a time, so that memory is bounded.

    `take` returns the documents at some positions, `lengths` are the bytes of all. A similarity
    that is the threshold, or 1, but for rounding, is returned as that.
    """
    features = settings.feature_kind()
    order = _reading_order(lengths, left, right)
    left, right = left[order], right[order]
    found = np.empty(len(left))
    for part in _parts(lengths, left, right):
        both = np.concatenate([left[part], right[part]])
        positions, places = numbered(both, len(lengths))
        half = len(places) // 2
        found[order[part]] = similarity_pairs(
            settings.measure,
            take(positions),
            places[:half],
            places[half:],
            features,
            threads=threads,
        )
        tell(part.stop / len(left))
    return unrounded(found, settings.threshold)


def only_estimated(
    job: JobContext, documents: DocumentTable, left: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return for which pairs only signatures vouch, by their left documents: all, unless documents
    are compared, or those with a document that has no text to compare.
    """
    return left < (documents.signatures_only if job.settings.verify else np.iinfo(np.int64).max)


def compare_documents(
    job: JobContext,
    documents: DocumentTable,
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    distance: NDArray[np.int32],
    tell: Callable[[float], None] = lambda share: None,
) -> VerifiedPairs:
    """Return pairs with the exact similarity of their documents, or with what the distances of
    their signatures say where there is nothing to compare.
    """
    estimated = only_estimated(job, documents, left)
    exact = ~estimated
    similarity = np.empty(len(left))
    estimates = job.settings.estimate(distance[estimated])
    similarity[estimated] = unrounded(estimates, job.settings.threshold)

    def told(share: float) -> None:
        documents.texts.release()
        tell(share)

    similarity[exact] = exact_similarities(
        job.settings,
        documents.texts.documents.take,
        documents.texts.lengths,
        left[exact],
        right[exact],
        threads=job.threads,
        tell=told,
    )
    return VerifiedPairs(left, right, similarity, distance)


def _compare(job: JobContext, documents: DocumentTable, signed: Signed) -> int:
    """Write the accepted pairs, and the best of the others; return how many were compared."""
    work = job.work
    rows = [work.array(name, np.int64) for name in ("left", "right")]
    distances = work.array("distance", np.int32)
    accepted, rejected = [], []
    for begin in range(0, max(1, len(distances)), _SORTED_AT_A_TIME):
        part = slice(begin, begin + _SORTED_AT_A_TIME)
        order = np.lexsort((rows[1][part], rows[0][part]))
        order = order[_differing(*(row[part][order] for row in rows))]
        left, right = (signed.positions[row[part][order]] for row in rows)
        distance = np.array(distances[part][order])
        tell = partial(_tell, job, begin, len(left), len(distances))
        some = compare_documents(job, documents, left, right, distance, tell)
        near = some.similarity >= job.settings.threshold
        accepted.append(some[near])
        rejected.append(most_similar(some[~near]))
    _save(work, "accepted", in_order(accepted))
    _save(work, "rejected", most_similar(in_order(rejected)))
    for name in ("left", "right", "distance"):
        work.remove(name)
    return len(distances)


def _tell(job: JobContext, begin: int, count: int, total: int, share: float) -> None:
    job.progress.step("verify", (begin + count * share) / total)


def concatenated(parts: Sequence[VerifiedPairs]) -> VerifiedPairs:
    """Return all in one, as they come."""
    return VerifiedPairs(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS)
    )


def in_order(parts: Sequence[VerifiedPairs]) -> VerifiedPairs:
    """Return all in one, by (left, right), each once."""
    pairs = concatenated(parts)
    pairs = pairs[np.lexsort((pairs.right, pairs.left))]
    differing = _differing(pairs.left, pairs.right)
    return pairs if differing.all() else pairs[differing]


def merged(pairs: VerifiedPairs, more: VerifiedPairs) -> VerifiedPairs:
    """Return both, which are in order, in one; as `in_order`, where there are few more."""
    bound = 1 + max(int(some.right.max(initial=0)) for some in (pairs, more))
    keys, others = (some.left * bound + some.right for some in (pairs, more))
    places = np.searchsorted(keys, others)
    new = np.append(keys, -1)[places] != others
    if not new.any():
        return pairs
    return VerifiedPairs(
        *(
            np.insert(getattr(pairs, name), places[new], getattr(more, name)[new])
            for name in _COLUMNS
        )
    )


def _differing(left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which of sorted pairs differ from the one before."""
    differing = np.ones(len(left), bool)
    differing[1:] = (left[1:] != left[:-1]) | (right[1:] != right[:-1])
    return differing


def most_similar(pairs: VerifiedPairs) -> VerifiedPairs:
    """Return the most similar of pairs, at most 200."""
    order = np.lexsort((pairs.right, pairs.left, -pairs.similarity))
    return pairs[order[:_REJECTED]]


def _reading_order(
    lengths: NDArray[np.int64], left: NDArray[np.int64], right: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the order of pairs in which less is read.

    As they come, by left document, unless most documents are paired with many, and all of them are
    too much for one run. Then it is block by block: all pairs of two blocks of documents, of which
    both fit into a run.
    """
    as_they_come = np.arange(len(left))
    positions, places = numbered(np.concatenate([left, right]), len(lengths))
    ends = np.cumsum(lengths[positions])
    if not len(left) or ends[-1] <= _BYTES_AT_A_TIME:
        return as_they_come
    blocks = (ends // (_BYTES_AT_A_TIME // 2))[places].reshape(2, -1)
    by_block = np.lexsort((right, left, blocks[1], blocks[0]))
    return min(
        as_they_come,
        by_block,
        key=lambda order: _bytes_read(lengths, left[order], right[order]),
    )


def _bytes_read(
    lengths: NDArray[np.int64], left: NDArray[np.int64], right: NDArray[np.int64]
) -> int:
    """Return how many bytes of text `_parts` reads, of pairs in this order."""
    return sum(
        int(lengths[distinct(np.concatenate([left[part], right[part]]))].sum())
        for part in _parts(lengths, left, right)
    )


def _parts(
    lengths: NDArray[np.int64], left: NDArray[np.int64], right: NDArray[np.int64]
) -> Iterator[slice]:
    """Cut pairs into runs of at most so many pairs, and about so many bytes of text.

    A document is read once in a run, and counts where it comes first.
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


_COLUMNS: dict[str, type[np.generic]] = {
    "left": np.int64,
    "right": np.int64,
    "similarity": np.float64,
    "distance": np.int32,
}


def _save(work: WorkFolder, name: str, pairs: VerifiedPairs) -> None:
    for column, dtype in _COLUMNS.items():
        with work.writer(f"{name}.{column}") as file:
            file.write(np.ascontiguousarray(getattr(pairs, column), dtype).data)


def _load(work: WorkFolder, name: str) -> VerifiedPairs:
    """Return saved pairs in memory: a temporary folder may go before the result does."""
    return VerifiedPairs(
        *(np.array(work.array(f"{name}.{column}", kind)) for column, kind in _COLUMNS.items())
    )
