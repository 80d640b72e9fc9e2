"""Step 7, choose, the second half: how alike is each dropped document to the one that stays?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lookalike.dedup.propose import signature_distances
from lookalike.dedup.read import DocumentTable
from lookalike.dedup.settings import DedupSettings
from lookalike.dedup.sign import Signed
from lookalike.dedup.verify import VerifiedPairs, fill_in

__all__ = ["likeness"]


def likeness(
    documents: DocumentTable,
    signed: Signed,
    first: NDArray[np.int64],
    duplicate_of: NDArray[np.int64],
    pairs: VerifiedPairs,
    settings: DedupSettings,
    *,
    without_text: int,
    threads: int,
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the similarity of each dropped document with the one that stands for it, NaN for the
    others, and whether that is only an estimate.

    That of a verified pair is known. Others, which chains have brought together, are compared now.
    """
    count = len(documents)
    similarity, estimated = np.full(count, np.nan), np.zeros(count, bool)
    dropped = np.flatnonzero(duplicate_of >= 0)
    similarity[dropped] = 1.0
    # Equal texts have equal answers; so each pair of different texts is looked at once.
    one, two = first[duplicate_of[dropped]], first[dropped]
    differ = one != two
    keys, places = np.unique(
        (np.minimum(one, two) * count + np.maximum(one, two))[differ], return_inverse=True
    )
    found = _found(pairs, keys, count)
    unknown = np.flatnonzero(np.isnan(found.similarity))
    others = found[unknown]
    others.distance = signature_distances(signed, others.left, others.right, settings, threads)
    fill_in(others, documents, settings, without_text, threads)
    found.similarity[unknown] = others.similarity
    similarity[dropped[differ]] = found.similarity[places]
    estimated[dropped[differ]] = found.estimated(without_text, settings)[places]
    return similarity, estimated


def _found(pairs: VerifiedPairs, keys: NDArray[np.int64], count: int) -> VerifiedPairs:
    """Return what is known of the pairs left * count + right; NaN for those that are not there."""
    left, right = np.divmod(keys, max(1, count))
    known = pairs.left * count + pairs.right
    places = np.searchsorted(known, keys)
    there = np.append(known, -1)[places] == keys
    similarity = np.where(there, np.append(pairs.similarity, np.nan)[places], np.nan)
    return VerifiedPairs(left, right, similarity, np.zeros(len(keys), np.int32))
