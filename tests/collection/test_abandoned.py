"""What processes that died have left is removed; what is in use never is."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

import lookalike as la
from lookalike.collection.care import snapshots
from lookalike.collection.stores.base import HIDDEN, Store, View
from lookalike.collection.stores.sqlite import exclusive_file, shared_file
from lookalike.storage.files import whole_file
from support.running.forked import in_a_fork
from support.running.waiting import wait_until

BITS = 64
FORKS = multiprocessing.get_context("forkserver")
ROWS = np.random.default_rng(0).integers(0, 256, (60, BITS // 8), dtype=np.uint8)
IDS = [f"d{i}" for i in range(len(ROWS))]
OLD = 25 * 3600


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    path = tmp_path / "backup.db"
    with la.open_collection(tmp_path / "original.db", bits=BITS) as docs:
        docs.add(IDS, ["text"] * len(IDS), signatures=ROWS)
        docs.snapshot(path)
    return path


def tables(url: str) -> set[str]:
    """Return the names of all tables of collections."""
    if url.startswith("postgresql"):
        with psycopg.connect(url) as connection:
            found = connection.execute(
                "SELECT tablename FROM pg_tables WHERE schemaname = 'lookalike'"
            ).fetchall()
        return {name for (name,) in found if "_" in name}
    other = sqlite3.connect(url)
    found = other.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    other.close()
    return {name.removeprefix("lookalike_") for (name,) in found if name[-1].isdigit()}


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def killed_restore(backup: Path, url: str) -> None:
    """Restore in a process that is killed when everything is copied and nothing in its place."""
    kept = snapshots._put_in_place
    snapshots._put_in_place = die  # type: ignore[assignment]
    try:
        told = in_a_fork(lambda: la.restore_collection(backup, url, "again"))
    finally:
        snapshots._put_in_place = kept
    assert told == f"the child ended with {signal.SIGKILL.value}"
    if url.startswith("postgresql"):  # the server notices the death of its client a little later
        wait_until(lambda: not _locks(url))


def _locks(url: str) -> int:
    """Return how many locks of restoring processes the server holds."""
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_locks JOIN pg_database ON oid = database "
            "WHERE locktype = 'advisory' AND datname = current_database()"
        ).fetchone()
    return row[0] if row else 0


def test_killed_restores_leave_nothing_for_long(url: str, backup: Path) -> None:
    la.open_collection(url, bits=BITS).close()
    ours = tables(url)
    uses: list[Callable[[], object]] = [
        lambda: la.open_collection(url).close(),
        lambda: la.restore_collection(backup, url, "documents", replace=True),
    ]
    for use in uses:
        before = len(ours)
        killed_restore(backup, url)
        killed_restore(backup, url)  # which removes what the first has left
        assert len(tables(url)) == 2 * before
        assert la.list_collections(url) == ["documents"]
        use()
        assert len(tables(url)) == before
    with la.open_collection(url) as docs:
        killed_restore(backup, url)
        assert docs.repair().ok
        assert len(tables(url)) == before
        assert docs.count() == len(IDS)


@contextmanager
def slow_restore(
    backup: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[BaseException]]:
    """Restore in a thread that stops when signatures are copied, until the block is left."""
    begun, go_on = threading.Event(), threading.Event()
    pages = View.pages
    errors: list[BaseException] = []

    def stop_first(*arguments: Any) -> Iterator[Any]:
        begun.set()
        assert go_on.wait(60)
        yield from pages(*arguments)

    def restore() -> None:
        try:
            la.restore_collection(backup, url, "again")
        except BaseException as error:
            errors.append(error)

    monkeypatch.setattr(View, "pages", stop_first)
    thread = threading.Thread(target=restore)
    thread.start()
    try:
        assert begun.wait(60)
        monkeypatch.undo()
        yield errors
    finally:
        go_on.set()
        thread.join()


def test_a_restore_under_way_is_left_alone(
    url: str, backup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with la.open_collection(url, bits=BITS) as docs:
        with slow_restore(backup, url, monkeypatch) as errors:
            docs.repair()
            la.open_collection(url).close()
            la.restore_collection(backup, url, "other")
            assert docs._store.remove_abandoned() == 0
        assert not errors
        assert la.list_collections(url) == ["again", "documents", "other"]
        with la.open_collection(url, "again") as again:
            assert again.verify().ok
            assert again.count() == len(IDS)
        assert not list(backup.parent.glob("*-restoring")), "the lock goes with the last one"


def test_a_restore_that_was_removed_under_way_does_not_write_to_others(
    url: str, backup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever removed it, the numbers of its tables may be somebody else's by now."""
    with la.open_collection(url, bits=BITS) as docs:
        with slow_restore(backup, url, monkeypatch) as errors:
            with docs._store.writing() as writer:
                (hidden,) = writer.states(hidden=True)
                assert hidden.name.startswith(HIDDEN)
                writer.drop(hidden)
            other = la.open_collection(url, "other", bits=BITS)
            assert other._opened.number == hidden.number
        assert "was removed from the database" in str(errors[0])
        assert isinstance(errors[0], la.errors.CollectionError)
        assert other.count() == 0
        assert other.verify().ok
        other.close()


