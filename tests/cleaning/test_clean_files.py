"""Cleaned documents in files: all formats, limits, resuming, and the command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import lookalike as la
from lookalike.cleaning import repeats
from lookalike.cli import main

RUN = " ".join(f"Word{number}" for number in range(12))
TEXTS = [f"First {RUN}. Ende ä.", f"Second. {RUN}. Über 1.", 'Third "quoted" \t text', ""]
CLEAN = [TEXTS[0], "Second. Über 1.", TEXTS[2], TEXTS[3]]


@pytest.fixture
def rows() -> list[dict[str, object]]:
    return [{"id": f"d{at}", "text": text, "n": at + 0.5} for at, text in enumerate(TEXTS)]


def write(rows: list[dict[str, object]], path: Path) -> None:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows))
    elif path.suffix == ".parquet":
        pa.parquet.write_table(pa.Table.from_pylist(rows), path)
    else:
        import csv

        with open(path, "w", newline="") as file:
            made = csv.DictWriter(file, list(rows[0]))
            made.writeheader()
            made.writerows(rows)


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".parquet", ".csv"])
@pytest.mark.parametrize("target", [".jsonl", ".json", ".parquet", ".csv"])
def test_formats(suffix: str, target: str, rows: list[dict[str, object]], tmp_path: Path) -> None:
    source, output = tmp_path / f"in{suffix}", tmp_path / f"out{target}"
    write(rows, source)
    result = la.clean(source, words=10, min_left=0)
    assert result.write(output) == 4
    found = la.dedup(output, text="text", exact=True)
    texts = [found.documents.texts[at] for at in range(4)]
    assert texts == CLEAN
    ids = [str(found.id(at)) for at in range(4)]
    assert ids == ["d0", "d1", "d2", "d3"]


def test_other_lines_are_unchanged(tmp_path: Path) -> None:
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    odd = '{"x": 1.50, "text":"\\u0041b", "y": {"text": 1e3}}\n'
    lines = [odd, json.dumps({"text": TEXTS[0]}) + "\n"]
    lines.append('{ "a" : [1, {"text": "x"}] ,"text" : ' + json.dumps(TEXTS[1]) + ', "b": 1e3 }\n')
    source.write_text("".join(lines))
    la.clean(source, words=10).write(output)
    made = output.read_text().splitlines(keepends=True)
    assert made[:2] == lines[:2]
    assert made[2] == '{ "a" : [1, {"text": "x"}] ,"text" : "Second. Über 1.", "b": 1e3 }\n'


def test_folders_and_lines_of_text(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for at, text in enumerate(TEXTS[:3]):
        (folder / f"{at}.md").write_bytes(text.encode("latin-1" if at == 1 else "utf-8"))
    result = la.clean(folder, words=10)
    result.write(tmp_path / "out")
    made = [(tmp_path / "out" / f"{at}.md").read_bytes() for at in range(3)]
    assert made[0] == TEXTS[0].encode()
    assert made[1] == CLEAN[1].encode("latin-1")
    lines = tmp_path / "in.txt"
    lines.write_text(f"{TEXTS[0]}\r\n{TEXTS[1]}\r\nx\n", newline="")
    la.clean(lines, words=10).write(tmp_path / "out.txt")
    assert (tmp_path / "out.txt").read_bytes().decode() == f"{TEXTS[0]}\r\n{CLEAN[1]}\r\nx\n"


def test_shards_in_a_folder(rows: list[dict[str, object]], tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for at, row in enumerate(rows):
        write([row], tmp_path / "in" / f"{at}.jsonl")
    la.clean(tmp_path / "in", words=10, min_left=0).write(tmp_path / "out")
    made = [json.loads((tmp_path / "out" / f"{at}.jsonl").read_text()) for at in range(4)]
    assert [one["text"] for one in made] == CLEAN


def test_annotated(rows: list[dict[str, object]], tmp_path: Path) -> None:
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    write([*rows, {"id": "d4", "text": RUN, "n": 1}], source)
    la.clean(source, words=10).write_annotated(output)
    made = [json.loads(line) for line in output.read_text().splitlines()]
    assert [one["text"] for one in made[:4]] == TEXTS
    assert [one["removed_words"] for one in made] == [0, 12, 0, 0, 12]
    assert made[1]["removed_ranges"] == f"8-{8 + len(RUN) + 2}"
    assert [one["kept"] for one in made] == [True, True, True, True, False]


def test_a_source_that_changes_is_refused(rows: list[dict[str, object]], tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    write(rows, source)
    result = la.clean(source, words=10)
    write(rows[:2], source)
    with pytest.raises(la.errors.DocumentError, match="has changed"):
        result.write(tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()


def big_corpus(path: Path) -> None:
    with open(path, "w") as file:
        for at in range(3000):
            own = " ".join(f"w{(at * 7919 + k * 104729) % 5003}" for k in range(120))
            file.write(
                json.dumps({"id": at, "text": f"{own}. {RUN if at % 3 else 'None'}."}) + "\n"
            )


def test_a_work_folder_is_reused(tmp_path: Path) -> None:
    source, work = tmp_path / "in.jsonl", tmp_path / "work"
    big_corpus(source)
    first = la.clean(source, words=10, work=work)
    again = la.clean(source, words=10, work=work)
    assert {"read", "find"} <= set(again.reused)
    assert again.to_arrow() == first.to_arrow()
    other = la.clean(source, words=11, work=work)
    assert "read" in other.reused and "find" not in other.reused
    assert other.to_arrow() == la.clean(source, words=11).to_arrow()


def test_a_memory_limit_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "in.jsonl"
    big_corpus(source)
    expected = la.clean(source, words=10).to_arrow()
    monkeypatch.setattr(repeats, "_SHARE", 1 << 20)  # files of less than a kilobyte
    monkeypatch.setattr(repeats, "_MOST_BITS", 4)
    assert la.clean(source, words=10, memory_limit=1 << 30, threads=2).to_arrow() == expected


def test_a_killed_job_goes_on(tmp_path: Path) -> None:
    source, work = tmp_path / "in.jsonl", tmp_path / "work"
    big_corpus(source)
    expected = la.clean(source, words=10).to_arrow()
    code = (
        "import sys, lookalike as la\n"
        "la.clean(sys.argv[1], words=10, work=sys.argv[2], threads=1)\n"
    )
    for delay in (0.05, 0.15, 0.3, 0.6):
        process = subprocess.Popen([sys.executable, "-c", code, str(source), str(work)])
        time.sleep(0.4 + delay)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert la.clean(source, words=10, work=work).to_arrow() == expected


def test_the_command(
    rows: list[dict[str, object]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "in.jsonl"
    write(rows, source)
    names = [str(tmp_path / name) for name in ("out.jsonl", "removed.csv", "report.html")]
    call = ["clean", str(source), "--passage-words", "10", "-o", names[0], "--removed", names[1]]
    assert main([*call, "--report", names[2], "--dry-run"]) == 0
    assert not any(Path(name).exists() for name in names)
    assert "Dry run" in capsys.readouterr().out
    assert main([*call, "--report", names[2], "--with-text"]) == 0
    assert "removed words" in capsys.readouterr().out
    made = [json.loads(line)["text"] for line in Path(names[0]).read_text().splitlines()]
    assert made == CLEAN
    assert RUN in Path(names[1]).read_text()
    assert "<del>" in Path(names[2]).read_text()
    assert main([*call, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["words"] == 12
    assert main(["clean", str(source), "--passage-words", "10", "--in-place", "--quiet"]) == 0
    assert [json.loads(line)["text"] for line in source.read_text().splitlines()] == CLEAN
    assert main(["clean", str(source), "--with-text"]) == 2
    assert main(["clean", str(source), "-o", str(source)]) == 1
    assert main(["clean", str(source), "--unit", "line", "--boundary", "word"]) == 2
    assert "--boundary is for runs of words" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", [".jsonl", ".txt"])
@pytest.mark.parametrize("changed", [[1], [99], [0, 1, 2, 50, 99], [40, 41, 97], list(range(90))])
@pytest.mark.parametrize("min_left", [0, 1, 3])
def test_few_changed_lines_of_many(
    suffix: str, changed: list[int], min_left: int, tmp_path: Path
) -> None:
    """Lines around those that are changed or dropped stay as they are."""
    texts = [f"word{at} some{at} more{at}" for at in range(100)]
    for at in changed:
        left = "" if at % 3 == 0 else f" rest{at}" if at % 3 == 1 else f" rest{at} of{at} the{at}"
        texts[at] = f"{RUN}{left}"
    result_texts = list(texts)
    first = changed[0]
    for at in changed[1:]:
        result_texts[at] = texts[at].removeprefix(RUN).lstrip()
    lines = [json.dumps({"text": text}) if suffix == ".jsonl" else text for text in texts]
    path, output = tmp_path / f"in{suffix}", tmp_path / f"out{suffix}"
    path.write_text("\n".join(lines))
    la.clean(path, words=12, boundary="word", min_left=min_left).write(output)
    kept = [
        text
        for at, text in enumerate(result_texts)
        if at not in changed or at == first or len(text.split()) >= min_left
    ]
    expected = [json.dumps({"text": text}) if suffix == ".jsonl" else text for text in kept]
    assert output.read_text() == "".join(f"{line}\n" for line in expected)
