"""A work folder that was written long ago: what is in it is used, or made again, never mistaken."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from lookalike.cli import main
from lookalike.jobs.work_folder import digest

GOLDEN = Path(__file__).parent.parent / "data" / "work_v2.zip"
"""A corpus (in.jsonl, known by what is in it), what stays of it (out.jsonl), and the folder."""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    with ZipFile(GOLDEN) as archive:
        archive.extractall(tmp_path)
    return tmp_path


def steps_reused(
    old: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[str]:
    """Run the job of the folder again, see that its answer is the same, and return what it used."""
    rows = io.BytesIO((old / "in.jsonl").read_bytes())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(rows))
    command = ["dedup", "-", "--threshold", "0.6", "--work", str(old / "work"), "--json"]
    assert main([*command, "-o", str(old / "again.jsonl")]) == 0
    assert (old / "again.jsonl").read_bytes() == (old / "out.jsonl").read_bytes()
    reused: list[str] = json.loads(capsys.readouterr().out)["reused"]
    return reused


def test_it_is_used(
    old: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert steps_reused(old, monkeypatch, capsys) == ["read", "sign", "propose", "verify"]


@pytest.mark.parametrize(
    ("stamp", "step"), [("read", "read"), ("sign", "sign"), ("pairs", "verify")]
)
def test_a_stamp_of_another_version_is_not(
    stamp: str,
    step: str,
    old: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = old / "work" / f"{stamp}.json"
    told = json.loads(path.read_text())["stamp"]
    told["version"] -= 1
    path.write_text(json.dumps({"stamp": told, "checksum": digest(told)}))
    assert step not in steps_reused(old, monkeypatch, capsys)
    assert steps_reused(old, monkeypatch, capsys) == ["read", "sign", "propose", "verify"]
