"""Folders of images: who is like whom, who stays, and what is written."""

from __future__ import annotations

import csv
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.images.scenes import CHANGES, ROTATIONS, scene
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import lookalike as la
from lookalike.dedup.media import run_media_job
from lookalike.media import medium_of_files
from support.cases.numbers import Numbers


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six scenes, copies of some, and everything that a folder may have that is no image."""
    folder = tmp_path_factory.mktemp("media") / "photos"
    (folder / "more").mkdir(parents=True)
    for number in range(6):
        scene(number, 240).save(folder / f"{number}.png")
    CHANGES["twice the size"](scene(0, 240)).save(folder / "more" / "0 large.png")
    scene(1, 240).resize((200, 150)).save(folder / "more" / "1.jpg", quality=60)
    CHANGES["half the size"](scene(1, 240)).save(folder / "1 small.png")
    shutil.copy(folder / "2.png", folder / "more" / "2 again.png")
    ROTATIONS["rotated by 90°"](scene(3, 240)).save(folder / "3 turned.png")
    Image.new("RGB", (90, 60), "white").save(folder / "white.png")
    Image.new("RGB", (60, 90), "white").save(folder / "white too.png")
    shutil.copy(folder / "white.png", folder / "more" / "white again.png")
    (folder / "broken.png").write_bytes((folder / "0.png").read_bytes()[:3000])
    shutil.copy(folder / "broken.png", folder / "more" / "broken again.png")
    (folder / "empty.jpg").write_bytes(b"")
    (folder / "page.jpg").write_text("<html>not found</html>")
    (folder / "notes.txt").write_text("holidays")
    shutil.copy(folder / "5.png", folder / "5 called.txt")
    os.mkfifo(folder / "pipe.jpg")
    (folder / "link.png").symlink_to("0.png")
    (folder / "more" / "round").symlink_to(folder)
    (folder / "nowhere.png").symlink_to("nowhere")
    return folder


def groups(result: la.results.MediaResult) -> set[frozenset[str]]:
    return {frozenset(result.names[row] for row in group) for group in result.groups()}


def test_copies_are_found_and_the_largest_stays(photos: Path) -> None:
    result = la.dedup(photos)
    assert groups(result) == {
        frozenset({"0.png", "more/0 large.png"}),
        frozenset({"1.png", "1 small.png", "more/1.jpg"}),
        frozenset({"2.png", "more/2 again.png"}),
        frozenset({"5.png", "5 called.txt"}),
        frozenset({"white.png", "more/white again.png"}),
    }
    kept = {path.relative_to(photos).as_posix() for path in result.kept()}
    assert kept == {
        *("more/0 large.png", "1.png", "2.png", "3.png", "3 turned.png", "4.png"),
        *("5 called.txt", "more/white again.png", "white too.png"),
    }
    assert set(result.kept()) | set(result.dropped()) == set(result.files)
    assert result.kind == "images"
    counts = result.counts
    assert (counts.documents, counts.kept, counts.groups) == (15, 9, 5)
    assert (counts.exact_duplicates, counts.near_duplicates) == (3, 3)
    assert (counts.other_files, counts.left_out) == (1, 8)
    assert counts.bytes_saved == sum(path.stat().st_size for path in result.dropped())
    for row in np.flatnonzero(~result.keep).tolist():
        assert result.keep[result.duplicate_of[row]] and 0 <= result.distance[row] <= 56
        assert 0.8 < result.similarity[row] <= 1


def test_what_is_left_out_is_named(photos: Path) -> None:
    reasons = {problem.path.name: problem.reason for problem in la.dedup(photos).problems}
    assert set(reasons) == {
        *("broken.png", "broken again.png", "empty.jpg", "page.jpg", "pipe.jpg", "link.png"),
        *("round", "nowhere.png"),
    }
    assert "truncated" in reasons["broken.png"] and reasons["empty.jpg"] == "is empty"
    assert reasons["broken again.png"] == reasons["broken.png"]
    assert reasons["pipe.jpg"] == "is not a plain file"
    assert "link" in reasons["link.png"] and "link" in reasons["round"]
    told = la.dedup(photos).to_dict()
    json.dumps(told)
    assert len(told["left_out"]) == 8 and told["settings"]["radius"] == 56


def test_turned_copies_if_wanted(photos: Path) -> None:
    found = groups(la.dedup(photos, rotated=True))
    assert found - groups(la.dedup(photos)) == {frozenset({"3.png", "3 turned.png"})}


def test_the_same_for_any_number_of_threads_and_any_hash(photos: Path) -> None:
    one = la.dedup(photos, kind="images", threads=1)
    many = la.dedup(photos, kind="images", threads=5)
    assert np.array_equal(one.duplicate_of, many.duplicate_of)
    assert one.to_dict()["counts"] == many.to_dict()["counts"]
    for bits in (64, 256):
        for hash in ("dct", "gradient"):
            assert groups(la.dedup(photos, bits=bits, hash=hash)) == groups(one)
    nothing = la.dedup(photos, radius=0)
    assert frozenset({"2.png", "more/2 again.png"}) in groups(nothing)
    everything = la.dedup(photos, radius=256)
    assert groups(everything) == groups(one)  # hashes propose, gray values decide


def test_lists_and_copies(photos: Path, tmp_path: Path) -> None:
    result = la.dedup(photos)
    assert result.write(tmp_path / "kept") == 9
    copied = {path for path in (tmp_path / "kept").rglob("*") if path.is_file()}
    assert {path.relative_to(tmp_path / "kept") for path in copied} == {
        path.relative_to(photos) for path in result.kept()
    }
    for path in copied:
        assert path.read_bytes() == (photos / path.relative_to(tmp_path / "kept")).read_bytes()
    assert result.write(tmp_path / "kept.txt") == 9
    listed = (tmp_path / "kept.txt").read_text().splitlines()
    assert sorted(listed) == sorted(map(str, result.kept()))
    assert result.write_dropped(tmp_path / "dropped.csv") == 6
    with open(tmp_path / "dropped.csv") as file:
        rows = list(csv.DictReader(file))
    assert {row["path"] for row in rows} == set(map(str, result.dropped()))
    small = next(row for row in rows if "1 small" in row["path"])
    assert small["duplicate_of"] == str(photos / "1.png") and small["width"] == "120"
    assert small["kept"] == "false" and int(small["distance"]) <= 56
    assert result.write_annotated(tmp_path / "all.jsonl") == 15
    every = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    assert sum(row["kept"] for row in every) == 9
    alone = next(row for row in every if row["path"].endswith("4.png"))
    assert alone["group_id"] is alone["duplicate_of"] is alone["similarity"] is None
    assert result.write_pairs(tmp_path / "pairs.parquet") == 7
    for wrong in ("kept.png", "kept.zip", "list.lookalike"):
        with pytest.raises(la.errors.ArgumentError, match="is not known from this name"):
            result.write(tmp_path / wrong)
    with pytest.raises(la.errors.FileError, match="exists already"):
        result.write(tmp_path / "kept")
    # Nothing was touched.
    assert la.dedup(photos).counts == result.counts


def test_names_that_could_mislead(tmp_path: Path) -> None:
    """A line break in a name must not put another name on the list of what could go."""
    (tmp_path / "photos").mkdir()
    scene(0, 200).save(tmp_path / "photos" / "a.png")
    odd = tmp_path / "photos" / "b\nprecious.png"
    scene(0, 200).resize((100, 75)).save(odd)
    latin = os.fsdecode(os.fsencode(tmp_path / "photos") + b"/\xff.png")
    scene(0, 200).resize((150, 110)).save(latin)
    result = la.dedup(tmp_path / "photos")
    assert result.counts.kept == 1
    with pytest.raises(la.errors.DocumentError, match="line break"):
        result.write_dropped(tmp_path / "dropped.txt")
    assert not (tmp_path / "dropped.txt").exists()
    assert result.write_dropped(tmp_path / "dropped.jsonl") == 2
    result.report(tmp_path / "report.html")
    odd.unlink()
    result = la.dedup(tmp_path / "photos")
    result.write_dropped(tmp_path / "dropped.txt")
    assert (tmp_path / "dropped.txt").read_bytes() == os.fsencode(latin) + b"\n"
    # Nor must bytes that are no text become the name of another file.
    assert result.write_dropped(tmp_path / "once.csv") == 1
    (tmp_path / "photos" / "\ufffd.png").write_text("precious")
    with pytest.raises(la.errors.DocumentError, match="which is another file"):
        result.write_dropped(tmp_path / "twice.csv")
    assert not (tmp_path / "twice.csv").exists()


def test_no_file_is_a_duplicate_of_itself(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever deletes what could go would have lost it."""
    (tmp_path / "link").symlink_to(photos)
    (tmp_path / "0.png").symlink_to(photos / "0.png")
    monkeypatch.chdir(photos)
    once = la.dedup(".", kind="images")
    ways = [".", photos, tmp_path / "link", photos / "more" / "..", "more", "0.png", "./0.png"]
    again = la.dedup([*ways, tmp_path / "0.png"], kind="images")
    assert again.files == once.files and again.counts == once.counts


