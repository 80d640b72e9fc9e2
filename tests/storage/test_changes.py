"""Files that are moved or linked: only those that were looked at, and all of it can be undone."""

from __future__ import annotations

import json
import os
import signal
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import lookalike as la
from lookalike.storage import changes
from lookalike.storage.changes import ACTIONS, Duplicate
from lookalike.storage.files import FileState

Snapshot = dict[str, tuple[Any, ...]]
OTHER_SYSTEM = Path("/dev/shm")


def snapshot(*folders: Path) -> Snapshot:
    """Return all files and folders, with what is in them, their modes and times."""
    found: Snapshot = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            status = path.lstat()
            if stat.S_ISLNK(status.st_mode):
                found[str(path)] = ("link", str(path.readlink()))
            elif stat.S_ISDIR(status.st_mode):
                found[str(path)] = ("folder",)
            else:
                mode = stat.S_IMODE(status.st_mode)
                found[str(path)] = ("file", path.read_bytes(), mode, status.st_mtime_ns)
    return found


def duplicates(folder: Path) -> list[Duplicate]:
    """Return all files but the first of each letter that their names begin with."""
    found, first = list[Duplicate](), dict[str, Path]()
    for path in sorted(one for one in folder.rglob("*") if one.is_file() and not one.is_symlink()):
        kept = first.setdefault(path.name[0], path)
        if kept != path:
            states = (FileState.of(one.lstat()) for one in (path, kept))
            own, other = states
            found.append(Duplicate(path, own, kept, other, path.relative_to(folder)))
    return found


def fill(folder: Path) -> None:
    """Write two groups of equal files and one of files that differ."""
    for name, text in {
        "a1": "one", "in/a2": "one", "in/deep/a3": "one", "b1": "two", "in/b2": "two",
        "c1": "three", "in/c1": "four",
    }.items():  # fmt: skip
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o640)
        os.utime(path, ns=(1_234_567_890, 1_000_000_007 * (1 + len(name))))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of files, and a trash of its own."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "files").mkdir()
    fill(tmp_path / "files")
    return tmp_path


def done(folder: Path, action: str, target: Path | None, journal: Path) -> changes.Changes:
    planned, left = changes.plan(duplicates(folder), action, target)
    made, more = changes.apply(planned, journal)
    return changes.Changes(action, made, [*left, *more], journal)


def where(home: Path, action: str) -> Path | None:
    return home / "away" if action == "move" else None


@pytest.mark.parametrize("action", ACTIONS)
def test_what_each_action_does_and_that_it_can_be_undone(home: Path, action: str) -> None:
    files, before = home / "files", snapshot(home)
    found = done(files, action, where(home, action), home / "journal")
    changed = {Path(one.path).relative_to(files).as_posix() for one in found.done}
    linked = action in ("hardlink", "symlink")
    assert changed == {"in/a2", "in/deep/a3", "in/b2"} | (set() if linked else {"in/c1"})
    for one in found.done:
        if action == "hardlink":
            assert Path(one.path).samefile(one.kept) and not Path(one.path).is_symlink()
        elif action == "symlink":
            assert str(Path(one.path).readlink()) == one.kept
        else:
            assert not os.path.lexists(one.path)
            assert Path(one.target).read_bytes() == before[one.path][1]
    if linked:
        (alone,) = found.left_alone
        assert alone.path.name == "c1" and "not equal" in alone.reason
    undone = la.undo(home / "journal")
    assert len(undone.done) == len(found.done) and not undone.left_alone
    (home / "journal").unlink()
    assert snapshot(home) | before == snapshot(home)
    new = set(snapshot(home)) - set(before)
    assert all("Trash" in name for name in new), new  # its folders may stay
    assert not [name for name in new if snapshot(home)[name][0] == "file"]


