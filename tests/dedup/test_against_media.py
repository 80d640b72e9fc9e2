"""Old images, recordings and vectors: what is like one of them is dropped, and they never are."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from benchmarks.images.scenes import CHANGES, scene
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.cli import main
from lookalike.dedup.media import run_media_job
from support.cases.numbers import Numbers
from support.cases.report_pages import page_of
from support.oracles.vectors import cosines

VALUES = st.lists(st.integers(5, 40), max_size=14)


@given(VALUES, VALUES, st.booleans())
@settings(max_examples=80, deadline=None)
def test_files_against_old_files(
    tmp_path_factory: pytest.TempPathFactory, old: list[int], new: list[int], inside: bool
) -> None:
    """Compared with brute force. Old files may be in the folder that is looked at."""
    top = tmp_path_factory.mktemp("numbers")
    before = top / "new" / "old" if inside else top / "old"
    for folder, values in ((top / "new", new), (before, old)):
        folder.mkdir(exist_ok=True)
        for place, value in enumerate(values):
            (folder / f"{place:02}.number").write_text(str(value))
    result = run_media_job([top / "new"], Numbers(), against=before, threads=2)
    assert [file.parent for file in result.files] == [top / "new"] * len(result.files)
    news = [int(file.read_text()) for file in result.files]
    olds = [int(file.read_text()) for file in result.old_files]
    assert sorted(news) == sorted(one for one in new if one != 13)
    assert sorted(olds) == sorted(one for one in old if one != 13)
    for row, value in enumerate(news):
        near = [abs(value - other) for other in olds if abs(value - other) <= 1]
        assert (result.matched_old[row] >= 0) == bool(near)
        if near:
            other = olds[result.matched_old[row]]
            assert abs(value - other) == min(near) == result.distance[row]
            assert result.similarity[row] == 1 - min(near) / 2
            assert not result.keep[row] and result.duplicate_of[row] == -1
        elif not result.keep[row]:
            other = int(result.duplicate_of[row])
            assert result.keep[other] and abs(value - news[other]) == result.distance[row] <= 1
    kept = [value for value, keeps in zip(news, result.keep, strict=True) if keeps]
    assert all(abs(a - b) > 1 for at, a in enumerate(kept) for b in kept[at + 1 :])
    counts = result.counts
    assert counts.in_old == int((result.matched_old >= 0).sum())
    assert counts.documents == len(news) and counts.left_out == (old + new).count(13)
    assert len(result.pairs) + len(result.old_pairs) == counts.verified_pairs
    for left, right in zip(result.old_pairs.left, result.old_pairs.right, strict=True):
        assert abs(olds[left] - news[right]) <= 1


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("against")
    for name in ("old", "new"):
        (top / name).mkdir()
    for number in range(3):
        scene(number, 240).save(top / "old" / f"{number}.png")
    shutil.copy(top / "old" / "0.png", top / "new" / "equal.png")
    CHANGES["twice the size"](scene(1, 240)).save(top / "new" / "larger.png")
    scene(5, 240).save(top / "new" / "unseen.png")
    CHANGES["half the size"](scene(5, 240)).save(top / "new" / "unseen small.png")
    (top / "old" / "broken.png").write_bytes((top / "old" / "0.png").read_bytes()[:2000])
    return top


def test_images_against_a_folder(
    folders: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A larger copy of an old image is dropped, too; all outputs name the old file."""
    new, old = str(folders / "new"), str(folders / "old")
    outputs = ["-o", "all.jsonl", "--annotate", "--pairs", "pairs.jsonl", "--json"]
    paths = [str(tmp_path / one) if "." in one else one for one in outputs]
    assert main(["dedup", new, "--against", old, *paths]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["counts"]["in_old"], said["counts"]["kept"]) == (2, 1)
    assert [Path(one["path"]).name for one in said["left_out"]] == ["broken.png"]
    every = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    matched = {Path(row["path"]).name: row["duplicate_of"] for row in every}
    assert matched == {
        "equal.png": f"{old}/0.png",
        "larger.png": f"{old}/1.png",
        "unseen.png": None,
        "unseen small.png": f"{new}/unseen.png",
    }
    pairs = [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text().splitlines()]
    assert sorted((Path(one["left"]).name, one["old"]) for one in pairs) == [
        ("0.png", True), ("1.png", True), ("unseen small.png", False),
    ]  # fmt: skip
    result = la.dedup(new, against=[old])
    assert result.old_id(int(result.matched_old[0])) == f"{old}/0.png"
    assert "dropped because of an image there" in result.summary()
    page = page_of(result, tmp_path)
    (table,) = page.part("old").all("table")
    told = {row.all("td")[0].text: row.all("td")[2].text for row in table.all("tr")[1:]}
    assert told["equal.png"] == "the same file" and "of 256 bits" in told["larger.png"]
    assert main(["dedup", new, "--against", str(folders / "nowhere")]) == 1
    assert "no such file or folder" in capsys.readouterr().err
    inside = ["--against", old, "--report", f"{old}/report.html"]
    assert main(["dedup", new, *inside]) == 1
    assert "report.html" in capsys.readouterr().err and not (folders / "old/report.html").exists()


