from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import lookalike as la
from lookalike.advice import machine as costs
from lookalike.cli import main
from support.running.planned import COSTS
from support.running.refusals import refused


@pytest.fixture(autouse=True)
def known_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No measuring: the costs of this machine are known."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("lookalike.advice.machine.measure_costs", lambda: COSTS)
    monkeypatch.setattr(costs, "_known", {})


def test_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--count", "10M", "--bits", "64", "--radius", "3"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("10,000,000 signatures of 64 bits: all within 3 bits")
    assert "µs a query" in text
    assert "\n*  " in text


@pytest.mark.parametrize(
    "question",
    [
        ["--radius", "3"],
        ["--radius", "5"],
        ["--radius", "3", "--memory-limit", "60kB"],
        ["--radius", "3", "--recall", "0.9"],
        ["-k", "3", "--recall", "0.5"],
    ],
)
def test_what_the_table_says_can_be_typed(
    question: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = np.random.default_rng(5).integers(0, 256, (2000, 8), np.uint8)
    np.save(tmp_path / "rows.npy", rows)
    command = ["plan", str(tmp_path / "rows.npy"), *question]
    assert main(command) == 0
    text = capsys.readouterr().out
    assert "=" not in text
    assert "()" not in text
    table = text.split("\n\n")[1].splitlines()
    built, searched = table[0].index("built"), table[0].index("searched")
    assert main([*command, "--json"]) == 0
    planned = {one["index"]: one for one in json.loads(capsys.readouterr().out)["options"]}
    for line in table[1:]:
        kind = line[3:built].strip()
        how = line[built:searched].split()
        asked = " ".join(re.findall(r"-+[a-z]+ \d+", line[searched:])).split()
        assert asked[:2] == question[:2]
        index = str(tmp_path / f"{kind}.lookalike")
        assert main(["index", str(tmp_path / "rows.npy"), "-o", index, "--quiet", *how]) == 0
        opened = la.load_index(index)
        assert opened.kind == kind
        for name in ("slice_bits", "radius", "blocks", "lead"):
            if name in planned[kind]["parameters"]:
                assert getattr(opened, name) == planned[kind]["parameters"][name]
        assert bool(planned[kind]["parameters"].get("compressed")) == (
            getattr(opened, "compressed", False)
        )
        assert main(["search", index, "--signatures", str(tmp_path / "rows.npy"), *asked]) == 0
        capsys.readouterr()


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["plan", "--count", "1.5K", "--bits", "1024", "-k", "10", "--recall", "0.9"]
    assert main([*arguments, "--memory-limit", "1G", "--query-count", "2m", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert (values["count"], values["k"], values["target"]) == (1500, 10, 0.9)
    assert (values["memory"], values["expected_queries"]) == (10**9, 2 * 10**6)
    assert values["chosen"] in values["options"]


def test_memory_is_written_as_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "plan",
        "--count",
        "10",
        "--bits",
        "64",
        "--radius",
        "3",
        "--json",
        "--memory-limit",
    ]
    for text, size in [("1GB", 10**9), ("1.5 MiB", 3 * 2**19), ("2k", 2000), ("500B", 500)]:
        assert main([*arguments, text]) == 0
        assert json.loads(capsys.readouterr().out)["memory"] == size


def test_measuring_again(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []

    def measure() -> costs.MachineCosts:
        calls.append(1)
        return COSTS

    monkeypatch.setattr("lookalike.advice.machine.measure_costs", measure)
    arguments = ["plan", "--count", "1000", "--bits", "64", "--radius", "3"]
    for more in ([], [], ["--remeasure"]):
        assert main([*arguments, *more]) == 0
    assert len(calls) == 2


def test_errors_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    error = refused(["plan", "--count", "10", "--bits", "64", "--radius", "99"], capsys)
    assert error.startswith("--radius is 99; expected")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--count", "10", "--bits", "64", "--radius", "3", "-k", "3"],
        ["--count", "ten", "--bits", "64", "--radius", "3"],
        ["--count", "-10", "--bits", "64", "--radius", "3"],
        ["--count", "1B", "--bits", "64", "--radius", "3"],
        ["--count", "10", "--bits", "64", "--radius", "3", "--memory-limit", "much"],
    ],
)
def test_wrong_usage(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["plan", *arguments])
    assert stop.value.code == 2


def test_signatures_to_measure_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = np.random.default_rng(0).integers(0, 256, (300, 8), dtype=np.uint8)
    np.save(tmp_path / "rows.npy", rows)
    np.save(tmp_path / "queries.npy", rows[:9])
    file, asked = str(tmp_path / "rows.npy"), str(tmp_path / "queries.npy")
    for more in ([], ["--queries", asked], ["--query-count", "5"]):
        assert main(["plan", file, "--radius", "3", "--json", *more]) == 0
        values = json.loads(capsys.readouterr().out)
        assert (values["count"], values["bits"], values["sampled"]) == (300, 64, 300)
    assert main(["plan", file, "-k", "3", "--count", "1M", "--recall", "0.5"]) == 0
    assert "by 300 signatures that were looked at" in capsys.readouterr().out
    for size in ([], ["--bits", "64"], ["--count", "10"]):
        assert main(["plan", "--radius", "3", *size]) == 1
        assert "expected --count and --bits" in capsys.readouterr().err
    sized = ["plan", "--radius", "3", "--count", "9", "--bits", "64"]
    assert main([*sized, "--queries", asked]) == 1
    assert main(["plan", file, "--radius", "3", "--query-count", "5", "--queries", asked]) == 1
