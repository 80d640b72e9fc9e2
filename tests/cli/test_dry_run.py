"""`--dry-run` says what would happen, and changes nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lookalike as la
from lookalike.cli import main
from support.cases import cli_corpus as corpus
from support.running.refusals import refused


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    corpus.write(tmp_path / "corpus.jsonl")
    with la.open_collection("docs.db", signer=la.SimHash(64)) as docs:
        docs.add(["fox", "owl"], ["The quick brown fox", "The slow white owl"])
        docs.snapshot("backup.db")
    return tmp_path


def test_dedup_writes_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = Path("corpus.jsonl").read_bytes()
    names = set(folder.iterdir())
    outputs = ["--in-place", "--pairs", "pairs.csv", "--report", "report.html", "--dry-run"]
    assert main(["dedup", "corpus.jsonl", *outputs]) == 0
    printed = capsys.readouterr().out
    assert "Dry run: nothing was written." in printed
    assert "kept documents: corpus.jsonl (would be replaced)" in printed
    assert "pairs: pairs.csv\n" in printed
    assert main(["dedup", "corpus.jsonl", "-o", "-", "--dry-run", "--json"]) == 0
    errors = capsys.readouterr()
    assert errors.out == "" and json.loads(errors.err)["dry_run"] is True
    assert Path("corpus.jsonl").read_bytes() == before and set(folder.iterdir()) == names


def test_collection_delete(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    delete = ["collection", "delete", "docs.db", "fox", "fox", "nobody"]
    assert main([*delete, "--dry-run"]) == 0
    assert capsys.readouterr().out == "would delete 1 of 2\n"
    with la.open_collection("docs.db") as docs:
        assert docs.count() == 2
    assert main([*delete, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"deleted": 1, "of": 2, "dry_run": False}
    with la.open_collection("docs.db") as docs:
        assert docs.count() == 1


def test_collection_restore(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with la.open_collection("docs.db") as docs:
        docs.delete(["fox"])
    restore = ["collection", "restore", "backup.db", "docs.db", "--dry-run"]
    assert "add --replace" in refused(restore, capsys)
    assert main([*restore, "--replace"]) == 0
    told = (
        "would restore the collection 'documents' with 2 documents, replacing one with 1 document"
    )
    assert capsys.readouterr().out == f"{told}\n"
    assert main(["collection", "restore", "backup.db", "new.db", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["replaces"] is None
    assert not Path("new.db").exists()
    with la.open_collection("docs.db") as docs:
        assert docs.count() == 1
