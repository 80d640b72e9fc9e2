"""What a plan recommends finds what was asked for, on data of many kinds and other queries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from benchmarks.advice.kinds import KINDS, Rows, copies, molecules

import lookalike as la
from lookalike.advice import recall_at_k
from lookalike.advice import sample as trial_module
from lookalike.advice.planner import Prediction, Question
from lookalike.advice.sample import Sample
from lookalike.indexes.slices.lists import Lists, list_bytes
from lookalike.indexes.tuning import Option, build_option
from support.running.planned import COSTS

SLOW_SCAN = replace(COSTS, scanned_byte=1.0, reading_byte=1.0)
"""Where scans take so long that whatever may be recommended in their place is."""
QUICK_PREFIXES = replace(SLOW_SCAN, top_candidate=0.0, top_query=0.0, bucket=0.0)


def found(index: la.Index, rows: Rows, queries: Rows, k: int, **settings: Any) -> float:
    """Return the recall of queries that are not in the collection."""
    truth = la.ScanIndex(rows).search(queries, k)
    return float(recall_at_k(index.search(queries, k, **settings).ids, truth.ids).mean())


def option(made: la.results.Tuning[Prediction], index: str) -> Prediction:
    return next(each for each in made.options if each.index == index)


@pytest.mark.parametrize(
    ("recall", "costs"), [(0.8, SLOW_SCAN), (0.95, SLOW_SCAN), (0.95, QUICK_PREFIXES)]
)
@pytest.mark.parametrize("kind", KINDS)
def test_other_queries_find_what_was_asked_for(kind: str, recall: float, costs: Any) -> None:
    everything = KINDS[kind](3_400, 3)
    queries, rows = everything[:400], everything[400:]
    made = la.plan(signatures=rows, k=10, recall=recall, costs=costs)
    share = found(made.build(rows), rows, queries, 10, **made.search_settings)
    assert share >= recall - made.chosen.error
    if made.chosen.exact:
        assert share == 1
    else:
        assert made.chosen.recall is not None
        assert made.chosen.recall - made.chosen.error >= recall
        assert made.chosen.recall == pytest.approx(share, abs=3 * made.chosen.error)


def test_prefixes_of_molecules_are_not_recommended() -> None:
    """Most bits are zero: a neighbor is one of thousands that share the whole key of an order."""
    rows = molecules(16_000, 5)
    made = la.plan(signatures=rows, k=10, recall=0.95, costs=QUICK_PREFIXES)
    prefix = option(made, "prefix")
    assert prefix.obstacle == "finds too few"
    assert prefix.recall is not None
    assert prefix.recall < 0.9


@pytest.mark.parametrize("kind", ["molecules", "descriptors", "copies"])
@pytest.mark.parametrize("part", [2, 8])
def test_a_thinned_collection_does_not_flatter(
    kind: str, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is measured on some of the signatures is what all of them do, or less."""
    monkeypatch.setattr(trial_module, "_GROUP_ROWS", 0)
    everything = KINDS[kind](16_400, 4)
    queries, rows = everything[:400], everything[400:]
    question = Question(len(rows), 8 * rows.shape[1], None, 10, 0.9)
    trial = Sample(rows[::part], None).trial(question)
    assert trial.lacks("prefix") is trial.lacks("slices") is None
    assert len(trial) < len(rows) / part
    for index, parameters, settings in (
        ("prefix", {"orders": 8}, {}),
        ("slices", {"slice_bits": 12}, {"expand": 1}),
    ):
        tried = Option(index=index, parameters=parameters, settings=settings, recall=None)
        share = found(build_option(tried, rows), rows, queries, 10, **settings)
        recall, error, _ = trial.tried(tried)
        assert recall <= share + 2 * error


def test_too_few_signatures_promise_nothing() -> None:
    rows = KINDS["descriptors"](3_000, 1)
    made = la.plan(signatures=rows, count=10**6, k=10, recall=0.5, costs=SLOW_SCAN)
    assert made.chosen.index == "scan"
    for index in ("slices", "prefix", "clusters"):
        lacking = option(made, index).obstacle
        assert lacking is not None
        assert lacking.startswith("recall not measured: takes ")
        assert option(made, index).recall is None
    assert (made.queries, made.tried_rows) == (0, 0)


