"""A format of another package, everywhere that formats are read and written."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

import lookalike as la
from lookalike.cli import main
from lookalike.corpora import FORMATS, Problems, open_corpus
from support.services.running import running

TEXTS = [
    "the quick brown fox jumps over the lazy dog near the old river bank today",
    "a second text that has nothing to do with animals, rivers or any old bank",
    "the quick brown fox jumps over the lazy dog near the old river bank today!",
]


def records(texts: list[str], first: int = 0) -> str:
    """Return texts as the format has them, with ids."""
    rows = [f"id: {id}\ntext: {json.dumps(text)}\n\f" for id, text in enumerate(texts, first)]
    return "%records\n" + "".join(rows)


def texts_of(path: Path) -> list[str]:
    """Return the texts of a file or folder, as they are read."""
    batches = open_corpus(path).read(["text"], Problems())
    return [text for batch in batches for text in batch.column(0).to_pylist()]


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "corpus.records"
    path.write_text(records(TEXTS))
    return path


def test_dedup(source: Path, tmp_path: Path) -> None:
    result = la.dedup(source, threshold=0.5)
    assert result.keep.tolist() == [True, True, False]
    result.write(tmp_path / "kept.rec")
    assert (tmp_path / "kept.rec").read_text() == records(TEXTS[:2]).replace(
        "id: 0", 'id: "0"'
    ).replace("id: 1", 'id: "1"')
    result.write(tmp_path / "kept.jsonl")
    assert texts_of(tmp_path / "kept.jsonl") == TEXTS[:2]
    result.write(tmp_path / "kept.records.gz")
    assert gzip.decompress((tmp_path / "kept.records.gz").read_bytes()).startswith(b"%records\n")
    assert texts_of(tmp_path / "kept.records.gz") == TEXTS[:2]


def test_from_and_to_other_formats(source: Path, tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    assert main(["dedup", str(path), "-o", "kept.records", "--threshold", "0.5", "--quiet"]) == 0
    assert texts_of(tmp_path / "kept.records") == TEXTS[:2]
    command = ["dedup", "kept.records", "-o", "again.parquet", "--pairs", "pairs.rec", "--quiet"]
    assert main(command) == 0
    assert texts_of(tmp_path / "again.parquet") == TEXTS[:2]
    assert (tmp_path / "pairs.rec").read_text() == "%records\n"


def test_command_line_in_a_process_of_its_own(source: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lookalike.cli", "dedup", "--threshold", "0.5", "--quiet"]
    subprocess.run([*command, "corpus.records", "-o", "kept.records"], check=True)
    assert texts_of(tmp_path / "kept.records") == TEXTS[:2]
    unnamed = source.rename(tmp_path / "corpus")
    subprocess.run([*command, unnamed, "--format", "records", "-o", "two.records"], check=True)
    assert texts_of(tmp_path / "two.records") == TEXTS[:2]


@pytest.mark.parametrize("options", [[], ["--format", "records"]])
@pytest.mark.parametrize("packed", [False, True])
def test_standard_input_and_output(
    options: list[str],
    packed: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    data = records(TEXTS).encode()
    stream = io.BytesIO(gzip.compress(data) if packed else data)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(stream))
    assert main(["dedup", "-", "-o", "-", "--threshold", "0.5", "--quiet", *options]) == 0
    written = capfdbinary.readouterr().out
    assert written.startswith(b"%records\n")
    (tmp_path / "kept.rec").write_bytes(written)
    assert texts_of(tmp_path / "kept.rec") == TEXTS[:2]


def test_a_folder_of_shards(tmp_path: Path) -> None:
    folder = tmp_path / "shards"
    folder.mkdir()
    (folder / "1.records").write_text(records(TEXTS[:2]))
    (folder / "2.records").write_text(records(TEXTS[2:], first=2))
    assert texts_of(folder) == TEXTS
    kept = tmp_path / "kept"
    assert main(["dedup", str(folder), "-o", str(kept), "--threshold", "0.5", "--quiet"]) == 0
    assert texts_of(kept / "1.records") == TEXTS[:2]
    assert (kept / "2.records").read_text() == "%records\n"


def test_bad_rows_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.records"
    path.write_text(records(TEXTS[:1]) + "id: [\n\f" + records(TEXTS[1:])[9:])
    assert main(["dedup", str(path), "-o", str(tmp_path / "out.records"), "--quiet"]) == 1
    assert "bad.records, record 1: is not valid" in capsys.readouterr().err
    assert len(la.dedup(path, skip_bad=True).keep) == 3


def test_collections(source: Path, tmp_path: Path) -> None:
    docs = tmp_path / "docs.db"
    assert main(["collection", "create", str(docs)]) == 0
    assert main(["collection", "import", str(docs), str(source), "--quiet"]) == 0
    assert main(["collection", "export", str(docs), str(tmp_path / "all.rec"), "--quiet"]) == 0
    assert texts_of(tmp_path / "all.rec") == TEXTS


def test_an_upload_to_the_service(source: Path, tmp_path: Path) -> None:
    place, run = tmp_path / "served", tmp_path / "run"
    place.mkdir()
    run.mkdir()
    with running(place, run) as served:
        served.good("POST", "/v1/collections", {"name": "docs"})
        sent = {"content_type": "application/octet-stream"}
        upload = "/v1/collections/docs/upload?format="
        job = served.ask("POST", f"{upload}records", source.read_bytes(), **sent)[2]
        assert served.ended(job["id"])["summary"]["added"] == len(TEXTS)
        for other in ("parquet", "warc", "html", "files", "record"):
            message = served.refused(422, "bad_parameter", "POST", upload + other, b"x", **sent)
            assert "Input should be 'jsonl', 'json', 'csv', 'tsv' or 'text'" in message
    with la.open_collection(place / "docs.db", "docs") as docs:
        assert sorted(str(one.text) for one in docs) == sorted(TEXTS)


def test_help_and_errors(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(la.errors.ArgumentError, match="format is 'record'.*did you mean 'records'"):
        la.dedup(source, format="record")
    with pytest.raises(SystemExit):
        main(["dedup", str(source), "-o", "x.jsonl", "--format", "recordz"])
    assert "--format is 'recordz'; expected one of jsonl, json" in capsys.readouterr().err
    assert FORMATS["records"].suffixes == (".records", ".rec")


def test_known_formats_load_no_other_package(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    code = (
        "import sys; from lookalike.cli import main;"
        f"main(['dedup', {str(path)!r}, '-o', {str(tmp_path / 'out.csv')!r}, '--quiet']);"
        "assert 'lookalike_toys' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_formats_import_neither_pyarrow_nor_duckdb() -> None:
    code = (
        "import sys; from lookalike.corpora import FORMATS, format_of; from pathlib import Path;"
        "assert format_of(Path('x.jsonl')) == 'jsonl' and len(list(FORMATS)) == 9;"
        "assert not {'pyarrow', 'duckdb', 'fastwarc', 'resiliparse'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
