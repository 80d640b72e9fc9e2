"""Serving a folder: files of others stay as they are, and a damaged file harms no other."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lookalike as la
from lookalike.collection.opening import remove_unused_file
from lookalike.service import library as library_module
from lookalike.service.library import FolderLibrary
from lookalike.service.problems import Problem
from support.services.running import Running, running

COLLECTIONS = "/v1/collections"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


@pytest.fixture
def served(folder: Path, tmp_path: Path) -> Iterator[Running]:
    with running(folder, tmp_path) as service:
        yield service


def foreign(path: Path, *statements: str) -> None:
    """Do something to a database as another program does."""
    connection = sqlite3.connect(path)
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def rows(path: Path, table: str) -> list[Any]:
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    found = connection.execute(f"SELECT * FROM {table}").fetchall()
    connection.close()
    return found


def _count(path: Path, name: str) -> int:
    with la.open_collection(path, name, create=False) as docs:
        return len(docs)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


ZEROS = np.zeros((1, 8), np.uint8)
SHOP = ("CREATE TABLE customers (x)", "INSERT INTO customers VALUES ('precious')")


def made_shop(path: Path) -> None:
    foreign(path, *SHOP)


def made_empty_database(path: Path) -> None:
    foreign(path, "PRAGMA user_version = 7", "CREATE TABLE a (x)", "DROP TABLE a")


def made_write_ahead_log(path: Path) -> None:
    foreign(path, "PRAGMA journal_mode = WAL")
    foreign(path, *SHOP)


def made_two_collections(path: Path) -> None:
    for name in ("a", path.stem):
        la.open_collection(path, name, bits=64).close()


def made_restoring(path: Path) -> None:
    """A file in which a restore was interrupted: nothing to see, but not empty."""
    la.open_collection(path, "a", bits=64).close()
    foreign(path, "UPDATE lookalike_collections SET name = char(1) || 'half restored'")


def made_link(path: Path) -> None:
    target = path.parent.parent / "elsewhere.sqlite"
    made_shop(target)
    path.symlink_to(target)


def made_link_to_collection(path: Path) -> None:
    target = path.parent.parent / "own.db"
    la.open_collection(target, bits=64).close()
    path.symlink_to(target)


FOREIGN: dict[str, Callable[[Path], object]] = {
    "shop": made_shop,
    "empty-database": made_empty_database,
    "write-ahead-log": made_write_ahead_log,
    "two-collections": made_two_collections,
    "restoring": made_restoring,
    "no-bytes": lambda path: path.touch(),
    "no-database": lambda path: path.write_text("notes of somebody " * 100),
    "folder": lambda path: path.mkdir(),
    "broken-link": lambda path: path.symlink_to("nowhere"),
    "link": made_link,
    "link-to-collection": made_link_to_collection,
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_file_of_others_is_not_taken_nor_removed_nor_changed(
    served: Running, folder: Path, kind: str
) -> None:
    path = folder / "shop.db"
    FOREIGN[kind](path)
    is_file = path.is_file()
    before = digest(path) if is_file else None
    body = {"name": "shop", "bits": 64}
    message = served.refused(409, "exists", "POST", COLLECTIONS, body)
    assert "shop.db" in message
    found = served.good("GET", COLLECTIONS)
    assert found["collections"] == []
    assert [one["name"] for one in found.get("unavailable", [])] == (
        ["shop"] if kind == "no-database" else []
    )
    refusal = (503, "collection") if kind == "no-database" else (404, "not_found")
    for method, path_of in (
        ("GET", "/shop"), ("DELETE", "/shop"), ("GET", "/shop/snapshots"),
        ("POST", "/shop/snapshots"), ("GET", "/shop/documents/a"),
    ):  # fmt: skip
        served.refused(*refusal, method, COLLECTIONS + path_of)
    documents = {"documents": [{"id": "a", "text": "b c"}]}
    served.refused(*refusal, "PUT", f"{COLLECTIONS}/shop/documents", documents)
    served.refused(*refusal, "POST", f"{COLLECTIONS}/shop/dedup", {"radius": 1, "delete": True})
    served.refused(409, "exists", "POST", COLLECTIONS, body)
    assert os.path.lexists(path)
    if is_file and kind != "restoring":  # which is removed by whoever opens it, as it should be
        assert digest(path) == before
    if kind == "write-ahead-log":
        connection = sqlite3.connect(path)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        connection.close()


@pytest.mark.parametrize(
    "content",
    [
        ("CREATE TABLE orders (x)", "INSERT INTO orders VALUES ('precious')"),
        ("CREATE VIEW orders AS SELECT 'precious'",),
        ("CREATE TABLE lookalike_orders (x)", "INSERT INTO lookalike_orders VALUES (1)"),
        ("CREATE TABLE lookalike_documents_7 (x)",),
        ("CREATE VIRTUAL TABLE orders USING fts5(x)", "INSERT INTO orders VALUES ('precious')"),
        ("CREATE TABLE a (x)", "CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 1; END"),
    ],
)
@pytest.mark.parametrize("before", [False, True])
def test_what_others_keep_beside_a_collection_stays(
    served: Running, folder: Path, content: tuple[str, ...], before: bool
) -> None:
    path = folder / "mixed.db"
    if before:
        foreign(path, *content)
    with la.open_collection(path, "inner", bits=64) as docs:
        docs.add(["a"], signatures=ZEROS)
    if not before:
        foreign(path, *content)
    listed = [one["name"] for one in served.good("GET", COLLECTIONS)["collections"]]
    assert listed == ["mixed"]
    schema = [row for row in rows(path, "sqlite_master") if not row[2].startswith("lookalike_")]
    snapshot = served.good("POST", f"{COLLECTIONS}/mixed/snapshots")["name"]
    assert served.good("DELETE", f"{COLLECTIONS}/mixed") == {"deleted": "mixed"}
    assert la.list_collections(path) == []
    left = [row for row in rows(path, "sqlite_master") if not row[2].startswith("lookalike_")]
    assert [row[:3] for row in left] == [row[:3] for row in schema]
    if "precious" in content[-1] and "TABLE" in content[0]:
        assert rows(path, "orders") == [("precious",)]
    served.refused(409, "exists", "POST", COLLECTIONS, {"name": "mixed", "bits": 64})
    # The snapshot has the collection, and nothing of theirs for whoever downloads it.
    file = folder / ".snapshots" / "mixed" / snapshot
    assert la.list_collections(file) == ["inner"]
    assert b"precious" not in file.read_bytes() and b"orders" not in file.read_bytes()
    assert _count(file, "inner") == 1


def test_a_file_of_ours_goes_with_its_collection(served: Running, folder: Path) -> None:
    for again in range(2):
        served.good("POST", COLLECTIONS, {"name": "pages", "bits": 64})
        row = {"id": "a", "signature": "00" * 8}
        served.good("PUT", f"{COLLECTIONS}/pages/documents", {"documents": [row]})
        assert (folder / "pages.db").exists(), again
        served.good("DELETE", f"{COLLECTIONS}/pages")
        assert not list(folder.glob("*pages.db*")), again


def test_a_file_of_ours_without_a_collection_is_used_again(served: Running, folder: Path) -> None:
    la.open_collection(folder / "pages.db", "pages", bits=64).close()
    la.drop_collection(folder / "pages.db", "pages")
    served.refused(404, "not_found", "GET", f"{COLLECTIONS}/pages")
    served.good("POST", COLLECTIONS, {"name": "pages", "bits": 64})
    served.good("GET", f"{COLLECTIONS}/pages")
    served.good("DELETE", f"{COLLECTIONS}/pages")
    assert not (folder / "pages.db").exists()


def test_a_file_that_others_created_stays(served: Running, folder: Path) -> None:
    path = folder / "pages.db"
    foreign(path, "PRAGMA user_version = 3", "CREATE TABLE a (x)", "DROP TABLE a")
    la.open_collection(path, "pages", bits=64).close()
    served.good("DELETE", f"{COLLECTIONS}/pages")
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone() == (3,)
    connection.close()


def test_a_collection_that_cannot_be_made_leaves_no_file(
    served: Running, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*given: Any, **named: Any) -> None:
        raise la.errors.CollectionError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(library_module, "open_collection", fails)
        served.refused(503, "collection", "POST", COLLECTIONS, {"name": "pages", "bits": 64})
    assert not (folder / "pages.db").exists()
    served.good("POST", COLLECTIONS, {"name": "pages", "bits": 64})


def test_of_many_that_make_a_collection_one_does(folder: Path) -> None:
    """Each has a library of its own, as workers of a service do."""
    from concurrent.futures import ThreadPoolExecutor

    libraries = [FolderLibrary(folder) for _ in range(8)]

    def make(library: FolderLibrary) -> bool:
        try:
            library.create("pages", None, 64, True)
        except Problem as problem:
            assert problem.status == 409
            return False
        return True

    with ThreadPoolExecutor(len(libraries)) as pool:
        assert sum(pool.map(make, libraries)) == 1
    for library in libraries:
        library.close()


@pytest.mark.parametrize("content", ["collection", "foreign", "handle"])
def test_what_is_written_between_dropping_and_removing_stays(
    folder: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    path = folder / "pages.db"
    library = FolderLibrary(folder)
    library.create("pages", None, 64, True)
    handle = la.open_collection(path, "pages")
    drop = la.drop_collection

    def dropped(*given: Any) -> None:
        drop(*given)
        if content == "collection":
            with la.open_collection(path, "new", bits=64) as docs:
                docs.add(["a"], signatures=ZEROS)
        elif content == "foreign":
            foreign(path, *SHOP)

    monkeypatch.setattr(library_module, "drop_collection", dropped)
    library.drop("pages")
    with pytest.raises(la.errors.NotFoundError):
        handle.add(["b"], signatures=ZEROS)
    if content == "collection":
        assert _count(path, "new") == 1
    elif content == "foreign":
        assert rows(path, "customers") == [("precious",)]
    else:
        assert not path.exists()
        # Whoever waited with a file that is gone by now writes to a new one, or is told so.
        library.create("pages", None, 64, True)
        handle.add(["b"], signatures=ZEROS)
        assert _count(path, "pages") == 1
    library.close()
    handle.close()


@pytest.mark.parametrize("writes", [False, True])
def test_a_file_that_takes_its_name_meanwhile_stays(
    folder: Path, monkeypatch: pytest.MonkeyPatch, writes: bool
) -> None:
    """Another file is moved to the name just before it is removed, and after its tables went."""
    path, other = folder / "pages.db", folder / "other.sqlite"
    made_shop(other)
    la.open_collection(path, "pages", bits=64).close()
    la.drop_collection(path, "pages")
    same = os.path.samestat
    calls = 0

    def swapped(one: os.stat_result, two: os.stat_result) -> bool:
        nonlocal calls
        calls += 1
        found = same(one, two)
        if found and calls == (1 if writes else 2):
            other.replace(path)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(os.path, "samestat", swapped)
        assert not remove_unused_file(path)
    assert calls >= 2
    assert rows(path, "customers") == [("precious",)]
    assert sorted(one.name for one in folder.iterdir()) == ["pages.db"]


def test_a_file_of_others_among_snapshots_is_not_deleted(served: Running, folder: Path) -> None:
    served.good("POST", COLLECTIONS, {"name": "pages", "bits": 64})
    base = f"{COLLECTIONS}/pages/snapshots"
    name = served.good("POST", base)["name"]
    place = folder / ".snapshots" / "pages"
    damaged = place / "20260101T000000Z-00000001.db"
    damaged.write_bytes((place / name).read_bytes()[:5000])
    shop, text = (place / f"20260101T000000Z-0000000{digit}.db" for digit in (2, 3))
    made_shop(shop)
    text.write_text("notes")
    for one in (shop, text):
        served.refused(409, "not_a_snapshot", "DELETE", f"{base}/{one.name}")
    assert rows(shop, "customers") == [("precious",)] and text.read_text() == "notes"
    for snapshot in (damaged.name, name):
        assert served.good("DELETE", f"{base}/{snapshot}") == {"deleted": snapshot}
        assert not (place / snapshot).exists()
    served.good("DELETE", f"{COLLECTIONS}/pages")


# Damage

DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "head": lambda data: b"x" * 100 + data[100:],
    "schema": lambda data: data[:100] + b"\xff" * 3996 + data[4096:],
    "pages": lambda data: data[:4096] + b"\xa5" * (len(data) - 4096),
    "short": lambda data: data[:5000],
    "text": lambda data: b"hello",
}
ROUTES: list[tuple[str, str, Any]] = [
    ("GET", "", None),
    ("POST", "/query", {"text": "text number 7", "k": 3}),
    ("POST", "/query/batch", {"texts": ["text number 7"], "k": 3}),
    ("GET", "/documents/d7", None),
    ("PUT", "/documents", {"documents": [{"id": "new", "text": "x y"}]}),
    ("POST", "/documents/scroll", {}),
    ("POST", "/documents/count", {"where": {"a": 1}}),
    ("POST", "/documents/get", {"ids": ["d7"]}),
    ("POST", "/documents/delete", {"where": {"a": 1}}),
    ("DELETE", "/documents/d7", None),
    ("GET", "/groups?radius=3", None),
    ("POST", "/snapshots", None),
    ("POST", "/pairs", {"radius": 2}),
    ("POST", "/compare", {"left": {"id": "d1"}, "right": {"id": "d2"}}),
    ("DELETE", "", None),
]


@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_file_is_an_error_of_its_collection_alone(
    served: Running, folder: Path, kind: str, opened: bool
) -> None:
    texts = [f"text number {i} of this collection" * 5 for i in range(200)]
    for name in ("a-good", "bad", "good"):
        with la.open_collection(folder / f"{name}.db", signer=la.SimHash(64)) as docs:
            docs.add([f"d{i}" for i in range(200)], texts)
        if opened:
            served.good("GET", f"{COLLECTIONS}/{name}")
    path = folder / "bad.db"
    path.write_bytes(DAMAGE[kind](path.read_bytes()))
    os.utime(path, (1, 1))
    damaged = digest(path)
    failed = 0
    # What is open may go on with the pages in memory, so that it could even be deleted.
    routes = ROUTES[:-1] if opened else ROUTES
    for method, route, body in routes:
        status, _, value = served.ask(method, f"{COLLECTIONS}/bad{route}", body)
        assert status < 300 or status == 503, (method, route, status, value)
        if status == 503:
            failed += 1
            assert value["error"]["code"] == "collection" and str(folder) not in str(value)
    assert opened or failed >= len(ROUTES) - 1, failed
    found = served.good("GET", COLLECTIONS)
    names = [one["name"] for one in found["collections"]]
    listed = [one["name"] for one in found.get("unavailable", [])]
    assert sorted([*names, *listed]) == ["a-good", "bad", "good"]
    if not opened:
        assert listed == ["bad"] and found["unavailable"][0]["error"]["code"] == "collection"
        assert digest(path) == damaged
    served.good("GET", "/readyz")
    assert served.ask("GET", "/metrics")[0] == 200
    for name in ("a-good", "good"):
        query = {"text": texts[7], "radius": 0}
        answer = served.good("POST", f"{COLLECTIONS}/{name}/query", query)
        assert [one["id"] for one in answer["matches"]] == ["d7"]
    served.refused(409, "exists", "POST", COLLECTIONS, {"name": "bad", "bits": 64})
    with pytest.raises(la.errors.NotFoundError, match="choose one"):
        la.connect(served.url)
