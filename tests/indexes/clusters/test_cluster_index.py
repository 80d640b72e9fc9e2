from __future__ import annotations

import copy
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.advice import recall_at_k
from lookalike.indexes import segments
from lookalike.indexes.clusters import groups as grouping
from lookalike.indexes.clusters import majority
from support.cases.clustered import clustered
from support.cases.strategies import distinct_ids
from support.cases.tables import damaged, near_collections, threads_used
from support.oracles import clusters as cluster_oracle
from support.oracles import scan as oracle

HALF: Any = 0.5
ONE: Any = 1


def pairs_of(found: Any, query: int) -> list[tuple[int, int]]:
    ids, far = found[query]
    return list(zip(far.tolist(), ids.tolist(), strict=True))


@given(
    case=near_collections(),
    number=st.integers(1, 9),
    probe=st.integers(1, 5),
    k=st.integers(1, 8),
    threads=threads_used,
    saved=st.booleans(),
    data=st.data(),
)
@settings(max_examples=150)
def test_answers_are_those_of_the_groups_that_are_read(
    case: Any,
    number: int,
    probe: int,
    k: int,
    threads: int | None,
    saved: bool,
    data: st.DataObject,
) -> None:
    rows, queries = case
    names = data.draw(distinct_ids(len(rows)))
    ids = list(range(len(rows))) if names is None else names
    seed = data.draw(st.integers(0, 2**64 - 1))
    large = data.draw(st.sampled_from([2, 256]))
    with mock.patch.multiple(grouping, _LARGE_ROWS=large, _LARGE=1):
        index = la.ClusterIndex(rows, min(number, max(1, len(rows))), names, seed=seed)
    if saved:
        index = la.ClusterIndex.from_bytes(index.to_bytes())
    chosen = set(ids)
    among = None
    if data.draw(st.booleans()):
        chosen = set(data.draw(st.lists(st.sampled_from(ids)))) if ids else set()
        among = sorted(chosen)
    radius = data.draw(st.integers(0, index.bits))
    given: dict[str, Any] = {"among": among, "threads": threads, "explain": True}
    with mock.patch.multiple(segments, _COPIED=-1, _COPIED_SHARE=10**9):
        near = index.search(queries, k, probe=probe, **given)
        proven = index.search(queries, k, probe=probe, exact=True, **given)
        matches = index.within(queries, radius, **given)
    assert proven.exact
    assert matches.exact
    inner = index._state.groups
    sizes = np.diff(inner.offsets).tolist()
    signature = dict(zip(ids, rows, strict=True))
    for query, row in enumerate(queries):
        read = cluster_oracle.probed(inner.centers, sizes, row, probe, min(k, max(1, len(chosen))))
        every = sorted((oracle.distance(signature[one], row), one) for one in chosen)
        places = index._state.segments[0].find(np.array(ids, np.int64))
        own = dict(zip(ids, inner.group_of(places).tolist(), strict=True))
        assert pairs_of(near, query) == [one for one in every if own[one[1]] in read][:k]
        assert pairs_of(proven, query) == every[:k]
        assert pairs_of(matches, query) == [one for one in every if one[0] <= radius]
        for found in (near, proven, matches):
            told = found.explanation
            assert told is not None
            assert 0 <= told.lists[query] <= len(inner)
            assert told.reranked[query] <= len(rows)
            if told.exact[query] and found is near:
                assert pairs_of(near, query) == every[:k]
        assert near.explanation is not None
        assert near.explanation.lists[query] <= len(read)
        if len(read) == len(inner):
            assert near.explanation.exact[query]


