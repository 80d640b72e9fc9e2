"""The command line speaks its own language, and asks what was meant."""

from __future__ import annotations

import argparse
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import soundfile

import lookalike as la
from lookalike.cli import COMMANDS, full_parser, main
from support.cases import cli_corpus as corpus
from support.running.fake_card import FakeCard
from support.running.refusals import refused

_INDEXED = ["index", "vectors.jsonl", "--vectors", "v", "-o", "out.lookalike"]
_SEARCHED = ["search", "vectors.lookalike", "[1, 2, 3]"]
OF_VECTORS = {
    ("dedup", "--recall"): ["dedup", "corpus.jsonl", "--vectors", "vector"],
    ("index", "--bits"): _INDEXED,
    ("index", "--recall"): _INDEXED,
    ("search", "--candidates"): _SEARCHED,
}
"""What is for vectors alone."""

PYTHONIC = re.compile(r"\bla\.|\w\(|\b\w+=['\"\dTFN]|\b[a-z]+_[a-z]")
"""What people who type commands have never heard of."""

CALLS: dict[str, list[str]] = {
    "bench": ["--device", "gpu"],
    "dedup": ["corpus.jsonl"],
    "compare": ["a.txt", "b.txt"],
    "sign": ["corpus.jsonl", "-o", "out.lookalike"],
    "index": ["signatures.lookalike", "-o", "out.lookalike"],
    "search": ["slices.lookalike", "some text"],
    "match": ["seen.runs", "signatures.lookalike"],
    "pairs": ["signatures.lookalike"],
    "cluster": ["corpus.jsonl"],
    "plan": ["--count", "1000", "--bits", "64"],
    "passages": ["corpus.jsonl", "--file", "a.txt"],
    "overlaps": ["corpus.jsonl"],
    "links": ["links.csv", "-o", "out.jsonl"],
    "clean": ["corpus.jsonl"],
    "decontaminate": ["corpus.jsonl", "--benchmarks", "corpus.jsonl"],
    "audio index": ["music", "-o", "out.parts"],
    "audio search": ["music/tune.wav", "--index", "music.parts"],
    "evaluate": ["signatures.lookalike"],
    "collection create": ["other.db"],
    "collection search": ["docs.db", "some text"],
    "collection import": ["docs.db", "corpus.jsonl"],
}
"""A call of each command that takes numbers; what it lacks is what is tried."""

INSTEAD: dict[tuple[str, str], list[str]] = {
    ("plan", option): ["--documents", "1000", "--engine", "spark"]
    for option in ("--text-bytes", "--duplicate-share", "--cores")
}
"""Calls for numbers that the usual call does not take."""

