"""What has changed by itself is noticed, and told in our words; nothing of it is returned."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lookalike as la
from lookalike.collection.care import verify as maintenance
from lookalike.collection.stores.schema import numbered

PAGE = 4096
ROWS = np.random.default_rng(0).integers(0, 256, (40, 8), dtype=np.uint8)
IDS = [f"d{i:02d}" for i in range(40)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A collection in which d01 is near d00, and d02 equal to it."""
    rows = ROWS.copy()
    rows[1] = rows[0] ^ np.eye(8, dtype=np.uint8)[0]
    rows[2] = rows[0]
    path = tmp_path / "docs.db"
    with la.open_collection(path, bits=64, durable=False) as docs:
        docs.add(IDS, [f"text of {id}" for id in IDS], signatures=rows, metadata=[{"n": 1}] * 40)
    return path


def execute(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def harm_ids(path: Path, change: Callable[[bytes], bytes]) -> None:
    """Change the one page of the index of ids."""
    connection = sqlite3.connect(path)
    (root,) = connection.execute(
        "SELECT rootpage FROM sqlite_master WHERE name = 'sqlite_autoindex_lookalike_documents_1_1'"
    ).fetchone()
    connection.close()
    data = path.read_bytes()
    page = slice((root - 1) * PAGE, root * PAGE)
    path.write_bytes(data[: page.start] + change(data[page]) + data[page.stop :])


def questions(text: bool = False) -> dict[str, Callable[[la.Collection], Any]]:
    """Everything that would return d01, or decide by it what to return."""
    asked: dict[str, Callable[[la.Collection], Any]] = {
        "duplicates": lambda docs: docs.duplicates_of("d00", 3, text=text),
        "pairs": lambda docs: docs.pairs(3),
    }
    for plan in ("native", "sql"):
        options: dict[str, Any] = {"plan": plan, "text": text}
        for where in (None, {"n": 1}, {"n": 2}):
            chosen = {**options, "where": where}
            asked[f"search {plan} {where}"] = partial(_search, chosen)
            asked[f"within {plan} {where}"] = partial(_within, chosen)
    return asked


def _search(options: dict[str, Any], docs: la.Collection) -> la.results.Answer:
    return docs.search(ROWS[0], 4, **options)


def _within(options: dict[str, Any], docs: la.Collection) -> la.results.Answer:
    return docs.within(ROWS[0], 3, **options)


@pytest.mark.parametrize(
    "damage",
    [
        """UPDATE lookalike_documents_1 SET metadata = '{"n":2}' WHERE id = 'd01'""",
        "UPDATE lookalike_documents_1 SET metadata = '{' WHERE id = 'd01'",
        "UPDATE lookalike_documents_1 SET metadata = x'ff' WHERE id = 'd01'",
        "UPDATE lookalike_documents_1 SET metadata = CAST(x'7bff' AS TEXT) WHERE id = 'd01'",
        "UPDATE lookalike_documents_1 SET id = 'd99' WHERE id = 'd01'",
        "UPDATE lookalike_documents_1 SET id = x'ff' WHERE id = 'd01'",
        "UPDATE lookalike_documents_1 SET added = added + 1 WHERE id = 'd01'",
        "UPDATE lookalike_documents_1 SET updated = 'x' WHERE id = 'd01'",
        "UPDATE lookalike_documents_1 SET checksum = 7 WHERE id = 'd01'",
        "UPDATE lookalike_documents_1 SET signature = (SELECT signature FROM lookalike_documents_1 "
        "WHERE id = 'd09') WHERE id = 'd01'",
        "DELETE FROM lookalike_documents_1 WHERE id = 'd01'",
        "UPDATE lookalike_signatures_1 SET signature = x'0102' WHERE number = (SELECT signature "
        "FROM lookalike_documents_1 WHERE id = 'd01')",
    ],
)
def test_searches_check_what_they_return(path: Path, damage: str) -> None:
    execute(path, damage)
    with la.open_collection(path, cache=False) as docs:
        for name, ask in questions().items():
            with pytest.raises(la.errors.CollectionError, match="damaged"):
                print(name, ask(docs))
        report = docs.verify()
        assert not report.ok
    with (
        la.open_collection(path) as docs,
        pytest.raises(la.errors.CollectionError, match="damaged"),
    ):
        docs.search(ROWS[0], 4)  # the saved index is whole, the documents are not


def test_a_text_is_checked_when_it_is_returned(path: Path) -> None:
    execute(path, "UPDATE lookalike_documents_1 SET text = x'00' WHERE id = 'd01'")
    with la.open_collection(path, cache=False) as docs:
        for ask in questions().values():
            ask(docs)
        for name, ask in questions(text=True).items():
            if name == "pairs":
                continue
            if name.endswith("{'n': 2}"):  # which d01 does not meet, whatever its text is
                assert "d01" not in ask(docs).ids
                continue
            with pytest.raises(
                la.errors.CollectionError, match="'d01' does not match its checksum"
            ):
                ask(docs)


def test_documents_from_before_are_checked_with_their_texts(path: Path) -> None:
    """Of schema version 1, whose checksums have no half that does without."""
    execute(path, "UPDATE lookalike_documents_1 SET checksum = checksum & 4294967295")
    with la.open_collection(path, cache=False) as docs:
        answers = {name: ask(docs) for name, ask in questions().items()}
        assert answers["search sql None"].ids[:3] == ["d00", "d02", "d01"]
        assert {match.text for match in answers["search sql None"]} == {None}
        assert docs.verify().ok
    execute(path, "UPDATE lookalike_documents_1 SET text = x'00' WHERE id = 'd01'")
    with la.open_collection(path, cache=False) as docs:
        for ask in questions().values():
            with pytest.raises(
                la.errors.CollectionError, match="'d01' does not match its checksum"
            ):
                ask(docs)


@pytest.mark.usefixtures("probes_only")
def test_a_slice_that_is_missing_is_noticed_by_the_others(path: Path) -> None:
    number = "(SELECT signature FROM lookalike_documents_1 WHERE id = 'd01')"
    for damage in (
        f"DELETE FROM lookalike_keys_1 WHERE key >= 2 << 32 AND signature = {number}",
        f"UPDATE lookalike_keys_1 SET signature = 7777 WHERE signature = {number}",
    ):
        execute(path, damage)
        with la.open_collection(path, plan="sql") as docs:
            with pytest.raises(la.errors.CollectionError, match="damaged"):
                docs.within(ROWS[0], 2)
            assert docs.repair().ok
            assert docs.within(ROWS[0], 2).ids == ["d00", "d02", "d01"]


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE lookalike_collections SET bits = 'x'",
        "UPDATE lookalike_collections SET bits = 12",
        "UPDATE lookalike_collections SET slice_bits = 0",
        "UPDATE lookalike_collections SET slice_bits = NULL",
        "UPDATE lookalike_collections SET signatures = -1",
        "UPDATE lookalike_collections SET uid = x'00'",
        "UPDATE lookalike_schema SET version = 'x'",
        "UPDATE lookalike_schema SET version = -1",
    ],
)
def test_rows_that_cannot_be_are_refused(path: Path, damage: str) -> None:
    try:
        execute(path, damage)
    except sqlite3.IntegrityError:
        execute(
            path, "PRAGMA writable_schema=ON",
            "UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '')",
        )  # fmt: skip
        execute(path, damage)
    with pytest.raises(la.errors.CollectionError, match="damaged"):
        la.open_collection(path)


