"""Batches of slice searches: lists read and candidates re-ranked together, as if one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike import _native
from support.cases.strategies import collections, distinct_ids
from support.oracles import scan as oracle
from support.oracles import slices as slice_oracle

WIDE = 128
"""Bytes: with 9-bit slices 114 lists a signature, of 9 and 8 bits."""
MANY = 74_000
"""So many signatures have 34 MB of lists, enough for batches to read them together."""


def _assert_same(one: la.results.Neighbors, other: la.results.Neighbors) -> None:
    assert np.array_equal(one.ids, other.ids)
    assert np.array_equal(one.distances, other.distances)


def _assert_as_one_by_one(
    index: la.SliceIndex, queries: oracle.Signatures, k: int, threads: int, **settings: Any
) -> None:
    batch = index.search(queries, k, explain=True, threads=threads, **settings)
    _assert_same(index.search(queries, k, threads=threads, **settings), batch)
    assert batch.explanation is not None
    for row, query in enumerate(queries):
        alone = index.search(query, k, explain=True, threads=1, **settings)
        assert alone.explanation is not None
        assert np.array_equal(batch.ids[row], alone.ids[0])
        assert np.array_equal(batch.distances[row], alone.distances[0])
        for counted in ("exact", "lists", "postings", "candidates", "reranked"):
            assert getattr(batch.explanation, counted)[row] == getattr(alone.explanation, counted)


@pytest.fixture(scope="module")
def topics() -> oracle.Signatures:
    """Signatures around a few hundred centers, which make long lists and high scores."""
    rng = np.random.default_rng(5)
    centers = rng.integers(0, 256, (300, WIDE), np.uint8)
    share = rng.uniform(0.02, 0.5, MANY)
    flips = np.packbits(rng.random((MANY, 8 * WIDE), np.float32) < share[:, None], axis=1)
    return np.asarray(centers[rng.integers(0, 300, MANY)] ^ flips)


@pytest.mark.parametrize(("expand", "admit"), [(0, 0), (1, 1), (1, 0)])
@pytest.mark.parametrize("threads", [1, 2])
def test_many_postings_read_together(
    topics: oracle.Signatures, expand: int, admit: int, threads: int
) -> None:
    index = la.SliceIndex(topics, 9)
    queries = np.concatenate([topics[:30], oracle.collection(110, WIDE, "uniform", 6)])
    queries = np.concatenate([queries, topics[500:660], queries[:9]])
    _assert_as_one_by_one(index, queries, 7, threads, expand=expand, admit=admit, rerank=200)
    index.remove(np.arange(0, MANY, 3))
    index.add(topics[:2500])
    few = queries[::3]
    _assert_as_one_by_one(index, few, 7, threads, expand=expand, admit=admit, rerank=50)


def test_many_postings_of_ids_in_any_order(topics: oracle.Signatures) -> None:
    ids = np.random.default_rng(8).permutation(10 * MANY)[:MANY]
    index = la.SliceIndex(topics, 9, ids)
    _assert_as_one_by_one(index, topics[:70], 3, 1, expand=1, admit=0, rerank=90)


@pytest.mark.parametrize(("count", "slice_bits"), [(150_000, 8), (40_000, 9), (5_000, 16)])
def test_lists_that_are_too_long_for_a_batch(count: int, slice_bits: int) -> None:
    """Every list has all signatures, so that few queries or none fit into memory together."""
    rows = np.repeat(oracle.collection(1, WIDE, "uniform", 9), count, axis=0)
    rows[-1, 0] ^= 1
    index = la.SliceIndex(rows, slice_bits)
    queries = np.repeat(rows[-1:], 80 if count < 100_000 else 65, axis=0)
    found = index.search(queries, 3, expand=0, threads=1)
    assert found.ids.tolist() == [[count - 1, 0, 1]] * len(queries)
    assert found.distances.tolist() == [[0, 1, 1]] * len(queries)


@pytest.mark.parametrize("width", [2, 8, 16, 32, 40, 64, 128])
@pytest.mark.parametrize("seed", range(4))
def test_few_postings_are_chosen_as_if_all_were_sorted(kernel: str, width: int, seed: int) -> None:
    rng = np.random.default_rng(100 * width + seed)
    count = int(rng.integers(200, 3000))
    rows = oracle.collection(count, width, "uniform", seed)
    near = rng.integers(0, count, count // 2)  # copies with a few bits changed
    flips = rng.random((len(near), 8 * width)) < rng.uniform(0, 0.3, (len(near), 1))
    rows[rng.permutation(count)[: len(near)]] = rows[near] ^ np.packbits(flips, axis=1)
    index = la.SliceIndex(rows, min(8 * width, int(rng.integers(13, 18))))
    if seed % 2:
        index.remove(rng.permutation(count)[: count // 5])
    queries = np.concatenate([rows[:120], oracle.collection(30, width, "uniform", seed + 1)])
    living = dict(zip(index.living()[1].tolist(), index.living()[0], strict=True))
    for expand, admit in ((0, 0), (1, 0), (2, 2)):
        k = int(rng.integers(1, 6))
        settings: dict[str, Any] = {"expand": expand, "admit": admit}
        settings["rerank"] = k + int(rng.integers(0, 30))
        found = index.search(queries, k, threads=1 + seed % 3, **settings)
        sorted_out = index.search(queries, k, explain=True, threads=1, **settings)
        _assert_same(found, sorted_out)
        assert found.exact == sorted_out.exact
        for query in (0, 130):
            expected = slice_oracle.search(
                living, queries[query], k, index.slice_bits, expand, admit, settings["rerank"]
            )
            ids, distances = found[query]
            assert list(zip(distances.tolist(), ids.tolist(), strict=True)) == expected


@settings(max_examples=60)
@given(st.data(), st.sampled_from([1, 2, 8, 9, 16]), st.integers(0, 3))
def test_a_batch_without_explanation_is_the_same(
    draw: st.DataObject, width: int, expand: int
) -> None:
    rows = draw.draw(collections(width=width, most=80, least=1))
    index = la.SliceIndex(rows, draw.draw(st.integers(8, 16)), draw.draw(distinct_ids(len(rows))))
    queries = np.concatenate([rows, draw.draw(collections(width=width, most=20, least=1))])
    chosen: dict[str, Any] = {
        "expand": expand,
        "admit": draw.draw(st.integers(0, 3)),
        "rerank": draw.draw(st.integers(3, 40)),
    }
    whole = index.search(queries, 3, threads=draw.draw(st.sampled_from([1, 3])), **chosen)
    _assert_same(whole, index.search(queries, 3, threads=1, explain=True, **chosen))
    for row, query in enumerate(queries[:5]):
        assert np.array_equal(index.search(query, 3, **chosen).ids[0], whole.ids[row])


@pytest.mark.parametrize("style", ["uniform", "clustered", "skewed"])
@pytest.mark.parametrize("radius", [0, 1, 3, 6, 11])
def test_pairs_of_words_are_those_of_the_scan(kernel: str, style: str, radius: int) -> None:
    rng = np.random.default_rng(radius)
    rows = rng.integers(0, 2**64, 20_000 if style == "uniform" else 9_000, np.uint64)
    if style == "clustered":
        rows = rows[rng.integers(0, 2_000, len(rows))]
    if style == "skewed":
        rows &= np.uint64(0xFFFFF00000FFFFFF)
    changed = rng.integers(0, len(rows), len(rows) // 3)
    for _ in range(4):
        rows[changed] = rows[changed // 2] ^ (
            np.uint64(1) << rng.integers(0, 64, len(changed), np.uint64)
        )
    signatures = rows.view(np.uint8).reshape(-1, 8)
    expected = la.ScanIndex(signatures).pairs(radius)
    for threads in (1, 3):
        found = la.SliceIndex(signatures).pairs(radius, threads=threads)
        assert np.array_equal(found.left, expected.left)
        assert np.array_equal(found.right, expected.right)
        assert np.array_equal(found.distances, expected.distances)


@given(st.data(), st.sampled_from([1, 3, 8, 16]))
def test_equal_rows_are_found(draw: st.DataObject, width: int) -> None:
    rows = draw.draw(collections(width=width, most=300))
    found, offsets = _native.equal_rows(rows)
    groups: dict[bytes, list[int]] = {}
    for number, row in enumerate(rows):
        groups.setdefault(row.tobytes(), []).append(number)
    expected = sorted(group for group in groups.values() if len(group) > 1)
    assert sorted(group.tolist() for group in np.split(found, offsets[1:-1]) if len(group)) == (
        expected
    )


def test_pairs_of_many_words_with_copies() -> None:
    """So many that they are joined part by part; copies lie anywhere among the others."""
    random = np.random.default_rng(8)
    rows = random.integers(0, 256, (20_000, 8), np.uint8)
    near = rows[:5000] ^ (random.integers(0, 256, (5000, 8)) < 3).astype(np.uint8)
    rows = np.concatenate([rows, near, rows[::4], near[::2]])
    rows = rows[random.permutation(len(rows))]
    expected = la.ScanIndex(rows).pairs(3)
    found = la.SliceIndex(rows).pairs(3)
    assert len(found.left) > 10_000
    for name in ("left", "right", "distances"):
        assert np.array_equal(getattr(found, name), getattr(expected, name))
