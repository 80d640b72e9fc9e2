"""Hints for what people try first: another command, option or order of arguments."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import lookalike as la
from lookalike.cli import main
from support.running.refusals import refused


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A corpus, its signatures, and a collection of it."""
    monkeypatch.chdir(tmp_path)
    rows = [{"id": f"d{at}", "text": f"document number {at} of a few words"} for at in range(5)]
    Path("docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with la.open_collection("docs.db", signer=la.SimHash(bits=64)) as docs:
        docs.add([row["id"] for row in rows], [row["text"] for row in rows])
    assert main(["sign", "docs.jsonl", "-o", "s.lookalike", "--quiet"]) == 0
    return tmp_path


def test_ids_that_exist_are_told_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(["collection", "import", "docs.db", "docs.jsonl"], capsys)
    assert "5 ids exist already, such as 'd0'; add --replace to replace them" in said
    assert said.rstrip().endswith("Nothing was written")
    Path("more.jsonl").write_text('{"id": "d0", "text": "one"}\n')
    said = refused(["collection", "import", "docs.db", "more.jsonl"], capsys)
    assert "the id 'd0' exists already; add --replace to replace it" in said


@pytest.mark.parametrize("words", [["docs.jsonl"], ["new", "docs.jsonl"]])
def test_a_file_is_not_a_text_to_add(
    words: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(["collection", "add", "docs.db", *words], capsys)
    assert "lookalike collection import docs.db docs.jsonl" in said and "--file docs.jsonl" in said
    with la.open_collection("docs.db") as docs:
        assert docs.count() == 5


@pytest.mark.parametrize("command", ["search docs.db words", "index docs.db -o x.lookalike"])
def test_a_collection_is_not_an_index(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    said = refused(command.split(), capsys)
    assert "docs.db is an SQLite database" in said
    assert said.endswith("lookalike collection search docs.db ...")


def test_a_collection_is_not_a_file_of_match(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    said = refused(["match", "docs.db", "s.lookalike"], capsys)
    assert "docs.db is an SQLite database; expected a signature file" in said


def test_serve_takes_one_database(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    said = refused(["serve", "docs.db", "other.db"], capsys)
    assert (
        said == "unexpected: other.db; serve takes one database, a folder of databases, or an index"
    )


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        ("dedup docs.jsonl --column text", "; did you mean --text?"),
        ("dedup docs.jsonl --field text", "; did you mean --text?"),
        ("search s.lookalike words --top 3", "; did you mean -k?"),
        ("search s.lookalike words --limit 3", "; did you mean -k?"),
        ("search s.lookalike words --n 3", "; did you mean -k?"),
        ("collection create docs.db --purpose search", "; did you mean --for?"),
        ("dedup docs.jsonl --limit 3", ""),
        ("dedup docs.jsonl --delete", ""),
        ("dedup docs.jsonl --treshold 0.8", "; did you mean --threshold?"),
    ],
)
def test_options_of_other_tools_are_known(
    command: str, hint: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    words = command.split()
    option = next(word for word in words if word.startswith("--"))
    assert refused(words, capsys) == f"unknown option {option}{hint}"


def test_percentages_are_recognized() -> None:
    with pytest.raises(la.errors.ArgumentError, match=r"threshold is 80; .*; did you mean 0\.8\?"):
        la.dedup(["a"], threshold=80)


def test_thresholds_of_images_are_words(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    said = refused(["dedup", "docs.jsonl", "--kind", "images", "--threshold", "0.9"], capsys)
    assert said.endswith("threshold is 0.9; expected one of: strict, normal, loose")
    said = refused(["dedup", "docs.jsonl", "--threshold", "strict"], capsys)
    assert "threshold is 'strict'; expected" in said
    with pytest.raises(la.errors.ArgumentError, match="expected one of: strict, normal, loose"):
        la.dedup(folder, kind="images", threshold=0.9)


@pytest.mark.parametrize("text", ["kind=a", '{"kind": "a"}'])
def test_conditions_may_be_short(
    text: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with la.open_collection("docs.db") as docs:
        docs.upsert(["a", "b"], ["some words", "some words"], metadata=[{"kind": "a"}, {"kind": 1}])
    for given, expected in ((text, "a"), ("kind=1", "b")):
        capsys.readouterr()
        command = ["collection", "search", "docs.db", "some words", "--where", given, "--json"]
        assert main(command) == 0
        printed = capsys.readouterr().out
        assert f'"{expected}"' in printed and ('"b"' in printed) == (expected == "b")


def test_a_missing_file_is_searched_for_as_a_text(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["search", "s.lookalike", "query.txt", "--json"]) == 0
    assert "there is no file query.txt; searching for this text" in capsys.readouterr().err
    assert main(["search", "s.lookalike", "some words", "--json"]) == 0
    assert "there is no file" not in capsys.readouterr().err


def test_images_are_not_compared_as_texts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a.png", "b.png"):
        Path(name).write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40))
    capsys.readouterr()
    said = refused(["compare", "a.png", "b.png"], capsys)
    assert "A and B are images, and compare is for texts" in said


def test_dedup_without_an_output_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dedup", "docs.jsonl"]) == 0
    assert (
        "No documents were written; -o FILE writes the kept documents." in capsys.readouterr().out
    )
    assert main(["dedup", "docs.jsonl", "-o", "out.jsonl"]) == 0
    assert "were written" not in capsys.readouterr().out


def test_an_empty_input_is_told_in_a_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty.jsonl").write_text("")
    capsys.readouterr()
    assert main(["dedup", "empty.jsonl"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err == "lookalike: warning: empty.jsonl has no documents\n"
    assert main(["dedup", "empty.jsonl", "-o", "out.jsonl"]) == 0
    assert "kept documents: out.jsonl" in capsys.readouterr().out
    Path("bad.jsonl").write_text("no\n")
    assert main(["dedup", "bad.jsonl", "--skip-bad"]) == 0
    assert "bad rows" in capsys.readouterr().out


def test_statistics_are_words(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["collection", "stats", "docs.db"]) == 0
    printed = capsys.readouterr().out
    assert "False" not in printed and "None" not in printed
    assert "keeps_text      yes" in printed


@pytest.mark.parametrize(
    "command",
    [
        "evaluate s.lookalike",
        "pairs s.lookalike --threshold 0.8",
        "index s.lookalike -o x.lookalike",
        "passages docs.jsonl words",
        "collection search docs.db words",
        "collection create new.db",
    ],
)
def test_common_is_for_commands_that_read_documents(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    said = refused([*command.split(), "--common", "5"], capsys)
    assert said.startswith("unknown option --common; it is for commands that read the documents")
    assert "sign --fit" in said and "cluster" in said


@pytest.mark.parametrize(
    ("input", "name"),
    [("docs.jsonl", "docs"), ("docs.jsonl.gz", "docs"), ("some.files/", "some.files")],
)
def test_sign_names_its_output_like_its_input(
    input: str, name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("docs.jsonl.gz").write_bytes(gzip.compress(Path("docs.jsonl").read_bytes()))
    Path("some.files").mkdir()
    Path("some.files/a.txt").write_text("a document of a few words, or of some more")
    assert main(["sign", input, "--quiet"]) == 0
    made = Path(f"{name}.lookalike")
    assert len(la.open_index(made)) == (1 if input.endswith("/") else 5)
    before = made.read_bytes()
    capsys.readouterr()
    said = refused(["sign", input], capsys)
    assert said == f"--output is missing, and {made} exists; to replace it, use -o {made}"
    assert made.read_bytes() == before


@pytest.mark.parametrize("inputs", [["docs.jsonl", "docs.jsonl"], ["-"], ["*.jsonl"], ["s3://a/b"]])
def test_sign_needs_a_name_for_other_inputs(
    inputs: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    said = refused(["sign", *inputs], capsys)
    assert said == "--output is missing; give a name, such as NAME.lookalike"


def test_search_without_an_index(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    said = refused(["search", "some words"], capsys)
    assert said.startswith("there is no index 'some words'; INDEX comes first")
    assert "expected texts" in refused(["search", "s.lookalike"], capsys)


@pytest.mark.parametrize("command", [[], ["collection"], ["audio"]])
def test_a_command_with_actions_shows_its_help(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(command)
    shown = capsys.readouterr().err
    assert shown.startswith(f"usage: {' '.join(['lookalike', *command])}") and "search" in shown
