"""Cosines in NumPy's double precision, each with each: what a VectorIndex is compared with."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

TOLERANCE = 1e-12


def cosines(queries: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.float64]:
    """Return the cosine of every query with every row; 0 where one of them is zero."""
    left, right = np.asarray(queries, np.float64), np.asarray(rows, np.float64)
    lengths = np.linalg.norm(left, axis=1)[:, None] * np.linalg.norm(right, axis=1)[None, :]
    products = left @ right.T
    found: NDArray[np.float64] = np.zeros_like(products)
    np.divide(products, lengths, out=found, where=lengths > 0)
    return found


def check_nearest(
    found: tuple[NDArray[np.int64], NDArray[np.float64]],
    truth: dict[int, float],
    k: int,
    *,
    exact: bool,
) -> None:
    """Check one query's answer against the cosine of every id that may be found.

    Ids whose cosines are the same but for rounding may change places.
    """
    ids, similarities = found
    assert len(set(ids.tolist())) == len(ids) <= k
    assert set(ids.tolist()) <= set(truth)
    for one, similarity in zip(ids.tolist(), similarities.tolist(), strict=True):
        assert abs(truth[one] - similarity) < TOLERANCE
    assert all(a >= b for a, b in pairwise(similarities))
    for at in range(1, len(ids)):
        assert similarities[at - 1] > similarities[at] or ids[at - 1] < ids[at]
    if exact:
        best = sorted(truth.values(), reverse=True)[:k]
        assert len(ids) == min(k, len(truth))
        np.testing.assert_allclose(similarities, best, atol=TOLERANCE)


def check_within(
    found: tuple[NDArray[np.int64], NDArray[np.float64]],
    truth: dict[int, float],
    least: float,
    *,
    exact: bool,
) -> None:
    """Check one query's matches; what is at the border but for rounding may be there or not."""
    ids, similarities = found
    given = dict(zip(ids.tolist(), similarities.tolist(), strict=True))
    assert len(given) == len(ids)
    assert all(similarity >= least for similarity in given.values())
    for one, similarity in given.items():
        assert abs(truth[one] - similarity) < TOLERANCE
    if exact:
        assert set(given) >= {one for one, cosine in truth.items() if cosine >= least + TOLERANCE}