def test_lists_of_files_and_empty_folders(photos: Path, tmp_path: Path) -> None:
    some = [photos / "1.png", str(photos / "1 small.png"), photos / "1.png", photos / "notes.txt"]
    result = la.dedup(some, kind="images")
    assert result.counts.documents == 2 and result.counts.kept == 1
    assert [problem.path.name for problem in result.problems] == ["notes.txt"]
    (tmp_path / "empty").mkdir()
    result = la.dedup(tmp_path / "empty", kind="images")
    assert result.counts.documents == 0 and result.kept() == []
    assert result.write_annotated(tmp_path / "all.csv") == 0
    assert "images" in result.summary()
    result.report(tmp_path / "report.html")


def test_a_folder_is_what_most_of_its_files_are(photos: Path, tmp_path: Path) -> None:
    assert medium_of_files([photos]) == "images"
    for name in ("a.txt", "b.png", "c.jpg"):
        (tmp_path / name).write_text("words that are no picture")
    shutil.copy(photos / "0.png", tmp_path / "d.txt")
    shutil.copy(photos / "1.png", tmp_path / "e")
    assert medium_of_files([tmp_path]) is None
    shutil.copy(photos / "2.png", tmp_path / "f")
    assert medium_of_files([tmp_path]) is None  # half is not most
    shutil.copy(photos / "3.png", tmp_path / "g")
    assert medium_of_files([tmp_path]) == "images"
    assert medium_of_files([tmp_path / "d.txt"]) == "images"
    assert la.dedup(tmp_path / "a.txt").kind == "text"
    assert la.dedup(tmp_path / "f").kind == la.dedup([tmp_path / "f"]).kind == "images"
    assert la.dedup(tmp_path, kind="text").kind == "text"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kind": "sounds"}, "kind is 'sounds'; expected one of auto, text, vectors, images, rec"),
        ({"threshold": 0.9}, "threshold is 0.9; expected one of: strict, normal, loose"),
        ({"keep": "longest"}, "keep is 'longest', which does nothing for images; leave it out"),
        ({"signer": la.AudioHash()}, r"signer does nothing for images.*it goes with recordings"),
        ({"bits": 100}, "bits is 100; expected 64 or 256"),
        ({"radius": 257}, "radius is 257"),
        ({"hash": "wavelet"}, "wavelet"),
        ({"rotated": 3}, "rotated"),
        ({"threads": 0}, "threads"),
        ({"progress": 3}, "progress"),
    ],
)
def test_bad_settings(photos: Path, given: dict[str, Any], message: str) -> None:
    with pytest.raises(la.errors.ArgumentError, match=message):
        la.dedup(photos, **given)
    with pytest.raises(la.errors.FileError, match="no such file or folder"):
        la.dedup(photos / "elsewhere")