def test_recordings_against_a_folder(tmp_path: Path) -> None:
    soundfile = pytest.importorskip("soundfile")
    random = np.random.default_rng(4)
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    one, two = (random.normal(0, 0.1, 16000 * 6).astype(np.float32) for _ in range(2))
    soundfile.write(tmp_path / "old" / "one.ogg", one, 16000)
    soundfile.write(tmp_path / "new" / "one.flac", one, 16000)
    soundfile.write(tmp_path / "new" / "two.flac", two, 16000)
    result = la.dedup(tmp_path / "new", against=tmp_path / "old")
    assert result.kind == "recordings"
    assert result.matched_old.tolist() == [0, -1] and result.keep.tolist() == [False, True]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    counts=st.tuples(st.integers(0, 20), st.integers(0, 20)),
    keep=st.sampled_from(["first", "last", "max:score", "none"]),
    grouping=st.sampled_from(["star", "components"]),
    exact=st.booleans(),
)
def test_vectors_against_old_vectors(
    seed: int, counts: tuple[int, int], keep: str, grouping: str, exact: bool
) -> None:
    random = np.random.default_rng(seed)
    centers = random.normal(size=(4, 5))
    old, new = (
        (centers[random.integers(0, 4, count)] + random.choice([0, 0.2], (count, 1))
         * random.normal(size=(count, 5))).astype("f4") * random.choice([0, 1, 1, 1], (count, 1))
        for count in counts
    )  # fmt: skip
    table = pa.table({"v": list(new), "score": random.integers(0, 3, counts[1])})
    options: dict[str, Any] = {"vectors": "v", "threshold": 0.9, "exact": exact}
    before = pa.table({"v": list(old), "name": [f"o{at}" for at in range(counts[0])]})
    result = la.dedup(
        table, kind="vectors", against=before, keep=keep, grouping=grouping, **options
    )
    truth = cosines(old, new)
    truth[~old.any(axis=1)] = truth[:, ~new.any(axis=1)] = -1
    for row in range(counts[1]):
        matched = int(result.matched_old[row])
        best = float(truth[:, row].max(initial=-1))
        if exact:
            assert (matched >= 0) == (best >= 0.9)
        if matched >= 0:
            assert result.similarity[row] == pytest.approx(truth[matched, row], abs=1e-6)
            assert not result.keep[row] and result.duplicate_of[row] == -1
            assert result.similarity[row] == pytest.approx(best, abs=1e-6)
    pairs = zip(result.old_pairs.left.tolist(), result.old_pairs.right.tolist(), strict=True)
    assert all(truth[pair] >= 0.9 - 1e-6 for pair in pairs)
    assert result.counts.in_old == int((result.matched_old >= 0).sum())
    assert result.counts.documents == counts[1]


def test_forms_of_old_vectors(tmp_path: Path) -> None:
    """An array, a corpus with ids, an index, and the file of one."""
    rows = np.eye(4, dtype="f4")
    index = la.VectorIndex(rows[:2], [7, 9])
    index.save(tmp_path / "seen.vectors")
    corpus = [{"id": "x", "vector": [1.0, 0, 0, 0]}, {"id": "y", "vector": [0, 1.0, 0, 0]}]
    for old, ids in (
        (rows[:2], [0, 1]),
        (corpus, ["x", "y"]),
        (index, ["7", "9"]),
        (tmp_path / "seen.vectors", ["7", "9"]),
    ):
        result = la.dedup(rows[1:], against=old, kind="vectors")
        assert result.matched_old.tolist() == [1, -1, -1]
        assert [result.old_id(row) for row in range(2)] == ids
        assert result.annotated()["duplicate_of"].to_pylist() == [str(ids[1]), None, None]
        assert result.write_pairs(tmp_path / "pairs.csv") == 1
    page = page_of(result, tmp_path)
    assert "9" in page.part("old").text
    with pytest.raises(la.errors.ArgumentError, match="against has vectors of 3 dim.*has 4; exp"):
        la.dedup(rows, against=np.ones((2, 3)))
    la.ScanIndex(np.zeros((3, 8), np.uint8)).save(tmp_path / "other.lookalike")
    with pytest.raises(la.errors.ArgumentError, match="is a file with a ScanIndex; expected one"):
        la.dedup(rows, against=tmp_path / "other.lookalike")
    assert la.dedup(rows, against=rows[:0]).keep.all()
