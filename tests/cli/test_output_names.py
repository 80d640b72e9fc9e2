"""A name that ends with a slash is that of a folder: no command writes a file there."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lookalike.cli import full_parser, main
from support.cases import cli_corpus as corpus
from support.running.refusals import refused


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    corpus.write(tmp_path / "corpus.jsonl")
    for name in ("texts", "photos", "shards"):
        (tmp_path / name).mkdir()
    for number in range(3):
        Path(f"texts/{number}.txt").write_text(f"the text number {number}")
        Path(f"shards/{number}.jsonl").write_text(f'{{"text": "the text number {number}"}}\n')
        pixels = np.random.default_rng(number).integers(0, 256, (32, 32), np.uint8)
        Image.fromarray(pixels).save(f"photos/{number}.png")
    return tmp_path


def outputs(
    parser: argparse.ArgumentParser, names: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], argparse.Action]]:
    """Yield every option that names an output, with its command."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, chosen in action.choices.items():
                yield from outputs(chosen, (*names, name))
        elif {"-o", "--report", "--pairs", "--dropped", "--save-signatures"} & {
            *action.option_strings
        }:
            yield names, action


@pytest.mark.parametrize("name", ["new", "old"])
def test_files_are_not_written_to_the_name_of_a_folder(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("old").mkdir()
    before = sorted(folder.rglob("*"))
    tried = set()
    for command, action in outputs(full_parser()):
        option = action.option_strings[-1]
        if action.metavar == "FOLDER":
            assert (command, option) == (("evaluate",), "--output")
            continue
        source = "photos" if option == "--dropped" else "corpus.jsonl"
        if command == ("decontaminate",):
            command = ("decontaminate", "--benchmarks", "corpus.jsonl")
        message = refused([*command, source, option, f"{name}/"], capsys)
        assert f"{name}/" in message and "names a folder" in message, message
        tried.add(command[0])
    others = {"dedup", "sign", "index", "pairs", "cluster", "overlaps", "audio", "demo"}
    assert tried == {"links", "clean", "decontaminate", *others}
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("command", ["match new/", "collection export docs.db new/"])
def test_other_files_neither(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "ends with a slash, so it names a folder" in refused(command.split(), capsys)
    assert not Path("new").exists()


@pytest.mark.parametrize("source", ["texts", "photos", "shards"])
def test_a_folder_is_written_with_and_without_the_slash(
    source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = {path.name for path in Path(source).iterdir()}
    for target in ("one", "two/"):
        assert main(["dedup", source, "-o", target, "--quiet"]) == 0
        assert {path.name for path in Path(target).iterdir()} == expected
    assert main(["dedup", source, "-o", "two/", "--quiet"]) == 1
    assert "exist" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["texts", "-o", "new.jsonl/"],
        ["photos", "-o", "new.csv/"],
        ["photos", "-o", "new/", "--annotate"],
        ["shards", "-o", "new.parquet/"],
        ["texts", "-o", "kept", "--pairs", "new/"],
    ],
)
def test_a_list_or_table_is_not_a_folder(
    words: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(folder.rglob("*"))
    assert "so it names a folder, but a file is written here" in refused(["dedup", *words], capsys)
    assert sorted(folder.rglob("*")) == before