def test_the_trash_says_where_a_file_was(home: Path) -> None:
    odd = home / "files" / "az 9%\nü"
    odd.write_text("one")
    found = done(home / "files", "trash", None, home / "journal")
    trash = home / "home" / "Trash"
    infos = {path.name: path.read_text() for path in (trash / "info").iterdir()}
    assert len(infos) == len(found.done) == len(list((trash / "files").iterdir()))
    text = infos["az 9%\nü.trashinfo"].splitlines()
    assert text[0] == "[Trash Info]" and text[1].endswith("/files/az%209%25%0A%C3%BC")
    assert text[2].startswith("DeletionDate=20") and "T" in text[2]
    assert stat.S_IMODE(trash.stat().st_mode) == 0o700
    assert la.undo(home / "journal").left_alone == []
    assert list((trash / "info").iterdir()) == [] and odd.exists()


@pytest.mark.parametrize("action", ACTIONS)
def test_what_changed_meanwhile_is_left_alone(home: Path, action: str) -> None:
    files = home / "files"
    found = duplicates(files)
    (files / "in/a2").write_text("ONE")  # after it was looked at
    (files / "b1").unlink()  # the kept file
    (files / "b1").symlink_to("a1")
    before = snapshot(files)
    planned, left = changes.plan(found, action, where(home, action))
    reasons = {one.path.relative_to(files).as_posix(): one.reason for one in left}
    assert reasons["in/a2"] == "has changed since it was looked at"
    assert reasons["in/b2"] == "the kept file has changed since it was looked at"
    (files / "in/deep/a3").write_text("changed after the plan")
    made, more = changes.apply(planned, home / "journal")
    assert {one.path.name for one in more} == {"a3"}
    assert all(Path(one.path).name == "c1" for one in made)
    la.undo(home / "journal")
    after = snapshot(files)
    assert {name: one for name, one in after.items() if "a3" not in name} == {
        name: one for name, one in before.items() if "a3" not in name
    }


@pytest.mark.parametrize("action", ["hardlink", "symlink"])
def test_a_kept_file_that_changes_after_linking(home: Path, action: str) -> None:
    done(home / "files", action, None, home / "journal")
    (home / "files" / "b1").write_text("edited")
    found = la.undo(home / "journal")
    assert [one.path.name for one in found.left_alone] == ["b2"]
    assert "no longer has the bytes" in found.left_alone[0].reason
    assert {Path(one.path).name for one in found.done} == {"a2", "a3"}
    assert not list((home / "files").rglob(".lookalike*"))


def test_names_that_are_taken(home: Path) -> None:
    """Nothing is overwritten: neither when files are moved, nor when they are moved back."""
    (home / "away" / "in").mkdir(parents=True)
    (home / "away" / "in" / "a2").write_text("precious")
    found = done(home / "files", "move", home / "away", home / "journal")
    assert (home / "away/in/a2").read_text() == "precious"
    assert (home / "away/in/a2 (2)").read_text() == "one" and not found.left_alone
    (home / "files/in/b2").write_text("new")
    undone = la.undo(home / "journal")
    assert [one.path.name for one in undone.left_alone] == ["b2"]
    assert (home / "files/in/b2").read_text() == "new"
    assert (home / "away/in/b2").read_text() == "two"
    (home / "files/in/b2").unlink()
    assert not la.undo(home / "journal").left_alone  # again, and now it can be done
    planned, _ = changes.plan(duplicates(home / "files"), "move", home / "away")
    taken = Path(planned[0].target)
    taken.parent.mkdir(parents=True, exist_ok=True)
    taken.write_text("came in between")
    _, left = changes.apply(planned, home / "again")
    assert [one.path for one in left] == [Path(planned[0].path)]
    assert taken.read_text() == "came in between" and Path(planned[0].path).exists()


def test_links_in_the_way_are_not_followed(home: Path) -> None:
    outside = home / "outside"
    outside.mkdir()
    planned, _ = changes.plan(duplicates(home / "files"), "move", home / "away")
    (home / "away").mkdir()
    (home / "away" / "in").symlink_to(outside)
    made, left = changes.apply(planned, home / "journal")
    assert not made and len(left) == 4 and not list(outside.iterdir())
    planned, _ = changes.plan(duplicates(home / "files"), "move", home / "else")
    (home / "files" / "in").rename(home / "elsewhere")
    (home / "files" / "in").symlink_to(outside)  # another folder in the place of the old one
    made, left = changes.apply(planned, home / "another")
    assert not made and len(left) == 4


