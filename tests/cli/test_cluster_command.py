"""`lookalike cluster`: what it writes is what Python gives, and bad input is refused."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pyarrow.parquet
import pytest

import lookalike as la
from lookalike.cli import main
from lookalike.corpora import open_corpus
from support.oracles import topics as oracle
from support.running.refusals import refused

TEXTS = oracle.scattered(1)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{"id": f"d{at}", "text": text} for at, text in enumerate(TEXTS)]
    Path("corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "json", "parquet"])
def test_rows_in_every_format(suffix: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "corpus.jsonl", "-k", "4", "-o", f"topics.{suffix}"]) == 0
    expected = la.cluster_documents("corpus.jsonl", 4).to_arrow().to_pylist()
    path = Path(f"topics.{suffix}")
    if suffix == "parquet":
        assert pyarrow.parquet.read_table(path).to_pylist() == expected
    elif suffix == "jsonl":
        assert [json.loads(line) for line in path.read_text().splitlines()] == expected
    elif suffix == "json":
        assert json.loads(path.read_text()) == expected
    else:
        delimiter = "\t" if suffix == "tsv" else ","
        found = list(csv.DictReader(io.StringIO(path.read_text()), delimiter=delimiter))
        plain = [
            {key: "" if value is None else str(value) for key, value in row.items()}
            for row in expected
        ]
        assert found == plain
    assert f"documents: topics.{suffix}" in capsys.readouterr().out


def test_the_summary_names_words_documents_and_what_is_left_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["cluster", "corpus.jsonl", "-k", "4"]) == 0
    printed = capsys.readouterr().out
    result = la.cluster_documents("corpus.jsonl", 4)
    for one in result.clusters:
        words = " ".join(word for word, _ in one.words)
        assert f"{one.number:>7}  {one.size:>9,}  {words}\n" in printed
        row = one.central[0]
        assert f"    {result.id(row)}  {result.title(row)[:90]}" in printed
    assert "without words                 2  in no cluster" in printed


def test_json_has_clusters_and_options_reach_them(capsys: pytest.CaptureFixture[str]) -> None:
    more = "-k 3 --ngram 1,2 --title id --top-words 4 --top-documents 2 --seed 7"
    assert main(["cluster", "corpus.jsonl", *more.split(), "--json", "--stem", "english"]) == 0
    found = json.loads(capsys.readouterr().out)
    expected = la.cluster_documents(
        "corpus.jsonl",
        3,
        ngram=(1, 2),
        title="id",
        words=4,
        central=2,
        seed=7,
        stem="english",
    ).to_dict()
    assert found["clusters"] == json.loads(json.dumps(expected["clusters"]))
    assert found["settings"] == json.loads(json.dumps(expected["settings"]))
    assert {len(one["words"]) for one in found["clusters"]} == {4}
    assert {len(one["central"]) for one in found["clusters"]} == {2}


def test_threads_change_nothing() -> None:
    for threads in ("1", "3"):
        output = f"{threads}.csv"
        command = ["cluster", "corpus.jsonl", "-k", "5", "--threads", threads, "-o", output]
        assert main([*command, "--quiet"]) == 0
    assert Path("1.csv").read_bytes() == Path("3.csv").read_bytes()


def test_folders_pages_and_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("pages").mkdir()
    for at, text in enumerate(TEXTS[:40]):
        body = f"<html><body><article><p>{text}</p><p>{text}</p></article></body></html>"
        Path("pages", f"{at:02}.html").write_text(body)
    assert main(["cluster", "pages", "-k", "4", "--json", "--min-words", "5"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["documents"] == 40 and len(found["clusters"]) == 4
    assert all(one["words"][0]["word"][:2] in ("s0", "s1", "s2", "s3") for one in found["clusters"])

    class Input:
        buffer = io.BytesIO(Path("corpus.jsonl").read_bytes())

        @staticmethod
        def isatty() -> bool:
            return False

    monkeypatch.setattr("sys.stdin", Input())
    assert main(["cluster", "-", "-k", "4", "-o", "piped.csv", "--quiet"]) == 0
    assert main(["cluster", "corpus.jsonl", "-k", "4", "-o", "read.csv", "--quiet"]) == 0
    assert Path("piped.csv").read_bytes() == Path("read.csv").read_bytes()


def test_bad_rows_are_refused_or_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.jsonl").write_text('{"text": "a fox"}\n{"text": 3\n{"text": "an owl"}\n')
    assert "--skip-bad" in refused(["cluster", "bad.jsonl"], capsys)
    assert main(["cluster", "bad.jsonl", "--skip-bad"]) == 0
    printed = capsys.readouterr()
    assert "bad rows" in printed.out and "left out: " in printed.err


def test_nothing_is_written_where_something_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    before = set(Path().iterdir())
    for more in ("-k 0", "-k 500", "--ngram 0", "-o a/b.csv", "--report a/b.html"):
        command = ["cluster", "corpus.jsonl", "-o", "topics.csv", "--report", "topics.html"]
        refused([*command, *more.split()], capsys)
    refused(["cluster", "corpus.jsonl", "-o", "-"], capsys)
    assert set(Path().iterdir()) == before
    assert open_corpus("corpus.jsonl").columns() == ["id", "text"]
