"""What was read of files: never another content than the file has, whatever happens to both."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookalike.errors import DocumentError
from lookalike.storage import file_cache
from lookalike.storage.file_cache import NAME, FileCache, Kept, packed, unpacked

KEPT = Kept(["bytes"], bytes, bytes)
TICK = 0.012  # seconds; the system counts the times of files in ticks of 10 ms at most


class Reader:
    """Reads files, and counts how often it did."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def __call__(self, files: Sequence[Path]) -> Iterator[bytes | DocumentError]:
        for file in files:
            self.read.append(file.name)
            try:
                yield file.read_bytes()
            except OSError:
                yield DocumentError("cannot be read")


def ask(path: Path, files: Sequence[Path], most: int | None = None) -> tuple[list[Any], list[str]]:
    """Return what is said of files, and which were read."""
    reader = Reader()
    with FileCache(path, most) as cache:
        found = list(cache.reading(files, KEPT, reader))
    return [None if isinstance(one, DocumentError) else one for one in found], reader.read


def direct(files: Iterable[Path]) -> list[bytes | None]:
    return [file.read_bytes() if file.exists() else None for file in files]


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files be old enough at once; whoever changes one waits for a tick of the clock."""
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + 10_000_000_000)


def _touch(folder: Path, draw: random.Random) -> None:
    when = draw.choice([0, 10**18, 10**18 + 123_456_789, 4 * 10**18])
    for file in _one(folder, draw):
        os.utime(file, ns=(when, when))


def _rewrite(folder: Path, draw: random.Random) -> None:
    """As long as before, at the same time of modification."""
    for file in _one(folder, draw):
        before = file.stat()
        file.write_bytes(draw.randbytes(before.st_size))
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def _replace(folder: Path, draw: random.Random) -> None:
    """By another file, as long and as old."""
    for file in _one(folder, draw):
        before = file.stat()
        other = folder / "other"
        other.write_bytes(draw.randbytes(before.st_size))
        os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
        other.replace(file)


def _swap(folder: Path, draw: random.Random) -> None:
    there = sorted(folder.iterdir())
    if len(there) > 1:
        one, two = draw.sample(there, 2)
        one.rename(folder / "between")
        two.rename(one)
        (folder / "between").rename(two)


def _link(folder: Path, draw: random.Random) -> None:
    there = sorted(folder.iterdir())
    if len(there) > 1:
        one, two = draw.sample(there, 2)
        one.unlink()
        os.link(two, one)


def _delete(folder: Path, draw: random.Random) -> None:
    for file in _one(folder, draw):
        file.unlink()


def _make(folder: Path, draw: random.Random) -> None:
    (folder / draw.choice("abcdef")).write_bytes(draw.randbytes(8))


def _one(folder: Path, draw: random.Random) -> list[Path]:
    there = sorted(folder.iterdir())
    return [draw.choice(there)] if there else []


CHANGES = [_touch, _rewrite, _replace, _swap, _link, _delete, _make]


@given(st.lists(st.sampled_from(CHANGES), max_size=12), st.integers(0, 2**32), st.booleans())
@settings(max_examples=40, deadline=None)
@pytest.mark.usefixtures("later")
def test_answers_are_those_of_the_files(
    tmp_path_factory: pytest.TempPathFactory, changes: list[Any], seed: int, damaged: bool
) -> None:
    folder, draw = tmp_path_factory.mktemp("files"), random.Random(seed)
    database = tmp_path_factory.mktemp("cache") / NAME
    names = [folder / name for name in "abcdef"]
    for name in names:
        name.write_bytes(draw.randbytes(8))
    for change in [None, *changes]:
        if change is not None:
            time.sleep(TICK)
            change(folder, draw)
        assert ask(database, names)[0] == direct(names)
        if damaged and draw.random() < 0.3:
            content = bytearray(database.read_bytes())
            for _ in range(draw.choice([1, 100])):
                content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
            database.write_bytes(content[: draw.choice([len(content), len(content) // 2])])
    time.sleep(TICK)
    there = [name for name in names if name.exists()]
    ask(database, there)
    assert ask(database, there)[1] == []  # nothing is read without a need


def test_recent_files_are_read_again(tmp_path: Path) -> None:
    """A change within a tick of the clock leaves size and times as they are."""
    file = tmp_path / "file"
    for number in range(40):
        file.write_bytes(b"%08d" % number)
        for _ in range(2):
            found, read = ask(tmp_path / NAME, [file])
            assert found == [b"%08d" % number] and read == ["file"]


@pytest.mark.usefixtures("later")
def test_coarse_times_are_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on FAT, which has 2 s."""
    file = tmp_path / "file"
    file.write_bytes(b"one")
    monkeypatch.setattr(file_cache, "_COARSE", 1)  # every time is a multiple of it
    assert ask(tmp_path / NAME, [file]) == ask(tmp_path / NAME, [file]) == ([b"one"], ["file"])


