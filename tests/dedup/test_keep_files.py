"""Which file of a group is kept, by every rule, compared with the rule in plain Python."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.images.scenes import CHANGES, scene
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.cli import main
from lookalike.dedup.media import run_media_job
from support.cases.numbers import Numbers

File = tuple[int, int, int, str]
"""Its value, spaces after that, the second of its last change, and the name of its folder."""

FIRST: dict[str, Callable[[int, File], Any]] = {
    "best": lambda at, file: 0,
    "first": lambda at, file: at,
    "last": lambda at, file: -at,
    "largest": lambda at, file: -_bytes(file),
    "smallest": lambda at, file: _bytes(file),
    "oldest": lambda at, file: file[2],
    "newest": lambda at, file: -file[2],
    "path:b/*": lambda at, file: file[3] != "b",
    "path:*/b/*": lambda at, file: file[3] != "b",
    "max:value": lambda at, file: -file[0],
    "min:value": lambda at, file: file[0],
    "min:bytes": lambda at, file: _bytes(file),
}


def _bytes(file: File) -> int:
    return len(str(file[0])) + file[1]


FILES = st.lists(
    st.tuples(
        st.integers(5, 30), st.integers(0, 3), st.integers(0, 4), st.sampled_from(["a", "b"])
    ),
    max_size=14,
)


def write(folder: Path, files: list[File]) -> None:
    for place, (value, spaces, second, inside) in enumerate(files):
        path = folder / inside / f"{place:02}.number"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}{' ' * spaces}")
        os.utime(path, (second, second))
    folder.mkdir(exist_ok=True)


@given(FILES, st.sampled_from([*FIRST]))
@settings(max_examples=150, deadline=None)
def test_rules(tmp_path_factory: pytest.TempPathFactory, files: list[File], rule: str) -> None:
    """By the rule, then the best (the last digit), then the largest, then the first by path."""
    folder = tmp_path_factory.mktemp("rules") / "files"
    files = [file for file in files if file[0] != 13]
    write(folder, files)
    result = run_media_job([folder], Numbers(), keep=rule, threads=1)
    read = [files[int(path.stem)] for path in result.files]
    order = sorted(
        range(len(read)),
        key=lambda at: (FIRST[rule](at, read[at]), -(read[at][0] % 10), -_bytes(read[at]), at),
    )
    kept: list[int] = []
    for at in order:
        if all(abs(read[at][0] - read[other][0]) > 1 for other in kept):
            kept.append(at)
    assert np.flatnonzero(result.keep).tolist() == sorted(kept)
    assert result.to_dict()["settings"]["keep"] == rule


@given(FILES)
@settings(max_examples=60, deadline=None)
def test_none_and_a_function(tmp_path_factory: pytest.TempPathFactory, files: list[File]) -> None:
    folder = tmp_path_factory.mktemp("rules") / "files"
    files = [file for file in files if file[0] != 13]
    write(folder, files)
    none = run_media_job([folder], Numbers(), keep="none", threads=1)
    read = [files[int(path.stem)] for path in none.files]
    for at, file in enumerate(read):
        near = [abs(file[0] - other[0]) for where, other in enumerate(read) if where != at]
        assert none.keep[at] == (min(near, default=9) > 1)
        assert none.distance[at] == (-1 if none.keep[at] else abs(
            file[0] - read[none.duplicate_of[at]][0]
        ))  # fmt: skip

    def oldest(rows: list[dict[str, Any]]) -> dict[str, Any]:
        assert {"path", "bytes", "modified", "value"} == set(rows[0])
        return min(rows, key=lambda row: (row["modified"], row["path"]))

    chosen = run_media_job([folder], Numbers(), keep=oldest, threads=1)
    named = run_media_job([folder], Numbers(), keep="oldest", threads=1)
    if len({file[2] for file in files}) == len(files):
        assert np.array_equal(chosen.keep, named.keep)
    kept = [file[0] for file, keeps in zip(read, chosen.keep, strict=True) if keeps]
    assert all(abs(a - b) > 1 for at, a in enumerate(kept) for b in kept[at + 1 :])
    assert "function" in chosen.to_dict()["settings"]["keep"]


def test_rules_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "photos" / "best").mkdir(parents=True)
    scene(0, 240).save(tmp_path / "photos" / "a.png")
    CHANGES["half the size"](scene(0, 240)).save(tmp_path / "photos" / "best" / "b.png")
    CHANGES["twice the size"](scene(0, 240)).save(tmp_path / "photos" / "c.png")
    for rule, expected in (
        ("best", "c.png"),
        ("first", "a.png"),
        ("smallest", "b.png"),
        ("path:best/*", "b.png"),
        ("min:width", "b.png"),
    ):
        kept = tmp_path / "kept.txt"
        words = ["dedup", str(tmp_path / "photos"), "--keep", rule, "-o", str(kept), "--quiet"]
        assert main(words) == 0
        assert [Path(line).name for line in kept.read_text().splitlines()] == [expected]
    capsys.readouterr()
    for rule in ("longest", "max:colour", "path:", "biggest"):
        assert main(["dedup", str(tmp_path / "photos"), "--keep", rule]) == 2
        told = capsys.readouterr().err
        assert ("does nothing for images" if rule == "longest" else "expected best, first") in told
    (tmp_path / "a.jsonl").write_text('{"text": "some words"}\n')
    assert main(["dedup", str(tmp_path / "a.jsonl"), "--keep", "oldest"]) == 2
    assert "does nothing for text" in capsys.readouterr().err


@pytest.mark.parametrize("end", ["\n", "\0"])
def test_a_list_of_files_on_standard_input(
    end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a.png", "b [1].png", "c*.png"):
        scene(0, 240).save(tmp_path / name)
    scene(1, 240).save(tmp_path / "odd.png")
    listed = end.join(str(tmp_path / name) for name in ("b [1].png", "c*.png")) + end
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(listed.encode())))
    assert main(["dedup", "-", str(tmp_path / "odd.png"), "--kind", "images", "--json"]) == 0
    counts = json.loads(capsys.readouterr().out)["counts"]
    assert (counts["documents"], counts["kept"], counts["exact_duplicates"]) == (3, 2, 1)


def test_vectors_by_a_function() -> None:
    rows = [{"v": [1.0, 0.0], "n": 1}, {"v": [1.0, 0.1], "n": 5}, {"v": [0.0, 1.0], "n": 3}]
    result = la.dedup(rows, vectors="v", keep=lambda group: max(group, key=lambda row: row["n"]))
    assert result.keep.tolist() == [False, True, True]
