"""Values that make no sense where they are given: our errors, and no others."""

from __future__ import annotations

import inspect
import json
import math
from pathlib import Path

import numpy as np
import pytest

import lookalike as la
from lookalike.cli import main
from lookalike.dedup.settings import DedupSettings

DOCUMENTS = ["the quick brown fox jumps over the lazy dog", "something else", "the quick brown fox"]
ODD: list[object] = [
    None, True, 0, -1, 2**31, 2**64, -(10**30), 1.5, math.nan, math.inf, "", "x", "\ud800", "a\0b",
    "x" * 5000, b"x", [], {}, (1,), object(), np.int64(3), np.float32(0.5), np.bool_(True), print,
    np.array([1, 2]),
]  # fmt: skip
NAMES = [
    *(
        name
        for name in inspect.signature(la.dedup).parameters
        if name not in ("source", "settings")
    ),
    *DedupSettings.__dataclass_fields__,
    "num_perm",
]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_a_job_takes_a_value_or_refuses_it(name: str) -> None:
    refused = 0
    for value in ODD:
        given = {"method": "simhash", name: value}
        try:
            la.dedup(DOCUMENTS, **given)  # type: ignore[arg-type]
        except la.LookalikeError as error:
            refused += 1
            assert len(str(error)) <= 2000
    assert refused


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(TypeError, match="nonsense"):
        la.dedup(DOCUMENTS, nonsense=3)  # type: ignore[call-arg]


def test_flags_are_true_or_false() -> None:
    """A word such as "no" would be true."""
    for name in ("verify", "skip_bad"):
        odd: list[object] = ["no", 1, 0, None, []]
        for value in odd:
            with pytest.raises(
                la.errors.ArgumentError, match=f"{name} is .*; expected True or False"
            ):
                la.dedup(DOCUMENTS, **{name: value})  # type: ignore[arg-type]
        la.dedup(DOCUMENTS, **{name: np.bool_(True)})  # type: ignore[arg-type]
    with pytest.raises(la.errors.ArgumentError, match="in_place is 'no'"):
        la.dedup(DOCUMENTS).write("a.jsonl", in_place="no")  # type: ignore[arg-type]


def test_a_result_takes_a_value_or_refuses_it() -> None:
    result = la.dedup(DOCUMENTS)
    for method in ("write", "write_annotated", "write_pairs", "save_signatures", "report"):
        for value in ODD:
            try:
                getattr(result, method)(value)
            except la.LookalikeError:
                continue
            assert isinstance(value, str)
    for method in ("text", "id", "old_text", "old_id"):
        for row in [*ODD, 3]:
            if isinstance(row, int | np.int64) and not isinstance(row, bool) and row == 0:
                continue
            with pytest.raises(la.errors.ArgumentError, match="row is "):
                getattr(result, method)(row)
    assert result.text(2) == DOCUMENTS[2]


COMMANDS = {
    "dedup": ["threshold", "ngram", "permutations", "seed", "min-features", "max-group", "keep",
              "memory-limit", "max-document", "threads", "text", "against", "work", "output",
              "pairs", "max-pairs", "report", "save-signatures"],
    "dedup --method=simhash": ["threshold", "bits", "radius", "seed"],
    "compare a b --in": ["ngram", "seed", "threads", "examples", "context", "id", "max-document"],
    "sign --output=t.npy": ["ngram", "permutations", "bits", "like", "output"],
}  # fmt: skip
WORDS = [
    "0",
    "-1",
    "1" + "0" * 30,
    "1" + "0" * 5000,
    "nan",
    "inf",
    "",
    "x",
    "\udcff",
    "0.5",
    "\u0663",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_takes_a_value_or_refuses_it(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"id": name, "text": text} for name, text in zip("abc", DOCUMENTS, strict=True)]
    Path("c.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for option in COMMANDS[command]:
        for word in WORDS:
            try:
                status = main([*command.split(), "c.jsonl", f"--{option}={word}"])
            except SystemExit as left:
                status = left.code  # type: ignore[assignment]
            told = capsys.readouterr().err
            assert status in (0, 1, 2), (option, word)
            if status == 1:
                assert told.startswith("lookalike: ") and told.count("\n") == 1


@pytest.mark.parametrize("depth", [32, 33, 100, 1000])
@pytest.mark.parametrize("kind", ["objects", "lists"])
def test_what_is_nested_deep(kind: str, depth: int) -> None:
    """It becomes a table, in which what lies deep is text, or is refused; and lines stay lines."""
    before, after = ('{"a":', "}") if kind == "objects" else ("[", "]")
    nested = before * depth + "1" + after * depth
    line = f'{{"id": "1", "text": "some words", "x": {nested}}}\n'
    Path("c.jsonl").write_text(line)
    Path("c.json").write_text(f"[{line}]")
    for name in ("c.jsonl", "c.json"):
        try:
            result = la.dedup(name)
        except la.errors.FileError as error:  # Python's own reader of JSON has its limits
            assert name == "c.json" and "recursion" in str(error)
            continue
        for target in ("d.parquet", "d.csv", "d.json", "d.jsonl"):
            try:
                assert result.write(target) == 1
            except la.errors.FileError as error:
                assert depth > 60 and "nested" in str(error) and target[1:] != name[1:]
        try:
            assert len(result.kept()) == 1
        except la.errors.FileError as error:
            assert depth > 60 and "nested" in str(error)
        if name == "c.jsonl":
            assert Path("d.jsonl").read_text() == line
    for command in (["dedup", "c.jsonl", "--id", "x"], ["sign", "c.jsonl", "-o", "s.npy"]):
        assert main(command) in (0, 1)
