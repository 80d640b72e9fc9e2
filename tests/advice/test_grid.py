from __future__ import annotations

import json
import math
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np
import pytest

import lookalike as la
from lookalike.advice import (
    Measurement,
    evaluate,
    growth,
    plot_growth,
    plot_touched,
    plot_trade_off,
)
from lookalike.advice.evaluation import near_radius
from support.cases.clustered import clustered
from support.oracles import scan as oracle

TIMES = {"milliseconds", "batch_milliseconds", "build_seconds"}


def untimed(row: Measurement) -> dict[str, object]:
    return {name: value for name, value in asdict(row).items() if name not in TIMES}


def test_figures_are_those_of_the_definitions() -> None:
    rows, queries = clustered(300, 16), clustered(12, 16, seed=1)
    queries[:6] = rows[:6]
    evaluation = evaluate(rows, queries, k=5, slice_bits=[8], expand=[1], admit=[0])
    (row,) = evaluation.options[1:]
    index = la.SliceIndex(rows, 8)
    found = index.search(queries, 5, expand=1, admit=0, explain=True)
    _, true_distances = oracle.search(rows, queries, 5)
    true_ids, _ = oracle.search(rows, queries, 100)

    cdr, recall, ties, hits, in_100 = [], [], [], [], []
    for answer, near, true, close in zip(
        found.ids.tolist(), found.distances.tolist(), true_ids, true_distances, strict=True
    ):
        assert -1 not in answer
        sums = [(sum(close[:p]), sum(near[:p])) for p in range(1, 6)]
        cdr.append(np.mean([1 if not b else a / b for a, b in sums]))
        recall.append(len(set(answer) & set(true[:5])) / 5)
        ties.append(sum(distance <= close[-1] for distance in near) / 5)
        hits.append(near[0] == close[0])
        in_100.append(len(set(answer) & set(true)) / 5)
    assert row.cdr == pytest.approx(np.mean(cdr))
    assert row.recall == pytest.approx(np.mean(recall))
    assert row.recall_by_distance == pytest.approx(np.mean(ties))
    assert row.nearest_hit_rate == pytest.approx(np.mean(hits))
    assert row.top_10_in_100 == pytest.approx(np.mean(in_100))
    near_ones = [min(5, len(one)) for one in oracle.within(rows, queries, 12)]
    got = sum(int(((one >= 0) & (one <= 12)).sum()) for one in found.distances)
    assert row.near_duplicate_recall == pytest.approx(got / sum(near_ones))
    assert found.explanation is not None
    assert row.touched == pytest.approx(found.explanation.candidates.mean() / 300)
    assert row.lists == found.explanation.lists.mean() == 16  # others would admit no candidates
    assert row.bytes_per_signature == index.memory_bytes / 300
    assert all(getattr(row, name) > 0 for name in TIMES)


def test_the_scan_comes_first_and_is_perfect() -> None:
    evaluation = evaluate(clustered(200, 16), sample=30, k=4)
    scan = evaluation.chosen
    assert (scan.index, scan.settings, scan.touched, scan.bytes_per_signature) == (
        "scan",
        {},
        1.0,
        16,
    )
    assert scan.cdr == scan.recall == scan.nearest_hit_rate == scan.near_duplicate_recall == 1.0
    assert (evaluation.count, evaluation.bits, evaluation.queries, near_radius(128)) == (
        200,
        128,
        30,
        12,
    )


def test_a_sampled_query_is_not_its_own_neighbor() -> None:
    """All signatures are far apart, so that an index of long slices finds none of the others."""
    rows = np.random.default_rng(0).integers(0, 256, (40, 16), dtype=np.uint8)
    row = evaluate(rows, slice_bits=[28], expand=[0], k=3, sample=40).options[1]
    assert row.cdr == row.recall == row.nearest_hit_rate == 0.0
    assert row.near_duplicate_recall is None


def test_equal_signatures() -> None:
    rows = np.zeros((3000, 8), np.uint8)
    row = evaluate(rows, slice_bits=[8], expand=[0], k=3, sample=20).options[1]
    assert row.cdr == row.nearest_hit_rate == row.near_duplicate_recall == 1.0


def test_reading_more_lists_touches_more_and_finds_more() -> None:
    rows = evaluate(clustered(500, 16), slice_bits=[10], expand=range(4), sample=50).options[1:]
    touched = [row.touched for row in rows]
    assert touched == sorted(touched)
    assert [row.cdr for row in rows] == sorted(row.cdr for row in rows)
    lists = [sum(math.comb(10, ones) for ones in range(expand + 1)) for expand in range(4)]
    for row, number in zip(rows, lists, strict=True):
        assert 12 * number <= row.lists <= 13 * number  # 128 bits: slices of 10 and of 9


