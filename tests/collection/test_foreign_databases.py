"""Databases that somebody else has made: nothing in them leads out of their own files."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

import lookalike as la
from lookalike.collection.search.native import cache_file
from lookalike.collection.stores.schema import signer_hash

BITS = 64
ROWS = np.random.default_rng(0).integers(0, 256, (2000, BITS // 8), dtype=np.uint8)
IDS = [f"d{i}" for i in range(len(ROWS))]


@pytest.fixture
def filled(url: str) -> str:
    with la.open_collection(url, bits=BITS) as docs:
        docs.add(IDS[:5], signatures=ROWS[:5])
    return url


def change(url: str, column: str, value: Any, where: str = "") -> None:
    if url.startswith("postgresql"):
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"UPDATE lookalike.collections SET {column} = %s{where}", (value,))
        return
    other = sqlite3.connect(url)
    with other:
        other.execute(f"UPDATE lookalike_collections SET {column} = ?{where}", (value,))
    other.close()


@pytest.mark.parametrize(
    "uid",
    [
        "../victim/important", "/etc/important", "", ".", "x" * 5000, "0" * 31, "0" * 33,
        "0" * 32 + "\n", "A" * 32, "\N{FULLWIDTH DIGIT ZERO}" * 32, "../" + "0" * 29,
    ],
)  # fmt: skip
def test_a_uid_does_not_become_a_path(filled: str, tmp_path: Path, uid: str) -> None:
    victim = tmp_path / "victim" / "important.lookalike"
    victim.parent.mkdir()
    victim.write_text("precious")
    change(filled, "uid", uid)
    before = sorted(tmp_path.rglob("*"))
    for use in (
        lambda: la.open_collection(filled, bits=BITS),
        lambda: la.drop_collection(filled, "documents"),
        lambda: la.list_collections(filled),
        lambda: la.restore_collection(filled, tmp_path / "copy.db"),
    ):
        with pytest.raises(
            la.errors.CollectionError, match="as uid, which lookalike did not write"
        ):
            use()
    assert victim.read_text() == "precious"
    assert sorted(tmp_path.rglob("*")) == before


def test_a_cache_is_neither_written_nor_removed_elsewhere(tmp_path: Path) -> None:
    path, victim = str(tmp_path / "docs.db"), tmp_path / "important.lookalike"
    victim.write_text("precious")
    with la.open_collection(path, bits=BITS, cache=False) as docs:
        docs.add(IDS, signatures=ROWS)  # as many as are worth a cache
    change(path, "uid", "../important")
    with pytest.raises(la.errors.CollectionError), la.open_collection(path) as docs:
        docs.search(ROWS[0])
        docs.close()
        docs.repair()
    assert victim.read_text() == "precious"


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("number", -1), ("number", 0), ("bits", 0), ("bits", 12), ("bits", 1 << 40), ("bits", -64),
        ("slice_bits", 0), ("slice_bits", 65), ("keep_text", 2), ("version", -1),
        ("documents", -5), ("next_signature", -1), ("signer", "x"), ("signer", "0" * 63),
    ],
)  # fmt: skip
def test_other_values_that_cannot_be(filled: str, column: str, value: Any) -> None:
    change(filled, column, value)
    with pytest.raises(la.errors.CollectionError, match="which lookalike did not write"):
        la.open_collection(filled, "documents")


@pytest.mark.parametrize(
    ("column", "value"),
    [("uid", b"\0" * 16), ("uid", 7), ("bits", "64"), ("bits", 64.5), ("documents", b"many"),
     ("digest", 0.5), ("digest", "x"), ("number", "1; DROP TABLE x"), ("removals_from", "x")],
)  # fmt: skip
def test_values_of_other_types(tmp_path: Path, column: str, value: Any) -> None:
    """SQLite keeps whatever it is given, unless a column's affinity can convert it."""
    path = str(tmp_path / "docs.db")
    la.open_collection(path, bits=BITS).close()
    other = sqlite3.connect(path)
    text = other.execute("SELECT sql FROM sqlite_master WHERE name = 'lookalike_collections'")
    plain = text.fetchone()[0].replace(" INTEGER PRIMARY KEY", "").replace(" INTEGER", "")
    with other:  # a table without types, as anybody may make one
        other.execute("ALTER TABLE lookalike_collections RENAME TO old")
        other.execute(plain.replace(" TEXT", ""))
        other.execute("INSERT INTO lookalike_collections SELECT * FROM old")
    other.close()
    la.open_collection(path).close()
    change(path, column, value)
    with pytest.raises(la.errors.CollectionError, match=f"as {column}, which|as slice_bits, which"):
        la.open_collection(path)


def test_a_bad_row_leaves_other_collections_alone(filled: str) -> None:
    la.open_collection(filled, "other", bits=BITS).close()
    change(filled, "uid", "../x", " WHERE name = 'other'")
    with la.open_collection(filled) as docs:
        assert docs.count() == 5
        assert docs.verify().ok


def test_a_link_in_the_cache_is_not_followed(tmp_path: Path) -> None:
    path, victim = tmp_path / "docs.db", tmp_path / "important"
    with la.open_collection(path, bits=BITS) as docs:
        docs.add(IDS, signatures=ROWS)
        state = docs._state()
    cache = cache_file(tmp_path / "docs.db.cache", state.uid)
    cache.parent.mkdir(exist_ok=True)
    cache.unlink(missing_ok=True)
    victim.write_text("precious")
    cache.symlink_to(victim)
    with la.open_collection(path) as docs:
        assert docs.search(ROWS[5], 1).ids == ["d5"]
    assert victim.read_text() == "precious"
    assert cache.is_file()
    assert not cache.is_symlink()


