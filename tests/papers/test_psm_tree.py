"""The trees of Figure 2 of Sood and Loguinov, and the order that our flips come in."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from papers.psm_tree import children, levels, our_order, printed_children, walked

from lookalike.indexes.tables.flip_sets import Volatility


@given(st.integers(1, 8), st.integers(1, 4))
def test_every_set_has_one_place(bits: int, size: int) -> None:
    if size > bits:
        return
    reached = [one for level in levels(size, 1 + size * bits, bits) for one in level]
    assert sorted(reached) == list(combinations(range(1, bits + 1), size))


@given(st.lists(st.integers(0, 50), min_size=4, max_size=9))
def test_no_child_is_likelier_than_its_parent(costs: list[int]) -> None:
    costs.sort()
    for parent in combinations(range(1, len(costs) + 1), 3):
        for child in children(parent, len(costs)):
            assert sum(costs[bit - 1] for bit in child) >= sum(costs[bit - 1] for bit in parent)


@settings(max_examples=30)
@given(st.lists(st.floats(-3, 3, width=32), min_size=3, max_size=9))
def test_flips_come_as_the_trees_are_walked(weights: list[float]) -> None:
    volatility = Volatility.normal()
    values = np.array(weights, np.float32)
    steps = np.minimum(np.abs(values) * np.float32(volatility.scale), len(volatility.costs) - 1)
    costs = sorted(volatility.costs[steps.astype(np.int64)].tolist())
    assert walked(costs, 3) == our_order(values, volatility, 3)


def test_the_algorithm_as_printed_makes_another_tree() -> None:
    assert children((1, 3, 5), 9) == [(1, 3, 6), (1, 4, 5)]
    assert printed_children((1, 3, 5), 9) == [(1, 3, 6), (2, 3, 5)]
    assert printed_children((1, 4, 6), 9) == [(1, 4, 7)]  # a child lost: (1, 5, 6)
