"""What billions of documents take: figures that grow as they should, and tasks with skew."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookalike.advice import plan_scale, scale
from lookalike.cli import main
from lookalike.errors import ArgumentError
from lookalike.indexes.slices.lists import list_bytes


@settings(max_examples=5)
@given(st.integers(10**7, 10**11), st.integers(2, 50), st.integers(100, 10_000))
def test_dedup_grows_with_documents_and_texts(count: int, times: int, text_bytes: int) -> None:
    few = scale._on_spark(count, text_bytes, 0.1, 16).figures
    more = scale._on_spark(times * count, text_bytes, 0.1, 16).figures
    start = scale.SPARK.start_seconds / 3600
    hours = times * (few["core-hours"] - start) + start
    assert more["core-hours"] == pytest.approx(hours, rel=0.001)
    for name in ("shuffled", "disk in work", "memory of each bit array"):
        assert more[name] == pytest.approx(times * few[name], rel=0.05)
    longer = scale._on_spark(count, 2 * text_bytes, 0.1, 16).figures
    assert longer["core-hours"] > few["core-hours"]
    for figures in (few, more):
        rows = figures["rows of the largest band task"], figures["rows with three hot keys"]
        assert figures["memory of the largest band task"] == 48 * max(rows)


@pytest.mark.parametrize(
    ("documents", "seconds"), [(1_000_000, 28), (3_000_000, 72)]
)  # measured, core-seconds on two cores
def test_predicted_core_seconds_are_those_of_runs(documents: int, seconds: float) -> None:
    predicted = 3600 * plan_scale(documents, "spark").figures["core-hours"]
    assert predicted == pytest.approx(seconds, rel=0.1)


@given(st.integers(1, 30_000), st.integers(1, 60), st.integers(0, 2**32))
def test_rows_sent_are_those_of_partitions_that_do_not_have_too_many(
    size: int, partitions: int, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    sent = scale.rows_sent(size, partitions)
    assert sent <= min(size, scale.largest_task(partitions))
    drawn = []  # by the rule, row by row
    for _ in range(20):
        counts = np.bincount(generator.integers(partitions, size=size), minlength=partitions)
        drawn.append(sum(1 if count > 200 else int(count) for count in counts))
    spread = 200 * np.sqrt(partitions)  # whether one partition sends its rows is up to chance
    assert abs(sent - np.mean(drawn)) <= 0.05 * size + 3 * spread


@settings(max_examples=10)
@given(
    st.sampled_from([10**8, 10**9, 10**10]),
    st.sampled_from([0.6, 1.0, 1.5]),
    st.sampled_from([0.1, 0.5]),
    st.integers(0, 1000),
)
def test_no_task_gets_more_than_the_bound(
    documents: int, exponent: float, in_groups: float, seed: int
) -> None:
    partitions = documents // 100_000
    load = scale.simulate_skew(
        documents,
        partitions=partitions,
        bands=21,
        exponent=exponent,
        in_groups=in_groups,
        groups=2000,
        seed=seed,
    )
    assert load.max() <= scale.SPARK.entries_a_task + scale.largest_task(partitions, 3)


def test_gpus_hold_what_they_are_given() -> None:
    found = plan_scale(5 * 10**8, "gpu").figures
    assert found["GPUs"] == 1
    assert found["ms for one query"] == pytest.approx(15.3, rel=0.05)  # measured
    assert found["queries a second"] == pytest.approx(9164, rel=0.05)
    many = plan_scale(10**10, "gpu").figures
    assert many["GPUs"] * 0.9 * 141e9 >= many["signature bytes"]


def test_shards_fit_their_machines() -> None:
    found = plan_scale(2 * 10**9, "shards", bits=64, radius=3, memory=64 * 10**9)
    figures = found.figures
    assert figures["memory of a shard"] <= 0.9 * 64e9
    assert figures["shards"] * figures["documents of a shard"] >= 2 * 10**9
    assert list_bytes(10, 64, 8) > 0
    with pytest.raises(ArgumentError, match="a signature of 80000000 bits alone takes"):
        plan_scale(10, "shards", bits=80_000_000, memory=10**6)


def test_the_command_line_predicts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--documents", "10G", "--engine", "spark", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["documents"] == 10**10
    assert main(["plan", "--documents", "1G", "--engine", "gpu"]) == 0
    assert "GPUs" in capsys.readouterr().out
    for wrong, message in (
        (["--documents", "1G"], "need each other"),
        (["--documents", "1G", "--engine", "spark", "--radius", "3"], "does nothing with"),
        (["--count", "5", "--bits", "64"], "expected --radius or -k"),
        (["--count", "5", "--bits", "64", "--radius", "3", "--cores", "4"], "needs --documents"),
    ):
        assert main(["plan", *wrong]) != 0
        assert message in capsys.readouterr().err
