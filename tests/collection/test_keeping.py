"""Snapshots, restoring, schema versions, several collections, signers, import and export."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lookalike as la
from lookalike.collection.stores import schema

TEXTS = {
    "fox": "The quick brown fox jumps over the lazy dog near the river bank",
    "owl": "A quick brown fox jumps over the lazy dog near the river bank",
    "law": "Minimum wage legislation was debated in parliament on Tuesday",
}
SIGNER = la.SimHash(bits=128, features=la.Words(ngram=2))
OLD = Path(__file__).parent / "data" / "collection_v1.db"


def fill(docs: la.Collection) -> None:
    described = [{"n": n} for n in range(len(TEXTS))]
    docs.add(list(TEXTS), list(TEXTS.values()), metadata=described)


def test_a_snapshot_is_one_moment_while_others_write(url: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    stop = threading.Event()
    with la.open_collection(url, bits=64, cache=False) as docs:
        docs.add(["start"], signatures=np.zeros((1, 8), np.uint8))

        def write() -> None:
            number = 0
            while not stop.is_set():
                rows = rng.integers(0, 256, (3, 8), dtype=np.uint8)
                docs.add([f"{number}-{i}" for i in range(3)], signatures=rows)  # three or none
                number += 1

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for number in range(5):
                docs.snapshot(tmp_path / f"snapshot-{number}.db")
        finally:
            stop.set()
            writer.join()
        total = docs.count()
    sizes = []
    for number in range(5):
        with la.open_collection(tmp_path / f"snapshot-{number}.db", cache=False) as copy:
            assert copy.verify().ok
            sizes.append(copy.count())
            assert (sizes[-1] - 1) % 3 == 0, "all of a batch or nothing"
            assert copy.version == 1 + (sizes[-1] - 1) // 3
    assert sizes == sorted(sizes)
    assert sizes[-1] <= total
    left = [path.name for path in tmp_path.iterdir() if "tmp" in path.name]
    assert not left, "nothing temporary stays"


def test_restoring(url: str, new_url: Callable[[], str], tmp_path: Path) -> None:
    path = tmp_path / "snapshot.db"
    with la.open_collection(url, signer=SIGNER) as docs, la.open_collection(url, "other", bits=8):
        fill(docs)
        docs.snapshot(path)
        with pytest.raises(la.errors.FileError, match="already exists"):
            docs.snapshot(path)
        before = list(docs)
        docs.search("quick fox", 1)  # its native index is there, and then belongs to the past
        docs.delete("fox")
        docs.upsert(["new"], ["something new"])
        assert la.list_collections(path) == ["documents"], "others are none of its business"
        with pytest.raises(la.errors.ArgumentError, match="pass replace=True"):
            la.restore_collection(path, url)
        assert la.restore_collection(path, url, replace=True) == "documents"
        assert list(docs) == before, "the open one sees what was restored"
        for plan in ("native", "sql"):
            assert docs.search(TEXTS["fox"], 1, plan=plan).ids == ["fox"]
        assert docs.verify().ok
        assert la.restore_collection(path, url, "copy") == "copy"
        assert la.list_collections(url) == ["copy", "documents", "other"]
    elsewhere = new_url()
    la.restore_collection(path, elsewhere)
    with la.open_collection(elsewhere, signer=SIGNER) as there:
        assert list(there) == before
        assert there.search(TEXTS["owl"], 1).ids == ["owl"]
        assert there.verify().ok
        there.upsert(["fox"], ["changed"])
        assert there.verify().ok
    with pytest.raises(la.errors.NotFoundError, match="no collection 'nothing'"):
        la.restore_collection(path, url, source="nothing")
    with pytest.raises(la.errors.ArgumentError, match="both the snapshot and the database"):
        la.restore_collection(path, path)


def test_a_restore_that_fails_leaves_nothing(url: str, tmp_path: Path) -> None:
    path = tmp_path / "snapshot.db"
    with la.open_collection(url, signer=SIGNER, cache=False) as docs:
        fill(docs)
        docs.snapshot(path)
        connection = sqlite3.connect(path)
        with connection:
            connection.execute("UPDATE lookalike_collections SET digest = 1")
        connection.close()
        with pytest.raises(la.errors.CollectionError, match="the database is damaged"):
            la.restore_collection(path, url, replace=True)
        assert la.list_collections(url) == ["documents"]
        assert docs.count() == 3
        assert docs.verify().ok


def test_several_collections_in_one_database(url: str) -> None:
    with (
        la.open_collection(url, "a", bits=64, cache=False) as a,
        la.open_collection(url, "b", signer=SIGNER, keep_text=False, cache=False) as b,
    ):
        a.add(["x"], signatures=np.zeros((1, 8), np.uint8))
        fill(b)
        assert (a.count(), b.count()) == (1, 3)
        document = b.get("fox")
        assert document is not None
        assert document.text is None
        assert b.search(TEXTS["fox"], 1).ids == ["fox"]
        assert la.list_collections(url) == ["a", "b"]
        la.drop_collection(url, "a")
        with pytest.raises(la.errors.NotFoundError, match="'a' at .* is gone"):
            a.count()
        with pytest.raises(la.errors.NotFoundError, match="no collection 'a'"):
            la.drop_collection(url, "a")
        assert b.verify().ok
    with la.open_collection(url, "a", bits=128, cache=False) as again:
        assert again.count() == 0


def test_the_signer_is_stored_with_the_collection(url: str, tmp_path: Path) -> None:
    fitted = la.SimHash(bits=64, weights="tfidf").fit(list(TEXTS.values()))
    with la.open_collection(url, signer=fitted, cache=False) as docs:
        fill(docs)
    with la.open_collection(url, cache=False) as docs:
        assert docs.signer == fitted
        assert docs.search(TEXTS["law"], 1).distances == [0]
    other = la.SimHash(bits=64, weights="tfidf").fit(["something else"])
    with pytest.raises(la.errors.ArgumentError, match="another signer"):
        la.open_collection(url, signer=other)


def test_times(url: str) -> None:
    with la.open_collection(url, bits=64, cache=False) as docs:
        docs.add(["a"], signatures=np.zeros((1, 8), np.uint8))
        first = docs.get("a")
        docs.upsert(["a"], signatures=np.ones((1, 8), np.uint8))
        second = docs.get("a")
        assert first is not None
        assert second is not None
        assert first.added == first.updated == second.added <= second.updated
        assert first.added.tzinfo is not None


def test_collections_of_older_versions_open(tmp_path: Path) -> None:
    """A file that schema version 1 has written, kept as it was."""
    path = tmp_path / "old.db"
    shutil.copy(OLD, path)
    with la.open_collection(path, signer=SIGNER) as docs:
        assert sorted(TEXTS) == [document.id for document in docs]
        assert {document.id: document.text for document in docs} == TEXTS
        for plan in ("native", "sql"):
            assert docs.search(TEXTS["owl"], 1, plan=plan).ids == ["owl"]
        assert docs.verify().ok
        docs.upsert(["fox"], ["changed"])
        assert docs.verify().ok


def test_migrations_run_once_and_whole_or_not_at_all(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with la.open_collection(url, bits=64, cache=False) as docs:
        docs.add(["a"], signatures=np.zeros((1, 8), np.uint8))

    def another(execute: Callable[[str], Any], dialect: schema.Dialect) -> None:
        execute(f"CREATE TABLE {dialect.prefix}another (x {dialect.integer})")

    def broken(execute: Callable[[str], Any], dialect: schema.Dialect) -> None:
        execute(f"CREATE TABLE {dialect.prefix}broken (x {dialect.integer})")
        raise RuntimeError("the power fails here")

    monkeypatch.setattr(schema, "MIGRATIONS", schema.MIGRATIONS)
    known = len(schema.MIGRATIONS)
    schema.MIGRATIONS.append(another)
    try:
        schema.MIGRATIONS.append(broken)
        with pytest.raises(RuntimeError, match="the power fails"):
            la.open_collection(url)
        schema.MIGRATIONS.pop()
        la.open_collection(url, cache=False).close()  # from the last, not from in between
        with la.open_collection(url, cache=False) as docs:  # and not again
            assert docs.get("a") is not None
    finally:
        del schema.MIGRATIONS[known:]
    with pytest.raises(
        la.errors.FormatError, match=rf"schema version {known + 1}; .* up to {known}"
    ):
        la.open_collection(url)


@pytest.mark.parametrize("suffix", ["jsonl", "parquet", "csv"])
def test_export_and_import_round_trip(
    url: str, new_url: Callable[[], str], tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"all.{suffix}"
    with la.open_collection(url, signer=SIGNER, cache=False) as docs:
        fill(docs)
        docs.add(['odd, "id"'], ["text\nwith 'lines'"], metadata=[{"a": {"b": [1, None]}}])
        docs.add(["of nothing"], [""])
        assert docs.export(path) == 5
        assert docs.export(tmp_path / "one.jsonl", where={"n": 1}) == 1
        expected = {d.id: (d.text, d.metadata, d.signature.tobytes()) for d in docs}
    with la.open_collection(new_url(), signer=SIGNER, cache=False) as copy:
        done = copy.import_file(path)
        assert (done.added, done.updated, done.bad) == (5, 0, 0)
        assert {d.id: (d.text, d.metadata, d.signature.tobytes()) for d in copy} == expected
        with pytest.raises(la.errors.BatchError, match="use upsert"):
            copy.import_file(path)
        assert copy.import_file(path, replace=True).updated == 5
        assert copy.import_file(path, skip_bad=True).bad == 5
        assert copy.verify().ok


def test_importing_what_people_have(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text(
        '{"id": "fox", "text": "one", "lang": "en", "year": 2020}\n'
        '{"id": 7, "text": "two", "tags": ["a", "b"], "year": null}\n'
        '{"id": "bad", "text": null}\n'
        '{"id": "fox", "text": "again"}\n'
    )
    with la.open_collection(tmp_path / "docs.db", signer=SIGNER, cache=False) as docs:
        with pytest.raises(la.errors.BatchError):
            docs.import_file(path)
        assert docs.count() == 0
        done = docs.import_file(path, skip_bad=True, batch=2)
        assert (done.added, done.bad) == (2, 2)
        assert len(done.examples) == 2
        metadata = {document.id: document.metadata for document in docs}
        assert metadata["fox"] == {"lang": "en", "year": 2020}
        assert metadata["7"]["tags"] == ["a", "b"]
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.txt").write_text("a note")
    (folder / "b.txt").write_text("another note")
    with la.open_collection(tmp_path / "notes.db", signer=SIGNER, cache=False) as docs:
        assert docs.import_file(folder).added == 2
        assert docs.search("a note", 1).distances == [0]


def test_importing_signatures(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("id,signature\na,00ff00ff00ff00ff\nb,00ff\nc,zz\n")
    with la.open_collection(tmp_path / "docs.db", bits=64, cache=False) as docs:
        with pytest.raises(la.errors.BatchError, match="expected 16 hexadecimal digits"):
            docs.import_file(path)
        done = docs.import_file(path, skip_bad=True)
        assert (done.added, done.bad) == (1, 2)
        document = docs.get("a")
        assert document is not None
        assert document.signature.tobytes() == bytes.fromhex("00ff" * 4)
        nothing = tmp_path / "n.csv"
        nothing.write_text("x,y\n1,2\n")
        with pytest.raises(la.errors.ArgumentError, match="neither texts nor signatures"):
            docs.import_file(nothing)
