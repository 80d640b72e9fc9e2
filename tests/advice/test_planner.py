"""Plans: clear-cut choices, what they say, what they build, and what they refuse."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import lookalike as la
from lookalike.advice.machine import MachineCosts, pushes
from lookalike.advice.planner import TOGETHER, Prediction, Question
from lookalike.advice.predictions import block_options, flip_options, scan_options, slice_options
from lookalike.indexes.tables.flip_sets import all_sets, flips_expected
from lookalike.indexes.tables.sorted_table import MOST_ROWS
from support.oracles import scan as oracle
from support.running.planned import COSTS


def plan(**question: Any) -> la.results.Tuning[Prediction]:
    return la.plan(costs=COSTS, **question)


def option(made: la.results.Tuning[Prediction], index: str) -> Prediction:
    return next(each for each in made.options if each.index == index)


# Choices


def test_a_handful_is_scanned() -> None:
    assert plan(count=100, bits=64, radius=3).chosen.index == "scan"
    assert plan(count=1, bits=1024, k=1).chosen.index == "scan"


def test_everything_within_all_bits_is_scanned() -> None:
    """Whatever is read by slices, it is everything."""
    assert plan(count=1_000_000, bits=64, radius=64).chosen.index == "scan"


def test_nearest_neighbors_that_must_be_proven_are_scanned() -> None:
    made = plan(count=1_000_000, bits=1024, k=10)
    assert made.chosen.index == "scan"
    assert option(made, "slices").obstacle == "cannot promise that"


def near_copies() -> NDArray[np.uint8]:
    """4000 signatures of 1024 bits, of which each has three others within a few bits."""
    generator = np.random.default_rng(3)
    rows = np.repeat(generator.integers(0, 256, (1000, 128), dtype=np.uint8), 4, axis=0)
    return rows ^ np.packbits(generator.random((4000, 1024)) < 0.02, axis=1)


def test_near_neighbors_are_found_by_slices() -> None:
    slices = option(plan(signatures=near_copies(), k=3, recall=0.9), "slices")
    assert slices.recall is not None
    assert 0.9 <= slices.recall - slices.error < 1
    assert slices.settings.keys() == {"expand"}
    assert not slices.exact


def test_near_duplicates_among_millions_are_not_scanned() -> None:
    made = plan(count=10_000_000, bits=64, radius=3)
    assert made.chosen.index != "scan"
    assert made.chosen.exact
    assert option(made, "scan").microseconds > 50 * made.chosen.microseconds


def test_narrow_signatures_within_few_bits_are_for_tables() -> None:
    """With room: blocks. In little memory: one table, and all flips. Both are exact."""
    made = plan(count=10_000_000, bits=64, radius=3)
    assert made.chosen.index == "blocks"
    assert made.chosen.parameters["blocks"] - made.chosen.parameters["lead"] == 3
    for recall in (0.95, 1.0):
        little = plan(count=60_000_000, bits=64, radius=3, recall=recall, memory=1_100_000_000)
        assert little.chosen.index == "flips"
        assert little.chosen.exact
        assert little.search_settings == {}
        assert option(little, "blocks").obstacle == "takes too much memory"
        assert "flips, fewer with weights" in str(little)


def test_more_leading_blocks_for_more_signatures() -> None:
    """(15): with runs of thousands, more tables pay."""

    def lead(count: int) -> int:
        question = Question(count, 64, 3, None, 1.0)
        best = min(block_options(question, COSTS), key=lambda each: each.microseconds)
        return int(best.parameters["lead"])

    assert lead(100_000) == 1
    assert lead(1_000_000_000) >= 2


def test_tables_are_only_for_radii() -> None:
    nearest = {each.index for each in plan(count=1000, bits=64, k=3).options}
    assert nearest == {"scan", "slices", "prefix"}
    everything = plan(count=1000, bits=8, radius=8)
    assert "blocks" not in {each.index for each in everything.options}


def test_a_query_of_a_table_is_paid_for_once() -> None:
    slow_scan, dear = replace(COSTS, query=9_000.0), replace(COSTS, table_query=9_020.0)
    asked = Question(1_000_000, 64, radius=3, k=None, recall=0.95)
    for options in (block_options, flip_options):
        before, same, after = (
            [each.microseconds for each in options(asked, costs)]
            for costs in (COSTS, slow_scan, dear)
        )
        assert before == same
        assert after == pytest.approx([time + 9.0 for time in before])


@pytest.mark.parametrize(("count", "shards"), [(MOST_ROWS, 1), (MOST_ROWS + 1, 2), (8 * 10**9, 2)])
def test_more_rows_than_a_table_has_are_for_shards(count: int, shards: int) -> None:
    """They are looked up one by one; the index makes them by itself."""
    made = plan(count=count, bits=64, radius=3, recall=0.95)
    assert {each.index for each in made.options} == {"scan", "slices", "blocks", "flips"}
    assert made.chosen.index == "blocks"
    each = plan(count=-(-count // shards), bits=64, radius=3, recall=0.95)
    for index in ("blocks", "flips"):
        whole, one = option(made, index), option(each, index)
        assert whole.obstacle is None
        assert whole.microseconds == pytest.approx(shards * one.microseconds, rel=0.1)
        assert whole.memory_bytes == pytest.approx(shards * one.memory_bytes, rel=1e-6)
        assert whole.build_seconds == pytest.approx(shards * one.build_seconds, rel=0.1)
        assert (f"in {shards} shards" in whole.remark) == (shards > 1)
    assert ("shards" in str(made)) == (shards > 1)


def test_what_an_index_cannot_do_is_listed_with_why() -> None:
    many = option(plan(count=1000, bits=1024, radius=300), "blocks")
    assert many.obstacle == "at most 256 are made"
    assert many.remark == "301 tables"
    wide = option(plan(count=1000, bits=2**17, radius=3), "slices")
    assert wide.obstacle == "signatures have at most 65535 bits there"


def test_what_is_lacking_most_is_said_first() -> None:
    """Tables that are too many for memory are not helped by shards."""
    made = plan(count=8 * 10**9, bits=64, radius=3, memory=70 * 10**9)
    assert option(made, "blocks").obstacle == "takes too much memory"
    assert option(made, "flips").obstacle == "takes too much memory"


def test_flips_grow_with_recall_header_and_radius() -> None:
    """As measured on text, and never more than there are sets."""
    by_recall = [flips_expected(64, 3, 24, recall) for recall in (0.5, 0.8, 0.9, 0.95, 0.99, 0.999)]
    assert by_recall == sorted(by_recall)
    assert 10 <= flips_expected(64, 3, 26, 0.95) <= 50  # the paper: 23
    assert 5 <= flips_expected(64, 3, 16, 0.95) <= 12  # the paper: 6
    assert flips_expected(64, 3, 26, 0.95) > flips_expected(64, 3, 16, 0.95)
    assert flips_expected(64, 6, 16, 0.95) > flips_expected(64, 3, 16, 0.95)
    assert flips_expected(64, 1, 4, 1.0) <= all_sets(4, 1)
    assert flips_expected(64, 0, 20, 0.95) == 1


def test_for_few_queries_nothing_is_built() -> None:
    made = plan(count=1_000_000, bits=64, radius=3, queries=1)
    assert made.chosen.index == "scan"
    assert "not for so few queries" in made.reason
    assert plan(count=1_000_000, bits=64, radius=3, queries=10**7).chosen.index != "scan"


def test_what_does_not_fit_is_not_chosen() -> None:
    made = plan(count=10_000_000, bits=64, radius=3, memory=85_000_000)
    assert made.chosen.index == "scan"
    assert option(made, "slices").obstacle == "takes too much memory"
    assert "within 85 MB" in made.reason
    room = plan(count=10_000_000, bits=64, radius=3, memory=10**9)
    assert room.chosen.memory_bytes <= 10**9


@settings(max_examples=30)
@given(
    st.integers(1, 10**8),
    st.sampled_from([8, 64, 128, 1024]),
    st.integers(0, 8),
    st.floats(0.01, 1),
    st.one_of(st.none(), st.integers(1, 10**9)),
)
def test_any_question_has_a_plan_that_keeps_to_it(
    count: int, bits: int, radius: int, recall: float, queries: int | None
) -> None:
    for asked in ({"radius": radius}, {"k": radius + 1}):
        made = plan(count=count, bits=bits, recall=recall, queries=queries, **asked)
        assert made.chosen in made.options
        assert made.chosen.obstacle is None
        assert made.chosen.exact  # nothing was measured
        least = min(o.total_seconds(queries) for o in made.options if o.obstacle is None)
        assert made.chosen.total_seconds(queries) == least
        assert all(o.microseconds > 0 and o.memory_bytes >= count * bits // 8 for o in made.options)


@given(st.integers(10, 10**7), st.integers(0, 6))
def test_more_work_takes_longer(count: int, radius: int) -> None:
    """With the same slices, more signatures or a larger radius never cost less."""

    def times(count: int, radius: int) -> dict[int, float]:
        question = Question(count, 64, radius, None, 1.0)
        return {o.parameters["slice_bits"]: o.microseconds for o in slice_options(question, COSTS)}

    small, wide, many = times(count, radius), times(count, radius + 1), times(2 * count, radius)
    for slice_bits, time in small.items():
        assert wide[slice_bits] >= 0.999 * time
        assert many[slice_bits] >= 0.999 * time


def test_a_batch_of_few_postings_reads_signatures_once() -> None:
    """However slow memory is: candidates are re-ranked in the order of rows, and hardly missed."""

    def time(costs: MachineCosts) -> float:
        options = slice_options(Question(200_000, 1024, None, 10, 0.9), costs)
        chosen = {"slice_bits": 14}, {"expand": 0}
        (one,) = [each for each in options if (each.parameters, each.settings) == chosen]
        return 1000 * one.microseconds

    slow = replace(COSTS, access=((2.0**17, 2.0), (2.0**20, 1002.0), (2.0**21, 1002.0)))
    near = replace(COSTS, access=((2.0**17, 2.0), (2.0**20, 2.0)))
    lists, read = 74 * 2 * 1000, COSTS.reading_byte * 200_000 * 128 / TOGETHER
    assert time(slow) - time(near) == pytest.approx(lists + read, rel=0.01)


def test_one_query_of_a_scan_waits_for_memory() -> None:
    """A batch shares the reading; a single query has it for itself."""
    batch = next(scan_options(Question(10**6, 1024, None, 10, 1.0), COSTS))
    alone = next(scan_options(Question(10**6, 1024, None, 10, 1.0, queries=1), COSTS))
    assert alone.microseconds > 5 * batch.microseconds
    assert alone.microseconds == pytest.approx(128 * 10**6 * COSTS.reading_byte / 1000, rel=0.1)


def test_pushes_grow_with_the_logarithm() -> None:
    assert pushes(10, 10) == 10
    assert pushes(5, 10) == 5
    assert pushes(1000, 1) == pytest.approx(1 + math.log(1000))
    assert pushes(0, 3) == 0


# What it says


def test_a_plan_is_a_table_with_the_choice_marked() -> None:
    made = plan(count=10_000_000, bits=64, radius=3)
    title, _, headings, *lines = str(made).splitlines()
    assert title == "10,000,000 signatures of 64 bits: all within 3 bits, all of them"
    assert headings.split()[:3] == ["index", "built", "with"]
    (marked,) = [line for line in lines if line.startswith("*")]
    assert marked.split()[1] == made.chosen.index
    assert str(made).endswith(made.reason)
    assert f"{made.chosen.index}: the quickest of" in made.reason


def test_titles_say_what_was_asked() -> None:
    made = plan(count=1000, bits=64, radius=1, recall=0.5, queries=20)
    assert str(made).splitlines()[0] == (
        "1,000 signatures of 64 bits: all within 1 bit, at least 0.5 of them, 20 queries"
    )
    assert "the 3 nearest" in str(plan(count=1000, bits=64, k=3)).splitlines()[0]


def test_a_plan_is_plain_values() -> None:
    made = plan(count=10_000_000, bits=64, radius=3)
    values = json.loads(json.dumps(made.to_dict(), allow_nan=False))
    assert values["chosen"]["index"] == made.chosen.index
    assert len(values["options"]) == len(made.options)
    assert values["reason"] == made.reason


# What it builds


@pytest.mark.parametrize("planned_for", [300, 10_000_000])
def test_a_built_plan_finds_what_it_says(planned_for: int) -> None:
    rows = oracle.collection(300, 8, "clustered", 3)
    ids = list(range(5, 305))
    index = plan(count=planned_for, bits=64, radius=3).build(rows, ids=ids)
    matches = index.within(rows[:20], 3)
    assert matches.exact
    for found, expected in zip(matches, oracle.within(rows, rows[:20], 3, ids), strict=True):
        assert list(zip(found[1].tolist(), found[0].tolist(), strict=True)) == expected


def test_blocks_are_built_as_planned() -> None:
    made = plan(count=10_000_000, bits=64, radius=3)
    index = made.build(oracle.collection(500, 8, "uniform", 1), threads=1)
    assert isinstance(index, la.BlockIndex)
    assert index.radius == 3
    planned = made.chosen.parameters
    assert (index.blocks, index.lead) == (planned["blocks"], planned["lead"])


def test_compressed_tables_where_memory_is_short() -> None:
    """Room for row numbers of ten tables, and not for copies of 1024 bits in four."""
    made = plan(count=1_000_000, bits=1024, radius=2, memory=200_000_000)
    chosen = option(made, "blocks")
    assert chosen.obstacle is None
    assert chosen.parameters["compressed"] == 1
    built = replace(made, chosen=chosen).build(oracle.collection(300, 128, "uniform", 1))
    assert isinstance(built, la.BlockIndex)
    assert built.compressed


def test_flips_are_built_as_planned() -> None:
    rows = oracle.collection(500, 8, "uniform", 1)
    made = plan(count=60_000_000, bits=64, radius=3, recall=0.95, memory=1_100_000_000)
    index = made.build(rows, threads=1)
    assert isinstance(index, la.FlipIndex)
    assert index.header_bits == made.chosen.parameters["header_bits"]
    matches = index.within(rows, 3, **made.search_settings)
    assert matches.exact
    assert set(range(500)) <= set(matches.ids.tolist())


@pytest.mark.parametrize("index", ["blocks", "flips"])
def test_planned_memory_is_what_an_index_takes(index: str) -> None:
    rows = oracle.collection(30_000, 16, "uniform", 1)
    made = plan(count=30_000, bits=128, radius=2, recall=0.95)
    chosen = option(made, index)
    built = replace(made, chosen=chosen).build(rows)
    assert built.memory_bytes == pytest.approx(chosen.memory_bytes, rel=0.05)


def test_slices_are_built_as_planned() -> None:
    rows = near_copies()
    made = plan(signatures=rows, k=3, recall=0.9)
    made = replace(made, chosen=option(made, "slices"))
    index = made.build(rows, threads=1)
    assert isinstance(index, la.SliceIndex)
    assert index.slice_bits == made.chosen.parameters["slice_bits"]
    found = index.search(rows[:5], 1, **made.search_settings)
    assert found.ids.ravel().tolist() == [0, 1, 2, 3, 4]


# What it refuses


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({}, "neither given; expected one of them"),
        ({"radius": 3, "k": 1}, "both given; expected one of them"),
        ({"radius": -1}, "radius is -1; expected a whole number from 0 to 64"),
        ({"radius": 65}, "radius is 65; expected a whole number from 0 to 64"),
        ({"radius": 2.5}, "radius is 2.5 of type float"),
        ({"k": 0}, "k is 0; expected a whole number of at least 1"),
        ({"radius": 3, "count": 0}, "count is 0"),
        ({"radius": 3, "count": 2**50}, "count is"),
        ({"radius": 3, "bits": 0}, "bits is 0"),
        ({"radius": 3, "bits": 65}, "bits is 65; expected a multiple of 8"),
        ({"radius": 3, "recall": 0}, "recall is 0; expected a number above 0 and at most 1"),
        ({"radius": 3, "recall": 1.5}, "recall is 1.5"),
        ({"radius": 3, "recall": float("nan")}, "recall is nan"),
        ({"radius": 3, "recall": "most"}, "recall is 'most'"),
        ({"radius": 3, "memory": -1}, "memory is -1"),
        ({"radius": 3, "memory": 100}, "take 8000 by themselves"),
        ({"radius": 3, "queries": 0}, "queries is 0"),
    ],
)
def test_questions_that_make_no_sense(question: dict[str, Any], message: str) -> None:
    with pytest.raises(la.errors.ArgumentError, match=message):
        plan(**{"count": 1000, "bits": 64, **question})


def test_other_signatures_than_planned_for_are_refused() -> None:
    made = plan(count=1000, bits=64, radius=3)
    with pytest.raises(
        la.errors.ArgumentError, match="signatures have 128 bits; the tuning is for 64"
    ):
        made.build(np.zeros((5, 16), np.uint8))
    with pytest.raises(la.errors.SignatureError):
        made.build(np.zeros((5, 16)))
