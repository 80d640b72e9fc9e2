"""Collections of more rows than a table has: in parts, with the answers of one table."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.indexes.tables import sorted_table
from lookalike.indexes.tables.blocks import BlockChoice
from support.cases.strategies import distinct_ids
from support.cases.tables import damaged, found, near_collections, threads_used
from support.oracles import scan as oracle
from support.running.planned import COSTS


@contextmanager
def tables_of(rows: int) -> Iterator[None]:
    """Let tables have at most so many rows."""
    with mock.patch.object(sorted_table, "MOST_ROWS", rows):
        yield


def again(index: Any, way: str) -> Any:
    if way == "bytes":
        return type(index).from_bytes(index.to_bytes())
    return copy.deepcopy(index) if way == "copied" else index


@given(
    case=near_collections(),
    most=st.integers(1, 30),
    compressed=st.booleans(),
    way=st.sampled_from(["made", "bytes", "copied"]),
    threads=threads_used,
    data=st.data(),
)
@settings(max_examples=120)
def test_blocks_in_parts_are_as_one(
    case: Any, most: int, compressed: bool, way: str, threads: int | None, data: st.DataObject
) -> None:
    rows, queries = case
    bits, names = 8 * rows.shape[1], data.draw(distinct_ids(len(rows)))
    reach = data.draw(st.integers(0, min(4, bits - 1)))
    with tables_of(most):
        made = la.BlockIndex(rows, reach, ids=names, compressed=compressed)
    index = again(made, way)
    assert index.stats()["parts"] == max(1, -(-len(rows) // most))
    assert [*map(np.ndarray.tolist, index.living())] == [
        rows.tolist(),
        list(range(len(rows))) if names is None else names,
    ]
    for radius in (reach, data.draw(st.integers(0, bits))):
        expected = oracle.within(rows, queries, radius, names)
        matches = index.within(queries, radius, threads=threads)
        assert found(matches) == expected
        assert matches.exact
        first = found(index.within(queries, radius, first=True, threads=threads))
        for one, every in zip(first, expected, strict=True):
            assert len(one) == min(1, len(every))
            assert set(one) <= set(every)
        total = sum(map(len, expected))
        assert found(index.within(queries, radius, limit=total)) == expected
        if total:
            with pytest.raises(la.errors.ResultTooLargeError, match=f"limit={total - 1}"):
                index.within(queries, radius, limit=total - 1)
    k = data.draw(st.integers(1, 9))
    near = index.search(queries, k, threads=threads)
    assert (near.ids.tolist(), near.distances.tolist()) == oracle.search(rows, queries, k, names)


@given(
    case=near_collections(),
    most=st.integers(1, 30),
    way=st.sampled_from(["made", "bytes", "copied"]),
    flips=st.integers(0, 12),
    threads=threads_used,
    data=st.data(),
)
@settings(max_examples=120)
def test_flips_in_parts_are_as_one(
    case: Any, most: int, way: str, flips: int, threads: int | None, data: st.DataObject
) -> None:
    rows, queries = case
    bits, names = 8 * rows.shape[1], data.draw(distinct_ids(len(rows)))
    header = data.draw(st.integers(0, min(8, bits)))
    radius = data.draw(st.integers(0, 4))
    weights = np.random.default_rng(1).normal(size=(len(queries), bits)).astype(np.float32)
    one = la.FlipIndex(rows, header, names)
    with tables_of(most):
        made = la.FlipIndex(rows, header, names)
    index = again(made, way)
    assert index.stats()["parts"] == max(1, -(-len(rows) // most))
    exact = index.within(queries, radius, threads=threads)
    assert exact.exact
    assert found(exact) == oracle.within(rows, queries, radius, names)
    ways: tuple[dict[str, Any], ...] = ({"flips": flips}, {"recall": 0.9})
    for given_ in ways:
        given_ = {**given_, "weights": weights}
        some: Any = index.within(queries, radius, threads=threads, **given_)
        whole: Any = one.within(queries, radius, **given_)
        assert (found(some), some.exact) == (found(whole), whole.exact)
        first = index.within(queries, radius, first=True, threads=threads, **given_)
        for match, every in zip(found(first), found(whole), strict=True):
            assert len(match) == min(1, len(every))
            assert set(match) <= set(every)
    tried, expected = (
        each.attempts(queries, weights, radius, threads=threads) for each in (index, one)
    )
    assert [sorted(ids.tolist()) for ids, _ in tried] == [
        sorted(ids.tolist()) for ids, _ in expected
    ]


def test_tuning_and_bad_weights_are_as_of_one_table() -> None:
    rows = oracle.collection(300, 8, "clustered", 3)
    weights = np.where(np.unpackbits(rows, axis=1, bitorder="little"), 1, -1).astype(np.float32)
    weights *= np.random.default_rng(0).random(weights.shape)
    whole = la.FlipIndex(rows, 8)
    with tables_of(70):
        index = la.FlipIndex(rows, 8)
    assert index.tune_flips(rows, weights, 3) == whole.tune_flips(rows, weights, 3)
    weights[4, 60] = np.nan
    with pytest.raises(la.errors.ArgumentError, match="query 4"):
        index.within(rows, 3, weights=weights, first=True)


def test_memory_and_steps_count_all_parts() -> None:
    rows = oracle.collection(1000, 8, "uniform", 0)
    choice = BlockChoice(64, 4, 1)
    with tables_of(300):
        for compressed in (False, True):
            index = la.BlockIndex(rows, 3, 4, compressed=compressed)
            assert index.memory_bytes == choice.bytes(1000, compressed)
        steps, plan = (
            choice.steps(1000),
            la.plan(count=1000, bits=64, radius=3, recall=0.9, costs=COSTS),
        )
    assert steps.buckets == 4 * 4
    assert steps.rows == choice.steps(1000).rows
    for option in plan.options:
        if option.index in ("blocks", "flips"):
            assert " in 4 shards" in option.remark


@pytest.mark.parametrize(
    "changes",
    [
        {"parts": 0},
        {"parts": 2},
        {"parts": 5},
        {"parts": 10**9},
        {"parts": "four"},
        {"1__0__rows": lambda rows: rows[:-1]},
        {"1__0__rows": lambda rows: rows + 10**6},
        {"2__0__signatures": lambda rows: rows[:-1]},
        {"2__0__signatures": lambda rows: rows[:, :4].copy()},
        {"3__0__offsets": lambda offsets: offsets[::-1] + 10**6},
        {"ids": lambda ids: ids[:-1]},
    ],
)
@pytest.mark.parametrize("kind", [la.BlockIndex, la.FlipIndex])
def test_damaged_parts_are_refused(tmp_path: Path, kind: Any, changes: dict[str, Any]) -> None:
    rows = oracle.collection(100, 8, "uniform", 1)
    with tables_of(25):
        kind(rows, 3, ids=np.arange(100)).save(tmp_path / "x")
    damaged(tmp_path / "x", **changes)
    with pytest.raises(la.errors.CorruptIndexError):
        index = la.load_index(tmp_path / "x")
        index.within(rows, 3)
        index.search(rows, 3)


def test_batches_have_chunks_that_tables_have_room_for(tmp_path: Path) -> None:
    rows = oracle.collection(200, 8, "clustered", 2)
    la.match_batch(tmp_path / "one", rows, threads=1)
    for method in ("flips", "blocks"):
        expected = la.match_batch(tmp_path / "one", rows[:40], method=method, append=False)
        with tables_of(50):
            matches = la.match_batch(
                tmp_path / "one", rows[:40], method=method, append=False, chunk=10**12
            )
            with pytest.raises(la.errors.ArgumentError, match="51 queries; a batch has at most 50"):
                la.match_batch(tmp_path / "one", rows[:51], method=method)
        assert found(matches) == found(expected)
        assert matches.exact
