"""`lookalike.compat.faiss`: the answers of faiss' binary indexes, in its types and layout."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.compat import faiss
from lookalike.storage.container import container_bytes
from support.cases.strategies import collections, collections_with_queries
from support.oracles import scan as oracle

FARTHEST = 2**31 - 1
ALL = faiss.IDSelectorAll()
ROWS = oracle.collection(60, 8, "clustered", 0)


def first_bits(rows: Any, start: int, width: int) -> list[int]:
    bits = np.unpackbits(rows, axis=1, bitorder="little")[:, start : start + width]
    return [sum(int(bit) << place for place, bit in enumerate(row)) for row in bits]


def in_lists(rows: Any, queries: Any, nhash: int, b: int, nflip: int) -> Any:
    """Return which rows share a list with each query, by definition."""
    shared = np.zeros((len(queries), len(rows)), bool)
    for number in range(nhash):
        ours, theirs = (first_bits(each, number * b, b) for each in (queries, rows))
        for query, mine in enumerate(ours):
            near = [(mine ^ other).bit_count() <= nflip for other in theirs]
            shared[query] |= np.array(near, bool)
    return shared


def check(index: Any, far: Any, shared: Any, labels: Any, queries: Any, k: int, r: int) -> None:
    """Compare with distances, what may be found at all, and labels; ties by position."""
    distances, found = index.search(queries, k)
    lims, near_distances, near = index.range_search(queries, r)
    assert (distances.dtype, found.dtype) == (np.int32, np.int64)
    assert (lims.dtype, near_distances.dtype, near.dtype) == (np.uint64, np.float32, np.int64)
    for query in range(len(queries)):
        order = sorted((far[query, at], at) for at in np.flatnonzero(shared[query]).tolist())
        padding = [FARTHEST] * (k - len(order)), [-1] * (k - len(order))
        assert distances[query].tolist() == [d for d, _ in order[:k]] + padding[0]
        assert found[query].tolist() == [int(labels[at]) for _, at in order[:k]] + padding[1]
        part = slice(int(lims[query]), int(lims[query + 1]))
        assert near_distances[part].tolist() == [d for d, _ in order if d < r]
        assert near[part].tolist() == [int(labels[at]) for d, at in order if d < r]


def twin_of(index: Any, way: str, folder: Path) -> Any:
    if way == "file":
        faiss.write_index_binary(index, folder / "x")
        return faiss.read_index_binary(folder / "x")
    ways = {"same": lambda it: it, "pickle": lambda it: pickle.loads(pickle.dumps(it))}
    return {**ways, "deep": copy.deepcopy, "clone": faiss.clone_binary_index}[way](index)


@given(
    case=collections_with_queries(),
    kind=st.sampled_from(["BFlat", "IDMap,BFlat", "BFlat,IDMap2", "BHash", "Multi", "IDMap,BHash"]),
    way=st.sampled_from(["same", "file", "pickle", "deep", "clone"]),
    data=st.data(),
)
@settings(max_examples=150)
def test_answers_are_those_of_the_definition(
    case: Any, kind: str, way: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rows, queries = case
    d = 8 * rows.shape[1]
    b = data.draw(st.integers(1, min(d, 14)))
    nhash = data.draw(st.integers(1, min(4, d // b))) if kind == "Multi" else 1
    words = kind.replace("BHash", f"BHash{b}").replace("Multi", f"BHash{nhash}x{b}")
    index: Any = faiss.index_binary_factory(d, words)
    labeled = "IDMap" in kind or (kind == "BHash" and data.draw(st.booleans()))
    labels = np.arange(len(rows))
    if labeled:
        whole = st.integers(-(2**63), 2**63 - 1)
        drawn = data.draw(st.lists(whole, min_size=len(rows), max_size=len(rows)))
        labels = np.array(drawn, np.int64)
    cut = data.draw(st.integers(0, len(rows)))
    hashed: Any = faiss.downcast_IndexBinary(getattr(index, "index", index))
    nflip = 0
    if "Hash" in words:
        nflip = hashed.nflip = data.draw(st.integers(0, b + 1))
    for part in (slice(0, cut), slice(cut, None)):
        index.search(queries, 1)  # lists are looked at between additions, too
        if labeled:
            index.add_with_ids(rows[part], labels[part])
        else:
            index.add(rows[part])
    if "Flat" in words and data.draw(st.booleans()):
        gone = set(data.draw(st.lists(st.sampled_from([*labels.tolist(), 7]))))
        stay = np.array([label not in gone for label in labels.tolist()], bool)
        assert index.remove_ids(np.array(sorted(gone), np.int64)) == int((~stay).sum())
        rows = rows[stay]
        labels = labels[stay] if labeled else np.arange(len(rows))
    index = twin_of(index, way, tmp_path_factory.getbasetemp())
    assert (index.ntotal, index.d, index.code_size) == (len(rows), d, d // 8)
    shared = np.ones((len(queries), len(rows)), bool)
    if "Hash" in words:
        shared = in_lists(rows, queries, nhash, b, nflip)
    far = oracle.distances(queries, rows)
    k, r = data.draw(st.integers(1, 9)), data.draw(st.integers(-1, d + 1))
    check(index, far, shared, labels, queries, k, r)


members = st.sampled_from(["array", "batch", "range", "bitmap", "not", "and", "or", "xor", "all"])


@given(
    case=collections_with_queries(), kind=members, chosen=st.lists(st.integers(0, 70)),
    mapped=st.booleans(), k=st.integers(1, 9), r=st.integers(0, 60),
)  # fmt: skip
@settings(max_examples=100)
def test_selectors(case: Any, kind: str, chosen: list[int], mapped: bool, k: int, r: int) -> None:
    rows, queries = case
    labels = np.arange(len(rows)) // 2 if mapped else np.arange(len(rows))
    index: Any = faiss.IndexBinaryFlat(8 * rows.shape[1])
    if mapped:
        index = faiss.IndexBinaryIDMap(index)
        index.add_with_ids(rows, labels)
    else:
        index.add(rows)
    some = faiss.IDSelectorArray(np.array(chosen, np.int64))
    few = faiss.IDSelectorRange(3, 20)
    inside = {label for label in range(80) if label in chosen}
    middle = set(range(3, 20))
    bitmap = np.packbits([label in chosen for label in range(71)], bitorder="little")
    selector, members = {
        "array": (some, inside),
        "batch": (faiss.IDSelectorBatch(chosen), inside),
        "range": (few, middle),
        "bitmap": (faiss.IDSelectorBitmap(bitmap), inside),
        "not": (faiss.IDSelectorNot(some), set(range(80)) - inside),
        "and": (faiss.IDSelectorAnd(some, few), inside & middle),
        "or": (faiss.IDSelectorOr(some, few), inside | middle),
        "xor": (faiss.IDSelectorXOr(some, few), inside ^ middle),
        "all": (faiss.IDSelectorAll(), set(range(80))),
    }[kind]
    assert {label for label in range(80) if selector.is_member(label)} == members
    params = faiss.SearchParameters(sel=selector)
    allowed = [int(label) in members for label in labels]
    shared = np.array([allowed] * len(queries), bool).reshape(len(queries), len(rows))

    class Chosen:
        def search(self, x: Any, count: int) -> Any:
            return index.search(x, count, params=params)

        def range_search(self, x: Any, radius: int) -> Any:
            return index.range_search(x, radius, params=params)

    check(Chosen(), oracle.distances(queries, rows), shared, labels, queries, k, r)


def test_statistics_are_counted_as_theirs_are() -> None:
    stats = faiss.cvar.indexBinaryHash_stats
    for nhash, index in (
        (1, faiss.IndexBinaryHash(64, 6)),
        (3, faiss.IndexBinaryMultiHash(64, 3, 6)),
    ):
        index.add(ROWS)
        for nflip, sets in ((0, 1), (1, 7), (6, 64)):
            index.nflip = nflip
            stats.reset()
            index.search(ROWS[:5], 3)
            assert stats.nq == 5
            assert stats.ndis == in_lists(ROWS, ROWS[:5], nhash, 6, nflip).sum()
            missing = stats.n0 if nhash > 1 else 5 * sets - stats.nlist
            assert stats.nlist + missing == 5 * sets * nhash
        assert stats.ndis == 300
    values = [len(set(first_bits(ROWS, start, 6))) for start in (0, 6, 12)]
    assert index.hashtable_size() == sum(values)


def test_what_is_there_is_given_back() -> None:
    index = faiss.IndexBinaryFlat(64)
    index.train(ROWS)
    index.add(ROWS)
    assert np.array_equal(index.reconstruct(12), ROWS[12])
    assert np.array_equal(index.reconstruct_n(5, 10), ROWS[5:15])
    assert np.array_equal(index.reconstruct_n(), ROWS)
    assert np.array_equal(faiss.vector_to_array(index.xb), ROWS.reshape(-1))
    labels = np.empty((2, 3), np.int64)
    assert index.assign(ROWS[:2], 3, labels) is labels
    assert np.array_equal(labels, index.search(ROWS[:2], 3)[1])
    assert np.array_equal(faiss.knn_hamming(ROWS[:2], ROWS, 3)[1], labels)
    index.reset()
    assert index.ntotal == 0
    assert index.search(ROWS[:2], 2)[0].tolist() == [[FARTHEST] * 2] * 2
    mapped = faiss.IndexBinaryIDMap2(faiss.IndexBinaryFlat(64))
    mapped.add_with_ids(ROWS[:10], np.arange(10) // 2 - 1)
    assert np.array_equal(mapped.reconstruct(-1), ROWS[1])  # the last of two
    assert mapped.id_map.tolist() == [-1, -1, 0, 0, 1, 1, 2, 2, 3, 3]
    assert mapped.rev_map[3] == 9
    with pytest.raises(faiss.FaissError, match="more than once"):
        mapped.check_consistency()


@given(rows=collections(width=2, least=1, most=30), steps=st.lists(st.integers(0, 5), max_size=12))
@settings(max_examples=40)
def test_adding_and_asking_in_turn(rows: Any, steps: list[int]) -> None:
    index = faiss.IndexBinaryMultiHash(16, 2, 8)
    index.nflip = 1
    count = 0
    for step in steps:
        index.add(rows[count : count + step])
        count = min(len(rows), count + step)
        far = oracle.distances(rows[:2], rows[:count])
        shared = in_lists(rows[:count], rows[:2], 2, 8, 1)
        check(index, far, shared, np.arange(count), rows[:2], 4, 5)


def test_threads_are_counted() -> None:
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    assert faiss.omp_get_max_threads() == 1
    faiss.omp_set_num_threads(before)


def test_files_of_faiss_are_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_bytes(b"IBxF" + bytes(60))
    with pytest.raises(la.errors.FormatError, match=r"written by faiss.*vector_to_array"):
        faiss.read_index_binary(tmp_path / "theirs")
    with pytest.raises(la.errors.FormatError, match=r"written by faiss.*vector_to_array"):
        faiss.deserialize_index_binary(np.frombuffer(b"IBHm" + bytes(60), np.uint8))
    (tmp_path / "other").write_bytes(b"something else")
    with pytest.raises(la.errors.FormatError, match="not a lookalike file"):
        faiss.read_index_binary(tmp_path / "other")
    with pytest.raises(la.errors.FileError):
        faiss.read_index_binary(tmp_path / "missing")
    la.ScanIndex(ROWS).save(tmp_path / "index")
    with pytest.raises(
        la.errors.FormatError, match=r"not have an index that lookalike.compat.faiss wrote"
    ):
        faiss.read_index_binary(tmp_path / "index")


@pytest.mark.parametrize("words", ["BFlat", "BHash9", "BHash3x9", "IDMap2,BFlat"])
def test_damaged_bytes_are_refused(words: str) -> None:
    index: Any = faiss.index_binary_factory(64, words)
    if "IDMap" in words:
        index.add_with_ids(ROWS, np.arange(60))
    else:
        index.add(ROWS)
    whole = faiss.serialize_index_binary(index)
    rng = np.random.default_rng(0)
    for place in rng.choice(np.flatnonzero(whole), 60):
        damaged = whole.copy()
        damaged[place] ^= 1 << int(rng.integers(8))
        with pytest.raises(la.errors.FileError):
            faiss.deserialize_index_binary(damaged)


NINE = {"signatures": np.zeros((2, 9), np.uint8)}


@pytest.mark.parametrize(
    ("meta", "arrays"),
    [
        ({"class": "IndexBinaryFlat", "d": 64}, NINE),
        ({"class": "IndexBinaryFlat", "d": "many"}, NINE),
        ({"class": "IndexBinaryFlat"}, NINE),
        ({"class": "IndexBinaryFlat", "d": 72}, {}),
        ({"class": "IndexBinaryHash", "d": 72, "b": 4, "nhash": 1, "nflip": 0}, NINE),
        ({"class": "IndexBinaryHash", "d": 64, "b": 4, "nhash": 1, "nflip": 0}, NINE),
        ({"class": "IndexBinaryMultiHash", "d": 72, "b": 99, "nhash": 1, "nflip": 0}, NINE),
        ({"class": "IndexBinaryIDMap"}, {"id_map": np.zeros(3, np.int64)}),
        ({"class": "Exception"}, {}),
    ],
)
def test_descriptions_that_do_not_fit_are_refused(
    meta: dict[str, Any], arrays: dict[str, Any]
) -> None:
    with pytest.raises(la.errors.FileError):
        faiss.deserialize_index_binary(container_bytes({"kind": "compat.faiss", **meta}, arrays))


def full(kind: str = "BFlat") -> Any:
    index = faiss.index_binary_factory(64, kind)
    index.add(ROWS)
    return index


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: faiss.IndexBinaryFlat(12), "multiple of 8"),
        (lambda: full().add(ROWS.astype(np.int32)), r"int32 of shape \(60, 8\); expected uint8"),
        (lambda: full().add(ROWS[:, :4]), r"expected uint8 of shape \(count, 8\)"),
        (lambda: full().search(ROWS, 0), "k is 0"),
        (lambda: full().range_search(ROWS, 2.5), "expected a whole number"),
        (lambda: full().add_with_ids(ROWS, np.arange(60)), "add_with_ids not implemented"),
        (lambda: full().reconstruct(60), "key 60 not found"),
        (lambda: full().reconstruct_n(55, 10), "key 60 not found"),
        (lambda: full().search(ROWS, 1, params=5), "expected SearchParameters"),
        (lambda: faiss.IndexBinaryIDMap(full()), "index must be empty"),
        (lambda: full("IDMap,BFlat"), "use add_with_ids"),
        (lambda: faiss.index_binary_factory(64, "IDMap,BFlat").reconstruct(0), "not implemented"),
        (lambda: full("BHash9").remove_ids(np.arange(3)), "remove_ids not implemented"),
        (
            lambda: full("BHash9").search(ROWS, 1, params=faiss.SearchParameters(sel=ALL)),
            "not implemented",
        ),
        (lambda: full("BHash3x9").add_with_ids(ROWS, np.arange(60)), "not implemented"),
        (lambda: faiss.IndexBinaryMultiHash(64, 7, 10), "7 hashes of b=10 bits"),
        (lambda: faiss.index_binary_factory(64, "BIVF10"), "before or after a comma"),
        (lambda: faiss.index_binary_factory(64, "IDMap,BFlat,IDMap2"), "one IDMap at most"),
    ],
)
def test_what_faiss_refuses_is_refused(call: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message) as raised:
        call()
    assert isinstance(raised.value, faiss.FaissError)
    assert isinstance(raised.value, la.errors.ArgumentError)