def test_another_signer_than_the_row_says_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "docs.db"
    with la.open_collection(path, signer=la.SimHash(bits=64)) as docs:
        docs.add(["a"], ["some text"])
    for description in ('{"signer": "SimHash", "bits": 64}', "{", "", "[" * 100_000):
        other = sqlite3.connect(path)
        with other:
            other.execute("UPDATE lookalike_signers SET description = ?", (description,))
        other.close()
        with la.open_collection(path) as docs:
            for use in (lambda: docs.search("text"), docs.stats, lambda: docs.add(["b"], ["t"])):
                with pytest.raises(
                    la.errors.CollectionError, match="description of the signer .* has changed"
                ):
                    use()
            assert docs.get("a") is not None


@pytest.mark.parametrize("parts", [False, True])
@pytest.mark.parametrize(
    "description",
    [
        json.dumps(la.SimHash(32).to_dict()),
        json.dumps(la.PassageHash(la.SimHash(32)).to_dict()),
        json.dumps(la.AudioHash().to_dict()),
        json.dumps(la.MinHash().to_dict()),
        "{",
        "[" * 100_000,
        "[]",
        "null",
        '"SimHash"',
    ],
)
def test_a_signer_that_cannot_be_is_refused_before_it_signs(
    tmp_path: Path, description: str, parts: bool
) -> None:
    """Whoever writes a database can write the hash, too."""
    path = tmp_path / "docs.db"
    la.open_collection(path, bits=64, parts=parts).close()
    with sqlite3.connect(path) as other:
        other.execute("UPDATE lookalike_signers SET description = ?", (description,))
        other.execute("UPDATE lookalike_collections SET signer = ?", (signer_hash(description),))
    other.close()
    with la.open_collection(path, cache=False) as docs:
        for call in (lambda: docs.add(["a"], ["one two"]), lambda: docs.search("one two")):
            with pytest.raises(la.LookalikeError):
                call()
        assert docs.count() == 0


def tables(url: str) -> list[tuple[str, ...]]:
    """Return everything that a database holds, by kind and name."""
    if not url.startswith("postgresql"):
        other = sqlite3.connect(url)
        found = other.execute("SELECT type, name FROM sqlite_master").fetchall()
        other.close()
        return sorted(found)
    with psycopg.connect(url) as connection:
        schemas = connection.execute("SELECT 'schema', nspname FROM pg_namespace").fetchall()
        names = connection.execute("SELECT schemaname, tablename FROM pg_tables").fetchall()
        views = connection.execute("SELECT schemaname, viewname FROM pg_views").fetchall()
        return sorted([*schemas, *names, *views])


def run(url: str, *statements: str) -> None:
    """Do something as another program does."""
    if url.startswith("postgresql"):
        with psycopg.connect(url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)
        return
    other = sqlite3.connect(url)
    with other:
        for statement in statements:
            other.execute(statement)
    other.close()


@pytest.fixture
def shop(url: str) -> Iterator[str]:
    """A database of others, without any collection."""
    run(url, "DROP TABLE IF EXISTS customers", "CREATE TABLE customers (x int)",
        "INSERT INTO customers VALUES (7)")  # fmt: skip
    yield url
    run(url, "DROP TABLE customers")


def test_looking_into_a_database_of_others_changes_nothing(shop: str, tmp_path: Path) -> None:
    before = tables(shop)
    sqlite = not shop.startswith("postgresql")
    data = Path(shop).read_bytes() if sqlite else b""
    assert la.list_collections(shop) == []
    for use in (
        lambda: la.open_collection(shop),
        lambda: la.open_collection(shop, bits=BITS, create=False),
        lambda: la.drop_collection(shop, "documents"),
        lambda: la.restore_collection(shop, tmp_path / "copy.db"),
    ):
        with pytest.raises(
            la.errors.NotFoundError, match="there (is no collection|are no collections)"
        ):
            use()
    assert tables(shop) == before
    assert not sqlite or Path(shop).read_bytes() == data
    assert not (tmp_path / "copy.db").exists()


def test_dropping_removes_our_tables_alone(shop: str) -> None:
    prefix = "lookalike." if shop.startswith("postgresql") else "lookalike_"
    la.open_collection(shop, bits=BITS).close()
    run(shop, f"CREATE TABLE {prefix}notes (x int)", "CREATE TABLE orders (x int)")
    empty = tables(shop)
    la.open_collection(shop, "other", bits=BITS).close()
    la.drop_collection(shop, "other")
    assert tables(shop) == empty
    la.drop_collection(shop, "documents")
    left = {name for _, name in tables(shop)}
    assert {"customers", "orders"} <= left
    assert "notes" in left or "lookalike_notes" in left
    assert not {name for name in left if "signatures" in name or "keys_" in name}
    run(shop, "DROP TABLE orders")


def test_a_view_of_others_on_our_tables_is_not_dropped_with_them(new_postgresql: str) -> None:
    url = new_postgresql
    with la.open_collection(url, bits=BITS) as docs:
        docs.add(IDS[:5], signatures=ROWS[:5])
    run(url, "CREATE VIEW report AS SELECT count(*) FROM lookalike.documents_1")
    before = tables(url)
    with pytest.raises(la.errors.CollectionError, match="other objects depend on it"):
        la.drop_collection(url, "documents")
    assert tables(url) == before
    with la.open_collection(url) as docs:
        assert len(docs) == 5
    run(url, "DROP VIEW report")
    la.drop_collection(url, "documents")
