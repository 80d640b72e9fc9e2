"""Searches by score: the best by (score, id), and shards that are merged by it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from support.cases.strategies import collections_with_queries
from support.oracles import scan as oracle
from support.oracles import slices as slice_oracle

SETTINGS = {
    "expand": st.integers(0, 4),
    "admit": st.one_of(st.none(), st.integers(0, 3)),
    "k": st.integers(1, 12),
    "threads": st.sampled_from([1, 2, 5]),
}


def by_score(
    living: dict[int, Any], query: Any, k: int, slice_bits: int, expand: int, admit: int
) -> list[tuple[int, int]]:
    """Return the (score, id) of the k best, from the definition."""
    scored = (
        (slice_oracle.score(row, query, slice_bits, expand, admit), name)
        for name, row in living.items()
    )
    best = sorted((-points, name) for points, name in scored if points)[:k]
    return [(-points, name) for points, name in best]


def scores_and_ids(found: la.results.Neighbors) -> list[list[tuple[int, int]]]:
    assert found.scores is not None
    there = found.ids >= 0
    assert ((found.scores >= 0) == there).all()
    rows = zip(found.scores, found.ids, there, strict=True)
    return [
        list(zip(points[one].tolist(), ids[one].tolist(), strict=True)) for points, ids, one in rows
    ]


@st.composite
def filled(draw: st.DrawFn) -> tuple[Any, Any, list[Any]]:
    """Return signatures by id, queries, and slice indexes that have a part of them each."""
    rows, queries = draw(collections_with_queries())
    names = draw(st.permutations(range(2 * len(rows))))[: len(rows)]
    width = draw(st.sampled_from([3, 5, 8]))
    parts = draw(st.integers(1, 4))
    shards = []
    for part in range(parts):
        own = slice(part, None, parts)
        shard = la.SliceIndex(rows[own], width, np.array(names[own], np.int64))
        gone: list[int] = []
        changed = draw(st.booleans())
        if names[own]:
            gone = draw(st.lists(st.sampled_from(names[own]), unique=True))
        if gone and changed:
            shard.remove(gone)
            shard.add(rows[own][:1], gone[:1])  # an id that is used again
        saved = draw(st.booleans())
        shards.append(la.SliceIndex.from_bytes(shard.to_bytes()) if saved else shard)
    living: dict[int, Any] = {}
    for shard in shards:
        for row, name in zip(*shard.living(), strict=True):
            living[int(name)] = row
    return living, queries, shards


@given(case=filled(), data=st.data(), **SETTINGS)
@settings(max_examples=120)
def test_scores_alone_are_those_of_the_definition(
    case: Any, data: st.DataObject, expand: int, admit: int | None, k: int, threads: int
) -> None:
    living, queries, shards = case
    width = shards[0].slice_bits
    chosen: Any = None
    if data.draw(st.booleans()):
        chosen = data.draw(st.lists(st.integers(0, 150)))
        living = {name: row for name, row in living.items() if name in chosen}
    expected = [
        by_score(living, query, k, width, expand, expand if admit is None else admit)
        for query in queries
    ]
    whole = la.SliceIndex.merge(shards)
    given: dict[str, Any] = {"expand": expand, "admit": admit, "rerank": 0, "among": chosen}
    nested = la.ShardedIndex([la.ShardedIndex(shards[:1]), *shards[1:]])
    for index in (whole, la.ShardedIndex(shards), nested):
        found = index.search(queries, k, threads=threads, explain=True, **given)
        assert scores_and_ids(found) == expected
        assert (found.distances == -1).all()
        assert not found.exact or not len(queries)
        assert found.explanation is not None
        assert not found.explanation.reranked.any()
    shares = [shard.search(queries, k, **given) for shard in shards]
    merged = la.indexes.merge_neighbors(shares)
    assert scores_and_ids(merged) == expected
    assert merged.ids.shape == (len(queries), k)


@given(case=filled(), more=st.integers(0, 9), data=st.data(), **SETTINGS)
@settings(max_examples=100)
def test_shards_merged_by_score_are_one_index(
    case: Any,
    more: int,
    data: st.DataObject,
    expand: int,
    admit: int | None,
    k: int,
    threads: int,
) -> None:
    living, queries, shards = case
    best = k + more
    among = data.draw(st.one_of(st.none(), st.lists(st.integers(0, 150))))
    given: dict[str, Any] = {"expand": expand, "admit": admit, "rerank": best, "among": among}
    one = la.SliceIndex.merge(shards).search(queries, k, threads=threads, **given)
    shares = [shard.search(queries, best, **given) for shard in shards]
    merged = la.indexes.merge_neighbors(shares, k, rerank=best)
    together = la.ShardedIndex(shards).search(queries, k, threads=threads, **given)
    for other in (merged, together):
        assert other.ids.tolist() == one.ids.tolist()
        assert other.distances.tolist() == one.distances.tolist()
        assert scores_and_ids(other) == scores_and_ids(one)
    if among is None:
        narrow = expand if admit is None else admit
        for query, (ids, far) in zip(queries, merged, strict=True):
            assert list(zip(far.tolist(), ids.tolist(), strict=True)) == slice_oracle.search(
                living, query, k, shards[0].slice_bits, expand, narrow, best
            )


@given(collections_with_queries(), st.integers(1, 9), st.integers(1, 4))
def test_exact_shards_merged_are_exact(data: Any, k: int, count: int) -> None:
    rows, queries = data
    cuts = np.array_split(np.arange(len(rows)), count)
    shares = [la.ScanIndex(rows[cut]).search(queries, k) for cut in cuts]
    starts = [int(cut[0]) if len(cut) else 0 for cut in cuts]
    merged = la.indexes.merge_neighbors(shares, starts=starts)
    assert (merged.ids.tolist(), merged.distances.tolist()) == oracle.search(rows, queries, k)
    assert merged.exact
    assert merged.scores is None


def test_scores_are_told_and_stand_in_tables() -> None:
    rows = oracle.collection(300, 16, "clustered", 5)
    index = la.SliceIndex(rows, 8)
    found = index.search(rows[:4], 5, expand=1)
    assert found.scores is not None
    expected = [
        [slice_oracle.score(rows[name], query, 8, 1, 1) for name in ids]
        for query, ids in zip(rows, found.ids.tolist(), strict=False)
    ]
    assert found.scores.tolist() == expected
    assert found.to_arrow().column_names == ["query", "id", "distance", "score"]
    assert found.to_numpy()["score"].tolist() == [one for some in expected for one in some]
    assert la.ScanIndex(rows).search(rows[:1], 3).scores is None
    scanned = la.ShardedIndex([index, la.ScanIndex(rows)]).search(rows[:1], 3)
    assert scanned.scores is None


def test_a_search_by_score_never_scans() -> None:
    rows = oracle.collection(400, 16, "clustered", 6)  # so few that a scan would be quicker
    index = la.SliceIndex(rows, 8)
    assert index.search(rows[:3], 4).exact
    plain = index.search(rows[:3], 4, rerank=0)
    told = index.search(rows[:3], 4, expand=3, rerank=0)
    assert plain.scores is not None
    assert told.scores is not None
    assert plain.scores.tolist() == told.scores.tolist()


def test_a_loaded_shard_has_the_same_scores(tmp_path: Path) -> None:
    rows = oracle.collection(500, 32, "clustered", 7)
    index = la.SliceIndex(rows, 9)
    index.save(tmp_path / "shard")
    for twin in (la.load_index(tmp_path / "shard"), la.SliceIndex.from_bytes(index.to_bytes())):
        assert isinstance(twin, la.SliceIndex)
        found = [one.search(rows[:9], 6, expand=2, rerank=0) for one in (index, twin)]
        assert scores_and_ids(found[0]) == scores_and_ids(found[1])


ONES = np.ones((2, 8), np.uint8)
NO_LIST: Any = 5


def searched(rerank: int = 0, k: int = 3, start: int = 0, **more: Any) -> la.results.Neighbors:
    rows = oracle.collection(20, 8, "uniform", 1)
    index = la.SliceIndex(rows, 4, np.arange(start, start + 20))
    return index.search(rows[: more.get("queries", 2)], k, expand=1, rerank=rerank)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: la.indexes.merge_neighbors([]), "no results to merge"),
        (lambda: la.indexes.merge_neighbors(NO_LIST), "results"),
        (lambda: la.indexes.merge_neighbors([1]), "results"),  # type: ignore[list-item]
        (
            lambda: la.indexes.merge_neighbors([searched(), searched()]),
            "id 0 is in more than one result",
        ),
        (
            lambda: la.indexes.merge_neighbors([searched(), searched(queries=1)]),
            r"of \[1, 2\] queries",
        ),
        (
            lambda: la.indexes.merge_neighbors([searched(), searched(start=20)], 4),
            "k is 4, .* only 3",
        ),
        (lambda: la.indexes.merge_neighbors([searched()], rerank=9), "rerank is 9, .* only 3"),
        (
            lambda: la.indexes.merge_neighbors([searched()], rerank=2),
            "rerank is 2; .* at least k=3",
        ),
        (lambda: la.indexes.merge_neighbors([searched()], rerank=3), "distances were not computed"),
        (lambda: la.indexes.merge_neighbors([searched()], starts=[1, 2]), "1 results and 2 starts"),
        (lambda: la.indexes.merge_neighbors([searched()], starts=[-1]), "starts is -1"),
        (lambda: la.indexes.merge_neighbors([searched()], starts=5), "starts are 5"),  # type: ignore[arg-type]
        (
            lambda: la.indexes.merge_neighbors(
                [searched(), la.ScanIndex(ONES, [90, 91]).search(ONES, 3)]
            ),
            "have no scores",
        ),
    ],
)
def test_what_cannot_be_merged_is_refused(call: Any, message: str) -> None:
    with pytest.raises(la.errors.ArgumentError, match=message):
        call()


def test_scores_alone_prove_nothing() -> None:
    rows = oracle.collection(50, 8, "uniform", 1)
    index = la.SliceIndex(rows, 4)
    for one in (index, la.ShardedIndex([index])):
        with pytest.raises(la.errors.ArgumentError, match="scores alone are not exact"):
            one.search(rows[:1], 2, rerank=0, exact=True)
        with pytest.raises(la.errors.ArgumentError, match="rerank is 1; .* at least k=2"):
            one.search(rows[:1], 2, rerank=1)
    for other in (la.ScanIndex(rows), la.ShardedIndex([la.ScanIndex(rows)])):
        with pytest.raises(la.errors.ArgumentError, match="some shards have no scores"):
            la.ShardedIndex([index, other]).search(rows[:1], 2, rerank=0)


def test_ids_that_starts_raise_beyond_int64_are_not_lost() -> None:
    rows = oracle.collection(5, 8, "uniform", 0)
    high = la.ScanIndex(rows, np.arange(5) + 2**62).search(rows[:2], 2)
    low = la.ScanIndex(rows).search(rows[:2], 2)
    assert la.indexes.merge_neighbors([low, high], starts=[2**62, 5]).ids.min() >= 2**62
    with pytest.raises(
        la.errors.ArgumentError, match="starts has 4611686018427387904, and a shard has the"
    ):
        la.indexes.merge_neighbors([low, high], starts=[0, 2**62])