def test_a_closed_folder(home: Path) -> None:
    files = home / "files"
    planned, _ = changes.plan(duplicates(files), "move", home / "away")
    child = os.fork()
    if not child:
        status = 1
        try:
            if os.getuid() == 0:
                for path in [home, *home.parents]:
                    if path.stat().st_mode & 0o005 != 0o005 and path != Path("/"):
                        path.chmod(0o755)
                for path in (home, files):
                    os.chown(path, 65534, 65534)
                (home / "away").mkdir()
                os.chown(home / "away", 65534, 65534)
                (files / "in").chmod(0o555)
                os.setuid(65534)
            else:
                (files / "in").chmod(0o555)
            made, left = changes.apply(planned, home / "journal")
            good = not made and all("Permission denied" in one.reason for one in left)
            status = 0 if good else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (files / "in" / "a2").exists()


CALLS = ("link", "unlink", "rename", "symlink", "mkdir", "rmdir", "open", "fsync", "utime")


def killed(work: Callable[[], object], number: int, *, after: bool) -> bool:
    """Run it in a process that dies at the so-manieth system call; return whether it did."""
    child = os.fork()
    if child:
        return os.WIFSIGNALED(os.waitpid(child, 0)[1])
    try:
        count = 0

        def dying(call: Callable[..., Any]) -> Callable[..., Any]:
            def wrapped(*given: Any, **more: Any) -> Any:
                nonlocal count
                count += 1
                if count == number and not after:
                    os.kill(os.getpid(), signal.SIGKILL)
                own = count
                try:
                    return call(*given, **more)
                finally:
                    if own == number:
                        os.kill(os.getpid(), signal.SIGKILL)

            return wrapped

        for name in CALLS:
            setattr(os, name, dying(getattr(os, name)))
        work()
    finally:
        os._exit(0)


@pytest.fixture(params=["same", "other"])
def away(request: pytest.FixtureRequest, home: Path) -> Iterator[Path]:
    """A folder on the same file system, and one on another."""
    if request.param == "same":
        yield home / "away"
        return
    if not OTHER_SYSTEM.is_dir() or OTHER_SYSTEM.stat().st_dev == home.stat().st_dev:
        pytest.skip("there is no other file system")
    with tempfile.TemporaryDirectory(dir=OTHER_SYSTEM) as folder:
        yield Path(folder, "away")


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("action", ACTIONS)
def test_killed_at_any_call_and_undone(home: Path, action: str, after: bool, away: Path) -> None:
    if action != "move" and away != home / "away":
        pytest.skip("it has no folder")
    files, journal = home / "files", home / "journal"
    before = snapshot(files)
    target = away if action == "move" else None
    number, reached = 1, True
    while reached:
        planned, _ = changes.plan(duplicates(files), action, target)
        reached = killed(lambda plan=planned: changes.apply(plan, journal), number, after=after)  # type: ignore[misc]
        if not journal.exists():
            assert snapshot(files) == before
        else:
            undone = la.undo(journal)
            assert not undone.left_alone, (number, undone.left_alone)
            journal.unlink()
        assert snapshot(files) == before, number
        assert not away.exists() or not list(away.rglob("*")), number
        for one in (home / "home").rglob("*"):
            assert one.is_dir(), (number, one)
        number += 1
    assert number > 15


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("action", ACTIONS)
def test_undoing_killed_at_any_call(home: Path, action: str, after: bool, away: Path) -> None:
    if action != "move" and away != home / "away":
        pytest.skip("it has no folder")
    files, journal = home / "files", home / "journal"
    before = snapshot(files)
    target = away if action == "move" else None
    number, reached = 1, True
    while reached:
        planned, _ = changes.plan(duplicates(files), action, target)
        changes.apply(planned, journal)
        reached = killed(lambda: la.undo(journal), number, after=after)
        assert not la.undo(journal).left_alone, number
        assert snapshot(files) == before, number
        assert not away.exists() or not list(away.rglob("*")), number
        journal.unlink()
        number += 1
    assert number > 8


