"""`lookalike dedup` as people run it."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import pytest

from lookalike.cli import main
from support.running.refusals import refused

ROWS = [
    {"id": "a", "text": "the quick brown fox jumps over the lazy dog near the old river bank"},
    {"id": "b", "text": "something entirely different about taxes and the minimum wage in spring"},
    {"id": "c", "text": "the quick brown fox jumps over the lazy dog near the old river bank!"},
    {"id": "d", "text": "the quick brown fox jumps over the lazy dog near the old river bank"},
    {"id": "e", "text": ""},
]


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return "corpus.jsonl"


def test_kept_documents_pairs_and_summary(corpus: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dedup", corpus, "-o", "unique.jsonl", "--pairs", "pairs.csv"]) == 0
    kept = [json.loads(line)["id"] for line in Path("unique.jsonl").read_text().splitlines()]
    assert kept == ["a", "b", "e"]
    with open("pairs.csv") as file:
        assert list(csv.reader(file)) == [
            ["left", "right", "similarity", "distance"],
            ["a", "c", "1.0", "0"],
            ["a", "d", "1.0", "0"],
        ]
    printed = capsys.readouterr()
    assert "exact duplicates              1" in printed.out
    assert "near-duplicates               1" in printed.out
    assert "without features              1" in printed.out
    assert "kept documents: unique.jsonl" in printed.out
    assert printed.err == ""  # no bars where there is no terminal


def test_annotated(corpus: str) -> None:
    assert main(["dedup", corpus, "--annotate", "-o", "all.jsonl", "--keep", "longest"]) == 0
    rows = [json.loads(line) for line in Path("all.jsonl").read_text().splitlines()]
    assert [row["duplicate_of"] for row in rows] == ["c", None, None, "c", None]
    assert [row["group_id"] for row in rows] == ["a", None, "a", "a", None]
    assert [row["similarity"] for row in rows] == [1.0, None, None, 1.0, None]


def test_json_for_machines(corpus: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dedup", corpus, "--json", "--num_perm", "64", "--ngram-size", "3"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["counts"]["kept"] == 3
    assert summary["settings"]["permutations"] == 64 and summary["settings"]["ngram"] == 3
    assert main(["dedup", corpus, "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.jsonl"], "nothing.jsonl: there is no such file or folder"),
        (["corpus.jsonl", "--text", "body"], "has no column 'body' for the text; its columns: id"),
        (["corpus.jsonl", "--threshold", "2"], "threshold is 2.0; expected"),
        (["corpus.jsonl", "--annotate"], "--annotate needs a file"),
        (["corpus.jsonl", "-o", "no/such/folder.jsonl"], "does not exist"),
        (["corpus.jsonl", "--save-signatures", "x.bin"], "ends in .lookalike"),
        (["corpus.jsonl", "--keep", "max:score"], "no column 'score'"),
        (["broken.jsonl"], "broken.jsonl, line 2: is not JSON"),
        (["columns.csv"], "has the columns x, y; name the text column"),
        (["corpus.jsonl", "--memory-limit", "1MB"], "--memory-limit is 1,000,000 bytes"),
    ],
)
def test_errors_are_one_line(
    corpus: str, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("broken.jsonl").write_text('{"text": "a"}\n{"text": \n')
    Path("columns.csv").write_text("x,y\n1,2\n")
    assert message in refused(["dedup", *arguments], capsys)


def test_bad_rows_can_be_skipped(corpus: str, capsys: pytest.CaptureFixture[str]) -> None:
    with open(corpus, "a") as file:
        file.write("not json\n")
    assert main(["dedup", corpus, "--skip-bad", "-o", "unique.jsonl"]) == 0
    assert "bad rows                      1" in capsys.readouterr().out
    assert len(Path("unique.jsonl").read_text().splitlines()) == 3


def test_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for row in ROWS:
        (source / f"{row['id']}.md").write_text(row["text"])
    (source / "binary").write_bytes(b"\0\1")
    assert main(["dedup", str(source), "-o", str(tmp_path / "unique")]) == 0
    assert sorted(path.name for path in (tmp_path / "unique").iterdir()) == ["a.md", "b.md", "e.md"]
    assert "binary files                  1" in capsys.readouterr().out


def test_bars_on_a_terminal(corpus: str) -> None:
    import os
    import pty
    import sys

    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-m", "lookalike.cli", "dedup", corpus])
    shown = b""
    try:
        while chunk := os.read(terminal, 4096):
            shown += chunk
    except OSError:
        pass  # how a terminal ends
    assert os.waitpid(pid, 0)[1] == 0
    for step in (b"read", b"sign", b"propose", b"verify", b"group", b"100%"):
        assert step in shown


@pytest.mark.parametrize("size", ["8GB", "2GiB", "700 mb", "1e9x", "", "-1"])
def test_sizes(corpus: str, size: str) -> None:
    good = size in ("8GB", "2GiB", "700 mb")
    try:
        assert main(["dedup", corpus, "--quiet", f"--memory-limit={size}"]) == 0 and good
    except SystemExit as stop:
        assert stop.code == 2 and not good


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "out.txt"], "cannot be written as 'text'"),
        (["-o", "folder"], "is not a plain file"),
        (["-o", "pipe"], "is not a plain file"),
        (["--pairs", "pairs.txt"], "is not a table format"),
        (["--pairs", "out.csv", "-o", "./out.csv"], "two outputs have the same name"),
        (["--report", "folder"], "is not a plain file"),
    ],
)
def test_what_cannot_be_written_is_refused_before_the_work(
    options: list[str], message: str, corpus: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("folder").mkdir()
    os.mkfifo("pipe")
    assert main(["dedup", corpus, "--work", "work", *options]) == 1
    assert message in capsys.readouterr().err
    assert not Path("work").exists()


def test_a_folder_is_not_written_into_another(tmp_path: Path, corpus: str) -> None:
    for name in ("in", "out"):
        Path(name).mkdir()
    Path("in/one").write_text("one")
    assert main(["dedup", "in", "-o", "out", "--work", "work"]) == 1
    assert not Path("work").exists()


def test_signatures_are_saved_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A document whose output failed must not be known when the job is tried again."""
    monkeypatch.chdir(tmp_path)
    Path("day0.jsonl").write_text('{"text": "first day document one two three four"}\n')
    assert main(["dedup", "day0.jsonl", "--save-signatures", "seen.lookalike", "--quiet"]) == 0
    row = '{"text": "second day document five six seven", "Text": 1}\n'
    Path("day1.jsonl").write_text(row)
    job = ["dedup", "day1.jsonl", "--against", "seen.lookalike", "--quiet"]
    job += ["--save-signatures", "seen.lookalike", "-o"]
    assert main([*job, "new.parquet"]) == 1  # two keys that a table cannot tell apart
    assert main([*job, "new.jsonl"]) == 0
    assert Path("new.jsonl").read_text() == row
    assert main([*job, "again.jsonl"]) == 0
    assert Path("again.jsonl").read_text() == ""


@pytest.mark.parametrize(
    "more",
    [
        ["--pairs", "in.jsonl"],
        ["--report", "in.jsonl"],
        ["--against", "old.jsonl", "-o", "old.jsonl"],
        ["--against", "old.jsonl", "--report", "./old.jsonl"],
    ],
)
def test_what_is_read_is_not_written_over(
    more: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("in.jsonl", "old.jsonl"):
        Path(name).write_text('{"text": "a document"}\n')
    assert main(["dedup", "in.jsonl", *more]) == 1
    assert "which is also an input; choose another name" in capsys.readouterr().err
    assert Path("in.jsonl").read_text() == Path("old.jsonl").read_text()


def test_an_unknown_option_is_told_by_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    error = refused(["dedup", "in.jsonl", "--threshhold", "0.5"], capsys)
    assert error == "unknown option --threshhold; did you mean --threshold?"
