"""What slices take and find, against papers' figures, all placings of errors, and the index."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lookalike as la
from lookalike import _native
from lookalike.advice.predictions import share_found
from lookalike.indexes.slices.lists import list_bytes

QUERIES = 100


def test_lists_checked_as_in_the_draft() -> None:
    """Table 1 of the draft, for slices of 16 bits."""
    expected = [1, 17, 137, 697, 2517, 6885, 14893, 26333, 39203, 50643, 58651, 63019, 64839]
    expected += [65399, 65519, 65535, 65536]
    assert [_native.lists_near(16, errors) for errors in range(17)] == expected
    assert _native.lists_near(16, 3) / 2**16 == pytest.approx(0.0106, abs=5e-5)


def test_bytes_of_lists_as_in_the_draft() -> None:
    assert list_bytes(1_000_000, 1024, 16) / 2**20 == pytest.approx(260, abs=0.5)


def test_two_bits_of_24_as_in_the_paper() -> None:
    """Section 5.2: slices of 12 bits find 11 of 23, of 8 bits all; 13 lists with one bit more."""
    assert share_found(24, [12, 12], 0, 2) == pytest.approx(11 / 23)
    assert share_found(24, [8, 8, 8], 0, 2) == 1
    assert share_found(24, [12, 12], 1, 2) == 1
    assert _native.lists_near(12, 1) == 13


@given(st.integers(0, 12), st.integers(0, 3), st.sampled_from([[4, 4, 4], [6, 6], [5, 4, 3]]))
def test_the_share_found_is_that_of_all_places(
    distance: int, expand: int, widths: list[int]
) -> None:
    """Every way to place the errors, one after the other."""
    starts = [sum(widths[:slice_]) for slice_ in range(len(widths))]
    found = [
        any(
            sum(start <= place < start + width for place in places) <= expand
            for start, width in zip(starts, widths, strict=True)
        )
        for places in combinations(range(12), distance)
    ]
    assert share_found(12, widths, expand, distance) == pytest.approx(sum(found) / len(found))


def test_equal_chunks_as_they_are_known_to_be() -> None:
    """Four chunks of 32 bits, 4 to 9 bits changed."""
    shares = [round(100 * share_found(128, [32] * 4, 0, distance)) for distance in range(4, 10)]
    assert shares == [90, 75, 60, 47, 35, 26]
    assert share_found(128, [32] * 4, 0, 0) == 1


@given(st.integers(0, 12), st.integers(1, 24), st.sampled_from([64, 128]))
def test_work_within_a_radius_is_complete(radius: int, slice_bits: int, bits: int) -> None:
    """A list more, at least, for each bit of the radius; as many rows as lists hold."""
    work = _native.expected_work(bits, slice_bits, 100_000_000, radius, QUERIES)
    if work is None:
        return  # more than a scan
    lists, postings, compared = work
    widths = _native.slice_widths(bits, slice_bits)
    assert lists >= radius + 1
    assert (
        lists * 1e8 / 2 ** max(widths)
        <= postings * (1 + 1e-9)
        <= lists * 1e8 / 2 ** min(widths) * (1 + 2e-9)
    )
    assert 0 < compared <= postings
    assert _native.has_sketches(bits) or compared == postings


def _list_cost(bits: int, entries: float) -> float:
    return _native.USUAL_COSTS.list + entries * _native.USUAL_COSTS.listed(bits // 8)


def _cheapest(bits: int, slice_bits: int, count: int, radius: int) -> float:
    """Every way to share out the thresholds, and what the cheapest one costs."""
    widths = _native.slice_widths(bits, slice_bits)
    best: dict[int, float] = {0: 0.0}
    for width in widths:
        reached: dict[int, float] = {}
        for steps, cost in best.items():
            for more in range(min(radius + 1 - steps, width + 1) + 1):
                lists = sum(math.comb(width, ones) for ones in range(more))
                total = cost + lists * _list_cost(bits, count / 2**width)
                reached[steps + more] = min(total, reached.get(steps + more, math.inf))
        best = reached
    return best.get(radius + 1, math.inf)


@given(
    st.sampled_from([8, 16, 24, 40, 128, 136]),
    st.integers(3, 12),
    st.integers(1, 5000),
    st.integers(0, 12),
)
def test_thresholds_are_shared_out_at_the_least_cost(
    bits: int, slice_bits: int, count: int, radius: int
) -> None:
    """Against all ways there are; those that cost more than a scan are none."""
    work = _native.expected_work(bits, slice_bits, count, radius, QUERIES)
    least = _cheapest(bits, slice_bits, count, radius)
    if work is None:
        assert least > _native.USUAL_COSTS.scan(bits // 8 * count, QUERIES) * (1 - 1e-9)
    else:
        lists, postings, _ = work
        assert lists * _list_cost(bits, postings / lists) == pytest.approx(least)


@pytest.mark.parametrize("width", [8, 16])
@pytest.mark.parametrize(("radius", "slice_bits"), [(0, 12), (3, 12), (5, 12), (3, 9), (9, 14)])
def test_expected_work_is_what_the_index_does(width: int, radius: int, slice_bits: int) -> None:
    """Lists read, on average. Of equally good ones the index takes those that are short.

    64 bits have sketches, 128 have none.
    """
    rows = np.random.default_rng(0).integers(0, 256, (20_000, width), dtype=np.uint8)
    index = la.SliceIndex(rows, slice_bits)
    work = index.within(rows[:200] ^ 1, radius, explain=True).explanation
    assert work is not None
    expected = _native.expected_work(8 * width, slice_bits, len(rows), radius, 200)
    if expected is None:
        assert not work.lists.any()
        return
    lists, postings, compared = expected
    assert work.lists.mean() == pytest.approx(lists, rel=0.3)
    assert 0.4 * postings < work.postings.mean() < 1.2 * postings
    # Sketches leave few, and a query finds its own signature besides.
    assert 0.4 * compared - 1 < work.candidates.mean() < 1.2 * compared + 1


def test_where_all_is_scanned_no_lists_are_expected() -> None:
    assert _native.expected_work(8, 4, 1000, 10, QUERIES) is None
    assert _native.expected_work(64, 8, 100, 30, QUERIES) is None
    assert _native.expected_work(64, 8, 10**9, 64, QUERIES) is None


@pytest.mark.parametrize(("bits", "slice_bits"), [(0, 8), (64, 0), (64, 33)])
def test_slices_that_cannot_be(bits: int, slice_bits: int) -> None:
    with pytest.raises(ValueError, match="slices have from 1 bit"):
        _native.expected_work(bits, slice_bits, 1000, 3, QUERIES)
