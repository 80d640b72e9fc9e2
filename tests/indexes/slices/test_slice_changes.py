"""Slice indexes that are added to and removed from, also while they are searched."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

import lookalike as la
from support.oracles import scan as oracle


def test_adding_leaves_the_callers_arrays_alone() -> None:
    big, names = oracle.collection(2048, 8, "uniform", 0), np.arange(2048) + 100
    before = big.copy()
    index = la.SliceIndex(oracle.collection(5, 8, "uniform", 1), 22)
    index.add(big[:1500], ids=names[:1500])
    index.add(oracle.collection(9, 8, "uniform", 2))
    assert np.array_equal(big, before)
    assert np.array_equal(names, np.arange(2048) + 100)


def test_searches_and_saves_see_one_state(tmp_path: Path) -> None:
    """While another thread adds, removes and compacts."""
    rows = oracle.collection(400, 4, "uniform", 0)
    index = la.SliceIndex(rows, 6)
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            ids = index.add(rows[:9])
            index.remove(ids)
            index.compact()

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for turn in range(300):
            found = index.search(rows[:2], 450, exact=True)
            assert (found.ids >= 0).sum(axis=1).min() >= 400
            if turn % 30 == 0:
                index.save(tmp_path / "x")
                assert len(la.load_index(tmp_path / "x", verify=True)) in (400, 409)
    finally:
        stop.set()
        thread.join()


def test_a_failed_removal_removes_nothing() -> None:
    index = la.SliceIndex(oracle.collection(5, 4, "uniform", 0))
    with pytest.raises(la.errors.ArgumentError):
        index.remove([3, 9])
    assert len(index) == 5
    index.remove([3, 3])
    assert len(index) == 4
    with pytest.raises(la.errors.ArgumentError, match="id 3 is not in the index"):
        index.remove(3)


def test_many_small_additions_become_few_segments() -> None:
    rows = oracle.collection(30_000, 8, "uniform", 0)
    index = la.SliceIndex(rows[:10_000], 10)
    for start in range(10_000, 30_000, 97):
        index.add(rows[start : start + 97])
    assert len(index) == 30_000
    assert len(index.stats()["segments"]) <= 8
    assert index.within(rows[::1000], 0).ids.tolist() == list(range(0, 30_000, 1000))
    for start in range(300):
        index.add(rows[start])
    assert index.within(rows[5], 0).ids.tolist() == [5, 30_005]


def test_a_million_copies_cost_linear_time() -> None:
    rows = np.zeros((1_000_000, 8), np.uint8)
    index = la.SliceIndex(rows)
    assert index.search(rows[:2], 3, expand=0).ids.tolist() == [[0, 1, 2]] * 2
    assert index.within(rows[0], 0).ids.tolist() == list(range(1_000_000))
    pairs = index.pairs(3, collapse=True)
    assert (pairs.left == 0).all()
    assert pairs.right.tolist() == list(range(1, 1_000_000))
    with pytest.raises(la.errors.ResultTooLargeError, match="limit=1000 pairs .*collapse=True"):
        index.pairs(0, limit=1000)


def test_what_was_added_is_the_index_s_own() -> None:
    """A caller that fills the same arrays again and again changes nothing that was added."""
    index = la.SliceIndex(oracle.collection(10, 8, "uniform", 0), 6)
    rows, ids = np.empty((1500, 8), np.uint8), np.empty(1500, np.int64)
    expected = dict(zip(range(10), map(bytes, index.living()[0]), strict=True))
    for turn, size in enumerate((3, 1500, 700)):
        rows[:size] = oracle.collection(size, 8, "uniform", turn)
        ids[:size] = np.random.default_rng(turn).permutation(size) + 2000 * (turn + 1)
        returned = index.add(rows[:size], ids[:size])
        expected |= dict(zip(ids[:size].tolist(), map(bytes, rows[:size]), strict=True))
        returned[:] = 0
    signatures, names = index.living()
    assert dict(zip(names.tolist(), map(bytes, signatures), strict=True)) == expected


def test_ids_of_a_shard_that_come_later_do_not_meet_those_of_another() -> None:
    rows = oracle.collection(20, 8, "uniform", 0)
    shards = [la.SliceIndex(rows[:10], 6), la.SliceIndex(rows[10:], 6)]
    index = la.ShardedIndex(shards)
    shards[0].add(rows[:1], [15])
    assert not index.own_ids
    assert index.next_id == 26
    assert sorted(index.living()[1].tolist()) == [*range(10), 15, *range(16, 26)]
    assert index.search(rows, 1, exact=True).ids[:, 0].tolist() == [*range(10), *range(16, 26)]