MORE: dict[tuple[str, str], list[str]] = {
    ("dedup", "--bits"): ["--method", "simhash"],
    ("dedup", "--radius"): ["--method", "simhash"],
    ("dedup", "--max-group"): ["--grouping", "components"],
    ("clean", "--max-documents"): ["--unit", "line"],
    ("decontaminate", "--gap"): ["--rule", "near"],
    ("decontaminate", "--min-share"): ["--rule", "share"],
    ("decontaminate", "--margin"): ["--action", "cut"],
    ("sign", "--bits"): ["--method", "simhash"],
    ("sign", "--common"): ["--method", "simhash", "--fit"],
    ("index", "--radius"): ["--type", "blocks"],
    ("index", "--tables"): ["--type", "blocks"],
    ("index", "--orders"): ["--type", "prefix"],
    ("index", "--clusters"): ["--type", "clusters"],
    ("index", "--blocks"): ["--type", "blocks"],
    ("index", "--lead"): ["--type", "blocks"],
    ("index", "--header-bits"): ["--type", "flips"],
    ("search", "--recall"): ["--radius", "3"],
    ("search", "--flips"): ["--radius", "3"],
    ("match", "--recall"): ["--algorithm", "flips"],
    ("match", "--flips"): ["--algorithm", "flips"],
    ("match", "--tables"): ["--algorithm", "blocks"],
    ("collection create", "--passage-words"): ["--kind", "passages"],
    ("collection create", "--passage-step"): ["--kind", "passages"],
    ("pairs", "--max-pairs"): ["--radius", "3"],
    ("pairs", "--threads"): ["--radius", "3"],
    ("plan", "--recall"): ["--radius", "3"],
    ("plan", "--query-count"): ["--radius", "3"],
    ("evaluate", "--memory-limit"): ["--tune", "0.9"],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    corpus.write(tmp_path / "corpus.jsonl")
    texts = [text for text in corpus.TEXTS if len(text) > 5]
    signer = la.SimHash(64)
    la.save_signatures("signatures.lookalike", signer.sign(texts), signer, texts)
    index = la.SliceIndex(signer.sign(texts))
    index.signer = signer
    index.save("slices.lookalike")
    Path("vectors.jsonl").write_text('{"v": [1, 2, 3]}\n{"v": [3, 2, 1]}\n')
    la.VectorIndex(np.eye(3, dtype=np.float32)).save("vectors.lookalike")
    Path("links.csv").write_text("source,target\nhttp://a.example/,http://b.example/\n")
    Path("a.txt").write_text("one text")
    Path("b.txt").write_text("another text")
    with la.open_collection("docs.db", signer=la.SimHash(bits=64)) as docs:
        docs.add(["fox"], ["The quick brown fox"])
    Path("music").mkdir()
    soundfile.write("music/tune.wav", np.random.default_rng(0).normal(0, 0.1, 16_000), 8_000)
    la.RecordingIndex().save("music.parts")
    Path("twice").mkdir()
    for name in ("a", "b"):
        shutil.copy("music/tune.wav", f"twice/{name}.wav")
    la.dedup("twice", kind="recordings").apply("hardlink", journal="linked.journal")
    return tmp_path


def commands(
    parser: argparse.ArgumentParser, names: tuple[str, ...] = ()
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    actions = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    if not actions:
        yield " ".join(names), parser
    for action in actions:
        for name, chosen in action.choices.items():
            yield from commands(chosen, (*names, name))


def test_numbers_out_of_range_are_told_of_the_option(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each number of each command: what is wrong is the option, and usage, and no Python."""
    tried = set()
    for command, parser in commands(full_parser()):
        for action in parser._actions:
            if action.type not in (int, float):
                continue
            option = max(action.option_strings, key=lambda one: one.startswith("--"))
            tried.add(command)
            usual = INSTEAD.get((command, option), CALLS[command])
            given = [*command.split(), *usual, *MORE.get((command, option), [])]
            if command == "plan" and option in ("--bits", "--count"):
                given = ["plan", "--radius", "3", "--count", "9"]
            if (command, option) in OF_VECTORS:
                given = OF_VECTORS[command, option]
            message = refused([*given, option, "-7"], capsys)
            assert message.startswith(f"{option} is -7"), (command, option, message)
            assert "expected" in message
            assert not PYTHONIC.search(message), message
    assert tried == set(CALLS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("dedup corpus.jsonl --bits 64", "--bits goes with --method simhash or topsig and does"),
        ("dedup corpus.jsonl --method simhash --permutations 128", "--permutations goes with"),
        ("dedup corpus.jsonl --max-group 9", "--max-group goes with --grouping components"),
        ("sign corpus.jsonl -o x.npy --method topsig --num-perm 128", "--permutations goes with"),
        ("dedup corpus.jsonl --keep best", "--keep is 'best', which does nothing for text"),
        ("dedup corpus.jsonl --against signatures.lookalike", "was signed by simhash (bits 64,"),
        ("dedup corpus.jsonl --max-document 1GB --memory-limit 1GB", "--max-document is 1,000,000"),
        (
            "index signatures.lookalike -o x --type scan --memory-limit 1GB",
            "--memory-limit does nothing with",
        ),
        (
            "index signatures.lookalike -o x --memory-limit 9",
            "--memory-limit is 9 bytes; the lists of",
        ),
        ("search signatures.lookalike text --columns a", "--columns needs the signed corpus"),
        ("search signatures.lookalike --signatures docs.npy", "did you mean 'docs.db'?"),
        ("search signatures.lookalike a.txt text", "QUERY a.txt is a file, and there are"),
        ("pairs signatures.lookalike --threshold 0.8 --radius 3", "not allowed with"),
        ("evaluate signatures.lookalike --tune 2", "--tune is 2.0; expected"),
        ("collection add docs.db fox again", "a document with this id exists; add --replace"),
        ("collection get other.db fox", "`lookalike collection create` creates one"),
        (
            "collection search docs.db text --name pages",
            "`lookalike collection create` creates one",
        ),
        (
            "collection create x.db --kind signatures --seed 3",
            "--seed does nothing with --kind signatures",
        ),
        (
            "collection restore docs.db docs2.db --naem x",
            "unknown option --naem; did you mean --name?",
        ),
        ("compare a.txt b.txt --max-document 5", "--max-document needs --in CORPUS"),
        ("dedup corpus.jsnl", "did you mean 'corpus.jsonl'?"),
        ("dedup corpus.jsonl --text txt", "its columns: text, id; did you mean 'text'?"),
        ("dedup corpus.jsonl --method simhsh", "did you mean simhash?"),
        ("plan --cuont 3", "unknown option --cuont; did you mean --count?"),
        ("collection serch docs.db", "did you mean search?"),
        ("serach x", "did you mean search?"),
        ("dedup", "required: INPUT"),
        ("cluster corpus.jsonl -k 1000", "-k is 1,000; expected at most "),
        ("cluster corpus.jsonl --title nam", "no column 'nam' for the titles"),
        ("cluster corpus.jsonl -o topics.txt", "topics.txt"),
        ("cluster corpus.jsonl -o corpus.jsonl", "which is also an input; choose another name"),
        ("cluster corpus.jsonl -o x.csv --report x.csv", "two outputs have the same name"),
        ("cluster corpus.jsonl --features chars --stem english", "--stem does not go with"),
        ("completion tcsh", "SHELL is 'tcsh'; expected one of bash, zsh, fish"),
        ("compare a.txt b.txt c.txt", "unexpected: c.txt"),
        ("evaluate signatures.lookalike -k ten", "-k is 'ten'; expected a whole number"),
    ],
)
def test_what_is_wrong_is_said_in_the_words_of_commands(
    arguments: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(arguments.split(), capsys)
    assert message in said
    ours = re.sub(r"hash \(|" + re.escape(str(folder)), "", said)
    assert not PYTHONIC.search(ours), said


def test_usage_is_status_2_and_trouble_with_files_status_1(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dedup", "corpus.jsonl", "--threshold", "2"]) == 2
    assert main(["dedup", "none.jsonl"]) == 1
    assert main(["dedup", "corpus.jsonl", "--text", "body"]) == 1
    assert main(["dedup", "corpus.jsonl", "-o", "corpus.jsonl"]) == 1


def test_warnings_are_lines_like_others(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lookalike.indexes.tables.flips.MOST_FLIPS", 3)
    rows = np.random.default_rng(0).integers(0, 256, (3000, 8), np.uint8)
    np.save("rows.npy", rows)
    assert main(["index", "rows.npy", "-o", "flips.lookalike", "--type", "flips", "--quiet"]) == 0
    assert main(["search", "flips.lookalike", "--signatures", "rows.npy", "--radius", "3"]) == 0
    error = capsys.readouterr().err
    assert error.startswith("lookalike: warning: without weights, ")
    assert error.count("\n") == 1 and "Warning" not in error and ".py" not in error


JSON_CALLS = {
    "dedup": ["corpus.jsonl"],
    "cluster": ["corpus.jsonl"],
    "compare": ["a.txt", "b.txt"],
    "sign": ["corpus.jsonl", "-o", "out.npy"],
    "index": ["signatures.lookalike", "-o", "out.lookalike"],
    "search": ["signatures.lookalike", "text"],
    "match": ["seen.runs", "signatures.lookalike"],
    "pairs": ["signatures.lookalike", "--threshold", "0.1"],
    "plan": ["--count", "1000", "--bits", "64", "--radius", "3"],
    "evaluate": ["signatures.lookalike", "--sample", "2", "-k", "1", "--expand", "0"],
    "passages": ["corpus.jsonl", "--file", "corpus.jsonl", "--min-share", "0.05"],
    "overlaps": ["corpus.jsonl", "-o", "overlaps.csv"],
    "links": ["links.csv", "-o", "incoming.jsonl"],
    "clean": ["corpus.jsonl"],
    "decontaminate": ["corpus.jsonl", "--benchmarks", "corpus.jsonl"],
    "audio index": ["music", "-o", "out.parts"],
    "audio search": ["music/tune.wav", "--index", "music.parts"],
    "kernels": [],
    "bench": ["--device", "gpu", "--count", "1"],
    "undo": ["linked.journal"],
    "collection create": ["new.db"],
    "collection add": ["docs.db", "owl", "The quick brown owl"],
    "collection get": ["docs.db", "fox"],
    "collection delete": ["docs.db", "nobody"],
    "collection search": ["docs.db", "The quick brown fox"],
    "collection stats": ["docs.db"],
    "collection verify": ["docs.db"],
    "collection repair": ["docs.db"],
    "collection snapshot": ["docs.db", "copy.db"],
    "collection restore": ["copy.db", "restored.db"],
    "collection import": ["docs.db", "corpus.jsonl"],
    "collection export": ["docs.db", "all.jsonl"],
}


def test_every_command_that_prints_for_programs_has_json(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lookalike.gpu.card.card", lambda number: FakeCard())
    monkeypatch.setattr("lookalike.gpu.bench.PIECE", 512)
    monkeypatch.setattr("lookalike.gpu.bench.timed.__defaults__", (1,))
    assert set(JSON_CALLS) == {name for name, _ in commands(full_parser())} - {
        "demo",
        "completion",
        "serve",
    }
    for command, arguments in JSON_CALLS.items():
        assert main([*command.split(), *arguments, "--json"]) == 0, command
        printed = capsys.readouterr().out
        assert printed, command
        whole = [printed] if command == "plan" else printed.splitlines()
        assert all(isinstance(json.loads(part), dict) for part in whole), command


def test_file_means_one_thing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever a command has by that name takes the name of the file that is read."""
    found = [
        (command, action)
        for command, parser in commands(full_parser())
        for action in parser._actions
        if "--file" in action.option_strings
    ]
    assert [command for command, _ in found] == [
        "search",
        "passages",
        "collection add",
        "collection search",
    ]
    assert all(action.nargs is None and action.metavar for _, action in found)
    Path("page.txt").write_text("\ufeffThe quick brown fox")
    assert main(["collection", "add", "docs.db", "page", "--file", "page.txt"]) == 0
    assert main(["collection", "search", "docs.db", "--file", "page.txt", "-k", "1"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["100%", "fox"]
    with la.open_collection("docs.db") as docs:
        document = docs.get("page")
    assert document is not None and document.text == "The quick brown fox"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_of_shells_know_every_option(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for command, parser in commands(full_parser()):
        assert command.split()[-1] in script
        for action in parser._actions:
            for option in action.option_strings:
                spelt = f"-l {option[2:]}" if shell == "fish" and option[:2] == "--" else option
                assert spelt in script or action.help is None or shell == "fish", (command, option)
            for choice in action.choices or ():
                assert str(choice) in script, (command, choice)
    assert all(name in script for name in COMMANDS)


@pytest.mark.parametrize(
    "words, options",
    [
        (["search", "slices.lookalike", "a text", "of words"], ["-k", "1"]),
        (["collection", "search", "docs.db", "The quick brown fox"], ["-k", "1"]),
        (["dedup", "a.txt", "b.txt"], ["--format", "text", "-o", "-", "--quiet"]),
    ],
)
def test_what_is_looked_for_may_come_behind_options(
    folder: Path, words: list[str], options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, *options]) == 0
    expected = capsys.readouterr().out
    assert expected
    for place in range(2 if words[0] == "collection" else 1, len(words)):
        assert main([*words[:place], *options, *words[place:]]) == 0
        assert capsys.readouterr().out == expected


def test_words_that_have_no_place_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for line in (
        "pairs signatures.lookalike --radius 3 more",
        "collection search docs.db a -k 1 b",
    ):
        with pytest.raises(SystemExit):
            main(line.split())
        assert "unexpected: " in capsys.readouterr().err


def test_several_formats_are_told_apart_by_an_option(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dedup", "corpus.jsonl", "a.txt"]) == 1
    assert "set it with --format" in capsys.readouterr().err
