"""Centers of clusters: spherical k-means, then clusters of several topics are split.

Clusters are compared by the cosines of their centers. A cluster that falls apart into two parts
with a low cosine has several topics, and two clusters with a high cosine have the same topic. A
large cluster must be of one topic more clearly than a small one.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lookalike.dedup.pairs import Ints
from lookalike.topics.blocks import each_block
from lookalike.topics.space import Points, unit

MOST_CLUSTERS = 50
"""By default, before clusters are split or merged."""
_SEEDED, _A_CENTER = 4096, 20
"""Points that k-means begins with: the number of all, and the least number for each center."""
_ROUNDS, _REFINED = 20, 5
"""Rounds of k-means, and of those after clusters were split or merged."""
_STARTS, _CHANGES = 3, 10
"""Times that k-means begins anew, and that clusters are split and merged."""
_SAME, _APART = 0.9, 0.4
"""Cosines of centers: of one topic from the first, of several below the second."""
_LARGE, _LOOSE = 0.15, 0.8
"""A cluster with more than this share of all points is split below this cosine of its parts."""
_CLEAR = 0.6
"""Silhouette of groups that are clearly separate."""
_LEAST_PART, _LEAST_SHARE = 5, 0.001
"""Documents of a part that is split off: a number, and a share of all."""
_STEADY = 0.0005
"""Share of points that may still change their cluster after the last round."""
_CELLS, _POINTS = 1 << 20, 2048
"""Cosines that a thread has in memory, and points at a time."""
_NOISE = 1e-5
"""Differences of cosines that are not counted: rounding must not separate equal documents."""


def usual_clusters(documents: int) -> int:
    """Return the number of clusters to begin with, for a number of documents."""
    return min(MOST_CLUSTERS, max(1, round(math.sqrt(documents / 2))), documents)


def find_centers(points: Points, wanted: int | None, seed: int, threads: int) -> Points:
    """Return the centers of clusters of points that have length 1.

    There are `wanted` centers, or fewer if fewer points differ. By default the number is
    `usual_clusters`, and then clusters are split and merged as their centers tell.
    """
    if not len(points):
        return points
    random = np.random.default_rng(seed)
    number = usual_clusters(len(points)) if wanted is None else wanted
    some = points[: max(_SEEDED, _A_CENTER * number)]  # points are in random order
    started = []
    for _ in range(_STARTS):
        centers = _moved(some, _first_centers(some, number, random), _ROUNDS, threads)
        started.append((float(_closest(some, centers, threads)[1].mean()), centers))
    centers = _moved(points, max(started, key=lambda one: one[0])[1], _ROUNDS, threads)
    if wanted is not None:
        return centers
    groups = _separate(points, centers, threads)
    large = _LARGE if len(groups) == len(centers) else 1.0  # clear groups may be of any size
    centers = _moved(points, groups, _REFINED, threads)
    for _ in range(_CHANGES):
        changed = _split_and_merged(points, centers, large, threads)
        if changed is None:
            break
        centers = _moved(points, changed, _REFINED, threads)
    return centers


def nearest(points: Points, centers: Points, threads: int) -> tuple[Ints, NDArray[np.float32]]:
    """Return the two nearest centers of each point, int64[n, 2], and the cosines.

    Of centers that are equally near, the first is nearest. A single center is followed by -1.
    """
    found = np.full((len(points), 2), -1, np.int64)
    values = np.full((len(points), 2), np.nan, np.float32)

    def compute(begin: int, end: int) -> None:
        cosines = _cosines(points[begin:end], centers)
        rows = np.arange(len(cosines))
        for place in range(min(2, len(centers))):
            best = cosines.argmax(axis=1)
            found[begin:end, place] = best
            values[begin:end, place] = cosines[rows, best]
            cosines[rows, best] = -np.inf

    each_block(len(points), _step(centers), threads, compute)
    return found, values


def _step(centers: Points) -> int:
    """Return the number of points that are compared with centers at a time."""
    return max(1, min(_POINTS, _CELLS // max(1, len(centers))))


def _cosines(points: Points, centers: Points) -> NDArray[np.float32]:
    found: NDArray[np.float32] = points @ centers.T
    np.rint(found / np.float32(_NOISE), out=found)
    found *= np.float32(_NOISE)
    return found


def _first_centers(points: Points, number: int, random: np.random.Generator) -> Points:
    """Return points that are far from each other (greedy k-means++)."""
    tries = 2 + int(math.log(number))
    chosen = [int(random.integers(len(points)))]
    far = 1.0 - points @ points[chosen[0]]
    while len(chosen) < number:
        far[far < _NOISE] = 0.0
        sums = np.cumsum(far, dtype=np.float64)
        if sums[-1] <= 0.0:
            break  # all points are centers
        some = np.searchsorted(sums, random.random(tries) * sums[-1], side="right")
        some = np.unique(np.minimum(some, len(points) - 1))
        farther = np.minimum(far[:, None], 1.0 - points @ points[some].T)
        best = int(farther.sum(axis=0).argmin())
        chosen.append(int(some[best]))
        far = np.ascontiguousarray(farther[:, best])
    return points[chosen]


def _moved(points: Points, centers: Points, rounds: int, threads: int) -> Points:
    """Return the centers after some rounds of k-means.

    A center without points moves to the point that is farthest from its own center. Where all
    points are at their centers, it is dropped.
    """
    before = np.full(len(points), -1)
    for _ in range(rounds):
        labels, cosines = _closest(points, centers, threads)
        unused = np.flatnonzero(np.bincount(labels, minlength=len(centers)) == 0)
        if np.count_nonzero(labels != before) <= _STEADY * len(points) and not len(unused):
            break
        before = labels.copy()
        if len(unused):
            farthest = np.argsort(cosines, kind="stable")[: len(unused)]
            farthest = farthest[cosines[farthest] < 1.0 - _NOISE]
            labels[farthest] = unused[: len(farthest)]
        centers = _means(points, labels)
    return centers


def _closest(points: Points, centers: Points, threads: int) -> tuple[Ints, NDArray[np.float32]]:
    """Return the nearest center of each point, and the cosine."""
    labels, cosines = np.empty(len(points), np.int64), np.empty(len(points), np.float32)

    def compute(begin: int, end: int) -> None:
        found = points[begin:end] @ centers.T
        best = found.argmax(axis=1)
        labels[begin:end] = best
        cosines[begin:end] = found[np.arange(len(best)), best]

    each_block(len(points), _step(centers), threads, compute)
    return labels, cosines


def _means(points: Points, labels: Ints) -> Points:
    """Return the centers of the labels that occur."""
    order = np.argsort(labels, kind="stable")
    begins = np.flatnonzero(np.diff(labels[order], prepend=-1))
    return unit(np.add.reduceat(points[order], begins, axis=0))


def _halves(points: Points) -> tuple[Points, float, int]:
    """Return the centers of the two parts of a cluster, their cosine, and the smaller size.

    The larger part is first.
    """
    if len(points) < 2:
        return points, 1.0, 0
    spread = points - points.mean(axis=0)
    _, directions = np.linalg.eigh((spread.T @ spread).astype(np.float64))
    labels = (spread @ directions[:, -1].astype(np.float32) > 0).astype(np.int64)
    for _ in range(_REFINED):
        if len(np.unique(labels)) < 2:
            return points[:0], 1.0, 0
        centers = _means(points, labels)
        labels = _closest(points, centers, 1)[0]
    sizes = np.bincount(labels, minlength=2)
    order = np.argsort(-sizes, kind="stable")
    return centers[order], float(centers[0] @ centers[1]), int(sizes.min())


def _separate(points: Points, centers: Points, threads: int) -> Points:
    """Return fewer centers if the documents are in clearly separate groups.

    The nearest two centers are merged again and again. Of all numbers of centers, the one with the
    highest silhouette is taken if that is high. In most corpora topics overlap, and it is not.
    """
    sizes = np.bincount(_closest(points, centers, threads)[0], minlength=len(centers))
    best, highest, merged = centers, _CLEAR, centers
    weights = sizes.astype(np.float32)
    while len(merged) > 1:
        cosines = nearest(points[:_SEEDED], merged, threads)[1]
        far = np.maximum(1.0 - cosines, _NOISE)
        silhouette = float((1.0 - far[:, 0] / np.maximum(far[:, 0], far[:, 1])).mean())
        if silhouette > highest:
            best, highest = merged, silhouette
        merged, weights = _with_nearest_merged(merged, weights)
    return best


def _split_and_merged(points: Points, centers: Points, large: float, threads: int) -> Points | None:
    """Return other centers; None if these are fine. `large` is a share of all points."""
    labels = _closest(points, centers, threads)[0]
    sizes = np.bincount(labels, minlength=len(centers))
    members = np.split(np.argsort(labels, kind="stable"), np.cumsum(sizes)[:-1])
    least = max(_LEAST_PART, _LEAST_SHARE * len(points))
    found: list[tuple[Points, list[int]]] = []
    for center, rows in zip(centers, members, strict=True):
        parts, cosine, smaller = _halves(points[rows])
        apart = _APART if len(rows) <= large * len(points) else _LOOSE
        if cosine < apart and smaller >= least:
            found.append((parts, [len(rows) - smaller, smaller]))
        else:
            found.append((center[None], [len(rows)]))
    split = np.concatenate([parts for parts, _ in found])
    merged = _merged(split, [size for _, several in found for size in several])
    return None if len(merged) == len(split) == len(centers) else merged


def _merged(centers: Points, sizes: list[int]) -> Points:
    """Merge the nearest two centers as long as they have the same topic."""
    weights = np.array(sizes, np.float32)
    while len(centers) > 1 and _nearest_pair(centers)[2] >= _SAME:
        centers, weights = _with_nearest_merged(centers, weights)
    return centers


def _nearest_pair(centers: Points) -> tuple[int, int, float]:
    """Return two centers and their cosine."""
    cosines = centers @ centers.T
    np.fill_diagonal(cosines, -np.inf)
    one, two = sorted(divmod(int(cosines.argmax()), len(centers)))
    return one, two, float(cosines[one, two])


def _with_nearest_merged(
    centers: Points, weights: NDArray[np.float32]
) -> tuple[Points, NDArray[np.float32]]:
    """Return one center less, and the weights of all."""
    one, two, _ = _nearest_pair(centers)
    together = weights[one] * centers[one] + weights[two] * centers[two]
    merged, heavier = np.delete(centers, two, axis=0), np.delete(weights, two)
    merged[one], heavier[one] = unit(together[None])[0], weights[one] + weights[two]
    return merged, heavier
