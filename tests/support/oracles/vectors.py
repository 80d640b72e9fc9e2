"""Cosines in NumPy's double precision, each with each: what a VectorIndex is compared with.

And sketches and estimates, value by value.
"""

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


def sketch(vector: NDArray[Any]) -> tuple[list[int], float]:
    """Return the values of a vector's sketch, from -127 to 127, and its scale."""
    values = [float(value) for value in vector]
    most = max(map(abs, values))
    if most == 0:
        return [0] * len(values), 0.0
    step = most / 127
    length = sum(value * value for value in values) ** 0.5
    return [round(value / step) for value in values], step / length


def by_sketches(
    query: NDArray[Any], rows: list[tuple[list[int], np.float32]]
) -> list[tuple[float, int]]:
    """Return (product, number) of all sketches with a query, the largest first, ties by number.

    Products lack the scale of the query, and are rounded twice to single precision, as the core's.
    """
    asked, _ = sketch(query)
    found = []
    for number, (values, scale) in enumerate(rows):
        product = sum(a * b for a, b in zip(asked, values, strict=True))
        found.append((-float(np.float32(product) * np.float32(scale)), number))
    return [(-product, number) for product, number in sorted(found)]


def estimated_cosine(query: NDArray[Any], vector: NDArray[Any], projections: NDArray[Any]) -> float:
    """Return the estimate of a cosine from the signs of a vector's projections.

    A linear guess of the vector, times the query, over the same times the vector itself.
    """
    matrix = np.asarray(projections, np.float64)
    noise = (np.pi / 2 - 1) * len(matrix)
    guesses = np.linalg.solve(matrix @ matrix.T + noise * np.eye(len(matrix)), matrix)
    signs = np.where(np.asarray(vector, np.float64) @ matrix >= 0, 1.0, -1.0)
    guess = guesses @ signs
    lengths = [float(np.linalg.norm(np.asarray(one, np.float64))) for one in (query, vector)]
    own = float(guess @ np.asarray(vector, np.float64)) if min(lengths) > 0 else 0.0
    if own <= 0:
        return 0.0
    return float(guess @ np.asarray(query, np.float64)) / lengths[0] / (own / lengths[1])
