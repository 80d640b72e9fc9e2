"""Steps 5 to 7, settle, cluster and choose: from verified pairs to who stays and who goes.

Of whatever documents pairs connect, all at once: those of a corpus, or of a part of it that no pair
leaves, as on Spark.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lookalike.dedup.context import JobContext
from lookalike.dedup.direction import orders
from lookalike.dedup.pairs.settle import settle
from lookalike.dedup.pairs.verify import Verdict
from lookalike.dedup.read import DocumentTable
from lookalike.dedup.sign import Signed
from lookalike.dedup.survivors.choose import choose_survivors
from lookalike.dedup.survivors.cluster import Clusters, cluster_documents
from lookalike.dedup.survivors.drop_groups import drop_groups, with_named
from lookalike.dedup.survivors.keep_function import GroupChoices
from lookalike.dedup.survivors.likeness import likeness

__all__ = ["Decision", "decide"]


@dataclass(frozen=True, eq=False)
class Decision:
    """What becomes of documents; arrays have an element for each."""

    verdict: Verdict
    """With the pairs that were found on the way."""
    clusters: Clusters
    duplicate_of: NDArray[np.int64]
    """The document that stands for it; -1 for those that stay."""
    similarity: NDArray[np.float64]
    """With that one; NaN for those that stay."""
    estimated: NDArray[np.bool_]
    """Whether that is what signatures say."""


def decide(
    job: JobContext,
    documents: DocumentTable,
    signed: Signed,
    first: NDArray[np.int64],
    rank: NDArray[np.int64],
    choices: GroupChoices | None,
    verdict: Verdict,
) -> Decision:
    """Return who stays. `first` is the first of equal texts, `rank` the order by the rule."""
    order_by = orders(job, documents, first, rank, choices, verdict.accepted)
    verdict = settle(job, documents, signed, verdict, order_by)
    order = order_by(verdict.accepted)
    pairs = order.deciding(verdict.accepted)
    clusters = cluster_documents(len(documents), first, pairs, job.settings, order.best)
    if job.settings.keep == "none":
        duplicate_of = drop_groups(first, documents.old, pairs)
        clusters = replace(clusters, labels=with_named(clusters.labels, duplicate_of))
    else:
        duplicate_of = choose_survivors(clusters.labels, first, order.rank, documents.old, pairs)
    similarity, estimated = likeness(job, documents, signed, first, duplicate_of, pairs)
    return Decision(verdict, clusters, duplicate_of, similarity, estimated)