def test_the_grid_has_every_setting_once() -> None:
    rows = evaluate(
        clustered(60, 8), slice_bits=[9, 8, 9], expand=[2, 0, 2], admit=[0, 1, 7], sample=5
    ).options[1:]
    settings = [(row.get("slice_bits"), row.get("expand"), row.get("admit")) for row in rows]
    assert settings == [(w, e, a) for w in (8, 9) for e, a in ((0, 0), (2, 0), (2, 1), (2, 2))]
    rows = evaluate(clustered(60, 8), expand=[1], admit="all", sample=5).options[1:]
    assert [(row.get("expand"), row.get("admit")) for row in rows] == [(1, 0), (1, 1)]


def test_the_same_seed_gives_the_same_figures() -> None:
    rows = clustered(300, 16)
    once, again, other = (
        [untimed(row) for row in evaluate(rows, sample=20, seed=seed, threads=threads).options]
        for seed, threads in ((1, 1), (1, 2), (2, 1))
    )
    assert once == again
    assert once != other


@pytest.mark.parametrize("count", [2, 3, 9])
def test_fewer_signatures_than_neighbors(count: int) -> None:
    row = evaluate(clustered(count, 8), slice_bits=[2], expand=[2]).options[1]
    assert row.cdr == row.recall == 1.0


def test_steps_are_told() -> None:
    told: list[tuple[str, float]] = []
    evaluate(
        clustered(50, 8), slice_bits=[4, 5], expand=[0], progress=lambda *step: told.append(step)
    )
    assert told == [("evaluate", 0.5), ("evaluate", 1)]


def test_results_are_plain_values() -> None:
    evaluation = evaluate(clustered(50, 8), sample=5)
    copy = json.loads(json.dumps(evaluation.to_dict(), allow_nan=False))
    assert len(copy["options"]) == 5
    assert set(copy["options"][0]) == {field.name for field in fields(Measurement)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k is 0"),
        ({"sample": 0}, "sample is 0"),
        ({"slice_bits": []}, r"slice_bits is \[\]; expected a list"),
        ({"slice_bits": [40]}, "slice_bits is 40"),
        ({"expand": []}, r"expand is \[\]; expected a list"),
        ({"expand": [-1]}, "expand is -1"),
        ({"admit": []}, r"admit is \[\]; expected a list"),
        ({"admit": "some"}, "admit is 'some'"),
        ({"queries": np.empty((0, 8), np.uint8)}, "there are no queries"),
        ({"signatures": np.empty((0, 8), np.uint8)}, "the collection has 0 signatures"),
        ({"signatures": np.zeros((1, 8), np.uint8)}, "the collection has 1 signatures"),
    ],
)
def test_wrong_input_is_refused(options: dict[str, object], message: str) -> None:
    arguments = {"signatures": clustered(20, 8), **options}
    with pytest.raises(la.errors.ArgumentError, match=message):
        evaluate(**arguments)  # type: ignore[arg-type]


def test_growth_keeps_the_width_in_step() -> None:
    rows = growth(clustered(5000, 32), sample=20, expand=1)
    assert [row.count for row in rows] == [1000, 1000, 2000, 2000, 4000, 4000]
    widths = [row.get("slice_bits") for row in rows]
    assert widths[::2] == [None] * 3
    first = widths[1]
    assert first is not None
    assert widths[1::2] == [first, first + 1, first + 2]
    fixed = growth(clustered(5000, 32), sizes=[100, 300], slice_bits=7, sample=20, admit=0)
    assert [(row.count, row.get("slice_bits")) for row in fixed[1::2]] == [(100, 7), (300, 7)]
    assert fixed[1].get("admit") == 0


def test_growth_of_a_small_collection() -> None:
    assert [row.count for row in growth(clustered(30, 8))] == [27, 27]
    with pytest.raises(la.errors.ArgumentError, match="expected at least 2"):
        growth(clustered(1, 8))
    with pytest.raises(la.errors.ArgumentError, match="whole numbers up to 27"):
        growth(clustered(30, 8), sizes=[28])


def test_plots_are_pictures(tmp_path: Path) -> None:
    rows = clustered(1500, 16)
    evaluation = evaluate(rows, slice_bits=[6, 8], expand=[0, 1], admit="all", sample=10)
    plot_trade_off(evaluation, tmp_path / "a.png")
    plot_touched(evaluation, tmp_path / "b.png")
    plot_touched(evaluate(rows, sample=10), tmp_path / "c.png")
    plot_growth({"in step": growth(rows, sizes=[100, 200], sample=10)}, tmp_path / "d.png")
    for path in sorted(tmp_path.iterdir()):
        assert path.read_bytes().startswith(b"\x89PNG\r\n")
    with pytest.raises(la.errors.FileError, match="cannot be written"):
        plot_touched(evaluation, tmp_path / "nowhere" / "a.png")
    with pytest.raises(la.errors.ArgumentError, match="series is empty"):
        plot_growth({}, tmp_path / "e.png")
