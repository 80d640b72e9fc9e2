"""Whatever happens to the files of an unfinished job, nothing wrong comes out of it."""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lookalike as la
from dedup.test_dedup import corpus
from lookalike.dedup.result import TextResult

ALL = os.environ.get("LOOKALIKE_DAMAGE") == "all"
"""Whether every damage is done to every file at every step, which takes minutes; else some."""

TEXTS = corpus(5, 60)


class Stop(Exception):
    """The job was interrupted."""


def until(wanted: str | None, least: float = 0.0, times: int = 1) -> Callable[[str, float], None]:
    """Return a progress that stops the job when it has been told so much so many times."""
    told: list[float] = []

    def progress(step: str, share: float) -> None:
        if step == wanted and share >= least:
            told.append(share)
            if len(told) == times:
                raise Stop

    return progress


STATES: dict[str, tuple[Any, ...]] = {
    "reading": ("read", 0.0, 2),
    "read": ("collapse",),
    "begun to sign": ("sign", 0.1),
    "half signed": ("sign", 0.5),
    "signed": ("propose",),
    "proposed": ("verify",),
    "complete": (None,),
}


def cut(data: bytes) -> bytes:
    return data[: random.randrange(max(1, len(data)))]


def flipped(data: bytes) -> bytes:
    if not data:
        return b"\x01"
    at = random.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]


DAMAGES: dict[str, Callable[[bytes], bytes | None]] = {
    "missing": lambda data: None,
    "empty": lambda data: b"",
    "cut": cut,
    "flipped": flipped,
    "zeros": lambda data: bytes(len(data)),
    "longer": lambda data: data + random.randbytes(random.choice([1, 8, 256, 5000])),
    "other": lambda data: random.randbytes(len(data)),
}


def answer(result: TextResult) -> list[Any]:
    pairs = (result.pairs, result.old_pairs, result.rejected)
    return [
        result.keep.tolist(),
        result.group_of.tolist(),
        result.duplicate_of.tolist(),
        result.matched_old.tolist(),
        [[column.tolist() for column in vars(each).values()] for each in pairs],
        [result.text(row) for row in range(len(result.keep))],
        [result.id(row) for row in range(len(result.keep))],
        result.counts,
        result.warnings,
    ]


@pytest.fixture(params=["files", "old signatures"])
def job(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., TextResult]:
    """A job with every file that a folder can have, a few documents at a time."""
    monkeypatch.setattr(sys.modules["lookalike.dedup.sign"], "_AT_A_TIME", 9)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # no power fails, and disks are slow
    rows = [{"id": f"d{at}", "text": text, "n": at % 7} for at, text in enumerate(TEXTS)]
    new, old = tmp_path / "new.jsonl", tmp_path / "old.jsonl"
    new.write_text("".join(json.dumps(row) + "\n" for row in rows[20:]))
    old.write_text("".join(json.dumps(row) + "\n" for row in rows[:20]))
    known = tmp_path / "old.lookalike"
    la.dedup(old, save_signatures=known)
    against = old if request.param == "files" else known

    def run(**options: Any) -> TextResult:
        return la.dedup(new, against=against, keep="max:n", threads=1, **options)

    return run


def folder_at(state: str, job: Callable[..., TextResult], folder: Path) -> None:
    try:
        job(work=folder, progress=until(*STATES[state]))
    except Stop:
        assert state != "complete"
    else:
        assert state == "complete"


@pytest.mark.parametrize("state", STATES)
def test_damaged_files_are_made_again_or_refused(
    state: str, job: Callable[..., TextResult], tmp_path: Path
) -> None:
    expected = answer(job())
    folder = tmp_path / "work"
    folder_at(state, job, folder)
    names = sorted(path.name for path in folder.iterdir() if path.name != "lock")
    assert names
    copy = tmp_path / "copy"
    cases = [(name, damage) for name in names for damage in DAMAGES]
    for name, damage in cases if ALL else random.sample(cases, 6):
        shutil.copytree(folder, copy)
        data = DAMAGES[damage]((folder / name).read_bytes())
        (copy / name).unlink()
        if data is not None:
            (copy / name).write_bytes(data)
        try:
            assert answer(job(work=copy)) == expected, (name, damage)
        except la.LookalikeError:
            pass
        else:
            again = job(work=copy)  # of what was made again, too
            assert answer(again) == expected, (name, damage)
            assert {"read", "sign", "verify"} <= set(again.reused)
        shutil.rmtree(copy)


def test_an_undamaged_folder_is_gone_on_with(
    job: Callable[..., TextResult], tmp_path: Path
) -> None:
    expected = answer(job())
    reused = {}
    for state in STATES:
        folder_at(state, job, tmp_path / state)
        result = job(work=tmp_path / state)
        assert answer(result) == expected
        reused[state] = list(result.reused)
    assert reused["complete"] == ["read", "sign", "propose", "verify"]
    assert reused["signed"] == reused["half signed"] == ["read", "sign"]
    assert reused["read"] == ["read"] and reused["reading"] == []


def test_signatures_cut_to_nothing_are_not_filled_with_zeros(tmp_path: Path) -> None:
    """As the file system leaves a file that was written before power failed, and not synced."""
    source, work = tmp_path / "new.jsonl", tmp_path / "work"
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    expected = la.dedup(source)
    for step, share in (("sign", 1.0), ("propose", 0.0)):
        with pytest.raises(Stop):
            la.dedup(source, work=work, progress=until(step, share))
        (work / "signatures").write_bytes(b"")
        result = la.dedup(source, work=work)
        assert result.counts == expected.counts
        assert np.array_equal(result.keep, expected.keep)
        shutil.rmtree(work)


def test_files_are_synced_before_a_stamp_vouches_for_them(
    job: Callable[..., TextResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: set[int] = set()

    def fsync(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)

    monkeypatch.setattr(os, "fsync", fsync)
    replace = Path.replace

    def checked(self: Path, target: Any) -> Path:
        if Path(target).suffix == ".json":
            vouched = json.loads(self.read_text())["stamp"]["files"]
            stamps.append(Path(target).name)
            assert vouched
            for name in [*vouched, self.name]:
                assert (self.parent / name).stat().st_ino in synced, name
        return replace(self, target)

    stamps: list[str] = []
    monkeypatch.setattr(Path, "replace", checked)
    monkeypatch.setattr(sys.modules["lookalike.jobs.work_folder"], "_SECONDS", -1.0)
    job(work=tmp_path / "work")
    assert set(stamps) == {"read.json", "signing.json", "sign.json", "pairs.json"}
    assert stamps.count("signing.json") > 2
