"""What of a result is shown: the largest clusters and the pairs nearest to the threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from lookalike.dedup.pairs import VerifiedPairs
    from lookalike.dedup.result import DedupResult

__all__ = [
    "Cluster",
    "ShownPair",
    "cluster_sizes",
    "largest_clusters",
    "least_similar",
    "matches_with_old",
    "most_similar_rejected",
]

PAIRS = 10
PAIRS_OF_ONE_CLUSTER = 2
CLUSTERS = 12
MEMBERS = 8
MEMBERS_ALL_EQUAL = 3

_CONSIDERED = 10_000


@dataclass(frozen=True)
class Cluster:
    """A cluster, and some of those in it."""

    size: int
    stays: list[int]
    """The row that stays; none if an old document stands for all."""
    others: list[int]
    """Some of the rows that go, from the least similar to the most."""
    least: float
    """Similarity of a dropped one with the one that stands for it; NaN if none is known."""
    below: int
    """Dropped ones that are less similar than the threshold: they came in through others."""
    estimated: bool
    """Whether some of the similarities are estimates."""


@dataclass(frozen=True)
class ShownPair:
    """Two rows; of the old corpus, if `old`, the left one."""

    left: int
    right: int
    similarity: float
    distance: int
    old: bool = False


def cluster_sizes(result: DedupResult) -> NDArray[np.int64]:
    """Return the sizes of clusters with two or more documents."""
    sizes = np.bincount(result.clusters)
    return sizes[sizes > 1]


def largest_clusters(result: DedupResult, most: int = CLUSTERS) -> list[Cluster]:
    """Return the largest clusters; of equally large ones those that come first."""
    sizes = np.bincount(result.clusters)
    labels = np.flatnonzero(sizes > 1)
    found = []
    for label in labels[np.argsort(-sizes[labels], kind="stable")[:most]].tolist():
        rows = np.flatnonzero(result.clusters == label)
        gone = rows[~result.keep[rows]]
        similarity = result.similarity[gone]
        by_similarity = gone[np.argsort(similarity, kind="stable")]  # NaN comes last
        most_members = MEMBERS_ALL_EQUAL if (similarity == 1).all() else MEMBERS
        places = np.linspace(0, len(gone) - 1, min(most_members, len(gone)))
        found.append(
            Cluster(
                int(sizes[label]),
                rows[result.keep[rows]].tolist(),
                by_similarity[places.round().astype(np.int64)].tolist(),
                float(np.nanmin(similarity)) if not np.isnan(similarity).all() else float("nan"),
                int((similarity < result.settings.threshold).sum()),
                bool(result.estimated[gone].any()),
            )
        )
    return found


def least_similar(result: DedupResult, most: int = PAIRS) -> list[ShownPair]:
    """Return accepted pairs, the least similar first, few of each cluster; no equal ones."""
    pairs, old = result.text_pairs, result.documents.old
    different = pairs[np.flatnonzero((pairs.similarity < 1) & (pairs.left >= old))].moved(old, old)
    clusters = result.clusters[different.left]
    return _few_of_each(different, different.similarity, clusters, most)


def most_similar_rejected(result: DedupResult, most: int = PAIRS) -> list[ShownPair]:
    """Return pairs that were compared and rejected, the most similar first, few of each cluster."""
    pairs = result.rejected
    return _few_of_each(pairs, -pairs.similarity, result.clusters[pairs.left], most)


def matches_with_old(result: DedupResult, most: int = PAIRS) -> list[ShownPair]:
    """Return rows that are in the old corpus, with what they match, the least similar first."""
    rows = np.flatnonzero(result.matched_old >= 0)
    order = rows[np.argsort(result.similarity[rows], kind="stable")[:most]]
    return [
        ShownPair(int(result.matched_old[row]), row, float(result.similarity[row]), -1, old=True)
        for row in order.tolist()
    ]


def _few_of_each(
    pairs: VerifiedPairs, value: NDArray[np.float64], groups: NDArray[np.int64], most: int
) -> list[ShownPair]:
    """Return pairs of least value, not more than some of each group."""
    if len(value) > _CONSIDERED:
        last = np.partition(value, _CONSIDERED)[_CONSIDERED]
        sure, tied = np.flatnonzero(value < last), np.flatnonzero(value == last)
        some = np.concatenate([sure, tied[: _CONSIDERED - len(sure)]])
        pairs, value, groups = pairs[some], value[some], groups[some]
    found: list[ShownPair] = []
    seen: dict[int, int] = {}
    for place in np.lexsort((pairs.right, pairs.left, value)).tolist():
        group = int(groups[place])
        seen[group] = seen.get(group, 0) + 1
        if seen[group] <= PAIRS_OF_ONE_CLUSTER:
            found.append(
                ShownPair(
                    int(pairs.left[place]),
                    int(pairs.right[place]),
                    float(pairs.similarity[place]),
                    int(pairs.distance[place]),
                )
            )
        if len(found) == most:
            break
    return found
