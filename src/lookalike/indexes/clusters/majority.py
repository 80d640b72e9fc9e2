"""k-majority clustering: k-means with signatures as centers and Hamming distance.

A signature belongs to the nearest center, ties to the lowest number. Each bit of a center is that
of the majority of its members; at a tie, the center keeps its bit.

Most rounds compare a signature only with the centers that were nearest to it a few rounds ago,
which is nearly as good as all of them, and takes a hundredth of the time.

Many centers are found in two levels. The signatures of a sample are grouped around about the square
root of `k` centers, the branches, and those of each branch around further centers. A signature
looks for its center in the nearest branches only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike import _native
from lookalike.checks import seed_number, thread_count, whole_number
from lookalike.display import TableColumns, Tabular
from lookalike.indexes.rows import Signatures
from lookalike.operation import in_part
from lookalike.signatures import as_signatures
from lookalike.signatures.random import random_words

PER_CENTER = 128  # default number of sampled signatures per center
ROUNDS = 12
ROUNDS_A_PASS = 6  # rounds with the same candidates
CANDIDATES = 8  # centers that a signature is compared with in these


@dataclass(frozen=True, eq=False, repr=False)
class Clusters(Tabular):
    """Groups of a collection, each around a center.

    The table has a row per group: `group`, `size` and `mean_distance` (NaN for an empty group).
    """

    centers: Signatures
    """uint8[k, bits // 8]: center of each group."""
    labels: NDArray[np.int64]
    """int64[n]: group of each signature."""
    distances: NDArray[np.int32]
    """int32[n]: distance of each signature from its center."""

    def __len__(self) -> int:
        return len(self.centers)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """int64[k]: number of signatures of each group."""
        return np.bincount(self.labels, minlength=len(self.centers)).astype(np.int64)

    @cached_property
    def mean_distances(self) -> NDArray[np.float64]:
        """float64[k]: mean distance of members from their center; NaN for empty groups."""
        sums = np.bincount(self.labels, self.distances, minlength=len(self.centers))
        means: NDArray[np.float64] = np.full(len(self.centers), np.nan)
        np.divide(sums, self.sizes, out=means, where=self.sizes > 0)
        return means

    @property
    def mean_distance(self) -> float:
        """Mean distance of signatures from their centers; 0 if there are none."""
        return float(self.distances.mean()) if len(self.distances) else 0.0

    def members(self, group: SupportsIndex) -> NDArray[np.int64]:
        """Return the positions of a group's signatures, nearest to the center first."""
        number = whole_number("group", group, at_least=0, at_most=max(0, len(self) - 1))
        places = np.flatnonzero(self.labels == number)
        return places[np.argsort(self.distances[places], kind="stable")]

    def _values(self) -> dict[str, object]:
        signatures, mean = len(self.labels), round(self.mean_distance, 1)
        return {"signatures": signatures, "groups": len(self), "mean_distance": mean}

    def _columns(self, begin: int, end: int) -> TableColumns:
        rows = slice(begin, end)
        return {
            "group": np.arange(begin, end),
            "size": self.sizes[rows],
            "mean_distance": self.mean_distances[rows],
        }

    def _row_count(self) -> int:
        return len(self)


def cluster(
    signatures: ArrayLike,
    k: SupportsIndex,
    *,
    seed: SupportsIndex = 0,
    rounds: SupportsIndex = ROUNDS,
    threads: SupportsIndex | None = None,
    sample: SupportsIndex = PER_CENTER,
) -> Clusters:
    """Group signatures that are near each other: k-majority clustering.

    Centers start as k of the signatures. A center without members moves to a signature that is
    farthest from its center. More than 8,192 centers are found in two levels. The result is the
    same for any number of threads.

    Args:
        signatures: Array `uint8[n, bits // 8]`.
        k: Number of groups. Some are empty if there are fewer different signatures.
        seed: Random seed for the first centers and the sample (default: 0).
        rounds: Maximum number of rounds that improve centers (default: 12). 24 rounds, with a
            sample of 400, make better groups for people to read.
        threads: Number of threads (default: all cores).
        sample: Number of sampled signatures per center (default: 128).

    Examples:
        >>> la.cluster(np.array([[0], [1], [254], [255]], np.uint8), k=2).sizes.tolist()
        [2, 2]
    """
    rows = as_signatures(signatures)
    number = whole_number("k", k, at_least=1, at_most=max(1, len(rows)))
    drawn, improved = seed_number(seed), whole_number("rounds", rounds, at_least=0)
    each = whole_number("sample", sample, at_least=1)
    workers = thread_count(threads)
    if not len(rows):
        nothing = np.empty((0, rows.shape[1]), np.uint8)
        return Clusters(nothing, np.empty(0, np.int64), np.empty(0, np.int32))
    return Clusters(*clustered(rows, number, drawn, improved, workers, each))


def clustered(
    rows: Signatures, k: int, seed: int, rounds: int, threads: int, each: int = PER_CENTER
) -> tuple[Signatures, NDArray[np.int64], NDArray[np.int32]]:
    """Return k centers, and the center of each row with its distance."""
    if k > LARGE:
        with in_part(0, 0.5):
            found = CenterTree.trained(rows, k, seed, rounds, threads, each)
        with in_part(0.5, 1):
            return found.centers, *found.nearest(rows, threads)
    with in_part(0, 0.5):
        centers = trained_centers(rows, k, seed, rounds, threads, each)
    with in_part(0.5, 1):
        return centers, *nearest_centers(rows, centers, threads)


def sampled(rows: Signatures, most: int, seed: int) -> Signatures:
    """Return `most` random rows in their order, or all rows."""
    if most >= len(rows):
        return rows
    return rows[np.sort(np.argpartition(random_words(seed, len(rows)), most - 1)[:most])]


def trained_centers(
    rows: Signatures, k: int, seed: int, rounds: int, threads: int, each: int = PER_CENTER
) -> Signatures:
    """Return k centers, found with a sample of `each` rows per center."""
    keys = random_words(seed, len(rows))  # no two are equal
    first = np.argpartition(keys, k - 1)[:k]
    centers = np.ascontiguousarray(rows[first[np.argsort(keys[first])]])
    sample = sampled(rows, each * k, seed)
    _refine(sample, centers, rounds, threads, partial(_nearest, threads=threads))
    return centers


Candidates = tuple[NDArray[np.int64], NDArray[np.int32]]
"""Some centers of each row, nearest first, and their distances."""


def _refine(
    sample: Signatures,
    centers: Signatures,
    rounds: int,
    threads: int,
    nearest: Callable[[Signatures, Signatures, int], Candidates],
) -> None:
    """Improve centers in place, in at most `rounds` rounds.

    `nearest` returns the given number of centers for each row; most rounds choose among these.
    """
    most = min(CANDIDATES, len(centers))
    passed = 0  # rounds since all centers were compared
    near = np.empty((0, most), np.int64)
    for done in range(rounds):
        with in_part(done, done + 1, rounds):
            if passed == 0:
                near, far = nearest(sample, centers, most)
                labels, distances = near[:, 0].copy(), far[:, 0].copy()
            else:
                labels = np.empty(len(sample), np.int64)
                distances = np.empty(len(sample), np.int32)
                _native.nearest_among(sample, centers, near, threads, labels, distances)
        before = centers.copy()
        improve_centers(sample, labels, distances, centers, threads)
        same = np.array_equal(centers, before)
        if same and passed == 0:
            return
        passed = 0 if same else (passed + 1) % ROUNDS_A_PASS


def nearest_centers(
    rows: Signatures, centers: Signatures, threads: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the nearest center of each row, ties to the lowest number, and its distance."""
    labels, distances = _nearest(rows, centers, 1, threads)
    return labels[:, 0], distances[:, 0]


def improve_centers(
    sample: Signatures,
    labels: NDArray[np.int64],
    distances: NDArray[np.int32],
    centers: Signatures,
    threads: int,
) -> None:
    """Set centers to the majority of their rows.

    A center without rows moves to a row that is farthest from its center.
    """
    _native.majority_centers(sample, labels, threads, centers)
    empty = np.flatnonzero(np.bincount(labels, minlength=len(centers)) == 0)
    if not len(empty):
        return
    farthest = np.argsort(-distances, kind="stable")[: len(empty)]
    farthest = farthest[distances[farthest] > 0]
    centers[empty[: len(farthest)]] = sample[farthest]


LARGE = 8192  # from this number of centers on, a tree is faster
_BRANCHES = 8  # branches in which a signature looks for its center


@dataclass(frozen=True, eq=False)
class CenterTree:
    """Centers in the order of their branches: those of branch b begin at offsets[b]."""

    branches: Signatures
    offsets: NDArray[np.int64]
    centers: Signatures

    @classmethod
    def trained(
        cls, rows: Signatures, k: int, seed: int, rounds: int, threads: int, each: int = PER_CENTER
    ) -> CenterTree:
        """Return k centers, found with a sample of `each` rows per center."""
        sample = sampled(rows, each * k, seed)
        branches = trained_centers(sample, math.isqrt(k), seed, rounds, threads, each)
        own = _nearest(sample, branches, 1, threads)[0][:, 0]
        order = np.argsort(own, kind="stable")
        ends = np.cumsum(np.bincount(own, minlength=len(branches)))
        parts = [sample[part] for part in np.split(order, ends[:-1])]
        numbers = proportional_shares(np.array([len(part) for part in parts]), k)
        found = [
            trained_centers(part, number, seed, rounds, threads, each)
            for part, number in zip(parts, numbers.tolist(), strict=True)
            if number
        ]
        offsets = np.concatenate([[0], np.cumsum(numbers)])
        tree = cls(branches, offsets, np.concatenate(found))
        # With those that have come from, and gone to, other branches.
        for _ in range(rounds):
            labels, distances = tree.nearest(sample, threads)
            improve_centers(sample, labels, distances, tree.centers, threads)
        return tree

    def nearest(
        self, rows: Signatures, threads: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return the nearest center of each row in its nearest branches, and the distance."""
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
            own, far = _nearest(rows[some], self.centers[begin:end], 1, threads)
            nearer = far[:, 0] < distances[some]
            which = some[nearer]
            labels[which], distances[which] = begin + own[nearer, 0], far[nearer, 0]
        return labels, distances


def _nearest(
    rows: Signatures, centers: Signatures, count: int, threads: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the `count` nearest centers of each row, nearest first, and their distances."""
    labels = np.empty((len(rows), count), np.int64)
    distances = np.empty((len(rows), count), np.int32)
    _native.scan_nearest(centers, None, True, rows, count, threads, labels, distances)
    return labels, distances


def proportional_shares(sizes: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Return k shared out in proportion to sizes: none larger than its size, none 0 unless that is.

    Sizes add up to at least k.
    """
    fair = sizes * (k / sizes.sum())
    shares: NDArray[np.int64] = np.minimum(sizes, np.maximum(np.floor(fair).astype(np.int64), 1))
    by_rest = np.argsort(shares - fair, kind="stable")  # largest deficit first
    while (left := k - int(shares.sum())) > 0:
        takers = by_rest[(shares < sizes)[by_rest]][:left]
        shares[takers] += 1
    while (over := int(shares.sum()) - k) > 0:
        givers = by_rest[::-1][(shares > 1)[by_rest[::-1]]][:over]
        shares[givers] -= 1
    return shares
