"""The volatility ordered set heap: every set once, likely ones first."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lookalike import _native
from lookalike.indexes.tables.flip_sets import STEPS, Volatility, all_sets, likely_sets
from support.oracles import flips as flip_oracle

STAIRS = np.arange(STEPS, dtype=np.uint16)
"""A curve by which a weight of n has the cost n."""


def attempts_of(
    sets: list[int], weights: NDArray[Any], costs: _native.FlipCosts, bits: int, most: int
) -> list[int]:
    """Say at which attempt the heap gives each set; there are weights for each of them."""
    attempts = np.empty(len(sets), np.int64)
    weighed = _native.FlipWeights(weights, weights.shape[1] - bits)
    _native.flip_attempts(np.array(sets, np.uint64), weighed, costs, bits, most, 1, attempts)
    found: list[int] = attempts.tolist()
    return found


def sets_of(weights: NDArray[np.float32], most: int) -> list[int]:
    """Return all sets of up to `most` bits in the order in which the heap gives them."""
    bits = len(weights)
    sets = [each for each in range(1, 2**bits) if each.bit_count() <= most]
    stairs = _native.FlipCosts(1.0, STAIRS)
    attempts = attempts_of(sets, np.tile(weights, (len(sets), 1)), stairs, bits, most)
    assert sorted(attempts) == list(range(1, len(sets) + 1))
    return [sets[place] for place in np.argsort(attempts)]


weight_lists = st.lists(st.integers(0, STEPS - 1), min_size=1, max_size=9)


@given(weight_lists, st.integers(1, 9))
def test_every_set_comes_once_and_likely_ones_first(costs: list[int], most: int) -> None:
    most = min(most, len(costs))
    total = all_sets(len(costs), most)
    assert total == sum(math.comb(len(costs), size) for size in range(1, most + 1))
    signs = np.where(np.arange(len(costs)) % 2 == 0, 1, -1)
    found = sets_of((np.array(costs) * signs).astype(np.float32), most)
    assert len(found) == total
    sums = [sum(cost for bit, cost in enumerate(costs) if flips >> bit & 1) for flips in found]
    assert sums == sorted(sums)
    assert found == flip_oracle.ordered_sets(costs, most)


@given(st.lists(st.floats(0.001, 0.5), min_size=1, max_size=7), st.integers(1, 7))
def test_the_probability_of_sets_does_not_grow(chances: list[float], most: int) -> None:
    """With costs that are log-odds, as the paper's equation 6 has them."""
    most = min(most, len(chances))
    costs = [round(140 * math.log((1 - p) / p)) for p in chances]
    odds = [math.exp(-cost / 140) for cost in costs]
    found = sets_of(np.array(costs, np.float32), most)
    likely = [
        math.prod(odds[bit] for bit in range(len(odds)) if flips >> bit & 1) for flips in found
    ]
    assert all(one >= two * (1 - 1e-9) for one, two in itertools.pairwise(likely))


def test_sets_of_three_out_of_64_bits_come_in_order() -> None:
    costs = np.random.default_rng(0).integers(0, 900, 64)
    expected = flip_oracle.ordered_sets(costs.tolist(), 3)
    assert all_sets(64, 3) == len(expected) == 64 + 2016 + 41_664
    places = [0, 1, 2, *range(100, 43_744, 2000), 43_743]
    weights = np.tile(costs.astype(np.float32), (len(places), 1))
    stairs = _native.FlipCosts(1.0, STAIRS)
    attempts = attempts_of([expected[place] for place in places], weights, stairs, 64, 3)
    assert attempts == [place + 1 for place in places]


@given(
    st.lists(st.integers(0, 300), min_size=1, max_size=30),
    st.integers(1, 8),
    st.integers(0, 64),
    st.booleans(),
)
def test_the_short_way_for_few_sets_agrees_with_the_heap(
    kernel: str, costs: list[int], most: int, wanted: int, units: bool
) -> None:
    """Which signatures are found tells which headers were tried: one of each is there."""
    bits = min(len(costs), 12)
    weights = np.zeros((1, 64), np.float32)
    weights[0, 64 - bits :] = costs[:bits]
    if units:
        weights = np.full((1, 64), 7, np.int16)
        weights[0, 64 - bits :] = costs[:bits]
    headers = np.arange(1 << bits, dtype=np.uint64) << np.uint64(64 - bits)
    offsets = np.arange((1 << bits) + 1, dtype=np.uint32)
    table = _native.Table(
        headers.view(np.uint8).reshape(-1, 8), [(64 - bits, bits)], None, offsets, False
    )
    scale = 1024.0 if units else 1.0
    _, found, _ = _native.flip_within(
        table,
        None,
        np.zeros((1, 8), np.uint8),
        _native.FlipWeights(weights, 64 - bits),
        _native.FlipCosts(scale, STAIRS),
        _native.FlipSettings(radius=most, flips=wanted, first=False, differences=False),
        10**6,
        1,
    )
    wanted = min(wanted, all_sets(bits, most))
    expected = flip_oracle.ordered_sets(costs[:bits], min(most, bits))[:wanted]
    assert sorted(found.tolist()) == sorted([0, *expected])


