from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.cli import main
from lookalike.compare.texts import compare_texts
from lookalike.signatures import estimated_similarity
from support.cases import cli_corpus as corpus
from support.cases.strategies import collections
from support.oracles import scan as oracle
from support.running.refusals import refused

TEXTS = corpus.many(200)
IDS = [f"doc {number}" for number in range(200)]
SIGNER = la.SimHash(64)


@pytest.fixture
def signatures(tmp_path: Path) -> str:
    file = tmp_path / "signatures.lookalike"
    la.save_signatures(file, SIGNER.sign(TEXTS), SIGNER, IDS)
    return str(file)


def truth(radius: int) -> list[tuple[str, str, int, float]]:
    pairs = la.ScanIndex(SIGNER.sign(TEXTS)).pairs(radius)
    assert len(pairs) > 20
    estimates = np.round(estimated_similarity(SIGNER, pairs.distances, 64), 4)
    return [
        (IDS[left], IDS[right], distance, estimate)
        for left, right, distance, estimate in zip(
            pairs.left.tolist(),
            pairs.right.tolist(),
            pairs.distances.tolist(),
            estimates.tolist(),
            strict=True,
        )
    ]


def test_every_format(
    signatures: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("lookalike.cli.commands.pairs._AT_A_TIME", 7)
    pairs = truth(12)
    names = ["left", "right", "distance", "estimate"]
    rows = [dict(zip(names, pair, strict=True)) for pair in pairs]
    for suffix in ("csv", "parquet", "jsonl", "json"):
        file = tmp_path / f"pairs.{suffix}"
        assert main(["pairs", signatures, "--radius", "12", "-o", str(file)]) == 0
        summary = f"{len(pairs):,} pairs within 12 of 64 bits among 200 signatures: {file}\n"
        assert capsys.readouterr().out == summary
        if suffix == "csv":
            read = pyarrow.csv.read_csv(file).to_pylist()
        elif suffix == "parquet":
            read = pyarrow.parquet.read_table(file).to_pylist()
        elif suffix == "jsonl":
            read = [json.loads(line) for line in file.read_text().splitlines()]
        else:
            read = json.loads(file.read_text())
        assert read == rows

    assert main(["pairs", signatures, "--radius", "12", "--json"]) == 0
    printed = capsys.readouterr()
    assert [json.loads(line) for line in printed.out.splitlines()] == rows
    assert printed.err.startswith(f"{len(pairs):,} pairs within 12 of 64 bits")

    assert main(["pairs", signatures, "--radius", "12", "--quiet"]) == 0
    printed = capsys.readouterr()
    table = [line.split("\t") for line in printed.out.splitlines()]
    assert table == [names, *([str(value) for value in pair] for pair in pairs)]
    assert printed.err == ""


@settings(max_examples=20)
@given(rows=collections(), radius=st.integers(0, 300), threads=st.integers(1, 3))
def test_rows_and_indexes_of_any_sort(
    rows: oracle.Signatures, radius: int, threads: int, tmp_path: Path
) -> None:
    np.save(tmp_path / "rows.npy", rows)
    ids = np.random.default_rng(0).permutation(len(rows)) * 5
    la.SliceIndex(rows, slice_bits=4, ids=ids).save(tmp_path / "slices.lookalike")
    for name, own in (("rows.npy", None), ("slices.lookalike", ids)):
        file = str(tmp_path / "pairs.parquet")
        command = ["pairs", str(tmp_path / name), "--radius", str(radius), "-o", file]
        assert main([*command, "--threads", str(threads), "--quiet"]) == 0
        expected = la.ScanIndex(rows, ids=own).pairs(radius)
        found = pyarrow.parquet.read_table(file)
        assert found.column_names == ["left", "right", "distance"]
        assert found["left"].to_pylist() == expected.left.tolist()
        assert found["right"].to_pylist() == expected.right.tolist()
        assert found["distance"].to_pylist() == expected.distances.tolist()


def test_collapse_and_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "copies.npy", np.zeros((20_000, 8), np.uint8))
    copies = str(tmp_path / "copies.npy")
    assert main(["pairs", copies, "--radius", "3", "--collapse"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[1:] == [f"0\t{row}\t0" for row in range(1, 20_000)]
    assert main(["pairs", copies, "--radius", "3"]) == 1
    assert "more than 100,000,000 pairs" in capsys.readouterr().err


def test_no_pairs_have_columns_all_the_same(signatures: str, tmp_path: Path) -> None:
    la.save_signatures(tmp_path / "one.lookalike", SIGNER.sign(TEXTS[:1]), SIGNER, IDS[:1])
    file = tmp_path / "pairs.csv"
    one = str(tmp_path / "one.lookalike")
    assert main(["pairs", one, "--radius", "64", "-o", str(file), "--quiet"]) == 0
    assert file.read_text() == "left,right,distance,estimate\n"


def test_errors_are_one_line(
    signatures: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases: list[tuple[list[str], str]] = [
        ([signatures, "--radius", "-3"], "--radius is -3; expected"),
        ([signatures, "--radius", "3", "--max-pairs", "-1"], "--max-pairs is -1; expected"),
        ([signatures, "--radius", "3", "-o", "pairs.txt"], "expected a name that ends in .csv"),
        ([signatures, "--radius", "3", "-o", str(tmp_path / "no" / "p.csv")], "does not exist"),
        ([str(tmp_path / "none"), "--radius", "3"], "none cannot be read"),
        ([signatures, "--radius", "64", "--max-pairs", "10"], "more than 10 pairs"),
    ]
    for arguments, message in cases:
        assert message in refused(["pairs", *arguments], capsys), arguments
    with pytest.raises(SystemExit) as stop:
        main(["pairs", signatures])
    assert stop.value.code == 2


def test_recall_finds_most_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = np.random.default_rng(2).integers(0, 256, (10_000, 16), dtype=np.uint8)
    rows[5000:, :12] = rows[:5000, :12]
    np.save(tmp_path / "many.npy", rows)
    command = ["pairs", str(tmp_path / "many.npy"), "--radius", "24"]
    main([*command, "--recall", "0.9"])
    some = capsys.readouterr()
    assert "among 10,000 signatures, each found with a chance of 0.9 or more" in some.err
    main(command)
    everything = capsys.readouterr()
    assert "chance" not in everything.err
    lines = set(some.out.splitlines())
    assert lines <= set(everything.out.splitlines())
    assert len(lines) > 0.88 * len(everything.out.splitlines())


def test_recall_is_a_share(signatures: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(["pairs", signatures, "--radius", "3", "--recall", "1.1"], capsys)
    assert said.startswith("--recall is 1.1; expected a number above 0 and at most 1")


def test_short_texts_are_not_similar_for_want_of_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    texts = ["red apple", "blue sky", "green tree", "old house", "tiny", "red apple", "", "!"]
    rows = [json.dumps({"id": str(at), "text": text}) for at, text in enumerate(texts)]
    Path("short.jsonl").write_text("\n".join(rows))
    signed = ["--method", "topsig", "--ngram", "1"]
    assert main(["sign", "short.jsonl", *signed, "-o", "s.lookalike", "--quiet"]) == 0
    capsys.readouterr()
    assert main(["pairs", "s.lookalike", "--threshold", "0.8", "--quiet", "--json"]) == 0
    (pair,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (pair["left"], pair["right"], pair["estimate"]) == ("0", "5", 1)
    assert main(["search", "s.lookalike", "red cherry", "--threshold", "0.8", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["results"] == []
    assert main(["search", "s.lookalike", "red cherry", "--threshold", "0.4", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["results"]
    assert [one["id"] for one in found] == ["0", "5"]
    assert main(["dedup", "short.jsonl", *signed, "--no-verify", "--json"]) == 0
    counts = json.loads(capsys.readouterr().out)["counts"]
    assert (counts["near_duplicates"], counts["exact_duplicates"]) == (0, 1)
    (verdict,) = [
        one for one in compare_texts(texts[0], texts[1]).methods if one.method == "topsig"
    ]
    assert verdict.estimate is not None and verdict.estimate < 0.2
