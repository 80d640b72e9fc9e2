from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lookalike import _native
from lookalike.indexes.bands import BandedPairs, BandLayout, choose_bands

Pairs = set[tuple[int, int]]


@st.composite
def value_rows(draw: st.DrawFn) -> NDArray[np.uint8]:
    """Rows of 16-bit values with many equal ones."""
    count, values = draw(st.integers(0, 40)), draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows = rng.integers(0, draw(st.sampled_from([1, 2, 3, 60_000])), (count, values))
    return np.ascontiguousarray(rows.astype("<u2")).view(np.uint8)


def banded(
    rows: NDArray[np.uint8],
    layout: BandLayout,
    most: int,
    first_new: int,
    threads: int,
    rank: NDArray[np.int64] | None = None,
) -> tuple[list[tuple[int, int]], BandedPairs]:
    keys = np.empty((layout.bands, len(rows)), np.uint32)
    rank = np.arange(len(rows)) if rank is None else rank
    pairs = BandedPairs(
        rows, 2, layout, keys, most=most, first_new=first_new, rank=rank, threads=threads
    )
    pairs.fill_keys(lambda share: None)
    found: list[tuple[int, int]] = []
    for band in range(layout.bands):
        for left, right in pairs.of_band(band):
            found += zip(left.tolist(), right.tolist(), strict=True)
    return found, pairs


def sharing_a_band(rows: NDArray[np.uint8], layout: BandLayout) -> Pairs:
    width = 2 * layout.rows
    return {
        (left, right)
        for left in range(len(rows))
        for right in range(left + 1, len(rows))
        if any(
            (
                rows[left, at * width : (at + 1) * width]
                == rows[right, at * width : (at + 1) * width]
            ).all()
            for at in range(layout.bands)
        )
    }


@given(value_rows(), st.data())
def test_pairs_are_those_that_share_a_band_each_once(
    rows: NDArray[np.uint8], data: st.DataObject
) -> None:
    values = rows.shape[1] // 2
    length = data.draw(st.integers(1, values))
    layout = BandLayout(data.draw(st.integers(1, values // length)), length)
    first_new = data.draw(st.integers(0, len(rows)))
    found, pairs = banded(rows, layout, 1000, first_new, data.draw(st.sampled_from([1, 3])))
    expected = {pair for pair in sharing_a_band(rows, layout) if pair[1] >= first_new}
    assert len(found) == len(set(found))
    assert set(found) == expected
    assert pairs.large_groups == 0


def test_a_large_group_costs_time_in_proportion_to_its_size() -> None:
    rows = np.zeros((5000, 4), np.uint8)
    found, pairs = banded(rows, BandLayout(2, 1), 100, 0, 2)
    assert (pairs.large_groups, pairs.rows_in_large_groups) == (2, 10_000)
    assert len(found) == len(set(found)) < 33 * len(rows)
    connected = np.empty(len(rows), np.int64)
    left, right = (np.array(side, np.int64) for side in zip(*found, strict=True))
    _native.components(left, right, connected)
    assert not connected.any()  # all hang together


def test_a_large_group_hides_no_smaller_one() -> None:
    rows = np.zeros((100, 2), np.uint16)
    rows[:, 1] = np.arange(100) % 50
    found, _ = banded(rows.view(np.uint8), BandLayout(2, 1), 10, 0, 2)
    assert {(row, row + 50) for row in range(50)} <= set(found)


@given(value_rows(), st.data())
def test_who_shares_a_small_group_is_a_pair_whatever_large_groups_it_shares(
    rows: NDArray[np.uint8], data: st.DataObject
) -> None:
    most = data.draw(st.integers(2, 10))
    layout = BandLayout(rows.shape[1] // 2, 1)
    found, _ = banded(rows, layout, most, 0, data.draw(st.sampled_from([1, 3])))
    assert set(found) <= sharing_a_band(rows, layout)
    assert all(found.count(pair) <= 2 for pair in found)
    for values in rows.view(np.uint16).T:
        for value in values:
            group = np.flatnonzero(values == value).tolist()
            if len(group) <= most:
                assert set(combinations(group, 2)) <= set(found)


@given(st.integers(0, 300), st.integers(0, 2**32))
def test_in_a_large_group_all_are_paired_with_the_best_old_and_the_best_new(
    first_new: int, seed: int
) -> None:
    rows = np.zeros((300, 2), np.uint8)
    rng = np.random.default_rng(seed)
    order = np.concatenate(
        [rng.permutation(first_new), first_new + rng.permutation(300 - first_new)]
    )
    rank = np.argsort(order)
    found, _ = banded(rows, BandLayout(1, 1), 100, first_new, 2, rank)
    assert all(left < right and right >= first_new for left, right in found)
    for leader in [*order[:first_new][:16], *order[first_new:][:16]]:
        met = {pair[0] if pair[1] == leader else pair[1] for pair in found if leader in pair}
        assert met >= set(range(first_new, 300)) - {leader}
    assert len(found) == len(set(found)) <= 48 * 300


@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.8, 0.9, 1.0])
@pytest.mark.parametrize("values", [1, 16, 128, 256])
def test_the_longest_bands_that_find_enough(values: int, threshold: float) -> None:
    layout = choose_bands(values, threshold)
    assert layout.bands * layout.rows <= values
    if layout.rows > 1:
        assert layout.chance(threshold) >= 0.995
    for longer in range(layout.rows + 1, values + 1):
        assert BandLayout(values // longer, longer).chance(threshold) < 0.995


def test_the_s_curve() -> None:
    layout = BandLayout(bands=20, rows=5)  # the textbook's example
    assert layout.chance([0.2, 0.5, 0.8]) == pytest.approx([0.006, 0.470, 0.9996], abs=0.001)


@given(value_rows(), st.integers(0, 2**32), st.sampled_from([1, 2]))
def test_equal_values_are_counted(rows: NDArray[np.uint8], seed: int, width: int) -> None:
    rng = np.random.default_rng(seed)
    count = 20 if len(rows) else 0
    left, right = rng.integers(0, max(1, len(rows)), (2, count))
    equal = np.empty(count, np.int32)
    _native.equal_values_at(rows, width, left, right, 2, equal)
    values = rows.view(np.uint16 if width == 2 else np.uint8)
    assert equal.tolist() == [
        int((values[one] == values[two]).sum()) for one, two in zip(left, right, strict=True)
    ]
