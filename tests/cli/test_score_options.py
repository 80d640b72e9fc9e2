"""--admit, --rerank and --orders: what they do, and where they are refused."""

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
def sliced(tmp_path: Path) -> str:
    la.SliceIndex(ROWS, 8).save(tmp_path / "slices")
    np.save(tmp_path / "queries.npy", ROWS[:4])
    return str(tmp_path / "slices")


def asked(index: str, *options: str) -> list[str]:
    queries = str(Path(index).parent / "queries.npy")
    return ["search", index, "--signatures", queries, "-k", "3", *options]


def answers(capsys: pytest.CaptureFixture[str], command: list[str]) -> list[dict[str, Any]]:
    assert main([*command, "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_settings_of_slices_reach_the_search(
    sliced: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = answers(capsys, asked(sliced, "--expand", "2", "--admit", "0", "--rerank", "4"))
    same = la.SliceIndex(ROWS, 8).search(ROWS[:4], 3, expand=2, admit=0, rerank=4)
    assert [[one["id"] for one in query["results"]] for query in found] == same.ids.tolist()
    assert [[one["distance"] for one in query["results"]] for query in found] == (
        same.distances.tolist()
    )


def test_scores_alone_are_shown_as_such(sliced: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = answers(capsys, asked(sliced, "--expand", "1", "--rerank", "0"))
    same = la.SliceIndex(ROWS, 8).search(ROWS[:4], 3, expand=1, rerank=0)
    assert same.scores is not None
    assert [query["results"] for query in found] == [
        [{"id": id, "score": score} for id, score in zip(ids, scores, strict=True)]
        for ids, scores in zip(same.ids.tolist(), same.scores.tolist(), strict=True)
    ]
    assert not any(query["exact"] for query in found)
    assert main(asked(sliced, "--expand", "1", "--rerank", "0")) == 0
    head, first, *_ = capsys.readouterr().out.splitlines()
    assert head.split() == ["query", "id", "score", "exact"]
    assert first.split() == ["0", str(same.ids[0, 0]), str(same.scores[0, 0]), "no"]


@pytest.mark.parametrize("option", ["--admit", "--rerank", "--expand"])
def test_settings_that_do_nothing_are_refused(
    option: str, sliced: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    la.ScanIndex(ROWS).save(tmp_path / "scan")
    message = f"{option} needs -k and an index of slices"
    assert message in refused(asked(str(tmp_path / "scan"), option, "9"), capsys)
    within = ["search", sliced, "--signatures", str(tmp_path / "queries.npy"), "--radius", "3"]
    assert message in refused([*within, option, "9"], capsys)


def test_scores_alone_are_refused_where_they_cannot_do(
    sliced: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "scores alone are not exact" in refused(
        asked(sliced, "--rerank", "0", "--exact"), capsys
    )
    assert "--rerank is 2; expected" in refused(asked(sliced, "--rerank", "2"), capsys)


def test_an_index_of_prefixes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "rows.npy", ROWS)
    np.save(tmp_path / "queries.npy", ROWS[:4])
    file = str(tmp_path / "prefix")
    command = ["index", str(tmp_path / "rows.npy"), "-o", file, "--type"]
    assert main([*command, "prefix", "--orders", "5", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["index"], summary["orders"]) == ("prefix", 5)
    truth = la.ScanIndex(ROWS).search(ROWS[:4], 3)
    found = answers(capsys, asked(file, "--exact"))
    assert [[one["id"] for one in query["results"]] for query in found] == truth.ids.tolist()
    assert all(query["exact"] for query in found)
    assert "--orders does nothing with --type scan" in refused(
        [*command, "scan", "--orders", "5"], capsys
    )


def test_evaluate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "rows.npy", ROWS)
    command = ["evaluate", str(tmp_path / "rows.npy"), "--sample", "10", "-k", "3"]
    command += ["--expand", "1", "--slice-bits", "8", "--rerank", "0,3,50", "--orders", "1,4"]
    assert main(command) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[2:]]
    assert lines[0][:4] == ["slices", "expand", "admit", "rerank"]
    assert [line[:4] for line in lines[2:5]] == [["8-bit", "1", "1", n] for n in ("0", "3", "50")]
    assert [line[:2] for line in lines[5:]] == [["1", "order"], ["4", "orders"]]
    assert "--rerank is 2; expected" in refused([*command[:6], "--rerank", "2"], capsys)
    assert "orders" in refused([*command[:6], "--orders", "0"], capsys)
    assert "--tune" in refused([*command[:6], "--tune", "0.9", "--orders", "4"], capsys)


def test_exact_reaches_shards_of_prefixes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each has more signatures than are examined unless all are asked for."""
    rows = np.random.default_rng(5).integers(0, 256, (2600, 16), np.uint8)
    shards = [la.PrefixIndex(rows[:1300], 2), la.PrefixIndex(rows[1300:], 2)]
    la.ShardedIndex([la.ShardedIndex(shards[:1]), shards[1]]).save(tmp_path / "shards")
    np.save(tmp_path / "queries.npy", ~rows[:3])
    command = ["search", str(tmp_path / "shards"), "--signatures", str(tmp_path / "queries.npy")]
    for question in (["-k", "3"], ["--radius", "48"]):
        some, every = (answers(capsys, [*command, *question, *more]) for more in ([], ["--exact"]))
        assert not any(query["exact"] for query in some)
        assert all(query["exact"] for query in every)
        scan = la.ScanIndex(rows)
        same = scan.search(~rows[:3], 3) if "-k" in question else scan.within(~rows[:3], 48)
        found = [[one["id"] for one in query["results"]] for query in every]
        assert found == [ids.tolist() for ids, _ in same]
        assert any(found)
