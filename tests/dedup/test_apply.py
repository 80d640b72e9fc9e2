"""Dropped files are moved or linked when asked, and everything is as it was after undoing it."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from benchmarks.images.scenes import CHANGES, scene

import lookalike as la
from lookalike.cli import main


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an equal copy, a smaller one, and a folder of old images beside it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    for name in ("photos/trip", "old", "home"):
        (tmp_path / name).mkdir(parents=True)
    for number in range(3):
        scene(number, 200).save(tmp_path / "photos" / f"{number}.png")
    shutil.copy(tmp_path / "photos/0.png", tmp_path / "photos/trip/0 again.png")
    CHANGES["half the size"](scene(1, 200)).save(tmp_path / "photos/trip/1 small.png")
    shutil.copy(tmp_path / "photos/2.png", tmp_path / "old/seen.png")
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".journal")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.mark.parametrize(
    ("action", "changed"), [("move", 2), ("trash", 2), ("hardlink", 1), ("symlink", 1)]
)
def test_apply_and_undo(
    action: str, changed: int, photos: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(photos)
    words = ["dedup", "photos", "--apply", action, *(["copies"] if action == "move" else [])]
    assert main([*words, "--dry-run"]) == 0
    told = capsys.readouterr().out
    assert "would be" in told and "0 again.png -> " in told and contents(photos) == before
    assert not list(photos.glob("*.journal"))
    assert main([*words, "--json"]) == 0
    applied = json.loads(capsys.readouterr().out)["applied"]
    assert (len(applied["done"]), len(applied["left_alone"])) == (changed, 2 - changed)
    if action == "move":
        assert set(contents(photos / "copies")) == {"trip/0 again.png", "trip/1 small.png"}
    (journal,) = photos.glob("*.journal")
    assert journal.name == applied["journal"]
    assert main(["undo", str(journal)]) == 0
    assert f"{changed} file{'s' if changed > 1 else ''} restored" in capsys.readouterr().out
    assert contents(photos) == before and not (photos / "copies").exists()
    assert main(["undo", str(journal), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["done"] == []


def test_old_files_stay(photos: Path) -> None:
    result = la.dedup("photos", against="old")
    found = result.apply("move", "copies", journal="j")
    moved = {Path(one.path).name for one in found.done}
    assert moved == {"0 again.png", "1 small.png", "2.png"} and (photos / "old/seen.png").exists()
    assert len(la.undo("j").done) == 3
    shutil.rmtree("old")  # then what was dropped because of it must stay
    again = result.apply("move", "copies", journal="k")
    assert [(one.path.name, one.reason) for one in again.left_alone] == [
        ("2.png", "the kept file is gone")
    ]


def test_files_without_a_common_folder_keep_their_paths(photos: Path) -> None:
    files = sorted(photos.glob("photos/**/*.png"))
    found = la.dedup(files, kind="images").apply("move", "copies", journal="j")
    for one in found.done:
        assert Path(one.target) == photos / "copies" / Path(one.path).relative_to("/")
    assert not la.undo("j").left_alone


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--apply", "move"], "--apply move needs a folder: --apply move DIR"),
        (["--apply", "move", "--json"], "--apply move needs a folder: --apply move DIR"),
        (["--apply"], "--apply is ''; expected move DIR, hardlink, symlink, trash"),
        (["--apply", "trash", "x"], "x: there is no such file or folder"),
        (["--apply", "shred"], "--apply is 'shred'; expected move DIR, hardlink, symlink, trash"),
        (["--apply", "move", "photos/copies"], "is in the input folder photos"),
        (["--apply", "move", "taken"], "needs a folder, and taken is a file"),
        (["--apply", "trash", "--keep", "none"], "with --keep none, no similar file is kept"),
        (["--apply", "trash", "--journal", "taken"], "taken exists already"),
        (["--journal", "j"], "needs --apply"),
    ],
)
def test_what_is_refused_before_anything_is_read(
    words: list[str], message: str, photos: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (photos / "taken").write_text("")
    before = contents(photos)
    with suppress(SystemExit):  # of the parser
        assert main(["dedup", "photos", *words]) in (1, 2)
    assert message in capsys.readouterr().err
    assert contents(photos) == before


@pytest.mark.parametrize(
    "words",
    [
        ["--apply", "trash", "photos"],
        ["--apply", "trash", "photos", "--json"],
        ["--json", "--apply=trash", "photos"],
        ["photos", "--apply", "trash"],
        ["photos/trip", "--apply", "trash", "photos"],
        ["--apply", "move", "copies", "photos"],
        ["--apply=move", "copies", "photos"],
        ["photos", "--apply=move", "copies"],
    ],
)
def test_inputs_may_follow_the_action(
    words: list[str], photos: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dedup", *words, "--json", "--dry-run", "--kind", "images"]) == 0
    applied = json.loads(capsys.readouterr().out)["applied"]
    assert len(applied["done"]) == 2 and applied["action"] in " ".join(words)


def test_arguments_in_python(photos: Path) -> None:
    result = la.dedup("photos")
    wrong: list[tuple[tuple[Any, ...], str]] = [
        (("shred",), "expected move, hardlink"),
        (("move",), "needs a folder"),
        (("trash", "x"), "needs a folder for `move`"),
        (("move", "photos/x"), "is in the input folder"),
        (("move", "photos"), "has files that were compared"),
        (("move", "."), "has files that were compared"),
    ]
    for given, message in wrong:
        with pytest.raises(la.errors.ArgumentError, match=message):
            result.apply(*given)
    with pytest.raises(la.errors.ArgumentError, match="needs a kept file"):
        la.dedup("photos", keep="none").apply("trash")
    with pytest.raises(la.errors.FileError, match="cannot be written"):
        result.apply("trash", journal="nowhere/j")
    assert len(contents(photos / "photos")) == 5


def test_undo_says_what_it_could_not_restore(
    photos: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dedup", "photos", "--apply", "move", "copies", "--journal", "j"]) == 0
    (photos / "photos/trip/0 again.png").write_text("another")
    capsys.readouterr()
    assert main(["undo", "j"]) == 1
    told = capsys.readouterr()
    assert "1 file restored" in told.out and "0 again.png: is another file now" in told.err
    (photos / "notes.txt").write_text("some text")
    assert main(["undo", "notes.txt"]) == 1 and main(["undo", "nowhere"]) == 1
