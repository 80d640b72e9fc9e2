"""Step 6, cluster: which documents belong together?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.dedup.settings import DedupSettings
from lookalike.dedup.verify import VerifiedPairs

__all__ = ["Clusters", "by_first", "cluster_documents"]


@dataclass
class Clusters:
    """For each document, the first document of its cluster; itself if it stands alone."""

    labels: NDArray[np.int64]
    split: int = 0
    """Components that were too large, and became stars."""
    warnings: tuple[str, ...] = ()


def cluster_documents(
    count: int,
    first: NDArray[np.int64],
    pairs: VerifiedPairs,
    settings: DedupSettings,
    rank: NDArray[np.int64],
) -> Clusters:
    """Put documents together that verified pairs connect, and equal ones with their first.

    "components": whatever pairs connect, however long the chain; but a component of more than
    `max_cluster` different documents becomes stars, and that is warned of. "star": everyone in a
    cluster is paired with its centre; who is of better `rank` becomes a centre first.
    """
    labels = np.empty(count, np.int64)
    if settings.cluster == "star":
        _native.stars(*_stars(count, pairs, rank), labels)
        return Clusters(by_first(labels[first], count))
    _native.components(pairs.left, pairs.right, labels)
    members = np.unique(np.concatenate([pairs.left, pairs.right]))
    sizes = np.bincount(labels[members], minlength=count) if len(members) else np.zeros(count, int)
    large = sizes > settings.max_cluster
    warnings: tuple[str, ...] = ()
    if large.any():
        inside = large[labels[pairs.left]]
        stars = np.empty(count, np.int64)
        _native.stars(*_stars(count, pairs[inside], rank), stars)
        in_large = large[labels]
        warnings = (
            f"{int(large.sum()):,} clusters grew past {settings.max_cluster:,} different documents "
            f"(the largest to {int(sizes.max()):,}): probably chains, where neighbours are alike "
            "and the ends are not. They were split, so that each document is alike to the one that "
            "stands for it. A higher threshold makes shorter chains, cluster=star none, and "
            "max_cluster says when to split",
        )
        labels[in_large] = stars[in_large]
    return Clusters(by_first(labels[first], count), int(large.sum()), warnings)


def _stars(
    count: int, pairs: VerifiedPairs, rank: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return documents by rank, and the neighbours of each."""
    one = np.concatenate([pairs.left, pairs.right])
    two = np.concatenate([pairs.right, pairs.left])
    order = np.lexsort((rank[two], one))
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(one, minlength=count), out=offsets[1:])
    return np.argsort(rank, kind="stable"), offsets, two[order]


def by_first(labels: NDArray[np.int64], bound: int) -> NDArray[np.int64]:
    """Name each cluster by the position of its first member; labels are below `bound`."""
    least = np.full(bound, len(labels), np.int64)
    np.minimum.at(least, labels, np.arange(len(labels)))
    return least[labels]
