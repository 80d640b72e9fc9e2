"""Vectors beside texts in one collection: search, fusion, what is refused, damage, and copies."""

from __future__ import annotations

import base64
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import lookalike as la
from lookalike.collection.search import vectors as vector_search
from lookalike.collection.stores.base import View
from lookalike.collection.vectors import decoded_vector, encoded_vector, packed_vectors
from support.oracles import collections as model
from support.oracles import vectors as oracle

TEXTS = {
    "fox": "the quick brown fox jumps over the lazy dog",
    "owl": "an owl sees in the dark, and sleeps by day",
    "sea": "waves of the sea",
    "law": "minimum wage legislation was debated on Tuesday",
}
VECTORS = {"fox": [1.0, 0.5, 0.0], "owl": [0.9, 0.1, 0.3], "sea": [0.0, 0.2, 1.0]}


def fill(docs: la.Collection) -> None:
    metadata = [{"n": n} for n in range(len(TEXTS))]
    vectors = [VECTORS.get(id) for id in TEXTS]
    docs.add(list(TEXTS), list(TEXTS.values()), metadata=metadata, vectors=vectors)


def filled(url: str | Path, **options: Any) -> la.Collection:
    docs = la.open_collection(url, "texts", signer=la.SimHash(64), words="porter", **options)
    fill(docs)
    return docs


