"""Disks that are full, files that are damaged, databases that are locked, servers that go away."""

from __future__ import annotations

import multiprocessing
import os
import resource
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tools.postgres_server import PostgresServer

import lookalike as la
from collection.conftest import new_database
from lookalike.collection.stores.sqlite import SqliteStore
from support.oracles import collections as model

BITS = 64
FORKS = multiprocessing.get_context("forkserver")


def rows(count: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(0, 256, (count, BITS // 8), dtype=np.uint8)


def names(count: int, prefix: str = "d") -> list[str]:
    return [f"{prefix}{i}" for i in range(count)]


def holds(docs: la.Collection, count: int, signatures: np.ndarray[Any, Any]) -> None:
    """The first `count` are there, by get and by search in both ways, and nothing else is."""
    assert docs.count() == count
    assert None not in docs.get_many(names(count))
    for plan in ("native", "sql"):
        answers = docs.within_many(signatures[:count], 0, plan=plan)
        assert [answer.ids[0] for answer in answers] == names(count)
    assert docs.verify().ok


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Let writes fail beyond so many bytes of a file, as on a disk that is full or broken."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("room", [0, 4096, 50_000])
def test_writes_that_fail_leave_everything_as_it_was(tmp_path: Path, room: int) -> None:
    path = tmp_path / "docs.db"
    signatures = rows(3000)
    with la.open_collection(path, bits=BITS) as docs:
        docs.add(names(500), signatures=signatures[:500])
        with file_size_limit(path.stat().st_size + room):
            with pytest.raises(la.errors.CollectionError, match="nothing|not at all"):
                docs.add(
                    names(3000)[500:],
                    signatures=signatures[500:],
                    metadata=[{"filler": "x" * 200}] * 2500,
                )
            assert docs.search(signatures[7], 1, plan="sql").ids == ["d7"]  # reads go on
            holds(docs, 500, signatures)
        docs.add(names(3000)[500:], signatures=signatures[500:])
        holds(docs, 3000, signatures)


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = SqliteStore._connect

    def small(store: SqliteStore) -> sqlite3.Connection:
        connection = connect(store)
        connection.execute("PRAGMA max_page_count=60")
        return connection

    signatures = rows(5000)
    with la.open_collection(tmp_path / "docs.db", bits=BITS) as docs:
        docs.add(names(300), signatures=signatures[:300])
    monkeypatch.setattr(SqliteStore, "_connect", small)
    with la.open_collection(tmp_path / "docs.db") as docs:
        with pytest.raises(la.errors.CollectionError, match="disk is full"):
            docs.add(names(5000)[300:], signatures=signatures[300:])
        holds(docs, 300, signatures)


def test_a_cache_that_cannot_be_written_only_costs_time(tmp_path: Path) -> None:
    signatures = rows(2000)
    blocked = tmp_path / "cache"
    blocked.write_text("a file where the folder should be")
    with la.open_collection(tmp_path / "docs.db", bits=BITS, cache=blocked) as docs:
        docs.add(names(2000), signatures=signatures)
        holds(docs, 2000, signatures)


def saved_cache(tmp_path: Path, signatures: np.ndarray[Any, Any]) -> tuple[Path, Path]:
    path = tmp_path / "docs.db"
    with la.open_collection(path, bits=BITS) as docs:
        docs.add(names(len(signatures)), signatures=signatures)
        docs.refresh()
        cache = docs.stats()["cache"]
    assert cache is not None
    return path, Path(cache)


def test_a_damaged_cache_is_never_used(tmp_path: Path) -> None:
    """Bits flipped in every region of the file, and the file cut anywhere."""
    signatures = rows(1500)
    path, cache = saved_cache(tmp_path, signatures)
    whole = cache.read_bytes()
    size = len(whole)
    places = {0, 1, 9, 12, 20, 40, 63, 64, 70, 100, 130, 200, size - 1, size // 2, size // 3}
    places |= set(range(4096, size, max(4096, size // 40)))  # pages, so sections
    damaged = 0
    for place in sorted(places):
        broken = bytearray(whole)
        broken[place] ^= 1 << place % 8
        cache.write_bytes(broken)
        damaged += check_answers(path, signatures)
    for length in [0, 1, 63, 64, 200, 4096, size // 2, size - 4096, size - 1]:
        cache.write_bytes(whole[:length])
        damaged += check_answers(path, signatures)
    assert damaged > 20
    cache.write_bytes(whole + b"more")
    check_answers(path, signatures)


def check_answers(path: Path, signatures: np.ndarray[Any, Any]) -> bool:
    """Answers are right whatever the cache is; return whether it was found to be damaged."""
    with la.open_collection(path) as docs:
        found = docs.verify()
        assert found.ok
        some = np.arange(0, len(signatures), 97)
        answers = docs.within_many(signatures[some], 3)
        assert [answer.ids[0] for answer in answers] == [f"d{i}" for i in some]
        assert len(docs._native._whole) == len(signatures)
    return found.cache is not None


def test_caches_of_other_times_and_places_are_not_used(tmp_path: Path) -> None:
    """A file put back over a newer one: the cache belongs to a future that never was."""
    signatures = rows(1300)
    path, cache = saved_cache(tmp_path, signatures)
    before = path.read_bytes()
    with la.open_collection(path) as docs:
        docs.delete("d0")
        docs.add(["other"], signatures=rows(1, seed=9))
        docs._native._changes = 10**9
        docs.refresh()
    newer = cache.read_bytes()
    path.write_bytes(before)  # what `cp` does with an old copy
    assert cache.read_bytes() == newer
    with la.open_collection(path) as docs:
        holds(docs, 1300, signatures)
        # The same number of versions, with other contents: only the digest can tell.
        docs.delete("d1299")
        docs.add(["another"], signatures=rows(1, seed=10))
        docs.close()
    cache.write_bytes(newer)
    with la.open_collection(path) as docs:
        assert docs.search(rows(1, seed=10)[0], 1).ids == ["another"]
        assert docs.search(signatures[0], 1).ids == ["d0"]
        assert docs.search(rows(1, seed=9)[0], 1).ids != ["other"]


def test_a_removal_log_that_was_cut_means_building_again(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import lookalike.collection.writing as writing

    monkeypatch.setattr(writing, "_KEPT_REMOVALS", 5)
    signatures = rows(300)
    with la.open_collection(url, bits=BITS) as behind, la.open_collection(url) as docs:
        docs.add(names(300), signatures=signatures)
        behind.refresh()
        for i in range(299, 99, -1):
            docs.delete(f"d{i}")
        assert docs._state().removals_from > 0
        assert len(docs._read(lambda view: view.removals_after(0)[0])) < 100
        holds(behind, 100, signatures)


def test_damage_in_the_tables_is_found_and_what_is_derived_repaired(tmp_path: Path) -> None:
    signatures = rows(200)
    path = tmp_path / "docs.db"
    with la.open_collection(path, bits=BITS) as docs:
        docs.add(names(200), ["text"] * 200, signatures=signatures)
    derived = [
        "DELETE FROM lookalike_keys_1 WHERE key % 7 = 0",
        "UPDATE lookalike_keys_1 SET key = key + 1 WHERE signature = 3",
        "INSERT INTO lookalike_keys_1 VALUES (5, 99999)",
        "UPDATE lookalike_collections SET documents = 7",
        "UPDATE lookalike_collections SET digest = 7",
        "INSERT INTO lookalike_signatures_1 VALUES (5000, x'0102030405060708')",
    ]
    for damage in derived:
        execute(path, damage)
        with la.open_collection(path, plan="sql") as docs:
            assert not docs.verify().ok, damage
            assert docs.repair().ok, damage
            holds(docs, 200, signatures)
    execute(path, "UPDATE lookalike_documents_1 SET text = x'00' WHERE id = 'd5'")
    with la.open_collection(path) as docs:
        report = docs.verify()
        assert report.damaged == ["d5"]
        assert docs.repair().damaged == ["d5"], "what a document was cannot be made up"
        with pytest.raises(la.errors.CollectionError, match="'d5' does not match its checksum"):
            docs.get("d5")
        assert docs.get("d6") is not None


def execute(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(statement)
    connection.close()


def test_a_file_that_is_damaged_or_foreign(tmp_path: Path) -> None:
    foreign = tmp_path / "notes.txt"
    foreign.write_text("these are notes and no database, and long enough to have a header\n" * 30)
    with pytest.raises(la.errors.FormatError, match="is not an SQLite database"):
        la.open_collection(foreign, bits=BITS)
    assert foreign.read_text().startswith("these are notes")

    path = tmp_path / "docs.db"
    with la.open_collection(path, bits=BITS) as docs:
        docs.add(names(2000), signatures=rows(2000))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(la.errors.CollectionError), la.open_collection(path, cache=False) as docs:
        list(docs)
        docs.verify()


def test_a_lock_of_another_process_is_waited_for_and_then_named(tmp_path: Path) -> None:
    path = tmp_path / "docs.db"
    signatures = rows(50)
    with la.open_collection(path, bits=BITS, timeout=0.3) as docs:
        docs.add(names(49), signatures=signatures[:49])
        with locked_elsewhere(path, "BEGIN IMMEDIATE"):
            begin = time.monotonic()
            with pytest.raises(la.errors.CollectionBusyError, match="locked by another process"):
                docs.add(["d49"], signatures=signatures[49:])
            assert 0.2 < time.monotonic() - begin < 20
            holds(docs, 49, signatures)  # reads go on
        docs.add(["d49"], signatures=signatures[49:])
        holds(docs, 50, signatures)
        with (
            locked_elsewhere(path, "BEGIN EXCLUSIVE"),
            pytest.raises(la.errors.CollectionBusyError),
        ):
            docs.count()
        holds(docs, 50, signatures)


@contextmanager
def locked_elsewhere(path: Path, statement: str) -> Iterator[None]:
    ready, done = FORKS.Event(), FORKS.Event()
    holder = FORKS.Process(target=hold_lock, args=(str(path), statement, ready, done))
    holder.start()
    assert ready.wait(60)
    try:
        yield
    finally:
        done.set()
        holder.join(60)


def hold_lock(path: str, statement: str, ready: Any, done: Any) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(statement)
    ready.set()
    done.wait(60)
    connection.close()


def test_a_write_ahead_log_of_another_process_is_refused(tmp_path: Path) -> None:
    """SQLite before 3.51.3 can corrupt those; a file left in that mode is put right."""
    path = tmp_path / "docs.db"
    with la.open_collection(path, bits=BITS) as docs:
        docs.add(["a"], signatures=rows(1))
    other = sqlite3.connect(path)
    assert other.execute("PRAGMA journal_mode=WAL").fetchone() == ("wal",)
    other.execute("SELECT count(*) FROM lookalike_documents_1").fetchone()
    with pytest.raises(
        (la.errors.CollectionError, la.errors.CollectionBusyError), match="journal mode|locked"
    ):
        la.open_collection(path, timeout=0.2)
    other.close()
    with la.open_collection(path) as docs:
        assert docs.get("a") is not None
    assert not path.with_name("docs.db-wal").exists()
    check = sqlite3.connect(path)
    assert check.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    check.close()


def test_the_settings_are_the_safe_ones(tmp_path: Path) -> None:
    with la.open_collection(tmp_path / "docs.db", bits=BITS) as docs:
        with docs._store._pool.connection() as connection:
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("truncate",)
            assert connection.execute("PRAGMA synchronous").fetchone() == (3,)
        assert "power loss" in docs.stats()["durability"]
    with la.open_collection(tmp_path / "quick.db", bits=BITS, durable=False) as docs:
        assert "may take the last ones back" in docs.stats()["durability"]


def test_a_fork_is_told_to_open_again(tmp_path: Path) -> None:
    with la.open_collection(tmp_path / "docs.db", bits=BITS) as docs:
        docs._store._pool._process = -1  # as after a fork
        with pytest.raises(la.errors.CollectionError, match="open it again after the fork"):
            docs.count()
        docs._store._pool._process = os.getpid()


def test_a_closed_collection_says_so(url: str) -> None:
    docs = la.open_collection(url, bits=BITS)
    docs.close()
    with pytest.raises(la.errors.CollectionError, match="is closed"):
        docs.count()


def test_a_writer_that_waits_too_long_on_postgresql(postgres: PostgresServer) -> None:
    url = new_database(postgres)
    with (
        la.open_collection(url, bits=BITS, timeout=0.3, cache=False) as docs,
        la.open_collection(url, cache=False) as other,
    ):
        docs.add(["d0"], signatures=rows(2)[:1])
        with other._store.writing() as writer:
            writer.lock("documents")
            with pytest.raises(la.errors.CollectionBusyError, match="another writer"):
                docs.add(["d1"], signatures=rows(2)[1:])
            holds(docs, 1, rows(2))
        docs.add(["d1"], signatures=rows(2)[1:])
        holds(docs, 2, rows(2))


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_server_that_stops_in_the_middle_of_a_batch(mode: str) -> None:
    """Writes fail clearly, what was acknowledged is there when the server is back."""
    with PostgresServer() as server:
        url = new_database(server)
        docs = la.open_collection(url, bits=BITS, timeout=5, cache=False)
        known: dict[str, model.Entry] = {}
        errors: list[str] = []
        stop = threading.Timer(0.3, server.stop, [mode])
        unsure: dict[str, model.Entry] = {}
        for number in range(100_000):
            batch = rows(20, seed=number)
            ids = names(20, f"{number}-")
            entries: dict[str, model.Entry] = {
                id: (row.tobytes(), {}) for id, row in zip(ids, batch, strict=True)
            }
            try:
                docs.add(ids, signatures=batch)
            except la.errors.CollectionError as error:
                errors.append(str(error))
                unsure = entries
                break
            known.update(entries)
            if number == 0:
                stop.start()
        stop.join()
        assert errors
        assert known, "some batches come through before the server stops"
        with pytest.raises(la.errors.CollectionError):
            docs.count()
        server.start()
        present = docs.count()  # the same object goes on
        assert present in (len(known), len(known) + len(unsure)), "all of a batch or nothing"
        if present > len(known):
            known.update(unsure)
        assert [document.id for document in docs] == sorted(known)
        for plan in ("native", "sql"):
            some = dict(list(known.items())[:: max(1, len(known) // 50)])
            queries = np.array([np.frombuffer(row, np.uint8) for row, _ in some.values()])
            answers = docs.within_many(queries, 0, plan=plan)
            assert [answer.ids[0] for answer in answers] == list(some)
        assert docs.verify().ok
        docs.add(["after"], signatures=rows(1, seed=123456))
        docs.close()


def test_no_server_at_all(tmp_path: Path) -> None:
    with pytest.raises(la.errors.CollectionError, match="PostgreSQL reports"):
        la.open_collection(f"postgresql:///nothing?host={tmp_path}", bits=BITS, timeout=1)


def test_a_password_does_not_get_into_messages() -> None:
    with pytest.raises(la.errors.CollectionError) as caught:
        la.open_collection("postgresql://me:sesame@127.0.0.1:1/nothing", bits=64, timeout=1)
    assert "sesame" not in str(caught.value)
