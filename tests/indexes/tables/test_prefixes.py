from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.indexes import segments
from support.cases.strategies import distinct_ids
from support.cases.tables import damaged, near_collections, threads_used
from support.oracles import prefixes as prefix_oracle
from support.oracles import scan as oracle

HALF: Any = 0.5
ONE: Any = 1


@given(
    case=near_collections(),
    orders=st.integers(1, 5),
    examine=st.one_of(st.integers(1, 12), st.just(10**6)),
    k=st.integers(1, 8),
    threads=threads_used,
    saved=st.booleans(),
    data=st.data(),
)
@settings(max_examples=120)
def test_what_is_examined_is_what_the_definition_says(
    case: Any,
    orders: int,
    examine: int,
    k: int,
    threads: int | None,
    saved: bool,
    data: st.DataObject,
) -> None:
    rows, queries = case
    names = data.draw(distinct_ids(len(rows)))
    ids = list(range(len(rows))) if names is None else names
    index = la.PrefixIndex(rows, orders, names, seed=data.draw(st.integers(0, 2**64 - 1)))
    places = index._places
    if saved:
        index = la.PrefixIndex.from_bytes(index.to_bytes())
    chosen = set(range(len(rows)))
    among = None
    if data.draw(st.booleans()):
        chosen = set(data.draw(st.lists(st.sampled_from(sorted(chosen))))) if len(rows) else set()
        among = [ids[row] for row in chosen]
    radius = data.draw(st.integers(0, index.bits))
    given: dict[str, Any] = {"examine": examine, "among": among, "threads": threads}
    with mock.patch.multiple(segments, _COPIED=-1, _COPIED_SHARE=10**9):
        near = index.search(queries, k, explain=True, **given)
        matches = index.within(queries, radius, explain=True, **given)
    for query, row in enumerate(queries):
        compared = prefix_oracle.examined(rows, row, places, examine, chosen)
        expected = sorted((oracle.distance(rows[one], row), ids[one]) for one in compared)
        for found, all_of_them in ((near, expected[:k]), (matches, expected)):
            reached = [one for one in all_of_them if found is near or one[0] <= radius]
            names_, far = found[query]
            assert list(zip(far.tolist(), names_.tolist(), strict=True)) == reached
            assert found.explanation is not None
            assert found.explanation.reranked[query] == len(compared)
            assert found.explanation.exact[query] == (len(compared) == len(chosen))
    for found in (near, matches):
        assert found.explanation is not None
        assert found.exact == bool(found.explanation.exact.all())


@given(case=near_collections(), k=st.integers(1, 8), threads=threads_used, data=st.data())
@settings(max_examples=60)
def test_exact_searches_are_exact(
    case: Any, k: int, threads: int | None, data: st.DataObject
) -> None:
    rows, queries = case
    names = data.draw(distinct_ids(len(rows)))
    index = la.PrefixIndex(rows, 2, names)
    found = index.search(queries, k, exact=True, threads=threads)
    assert found.exact
    assert (found.ids.tolist(), found.distances.tolist()) == oracle.search(rows, queries, k, names)
    radius = data.draw(st.integers(0, index.bits))
    matches = index.within(queries, radius, exact=True, threads=threads)
    assert matches.exact
    assert [
        list(zip(far.tolist(), ids.tolist(), strict=True)) for ids, far in matches
    ] == oracle.within(rows, queries, radius, names)
    sharded = la.ShardedIndex([index])
    assert sharded.search(queries, k, exact=True).ids.tolist() == found.ids.tolist()
    if names is None:
        assert [*zip(*map(np.ndarray.tolist, index.pairs(3).to_numpy().values()), strict=True)] == (
            oracle.pairs(rows, 3)
        )