def restore_often(backup: str, url: str, name: str, done: Any) -> None:
    for _ in range(3):
        la.restore_collection(backup, url, name, replace=True)
    done.value = True


def open_often(url: str, done: Any) -> None:
    for _ in range(10):
        with la.open_collection(url) as docs:
            docs._store.remove_abandoned()
    done.value = True


def test_restoring_and_removing_at_once(url: str, backup: Path) -> None:
    la.open_collection(url, bits=BITS).close()
    done = [FORKS.Value("b", 0) for _ in range(4)]
    workers = [
        FORKS.Process(target=restore_often, args=(str(backup), url, "a", done[0])),
        FORKS.Process(target=restore_often, args=(str(backup), url, "b", done[1])),
        FORKS.Process(target=open_often, args=(url, done[2])),
        FORKS.Process(target=open_often, args=(url, done[3])),
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [value.value for value in done] == [1] * 4
    assert la.list_collections(url) == ["a", "b", "documents"]
    assert len(tables(url)) == 3 * 4
    assert not list(backup.parent.glob("*-restoring"))


def test_a_lock_in_a_file_that_goes_with_its_last_holder(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with shared_file(path, 1), exclusive_file(path) as alone:
        assert not alone
    assert not path.exists()
    with shared_file(path, 1):
        with shared_file(path, 1):
            assert path.exists()
        assert path.exists()
        with exclusive_file(path) as alone:
            assert not alone
    assert not path.exists()
    with exclusive_file(path) as alone:
        assert alone
        with exclusive_file(path) as also:
            assert not also
        with (
            pytest.raises(la.errors.CollectionBusyError, match="locked by another"),
            shared_file(path, 0.1),
        ):
            pass
    assert not path.exists()
    path.touch()  # left by a process that was killed
    with exclusive_file(path) as alone:
        assert alone
    assert not path.exists()
    path.write_text("a file of another program")
    with exclusive_file(path) as alone:
        assert alone
    assert path.exists()
    with (
        pytest.raises(la.errors.CollectionError, match="cannot be locked"),
        shared_file(tmp_path, 0),
    ):
        pass
    with exclusive_file(tmp_path / "no" / "lock") as alone:
        assert not alone


def age(path: Path) -> None:
    old = time.time() - OLD
    os.utime(path, (old, old), follow_symlinks=False)


def left_by_a_killed_writer(path: Path, content: bytes) -> Path:
    def write_and_die() -> None:
        with whole_file(path) as temporary:
            temporary.write_bytes(content)
            die()

    before = set(path.parent.iterdir())
    in_a_fork(write_and_die)
    (left,) = set(path.parent.iterdir()) - before
    return left


def uid_of(store: Store) -> str:
    with store.reading() as view:
        return view.states()[0].uid


def test_old_caches(url: str, tmp_path: Path) -> None:
    with la.open_collection(url, bits=BITS) as docs:
        known = uid_of(docs._store)
        folder = docs._native._folder
    assert folder is not None
    other_folder = tmp_path / "shared"
    for place, mine in ((folder, None), (other_folder, other_folder)):
        place.mkdir(parents=True)
        unknown, uid = place / f"{'0' * 32}.lookalike", place / f"{known}.lookalike"
        foreign = [place / name for name in ("notes.txt", "x.lookalike", ".x.tmp", "sub.tmp")]
        for path in (unknown, uid, *foreign):
            path.write_text("something")
        unfinished = left_by_a_killed_writer(uid, b"half")
        everything = sorted(place.iterdir())
        la.open_collection(url, cache=mine).close()
        assert sorted(place.iterdir()) == everything, "nothing is old enough"
        for path in everything:
            age(path)
        la.open_collection(url, cache=mine).close()
        gone = {unfinished} if mine else {unfinished, unknown}
        assert set(everything) - set(place.iterdir()) == gone


def test_old_snapshots(url: str, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    with la.open_collection(url, bits=BITS) as docs:
        docs.add(IDS, signatures=ROWS)
        docs.snapshot(folder / "first.db")
        whole = (folder / "first.db").read_bytes()
        left = left_by_a_killed_writer(folder / "monday.db", whole)
        empty = left_by_a_killed_writer(folder / "tuesday.db", b"")
        journal = left.with_name(f"{left.name}-journal")
        journal.write_bytes(b"")
        foreign = left_by_a_killed_writer(folder / "corpus.jsonl", b"a job that waits for a day")
        link = folder / ".link.db.0123456789ab.tmp"
        link.symlink_to(folder / "first.db")
        docs.snapshot(folder / "second.db")
        assert left.exists(), "it is not old"
        for path in folder.iterdir():
            age(path)
        docs.snapshot(folder / "third.db")
    names = {"first.db", "second.db", "third.db", foreign.name, link.name}
    assert {path.name for path in folder.iterdir()} == names
    assert not empty.exists()


def test_snapshots_do_not_take_what_is_half_restored(backup: Path, tmp_path: Path) -> None:
    url = str(tmp_path / "docs.db")
    la.open_collection(url, bits=BITS).close()
    with la.open_collection(url) as docs:
        killed_restore(backup, url)
        assert len(tables(url)) == 8
        docs.snapshot(tmp_path / "copy.db")
        assert len(tables(str(tmp_path / "copy.db"))) == 4
