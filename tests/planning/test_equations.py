"""The cost model against the numbers that the papers work out, and against itself."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lookalike as la
from lookalike import _native
from lookalike.indexes.slices.width import list_bytes
from lookalike.planning.equations import (
    StepCosts,
    batch_rate,
    block_batch_cost,
    block_bytes,
    block_cost,
    block_header_bits,
    disk_cost,
    flip_batch_cost,
    flip_bytes,
    flip_cost,
    flip_tables,
    lists_near,
    most_chosen_blocks,
    most_flips,
    pushes,
    share_near,
)
from lookalike.planning.slices import SliceWork, share_found, slice_work

costs = st.builds(
    StepCosts,
    access=st.floats(0.1, 200),
    permute=st.floats(0.1, 200),
    scan=st.floats(0.1, 200),
    heap=st.floats(0.1, 200),
    sort=st.floats(0.1, 200),
)
GIB = 2**30


# Blocks


def test_four_tables_in_8_gb_admit_2_to_the_28() -> None:
    """Section 7.1: G = 4, g = 1, 16 bits; runs of 2^12."""
    assert block_bytes(2**28, 64, 4, 1) == 8 * GIB
    assert block_header_bits(28, 64, 4, 1) == 16
    only_scanning = StepCosts(access=0, permute=0, scan=1)
    assert block_cost(28, 64, 4, 1, only_scanning) == 4 * 2**12


def test_where_runs_begin_to_grow() -> None:
    """Section 8.4: with 10 tables beyond d = 25.6, with 4 beyond 16."""
    assert block_header_bits(40, 64, 5, 2) == pytest.approx(25.6)
    assert block_header_bits(40, 64, 4, 1) == 16
    assert block_header_bits(20, 64, 5, 2) == 20


def test_ten_tables_of_eight_billion() -> None:
    """The slides: 25 or 26 leading bits of 2^34 leave at most 512; 41664 sets of 3 bits."""
    only_scanning = StepCosts(access=0, permute=0, scan=1)
    run = block_cost(34, 64, 5, 2, only_scanning) / 10
    assert 2 ** (34 - 26) < run < 512
    assert most_flips(64, 3) - most_flips(64, 2) == 41664


@given(costs, st.integers(1, 5), st.integers(1, 6), st.floats(4, 60))
def test_equations_11_to_14_are_cases_of_9(costs: StepCosts, h: int, g: int, d: float) -> None:
    b, blocks = 64, g + h
    tables = math.comb(blocks, g)
    if g * b / blocks <= d:  # (11), and (14), which is the same for G = g + h
        first = math.factorial(blocks - 1) * b / (math.factorial(h) * math.factorial(g - 1))
        rest = tables * (costs.permute + 2 ** (d - g * b / blocks) * costs.scan)
        expected = first * costs.access + rest
    else:  # (12)
        expected = tables * (costs.permute + d * costs.access + costs.scan)
    assert block_cost(d, b, blocks, g, costs) == pytest.approx(expected)


@given(costs, st.integers(1, 5), st.floats(4, 40))
def test_more_blocks_than_needed_only_cost(costs: StepCosts, h: int, d: float) -> None:
    """Section 7.1: the best G is g + h."""
    for g in range(1, 5):
        times = [block_cost(d, 64, blocks, g, costs) for blocks in range(g + h, g + h + 4)]
        assert times == sorted(times)


@given(st.floats(8, 40), st.integers(1, 6))
def test_equation_15_is_where_headers_are_as_long_as_d(d: float, h: int) -> None:
    g = most_chosen_blocks(d, 64, h)
    assert g * 64 / (g + h) == pytest.approx(d)
    assert most_chosen_blocks(64, 64, h) == math.inf


def test_a_header_table_replaces_the_binary_search() -> None:
    prices = StepCosts(access=100, permute=0, scan=0)
    assert block_cost(20, 64, 4, 1, prices) == 4 * 16 * 100
    assert block_cost(20, 64, 4, 1, prices, accesses=2) == 4 * 2 * 100


# Flips


def test_the_most_flips_there_are() -> None:
    """(20): every set of up to 3 of 26 bits."""
    assert most_flips(26, 3) == 26 + 325 + 2600
    assert most_flips(16, 1) == 16


@pytest.mark.parametrize(("less", "tables"), [(4, 1.0625), (3, 1.125), (2, 1.25), (1, 1.5), (0, 2)])
def test_tables_of_table_2(less: int, tables: float) -> None:
    """(26), and (22) in copies of the collection."""
    assert flip_tables(26, 26 - less) == tables
    assert flip_bytes(26, 26 - less, 64) == pytest.approx(tables * 2**26 * 8)


@given(costs, st.floats(8, 40), st.floats(2, 1000))
def test_equation_21_is_19_with_t_equal_d(costs: StepCosts, d: float, k: float) -> None:
    expected = k * (costs.heap * math.log2(k) + costs.access + costs.scan)
    assert flip_cost(d, d, k, costs) == pytest.approx(expected)
    assert flip_cost(d, d + 3, k, costs) == pytest.approx(expected)
    assert flip_cost(d, d - 1, k, costs) == pytest.approx(expected + k * costs.scan)


def test_one_flip_needs_no_heap() -> None:
    assert flip_cost(20, 20, 1, StepCosts(access=3, permute=0, scan=2, heap=100)) == 5


# Batches


def test_reading_a_file() -> None:
    """(16): 60 million fingerprints of 8 bytes at 480 MB a second."""
    assert disk_cost(60e6, 64, 480e6) == pytest.approx(1.0)
    assert batch_rate(10e6, 1.0, 20.0) == 0.5e6
    assert batch_rate(10e6, 20.0, 1.0) == 0.5e6


@given(costs, st.floats(10, 24), st.floats(1, 50))
def test_batches_are_lookups_and_sorting(costs: StepCosts, d: float, k: float) -> None:
    """(17) and (23), piece by piece."""
    batch, count = 2**d, 2.0**26
    blocks = block_batch_cost(count, batch, 64, 4, 1, costs)
    sorting = 4 * batch * (costs.permute + costs.sort * d)
    assert blocks == pytest.approx(sorting + count * block_cost(d, 64, 4, 1, costs))
    flips = flip_batch_cost(count, batch, d, k, costs)
    heap = batch * costs.heap * math.log2(k)
    expected = heap + count * flip_cost(d, d, k, costs) + batch * costs.sort * d
    assert flips == pytest.approx(expected)


# Slices


def test_lists_checked_as_in_the_draft() -> None:
    """Table 1 of the draft, for slices of 16 bits."""
    expected = [1, 17, 137, 697, 2517, 6885, 14893, 26333, 39203, 50643, 58651, 63019, 64839]
    expected += [65399, 65519, 65535, 65536]
    assert [lists_near(16, errors) for errors in range(17)] == expected
    assert share_near(16, 16) == 1
    assert share_near(16, 3) == pytest.approx(0.0106, abs=5e-5)


def test_bytes_of_lists_as_in_the_draft() -> None:
    assert list_bytes(1_000_000, 1024, 16) / 2**20 == pytest.approx(260, abs=0.5)


def test_two_bits_of_24_as_in_the_paper() -> None:
    """Section 5.2: slices of 12 bits find 11 of 23, of 8 bits all; 13 lists with one bit more."""
    assert share_found(24, [12, 12], 0, 2) == pytest.approx(11 / 23)
    assert share_found(24, [8, 8, 8], 0, 2) == 1
    assert share_found(24, [12, 12], 1, 2) == 1
    assert lists_near(12, 1) == 13


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


@given(st.integers(0, 12), st.integers(2, 3), st.booleans())
def test_work_of_slices_is_complete(radius: int, wide: int, sketches: bool) -> None:
    """A list more, at least, for each bit of the radius; as many rows as lists hold."""
    widths = [8 * wide] * 8
    work = slice_work(100_000_000, 8, widths, radius, sketches)
    assert work.lists >= radius + 1
    assert work.postings == pytest.approx(work.lists * 100_000_000 / 2 ** (8 * wide))
    assert 0 < work.compared <= work.postings
    assert sketches or work.compared == work.postings


@pytest.mark.parametrize("width", [8, 16])
@pytest.mark.parametrize(("radius", "slice_bits"), [(0, 12), (3, 12), (5, 12), (3, 9), (9, 14)])
def test_work_of_slices_is_what_the_index_does(width: int, radius: int, slice_bits: int) -> None:
    """Lists read, on average. Of equally good ones the index takes those that are short.

    64 bits have sketches, 128 have none.
    """
    rows = np.random.default_rng(0).integers(0, 256, (20_000, width), dtype=np.uint8)
    index = la.SliceIndex(rows, slice_bits)
    work = index.within(rows[:200] ^ 1, radius, explain=True).explanation
    assert work is not None
    bits = 8 * width
    expected = slice_work(
        20_000, width, _native.slice_widths(bits, slice_bits), radius, _native.has_sketches(bits)
    )
    if not np.isfinite(expected.lists):
        assert not work.lists.any()
        return
    assert work.lists.mean() == pytest.approx(expected.lists, rel=0.3)
    assert 0.4 * expected.postings < work.postings.mean() < 1.2 * expected.postings
    # Sketches leave few, and a query finds its own signature besides.
    assert 0.4 * expected.compared - 1 < work.candidates.mean() < 1.2 * expected.compared + 1


def test_work_of_slices_where_all_is_scanned() -> None:
    endless = SliceWork(math.inf, math.inf, math.inf)
    assert slice_work(1000, 1, [4, 4], 10, False) == endless
    assert slice_work(100, 8, [8] * 8, 30, True) == endless


def test_pushes_grow_with_the_logarithm() -> None:
    assert pushes(10, 10) == 10
    assert pushes(5, 10) == 5
    assert pushes(1000, 1) == pytest.approx(1 + math.log(1000))
    assert pushes(0, 3) == 0