@given(
    case=near_collections(),
    number=st.integers(1, 9),
    large=st.integers(1, 3),
    threads=threads_used,
    data=st.data(),
)
@settings(max_examples=60)
def test_groups_hold_everything_once(
    case: Any, number: int, large: int, threads: int | None, data: st.DataObject
) -> None:
    rows, _ = case
    names = data.draw(distinct_ids(len(rows)))
    ids = list(range(len(rows))) if names is None else names
    with mock.patch.multiple(grouping, _LARGE_ROWS=2, _LARGE=large):
        index = la.ClusterIndex(rows, min(number, max(1, len(rows))), names, threads=threads)
    inner = index._state.groups
    assert (inner.offsets[0], inner.offsets[-1]) == (0, len(rows))
    assert (np.diff(inner.offsets) > 0).all()
    signature = dict(zip(ids, rows.tolist(), strict=True))
    for group, center in enumerate(inner.centers):
        part = slice(inner.offsets[group], inner.offsets[group + 1])
        own, far = inner.rows.all_ids()[part].tolist(), inner.from_center[part].tolist()
        assert inner.rows.signatures[part].tolist() == [signature[one] for one in own]
        assert far == [oracle.distance(row, center) for row in inner.rows.signatures[part]]
        order = list(zip(far, own, strict=True))
        assert order == sorted(order)
    living, living_ids = index.living()
    assert living_ids.tolist() == sorted(ids)
    assert living.tolist() == [signature[one] for one in sorted(ids)]


@given(case=near_collections(), radius=st.integers(0, 6))
@settings(max_examples=30)
def test_pairs_are_all_there(case: Any, radius: int) -> None:
    rows, _ = case
    found = la.ClusterIndex(rows, min(3, max(1, len(rows)))).pairs(radius)
    columns = [column.tolist() for column in found.to_numpy().values()]
    assert list(zip(*columns, strict=True)) == oracle.pairs(rows, radius)


def hubs() -> Any:
    """Return signatures most of which are near one center."""
    rng = np.random.default_rng(8)
    center, others = rng.integers(0, 256, (1, 16), np.uint8), clustered(2_000, 16, seed=3)
    noise = np.packbits(rng.random((6_000, 128)) < 0.05, axis=1)
    return np.concatenate([center ^ noise, others])


def test_large_groups_are_split() -> None:
    rows = hubs()
    index = la.ClusterIndex(rows, 60)
    assert index.clusters > 60
    with mock.patch.object(grouping, "_MOST_SPLITS", 0):
        whole = la.ClusterIndex(rows, 60)
    assert whole.clusters <= 60
    assert whole.stats()["largest_cluster"] > 3 * index.stats()["largest_cluster"]


def hub(count: int) -> oracle.Signatures:
    """Return signatures around one that they are nearer to than to each other, at all distances."""
    rng = np.random.default_rng(5)
    middle = rng.integers(0, 256, 16, dtype=np.uint8)
    flips = rng.random((count, 128)) < rng.uniform(0.02, 0.1, (count, 1))
    rows: oracle.Signatures = middle ^ np.packbits(flips, axis=1)
    return rows


