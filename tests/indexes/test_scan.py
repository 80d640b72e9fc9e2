from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lookalike as la
from support.cases.strategies import collections, collections_with_queries, distinct_ids
from support.oracles import scan as oracle

Data = tuple[oracle.Signatures, oracle.Signatures]
threads_used = st.sampled_from([None, 1, 2, 5])


@given(st.data(), collections_with_queries(), st.integers(1, 90), threads_used)
def test_search_equals_the_oracle_with_every_kernel(
    kernel: str, draw: st.DataObject, data: Data, k: int, threads: int | None
) -> None:
    rows, queries = data
    ids = draw.draw(distinct_ids(len(rows)))
    result = la.ScanIndex(rows, ids).search(queries, k, threads=threads)
    expected_ids, expected_distances = oracle.search(rows, queries, k, ids)
    assert result.ids.shape == result.distances.shape == (len(queries), k)
    assert result.ids.dtype == np.int64
    assert result.distances.dtype == np.int32
    assert result.ids.tolist() == expected_ids
    assert result.distances.tolist() == expected_distances
    assert result.exact


@given(st.data(), collections_with_queries(), threads_used)
def test_within_equals_the_oracle_with_every_kernel(
    kernel: str, draw: st.DataObject, data: Data, threads: int | None
) -> None:
    rows, queries = data
    ids = draw.draw(distinct_ids(len(rows)))
    bits = 8 * rows.shape[1]
    radius = draw.draw(st.one_of(st.sampled_from([0, bits, bits + 1]), st.integers(0, bits)))
    result = la.ScanIndex(rows, ids).within(queries, radius, threads=threads)
    found = [list(zip(far.tolist(), near.tolist(), strict=True)) for near, far in result]
    assert found == oracle.within(rows, queries, radius, ids)
    assert result.exact


@given(st.data(), collections(), threads_used)
def test_pairs_equal_the_oracle_with_every_kernel(
    kernel: str, draw: st.DataObject, rows: oracle.Signatures, threads: int | None
) -> None:
    ids = draw.draw(distinct_ids(len(rows)))
    bits = 8 * rows.shape[1]
    radius = draw.draw(st.one_of(st.sampled_from([0, bits]), st.integers(0, bits)))
    result = la.ScanIndex(rows, ids).pairs(radius, threads=threads)
    found = zip(result.left.tolist(), result.right.tolist(), result.distances.tolist(), strict=True)
    assert list(found) == oracle.pairs(rows, radius, ids)
    assert result.exact


@pytest.mark.parametrize("masked", [False, True])
def test_the_largest_distance_of_every_width(kernel: str, masked: bool) -> None:
    for width in [*range(1, 270), 511, 512, 520]:
        rows = np.zeros((17, width), np.uint8)
        rows[np.arange(17), np.arange(17) % width] = 0x81
        asked = np.full((1, width), 0xFF, np.uint8)
        masks = {"masks": asked} if masked else {}
        found = la.ScanIndex(rows).within(asked, 8 * width, **masks)
        assert found.ids.tolist() == list(range(17)), width
        assert found.distances.tolist() == [8 * width - 2] * 17, width
        rows[:] = 0
        found = la.ScanIndex(rows).within(asked, 8 * width, **masks)
        assert found.distances.tolist() == [8 * width] * 17, width
        assert len(la.ScanIndex(rows).within(asked, 8 * width - 1, **masks).ids) == 0, width


