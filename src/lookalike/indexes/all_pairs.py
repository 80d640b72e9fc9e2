"""All pairs within a radius, with equal signatures taken together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.errors import ResultTooLargeError, Said
from lookalike.indexes.drawing import cheapest_drawing, seconds_for_all
from lookalike.indexes.results import NO_LIMIT, Pairs, as_int64

__all__ = ["PairColumns", "pairs_of_rows", "too_many_pairs"]

Compare = Callable[[NDArray[np.uint8] | None, int], "PairColumns"]
"""Returns pairs of rows that are not skipped (1), or raises `too_many_pairs` beyond a limit."""

PairColumns = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]


def pairs_of_rows(
    signatures: NDArray[np.uint8],
    ids: NDArray[np.int64],
    radius: int,
    limit: int,
    collapse: bool,
    threads: int,
    *,
    each_with_each: bool = False,
    compare: Compare | None = None,
    recall: float | None = None,
) -> Pairs:
    """Return the pairs of distinct ids within the radius, each once; see `Index.pairs`.

    Equal signatures form a group; one of each group is compared with those of other groups, by
    blocks where that is cheaper than `each_with_each`, or as `compare` does it; by bits that are
    drawn, where that is cheaper still and a `recall` will do. Time beside that: sorting, and the
    output.
    """
    rows = np.ascontiguousarray(signatures)
    groups = _Groups.of(rows, ids)
    sizes = groups.sizes
    inside = sizes - 1 if collapse else sizes * (sizes - 1) // 2
    within_groups = int(inside.sum())  # less than 2**63 for fewer than 2**32 signatures
    if within_groups > limit:
        raise too_many_pairs(limit, radius, len(ids))
    found = None
    if recall is not None and compare is None:
        found = _compare_drawn(rows, groups, radius, recall, limit, threads)
    exact = found is None
    if found is None:
        found = (
            _compare(rows, groups, radius, limit, threads, each_with_each)
            if compare is None
            else compare(groups.skipped(), limit)
        )
    between = [found] if collapse else groups.products(found, limit - within_groups)
    if between is None or within_groups + sum(len(part[0]) for part in between) > limit:
        raise too_many_pairs(limit, radius, len(ids))
    parts = [groups.stars() if collapse else groups.cliques(), *between]
    one, two, far = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    one, two = ids[one], ids[two]
    one, two = np.minimum(one, two), np.maximum(one, two)
    # One number for both is sorted much faster.
    small = not len(two) or int(two.max()) < 2**31
    order = np.argsort(one << 32 | two) if small else np.lexsort((two, one))
    return Pairs(one[order], two[order], far[order].astype(np.int32), exact=exact)


@dataclass(eq=False)
class _Groups:
    """Equal signatures: group g has the rows at offsets[g] to offsets[g + 1], by ascending id.

    Those that stand alone are in no group. All that is found are rows, not ids.
    """

    count: int
    """Rows of the collection."""
    rows: NDArray[np.int64]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, signatures: NDArray[np.uint8], ids: NDArray[np.int64]) -> _Groups:
        rows, offsets = _native.equal_rows(signatures)
        group = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        return cls(len(ids), rows[np.lexsort((ids[rows], group))], offsets)

    @property
    def sizes(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)

    @property
    def firsts(self) -> NDArray[np.int64]:
        """Return the row that stands for each group."""
        return self.rows[self.offsets[:-1]]

    def skipped(self) -> NDArray[np.uint8] | None:
        """Return 1 for rows that another stands for, 0 for all others; None if there are none."""
        if not len(self.rows):
            return None
        skipped = np.zeros(self.count, np.uint8)
        skipped[self.rows] = 1
        skipped[self.firsts] = 0
        return skipped

    def stars(self) -> PairColumns:
        """Pair the members of each group with its first."""
        others = np.ones(len(self.rows), bool)
        others[self.offsets[:-1]] = False
        firsts = np.repeat(self.firsts, self.sizes)
        return firsts[others], self.rows[others], np.zeros(int(others.sum()), np.int32)

    def cliques(self) -> PairColumns:
        """Pair the members of each group with each other."""
        sizes = self.sizes
        left, right = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for size in np.unique(sizes):
            members = self.rows[self.offsets[:-1][sizes == size][:, None] + np.arange(size)]
            one, two = np.triu_indices(size, 1)
            left.append(members[:, one].reshape(-1))
            right.append(members[:, two].reshape(-1))
        return np.concatenate(left), np.concatenate(right), np.zeros(sum(map(len, left)), np.int32)

    def numbers(self) -> NDArray[np.int64]:
        """Return, for each row, which group it stands for, or -1."""
        numbers = np.full(self.count, -1)
        numbers[self.firsts] = np.arange(len(self.offsets) - 1)
        return numbers

    def products(self, found: PairColumns, most: int) -> list[PairColumns] | None:
        """Pair all that each of two rows stands for; None if that makes more than `most`."""
        if not len(self.rows):
            return [found]
        left, right, distances = found
        group = self.numbers()
        several = (group[left] >= 0) | (group[right] >= 0)
        alone = left[~several], right[~several], distances[~several]
        left, right, distances = left[several], right[several], distances[several]
        sizes = np.append(self.sizes, 1)  # the last one for those that stand alone
        counts = sizes[group[left]] * sizes[group[right]]
        if len(alone[0]) + int(counts.sum()) > most:
            return None
        pair = np.repeat(np.arange(len(left)), counts)
        place = np.arange(len(pair)) - np.repeat(np.cumsum(counts) - counts, counts)
        width = sizes[group[right]][pair]
        one = self._members(left[pair], group, place // width)
        two = self._members(right[pair], group, place % width)
        return [alone, (one, two, distances[pair])]

    def _members(
        self, rows: NDArray[np.int64], group: NDArray[np.int64], number: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return, of what each row stands for, the one of that number."""
        begins = np.append(self.offsets[:-1], 0)[group[rows]]
        return np.where(group[rows] < 0, rows, self.rows[begins + number])