def test_hubs_are_split_until_none_is_too_large() -> None:
    """A split leaves most with the center in the middle: one is not enough."""
    rows = np.concatenate([hub(6_000), oracle.collection(6_000, 16, "uniform", 3)])
    limit = grouping._LARGE * (len(rows) // 60)
    index = la.ClusterIndex(rows, 60)
    with mock.patch.object(grouping, "_MOST_SPLITS", 8):
        some = la.ClusterIndex(rows, 60)
    assert some.stats()["largest_cluster"] > limit >= index.stats()["largest_cluster"]
    truth = la.ScanIndex(rows).search(rows[:20], 5)
    assert (index.search(rows[:20], 5, exact=True).ids == truth.ids).all()


def test_what_cannot_be_split_is_not_tried_for_ever() -> None:
    rows = np.concatenate([np.zeros((3_000, 8), np.uint8), hub(40)[:, :8]])
    tried = []

    def counted(some: Any, *more: Any) -> Any:
        tried.append(len(some))
        return majority.clustered(some, *more)

    with mock.patch.object(grouping, "clustered", counted):
        la.ClusterIndex(rows, 4)
    assert sum(tried[1:]) <= 4 * len(rows)


def test_equal_signatures_stay_together() -> None:
    rows = np.zeros((5_000, 8), np.uint8)
    rows[4_000:] = 255
    index = la.ClusterIndex(rows, 40)
    assert sorted(np.diff(index._state.groups.offsets).tolist()) == [1_000, 4_000]
    found = index.search(rows[:1], 3, probe=1)
    assert found.ids.tolist() == [[0, 1, 2]]
    assert found.exact


def test_the_same_for_threads_and_kernels(kernel: str) -> None:
    rows, queries = clustered(5_000, 32, seed=1), clustered(50, 32, seed=2)
    index = la.ClusterIndex(rows, seed=4, threads=1)
    other = la.ClusterIndex(rows, seed=4, threads=3)
    assert index.to_bytes() == other.to_bytes()
    one = index.search(queries, 10, threads=1, explain=True)
    two = other.search(queries, 10, threads=3, explain=True)
    assert one.ids.tolist() == two.ids.tolist()
    assert one.explanation is not None
    assert two.explanation is not None
    assert one.explanation.reranked.tolist() == two.explanation.reranked.tolist()
    singly = [index.search(query[None], 10) for query in queries]
    assert [found.ids[0].tolist() for found in singly] == one.ids.tolist()
    assert la.ClusterIndex(rows, seed=5).to_bytes() != index.to_bytes()


def test_more_groups_find_more_and_near_ones_are_found() -> None:
    rows = clustered(8_000, 32, seed=6)
    index = la.ClusterIndex(rows, 120)
    queries = clustered(300, 32, seed=7)
    truth = la.ScanIndex(rows).search(queries, 10)
    recalls = [
        float(recall_at_k(index.search(queries, 10, probe=probe).ids, truth.ids).mean())
        for probe in (1, 8, index.clusters)
    ]
    assert recalls == sorted(recalls)
    assert recalls[0] < recalls[1] < recalls[2] == 1.0
    near = rows[:500].copy()
    near[:, 0] ^= 5
    assert (index.search(near, 1).distances <= 2).mean() > 0.995


def test_far_groups_are_left_out() -> None:
    rows = clustered(8_000, 32, seed=6)
    index = la.ClusterIndex(rows, 120)
    told = index.within(rows[:100], 5, explain=True).explanation
    assert told is not None
    assert told.reranked.mean() < len(rows) / 8
    told = index.search(rows[:100], 1, exact=True, explain=True).explanation
    assert told is not None
    assert told.exact.all()
    assert told.reranked.mean() < len(rows) / 4


def test_probes_are_tuned_and_remembered(tmp_path: Path) -> None:
    everything = clustered(6_400, 32, seed=6)
    rows, queries = everything[:6_000], everything[6_000:]
    index = la.ClusterIndex(rows, 100)
    tuned = index.tune_probes(10, 0.9, sample=400)
    assert 1 <= tuned.search_settings["probe"] < 100
    assert 0.9 <= (tuned.recall or 0) <= 1
    truth = la.ScanIndex(rows).search(queries, 10)
    found = index.search(queries, 10, recall=0.9, explain=True)
    assert float(recall_at_k(found.ids, truth.ids).mean()) > 0.85
    assert found.ids.tolist() == index.search(queries, 10, **tuned.search_settings).ids.tolist()
    index.save(tmp_path / "x")
    again = la.load_index(tmp_path / "x")
    assert isinstance(again, la.ClusterIndex)
    assert again.tunings == (tuned,)
    # What is enough for more is enough for less.
    assert again.search(queries, 3, recall=0.8).ids.shape == (400, 3)
    for k, recall in ((11, 0.9), (10, 0.95)):
        with pytest.raises(la.errors.ArgumentError, match=r"recall is .* Call tune_probes"):
            again.search(queries, k, recall=recall)
    twin = copy.copy(again)
    twin.tune_probes(5, 0.5, queries)
    twin.tune_probes(10, 0.9, queries)
    assert [(each.k, each.target) for each in twin.tunings] == [(5, 0.5), (10, 0.9)]
    assert again.tunings == (tuned,)


def test_no_sample_proves_that_nothing_is_missed() -> None:
    """A recall of 1 reads every group, tuned or not: others may need what the sample did not."""
    everything = clustered(3_500, 32, seed=6)
    rows, queries = everything[:3_000], everything[3_000:]
    index = la.ClusterIndex(rows, 60)
    truth = la.ScanIndex(rows).search(queries, 10).ids.tolist()
    assert index.search(queries, 10, recall=1).ids.tolist() == truth
    tuned = index.tune_probes(10, 1.0, sample=5)
    assert (tuned.search_settings, tuned.recall) == ({"probe": index.clusters}, 1.0)
    assert index.search(queries, 10, recall=1).ids.tolist() == truth


def test_stats_and_size() -> None:
    rows = clustered(4_000, 128, seed=2)
    index = la.ClusterIndex(rows, seed=9)
    stats = index.stats()
    assert (stats["clusters"], stats["seed"]) == (index.clusters, 9) == (len(index.centers), 9)
    beside = index.memory_bytes - rows.nbytes - index.centers.nbytes
    assert beside == 12 * len(rows) + 8 * (index.clusters + 1)
    assert len(la.ClusterIndex(rows[:0])) == 0
    assert la.ClusterIndex(rows[:1]).clusters == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": -1},
        {"seed": "x"},
        {"next_id": 3},
        {"next_id": None},
        {"tunings": 3},
        {"removals": 3},
        {"removals": -1},
        {"added": 3},
        {"added": [{}]},
        {"tunings": [{"k": 1}]},
        {"tunings": [{"k": 0, "probe": 1, "target": 1, "recall": 1, "queries": 1}]},
        {"offsets": lambda offsets: offsets[:-1]},
        {"offsets": lambda offsets: offsets + 1},
        {"offsets": lambda offsets: offsets[::-1].copy()},
        {"offsets": lambda offsets: np.zeros_like(offsets)},
        {"centres": lambda centers: centers[:-1]},
        {"centres": lambda centers: centers[:, :4].copy()},
        {"from_centre": lambda far: far[:-1]},
        {"from_centre": lambda far: far - 1000},
        {"from_centre": lambda far: far + 1000},
        {"ids": lambda ids: ids[:-1]},
        {"signatures": lambda rows: rows[:-1]},
        {"signatures": lambda rows: rows[:, :0].copy()},
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    rows = oracle.collection(64, 8, "uniform", 1)
    la.ClusterIndex(rows, 3).save(tmp_path / "x")
    damaged(tmp_path / "x", **changes)
    for verify in (True, False):
        with pytest.raises(la.errors.CorruptIndexError):
            la.load_index(tmp_path / "x", verify=verify)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: la.ClusterIndex(r, 0), "clusters is 0; .* from 1 to 30"),
        (lambda r: la.ClusterIndex(r, 31), "clusters is 31"),
        (lambda r: la.ClusterIndex(r, seed=-1), "seed is -1"),
        (lambda r: la.ClusterIndex(r).search(r, 1, probe=0), "probe is 0; .* at least 1"),
        (lambda r: la.ClusterIndex(r).search(r, 1, recall=0), "recall is 0"),
        (lambda r: la.ClusterIndex(r).search(r, 1, probe=1, recall=0.5), "expected one of them"),
        (lambda r: la.ClusterIndex(r).search(r, 1, exact=ONE), "exact is 1"),
        (lambda r: la.ClusterIndex(r).within(r, 64, limit=10), "more than limit=10"),
        (lambda r: la.ClusterIndex(r).tune_probes(0), "k is 0"),
        (lambda r: la.ClusterIndex(r).tune_probes(1, 2), "recall is 2"),
        (lambda r: la.ClusterIndex(r).tune_probes(1, sample=HALF), "sample is 0.5"),
        (lambda r: la.ClusterIndex(r[:1]).tune_probes(1), "nothing to tune with"),
        (lambda r: la.ClusterIndex(r).tune_probes(1, queries=r[:0]), "nothing to tune with"),
    ],
)
def test_bad_arguments_are_refused(call: Any, message: str) -> None:
    with pytest.raises((la.errors.ArgumentError, la.errors.ResultTooLargeError), match=message):
        call(oracle.collection(30, 8, "uniform", 2))


@pytest.mark.parametrize("probe", [1, 7, 60, 700, 1_500])
def test_the_nearest_of_many_groups_are_read(probe: int) -> None:
    rows = clustered(6_000, 16, seed=11)
    index = la.ClusterIndex(rows, 1_500)
    inner = index._state.groups
    queries = np.concatenate([rows[:20], inner.centers[:5]])
    found = index.search(queries, 4, probe=probe, explain=True)
    sizes = np.diff(inner.offsets)
    group = np.repeat(np.arange(len(inner)), sizes)
    for query, row in enumerate(queries):
        read = cluster_oracle.probed(inner.centers, sizes.tolist(), row, probe, 4)
        far = np.bitwise_count(inner.rows.signatures ^ row).sum(axis=1)
        every = zip(far.tolist(), inner.rows.all_ids().tolist(), group.tolist(), strict=True)
        expected = sorted((away, one) for away, one, own in every if own in read)[:4]
        assert pairs_of(found, query) == expected