def test_a_size_promises_nothing() -> None:
    """Without data, whatever is not exact may find next to nothing."""
    made = la.plan(count=10**7, bits=1024, k=10, recall=0.5, costs=SLOW_SCAN)
    assert made.chosen.exact
    for each in made.options:
        if not each.exact:
            assert each.obstacle == "recall not measured: no signatures given"
            assert each.recall is None
    assert "Recall was not measured" in made.reason
    assert "?" in str(made)


def test_a_plan_says_what_was_measured() -> None:
    rows = KINDS["descriptors"](4_000, 1)
    made = la.plan(signatures=rows, k=10, recall=0.8, costs=SLOW_SCAN)
    assert not made.chosen.exact
    assert (made.queries, made.tried_rows) == (512, 4_000)
    assert f"it found {made.chosen.recall:.1%} of the nearest" in made.reason
    assert f"± {made.chosen.error:.1%} for other queries" in made.reason
    assert "Tried with 512 queries and 4,000 signatures." in made.reason
    some = la.plan(signatures=rows, count=4_400, k=10, recall=0.8, costs=SLOW_SCAN)
    assert not some.chosen.exact
    assert "Tried with 500 queries and 3,500 of 4,400 signatures." in some.reason
    values = some.to_dict()
    assert values["chosen"]["error"] == some.chosen.error
    assert (values["queries"], values["tried_rows"]) == (500, 3_500)


def test_queries_that_were_given_are_those_that_are_tried() -> None:
    """Some that are like nothing find less than those of the collection."""
    rows = KINDS["descriptors"](6_000, 1)
    far = np.random.default_rng(1).integers(0, 256, (300, 32), dtype=np.uint8)
    near = la.plan(signatures=rows, k=10, recall=0.9, costs=SLOW_SCAN)
    made = la.plan(signatures=rows, queries=far, k=10, recall=0.9, costs=SLOW_SCAN)
    assert near.chosen.microseconds < made.chosen.microseconds
    assert found(made.build(rows), rows, far, 10, **made.search_settings) >= 0.9


@pytest.mark.parametrize("count", [2, 3, 12, 60])
def test_tiny_collections(count: int) -> None:
    """A few queries prove little: the error is large, and exact indexes are left."""
    rows = copies(count, 1)
    made = la.plan(signatures=rows, k=3, recall=0.99, costs=SLOW_SCAN)
    assert made.chosen.exact or made.chosen.error < 0.02


def test_options_too_slow_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Orders of few signatures take longer than a scan."""
    tried: list[str] = []
    real = trial_module.Trial.tried

    def counted(self: trial_module.Trial, one: Option) -> trial_module.Tried:
        tried.append(one.index)
        return real(self, one)

    monkeypatch.setattr(trial_module.Trial, "tried", counted)
    rows = KINDS["uniform"](2_000, 1)
    made = la.plan(signatures=rows, k=3, recall=0.9, costs=COSTS)
    assert made.chosen.index == "scan"
    assert set(tried) == {"clusters"}  # whose groups have to be known to tell what they cost
    assert option(made, "prefix").obstacle == "recall not measured: scan is quicker"


@pytest.mark.parametrize("bits", [64, 128])
def test_lists_beyond_four_billion_have_longer_numbers(bits: int) -> None:
    """Not built: arrays that are never touched take no memory."""
    count = 3_000
    narrow, wide = (Lists.empty(count, bits, 12, 32, wide) for wide in (False, True))

    def size(lists: Lists) -> int:
        return sum(array.nbytes for array in lists.arrays().values())

    assert list_bytes(count, bits, 12) == size(narrow)
    least, most = 2**32 - 1, 2**32
    grown = list_bytes(most, bits, 12) / list_bytes(least, bits, 12)
    assert grown == pytest.approx(size(wide) / size(narrow), rel=0.1)
    made = la.plan(count=most, bits=bits, radius=3, costs=COSTS)
    slices = option(made, "slices")
    lists = list_bytes(most, bits, slices.parameters["slice_bits"])
    assert slices.memory_bytes == most * bits // 8 + lists
