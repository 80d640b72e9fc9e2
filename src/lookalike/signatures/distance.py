"""Distances between signatures, without an index."""

from __future__ import annotations

from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike import _native
from lookalike.checks import flag, thread_count
from lookalike.errors import SignatureError
from lookalike.signatures.arrays import as_signatures

__all__ = ["hamming"]


def hamming(
    a: ArrayLike, b: ArrayLike, *, all_pairs: bool = False, threads: SupportsIndex | None = None
) -> NDArray[np.int32]:
    """Return in how many bits signatures differ.

    Paired by default: `int32[n]`, row i of `a` against row i of `b`; a single signature on either
    side is compared with all of the other. With `all_pairs=True` the matrix
    `int32[len(a), len(b)]`, computed by `threads` threads (all cores unless told).
    """
    left = as_signatures(a, "the first signatures", single=True)
    right = as_signatures(b, "the second signatures", single=True)
    if left.shape[1] != right.shape[1]:
        raise SignatureError(
            f"the first signatures have {8 * left.shape[1]} bits, the second {8 * right.shape[1]}; "
            "only signatures of one width can be compared"
        )
    matrix_wanted = flag("all_pairs", all_pairs)
    if matrix_wanted or 1 in (len(left), len(right)):
        matrix = np.empty((len(left), len(right)), np.int32)
        _native.scan_all(left, right, thread_count(threads), matrix)
        return matrix if matrix_wanted else matrix.reshape(-1)
    if len(left) != len(right):
        raise SignatureError(
            f"there are {len(left)} first signatures and {len(right)} second ones; "
            "pairing them needs equal numbers, all_pairs=True compares each with each"
        )
    distances = np.empty(len(left), np.int32)
    _native.paired_distances(left, right, distances)
    return distances
