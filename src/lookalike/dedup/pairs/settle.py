"""Step 5, verify, the second half: would two stay that are alike, and that nobody has compared?

Where very many signatures share a band, or are equal, each document is compared with the best of
them and a few others only; see `propose`. If that one goes, because of one that they were not
compared with, they would all stay. Also, signatures do not propose every pair. So documents that
would stay though one that goes is like both of them are compared, until no such pair is left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lookalike.dedup.context import JobContext
from lookalike.dedup.direction import Direction
from lookalike.dedup.distinct import distinct
from lookalike.dedup.pairs.propose import promising, signature_distances
from lookalike.dedup.pairs.verify import (
    Verdict,
    VerifiedPairs,
    compare_documents,
    in_order,
    merged,
    most_similar,
)
from lookalike.dedup.read import DocumentTable
from lookalike.dedup.sign import Signed
from lookalike.dedup.survivors.cluster import stars

__all__ = ["ROUNDS", "settle", "tired", "unmet_pairs"]

LEADERS = 8
"""Of those that would stay and are like the same one that goes: all are compared with so many."""

ROUNDS = 30
"""Each makes at least one pair, and most end after two or three."""


def tired() -> str:
    """Return what people should know where the rounds did not end by themselves."""
    return (
        f"after {ROUNDS} rounds of comparing those that stay, there may still be documents among "
        "them that are alike; de-duplicate what stays once more"
    )


def settle(
    job: JobContext,
    documents: DocumentTable,
    signed: Signed,
    verdict: Verdict,
    order_by: Callable[[VerifiedPairs], Direction],
) -> Verdict:
    """Return the verdict with the pairs added that were found among those that would stay.

    `order_by` gives the order in which documents survive, which may depend on the pairs there are.
    There is nothing to do where clusters are whatever pairs connect, or every pair is known.
    """
    if job.settings.cluster != "star" or job.settings.exact:
        return verdict
    if job.settings.measure == "containment" and not verdict.warnings:
        return verdict  # samples have proposed all, if they do not say otherwise
    count = len(documents)
    done: NDArray[np.int64] = np.empty(0, np.int64)
    for _ in range(ROUNDS):
        order = order_by(verdict.accepted)
        deciding = order.deciding(verdict.accepted)
        centres = stars(count, deciding, order.best)
        unmet = unmet_pairs(deciding, centres, order.best, documents.old)
        unmet = np.setdiff1d(unmet, done, assume_unique=True)
        done = np.union1d(done, unmet)
        left, right = np.divmod(unmet, count)
        distances = signature_distances(job, signed, left, right)
        which = promising(distances, job.settings)
        some = compare_documents(job, documents, left[which], right[which], distances[which])
        near = some.similarity >= job.settings.threshold
        verdict = replace(
            verdict,
            accepted=merged(verdict.accepted, some[near]),
            rejected=most_similar(in_order([verdict.rejected, some[~near]])),
            proposed=verdict.proposed + len(unmet),
            compared=verdict.compared + len(some),
        )
        if not near.any():
            return verdict
    return replace(verdict, warnings=[*verdict.warnings, tired()])


def unmet_pairs(
    pairs: VerifiedPairs,
    centres: NDArray[np.int64],
    rank: NDArray[np.int64],
    old: int,
) -> NDArray[np.int64]:
    """Return pairs of documents that stay and are paired with the same one that goes, as numbers:
    left * count + right, ascending.

    Those of two old documents are left out. Of many that are paired with the same, each is to be
    compared with the best old ones, the best new ones and some that follow it. Most have been
    compared before, and found to differ; there are so few of them that it does not matter.
    """
    count = len(centres)
    stays = centres == np.arange(count)
    one = np.concatenate([pairs.left, pairs.right])
    two = np.concatenate([pairs.right, pairs.left])
    which = np.flatnonzero(~stays[one] & stays[two])
    order = which[np.lexsort((rank[two[which]], one[which]))]
    goes, staying = one[order], two[order]
    begins = np.flatnonzero(np.diff(goes, prepend=-1))
    sizes = np.diff(begins, append=len(goes))
    place = np.arange(len(goes)) - np.repeat(begins, sizes)
    olds = np.add.reduceat((staying < old).astype(np.int64), begins) if len(begins) else sizes
    place_of_new = place - np.repeat(olds, sizes)
    leads = (place < LEADERS) | ((place_of_new >= 0) & (place_of_new < LEADERS))
    behind = np.repeat(sizes, sizes) - 1 - place
    partners = np.where(leads, behind, np.minimum(behind, LEADERS))
    step = np.arange(partners.sum()) - np.repeat(np.cumsum(partners) - partners, partners)
    left = np.repeat(staying, partners)
    right = staying[np.repeat(np.arange(len(staying)), partners) + 1 + step]
    left, right = np.minimum(left, right), np.maximum(left, right)
    wanted = right >= old
    return distinct(left[wanted] * count + right[wanted])