def near_duplicates(count: int, bits: int, flipped: float) -> tuple[Any, Any]:
    rng = np.random.default_rng(4)
    rows = rng.integers(0, 256, (count, bits // 8), np.uint8)
    return rows, rows[:200] ^ np.packbits(rng.random((200, bits)) < flipped, axis=1)


def test_more_orders_find_more() -> None:
    rows, queries = near_duplicates(20_000, 256, 0.08)
    shares = []
    for orders in (1, 4, 16):
        found = la.PrefixIndex(rows, orders).search(queries, 1, examine=200)
        shares.append(float((found.ids[:, 0] == np.arange(200)).mean()))
    assert shares == sorted(shares)
    assert shares[0] < 0.6
    assert shares[-1] > 0.95


def test_seeds_give_other_orders_and_the_same_ones_again() -> None:
    rows, queries = near_duplicates(2_000, 128, 0.15)

    def found(seed: int, threads: int = 1) -> Any:
        index = la.PrefixIndex(rows, 3, seed=seed, threads=threads)
        return index.search(queries, 3, examine=20, threads=threads).ids.tolist()

    assert found(1) == found(1, 3) != found(2)


def test_equal_signatures_are_found_by_row() -> None:
    rows = np.zeros((500, 8), np.uint8)
    rows[0] = 255
    index = la.PrefixIndex(rows, 2)
    result = index.search(np.zeros((1, 8), np.uint8), 3, examine=5)
    assert result.ids.tolist() == [[1, 2, 3]]
    assert not result.exact
    assert index.search(rows[:1], 1, examine=1).ids.tolist() == [[0]]


def test_few_chosen_are_all_compared() -> None:
    rows, queries = near_duplicates(6_000, 64, 0.3)
    index = la.PrefixIndex(rows, 2)
    few = index.search(queries, 4, among=range(0, 6_000, 7), explain=True)
    assert few.exact
    assert few.ids.tolist() == la.ScanIndex(rows).search(
        queries, 4, among=range(0, 6_000, 7)
    ).ids.tolist()  # fmt: skip
    assert few.explanation is not None
    assert few.explanation.lists.tolist() == [0] * 200


def test_stats_and_size() -> None:
    rows, _ = near_duplicates(1_000, 1024, 0.1)
    index = la.PrefixIndex(rows, 5, seed=9)
    assert (index.stats()["orders"], index.stats()["seed"], index.orders) == (5, 9, 5)
    beside = index.memory_bytes - rows.nbytes
    assert beside <= 5 * (16 * len(rows) + 4)


@pytest.mark.parametrize(
    "changes",
    [
        {"orders": 0},
        {"orders": 257},
        {"orders": "three"},
        {"orders": None},
        {"orders": 4},
        {"seed": -1},
        {"seed": []},
        {"0__rows": lambda rows: rows[:-1]},
        {"0__rows": lambda rows: rows + 10**6},
        {"0__offsets": lambda offsets: offsets[:-1]},
        {"0__offsets": lambda offsets: offsets[::-1] + 10**6},
        {"0__signatures": lambda keys: keys[:-1]},
        {"0__signatures": lambda keys: keys[:, :4].copy()},
        {"signatures": lambda rows: rows[:-1]},
        {"signatures": lambda rows: rows[:, :0].copy()},
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    rows = oracle.collection(64, 8, "uniform", 1)
    la.PrefixIndex(rows, 3).save(tmp_path / "x")
    damaged(tmp_path / "x", **changes)
    with pytest.raises(la.errors.CorruptIndexError):
        la.load_index(tmp_path / "x").search(rows, 3)
    with pytest.raises(la.errors.CorruptIndexError):
        la.load_index(tmp_path / "x", verify=False).within(rows, 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: la.PrefixIndex(r, 0), "orders is 0; .* from 1 to 256"),
        (lambda r: la.PrefixIndex(r, 257), "orders is 257"),
        (lambda r: la.PrefixIndex(r, seed=-1), "seed is -1"),
        (lambda r: la.PrefixIndex(r).search(r, 1, examine=0), "examine is 0; .* at least 1"),
        (lambda r: la.PrefixIndex(r).within(r, 1, examine=HALF), "examine is 0.5"),
        (lambda r: la.PrefixIndex(r).search(r, 1, exact=ONE), "exact is 1"),
        (lambda r: la.PrefixIndex(r).within(r, 64, limit=10), "more than limit=10"),
        (lambda r: la.PrefixIndex(r).within(r, 64, limit=10, exact=True), "more than limit=10"),
    ],
)
def test_bad_arguments_are_refused(call: Any, message: str) -> None:
    with pytest.raises((la.errors.ArgumentError, la.errors.ResultTooLargeError), match=message):
        call(oracle.collection(30, 8, "uniform", 2))
