"""No command uses signatures that changed by themselves, nor passes them on."""

from __future__ import annotations

from pathlib import Path

import pytest

import lookalike as la
from lookalike.cli import main
from support.cases import cli_corpus as corpus

TEXTS = corpus.many(300)


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A file of signatures, a part of which was overwritten with zeros."""
    new = corpus.write(tmp_path / "new.jsonl", TEXTS, None)
    path = tmp_path / "seen.lookalike"
    la.dedup(new, save_signatures=path)
    rows = la.load_signatures(path).signatures.tobytes()
    data = path.read_bytes()
    begin = data.index(rows[:512])
    path.write_bytes(data[:begin] + bytes(256 * 50) + data[begin + 256 * 50 :])
    return path


@pytest.mark.parametrize(
    "command",
    [
        ["dedup", "new.jsonl", "--against", "seen.lookalike", "-o", "out"],
        ["dedup", "new.jsonl", "--against", "seen.lookalike", "--save-signatures", "out.lookalike"],
        ["dedup", "new.jsonl", "--against", "seen.lookalike", "--work", "work", "-o", "out"],
        ["index", "seen.lookalike", "-o", "out"],
        ["index", "seen.lookalike", "--type", "scan", "-o", "out"],
        ["search", "seen.lookalike", "1 2 3"],
        ["search", "good.lookalike", "--signatures", "seen.lookalike"],
        ["match", "out.runs", "seen.lookalike"],
        ["pairs", "seen.lookalike", "--radius", "5"],
        ["evaluate", "seen.lookalike"],
    ],
)
def test_damaged_signatures_are_refused(
    command: list[str],
    damaged: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(damaged.parent)
    la.dedup("new.jsonl", save_signatures="good.lookalike")
    assert main(command) == 1
    told = capsys.readouterr()
    assert "the section 'signatures' has the checksum" in told.err and not told.out
    assert not list(Path().glob("out*"))


def test_a_search_may_do_without_verifying(
    damaged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["search", str(damaged), TEXTS[299], "-k", "1", "--no-checksums"]) == 0
    assert capsys.readouterr().out
