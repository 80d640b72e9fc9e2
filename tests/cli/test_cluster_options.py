"""--type clusters, --clusters and --probe: what they do, and where they are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lookalike as la
from lookalike.cli import main
from support.cases.clustered import clustered
from support.running.refusals import refused

ROWS = clustered(600, 16)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "rows.npy", ROWS)
    np.save(tmp_path / "queries.npy", ROWS[:4])
    la.SliceIndex(ROWS, 8).save(tmp_path / "slices")
    la.ClusterIndex(ROWS, 20).save(tmp_path / "clusters")
    return tmp_path


def asked(folder: Path, index: str, *options: str) -> list[str]:
    queries = str(folder / "queries.npy")
    return ["search", str(folder / index), "--signatures", queries, "--json", *options]


def answers(capsys: pytest.CaptureFixture[str], command: list[str]) -> Any:
    assert main(command) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def found_ids(found: Any) -> list[list[int]]:
    return [[one["id"] for one in query["results"]] for query in found]


def test_an_index_of_clusters(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(folder / "made")
    command = ["index", str(folder / "rows.npy"), "-o", file, "--type"]
    assert main([*command, "clusters", "--clusters", "20", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    index = la.ClusterIndex(ROWS, 20)
    assert (summary["index"], summary["clusters"]) == ("clusters", index.clusters)
    assert (folder / "made").read_bytes() == (folder / "clusters").read_bytes()
    assert main([*command, "clusters"]) == 0
    assert f", in {la.ClusterIndex(ROWS).clusters} groups: " in capsys.readouterr().out
    assert "--clusters does nothing with --type scan" in refused(
        [*command, "scan", "--clusters", "5"], capsys
    )


def test_searching_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index = la.ClusterIndex(ROWS, 20)
    one = answers(capsys, asked(folder, "clusters", "-k", "3", "--probe", "1"))
    expected = index.search(ROWS[:4], 3, probe=1, explain=True)
    assert found_ids(one) == expected.ids.tolist()
    assert expected.explanation is not None
    assert [query["exact"] for query in one] == expected.explanation.exact.tolist()
    all_of_them = answers(capsys, asked(folder, "clusters", "-k", "3", "--exact"))
    assert found_ids(all_of_them) == la.ScanIndex(ROWS).search(ROWS[:4], 3).ids.tolist()
    assert all(query["exact"] for query in all_of_them)
    near = answers(capsys, asked(folder, "clusters", "--radius", "20"))
    truth = la.ScanIndex(ROWS).within(ROWS[:4], 20)
    assert found_ids(near) == [ids.tolist() for ids, _ in truth]
    for wrong in (
        asked(folder, "slices", "-k", "3", "--probe", "1"),
        asked(folder, "clusters", "--radius", "3", "--probe", "1"),
    ):
        assert "--probe needs -k and an index of clusters" in refused(wrong, capsys)
    assert "--probe is 0; expected" in refused(
        asked(folder, "clusters", "-k", "3", "--probe", "0"), capsys
    )


def test_evaluate(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["evaluate", str(folder / "rows.npy"), "--sample", "10", "-k", "3"]
    command += ["--expand", "1", "--slice-bits", "8"]
    assert main([*command, "--clusters", "20", "--probe", "1,4", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["options"][2:]
    made = la.ClusterIndex(ROWS, 20).clusters
    chosen = [(row["parameters"]["clusters"], row["settings"]["probe"]) for row in rows]
    assert chosen == [(made, 1), (made, 4)]
    assert rows[0]["recall"] <= rows[1]["recall"]
    assert main([*command, "--clusters", "20"]) == 0
    assert f"{min(16, made)} of {made} groups" in capsys.readouterr().out
    assert "--probe goes with --clusters" in refused([*command, "--probe", "3"], capsys)
    assert "--clusters" in refused([*command[:6], "--tune", "0.9", "--clusters", "4"], capsys)


def test_a_plan_says_what_to_type(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", str(folder / "rows.npy"), "-k", "3", "--recall", "0.5"]) == 0
    assert "--type clusters --clusters 18" in capsys.readouterr().out.replace("  ", " ")
