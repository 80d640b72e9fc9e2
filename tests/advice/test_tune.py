from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import lookalike as la
from lookalike.advice import (
    Measurement,
    Tuning,
    cumulative_distance_ratio,
    recall_at_k,
    tune,
)
from support.cases.clustered import clustered


def settings(tuning: Tuning[Measurement]) -> list[tuple[Any, ...]]:
    names = ("slice_bits", "expand", "admit", "probe")
    return [(*(row.get(name) for name in names), row.groups, row.cdr) for row in tuning.options]


def target(measure: str, value: float) -> dict[str, Any]:
    return {f"target_{measure}": value}


MODULE = import_module("lookalike.advice.tuner")


def cheap_lists(monkeypatch: pytest.MonkeyPatch, *, groups: bool = False) -> None:
    """As if a scan took long, which it does not for so few signatures; and groups, or slices."""
    measure = MODULE.measure_scan
    monkeypatch.setattr(
        MODULE, "measure_scan", lambda *given: replace(measure(*given), milliseconds=1e6)
    )
    slow = "slices" if groups else "clusters"
    measured = MODULE.measure_index

    def measure_index(*given: Any) -> Iterator[Measurement]:
        for row in measured(*given):
            yield replace(row, milliseconds=1e5) if row.index == slow else row

    monkeypatch.setattr(MODULE, "measure_index", measure_index)


