"""What plans say of orders by random permutations is what they do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import lookalike as la
from lookalike.advice import recall_at_k
from lookalike.advice.planner import Question
from lookalike.advice.predictions import prefix_options, share_examined
from support.cases.clustered import clustered
from support.running.planned import COSTS

RNG = np.random.default_rng(5)


@pytest.mark.parametrize(("orders", "examine"), [(1, 500), (4, 50), (16, 300)])
def test_the_share_of_fair_bits_is_what_is_found(orders: int, examine: int) -> None:
    bits, count, distance = 256, 30_000, 25
    rows = RNG.integers(0, 256, (count, bits // 8), np.uint8)
    queries = rows[:400].copy()
    for query in queries:
        for bit in RNG.choice(bits, distance, replace=False):
            query[bit // 8] ^= 1 << bit % 8
    found = la.PrefixIndex(rows, orders).search(queries, 1, examine=examine)
    share = float((found.ids[:, 0] == np.arange(400)).mean())
    assert share_examined(bits, orders, count, examine, distance) == pytest.approx(share, abs=0.08)


def test_shares_have_bounds() -> None:
    assert share_examined(64, 4, 1000, 1000, 64) == 0
    assert share_examined(64, 4, 1000, 1000, 0) == 1
    assert share_examined(8, 1, 10**6, 1, 3) == 0
    shares = [share_examined(256, orders, 10**6, 1000, 25) for orders in (1, 4, 16, 64)]
    assert shares == sorted(shares)


def test_a_sample_tells_what_is_found_of_skewed_bits() -> None:
    rows = clustered(6_000, 32, seed=4)
    slow_scan = replace(COSTS, scanned_byte=1.0, reading_byte=1.0)
    plan = la.plan(signatures=rows, k=10, recall=0.5, costs=slow_scan)
    told = next(option for option in plan.options if option.index == "prefix")
    index = la.PrefixIndex(rows, told.parameters["orders"])
    members = RNG.choice(len(rows), 200, replace=False)
    truth = la.ScanIndex(rows).search(rows[members], 11)
    found = index.search(rows[members], 11)
    share = float(recall_at_k(found.ids, truth.ids).mean())
    assert told.recall == pytest.approx(share, abs=0.12)


def test_memory_is_that_of_the_index() -> None:
    rows = RNG.integers(0, 256, (3_000, 16), np.uint8)
    for option in prefix_options(Question(3_000, 128, None, 5, 0.9), COSTS):
        index = la.PrefixIndex(rows, option.parameters["orders"])
        assert option.memory_bytes == index.memory_bytes


def test_a_plan_builds_it() -> None:
    rows = RNG.integers(0, 256, (3_000, 16), np.uint8)
    room = 3_000 * 16 + 250_000
    plan = la.plan(count=3_000, bits=128, k=1, recall=0.5, memory=room, costs=COSTS)
    built = plan.build(rows)
    assert built.kind == plan.chosen.index
    chosen = next(option for option in plan.options if option.index == "prefix")
    assert "orders" in chosen.parameters
    many = la.plan(count=2**33, bits=128, k=1, recall=0.5, costs=COSTS)
    assert next(o for o in many.options if o.index == "prefix").obstacle is not None
