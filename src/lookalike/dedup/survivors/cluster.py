"""Step 6, cluster: which documents belong together?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.dedup.distinct import distinct
from lookalike.dedup.pairs.verify import VerifiedPairs
from lookalike.dedup.settings import DedupSettings
from lookalike.shown import counted

__all__ = ["Clusters", "by_first", "cluster_documents", "split_warnings", "stars"]


@dataclass(frozen=True, eq=False)
class Clusters:
    """For each document, the first document of its cluster; itself if it stands alone."""

    labels: NDArray[np.int64]
    split: int = 0
    """Components that were too large, and became stars."""
    largest: int = 0
    """Different documents of the largest of these."""
    warnings: tuple[str, ...] = ()


def cluster_documents(
    count: int,
    first: NDArray[np.int64],
    pairs: VerifiedPairs,
    settings: DedupSettings,
    rank: NDArray[np.int64],
) -> Clusters:
    """Put documents together that verified pairs connect, and equal ones with their first.

    "star": everyone in a cluster is paired with its centre, or is equal to it, and no two centres
    are a pair; who is of better `rank` becomes a centre first, and is the best of its cluster.
    "components": whatever pairs connect, however long the chain; but a component of more than
    `max_cluster` different documents becomes stars, and that is warned of.
    """
    if settings.cluster == "star":
        return Clusters(by_first(stars(count, pairs, rank)[first], count))
    labels = np.empty(count, np.int64)
    _native.components(pairs.left, pairs.right, labels)
    members = distinct(np.concatenate([pairs.left, pairs.right]))
    sizes = np.bincount(labels[members], minlength=count) if len(members) else np.zeros(count, int)
    large = sizes > settings.max_cluster
    split, largest = int(large.sum()), int(sizes.max(initial=0))
    if split:
        in_large = large[labels]
        labels[in_large] = stars(count, pairs[large[labels[pairs.left]]], rank)[in_large]
    warnings = split_warnings(split, largest, settings.max_cluster)
    return Clusters(by_first(labels[first], count), split, largest, warnings)


def split_warnings(split: int, largest: int, most: int) -> tuple[str, ...]:
    """Return what people should know of so many components of more than `most` documents."""
    if not split:
        return ()
    return (
        f"{counted(split, 'cluster')} grew past {most:,} different documents "
        f"(the largest to {largest:,}): probably chains, where neighbours are alike "
        "and the ends are not. They were split, so that each document is alike to the one that "
        "stands for it. A higher threshold makes shorter chains, clusters that are stars none",
    )


def stars(count: int, pairs: VerifiedPairs, rank: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the centre of each document, itself for one that is a centre.

    By rank, whoever has no centre yet becomes one, and that of its neighbours that have none.
    """
    labels = np.empty(count, np.int64)
    _native.stars(np.argsort(rank, kind="stable"), pairs.left, pairs.right, labels)
    return labels


def by_first(labels: NDArray[np.int64], bound: int) -> NDArray[np.int64]:
    """Name each cluster by the position of its first member; labels are below `bound`."""
    least = np.full(bound, len(labels), np.int64)
    np.minimum.at(least, labels, np.arange(len(labels)))
    return least[labels]
