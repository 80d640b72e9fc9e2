"""Indexes as bytes: the same answers come back, damaged bytes do not."""

from __future__ import annotations

import pickle
import pickletools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.storage.container import container_bytes
from support.cases.index_kinds import KINDS, made
from support.cases.strategies import collections_with_queries, distinct_ids
from support.oracles import scan as oracle


def answers(index: Any, queries: Any) -> list[Any]:
    near, all_near = index.search(queries, 5), index.within(queries, 6)
    pairs = index.pairs(2)
    arrays = [near.ids, near.distances, all_near.offsets, all_near.ids, all_near.distances]
    arrays += [pairs.left, pairs.right, pairs.distances]
    return [near.exact, all_near.exact, *(array.tolist() for array in arrays)]


@given(case=collections_with_queries(), kind=st.sampled_from(KINDS), data=st.data())
@settings(max_examples=120)
def test_bytes_bring_back_the_same_answers(case: Any, kind: str, data: st.DataObject) -> None:
    rows, queries = case
    index = made(kind, rows, data.draw(distinct_ids(len(rows))))
    if kind == "slices" and index.next_id < 2**62:  # there are numbers left for others
        added = index.add(queries)
        living = sorted({*index.living()[1].tolist()} - set(added[:1].tolist()))
        if living:
            index.remove(data.draw(st.lists(st.sampled_from(living), unique=True)))
    if data.draw(st.booleans()):
        index.names = [f"n\u00e4me {number}" for number in range(data.draw(st.integers(0, 5)))]
        index.signer = la.SimHash(64, weights="tfidf").fit(["a b", "b c"])
    twin = type(index).from_bytes(index.to_bytes())
    assert answers(twin, queries) == answers(index, queries)
    assert [*map(np.ndarray.tolist, twin.living())] == [*map(np.ndarray.tolist, index.living())]
    assert (len(twin), twin.next_id, twin.own_ids) == (len(index), index.next_id, index.own_ids)
    assert (twin.signer, twin.names) == (index.signer, index.names)
    assert twin.to_bytes() == index.to_bytes()
    assert twin.stats()["file"] is None


def test_tuned_flips_and_notes_come_back(tmp_path: Path) -> None:
    rows = oracle.collection(200, 8, "clustered", 3)
    weights = np.where(np.unpackbits(rows, axis=1, bitorder="little"), 1, -1).astype(np.float32)
    index = la.FlipIndex(rows)
    index.fit_volatility(weights + np.arange(64, dtype=np.float32) / 64)
    index.tune_flips(rows, weights, 3)
    index.save(tmp_path / "x", notes={"made": "here"})
    twin = pickle.loads(pickle.dumps(la.load_index(tmp_path / "x")))
    (tmp_path / "x").unlink()
    again = pickle.loads(pickle.dumps(twin))
    assert again.notes == twin.notes == {"made": "here"}
    assert again.tunings == twin.tunings == index.tunings
    assert again.volatility.scale == index.volatility.scale
    found = again.within(rows[:20], 3, weights=weights[:20])
    assert found.ids.tolist() == index.within(rows[:20], 3, weights=weights[:20]).ids.tolist()


def test_shards_that_got_ids_of_their_own_come_back(tmp_path: Path) -> None:
    index = la.ShardedIndex([la.SliceIndex(np.eye(8, 8, dtype=np.uint8), 4) for _ in range(2)])
    index.shards[0].add(np.ones((1, 8), np.uint8), [90])  # type: ignore[attr-defined]
    before = index.search(np.ones((1, 8), np.uint8), 99).ids.tolist()
    index.save(tmp_path / "x")
    for twin in (pickle.loads(pickle.dumps(index)), la.load_index(tmp_path / "x", verify=False)):
        assert twin.search(np.ones((1, 8), np.uint8), 99).ids.tolist() == before
        assert (twin.own_ids, twin.next_id) == (index.own_ids, index.next_id)
        twin.verify()


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_bytes_are_refused(kind: str) -> None:
    rows = oracle.collection(40, 8, "clustered", 1)
    whole = made(kind, rows, None).to_bytes()
    rng = np.random.default_rng(0)
    content = np.flatnonzero(np.frombuffer(whole, np.uint8))  # what lies between sections is 0
    for place in rng.choice(content, 80, replace=False):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(rng.integers(8))
        with pytest.raises(la.errors.FileError):
            la.Index.from_bytes(damaged)
    for cut in (0, 1, 63, 64, len(whole) // 2, len(whole) - 1):
        with pytest.raises(la.errors.FileError):
            la.Index.from_bytes(whole[:cut])


def test_a_pickle_calls_nothing_but_from_bytes() -> None:
    for thing in (la.SliceIndex(np.eye(8, 8, dtype=np.uint8), 4), la.SimHash()):
        named = [
            argument
            for opcode, argument, _ in pickletools.genops(pickle.dumps(thing, protocol=2))
            if opcode.name == "GLOBAL"
        ]
        # `getattr(SliceIndex, "from_bytes")`, and protocol 2 writes bytes as text to be encoded.
        ours = f"{type(thing).__module__} {type(thing).__name__}"
        assert named == ["__builtin__ getattr", ours, "_codecs encode"]


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ("text", la.errors.ArgumentError, "data is 'text'; expected bytes"),
        (5, la.errors.ArgumentError, "expected bytes"),
        (b"", la.errors.FormatError, "the bytes is not a lookalike file"),
        (container_bytes({}, {}), la.errors.FormatError, "holds an index of kind None"),
        (container_bytes({"index": "sharded"}, {}), la.errors.CorruptIndexError, "None shards"),
        (
            container_bytes({"index": "sharded", "shards": 2, "own_ids": False}, {}),
            la.errors.CorruptIndexError,
            "'shard.0' is missing",
        ),
        (
            container_bytes({"index": "sharded", "shards": 0, "own_ids": False}, {}),
            la.errors.CorruptIndexError,
            "no shards",
        ),
    ],
)
def test_what_is_no_index_is_refused(data: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        la.Index.from_bytes(data)


def test_shards_within_shards_have_an_end() -> None:
    data = la.ScanIndex(np.eye(8, 8, dtype=np.uint8)).to_bytes()
    meta = {"index": "sharded", "shards": 1, "own_ids": False}
    for _ in range(400):
        data = container_bytes(meta, {"shard.0": np.frombuffer(data, np.uint8)})
    with pytest.raises(la.errors.CorruptIndexError, match="the shards cannot be used"):
        la.Index.from_bytes(data)


def test_another_kind_is_refused() -> None:
    data = la.ScanIndex(np.eye(8, 8, dtype=np.uint8)).to_bytes()
    with pytest.raises(la.errors.FormatError, match="found a ScanIndex; expected a SliceIndex"):
        la.SliceIndex.from_bytes(data)
