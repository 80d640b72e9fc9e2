"""Step 7, choose, where none is to stay: everyone goes that has a near-duplicate."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lookalike.dedup.pairs.verify import VerifiedPairs
from lookalike.dedup.survivors.cluster import by_first

__all__ = ["drop_groups", "with_named"]


def drop_groups(first: NDArray[np.int64], old: int, pairs: VerifiedPairs) -> NDArray[np.int64]:
    """Return for each document one that it is a near-duplicate of; -1 for those that have none.

    That is the most similar old one, else the first other of the same text, else the most similar
    of those it is a pair with. Who is named goes, too, unless it is old.
    """
    one = np.concatenate([pairs.left, pairs.right])
    two = np.concatenate([pairs.right, pairs.left])
    similarity = np.concatenate([pairs.similarity, pairs.similarity])
    order = np.lexsort((two, -similarity, two >= old, one))
    who, places = np.unique(one[order], return_index=True)
    found = np.full(len(first), -1, np.int64)
    found[who] = two[order][places]
    in_old = (found >= 0) & (found < old)
    copies = np.flatnonzero(first != np.arange(len(first)))
    originals, places = np.unique(first[copies], return_index=True)
    found[originals] = np.where(in_old[originals], found[originals], copies[places])
    found[copies] = np.where(in_old[first[copies]], found[first[copies]], first[copies])
    found[:old] = -1
    return found


def with_named(labels: NDArray[np.int64], named: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return clusters in which nobody that goes stands alone, but with the one that it names.

    Only the centre of a star may be alone and go: all it is a pair with are in other stars.
    """
    alone = (np.bincount(labels, minlength=len(labels))[labels] == 1) & (named >= 0)
    return by_first(np.where(alone, labels[named], labels), len(labels))