# Large enough for several tiles, chunks, blocks of queries and threads; see native/scan/.
LARGE = [
    (300_000, 8, 3, "uniform"),
    (90_000, 16, 1, "clustered"),
    (6_000, 128, 300, "clustered"),
    (40_000, 33, 20, "uniform"),
    (70_000, 1, 300, "uniform"),
    (200_000, 8, 2, "equal"),
]


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize(("count", "width", "queries", "style"), LARGE)
def test_large_collections_are_the_same_for_any_thread_count(
    count: int, width: int, queries: int, style: str, shuffled: bool
) -> None:
    rows = oracle.collection(count, width, style, 7)
    asked = rows[:: max(1, count // queries)][:queries].copy()
    rng = np.random.default_rng(1)
    ids = rng.permutation(count) + 10 if shuffled else None
    names = np.arange(count) if ids is None else ids
    index = la.ScanIndex(rows, ids)
    matrix = la.hamming(asked, rows, all_pairs=True, threads=1)
    assert np.array_equal(matrix[:2], oracle.distances(asked[:2], rows))
    radius = int(np.partition(matrix[0], 20)[20])

    order = np.lexsort((np.broadcast_to(names, matrix.shape), matrix), axis=1)
    for threads in (1, 2, 3, 7):
        assert np.array_equal(la.hamming(asked, rows, all_pairs=True, threads=threads), matrix)
        nearest = index.search(asked, 12, threads=threads)
        assert np.array_equal(nearest.ids, names[order[:, :12]])
        assert np.array_equal(nearest.distances, np.take_along_axis(matrix, order[:, :12], axis=1))
        matches = index.within(asked, radius, threads=threads)
        for query, (found, far) in enumerate(matches):
            inside = order[query][matrix[query][order[query]] <= radius]
            assert np.array_equal(found, names[inside])
            assert np.array_equal(far, matrix[query][inside])


@pytest.mark.parametrize("shuffled", [False, True])
def test_large_pairs_are_the_same_for_any_thread_count(shuffled: bool) -> None:
    count, radius = 5_000, 9
    rows = oracle.collection(count, 16, "uniform", 3)
    rows[1000:2000] = rows[:1000]
    rows[1000:2000, 5] ^= 0b10110
    ids = np.random.default_rng(2).permutation(count) * 3 if shuffled else np.arange(count)
    left, right = np.nonzero(np.tril(oracle.distances(rows, rows) <= radius, -1))
    assert len(left) >= 1000
    ends = np.sort(np.stack([ids[left], ids[right]], axis=1), axis=1)
    expected = ends[np.lexsort((ends[:, 1], ends[:, 0]))]
    for threads in (1, 2, 5):
        found = la.ScanIndex(rows, ids).pairs(radius, threads=threads)
        assert np.array_equal(np.stack([found.left, found.right], axis=1), expected)


def test_a_million_copies_are_searched_as_quickly_as_anything() -> None:
    rows = np.zeros((1_000_000, 8), np.uint8)
    index = la.ScanIndex(rows)
    assert index.search(rows[:3], 5).ids.tolist() == [[0, 1, 2, 3, 4]] * 3
    with pytest.raises(
        la.errors.ResultTooLargeError, match="more than limit=1000 pairs within radius 0"
    ):
        index.pairs(0, limit=1000)


def test_k_as_large_as_the_collection() -> None:
    rows = oracle.collection(30_000, 8, "clustered", 0)
    result = la.ScanIndex(rows).search(rows[:2], len(rows) + 3)
    assert (result.ids[:, -3:] == -1).all()
    assert (result.distances[:, -3:] == -1).all()
    matrix = oracle.distances(rows[:2], rows)
    assert np.array_equal(result.distances[:, :-3], np.sort(matrix, axis=1))
    assert all(set(line) == set(range(-1, len(rows))) for line in result.ids.tolist())


def test_many_python_threads_on_one_index() -> None:
    rows = oracle.collection(20_000, 32, "clustered", 5)
    index = la.ScanIndex(rows)
    expected = index.search(rows[:40], 7, threads=1).ids

    def ask(turn: int) -> bool:
        query = turn % 40
        found = index.search(rows[query], 7, threads=1 + turn % 3).ids
        near = index.within(rows[query], 0, threads=1 + turn % 2)
        return np.array_equal(found[0], expected[query]) and query in near.ids

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(200)))


