"""Steps of look-ups in sorted tables, against what the papers work out."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookalike import _native
from lookalike.indexes.batch.match import batch_header_bits
from lookalike.indexes.tables.blocks import BlockChoice
from lookalike.indexes.tables.flip_sets import all_sets
from lookalike.indexes.tables.sorted_table import TableSteps

GIB = 2**30


def test_four_tables_in_8_gb_admit_2_to_the_28() -> None:
    """Section 7.1: G = 4, g = 1, 16 bits; runs of 2^12. Ours have row numbers besides."""
    choice = BlockChoice(64, 4, 1)
    assert choice.header_bits(2**28) == 16
    assert choice.steps(2**28) == TableSteps(4, 4 * 2**12)
    assert choice.bytes(2**28) == pytest.approx(12 * GIB, rel=0.001)


def test_where_runs_begin_to_grow() -> None:
    """Section 8.4: with 10 tables beyond d = 25.6, with 4 beyond 16; blocks have whole bits."""
    ten, four = BlockChoice(64, 5, 2), BlockChoice(64, 4, 1)
    assert [ten.header_bits(2**d) for d in (20, 25, 26, 30)] == [20, 25, 25, 25]
    assert [four.header_bits(2**d) for d in (12, 16, 17, 30)] == [12, 16, 16, 16]


def test_ten_tables_of_eight_billion() -> None:
    """The slides: 25 or 26 leading bits of 2^34 leave at most 512; 41664 sets of 3 bits."""
    steps = BlockChoice(64, 5, 2).steps(2**34)
    assert steps == TableSteps(10 * 5, 10 * 512)  # in parts, as a table has less than 2^32
    assert all_sets(64, 3) - all_sets(64, 2) == 41664


@given(st.integers(1, 5), st.integers(1, 6), st.integers(2, 30))
def test_equation_9(radius: int, lead: int, d: int) -> None:
    """C(G, g) look-ups, each of a run of 2^(d - t), t the smaller of g b / G and d (8)."""
    choice = BlockChoice(60, radius + lead, lead)
    header = min(d, sum(sorted(choice.widths())[:lead]))
    tables = math.comb(radius + lead, lead)
    assert choice.steps(2**d) == TableSteps(tables, tables * 2.0 ** (d - header))


@given(st.integers(1, 5), st.integers(1, 4), st.integers(4, 30))
def test_more_blocks_than_needed_only_cost(radius: int, lead: int, d: int) -> None:
    """Section 7.1: the best G is g + h."""
    costs = [
        BlockChoice(64, blocks, lead).usual_cost(2**d)
        for blocks in range(lead + radius, lead + radius + 4)
    ]
    assert costs == sorted(costs)


def test_the_most_flips_there_are() -> None:
    """(20): every set of up to 3 of 26 bits."""
    assert all_sets(26, 3) == 26 + 325 + 2600
    assert all_sets(16, 1) == 16
    assert all_sets(4, 9) == 15
    assert all_sets(5, 0) == 0


def test_usual_costs_are_those_of_the_core() -> None:
    costs = _native.USUAL_COSTS
    steps = TableSteps(3, 50)
    assert steps.usual_cost(8) == 3 * costs.look_up() + 50 * costs.bucket(8)
    assert steps.usual_cost(8, scattered=True) == 3 * costs.look_up() + 50 * costs.compare(8)
    assert 0 < costs.bucket(8) < costs.touch < costs.compare(8) < costs.look_up()


def test_headers_of_batches_weigh_flips_against_tables() -> None:
    """Long headers for many queries, short ones for few."""
    chunk = [1 << 20]
    few, many = (batch_header_bits(chunk, queries, 64, 3, 0.95) for queries in (100, 10**6))
    assert few < many <= 20
    assert batch_header_bits([], 10, 64, 3, None) == 0