@pytest.mark.parametrize("queries", [1, 31, 32, 33, 700])
@pytest.mark.parametrize(
    ("bits", "most", "wanted"), [(1, 1, 1), (5, 3, 25), (20, 3, 5), (30, 4, 64)]
)
@pytest.mark.parametrize("units", [False, True])
def test_sets_chosen_together_are_those_of_the_heap(
    kernel: str, queries: int, bits: int, most: int, wanted: int, units: bool
) -> None:
    """In their order, with many equal costs, for any number of queries, wherever they go."""
    generator = np.random.default_rng(queries + bits)
    weights = generator.integers(-9, 9, (queries, 64)).astype(np.int16 if units else np.float32)
    volatility = Volatility(STAIRS, 1024.0 if units else 1.0)
    chosen = likely_sets(weights, None, bits, volatility, most, wanted, 1)
    repeated = weights.repeat(wanted, axis=0)
    attempts = attempts_of(chosen.ravel().tolist(), repeated, volatility.native(), bits, most)
    assert attempts == queries * list(range(1, wanted + 1))
    assert np.array_equal(likely_sets(weights, None, bits, volatility, most, wanted, 3), chosen)
    for threads in (1, 3):
        places = generator.permutation(queries).astype(np.uint32)
        moved = likely_sets(weights, places, bits, volatility, most, wanted, threads)
        assert np.array_equal(moved[places], chosen)


def test_places_outside_are_refused() -> None:
    weights = np.ones((2, 64), np.float32)
    for places in (np.array([0, 2], np.uint32), np.array([0], np.uint32)):
        with pytest.raises(_native.BorderError):
            likely_sets(weights, places, 8, Volatility.normal(), 3, 2, 1)


@given(weight_lists, st.integers(1, 4), st.data())
def test_attempts_are_counted(costs: list[int], most: int, data: st.DataObject) -> None:
    expected = flip_oracle.ordered_sets(costs, min(most, len(costs)))
    flips = data.draw(st.integers(0, 2 ** len(costs) - 1))
    stairs = _native.FlipCosts(1.0, STAIRS)
    attempts = attempts_of([flips], np.array([costs], np.float32), stairs, len(costs), most)
    position = 0 if flips == 0 else expected.index(flips) + 1 if flips in expected else -1
    assert attempts[0] == position


def test_small_weights_are_volatile() -> None:
    for volatility in (
        Volatility.normal(),
        Volatility.fitted(np.random.default_rng(0).normal(size=(500, 64)).astype(np.float32)),
        Volatility.fitted(np.random.default_rng(0).laplace(0, 70, (500, 64)).astype(np.float32)),
    ):
        assert (np.diff(volatility.costs.astype(int)) >= 0).all()
        at = volatility.probability(np.array([0.0, 0.1, 0.5, -0.5, 1.0]) * 128 / volatility.scale)
        assert at[0] == pytest.approx(0.5, abs=0.02)
        assert at[0] >= at[1] > at[2] == at[3] > at[4] > 0


def test_a_fitted_curve_is_the_empirical_one() -> None:
    weights = np.random.default_rng(1).normal(size=(4000, 64)).astype(np.float32)
    fitted = Volatility.fitted(weights)
    # Differences of independent weights of variance 1 have the variance 2.
    for weight in (0.2, 1.0, 2.0, 4.0):
        expected = math.erfc(weight / 2) / 2
        assert fitted.probability([weight])[0] == pytest.approx(expected, rel=0.06)
    edited = weights + np.random.default_rng(2).normal(0, 0.3, weights.shape).astype(np.float32)
    closer = Volatility.fitted(weights, edited)
    assert closer.probability([0.3])[0] == pytest.approx(math.erfc(1 / math.sqrt(2)) / 2, rel=0.06)
