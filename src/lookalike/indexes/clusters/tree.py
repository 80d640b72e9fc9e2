"""Many centres in two levels, so that a signature is not compared with all of them.

The signatures of a sample are first put into groups around some root of `k` centres, the branches;
then those of each branch around centres of its own, as many as it has signatures for. A signature
looks for its centre in the branches that are nearest to it. That is nearly always the nearest of
all centres, or one that is as good, at a small part of the comparisons.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.indexes.clusters.majority import (
    PER_CENTRE,
    improve_centres,
    sampled,
    trained_centres,
)

__all__ = ["LARGE", "CentreTree"]

LARGE = 8192
"""Centres that are found in a tree when there are more: from here on, comparing signatures with all
of them takes longer than all else together.
"""
_BRANCHES = 8
"""Branches in which a signature looks for its centre."""

Signatures = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class CentreTree:
    """Centres in the order of their branches: those of branch b begin at offsets[b]."""

    branches: Signatures
    offsets: NDArray[np.int64]
    centres: Signatures

    @classmethod
    def trained(
        cls,
        rows: Signatures,
        k: int,
        seed: int,
        rounds: int,
        threads: int,
        each: int = PER_CENTRE,
    ) -> CentreTree:
        """Return k centres of at least as many rows, found with so many rows for each."""
        sample = sampled(rows, each * k, seed)
        branches = trained_centres(sample, math.isqrt(k), seed, rounds, threads, each)
        own = _nearest(sample, branches, 1, threads)[0][:, 0]
        order = np.argsort(own, kind="stable")
        ends = np.cumsum(np.bincount(own, minlength=len(branches)))
        parts = [sample[part] for part in np.split(order, ends[:-1])]
        numbers = _shares(np.array([len(part) for part in parts]), k)
        found = [
            trained_centres(part, number, seed, rounds, threads, each)
            for part, number in zip(parts, numbers.tolist(), strict=True)
            if number
        ]
        offsets = np.concatenate([[0], np.cumsum(numbers)])
        tree = cls(branches, offsets, np.concatenate(found))
        for _ in range(rounds):  # with those that have come from, and gone to, other branches
            labels, distances = tree.nearest(sample, threads)
            improve_centres(sample, labels, distances, tree.centres, threads)
        return tree

    def nearest(
        self, rows: Signatures, threads: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return the nearest centre of each row in the branches nearest to it, and its distance.

        The lowest number of equals, as among all.
        """
        wanted, _ = _nearest(rows, self.branches, min(_BRANCHES, len(self.branches)), threads)
        order = np.argsort(wanted, axis=None, kind="stable")
        ends = np.cumsum(np.bincount(wanted.reshape(-1), minlength=len(self.branches)))
        askers = np.split(order // wanted.shape[1], ends[:-1])
        labels = np.full(len(rows), -1, np.int64)
        distances = np.full(len(rows), 8 * rows.shape[1] + 1, np.int32)
        for branch, some in enumerate(askers):  # by ascending numbers: the first of equals stays
            begin, end = self.offsets[branch : branch + 2].tolist()
            if begin == end or not len(some):
                continue
            own, far = _nearest(rows[some], self.centres[begin:end], 1, threads)
            nearer = far[:, 0] < distances[some]
            which = some[nearer]
            labels[which], distances[which] = begin + own[nearer, 0], far[nearer, 0]
        return labels, distances


def _nearest(
    rows: Signatures, centres: Signatures, count: int, threads: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the numbers and distances of so many nearest centres of each row, nearest first."""
    labels = np.empty((len(rows), count), np.int64)
    distances = np.empty((len(rows), count), np.int32)
    _native.scan_nearest(centres, None, True, rows, count, threads, labels, distances)
    return labels, distances


def _shares(sizes: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Return k shared out in proportion to sizes that add up to at least that: no share is larger
    than its size, and none is 0 unless its size is.
    """
    fair = sizes * (k / sizes.sum())
    shares: NDArray[np.int64] = np.minimum(sizes, np.maximum(np.floor(fair).astype(np.int64), 1))
    by_rest = np.argsort(shares - fair, kind="stable")  # who lacks most comes first
    while (left := k - int(shares.sum())) > 0:
        takers = by_rest[(shares < sizes)[by_rest]][:left]
        shares[takers] += 1
    while (over := int(shares.sum()) - k) > 0:
        givers = by_rest[::-1][(shares > 1)[by_rest[::-1]]][:over]
        shares[givers] -= 1
    return shares
