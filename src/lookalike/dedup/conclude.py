"""The end of a job: what was found of documents, old ones first, is told of rows of the source."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookalike.dedup.context import JobContext
from lookalike.dedup.copies import count_every_pair
from lookalike.dedup.pairs.verify import Verdict, only_estimated
from lookalike.dedup.read import DocumentTable, Source
from lookalike.dedup.result import DedupCounts, TextResult
from lookalike.dedup.sign import Signed
from lookalike.dedup.survivors.cluster import Clusters, by_first

__all__ = ["Outcome", "conclude"]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What the steps have made; arrays have an element per document, old ones first."""

    source: Source
    documents: DocumentTable
    signed: Signed
    first: NDArray[np.int64]
    """The first with the same text."""
    verdict: Verdict
    clusters: Clusters
    duplicate_of: NDArray[np.int64]
    """The document that stands for it; -1 for those that stay."""
    similarity: NDArray[np.float64]
    """With that one; NaN for those that stay."""
    estimated: NDArray[np.bool_]
    """Whether that is what signatures say."""


def conclude(job: JobContext, outcome: Outcome) -> TextResult:
    """Return the result."""
    old = outcome.documents.old
    new = slice(old, None)
    stands_for = outcome.duplicate_of[new]
    own = np.where(stands_for >= old, stands_for - old, -1)
    matched_old = np.where(stands_for < old, stands_for, -1)
    keep = (own < 0) & (matched_old < 0)
    labels = by_first(outcome.clusters.labels[new], len(outcome.documents))
    rejected = outcome.verdict.rejected
    return TextResult(
        settings=job.settings,
        keep=keep,
        clusters=labels,
        duplicate_of=own,
        matched_old=matched_old,
        similarity=outcome.similarity[new],
        estimated=outcome.estimated[new],
        text_pairs=outcome.verdict.accepted,
        rejected=rejected[rejected.left >= old].moved(old, old),
        counts=_counts(job, outcome, keep, matched_old, labels),
        seconds=dict(job.progress.seconds),
        reused=tuple(job.progress.reused),
        overlapped=tuple(job.progress.overlapped),
        warnings=[
            *outcome.source.corpus.notices,
            *outcome.documents.notices,
            *outcome.verdict.warnings,
            *outcome.clusters.warnings,
        ],
        source=outcome.source.corpus,
        source_identity=outcome.source.identity,
        columns=outcome.source.columns,
        skip_bad=job.skip_bad,
        limits=job.limits,
        documents=outcome.documents,
        signed=outcome.signed,
        first_equal=outcome.first,
    )


def _counts(
    job: JobContext,
    outcome: Outcome,
    keep: NDArray[np.bool_],
    matched_old: NDArray[np.int64],
    labels: NDArray[np.int64],
) -> DedupCounts:
    documents, verdict = outcome.documents, outcome.verdict
    new = slice(documents.old, None)
    similarity, estimated = outcome.similarity[new], outcome.estimated[new]
    is_copy = outcome.first[new] != np.arange(documents.old, len(documents))
    equal = is_copy
    if job.settings.keep == "none":  # the first of equal texts goes, too
        sizes_of_equals = np.bincount(outcome.first, minlength=len(documents))
        equal = sizes_of_equals[outcome.first][new] > 1
    compared = ~keep & ~estimated
    exact = int((equal & ~estimated).sum())
    sizes = np.bincount(labels) if len(labels) else np.zeros(1, int)
    lengths = documents.texts.lengths[new]
    return DedupCounts(
        documents=len(keep),
        kept=int(keep.sum()),
        exact_duplicates=exact,
        near_duplicates=int(compared.sum()) - exact,
        estimated_duplicates=int(estimated.sum()),
        below_threshold=int((similarity < job.settings.threshold).sum()),
        lowest_similarity=_least(similarity[compared]),
        lowest_estimate=_least(similarity[estimated]),
        in_old=int((matched_old >= 0).sum()),
        clusters=int((sizes > 1).sum()),
        largest_cluster=int(sizes.max(initial=0)),
        without_features=int(outcome.signed.too_short[new].sum()),
        bad_rows=documents.bad,
        binary_files=documents.binary,
        proposed_pairs=verdict.proposed,
        compared_pairs=verdict.compared,
        verified_pairs=_verified(job, outcome, int(is_copy.sum())),
        estimated_pairs=int(only_estimated(job, documents, verdict.accepted.left).sum()),
        bytes=int(lengths.sum()),
        bytes_saved=int(lengths[~keep].sum()),
        left_out=sum(documents.left_out.values()),
    )


def _verified(job: JobContext, outcome: Outcome, copies: int) -> int:
    """Return how many pairs the result has; see `TextResult.pairs`."""
    pairs = outcome.verdict.accepted
    if job.settings.exact:
        return count_every_pair(pairs, outcome.first, outcome.documents.old)
    return len(pairs) + copies


def _least(values: NDArray[np.float64]) -> float | None:
    return float(values.min()) if len(values) else None