@pytest.mark.parametrize("measure", ["cdr", "recall"])
def test_the_choice_is_the_quickest_that_surely_reaches_the_target(
    measure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cheap_lists(monkeypatch)
    tuning = tune(clustered(2000, 32), k=5, sample=60, **target(measure, 0.8))
    good = [row for row in tuning.options if row.surely(tuning.measure) >= 0.8]
    assert (tuning.measure, tuning.target) == (measure, 0.8)
    assert tuning.chosen is min(good, key=lambda row: row.milliseconds)
    errors = {"cdr": tuning.chosen.cdr_error, "recall": tuning.chosen.error}
    assert tuning.error == errors[measure] > 0
    assert len({row.get("slice_bits") for row in good}) > 1


def test_a_scan_that_is_quicker_is_what_is_built() -> None:
    rows = clustered(300, 16)
    tuning = tune(rows, target_recall=1, sample=20)
    assert tuning.chosen is tuning.options[0]
    assert isinstance(tuning.build(rows), la.ScanIndex)
    assert (tuning.chosen.parameters, tuning.search_settings, tuning.error) == ({}, {}, 0)
    assert "the scan is exact" in tuning.reason


@pytest.mark.parametrize("measure", ["cdr", "recall"])
@pytest.mark.parametrize("groups", [False, True])
def test_what_it_says_holds_for_other_queries(
    measure: str, groups: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Queries that were not measured with, within the error that is stated and their own.

    Both are twice the standard error, which one in twenty exceeds: at most one of six may.
    """
    cheap_lists(monkeypatch, groups=groups)
    outside = 0
    for seed in range(6):
        rows = clustered(3000, 32)
        rows = rows[np.random.default_rng(seed).permutation(len(rows))]
        queries, held_out = rows[:100], rows[100:500]
        tuning = tune(rows[500:], queries=queries, **target(measure, 0.7))
        index: Any = tuning.build(rows[500:])
        if groups:
            assert isinstance(index, la.ClusterIndex)
            assert index.clusters == tuning.chosen.groups
            assert index.clusters >= tuning.chosen.parameters["clusters"] > 1
            assert tuning.search_settings.keys() == {"probe"}
        else:
            assert index.slice_bits == tuning.chosen.parameters["slice_bits"]
            assert tuning.chosen.groups is None
        true = la.ScanIndex(rows[500:]).search(held_out, 10)
        found = index.search(held_out, 10, **tuning.search_settings)
        if measure == "cdr":
            values = cumulative_distance_ratio(found.distances, true.distances)
        else:
            values = recall_at_k(found.ids, true.ids)
        own = 2 * values.std() / len(values) ** 0.5
        outside += abs(values.mean() - getattr(tuning.chosen, measure)) > tuning.error + own
        assert values.mean() + own >= 0.7
        again = index.search(queries, 10, **tuning.search_settings)
        same = la.ScanIndex(rows[500:]).search(queries, 10)
        assert recall_at_k(again.ids, same.ids).mean() == pytest.approx(tuning.chosen.recall)
    assert outside <= 1


def test_the_table_marks_the_choice_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    cheap_lists(monkeypatch)
    tuning = tune(clustered(800, 16), target_cdr=0.8, sample=20)
    table, _, reason = str(tuning).partition("\n\n")
    lines = table.splitlines()
    assert len(lines) == len(tuning.options) + 1
    (marked,) = [line for line in lines if line.startswith("*")]
    assert marked.split()[1:4] == [
        f"{tuning.chosen.get('slice_bits')}-bit",
        str(tuning.search_settings["expand"]),
        str(tuning.search_settings["admit"]),
    ]
    assert reason.startswith(f"Chosen of {len(lines) - 2}, the quickest that reaches 0.8:")
    assert "exhaustive scan" in reason


def test_groups_are_marked_and_told_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    cheap_lists(monkeypatch, groups=True)
    tuning = tune(clustered(800, 16), target_cdr=0.8, sample=20)
    (marked,) = [line for line in str(tuning).splitlines() if line.startswith("*")]
    probe, groups = tuning.search_settings["probe"], tuning.chosen.groups
    assert marked.split()[1:5] == [str(probe), "of", str(groups), "groups"]
    assert f"{groups} groups, {probe} of them read: CDR@10" in tuning.reason


def test_more_groups_are_read_until_the_target_is_reached() -> None:
    rows = clustered(2000, 32)
    tuning = tune(rows, target_recall=0.9, sample=30)
    tried: dict[int, list[int]] = {}
    for row in tuning.options[1:]:
        if row.get("clusters") is not None and row.get("probe") is not None:
            tried.setdefault(row.get("clusters"), []).append(row.get("probe"))
            last = row.get("probe") == tried[row.get("clusters")][-1]
            assert last or row.surely("recall") < 0.9
    assert sorted(tried) == [31, 62, 124]
    for probes in tried.values():
        assert probes[:-1] == [1 << power for power in range(len(probes) - 1)]


def test_a_target_out_of_reach_is_left_to_the_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without expansion, signatures that are far apart are not found."""
    monkeypatch.setattr(MODULE, "MOST_EXPAND", 0)
    rows = np.random.default_rng(0).integers(0, 256, (3000, 32), dtype=np.uint8)
    tuning = tune(rows, target_cdr=1, sample=10)
    assert max(row.cdr for row in tuning.options[1:] if row.groups is None) < 1
    assert tuning.chosen is tuning.options[0]
    reached = [row for row in tuning.options[1:] if row.cdr == 1]
    assert all(row.groups == row.get("probe") for row in reached)  # which read everything
    why = (
        "Nothing that surely reaches" if reached else f"None of {len(tuning.options) - 1} settings"
    )
    assert tuning.reason.startswith(why)
    assert "the scan is exact" in tuning.reason


def test_one_target_is_enough() -> None:
    with pytest.raises(la.errors.ArgumentError, match="both given"):
        tune(clustered(10, 8), target_cdr=0.9, target_recall=0.9)


def test_all_but_times_is_the_same_again() -> None:
    rows = clustered(500, 16)
    assert settings(tune(rows, sample=20)) == settings(tune(rows, sample=20, threads=2))
    assert settings(tune(rows, sample=20)) != settings(tune(rows, sample=20, seed=1))


def test_lists_stay_within_memory() -> None:
    rows = clustered(3000, 32)
    measured = tune(rows, sample=10).options[1:]
    free = {
        row.get("slice_bits"): row.bytes_per_signature for row in measured if row.get("slice_bits")
    }
    assert {row.get("clusters") for row in measured} == {None, 46, 93, 186}
    sizes = sorted(3000 * (per_signature - 32) for per_signature in free.values())
    limit = int(sizes[2])
    tuning = tune(rows, sample=10, memory=limit)
    assert len({row.get("slice_bits") for row in tuning.options[1:] if row.get("slice_bits")}) == 3
    room = 3000 * (32 + 12) + 93 * (32 + 8)
    fits = tune(rows, sample=10, memory=room).options[1:]
    assert {row.get("clusters") for row in fits} == {46, 93}
    slices = [row for row in tuning.options[1:] if row.get("slice_bits")]
    assert all(3000 * (row.bytes_per_signature - 32) <= limit for row in slices)
    with pytest.raises(la.errors.ArgumentError, match="memory is 1000 bytes; the lists of 3000"):
        tune(rows, memory=1000)


@pytest.mark.parametrize("count", [2, 3, 7])
def test_fewer_signatures_than_neighbors(count: int) -> None:
    tuning = tune(clustered(count, 8), k=10)
    assert tuning.queries == count
    assert len(tuning.build(clustered(count, 8))) == count


def test_one_signature_will_do_for_other_queries() -> None:
    assert tune(clustered(1, 8), queries=clustered(3, 8, seed=1)).queries == 3


def test_plain_values() -> None:
    tuning = tune(clustered(100, 8), sample=5)
    copy = json.loads(json.dumps(tuning.to_dict(), allow_nan=False))
    assert copy["search_settings"] == tuning.search_settings
    assert copy["reason"] == tuning.reason


@pytest.mark.parametrize("count", [0, 1])
def test_nothing_to_tune_on(count: int) -> None:
    with pytest.raises(la.errors.ArgumentError, match=f"the collection has {count} signatures"):
        tune(clustered(4, 8)[:count])


@pytest.mark.parametrize("target", [0, -1, 1.5, float("nan"), "high"])
def test_targets_that_make_no_sense(target: float) -> None:
    with pytest.raises(la.errors.ArgumentError, match="target_cdr is"):
        tune(clustered(10, 8), target_cdr=target)