def execute(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def random_rows(count: int, dimensions: int = 6, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=(count, dimensions)).astype(np.float32)


def test_vectors_find_documents_and_missing_ones_do_not(url: str) -> None:
    with filled(url) as docs:
        answer = docs.search(vector=[2.0, 1.0, 0.0], k=10)
        assert answer.ids == ["fox", "owl", "sea"]
        (cosines,) = oracle.cosines(np.array([[2.0, 1.0, 0.0]]), np.array([*VECTORS.values()]))
        scores = [match.score or 0.0 for match in answer]
        assert scores == pytest.approx(cosines.tolist())
        assert answer.distances == [round(65536 * (1 - score)) for score in scores]
        assert (answer.by, answer.exact, answer.version) == ("vector", True, 1)
        assert docs.search(vector=[2, 1, 0], k=1, text=True)[0].text == TEXTS["fox"]
        assert docs.search(vector=[2, 1, 0], where={"n": {">=": 1}}, exclude=["owl"]).ids == ["sea"]
        assert docs.search("minimum wage").ids == ["law"]
        assert docs.dimensions == 3
        stats = docs.stats()
        assert (stats["vectors"], stats["dimensions"]) == (3, 3)


def test_text_and_vector_are_fused(url: str) -> None:
    with filled(url) as docs:
        answer = docs.search("owl in the sea", 3, vector=[0.0, 0.1, 1.0])
        words = docs.search("owl in the sea", 100).ids
        near = docs.search(vector=[0.0, 0.1, 1.0], k=100).ids
        assert [(match.ranks, match.id) for match in answer] == model.fused(words, near, 3)
        assert answer.by == "fused"
        assert [m.score for m in answer] == sorted([m.score for m in answer], reverse=True)  # type: ignore[type-var]
        similar = docs.search(TEXTS["law"], 4, vector=VECTORS["sea"], by="similar", radius=0)
        assert [(match.id, match.ranks) for match in similar] == [
            ("law", (1, 0)), ("sea", (0, 1)), ("owl", (0, 2)), ("fox", (0, 3)),
        ]  # fmt: skip


def test_many_queries_at_once(url: str) -> None:
    with filled(url) as docs:
        rows = np.array([*VECTORS.values()], np.float32)
        assert [a.ids[0] for a in docs.search_many(vectors=rows, k=1)] == list(VECTORS)
        both = docs.search_many(["owl", "fox"], 4, vectors=rows[:2])
        assert list(both) == [
            docs.search("owl", 4, vector=rows[0]),
            docs.search("fox", 4, vector=rows[1]),
        ]
        often = docs.search_many(["owl", "fox"] * 70, 4, vectors=np.tile(rows[:2], (70, 1)))
        assert list(often) == list(both) * 70
        assert docs.search_many(vectors=np.empty((0, 3))) == []
        assert docs.search_many([], vectors=np.empty((0, 3))) == []
        with pytest.raises(la.errors.ArgumentError, match="2 queries and 3 vectors"):
            docs.search_many(["owl", "fox"], vectors=rows)


def test_replaced_and_deleted_documents(url: str) -> None:
    with filled(url) as docs, la.open_collection(url, "texts", cache=False) as other:
        for handle in (docs, other):
            assert handle.search(vector=VECTORS["fox"]).ids == ["fox", "owl", "sea"]
        docs.upsert(["fox"], [TEXTS["fox"]])  # without its vector
        docs.upsert(["law"], ["other"], vectors=[VECTORS["fox"]])
        docs.delete("owl")
        for handle in (docs, other):
            assert handle.search(vector=VECTORS["fox"]).ids == ["law", "sea"]
            assert handle.get("fox").vector is None  # type: ignore[union-attr]
        assert other.verify().ok


def test_equal_vectors_come_in_the_order_of_writing(url: str) -> None:
    with la.open_collection(url, bits=64) as docs:
        docs.upsert(
            ["c", "a", "b", "c"], signatures=np.zeros((4, 8), np.uint8), vectors=np.ones((4, 2))
        )
        assert docs.search(vector=[1, 1], k=2).ids == ["a", "b"]
        docs.upsert(["a"], signatures=np.zeros((1, 8), np.uint8), vectors=[[2, 2]])
        assert docs.search(vector=[1, 1]).ids == ["b", "c", "a"]


@pytest.mark.parametrize(
    ("vector", "message"),
    [
        ([1, 2], "has 2 dimensions; expected 3"),
        ([], "has 0 dimensions; expected 3"),
        ([0, 0, 0], "is zero"),
        ([1e-60, 0, 0], "is zero"),
        ([1, np.nan, 0], "infinite or not a number"),
        ([1, -np.inf, 0], "infinite or not a number"),
        ([1, 1e300, 0], "beyond what float32 can hold"),
        ("abc", "is text; expected a list of numbers"),
        ([[1, 2, 3]], r"shape \(1, 3\); expected a list of numbers"),
        ([True, False, True], "array of bool"),
        ([1, [2], 3], "cannot be read"),
        (7, r"shape \(\)"),
        ({"x": 1}, "array of object"),
    ],
)
def test_what_is_not_a_vector(tmp_path: Path, vector: Any, message: str) -> None:
    with filled(tmp_path / "docs.db") as docs:
        with pytest.raises(la.errors.BatchError, match=message):
            docs.upsert(["new", "bad"], ["a", "b"], vectors=[[1, 1, 1], vector])
        assert docs.version == 1
        written = docs.upsert(
            ["new", "bad"], ["a", "b"], vectors=[[1, 1, 1], vector], on_error="skip"
        )
        assert (written.added, [error.id for error in written.errors]) == (1, ["bad"])
        with pytest.raises(la.errors.ArgumentError, match=message):
            docs.search(vector=vector)
        assert docs.verify().ok


def test_the_first_vector_fixes_the_dimensions(tmp_path: Path) -> None:
    with la.open_collection(tmp_path / "docs.db", signer=la.SimHash(64)) as docs:
        with pytest.raises(la.errors.ArgumentError, match="has no vectors; add documents with"):
            docs.search(vector=[1, 2])
        with pytest.raises(la.errors.BatchError, match="item 1 .*has 2 dimensions; expected 3"):
            docs.add(["a", "b"], ["x", "y"], vectors=[[1, 2, 3], [1, 2]])
        docs.add(["a"], ["x"], vectors=[None])
        assert docs.dimensions == 0
        docs.add(["b"], ["x"], vectors=[[1, 2]])
        assert docs.dimensions == 2
        docs.delete(["a", "b"])
        assert docs.search(vector=[1, 1]).ids == []
        with pytest.raises(la.errors.BatchError, match="expected 2"):
            docs.add(["c"], ["x"], vectors=[[1, 2, 3]])
        with pytest.raises(la.errors.BatchError, match="expected 1 to 16384"):
            la.open_collection(tmp_path / "wide.db", bits=64).add(
                ["a"], signatures=np.zeros((1, 8), np.uint8), vectors=np.ones((1, 16385))
            )


def test_two_writers_of_first_vectors(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have seen no vectors yet; the second one to write is refused, as a whole."""
    with la.open_collection(url, bits=64) as one, la.open_collection(url) as other:
        state = other._state()
        one.add(["a"], signatures=np.zeros((1, 8), np.uint8), vectors=[[1, 2]])
        with monkeypatch.context() as patched:
            patched.setattr(other, "_state", lambda: state)
            with pytest.raises(la.errors.ArgumentError, match="3 dimensions; expected 2"):
                other.add(["b"], signatures=np.ones((1, 8), np.uint8), vectors=[[1, 2, 3]])
        assert other.get("b") is None
        assert other.search(vector=[1, 2]).ids == ["a"]
        assert other.verify().ok


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"radius": 3}, "radius is for signatures"),
        ({"mask": True}, "mask is for signatures"),
        ({"by": "words"}, "only a vector"),
        ({"min_votes": 3}, "only for documents of many parts"),
        ({"exact": "yes"}, "exact"),
    ],
)
def test_options_that_are_not_for_vectors(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with (
        filled(tmp_path / "docs.db") as docs,
        pytest.raises(la.errors.ArgumentError, match=message),
    ):
        docs.search(vector=[1, 1, 1], **options)


def test_searches_for_nothing_and_collections_of_parts(tmp_path: Path) -> None:
    with filled(tmp_path / "docs.db") as docs:
        for ask in (docs.search, docs.search_many):
            with pytest.raises(la.errors.ArgumentError, match="there is no query"):
                ask()
        with pytest.raises(la.errors.ArgumentError, match=r"shape \(3,\)"):
            docs.search_many(vectors=np.ones(3))
    with la.open_collection(tmp_path / "parts.db", bits=8, parts=True) as parts:
        with pytest.raises(la.errors.ArgumentError, match="vectors are for documents of one sig"):
            parts.add(["a"], signatures=[np.zeros((1, 1), np.uint8)], vectors=[[1, 2]])
        with pytest.raises(la.errors.ArgumentError, match="there is no query"):
            parts.search()


def test_a_part_of_the_vectors_is_read(tmp_path: Path) -> None:
    rows = random_rows(3000)
    with la.open_collection(tmp_path / "docs.db", bits=64) as docs:
        names = [f"{n}" for n in range(3000)]
        metadata = [{"even": n % 2 == 0} for n in range(3000)]
        docs.add(names, signatures=np.zeros((3000, 8), np.uint8), vectors=rows, metadata=metadata)
        exact = docs.search(vector=rows[5], k=10)
        found = docs.search(vector=rows[5], k=10, exact=False, exclude=["5"])
        assert exact.exact
        assert not found.exact
        assert len(set(found.ids) & set(exact.ids)) >= 7
        assert "5" not in found.ids
        # A condition may need any number of vectors.
        even = docs.search(vector=rows[5], k=10, exact=False, where={"even": True})
        assert even.exact
        (cosines,) = oracle.cosines(rows[5:6], rows[::2])
        assert even.ids == [str(2 * n) for n in np.argsort(-cosines, kind="stable")[:10]]


def test_the_index_is_saved_and_catches_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = random_rows(1500)
    names = [f"{n}" for n in range(1500)]
    with la.open_collection(tmp_path / "docs.db", bits=64) as docs:
        docs.add(names, signatures=np.zeros((1500, 8), np.uint8), vectors=rows)
        docs.refresh()
    saved = [path.name for path in tmp_path.rglob("*-vectors.lookalike")]
    assert len(saved) == 1
    built: list[int] = []
    build = vector_search.VectorSearch._built

    def counted(self: vector_search.VectorSearch, view: View) -> Any:
        built.append(1)
        return build(self, view)

    monkeypatch.setattr(vector_search.VectorSearch, "_built", counted)
    with la.open_collection(tmp_path / "docs.db") as docs:
        docs.delete("7")
        docs.upsert(["x"], signatures=np.zeros((1, 8), np.uint8), vectors=rows[7:8])
        assert docs.search(vector=rows[7], k=1).ids == ["x"]
        assert built == []
        # More changes than there are vectors: it is built again.
        monkeypatch.setattr(vector_search.VectorSearch, "_outgrown", lambda *_: True)
        docs.delete("8")
        assert docs.search(vector=rows[8], k=1).ids != ["8"]
        assert built == [1]
    la.drop_collection(tmp_path / "docs.db", "documents")
    assert list(tmp_path.rglob("*.lookalike")) == []


def test_copies_have_the_vectors(url: str, new_url: Callable[[], str], tmp_path: Path) -> None:
    with filled(url) as docs:
        docs.upsert(["sea"], ["waves"], vectors=[VECTORS["sea"]])
        docs.snapshot(tmp_path / "copy.db")
        documents = list(docs)
    there = new_url()
    la.restore_collection(tmp_path / "copy.db", there, "again")
    with la.open_collection(there, "again") as again:
        assert again.verify().ok
        assert list(again) == documents
        assert again.search(vector=VECTORS["sea"], k=1).ids == ["sea"]
        again.upsert(["law"], ["x"], vectors=[[1, 1, 1]])
        assert again.verify().ok


@pytest.mark.parametrize("suffix", ["jsonl", "parquet", "csv"])
def test_export_and_import(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"all.{suffix}"
    with filled(tmp_path / "docs.db") as docs:
        assert docs.export(path) == 4
        expected = {document.id: document.vector for document in docs}
    with la.open_collection(tmp_path / "new.db", signer=la.SimHash(64)) as new:
        assert new.import_file(path).added == 4
        for document in new:
            one, other = document.vector, expected[document.id]
            assert (None if one is None else one.tobytes()) == (
                None if other is None else other.tobytes()
            )
            assert set(document.metadata) == {"n"}


def test_columns_of_vectors(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": id, "text": text, "embedding": VECTORS.get(id)} for id, text in TEXTS.items()
    ]
    with la.open_collection(tmp_path / "docs.db", signer=la.SimHash(64)) as docs:
        docs.import_file(rows, vectors="embedding")
        assert docs.search(vector=VECTORS["owl"], k=1).ids == ["owl"]
        assert docs.get("owl").metadata == {}  # type: ignore[union-attr]
        with pytest.raises(la.errors.ArgumentError, match="no column 'embed' for the vectors"):
            docs.import_file(rows, vectors="embed")
        bad = [*rows, {"id": "bad", "text": "x", "embedding": [1.0]}]
        with pytest.raises(la.errors.BatchError, match="has 1 dimensions; expected 3"):
            docs.import_file(bad, vectors="embedding", replace=True)
        done = docs.import_file(bad, vectors="embedding", replace=True, skip_bad=True)
        assert (done.updated, done.bad) == (4, 1)
        # A column that is called like that of an export is metadata elsewhere.
        docs.import_file([{"id": "v", "text": "x", "vector": "any"}])
        assert docs.get("v").metadata == {"vector": "any"}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE lookalike_vectors_1 SET vectors = zeroblob(12) WHERE id = 'fox'", "checksum"),
        ("UPDATE lookalike_vectors_1 SET vectors = 'text' WHERE id = 'fox'", "other types"),
        ("DELETE FROM lookalike_vectors_1 WHERE id = 'fox'", "has 2 documents"),
        ("UPDATE lookalike_vectors_1 SET id = 'nobody' WHERE id = 'fox'", "belong to no document"),
        ("UPDATE lookalike_collections SET vectors = 7", "not the 7"),
        ("UPDATE lookalike_collections SET vectors_digest = 7", "are not the 3"),
        ("UPDATE lookalike_collections SET dimensions = 4", "not of 4 dimensions"),
        ("UPDATE lookalike_collections SET next_vectors = 2", "are not the 3"),
    ],
)
def test_damaged_vectors_are_noticed(tmp_path: Path, statement: str, problem: str) -> None:
    path = tmp_path / "docs.db"
    filled(path, cache=False).close()
    execute(path, statement)
    with la.open_collection(path, "texts", cache=False) as docs:
        assert problem in str(docs.verify().problems)
        vector = np.ones(docs.dimensions)
        with pytest.raises(la.errors.CollectionError, match="damaged"):
            docs.search(vector=vector)
        assert docs.search("fox").ids == ["fox"]


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM lookalike_vectors_1 WHERE id = 'fox'",
        "UPDATE lookalike_vectors_1 SET id = 'nobody', hash = 5 WHERE id = 'fox'",
        "UPDATE lookalike_collections SET vectors = 7, vectors_digest = 8, next_vectors = 1",
    ],
)
def test_counts_of_vectors_are_repaired(url: str, kind: str, statement: str) -> None:
    filled(url, cache=False).close()
    prefix, other = "lookalike_", "lookalike_"
    if kind == "postgresql":
        other = "lookalike."
    connection: Any = sqlite3.connect(url) if kind == "sqlite" else psycopg.connect(url)
    connection.execute(statement.replace(prefix, other))
    connection.commit()
    connection.close()
    with la.open_collection(url, "texts", cache=False) as docs:
        assert not docs.verify().ok
        assert docs.repair().ok
        left = [id for id in VECTORS if id != "fox" or "collections" in statement]
        assert docs.search(vector=VECTORS["fox"]).ids == left
        docs.upsert(["fox"], ["again"], vectors=[VECTORS["fox"]])
        assert docs.search(vector=VECTORS["fox"], k=1).ids == ["fox"]
        assert docs.verify().ok


def test_a_damaged_vector_is_not_repaired_but_replaced(tmp_path: Path) -> None:
    path = tmp_path / "docs.db"
    filled(path, cache=False).close()
    execute(path, "UPDATE lookalike_vectors_1 SET vectors = zeroblob(12) WHERE id = 'fox'")
    with la.open_collection(path, "texts", cache=False) as docs:
        assert "vector of the document 'fox'" in str(docs.repair().problems)
        with pytest.raises(la.errors.CollectionError, match="do not match their checksum"):
            docs.get("fox")
        docs.upsert(["fox"], ["again"], vectors=[VECTORS["fox"]])
        assert docs.verify().ok
        assert docs.search(vector=VECTORS["fox"], k=1).ids == ["fox"]


def test_databases_from_before_take_vectors(kind: str, url: str) -> None:
    with la.open_collection(url, bits=64) as docs:
        docs.add(["old"], signatures=np.zeros((1, 8), np.uint8))
    prefix = "lookalike_" if kind == "sqlite" else "lookalike."
    connection: Any = sqlite3.connect(url) if kind == "sqlite" else psycopg.connect(url)
    for column in ("dimensions", "vectors", "next_vectors", "vectors_digest"):  # as version 4 was
        connection.execute(f"ALTER TABLE {prefix}collections DROP COLUMN {column}")
    connection.execute(f"UPDATE {prefix}schema SET version = 4")
    connection.commit()
    connection.close()
    with la.open_collection(url) as docs:
        assert docs.get("old") is not None
        assert docs.stats()["vectors"] == 0
        docs.add(["new"], signatures=np.ones((1, 8), np.uint8), vectors=[[1, 2]])
        assert docs.search(vector=[1, 2]).ids == ["new"]
        assert docs.verify().ok


def test_readers_of_vectors_see_one_version(url: str) -> None:
    """Each write replaces all vectors, so that an answer of two versions has other cosines."""
    signatures = np.zeros((5, 8), np.uint8)
    names = list("abcde")
    stop = threading.Event()
    with la.open_collection(url, bits=64) as docs, la.open_collection(url) as other:

        def rows(number: int) -> NDArray[np.float32]:
            return np.tile(random_rows(1, 3, number), (5, 1))

        docs.upsert(names, signatures=signatures, vectors=rows(0))

        def write() -> None:
            for number in range(1, 10_000):
                if stop.is_set():
                    return
                docs.upsert(names, signatures=signatures, vectors=rows(number))

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(30):
                answer = other.search(vector=[1, 1, 1])
                (expected,) = oracle.cosines(np.ones((1, 3)), rows(answer.version - 1)[:1])
                assert [m.score for m in answer] == pytest.approx([float(expected[0])] * 5)
                documents = other.get_many(names)
                assert len({one.vector.tobytes() for one in documents if one is not None}) == 1  # type: ignore[union-attr]
        finally:
            stop.set()
            writer.join()


numbers = st.floats(-(2.0**126), 2.0**126, width=32).filter(
    lambda one: one == 0 or abs(one) > 1e-30
)


@given(st.lists(numbers, min_size=1, max_size=20).filter(any))
@settings(max_examples=100)
def test_vectors_in_base64_and_json_are_the_same(values: list[float]) -> None:
    vector = np.array(values, np.float32)
    assert decoded_vector(encoded_vector(vector)).tobytes() == vector.tobytes()
    (packed,) = packed_vectors([decoded_vector(str(values))], 0)
    assert packed == vector.astype("<f4").tobytes() == base64.b64decode(encoded_vector(vector))


def test_vectors_of_tables(tmp_path: Path) -> None:
    import pyarrow as pa

    column = pa.array([[1.0, 2.0], None, [2.0, 1.0]], pa.list_(pa.float32(), 2))
    with la.open_collection(tmp_path / "docs.db", bits=64) as docs:
        docs.add(["a", "b", "c"], signatures=np.zeros((3, 8), np.uint8), vectors=column)
        assert docs.search(vector=np.array([1, 2], np.float16)).ids == ["a", "c"]
        frame = docs.get("a").to_arrow()  # type: ignore[union-attr]
        assert frame.num_rows == 1
