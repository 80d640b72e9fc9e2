from __future__ import annotations

import json
from importlib import import_module

import numpy as np
import pytest

import lookalike as la
from lookalike.evaluation import Tuning, cumulative_distance_ratio, tune
from support.clustered import clustered


def settings(tuning: Tuning) -> list[tuple[int | None, int | None, int | None, float]]:
    return [(row.slice_bits, row.expand, row.admit, row.cdr) for row in tuning.rows]


def test_the_choice_is_the_quickest_that_reaches_the_target() -> None:
    tuning = tune(clustered(2000, 32), k=5, target_cdr=0.9, sample=30)
    good = [row for row in tuning.rows[1:] if row.cdr >= 0.9]
    assert tuning.reached
    assert tuning.chosen is min(good, key=lambda row: row.milliseconds)
    assert len({row.slice_bits for row in good}) > 1


def test_the_index_does_what_was_measured() -> None:
    rows = clustered(1000, 32)
    tuning = tune(rows[100:], queries=rows[:100], target_cdr=0.9)
    index = tuning.build(rows[100:])
    assert index.slice_bits == tuning.slice_bits == tuning.chosen.slice_bits
    found = index.search(rows[:100], 10, **tuning.search_settings)
    true = la.ScanIndex(rows[100:]).search(rows[:100], 10)
    cdr = cumulative_distance_ratio(found.distances, true.distances).mean()
    assert cdr == pytest.approx(tuning.chosen.cdr)


def test_the_table_marks_the_choice_and_says_why() -> None:
    tuning = tune(clustered(800, 16), target_cdr=0.8, sample=20)
    table, _, reason = str(tuning).partition("\n\n")
    lines = table.splitlines()
    assert len(lines) == len(tuning.rows) + 1
    (marked,) = [line for line in lines if line.startswith("*")]
    assert marked.split()[1:4] == [
        f"{tuning.slice_bits}-bit",
        str(tuning.search_settings["expand"]),
        str(tuning.search_settings["admit"]),
    ]
    assert reason.startswith(f"Chosen of {len(lines) - 2}, the quickest that reaches 0.8:")
    assert "exhaustive scan" in reason


def test_a_target_out_of_reach_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without expansion, signatures that are far apart are not found."""
    monkeypatch.setattr(import_module("lookalike.evaluation.tune"), "MOST_EXPAND", 0)
    rows = np.random.default_rng(0).integers(0, 256, (3000, 32), dtype=np.uint8)
    tuning = tune(rows, target_cdr=1, sample=10)
    assert not tuning.reached
    assert tuning.chosen.cdr == max(row.cdr for row in tuning.rows[1:]) < 1
    assert tuning.reason.startswith("Nothing that was tried reaches a CDR@10 of 1. Best:")
    assert "proves every answer" in tuning.reason


def test_all_but_times_is_the_same_again() -> None:
    rows = clustered(500, 16)
    assert settings(tune(rows, sample=20)) == settings(tune(rows, sample=20, threads=2))
    assert settings(tune(rows, sample=20)) != settings(tune(rows, sample=20, seed=1))


def test_lists_stay_within_memory() -> None:
    rows = clustered(3000, 32)
    free = {row.slice_bits: row.bytes_per_signature for row in tune(rows, sample=10).rows[1:]}
    sizes = sorted(3000 * (per_signature - 32) for per_signature in free.values())
    limit = int(sizes[2])
    tuning = tune(rows, sample=10, memory=limit)
    assert len({row.slice_bits for row in tuning.rows[1:]}) == 3
    assert all(3000 * (row.bytes_per_signature - 32) <= limit for row in tuning.rows[1:])
    with pytest.raises(la.ArgumentError, match="memory is 1000 bytes; the lists of 3000"):
        tune(rows, memory=1000)


@pytest.mark.parametrize("count", [2, 3, 7])
def test_fewer_signatures_than_neighbours(count: int) -> None:
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
    with pytest.raises(la.ArgumentError, match=f"the collection has {count} signatures"):
        tune(clustered(4, 8)[:count])


@pytest.mark.parametrize("target", [0, -1, 1.5, float("nan"), "high", None])
def test_targets_that_make_no_sense(target: float) -> None:
    with pytest.raises(la.ArgumentError, match="target_cdr is"):
        tune(clustered(10, 8), target_cdr=target)
