"""Files that lie elsewhere, with file systems of pyarrow that need no network."""

from __future__ import annotations

import gc
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.fs
import pytest

import lookalike as la
from lookalike.cli import main
from lookalike.corpora import Problems, open_corpus

SAME = "the quick brown fox jumps over the lazy dog near the old river bank"
LINES = "".join(json.dumps({"id": at, "text": SAME}) + "\n" for at in range(2))


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


def stand_in(monkeypatch: pytest.MonkeyPatch, from_uri: Callable[[str], tuple[Any, str]]) -> None:
    """Let addresses lead elsewhere than pyarrow would have it."""
    known = {"FileType": pa.fs.FileType, "FileSelector": pa.fs.FileSelector}
    systems = SimpleNamespace(FileSystem=SimpleNamespace(from_uri=from_uri), **known)
    monkeypatch.setattr("lookalike.corpora.remote.file_systems", systems)


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for s3://bucket."""
    folder = tmp_path / "bucket"
    folder.mkdir()
    local = pa.fs.SubTreeFileSystem(str(folder), pa.fs.LocalFileSystem())

    stand_in(monkeypatch, lambda address: (local, address.removeprefix("s3://bucket/")))
    return folder


def test_a_file_is_copied_as_long_as_it_is_used(tmp_path: Path, temporary: Path) -> None:
    (tmp_path / "c.jsonl.gz").write_bytes(pa.compress(LINES.encode(), "gzip", asbytes=True))
    address = (tmp_path / "c.jsonl.gz").as_uri()
    result = la.dedup(address)
    assert result.counts.documents == 2 and result.counts.kept == 1
    assert result.source.name == address and list(temporary.iterdir())
    assert result.write(tmp_path / "o.jsonl") == 1
    del result
    gc.collect()
    assert not list(temporary.iterdir())


def test_a_folder_of_shards_and_one_of_files(bucket: Path) -> None:
    for at in range(3):
        (bucket / "crawl" / f"day{at}").mkdir(parents=True)
        (bucket / "crawl" / f"day{at}" / "part.jsonl").write_text(LINES)
    corpus = open_corpus("s3://bucket/crawl/")
    assert corpus.format == "jsonl" and len(corpus.files) == 3
    assert sum(len(batch) for batch in corpus.read(["text"], Problems())) == 6
    (bucket / "notes").mkdir()
    (bucket / "notes" / "a.md").write_text(SAME)
    assert la.dedup("s3://bucket/notes").counts.documents == 1


def test_the_same_content_goes_on_in_a_work_folder(bucket: Path, tmp_path: Path) -> None:
    (bucket / "c.jsonl").write_text(LINES)
    assert not la.dedup("s3://bucket/c.jsonl", work=tmp_path / "work").reused
    assert "verify" in la.dedup("s3://bucket/c.jsonl", work=tmp_path / "work").reused


def test_names_cannot_lead_out_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Hostile:
        def get_file_info(self, asked: Any) -> Any:
            if isinstance(asked, str):
                return pa.fs.FileInfo("x", pa.fs.FileType.Directory)
            return [pa.fs.FileInfo(f"x/../../../{tmp_path.name}-stolen", pa.fs.FileType.File)]

        def open_input_stream(self, path: str, compression: Any) -> Any:
            return pa.BufferReader(b"text")

    stand_in(monkeypatch, lambda address: (Hostile(), "x"))
    assert open_corpus("s3://bucket/x").format == "files"
    assert not list(tmp_path.parent.glob("*-stolen")) and not list(tmp_path.glob("*-stolen"))


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("https://example.org/c.jsonl", "Download it first, .* curl -sL"),
        ("s3://bucket/none.jsonl", "there is no such file or folder"),
        ("s3://bucket/*.jsonl", "is a pattern"),
    ],
)
def test_what_cannot_be_read_is_told(bucket: Path, address: str, message: str) -> None:
    with pytest.raises(la.LookalikeError, match=message):
        la.dedup(address)


def test_unknown_schemes_and_secrets() -> None:
    with pytest.raises(la.errors.FileError, match=r"pyarrow reads s3://, gs://") as caught:
        la.dedup("nowhere://me:secret@host/c.jsonl")
    assert "secret" not in str(caught.value) and "nowhere://***@host" in str(caught.value)


def test_on_the_command_line(
    bucket: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (bucket / "c.jsonl").write_text(LINES)
    assert main(["dedup", "s3://bucket/c.jsonl", "-o", "o.jsonl", "--quiet"]) == 0
    assert Path("o.jsonl").read_text() == LINES.splitlines(keepends=True)[0]
    for arguments, message in [
        (["s3://bucket/c.jsonl", "o.jsonl"], "must be the only input"),
        (["o.jsonl", "-o", "gs://bucket/new.jsonl"], "can be uploaded to s3:// addresses only"),
        (["s3://bucket/c.jsonl", "--in-place"], "replaces one file"),
    ]:
        assert main(["dedup", *arguments]) == 1
        assert message in capsys.readouterr().err


def test_a_file_may_be_called_like_an_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s3:" / "bucket").mkdir(parents=True)
    (tmp_path / "s3:" / "bucket" / "c.jsonl").write_text(LINES)
    assert la.dedup("s3://bucket/c.jsonl").counts.documents == 2
