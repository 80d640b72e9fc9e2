"""Quality of a result, compared with the true result of `ScanIndex`.

Arrays have one row per query, nearest first; -1 is a missing result, as in `Neighbors`. Only true
results before the first -1 count. Extra columns of the result are ignored; missing columns are
missing results. A query without true neighbors scores 1.
"""

from __future__ import annotations

from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import as_array, instance, whole_number
from lookalike.errors import ArgumentError
from lookalike.indexes import Matches, Neighbors


def cumulative_distance_ratio(
    found_distances: ArrayLike, true_distances: ArrayLike
) -> NDArray[np.float64]:
    """Return the CDR of each query, from 0 to 1 (Chappell, Geva and Zuccon, section 6).

    The distance ratio DR(p) is the sum of the first p true distances, divided by the sum of the
    first p found distances; 0/0 is 1. The CDR is the mean of DR(1) to DR(k). DR is 0 from the first
    missing result on.

    Raises:
        ArgumentError: If found distances sum to less than true distances.
    """
    found, true = _side_by_side(found_distances, true_distances, "distances")
    there, due = _present(found), _present(true)
    found_sums = np.cumsum(np.where(there, found, 0), axis=1)
    true_sums = np.cumsum(np.where(due, true, 0), axis=1)
    impossible = there & due & (found_sums < true_sums)
    if impossible.any():
        query = int(np.nonzero(impossible.any(axis=1))[0][0])
        raise ArgumentError(
            f"the found distances of query {query} sum to less than the true distances. Are the "
            "arguments swapped, or from different collections?"
        )
    ratios = np.ones(found.shape)  # 0/0 = 1
    np.divide(true_sums, found_sums, out=ratios, where=found_sums > 0)
    return _share((ratios * (there & due)).sum(axis=1), due.sum(axis=1))


def recall_at_k(found_ids: ArrayLike, true_ids: ArrayLike) -> NDArray[np.float64]:
    """Return the share of the true ids that was found, for each query.

    Among equal distances, the true ids are the smallest; others count as missing. See
    `recall_by_distance`.
    """
    found, true = _side_by_side(found_ids, true_ids, "ids")
    return _share(_common(found, true), _present(true).sum(axis=1))


def recall_by_distance(
    found_distances: ArrayLike, true_distances: ArrayLike
) -> NDArray[np.float64]:
    """Return the recall of each query, where any result as near as the k-th true one counts."""
    found, true = _side_by_side(found_distances, true_distances, "distances")
    due = _present(true)
    farthest = np.where(due, true, -1).max(axis=1, initial=-1)
    hits = (_present(found) & (found <= farthest[:, None])).sum(axis=1)
    wanted = due.sum(axis=1)
    return _share(np.minimum(hits, wanted), wanted)


def top_in_top(
    found_ids: ArrayLike, true_ids: ArrayLike, top: SupportsIndex = 10, among: SupportsIndex = 100
) -> NDArray[np.float64]:
    """Return the share of the `top` found ids that are among the first `among` true ids.

    Figures 1 and 2 of the earlier draft are `top_in_top(..., 10, 10)` and `(..., 10, 100)`, times
    ten.
    """
    first = whole_number("top", top, at_least=1)
    last = whole_number("among", among, at_least=first)
    found, true = _rows(found_ids, "found_ids"), _rows(true_ids, "true_ids")
    _same_queries(found, true)
    true = true[:, :last]
    wanted = np.minimum(_present(true).sum(axis=1), first)
    return _share(_common(found[:, :first], true), wanted)


def nearest_hit_rate(found_distances: ArrayLike, true_distances: ArrayLike) -> float:
    """Return the share of queries whose first result is a nearest one, including ties."""
    found, true = _side_by_side(found_distances, true_distances, "distances")
    if not found.size:
        return 1.0
    return float(np.mean((found[:, 0] == true[:, 0]) | (true[:, 0] < 0)))


def near_duplicate_recall(
    found: Neighbors | Matches, truth: Neighbors | Matches, radius: SupportsIndex
) -> float | None:
    """Return the share of all neighbors within `radius` that was found; None if there are none.

    Args:
        found: Result to measure.
        truth: Result of an exact `within` of at least this radius, or of an exact `search` with at
            least the k of `found`.
        radius: Largest Hamming distance.
    """
    near = whole_number("radius", radius, at_least=0)
    for name, given in (("found", found), ("truth", truth)):
        instance(name, given, (Neighbors, Matches), "what a search returned")
    if len(found) != len(truth):
        raise ArgumentError(
            f"found has {len(found)} queries, truth has {len(truth)}; expected the same queries"
        )
    due = _count_within(truth, near)
    if isinstance(found, Neighbors):
        due = np.minimum(due, found.ids.shape[1])
    hits = np.minimum(_count_within(found, near), due)
    return float(hits.sum() / due.sum()) if due.any() else None


def _count_within(result: Neighbors | Matches, radius: int) -> NDArray[np.int64]:
    """Return the number of distinct ids of each query within the radius."""
    counts = [len(np.unique(ids[distances <= radius])) for ids, distances in result]
    return np.array(counts, np.int64)


def _rows(array: ArrayLike, name: str) -> NDArray[np.int64]:
    """Return whole numbers, one row per query."""
    rows = np.atleast_2d(as_array(name, array))
    if rows.ndim != 2 or (rows.size and rows.dtype.kind not in "iu"):
        raise ArgumentError(
            f"{name} are {rows.dtype} of shape {rows.shape}; "
            "expected whole numbers of shape (queries, k)"
        )
    return rows.astype(np.int64)


def _side_by_side(
    found: ArrayLike, true: ArrayLike, what: str
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return both with the columns of the truth."""
    answer, truth = _rows(found, f"found_{what}"), _rows(true, f"true_{what}")
    _same_queries(answer, truth)
    k = truth.shape[1]
    missing = ((0, 0), (0, max(0, k - answer.shape[1])))
    return np.pad(answer[:, :k], missing, constant_values=-1), truth


def _same_queries(found: NDArray[np.int64], true: NDArray[np.int64]) -> None:
    if len(found) != len(true):
        raise ArgumentError(
            f"there are {len(found)} rows of results and {len(true)} true rows; expected one per "
            "query in both"
        )


def _present(rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which results come before the first missing one of their row."""
    return np.logical_and.accumulate(rows >= 0, axis=1)


def _common(found: NDArray[np.int64], true: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of true ids in each row of found ids."""
    counts = [np.isin(row[row >= 0], answer).sum() for answer, row in zip(found, true, strict=True)]
    return np.array(counts, np.int64)


def _share(part: NDArray[np.generic], whole: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return part / whole, and 1 for 0 / 0."""
    share = np.ones(len(whole))
    np.divide(part, whole, out=share, where=whole > 0)
    return share
