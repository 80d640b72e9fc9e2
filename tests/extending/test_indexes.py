"""A kind of index of another package is built, saved, opened, searched and measured like ours."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lookalike as la
from lookalike.cli import main
from lookalike.indexes.kinds import KINDS

ROWS = np.random.default_rng(0).integers(0, 256, (40, 8), np.uint8)
IDS = np.random.default_rng(1).permutation(40) * 3


@pytest.fixture
def linear() -> Any:
    return KINDS["linear"].build(ROWS, IDS)


def same(index: Any) -> None:
    """Check that an index answers as the scan does."""
    scan = la.ScanIndex(ROWS, IDS)
    for options in ({}, {"among": IDS[:9].tolist()}):
        found, truth = index.search(ROWS[:5], 7, **options), scan.search(ROWS[:5], 7, **options)
        assert (found.ids.tolist(), found.exact) == (truth.ids.tolist(), True)
        near, all_near = index.within(ROWS[:5], 28, **options), scan.within(ROWS[:5], 28, **options)
        assert (near.ids.tolist(), near.distances.tolist()) == (
            all_near.ids.tolist(),
            all_near.distances.tolist(),
        )


def test_it_is_saved_opened_copied_and_pickled(linear: Any, tmp_path: Path) -> None:
    same(linear)
    linear.signer, linear.names = la.SimHash(bits=64), [f"row {n}" for n in range(120)]
    linear.save(tmp_path / "x", notes={"a": 1})
    for again in (
        la.load_index(tmp_path / "x"),
        la.open_index(tmp_path / "x"),
        la.Index.from_bytes(linear.to_bytes()),
        copy.copy(linear),
        copy.deepcopy(linear),
        pickle.loads(pickle.dumps(linear)),
    ):
        assert type(again) is type(linear)
        assert (again.signer, again.name(7)) == (linear.signer, "row 7")
        same(again)


def test_a_new_process_finds_the_package(linear: Any, tmp_path: Path) -> None:
    linear.save(tmp_path / "x")
    code = (
        "import sys, numpy, lookalike as la;"
        "print(la.load_index(sys.argv[1]).within(numpy.zeros((1, 8), 'u1'), 64))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "x")]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert told == "Matches(queries=1, matches=40, exact=True)\n"


def test_it_is_a_shard_and_holds_the_signatures_of_parts(linear: Any, tmp_path: Path) -> None:
    whole = la.ShardedIndex([linear, la.SliceIndex(ROWS[:5] ^ 255, ids=range(500, 505))])
    whole.save(tmp_path / "shards")
    again = la.load_index(tmp_path / "shards")
    assert type(again.shards[0]) is type(linear)
    assert (
        again.search(ROWS[:3], 1, exact=True, explain=True).ids[:, 0].tolist() == IDS[:3].tolist()
    )
    parts = la.PartIndex(64, index="linear")
    parts.add_many(["one", "two"], [ROWS[:20], ROWS[20:]])
    parts.save(tmp_path / "parts")
    found = la.load_index(tmp_path / "parts").search(ROWS[23:27])[0]
    assert (found.item, found.offset, found.votes) == ("two", 3, 4)


def test_the_command_line_builds_searches_and_measures_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "rows.npy", ROWS)
    index = str(tmp_path / "index.lookalike")
    build = ["index", str(tmp_path / "rows.npy"), "-o", index, "--type", "linear"]
    assert main([*build, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["index"] == "linear"
    assert main([*build, "--slice-bits", "7"]) == 2
    assert "--slice-bits does nothing with --type linear" in capsys.readouterr().err
    search = ["search", index, "--signatures", str(tmp_path / "rows.npy"), "-k", "1"]
    assert main([*search, "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["results"][0]["id"] for line in lines] == list(range(40))
    assert all(line["exact"] for line in lines)
    assert main([*search[:-2], "--radius", "0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[3])["results"][0]["id"] == 3
    assert main(["bench", "--type", "linear", "--count", "300", "--bits", "64", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["found"] == 1.0


def test_it_is_evaluated_and_built_by_a_plan() -> None:
    found = la.evaluate(ROWS, k=3, sample=10, kinds=["linear", "blocks"])
    alone, linear, blocks = found.options[-3:]
    assert [alone.settings, linear.settings] == [{"at_once": 1}, {"at_once": 40}]
    assert (linear.index, linear.recall, linear.cdr) == ("linear", 1.0, 1.0)
    assert (blocks.index, blocks.recall) == ("blocks", 1.0)
    assert "linear" in str(found)
    with pytest.raises(la.errors.ArgumentError, match="kinds is 'linaer'; expected one of slices"):
        la.evaluate(ROWS, kinds=["linaer"])


def test_a_plan_weighs_it() -> None:
    plan = la.plan(signatures=ROWS[:, :5], radius=3)
    scan, *_, linear = plan.options
    assert (scan.index, linear.index, linear.exact) == ("scan", "linear", True)
    assert linear.microseconds > scan.microseconds > 0
    assert plan.chosen is not linear
    assert "in NumPy" in str(plan)


def test_an_unknown_kind_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["index", "x.npy", "-o", str(tmp_path / "y"), "--type", "linaer"])
    assert "--type is 'linaer'; expected one of slices, " in capsys.readouterr().err
