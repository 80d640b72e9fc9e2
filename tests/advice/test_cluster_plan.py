"""What plans say of groups around centers is what these do."""

from __future__ import annotations

import numpy as np
import pytest

import lookalike as la
from lookalike.advice import recall_at_k
from support.cases.clustered import clustered
from support.running.planned import COSTS


@pytest.mark.parametrize("recall", [0.5, 0.9])
def test_a_sample_tells_what_is_found_and_compared(recall: float) -> None:
    everything = clustered(8_300, 32, seed=4)
    rows, queries = everything[:8_000], everything[8_000:]
    plan = la.plan(signatures=rows, queries=queries, k=10, recall=recall, costs=COSTS)
    told = next(option for option in plan.options if option.index == "clusters")
    assert told.obstacle is None
    index = la.ClusterIndex(rows, told.parameters["clusters"])
    truth = la.ScanIndex(rows).search(queries, 10)
    found = index.search(queries, 10, probe=int(told.settings["probe"]))
    share = float(recall_at_k(found.ids, truth.ids).mean())
    assert told.recall == pytest.approx(share, abs=0.08)
    assert told.memory_bytes == pytest.approx(index.memory_bytes, rel=0.03)


def test_a_plan_builds_it() -> None:
    rng = np.random.default_rng(2)
    hubs = rng.integers(0, 256, (40, 128), np.uint8)
    noise = np.packbits(rng.random((8_000, 1024)) < 0.3, axis=1)
    rows = hubs[rng.integers(0, 40, 8_000)] ^ noise
    plan = la.plan(signatures=rows, k=10, recall=0.3, costs=COSTS)
    assert plan.chosen.index == "clusters"
    index = plan.build(rows)
    assert isinstance(index, la.ClusterIndex)
    assert index.search(rows[:2], 3, **plan.search_settings).ids[:, 0].tolist() == [0, 1]


def test_fair_bits_have_no_groups() -> None:
    plan = la.plan(count=10**6, bits=1024, k=10, recall=0.5, costs=COSTS)
    assert all(option.index != "clusters" for option in plan.options)
    rows = np.random.default_rng(1).integers(0, 256, (3_000, 16), np.uint8)
    found = la.plan(signatures=rows, radius=5, costs=COSTS)
    assert all(option.index != "clusters" for option in found.options)
