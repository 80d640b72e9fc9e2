from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import lookalike as la
from lookalike.cli import main
from support.cases.clustered import clustered
from support.running.refusals import refused

QUICK = ["--sample", "10", "-k", "3"]


@pytest.fixture
def signatures(tmp_path: Path) -> Path:
    path = tmp_path / "signatures.npy"
    np.save(path, clustered(1200, 16))
    return path


def test_prints_a_table_and_writes_files(
    signatures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "new" / "report"
    options = ["--slice-bits", "6,8", "--expand", "0,1", "--admit", "all", "--growth"]
    command = ["evaluate", str(signatures), *QUICK, *options, "--output", str(folder)]
    assert main(command) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    lines = printed.out.splitlines()
    assert lines[0] == "1,200 signatures of 128 bits, 10 queries, 1 thread"
    assert lines[2].split()[:3] == ["slices", "expand", "admit"]
    cells = [line.split()[:3] for line in lines[4:10]]
    assert cells == [
        [f"{w}-bit", str(e), str(a)] for w in (6, 8) for e, a in ((0, 0), (1, 0), (1, 1))
    ]
    assert len({len(line) for line in lines[2:10]}) == 1  # columns are aligned
    assert "Slices a bit wider with each doubling:" in lines

    names = {"evaluation.json", "trade_off.png", "touched.png", "growth.png"}
    assert {path.name for path in folder.iterdir()} == names
    written = json.loads((folder / "evaluation.json").read_text())
    assert written["lookalike"] == la.__version__
    widths = [row["parameters"].get("slice_bits") for row in written["options"]]
    assert widths == [None, 6, 6, 6, 8, 8, 8]
    assert len(written["growth"]) == 2
    for path in folder.glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG\r\n")


def test_tune(signatures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["evaluate", str(signatures), *QUICK, "--tune", "0.8", "--output", str(tmp_path)]
    for more, measure in (([], "cdr"), (["--target", "recall"], "recall")):
        assert main([*command, *more]) == 0
        out = capsys.readouterr().out
        written = json.loads((tmp_path / "evaluation.json").read_text())["tuning"]
        assert (written["measure"], written["target"]) == (measure, 0.8)
        assert written["reason"] in out
    message = refused(["evaluate", str(signatures), *QUICK, "--target", "recall"], capsys)
    assert message.startswith("--target needs --tune")


def test_words_and_queries_and_saved_indexes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = clustered(100, 16)
    np.save(tmp_path / "words.npy", rows.view(np.uint64))
    np.save(tmp_path / "queries.npy", rows[:7])
    la.ScanIndex(rows).save(tmp_path / "scan.lookalike")
    la.SliceIndex(rows, ids=np.arange(100) * 5).save(tmp_path / "slices.lookalike")
    tables = []
    for name in ("words.npy", "scan.lookalike", "slices.lookalike"):
        queries = str(tmp_path / "queries.npy")
        assert main(["evaluate", str(tmp_path / name), "--queries", queries]) == 0
        out = capsys.readouterr().out
        assert out.startswith("100 signatures of 128 bits, 7 queries, 1 thread\n")
        tables.append([line.split()[5:8] for line in out.splitlines()[4:]])  # quality alone
    assert tables[0] == tables[1] == tables[2]


def test_without_matplotlib(
    signatures: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["evaluate", str(signatures), *QUICK, "--output", str(tmp_path / "out")]) == 0
    assert "no plots: " in (out := capsys.readouterr().out)
    assert "pip install 'lookalike[plot]'" in out
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["evaluation.json"]


def test_progress_is_for_terminals(
    signatures: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["evaluate", str(signatures), *QUICK, "--expand", "0,1"]) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(["evaluate", str(signatures), *QUICK, "--expand", "0,1"]) == 0
    assert "evaluate" in capsys.readouterr().err


def unusable(folder: Path) -> dict[str, tuple[list[str], str]]:
    """Command lines that cannot work, and what is said about them."""
    np.save(folder / "floats.npy", np.zeros((4, 8)))
    np.save(folder / "objects.npy", np.array([{}], object), allow_pickle=True)
    np.save(folder / "empty.npy", np.empty((0, 8), np.uint8))
    np.save(folder / "good.npy", clustered(30, 8))
    np.save(folder / "wide.npy", clustered(3, 16))
    whole = (folder / "good.npy").read_bytes()
    (folder / "cut.npy").write_bytes(whole[:-9])
    (folder / "head.npy").write_bytes(whole[:20])
    (folder / "text.txt").write_text("no signatures here")
    (folder / "nothing").touch()
    good = str(folder / "good.npy")
    file = {
        "missing.npy": "missing.npy cannot be read: No such file",
        ".": "is a folder; expected a file with signatures",
        "text.txt": "text.txt has no column with hashes",
        "nothing": "is not a lookalike file",
        "floats.npy": "floats.npy are float64; expected uint8 or uint64",
        "objects.npy": "objects.npy is a .npy file that cannot be used",
        "cut.npy": "cut.npy is a .npy file that cannot be used",
        "head.npy": "head.npy is a .npy file that cannot be used",
        "empty.npy": "the collection has 0 signatures",
    }
    cases = {name: ([str(folder / name)], message) for name, message in file.items()}
    cases["queries"] = ([good, "--queries", str(folder / "wide.npy")], "queries have 128 bits")
    cases["sample"] = ([good, "--sample", "0"], "--sample is 0")
    cases["tune"] = ([good, "--tune", "2"], "--tune is 2.0")
    cases["both"] = ([good, "--tune", "0.9", "--expand", "1"], "--expand does nothing with --tune")
    cases["memory"] = ([good, "--memory-limit", "9kB"], "--memory-limit needs --tune")
    cases["output"] = ([good, "--output", str(folder / "text.txt")], "text.txt cannot be made")
    return cases


def test_errors_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, (arguments, message) in unusable(tmp_path).items():
        assert message in refused(["evaluate", *arguments], capsys), name


@pytest.mark.parametrize("option", ["--expand=a", "--slice-bits=", "--admit=none", "-k=x"])
def test_wrong_usage(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert option.partition("=")[0] in refused(["evaluate", "some.npy", option], capsys)


def test_signers_are_measured_on_texts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = tmp_path / "corpus.jsonl"
    lines = [{"text": f"a text about number {n // 2} and {n % 2 * 'one'} word"} for n in range(60)]
    corpus.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    given = ["evaluate", str(corpus), "--signer", "simhash:64,topsig:256", "--threshold", "0.8"]
    assert main([*given, "--json", "-o", str(tmp_path / "report")]) == 0
    found = json.loads(capsys.readouterr().out)["signers"]
    assert [option["bits"] for option in found["options"]] == [64, 256]
    assert (tmp_path / "report" / "evaluation.json").exists()
    for wrong, message in (
        (["--signer", "simhash:many"], "expected NAME, NAME:BITS"),
        (["--signer", "suggested", "--expand", "1"], "does nothing with --signer"),
        (["--leave-out"], "needs --signer"),
    ):
        assert main(["evaluate", str(corpus), *wrong]) == 2
        assert message in capsys.readouterr().err
