from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lookalike as la
from lookalike.cli import main
from lookalike.compare.texts import compare_texts
from support.cases import cli_corpus as corpus
from support.running.refusals import refused

A, B = corpus.TEXTS[:2]


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    for name, text in (("a", A), ("b", B)):
        (tmp_path / name).write_text(text)
    return [str(tmp_path / "a"), str(tmp_path / "b")]


def compared(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["compare", *arguments, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_numbers_are_those_of_the_library(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    found = compared(capsys, *files, "--ngram", "3", "--seed", "5", "--threads", "1")
    minhash, simhash, topsig = found["methods"]
    assert (minhash["method"], simhash["method"], topsig["method"]) == (
        "minhash", "simhash", "topsig"
    )  # fmt: skip
    assert minhash["exact"] == la.jaccard(A, B, la.Words(ngram=3))
    assert simhash["exact"] == la.cosine(A, B, la.Words(ngram=3))
    assert topsig["exact"] == la.cosine(A, B, la.Words(ngram=2))
    values = la.MinHash(128, la.Words(ngram=3), seed=5)
    rows = values.sign([A, B])
    assert minhash["distance"] == int((rows[0] != rows[1]).sum())
    assert minhash["estimate"] == values.similarity(rows[0], rows[1])[0]
    for verdict, signer in (
        (simhash, la.SimHash(128, la.Words(ngram=3), seed=5)),
        (topsig, la.TopSig(1024, features=la.Words(ngram=2), weights="count", seed=5)),
    ):
        signed = signer.sign([A, B])
        distance = la.hamming(*signed)[0]
        assert verdict["distance"] == distance
        # A few words decide few bits of TopSig.
        decided = np.unpackbits(signed).sum() + distance if verdict is topsig else signer.bits
        assert verdict["estimate"] == pytest.approx(np.cos(np.pi * distance / decided))
        assert verdict["size"] == signer.bits
    assert found["words"] == [15, 15]
    assert found["bytes"] == [len(A), len(B)]
    assert not found["equal"]
    shingles = found["shingles"]
    assert (shingles["shared"], shingles["only_a"], shingles["only_b"]) == (10, 3, 3)
    kinds = [part["kind"] for part in found["diff"]["parts"]]
    assert kinds == ["equal", "delete", "insert", "equal"]


def test_a_plain_page(
    files: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["compare", *files]) == 0
    printed = capsys.readouterr().out
    verdict = compare_texts(A, B).methods[0]
    line = f"Jaccard of word 5-grams +{verdict.exact:.4f} +{verdict.estimate:.4f} +minhash: "
    assert re.search(line, printed)
    assert "over the lazy [-dog-] {+cat+} and runs into the dark forest." in printed
    assert "\x1b" not in printed
    # On a terminal that wants no color, the same.
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["compare", *files]) == 0
    assert capsys.readouterr().out == printed


def test_colors(
    files: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert main(["compare", *files, "--color", "always"]) == 0
    printed = capsys.readouterr().out
    assert "\x1b[9;31mdog \x1b[0m\x1b[1;32mcat\x1b[0m" in printed
    assert "[-" not in printed
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["compare", *files]) == 0
    assert capsys.readouterr().out == printed
    monkeypatch.setitem(sys.modules, "rich.text", None)
    assert main(["compare", *files]) == 0
    assert "[-dog-]" in capsys.readouterr().out


def test_documents_of_a_corpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = corpus.many(20_000)
    ids = [f"id {number}" for number in range(20_000)]
    source = corpus.write(tmp_path / "corpus.jsonl", texts, ids)
    plain = tmp_path / "plain.txt"
    plain.write_text("\n".join(texts))
    for arguments in (
        ("--in", source, "id 19999", "id 3"),
        ("--in", source, "--rows", "19999", "3"),
        ("--in", str(plain), "19999", "3"),
    ):
        found = compared(capsys, *arguments)
        exact = la.jaccard(texts[19999], texts[3], la.Words(ngram=5))
        assert found["methods"][0]["exact"] == exact
        assert found["bytes"] == [len(texts[19999]), len(texts[3])]
    assert compared(capsys, "--in", source, "id 7", "id 7")["equal"]
    assert main(["compare", "--in", source, "id 7", "id 7"]) == 0
    assert "No word differs." in capsys.readouterr().out


def test_weights_are_those_of_dedup(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is common in the corpus hardly counts; copies and empty documents count once, or not."""
    notice = "all of these documents have the same long notice at their beginning"
    report = "the bridge was closed because two of its cables had rusted"
    texts = [f"{notice} {text}" for text in (report, "trains run late", f"as said before {report}")]
    texts += ["", texts[1], "nothing of that kind at all is in here", " ? "]
    source = tmp_path / "corpus.jsonl"
    lines = [json.dumps({"id": row, "text": text}) + "\n" for row, text in enumerate(texts)]
    source.write_text("".join(lines))
    for common in ([], ["--common", "2"]):
        plain = ["jaccard", "containment"] if common else []
        for measure in ("weighted-jaccard", "weighted-containment", *plain):
            options = ["--in", str(source), "0", "2", "--measure", measure, *common]
            found = compared(capsys, *options)
            pairs = la.dedup(
                texts, measure=measure, common=2 if common else None, threshold=0.01, exact=True
            ).different_pairs
            (pair,) = np.flatnonzero((pairs.left == 0) & (pairs.right == 2))
            assert found["weighted"] == {measure: pairs.similarity[pair]}
            if measure not in plain:
                assert found["methods"] == [] and found["containment"] is None
    every = compared(capsys, "--in", str(source), "0", "2", "--common", "2")
    names = ["weighted-jaccard", "weighted-containment", "jaccard", "containment"]
    assert list(every["weighted"]) == names
    assert len(every["methods"]) == 3
    assert "weighted" not in compared(capsys, "--in", str(source), "0", "2")
    assert main(["compare", "--in", str(source), "0", "2", "--common", "2"]) == 0
    shown = capsys.readouterr().out
    assert "Weighted-jaccard of word 5-grams" in shown and "without what is common" in shown
    command = ["compare", "--in", str(source), "0", "2", "--common", "2", "--measure", "cosine"]
    assert "--common does nothing for cosine" in refused(command, capsys)
    files = ["compare", str(source), str(source)]
    assert "--common needs --in CORPUS" in refused([*files, "--common", "2"], capsys)
    message = refused([*files, "--measure", "weighted-jaccard"], capsys)
    assert "what features weigh is not known; give --in CORPUS" in message


def test_texts_without_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "signs").write_text("?! ...")
    names = [str(tmp_path / "empty"), str(tmp_path / "signs")]
    found = compared(capsys, *names)
    assert [verdict["exact"] for verdict in found["methods"]] == [0, 0, 0]
    assert [verdict["estimate"] for verdict in found["methods"]] == [None] * 3
    assert main(["compare", *names]) == 0
    assert "A text without words is similar to nothing" in capsys.readouterr().out


def test_long_equal_runs_are_shortened(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [f"w{number}" for number in range(1000)]
    (tmp_path / "a").write_text(" ".join(words))
    words[500] = "changed"
    (tmp_path / "b").write_text(" ".join(words))
    command = ["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--examples", "0"]
    assert main([*command, "--context", "10"]) == 0
    diff = capsys.readouterr().out.partition("From the first")[2].splitlines()[2]
    assert diff == "... w498 w499 [-w500-] {+changed+} w501 w502 ..."
    assert main([*command, "--no-diff"]) == 0
    assert "From the first" not in capsys.readouterr().out


def test_huge_files_are_bounded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        numbers = rng.integers(0, 100_000, 400_000).tolist()
        (tmp_path / name).write_text(" ".join(map(str, numbers)))
    names = [str(tmp_path / "a"), str(tmp_path / "b")]
    assert main(["compare", *names, "--context", "5"]) == 0
    printed = capsys.readouterr().out
    assert "the diff stops here" in printed
    assert len(printed) < 200_000
    monkeypatch.setattr("lookalike.cli.commands.compare._MOST_BYTES", 1_000_000)
    assert main(["compare", *names]) == 1
    assert "a is larger than 1,000,000 bytes; split it" in capsys.readouterr().err


def test_errors_are_one_line(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "nul").write_bytes(b"abc\0def")
    (tmp_path / "binary").write_bytes(b"W\0rde")
    source = corpus.write(tmp_path / "corpus.jsonl")
    cases: list[tuple[list[str], str]] = [
        ([files[0], str(tmp_path / "nul")], "nul is binary: it has a NUL byte"),
        ([files[0], str(tmp_path / "binary")], "binary is binary: it has a NUL byte"),
        ([files[0], str(tmp_path / "none")], "none cannot be read: No such file"),
        ([files[0], str(tmp_path)], "cannot be read: Is a directory"),
        ([*files, "--ngram", "0"], "--ngram is 0; expected"),
        ([*files, "--examples", "-1"], "--examples is -1; expected"),
        ([*files, "--rows"], "--rows needs --in CORPUS"),
        (["--in", source, "doc-0", "doc-9"], "no document whose 'id' is 'doc-9' among 7"),
        (["--in", source, "--rows", "0", "7"], "has no row '7' among 7 documents; the first are"),
        (["--in", source, "--text", "body", "1", "2"], "has no column 'body'"),
        (["--in", str(tmp_path / "no.jsonl"), "1", "2"], "no such file"),
    ]
    for arguments, message in cases:
        assert message in refused(["compare", *arguments], capsys), arguments
    with pytest.raises(SystemExit) as stop:
        main(["compare", files[0]])
    assert stop.value.code == 2
