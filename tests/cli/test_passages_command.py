"""`lookalike passages` and `overlaps`: what is found is shown and written, whatever it is."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

import lookalike as la
from lookalike.cli import main
from support.running.refusals import refused

WORDS = "the passage that is looked for has a dozen words of its own"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    rows = [
        {"id": "none", "text": "something else altogether"},
        {"id": "exact", "text": f"Line one.\n{WORDS.title()}!\nMore."},
        {"id": "near\x1b[31m", "text": f"{WORDS.replace('dozen', 'score')} \x1b]0;evil\x07 end"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def query_in(folder: Path, text: str = WORDS) -> str:
    (folder / "query.txt").write_text(text)
    return str(folder / "query.txt")


def test_passages_are_shown_with_their_words_marked(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["passages", str(corpus), "--file", query_in(tmp_path)]) == 0
    printed = capsys.readouterr()
    assert printed.out == (
        "exact: line 2, characters 10 to 69, 13 of 13 words (100.0%)\n"
        f"Line one.\n>>{WORDS.title()}<<!\nMore.\n\n"
        r"near\x1b[31m: line 1, characters 0 to 59, 12 of 13 words (92.3%)"
        "\n>>the passage that is looked for has a [-dozen-] {+score+} words of its own<<"
        r" \x1b]0;evil\x07 end"
        "\n\n"
    )
    assert printed.err == "2 passages in 2 documents of 3\n"
    assert main(["passages", str(corpus), "--file", query_in(tmp_path), "--color", "always"]) == 0
    colored = capsys.readouterr().out
    assert "\x1b[1mThe Passage" in colored and "]0;evil\x07" not in colored
    arguments = [
        "passages",
        str(corpus),
        "--file",
        query_in(tmp_path),
        "--max-passages",
        "1",
        "--min-share",
        "1",
    ]
    assert main([*arguments, "--quiet"]) == 0
    assert capsys.readouterr() == (
        "exact: line 2, characters 10 to 69, 13 of 13 words (100.0%)\n"
        f"Line one.\n>>{WORDS.title()}<<!\nMore.\n\n",
        "",
    )


@pytest.mark.parametrize("words", [WORDS, f"Is it {WORDS}?", f"*{WORDS}*", WORDS * 100])
def test_the_last_argument_is_the_text(
    words: str, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["passages", str(corpus), words, "--json"]) == 0
    typed = capsys.readouterr()
    assert main(["passages", str(corpus), "--file", query_in(tmp_path, words), "--json"]) == 0
    assert typed.out == capsys.readouterr().out


def test_a_missing_text_is_said(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "the text to look for is missing" in refused(["passages", str(corpus)], capsys)
    for other in (str(corpus), str(corpus.parent), "-", "*.jsonl", "s3://bucket/corpus.jsonl"):
        message = refused(["passages", str(corpus), other], capsys)
        assert f"{other} is an input, and the text to look for is missing" in message
    assert "has no words to look for" in refused(["passages", str(corpus), "?! ..."], capsys)


def test_passages_as_json_are_those_of_python(
    corpus: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(WORDS.encode()))
    monkeypatch.setattr("sys.stdin", stdin)
    assert main(["passages", str(corpus), "--file", "-", "--json", "--quiet"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    found = la.passages(corpus, WORDS)
    assert rows == json.loads(json.dumps([one.to_dict() for one in found]))
    assert [row["id"] for row in rows] == ["exact", "near\x1b[31m"]


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_overlaps_are_written_as_python_has_them(
    ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    documents = tmp_path / "docs"
    documents.mkdir()
    shared = " ".join(f"word{n}" for n in range(60))
    (documents / "a.txt").write_text(f"First of all. {shared}")
    (documents / "b.txt").write_text(f"{shared.replace('word30', 'other')}, and no more")
    (documents / "c.bin").write_bytes(b"\0\1" + shared.encode())
    output = tmp_path / f"out.{ending}"
    assert main(["overlaps", str(documents), "-o", str(output), "--with-text"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"1 passage of 1 pair of documents: {output}\n  2 documents, ")
    assert "1 binary file: left out" in printed
    if ending != "jsonl":
        assert output.stat().st_size > 0
        return
    (row,) = map(json.loads, output.read_text().splitlines())
    (overlap,) = la.overlaps(documents)
    assert (row["left"], row["right"], row["words"], row["exact"]) == ("a.txt", "b.txt", 59, False)
    assert row["text"] == overlap.text == shared
    assert row["left_characters_begin"] == 14 == overlap.left_characters[0]
    assert main(["overlaps", str(documents), "--json", "--quiet"]) == 0
    del row["text"]
    assert json.loads(capsys.readouterr().out) == row
    assert main(["overlaps", str(documents), "--gap", "0"]) == 0
    printed_twice = capsys.readouterr()
    assert printed_twice.out == ""
    assert printed_twice.err.startswith("0 passages of 0 pairs of documents\n")


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_pairs_are_written_as_python_has_them(
    ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shared = " ".join(f"word{n}" for n in range(60))
    corpus = tmp_path / "corpus.jsonl"
    texts = [f"{shared} {shared[:200]}", shared, f"First of all {shared}, and no more"]
    corpus.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    target = tmp_path / f"pairs.{ending}"
    arguments = ["overlaps", str(corpus), "-o", str(tmp_path / "o.csv"), "--pairs", str(target)]
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pairs_file"] == str(target)
    found = la.overlaps(corpus).by_pair()
    if ending == "jsonl":
        rows = [json.loads(line) for line in target.read_text().splitlines()]
        assert rows == found.to_arrow().to_pylist()
        assert (rows[0]["left"], rows[0]["right"], rows[0]["right_share"]) == ("0", "1", 1.0)
        assert rows[-1]["words"] == 60 and 0.8 < rows[-1]["right_share"] < 1
    assert main([*arguments, "--passage-words", "1000"]) == 0
    assert target.exists()
    capsys.readouterr()
    same = [*arguments[:4], "--pairs", arguments[3]]
    assert "as -o is; give the files different names" in refused(same, capsys)
    mine = ["overlaps", str(corpus), "--pairs", str(corpus)]
    assert "corpus.jsonl" in refused(mine, capsys)


def test_a_summary_for_programs_counts_what_everybody_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    license = " ".join(f"word{n}" for n in range(60))
    lines = tmp_path / "corpus.txt"
    lines.write_text("".join(f"number {n} has this: {license}\n" for n in range(4)))
    output = tmp_path / "out.json"
    arguments = ["overlaps", str(lines), "--format", "text", "-o", str(output), "--common", "3"]
    assert main([*arguments, "--json"]) == 0
    counts: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (counts["overlaps"], counts["pairs"], counts["documents"]) == (0, 0, 4)
    assert counts["common_places"] == 4 * counts["common_windows"] > 0
    assert main(arguments) == 0
    assert "windows of words in too many places" in capsys.readouterr().out
    assert json.loads(output.read_text()) == []


def test_wrong_usage_is_two_lines(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    of = ["--file", query_in(tmp_path)]
    source = str(corpus)
    cases = [
        (["passages", source], "--file"),
        (
            ["passages", source, *of, "--min-share", "0"],
            "--min-share is 0.0; expected a number above 0",
        ),
        (["passages", source, *of, "--gap", "-1"], "--gap is -1; expected a whole number"),
        (["passages", source, *of, "--context", "-1"], "--context is -1"),
        (["passages", source, *of, "--max-passages", "0"], "--max-passages is 0"),
        (["passages", "-", "--file", "-"], "standard input (-) is given twice"),
        (
            ["overlaps", source, "--passage-words", "0"],
            "--passage-words is 0; expected a whole number",
        ),
        (["overlaps", source, "--common", "1"], "--common is 1; expected a whole number"),
        (["overlaps", source, "--gap", "x"], "--gap is 'x'; expected a whole number"),
        (["overlaps", source, "-o", "x.xlsx"], "x.xlsx"),
        (["overlaps", source, "-o", source], "which is also an input"),
        (["overlaps", source, "-o", "-"], "-o is -; leave it out to have passages printed"),
        (["overlaps", str(tmp_path / "nowhere.jsonl")], "nowhere.jsonl"),
    ]
    for arguments, message in cases:
        assert message in refused(arguments, capsys), arguments
    assert json.loads(corpus.read_text().splitlines()[0])["id"] == "none"


def test_hostile_texts_are_refused_or_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "empty.txt").write_text("")
    (folder / "binary.txt").write_bytes(b"\0" * 100)
    (folder / "latin.txt").write_bytes("für immer und ewig ".encode("latin-1") * 30)
    (folder / "fine.txt").write_text(f"x {WORDS} y")
    (folder / "long.txt").write_text("0 " * 500_000 + WORDS)  # one line of a megabyte
    binary = tmp_path / "binary"
    binary.write_bytes(b"\0\1\2")
    assert "is binary" in refused(["passages", str(folder), "--file", str(binary)], capsys)
    empty = query_in(tmp_path, " ... ")
    none = refused(["passages", str(folder), "--file", empty], capsys)
    assert f"{empty} has no words to look for" in none
    of = query_in(tmp_path)
    assert main(["passages", str(folder), "--file", of, "--json", "--skip-bad"]) == 0
    printed = capsys.readouterr()
    rows = [json.loads(line) for line in printed.out.splitlines()]
    assert [(row["id"], row["words"]) for row in rows] == [("fine.txt", 13), ("long.txt", 13)]
    assert rows[1]["document_words"] == [500_000, 500_013]
    assert "1 binary file left out" in printed.err
    assert main(["overlaps", str(folder), "--passage-words", "13", "--json", "--skip-bad"]) == 0
    (row,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (row["left"], row["right"], row["words"]) == ("fine.txt", "long.txt", 13)


def test_text_files_are_whole_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = WORDS.split()
    for name, first in (("a.txt", "A beginning."), ("b.txt", "Another one.")):
        Path(name).write_text("\n".join([first, " ".join(words[:6]), " ".join(words[6:])]))
    query = query_in(tmp_path, WORDS)
    for given in (["a.txt"], ["a.txt", "b.txt"]):
        assert main(["passages", *given, "--file", query, "--json"]) == 0
        found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [one["id"] for one in found] == given
        assert all(one["words"] == len(words) for one in found)
    assert [one.id for one in la.passages("a.txt", WORDS)] == ["a.txt"]
    assert main(["overlaps", "a.txt", "b.txt", "--passage-words", "13", "--json"]) == 0
    (row,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (row["left"], row["right"], row["words"]) == ("a.txt", "b.txt", 13)
    assert len(la.overlaps("*.txt", min_words=13, format="text")) == 0
    assert main(["overlaps", "a.txt"]) == 0
    assert "a.txt is one document" in capsys.readouterr().err
    assert main(["overlaps", "a.txt", "--format", "text"]) == 0
    assert "one document" not in capsys.readouterr().err