class Folders(RuleBasedStateMachine):
    """A folder that is changed by its owner and by us, beside a model of what is in it.

    What the owner wrote is never lost: it is where it was, or where it was moved to, or equal to
    what a link leads to. After everything is undone, the folder is as the owner left it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.place = tempfile.TemporaryDirectory()
        self.top = Path(self.place.name)
        self.files = self.top / "files"
        self.model: dict[str, str] = {}
        self.journals: list[Path] = []
        self.count = 0

    @initialize()
    def begin(self) -> None:
        self.files.mkdir()

    @precondition(lambda self: not self.journals)
    @rule(
        name=st.sampled_from(["a1", "a2", "a3", "b1", "b2", "in/a4", "in/b3"]),
        text=st.sampled_from(["x", "y"]),
    )
    def write(self, name: str, text: str) -> None:
        path = self.files / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        self.model[name] = text

    @precondition(lambda self: self.model and not self.journals)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.model)))
        (self.files / name).unlink()
        del self.model[name]

    @rule(action=st.sampled_from(["move", "hardlink", "symlink"]))
    def apply(self, action: str) -> None:
        target = self.top / f"away{self.count}" if action == "move" else None
        self.count += 1
        planned, _ = changes.plan(duplicates(self.files), action, target)
        journal = self.top / f"journal{self.count}"
        changes.apply(planned, journal)
        self.journals.append(journal)

    @precondition(lambda self: self.journals)
    @rule()
    def undo(self) -> None:
        assert not la.undo(self.journals.pop()).left_alone

    @invariant()
    def nothing_is_lost(self) -> None:
        for name, text in self.model.items():
            path = self.files / name
            places = [path, *self.top.glob(f"away*/{name}")]
            assert any(one.exists() and one.read_text() == text for one in places), name
        if not self.journals:
            there = {
                path.relative_to(self.files).as_posix(): path.read_text()
                for path in self.files.rglob("*")
                if path.is_file() and not path.is_symlink()
            }
            assert there == self.model

    def teardown(self) -> None:
        self.place.cleanup()


Folders.TestCase.settings = settings(max_examples=60, stateful_step_count=15, deadline=None)
TestFolders = Folders.TestCase


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_damaged_journals(data: st.DataObject) -> None:
    """A journal that is cut off or changed is refused, and nothing is undone."""
    with tempfile.TemporaryDirectory() as place:
        files = Path(place, "files")
        files.mkdir()
        fill(files)
        done(files, "move", Path(place, "away"), Path(place, "journal"))
        text = bytearray(Path(place, "journal").read_bytes())
        at = data.draw(st.integers(0, len(text) - 1))
        if data.draw(st.booleans()):
            text = text[:at]
        else:
            text[at] ^= data.draw(st.integers(1, 255))
        Path(place, "journal").write_bytes(text)
        after = snapshot(files)
        with pytest.raises(la.errors.FormatError):
            la.undo(Path(place, "journal"))
        assert snapshot(files) == after


def test_what_is_not_a_journal(tmp_path: Path) -> None:
    with pytest.raises(la.errors.FileError, match="cannot be read"):
        la.undo(tmp_path / "nothing")
    (tmp_path / "other").write_text("some text\n")
    with pytest.raises(la.errors.FormatError, match="is not a journal"):
        la.undo(tmp_path / "other")
    head = {"lookalike": "journal", "version": 9, "folders": []}
    (tmp_path / "newer").write_text(json.dumps(head) + "\n")
    with pytest.raises(la.errors.FormatError, match="has version 9"):
        la.undo(tmp_path / "newer")