def test_a_signer_that_has_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "docs.db"
    la.open_collection(path, signer=la.SimHash(bits=64, seed=1)).close()
    execute(
        path,
        """UPDATE lookalike_signers SET description = replace(description,
        '"seed": 1', '"seed": 2')""",
    )
    with la.open_collection(path) as docs:
        with pytest.raises(
            la.errors.CollectionError, match="description of the signer .* has changed"
        ):
            docs.search("any text")
        assert not docs.verify().ok


def test_ids_out_of_order_come_to_an_end(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the index of ids, the sixth is before the first: whoever pages by ids begins again."""
    harm_ids(path, lambda page: page.replace(b"d05", b"a05"))
    monkeypatch.setattr(maintenance, "_PAGE", 6)
    with la.open_collection(path, cache=False) as docs:
        report = docs.verify()
        assert any("'d04' comes 'a05'" in problem for problem in report.problems)
        assert report.keys == 3 * 39, "what comes behind is looked at all the same"
        with pytest.raises(la.errors.CollectionError, match="damaged"):
            list(docs)
        with pytest.raises(la.errors.CollectionError, match="damaged"):
            docs.count({"n": 2})
        assert docs.repair().ok, "the index can be made again from the table"
        assert [document.id for document in docs] == IDS


def test_a_copy_does_not_lack_documents(path: Path, tmp_path: Path) -> None:
    execute(path, "DELETE FROM lookalike_documents_1 WHERE id = 'd02'")
    with pytest.raises(
        la.errors.CollectionError, match="39 documents are there to be copied, not 40"
    ):
        la.restore_collection(path, tmp_path / "other.db")
    assert la.list_collections(tmp_path / "other.db") == []


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("UPDATE lookalike_collections SET next_signature = 3", "not given out yet"),
        ("DELETE FROM lookalike_signers", "description of the signer"),
        ("UPDATE lookalike_signers SET description = '{}'", "description of the signer"),
    ],
)
def test_a_copy_does_not_hand_damage_on(tmp_path: Path, damage: str, message: str) -> None:
    path = tmp_path / "docs.db"
    with la.open_collection(path, signer=la.SimHash(bits=64), durable=False) as docs:
        docs.add(IDS, [f"text of {id}" for id in IDS])
    execute(path, damage)
    with la.open_collection(path, cache=False) as docs:
        assert not docs.verify().ok
    with pytest.raises(la.errors.CollectionError, match=message):
        la.restore_collection(path, tmp_path / "other.db")
    assert la.list_collections(tmp_path / "other.db") == []


def test_numbers_that_are_used_are_not_given_out_again(path: Path) -> None:
    execute(path, "UPDATE lookalike_collections SET next_signature = 3")
    with la.open_collection(path, cache=False) as docs:
        with pytest.raises(la.errors.CollectionError, match="not given out yet"):
            docs.search(ROWS[0], 4, plan="native")
        assert docs.repair().ok
        docs.add(["new"], signatures=255 - ROWS[:1])
        assert docs.verify().ok


@pytest.mark.parametrize("word", ["INTEGET", "TEXT", "REAL"])
def test_numbers_that_the_schema_makes_something_else_are_refused(path: Path, word: str) -> None:
    """A column of another type is not the one in which SQLite keeps the numbers of rows."""
    execute(
        path, "PRAGMA writable_schema=ON",
        f"UPDATE sqlite_master SET sql = replace(sql, 'number INTEGER', 'number {word}') "
        "WHERE name = 'lookalike_signatures_1'",
    )  # fmt: skip
    with pytest.raises(la.errors.CollectionError, match="damaged"):
        la.restore_collection(path, path.with_name("other.db"))
    for plan in ("native", "sql"):
        with (
            pytest.raises(la.errors.CollectionError, match="damaged"),
            la.open_collection(path, cache=False) as docs,
        ):
            docs.search(ROWS[0], 4, plan=plan)


@pytest.mark.parametrize("rows", [[(1.5, b"12")], [("1", b"12")], [(1, "12")], [(1, b"1")]])
def test_a_table_of_signatures_holds_numbers_and_bytes(rows: list[Any]) -> None:
    with pytest.raises(la.errors.CollectionError, match="has values that are not|has other values"):
        numbered(rows, 2)


def test_a_schema_that_cannot_be_decoded_is_named(path: Path, tmp_path: Path) -> None:
    """SQLite repeats what it cannot read, and the driver cannot decode that."""
    whole = path.read_bytes()
    place = whole.index(b"CREATE TABLE lookalike_keys_1")
    path.write_bytes(whole[:place] + b"CREATE \xff\xfe" + whole[place + 9 :])
    for use in (
        la.open_collection,
        la.list_collections,
        lambda path: la.drop_collection(path, "documents"),
        lambda path: la.restore_collection(path, tmp_path / "other.db"),
        lambda path: la.restore_collection(tmp_path / "other.db", path),
    ):
        la.open_collection(tmp_path / "other.db", bits=64).close()
        with pytest.raises(la.errors.CollectionError, match="not UTF-8.*damaged"):
            use(path)


def test_what_has_changed_is_not_passed_on_by_replacing(path: Path) -> None:
    execute(path, "UPDATE lookalike_documents_1 SET added = 0 WHERE id = 'd01'")
    with la.open_collection(path) as docs:
        docs.upsert(["d01"], ["new"], signatures=ROWS[1:2])
        document = docs.get("d01")
        assert document is not None
        assert document.added == document.updated, "when it was added is not known any more"
        assert docs.verify().ok


def test_what_reads_all_documents_has_them_all(path: Path, tmp_path: Path) -> None:
    """The index of ids is empty, so SQLite finds none by id; their number tells."""
    harm_ids(path, lambda page: b"\x0a\0\0\0\0\0\0\0" + page[8:])
    with la.open_collection(path, cache=False) as docs:
        for ask in (list, lambda docs: docs.count({"n": 1}), lambda docs: list(docs.pages(7))):
            with pytest.raises(la.errors.CollectionError, match="0 documents can be read"):
                ask(docs)
        with pytest.raises(la.errors.CollectionError, match="0 documents can be read"):
            docs.export(tmp_path / "all.jsonl")
        assert not (tmp_path / "all.jsonl").exists()
        assert not docs.verify().ok
        assert docs.repair().ok
        assert [document.id for document in docs] == IDS