def test_the_limit_is_exact() -> None:
    rows = oracle.collection(40, 8, "equal", 0)
    index = la.ScanIndex(rows)
    assert len(index.within(rows[:2], 0, limit=80).ids) == 80
    with pytest.raises(
        la.errors.ResultTooLargeError, match=r"limit=79 matches within radius 0 of 2 que"
    ):
        index.within(rows[:2], 0, limit=79)
    assert len(index.pairs(0, limit=780)) == 780
    with pytest.raises(la.errors.ResultTooLargeError, match="limit=779 pairs .* 40 signatures"):
        index.pairs(0, limit=779)
    assert len(index.pairs(0, limit=2**70)) == 780


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda index: index.search(index.signatures, 0), "k is 0; expected .* at least 1"),
        (lambda index: index.search(index.signatures, -3), "k is -3"),
        (lambda index: index.search(index.signatures, 2.0), "k is 2.0 of type float"),
        (lambda index: index.search(index.signatures, True), "k is True"),
        (lambda index: index.search(index.signatures, "3"), "k is '3' of type str"),
        (lambda index: index.within(index.signatures, -1), "radius is -1; expected .* at least 0"),
        (lambda index: index.within(index.signatures, None), "radius is None"),
        (lambda index: index.within(index.signatures, 3, limit=-1), "limit is -1"),
        (lambda index: index.pairs(1, threads=0), "threads is 0; expected .* from 1 to"),
        (lambda index: index.search(index.signatures, 1, threads=10**9), "threads is 1000000000"),
    ],
)
def test_arguments_that_make_no_sense_are_named(call: Any, message: str) -> None:
    index = la.ScanIndex(oracle.collection(3, 8, "uniform", 0))
    with pytest.raises(la.errors.ArgumentError, match=message):
        call(index)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([1, 2], r"ids have shape \(2,\), but there are 3 signatures"),
        ([[1, 2, 3]], r"ids have shape \(1, 3\)"),
        ([1.0, 2.0, 3.0], "ids are float64; expected whole numbers"),
        (["a", "b", "c"], "ids are <U1"),
        ([3, -1, 2], "smallest id is -1"),
        ([7, 5, 7], "id 7 is given more than once"),
        (np.array([1, 2, 2**63], np.uint64), "largest id is 9223372036854775808"),
    ],
)
def test_ids_that_cannot_be_used_are_named(ids: Any, message: str) -> None:
    with pytest.raises(la.errors.ArgumentError, match=message):
        la.ScanIndex(oracle.collection(3, 8, "uniform", 0), ids)


def test_a_query_of_the_wrong_width_names_both() -> None:
    index = la.ScanIndex(oracle.collection(3, 16, "uniform", 0))
    for call in (index.search, index.within):
        with pytest.raises(
            la.errors.SignatureError, match="queries have 64 bits, the index has 128"
        ):
            call(np.zeros((1, 8), np.uint8), 3)


def test_what_the_index_says_of_itself() -> None:
    index = la.ScanIndex(oracle.collection(3, 16, "uniform", 0), ids=[4, 5, 6])
    assert (len(index), index.bits, index.memory_bytes) == (3, 128, 3 * 16 + 3 * 8)
    assert repr(index) == "ScanIndex(3 signatures of 128 bits)"
    assert index.stats() == {
        "index": "scan",
        "signatures": 3,
        "bits": 128,
        "memory_bytes": 72,
        "file": None,
    }


def test_a_long_search_can_be_interrupted() -> None:
    code = (
        "import numpy as np, lookalike as la\n"
        "index = la.ScanIndex(np.zeros((3_000_000, 128), np.uint8))\n"
        "print('ready', flush=True)\n"
        "index.within(index.signatures ^ 1, 0)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    if process.stdout is None:
        raise RuntimeError("no output to read")
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=300)
    assert "KeyboardInterrupt" in errors
