"""`among`: the answers of an index that has only these signatures."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.indexes import filters as choosing
from lookalike.indexes import segments
from support.cases.index_kinds import KINDS, made
from support.cases.strategies import collections, collections_with_queries
from support.oracles import scan as oracle


@st.composite
def filled(draw: st.DrawFn) -> tuple[Any, Any, Any, dict[int, bytes]]:
    """Return an index, of any kind and with a past, queries, and what is in it now."""
    rows, queries = draw(collections_with_queries())
    kind = draw(st.sampled_from(KINDS))
    ids = None
    if draw(st.booleans()):
        ids = draw(st.permutations(range(2 * len(rows))))[: len(rows)]
    index = made(kind, rows, ids)
    if kind == "slices":
        index.add(draw(collections(width=rows.shape[1], most=9)))
        living = index.living()[1].tolist()
        if living:
            gone: list[int] = draw(st.lists(st.sampled_from(living), unique=True))
            index.remove(gone)
            if len(gone) > 1 and len(rows):
                index.add(rows[:1], gone[:1])  # an id that is used again
    signatures, names = index.living()
    return index, queries, kind, dict(zip(names.tolist(), map(bytes, signatures), strict=True))


@given(
    case=filled(),
    way=st.sampled_from(["ids", "mask", "array"]),
    copied=st.sampled_from([0, 10**6, None]),
    threads=st.sampled_from([1, 3]),
    data=st.data(),
)
@settings(max_examples=250)
def test_answers_are_those_of_an_index_of_only_these(
    case: Any, way: str, copied: int | None, threads: int, data: st.DataObject
) -> None:
    index, queries, kind, living = case
    known = st.integers(0, max(0, index.next_id - 1))
    unknown = st.integers(0, 2**63 - 1)
    chosen: Any = set(data.draw(st.lists(st.one_of(known, known, unknown))))
    if data.draw(st.booleans()):
        chosen = {name for name in living if name not in chosen}  # most of them
    there = sorted(name for name in living if name in chosen)
    among: Any = data.draw(st.permutations(sorted(chosen))) + there[:1]
    if way == "array":
        among = np.array(among, np.uint64)
    elif way == "mask":
        among = np.array([name in chosen for name in range(index.next_id)], bool)
    width = index.bits // 8
    rows = np.frombuffer(b"".join(living[name] for name in there), np.uint8).reshape(-1, width)
    k, radius = data.draw(st.integers(1, 9)), data.draw(st.integers(0, index.bits))
    options: Any = {"exact": True} if "sl" in kind or "sharded" in kind else {}
    expected = oracle.within(rows, queries, radius, there)
    total = sum(map(len, expected))
    with (
        mock.patch.object(segments, "_COPIED", 4096 if copied is None else copied),
        mock.patch.object(choosing, "_COPY", 10**9 if copied == 0 else 16),
    ):
        found = index.search(queries, k, among=among, threads=threads, **options)
        matches = index.within(queries, radius, among=among, limit=total, threads=threads)
        if total:
            with pytest.raises(la.errors.ResultTooLargeError):
                index.within(queries, radius, among=among, limit=total - 1)
    assert (found.ids.tolist(), found.distances.tolist()) == oracle.search(rows, queries, k, there)
    assert [
        list(zip(distances.tolist(), ids.tolist(), strict=True)) for ids, distances in matches
    ] == expected
    assert found.exact
    assert matches.exact


@given(case=filled(), data=st.data(), expand=st.integers(0, 2))
@settings(max_examples=60)
def test_a_quick_search_finds_only_what_is_chosen(
    case: Any, data: st.DataObject, expand: int
) -> None:
    index, queries, kind, living = case
    chosen = data.draw(st.lists(st.integers(0, max(0, index.next_id - 1)), unique=True))
    options: Any = {"expand": expand} if "sl" in kind or "sharded" in kind else {}
    with mock.patch.object(segments, "_COPIED", 0):
        result = index.search(queries, 4, among=chosen, **options)
    there = sorted(name for name in living if name in chosen)
    rows = np.frombuffer(b"".join(living[name] for name in there), np.uint8)
    far = oracle.distances(queries, rows.reshape(-1, index.bits // 8))
    for query, (ids, distances) in enumerate(result):
        nearest = sorted(zip(far[query].tolist(), there, strict=True))
        answer = list(zip(distances.tolist(), ids.tolist(), strict=True))
        assert answer == sorted(set(answer) & set(nearest))
        if result.exact:
            assert answer == nearest[:4]


@pytest.mark.parametrize("kind", ["blocks", "compressed blocks", "flips"])
@pytest.mark.parametrize("first", [False, True])
def test_the_first_match_is_one_of_the_chosen(kind: str, first: bool) -> None:
    rows = oracle.collection(200, 8, "clustered", 2)
    index = made(kind, rows, None)
    chosen = np.arange(0, 200, 7)
    found = index.within(rows[:50], 3, first=first, among=chosen)
    every = oracle.within(rows[chosen], rows[:50], 3, chosen.tolist())
    for (ids, distances), all_of_them in zip(found, every, strict=True):
        answer = list(zip(distances.tolist(), ids.tolist(), strict=True))
        assert set(answer) <= set(all_of_them)
        assert len(answer) == (min(1, len(all_of_them)) if first else len(all_of_them))


def test_what_was_read_is_told() -> None:
    rows = oracle.collection(500, 8, "clustered", 1)
    index = la.SliceIndex(rows, 8)
    with mock.patch.object(segments, "_COPIED", 0):
        many = index.search(rows[:3], 2, expand=0, among=range(400), explain=True)
    few = index.search(rows[:3], 2, among=range(40), explain=True)
    near = index.within(rows[:3], 2, among=range(40), explain=True)
    assert many.explanation is not None
    assert many.explanation.lists.tolist() == [8, 8, 8]
    for result in (few, near):
        assert result.explanation is not None
        assert result.explanation.lists.tolist() == [0, 0, 0]
        assert result.exact


def test_the_largest_id_is_an_id() -> None:
    rows = oracle.collection(3, 8, "uniform", 0)
    index = la.ScanIndex(rows, [5, 2**63 - 1, 7])
    assert index.search(rows[:1], 2, among=[2**63 - 1] * 2).ids.tolist() == [[2**63 - 1, -1]]


def test_shards_that_are_the_same_index() -> None:
    rows = oracle.collection(20, 8, "uniform", 1)
    shard = la.SliceIndex(rows, 8)
    index = la.ShardedIndex([shard, shard])
    found = index.search(rows[:1], 3, among=[3, 20, 39])
    assert found.ids[0, 0] == 20
    assert sorted(found.ids[0].tolist()) == [3, 20, 39]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("among", "message"),
    [
        ([True, False], r"mask of shape \(2,\); expected \(30,\)"),
        ([[1, 2]], "among: ids have shape"),
        ([0.5], "among: ids are float64"),
        ([-1], "among: the smallest id is -1"),
        (5, "among: ids have shape"),
        (["a"], "among"),
    ],
)
def test_bad_choices_are_refused(kind: str, among: Any, message: str) -> None:
    index = made(kind, oracle.collection(30, 8, "uniform", 0), None)
    rows = index.living()[0][:1]
    with pytest.raises(la.errors.ArgumentError, match=message):
        index.search(rows, 1, among=among)
    with pytest.raises(la.errors.ArgumentError, match=message):
        index.within(rows, 1, among=among)


def test_the_largest_id_there_can_be_is_found_in_shards() -> None:
    rows = oracle.collection(4, 8, "uniform", 0)
    last = 2**63 - 1
    parts = [la.ScanIndex(rows[:2], [3, last]), la.ScanIndex(rows[2:], [5, 7])]
    index = la.ShardedIndex(parts)
    assert index.search(rows[1], 2, among=[last, 7]).ids[0].tolist() == [last, 7]
    assert index.within(rows[1], 64, among=[last]).ids.tolist() == [last]