@pytest.mark.usefixtures("later")
def test_a_file_that_changes_while_it_is_read_is_not_kept(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"one")

    def read(files: Sequence[Path]) -> Iterator[bytes]:
        for one in files:
            content = one.read_bytes()
            time.sleep(TICK)
            one.write_bytes(b"two")
            yield content

    with FileCache(tmp_path / NAME) as cache:
        assert list(cache.reading([file], KEPT, read)) == [b"one"]
    assert ask(tmp_path / NAME, [file]) == ([b"two"], ["file"])


@pytest.mark.usefixtures("later")
def test_other_settings_and_versions_have_other_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, reader = tmp_path / "file", Reader()
    file.write_bytes(b"one")
    with FileCache(tmp_path / NAME) as cache:
        for made_by in (["a", 1], ["a", 2], ["a", 1, 2], ["a", 1]):
            assert list(cache.reading([file], Kept(made_by, bytes, bytes), reader)) == [b"one"]
        assert len(reader.read) == 3 and cache.hits == 1
        monkeypatch.setattr(file_cache, "__version__", "0")
        assert list(cache.reading([file], Kept(["a", 1], bytes, bytes), reader)) == [b"one"]
        assert len(reader.read) == 4


@pytest.mark.usefixtures("later")
def test_errors_are_not_kept(tmp_path: Path) -> None:
    file = tmp_path / "file"
    assert ask(tmp_path / NAME, [file]) == ([None], ["file"])
    file.write_bytes(b"one")
    assert ask(tmp_path / NAME, [file]) == ([b"one"], ["file"])


@pytest.mark.usefixtures("later")
def test_the_size_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries that were not used for the longest time are removed first."""
    most, folder, database = 4 << 20, tmp_path / "files", tmp_path / NAME
    clock = [1_000_000]
    monkeypatch.setattr(time, "time", lambda: clock[0])
    folder.mkdir()
    files = [folder / f"{number:03}" for number in range(300)]
    for number, file in enumerate(files):
        file.write_bytes(bytes([number % 256]) * 50_000)  # 15 MB in all
    pinned = files[:10]
    for begin in range(0, 300, 10):
        clock[0] += 2 * file_cache._USED_AGAIN
        some = [*pinned, *files[begin : begin + 10]] if begin else pinned
        found, read = ask(database, some, most)
        assert found == direct(some)
        assert not begin or read == [one.name for one in files[begin : begin + 10]]
        journal = Path(f"{database}-journal")
        assert database.stat().st_size <= most and not journal.exists()
    assert database.stat().st_size > most // 2
    assert ask(database, files[-10:], most)[1] == []  # the last ones are there
    assert ask(database, files[10:20], most)[1] == [one.name for one in files[10:20]]


@pytest.mark.usefixtures("later")
def test_an_entry_larger_than_the_cache(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(1 << 20))
    for _ in range(2):
        assert ask(tmp_path / NAME, [file], 256 << 10) == ([bytes(1 << 20)], ["file"])
    assert (tmp_path / NAME).stat().st_size <= 256 << 10


WRITER = """
import sys, time
from pathlib import Path
from lookalike.storage import file_cache
now = time.time_ns
file_cache.time.time_ns = lambda: now() + 10_000_000_000
file_cache._COMMIT_BYTES = 2000
kept = file_cache.Kept(["bytes"], bytes, bytes)
folder, database, way = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
files = sorted(folder.iterdir(), reverse=way == "down")
print("begins", flush=True)
for _ in range(int(sys.argv[4])):
    with file_cache.FileCache(database, 1 << 20) as cache:
        read = lambda some: (one.read_bytes() for one in some)
        for file, found in zip(files, cache.reading(files, kept, read), strict=True):
            assert found == file.read_bytes()