@given(st.lists(st.integers(5, 40), max_size=30))
@settings(max_examples=60, deadline=None)
def test_what_any_medium_can_rely_on(
    tmp_path_factory: pytest.TempPathFactory, values: list[int]
) -> None:
    """Whoever goes is equal to one that stays or a pair with it; of those that stay no two are."""
    folder = tmp_path_factory.mktemp("numbers")
    for place, value in enumerate(values):
        (folder / f"{place:02}.number").write_text(str(value))
    result = run_media_job([folder], Numbers(), threads=2)
    given_values = {int(file.stem): values[int(file.stem)] for file in result.files}
    assert set(given_values) == {at for at, value in enumerate(values) if value != 13}
    assert len(result.problems) == values.count(13)
    found = list(given_values.values())
    for row, other in enumerate(result.duplicate_of.tolist()):
        if other < 0:
            assert np.isnan(result.similarity[row]) and result.distance[row] == -1
            continue
        apart = abs(found[row] - found[other])
        assert result.keep[other] and apart <= 1
        assert result.distance[row] == apart and result.similarity[row] == 1 - apart / 2
        assert (-(found[other] % 10), -len(str(found[other])), other) < (
            -(found[row] % 10), -len(str(found[row])), row,
        )  # fmt: skip
        assert result.group_of[row] == result.group_of[other]
    stay = [value for value, keeps in zip(found, result.keep, strict=True) if keeps]
    assert all(abs(a - b) > 1 for at, a in enumerate(stay) for b in stay[at + 1 :])
    firsts = [found.index(value) for value in found]
    assert result.first_equal.tolist() == firsts
    counts = result.counts
    assert counts.kept + counts.exact_duplicates + counts.near_duplicates >= counts.documents
    assert counts.kept == len(stay)
