"""One query is a batch of one: a signature, a vector or a text, in every index and collection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lookalike as la
from lookalike.indexes.kinds import KINDS

TEXTS = ["the early bird gets the worm", "the early bird gets a worm", "something else", "more"]
SIGNER = la.SimHash(bits=64)
ROWS = SIGNER.sign(TEXTS)
BUILD: dict[str, Any] = {"blocks": {"radius": 3}, "flips": {}, "clusters": {"clusters": 2}}


def same(one: Any, many: Any) -> None:
    assert type(one) is type(many) and len(one) == len(many) == 1
    assert one.to_arrow().equals(many.to_arrow())


def built(name: str) -> la.Index:
    if name == "sharded":
        return la.ShardedIndex([la.ScanIndex(ROWS[:2]), la.SliceIndex(ROWS[2:])])
    index: la.Index = KINDS[name].build(ROWS, None, **BUILD.get(name, {}))
    return index


NAMES = [kind.name for kind in KINDS if kind.holds == "signatures" and kind.is_built]


@pytest.mark.parametrize("name", ["sharded", *sorted({*NAMES} - {"gpu"})])
def test_in_every_index(name: str) -> None:
    index = built(name)
    questions: list[tuple[Any, int]] = [(index.search, 2), (index.within, 3)]
    for ask, number in questions:
        many = ask(ROWS[:1], number)
        same(ask(ROWS[0], number), many)
        with pytest.raises(la.errors.SignatureError, match="text, and the index has no signer"):
            ask(TEXTS[0], number)
    index.signer = SIGNER
    for ask, number in questions:
        same(ask(TEXTS[0], number), ask(ROWS[:1], number))
        assert ask(TEXTS, number).to_arrow().equals(ask(ROWS, number).to_arrow())


def test_in_an_index_of_vectors() -> None:
    vectors = np.random.default_rng(0).normal(size=(20, 8)).astype(np.float32)
    index = la.VectorIndex(vectors)
    same(index.search(vectors[0], 3), index.search(vectors[:1], 3))
    same(index.within(vectors[0], 0.5), index.within(vectors[:1], 0.5))


def test_in_an_index_of_bands() -> None:
    index = la.BandIndex(0.5, signer=la.MinHash(64))
    index.insert_many(["a", "b", "c", "d"], TEXTS)
    rows = la.MinHash(64).sign(TEXTS)
    for one in (TEXTS[0], rows[0]):
        same(index.query_many(one), index.query_many(TEXTS[:1]))
    assert index.query(TEXTS[0]) == index.query_many(TEXTS[0])[0]
    of_text = dict(zip("abcd", TEXTS, strict=True))
    same(index.query_many(TEXTS[0], text_of=of_text), index.query_many(TEXTS[:1], text_of=of_text))


def test_in_an_index_of_parts() -> None:
    index = la.PartIndex(64)
    index.add_many(["x", "y"], [ROWS[:2], ROWS[2:]])
    one, many = index.search(ROWS[0]), index.search(ROWS[:1])
    assert one.query_parts == 1 and one.to_arrow().equals(many.to_arrow())


def test_in_a_signature_file(tmp_path: Path) -> None:
    found = la.match_batch(tmp_path / "seen", ROWS[0])
    assert found.query_ids.tolist() == [0]
    same(
        la.match_batch(tmp_path / "seen", ROWS[0], append=False),
        la.match_batch(tmp_path / "seen", ROWS[:1], append=False),
    )


def test_in_collections(tmp_path: Path) -> None:
    with la.open_collection(tmp_path / "docs.db", signer=SIGNER, durable=False) as docs:
        docs.add(list("abcd"), TEXTS)
        for one in (TEXTS[0], ROWS[0]):
            assert docs.search_many(one, 2) == [docs.search(TEXTS[0], 2)]
            assert docs.within_many(one, 9) == [docs.within(TEXTS[0], 9)]
            assert docs.search(one, 2) == docs.search_many(TEXTS[:1], 2)[0]
        for several in (TEXTS[:2], ROWS[:2]):
            with pytest.raises(la.errors.ArgumentError, match="2 queries; expected one, or use"):
                docs.search(several)
    signer = la.PassageHash()
    with la.open_collection(tmp_path / "parts.db", signer=signer, durable=False) as docs:
        text = " ".join(f"word{n}" for n in range(200))
        docs.add(["a"], [text])
        assert docs.search_many(text) == [docs.search(text)]