"""


def _writer(folder: Path, database: Path, way: str, rounds: int) -> subprocess.Popen[bytes]:
    arguments = [str(folder), str(database), way, str(rounds)]
    return subprocess.Popen([sys.executable, "-c", WRITER, *arguments], stdout=subprocess.PIPE)


@pytest.mark.usefixtures("later")
def test_two_processes_at_once(tmp_path: Path) -> None:
    """They share a database that is too small for all entries, so that both remove some."""
    folder, database = tmp_path / "files", tmp_path / NAME
    folder.mkdir()
    for number in range(120):
        (folder / f"{number}").write_bytes(os.urandom(10_000 + number))
    time.sleep(TICK)
    writers = [_writer(folder, database, way, 4) for way in ("up", "down")]
    assert [writer.wait(120) for writer in writers] == [0, 0]
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.close()
    check = sqlite3.connect(database)
    assert check.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    check.close()
    files = sorted(folder.iterdir())
    assert ask(database, files, 1 << 20)[0] == direct(files)


@pytest.mark.usefixtures("later")
def test_killed_while_it_writes(tmp_path: Path) -> None:
    folder, database = tmp_path / "files", tmp_path / NAME
    folder.mkdir()
    for number in range(200):
        (folder / f"{number}").write_bytes(os.urandom(5000 + number))
    time.sleep(TICK)
    files, draw = sorted(folder.iterdir()), random.Random(5)
    for _ in range(6):
        writer = _writer(folder, database, "up", 100)
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"begins\n"
        time.sleep(draw.random() / 5)
        writer.send_signal(signal.SIGKILL)
        assert writer.wait() == -signal.SIGKILL
        writer.stdout.close()
        assert ask(database, files, 1 << 20)[0] == direct(files)


@pytest.mark.usefixtures("later")
def test_damaged_entries_are_read_again(tmp_path: Path) -> None:
    files = [tmp_path / name for name in "abcd"]
    for file in files:
        file.write_bytes(file.name.encode() * 100)
    ask(tmp_path / NAME, files)
    database = sqlite3.connect(tmp_path / NAME)
    (first, one), (second, two), (third, other), _ = database.execute(
        "SELECT id, value FROM contents ORDER BY id"
    ).fetchall()
    damaged = bytes([other[0], *other[1:-1], other[-1] ^ 1])
    for number, value in ((first, two), (second, one), (third, damaged)):  # two are exchanged
        database.execute("UPDATE contents SET value=? WHERE id=?", (value, number))
    database.commit()
    database.close()
    assert ask(tmp_path / NAME, files) == (direct(files), ["a", "b", "c"])
    assert ask(tmp_path / NAME, files) == (direct(files), [])  # they were replaced


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize("content", [b"no database", b"SQLite format 3\0" + bytes(5000), b""])
def test_a_damaged_database_is_replaced(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"one")
    (tmp_path / NAME).write_bytes(content)
    ask(tmp_path / NAME, [file])
    ask(tmp_path / NAME, [file])
    assert ask(tmp_path / NAME, [file]) == ([b"one"], [])


@pytest.mark.usefixtures("later")
def test_a_database_that_cannot_be_used_is_not_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"one")
    assert ask(file / "below a file" / NAME, [file]) == ([b"one"], ["file"])
    (tmp_path / NAME).mkdir()
    assert ask(tmp_path / NAME, [file]) == ([b"one"], ["file"])
    monkeypatch.setattr(file_cache, "_WAIT", 0.05)
    taken = sqlite3.connect(tmp_path / "taken", isolation_level=None)
    taken.execute("BEGIN EXCLUSIVE")
    assert ask(tmp_path / "taken", [file]) == ([b"one"], ["file"])
    taken.close()


def test_others_cannot_read_it(tmp_path: Path) -> None:
    with FileCache(tmp_path / "new" / NAME):
        assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
        assert (tmp_path / "new" / NAME).stat().st_mode & 0o777 == 0o600


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["u1", "<u4", "<i2", "<i8", "<f8"]),
            st.lists(st.integers(0, 4), min_size=1, max_size=3),
        ),
        max_size=4,
    ),
    st.lists(st.none() | st.floats() | st.text() | st.integers(), max_size=3),
)
def test_values_and_arrays_are_packed(shapes: list[Any], facts: list[Any]) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.integers(0, 200, shape).astype(kind) for kind, shape in shapes]
    found, again = unpacked(packed(facts, *arrays))
    np.testing.assert_equal(found, facts)
    for one, other in zip(arrays, again, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape and (one == other).all()
