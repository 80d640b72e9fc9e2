"""What people and programs send by mistake or on purpose."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import lookalike as la
from lookalike.collection.stores.address import parse_address

SQL = "x'); DROP TABLE lookalike_documents_1; --"
ROW = np.zeros((1, 8), np.uint8)


@pytest.fixture
def docs(url: str) -> Any:
    with la.open_collection(url, bits=64, cache=False) as collection:
        yield collection


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("id", "message"),
    [
        ("x" * 10_000, "10000 bytes of UTF-8; expected at most 1000"),
        ("ä" * 501, "1002 bytes"),
        ("", "empty"),
        ("a\0b", "NUL"),
        ("a\ud800", "half of a surrogate pair"),
        (7, "type int"),
        (None, "type NoneType"),
        (b"bytes", "type bytes"),
    ],
)
def test_ids(docs: la.Collection, id: Any, message: str) -> None:
    with pytest.raises(la.errors.BatchError, match=message) as caught:
        docs.add(["fine", id], signatures=np.repeat(ROW, 2, axis=0))
    assert [error.position for error in caught.value.errors] == [1]
    assert docs.count() == 0, "all or nothing"
    written = docs.add(["fine", id], signatures=np.repeat(ROW, 2, axis=0), on_error="skip")
    assert written.added == 1
    assert message in written.errors[0].message
    assert docs.get(id) is None


def test_the_longest_id_and_every_character(docs: la.Collection) -> None:
    ids = ["x" * 1000, SQL, "'", '"', "%s", "?", ":name", "\\", "\x01", "\n", "🦊", "NULL", "a b"]
    docs.add(ids, signatures=np.repeat(ROW, len(ids), axis=0))
    assert [document.id for document in docs] == sorted(ids)
    assert docs.search(ROW[0], 20).ids == sorted(ids)
    assert docs.search(ROW[0], 20, exclude=ids[:12], plan="sql").ids == ["a b"]
    assert docs.delete(ids).deleted == len(ids)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        (nested(101), "more than 100 levels"),
        (nested(100_000), "more than 100 levels"),
        ({"a": float("nan")}, "JSON"),
        ({"a": {1, 2}}, "JSON"),
        ({"a": "\ud800"}, "surrogate"),
        ([1], "type list"),
        ("text", "type str"),
        ({"a": "x" * (33 << 20)}, "expected at most 33554432"),
    ],
    ids=["deep", "deeper", "nan", "set", "surrogate", "list", "text", "huge"],
)
def test_metadata(docs: la.Collection, metadata: Any, message: str) -> None:
    with pytest.raises(la.errors.BatchError, match=message):
        docs.add(["a"], signatures=ROW, metadata=[metadata])
    assert docs.count() == 0


def test_metadata_come_back_as_they_were(docs: la.Collection) -> None:
    wild = {
        SQL: SQL,
        "": [],
        "nul\0": "\0",
        "list": [1, 2.5, None, True, {"x": "y"}],
        "big": 2**70,
        "emoji": "🦊",
        "quote": "'\"\\",
        "deep": nested(90),
    }
    docs.add(["wild"], signatures=ROW, metadata=[wild])
    document = docs.get("wild")
    assert document is not None
    assert document.metadata == wild
    assert docs.verify().ok


def test_a_million_keys(docs: la.Collection) -> None:
    many = {f"key {number}": number for number in range(1_000_000)}
    docs.add(["many", "few"], signatures=np.repeat(ROW, 2, axis=0), metadata=[many, {}])
    (match,) = docs.search(ROW[0], 2, where={"key 999999": 999_999})
    assert match.metadata == many


@pytest.mark.parametrize("text", ["nul \0 in the middle", SQL, "", "🦊" * 1000, "\x01\x1f\x7f"])
def test_texts_come_back_as_they_were(url: str, text: str) -> None:
    with la.open_collection(url, signer=la.SimHash(bits=64), cache=False) as docs:
        docs.add(["a"], [text], metadata=[{"t": text}])
        document = docs.get("a")
        assert document is not None
        assert document.text == text
        for plan in ("native", "sql"):
            (match,) = docs.search(text, 1, plan=plan, text=True)
            assert (match.id, match.distance, match.text) == ("a", 0, text)


def test_a_bad_text_is_named_by_its_item(url: str) -> None:
    with la.open_collection(url, signer=la.SimHash(bits=64), cache=False) as docs:
        written = docs.add(["a", "b", "c"], ["one", None, "\ud800"], on_error="skip")  # type: ignore[list-item]
        assert written.added == 1
        assert [(error.position, error.id) for error in written.errors] == [(1, "b"), (2, "c")]


def test_names_of_collections(url: str) -> None:
    for name in (SQL, "it's", 'say "hi"', "%s?", "größe"):
        with la.open_collection(url, name, bits=64, cache=False) as docs:
            docs.add(["a"], signatures=ROW)
            assert docs.count() == 1
    assert len(la.list_collections(url)) == 5
    la.drop_collection(url, SQL)
    assert SQL not in la.list_collections(url)
    for bad in ("", "\0", "a\nb", "x" * 201, 7):
        with pytest.raises(la.errors.ArgumentError, match="name of the collection"):
            la.open_collection(url, bad, bits=64)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("signatures", "message"),
    [
        (np.zeros((1, 7), np.uint8), "56 bits, the index has 64|56 bits"),
        (np.zeros((1, 16), np.uint8), "128 bits"),
        (np.zeros((1, 8), np.float32), "float32"),
        (np.zeros((2, 8), np.uint8), "1 ids and 2 signatures"),
        ([["a"]], "expected uint8"),
    ],
)
def test_signatures(docs: la.Collection, signatures: Any, message: str) -> None:
    with pytest.raises(la.LookalikeError, match=message):
        docs.add(["a"], signatures=signatures)
    assert docs.count() == 0


def test_arguments(docs: la.Collection) -> None:
    docs.add(["a"], signatures=ROW)
    calls: list[tuple[Any, str]] = [
        (lambda: docs.add(["b"]), "neither texts nor signatures"),
        (lambda: docs.add("b", signatures=ROW), "ids is a str"),
        (lambda: docs.add(["b"], ["text"]), "no signer of texts"),
        (lambda: docs.search("text"), "no signer of texts"),
        (lambda: docs.search(np.zeros((2, 8), np.uint8)), "expected one"),
        (lambda: docs.search(ROW[0], 0), "k is 0"),
        (lambda: docs.within(ROW[0], -1), "radius is -1"),
        (lambda: docs.within(ROW[0], 1, limit=0), "limit is 0"),
        (lambda: docs.search(ROW[0], plan=cast(Any, "fast")), "plan is 'fast'"),
        (lambda: docs.search(ROW[0], where=cast(Any, [1])), "where is of type list"),
        (lambda: docs.search(ROW[0], where={"a": {"~": 1}}), "operation '~'"),
        (lambda: docs.duplicates_of("nobody", 3), "no document 'nobody'"),
        (lambda: docs.add(["b"], signatures=ROW, on_error=cast(Any, "x")), "on_error is 'x'"),
        (lambda: docs.add(["b"], signatures=ROW, metadata=[]), "1 ids and 0 metadata"),
    ]
    for call, message in calls:
        with pytest.raises(la.LookalikeError, match=message):
            call()
    assert docs.count() == 1


def test_opening(tmp_path: Path) -> None:
    path = tmp_path / "docs.db"
    with pytest.raises(la.errors.NotFoundError, match="to create one, pass purpose="):
        la.open_collection(path)
    assert not path.exists(), "looking does not make files"
    with pytest.raises(la.errors.NotFoundError, match="no file"):
        la.open_collection(tmp_path / "other.db", bits=64, create=False)
    la.open_collection(path, signer=la.SimHash(bits=64)).close()
    la.open_collection(path, signer=la.SimHash(bits=64)).close()
    for options, message in [
        ({"signer": la.SimHash(bits=64, seed=1)}, "another signer"),
        ({"signer": la.TopSig(bits=64)}, "another signer"),
        ({"bits": 128}, "has 64 bits, not 128"),
        ({"slice_bits": 9}, "slices of 26 bits"),
        ({"plan": "quick"}, "plan is 'quick'"),
        ({"timeout": -1}, "timeout is -1"),
        ({"timeout": "x"}, "timeout is 'x'"),
    ]:
        with pytest.raises(la.errors.ArgumentError, match=message):
            la.open_collection(path, **options)  # type: ignore[arg-type]
    for options, message in [
        ({"bits": 7}, "bits is 7"),
        ({"bits": 12}, "multiple of 8"),
        ({"bits": 1 << 20}, "from 8 to 16384"),
        ({"signer": la.MinHash()}, "use la.BBitMinHash"),
        ({"signer": "simhash"}, "expected one such as"),
        ({"bits": 64, "slice_bits": 33}, "slice_bits is 33"),
    ]:
        with pytest.raises(la.errors.ArgumentError, match=message):
            la.open_collection(path, "new", **options)  # type: ignore[arg-type]
    assert la.list_collections(path) == ["documents"]
    with pytest.raises(la.errors.CollectionError, match="cannot be opened"):
        la.open_collection(tmp_path / "no" / "such" / "folder.db", bits=64)


def test_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_address("docs.db").path == tmp_path / "docs.db"
    assert parse_address(Path("docs.db")).path == tmp_path / "docs.db"
    assert parse_address("sqlite:///docs.db").path == tmp_path / "docs.db"
    assert parse_address("sqlite:////data/my%20docs.db").path == Path("/data/my docs.db")
    assert parse_address("postgres://me:pw@host/db").url == "postgresql://me:pw@host/db"
    assert parse_address("postgresql://me:pw@host:5/db").shown == "postgresql://me:***@host:5/db"
    for bad in (
        "",
        ":memory:",
        "file:x?mode=memory",
        "sqlite://",
        "sqlite://host/x",
        "mysql://x/y",
    ):
        with pytest.raises(la.errors.ArgumentError):
            parse_address(bad)
    # Characters that mean something in a URI are only characters in the name of a file.
    for name in ("a?b.db", "a#b.db", "a%20b.db", "ä b.db"):
        with la.open_collection(name, bits=64, cache=False) as docs:
            docs.add(["x"], signatures=ROW)
        assert (tmp_path / name).exists()
