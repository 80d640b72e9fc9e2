"""Step 4, propose, for containment: of each document some features are drawn, and looked up in all
larger ones; see `native/pairs/samples.hpp`.

Two signatures of one size say little of a short document inside a long one. A sample of the short
one does: each of its features is in the long one with a chance that is the containment.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.dedup.context import JobContext
from lookalike.dedup.read import DocumentTable
from lookalike.dedup.sign import Signed, feature_sources

__all__ = ["least_found", "sample_size", "sampled_pairs"]

SAMPLE, LARGEST_SAMPLE = 64, 512
"""Features that are drawn of a document, at least and at most; all of one that has no more."""

ALL_SAMPLES = 1 << 22
"""Features that are drawn of all documents, if these are not so many that it takes more. Larger
samples propose fewer pairs in vain; the least are enough to miss none.
"""

MISSED = 0.001
"""The largest chance of not proposing a pair at the threshold."""

LARGEST_GROUP = 1000
LEADERS = 64
"""A feature that more samples have than the first number is looked up for as many documents as the
second says, the largest that have it.
"""

_AT_A_TIME = 1 << 13

Rows = tuple[NDArray[np.int64], NDArray[np.int64]]


def sample_size(documents: int) -> int:
    """Return how many features are drawn of each of so many documents."""
    return max(SAMPLE, min(LARGEST_SAMPLE, ALL_SAMPLES // max(1, documents)))


def least_found(size: int, threshold: float) -> int:
    """Return how many features of a sample have to be in the larger document.

    So few that a pair at the threshold has fewer with a chance of at most 0.1%, by the bound of
    Chernoff and Hoeffding, which holds for draws without replacement, too.
    """
    least = math.floor(size * threshold)
    while least > 1 and _bound(least - 1, size, threshold) > MISSED:
        least -= 1
    return max(1, least)


def _bound(found: int, size: int, threshold: float) -> float:
    """Return the most that the chance of so few, or fewer, can be at the threshold."""
    if threshold >= 1:
        return 0.0
    share = found / size
    divergence = (1 - share) * math.log((1 - share) / (1 - threshold))
    if found:
        divergence += share * math.log(share / threshold)
    return math.exp(-size * divergence)


def sampled_pairs(
    job: JobContext, documents: DocumentTable, signed: Signed, warnings: list[str]
) -> Iterator[Rows]:
    """Yield pairs of rows, left before right, each once.

    Reads the documents twice. Memory holds some 2 KB of each, or 150 MB for all.
    """
    count = len(signed.positions)
    size = sample_size(count)
    samples = _native.Samples(size, LARGEST_GROUP, LEADERS)
    for number, read in enumerate((samples.observe, samples.look_up)):
        for source, share in feature_sources(job, documents, signed):
            read(source, job.threads)
            documents.texts.release()
            job.progress.step("propose", (number + share) / 3)
    needed = _needed(size, job.settings.threshold)
    for begin in range(0, count, _AT_A_TIME):
        end = min(count, begin + _AT_A_TIME)
        some = samples.pairs(begin, end, needed, signed.first_new, job.threads)
        yield np.minimum(*some), np.maximum(*some)
        job.progress.step("propose", (2 + end / count) / 3)
    if samples.in_large_groups:
        warnings.append(
            f"{samples.in_large_groups:,} documents have features in common with more than "
            f"{LARGEST_GROUP:,} others, and were compared with the {LEADERS} largest that have "
            "them, not with all"
        )


def _needed(size: int, threshold: float) -> NDArray[np.uint64]:
    """Return how many features of a sample have to be found, by its size: a smaller one than the
    others is all of a document, and what is found then is the containment itself.
    """
    needed: NDArray[np.uint64] = np.ceil(np.arange(size + 1) * threshold * (1 - 1e-9)).astype(
        np.uint64
    )
    needed[size] = least_found(size, threshold)
    needed[0] = 1  # a document without features is in none
    return needed
