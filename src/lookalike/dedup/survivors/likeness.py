"""Step 7, choose, the second half: how alike is each dropped document to the one that stays?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lookalike.dedup.context import JobContext
from lookalike.dedup.pairs.propose import signature_distances
from lookalike.dedup.pairs.verify import VerifiedPairs, compare_documents, only_estimated
from lookalike.dedup.read import DocumentTable
from lookalike.dedup.sign import Signed

__all__ = ["known_similarities", "likeness"]


def likeness(
    job: JobContext,
    documents: DocumentTable,
    signed: Signed,
    first: NDArray[np.int64],
    duplicate_of: NDArray[np.int64],
    pairs: VerifiedPairs,
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
    left, right = np.divmod(keys, max(1, count))
    found = known_similarities(pairs, keys, count)
    unknown = np.flatnonzero(np.isnan(found))
    others = left[unknown], right[unknown]
    distances = signature_distances(job, signed, *others)
    found[unknown] = compare_documents(job, documents, *others, distances).similarity
    similarity[dropped[differ]] = found[places]
    estimated[dropped[differ]] = only_estimated(job, documents, left)[places]
    return similarity, estimated


def known_similarities(
    pairs: VerifiedPairs, keys: NDArray[np.int64], count: int
) -> NDArray[np.float64]:
    """Return the similarity of the pairs left * count + right; NaN for those that are not there."""
    known = pairs.left * count + pairs.right
    places = np.searchsorted(known, keys)
    there = np.append(known, -1)[places] == keys
    return np.where(there, np.append(pairs.similarity, np.nan)[places], np.nan)