def _compare(
    rows: NDArray[np.uint8],
    groups: _Groups,
    radius: int,
    limit: int,
    threads: int,
    each_with_each: bool,
) -> PairColumns:
    """Return the pairs of distinct signatures: of rows that stand alone or for their group."""
    skipped = groups.skipped()
    try:
        found = None
        if not each_with_each:
            found = _native.block_pairs(rows, skipped, radius, min(limit, NO_LIMIT), threads)
        if found is None:
            kept = None if skipped is None else np.flatnonzero(skipped == 0)
            some = rows if kept is None else rows[kept]
            found = _native.scan_pairs(some, kept, True, radius, min(limit, NO_LIMIT), threads)
    except _native.TooManyResults:
        raise too_many_pairs(limit, radius, len(rows)) from None
    left, right, distances = found
    return as_int64(left), as_int64(right), distances


def _compare_drawn(
    rows: NDArray[np.uint8], groups: _Groups, radius: int, recall: float, limit: int, threads: int
) -> PairColumns | None:
    """Return each pair with a chance of at least `recall`; None where finding all is as quick."""
    distinct = len(rows) - len(groups.rows) + len(groups.sizes)
    drawing = cheapest_drawing(rows, distinct, radius, recall)
    if drawing is None:
        return None
    try:
        found = _native.drawn_pairs(
            rows,
            groups.skipped(),
            drawing.positions(),
            drawing.key_bits,
            drawing.near_bits,
            radius,
            1e9 * seconds_for_all(distinct, rows.shape[1]),
            min(limit, NO_LIMIT),
            threads,
        )
    except _native.TooManyResults:
        raise too_many_pairs(limit, radius, len(rows)) from None
    if found is None:
        return None
    left, right, distances = found
    return as_int64(left), as_int64(right), distances


def too_many_pairs(limit: int, radius: int, count: int) -> ResultTooLargeError:
    """Return the error for more pairs than the caller's limit."""
    return ResultTooLargeError(
        "more than ",
        Said(f"limit={limit}", f"{limit:,}"),
        f" pairs within radius {radius} among {count} signatures; ask with a smaller radius, pair "
        "equal signatures only once with ",
        Said("collapse=True", "--collapse"),
        ", or raise ",
        Said("limit"),
    )
