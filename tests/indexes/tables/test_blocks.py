"""BlockIndex equals the scan, for any cut into blocks."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lookalike as la
from lookalike.indexes.rows import empty_in_large_pages
from lookalike.indexes.tables.blocks import (
    MOST_TABLES,
    BlockChoice,
    choose_blocks,
    much_quicker,
)
from support.cases.strategies import distinct_ids
from support.cases.tables import damaged, found, near_collections, threads_used
from support.oracles import scan as oracle


@given(near_collections(), st.data(), threads_used)
def test_within_equals_the_oracle_for_any_blocks(
    kernel: str,
    data: tuple[oracle.Signatures, oracle.Signatures],
    draw: st.DataObject,
    threads: int | None,
) -> None:
    rows, queries = data
    bits = 8 * rows.shape[1]
    radius = draw.draw(st.integers(0, min(bits - 1, 6)))
    blocks = draw.draw(st.one_of(st.none(), st.integers(radius + 1, min(bits, radius + 4))))
    lead = None if blocks is None else draw.draw(st.integers(1, blocks - radius))
    ids = draw.draw(distinct_ids(len(rows)))
    index = la.BlockIndex(
        rows,
        radius,
        ids=ids,
        blocks=blocks,
        lead=lead,
        compressed=draw.draw(st.booleans()),
        threads=threads,
    )
    asked = draw.draw(st.integers(0, min(bits, radius + 3)))
    expected = oracle.within(rows, queries, asked, ids)
    matches = index.within(queries, asked, threads=threads)
    assert found(matches) == expected
    assert matches.exact
    first = index.within(queries, asked, first=True, threads=threads)
    assert [len(each) for each in found(first)] == [min(1, len(each)) for each in expected]
    assert all(set(one) <= set(all_) for one, all_ in zip(found(first), expected, strict=True))
    assert found(index.within(queries)) == oracle.within(rows, queries, radius, ids)


@given(near_collections(), st.integers(1, 80), st.data())
def test_search_and_pairs_equal_the_oracle(
    data: tuple[oracle.Signatures, oracle.Signatures], k: int, draw: st.DataObject
) -> None:
    rows, queries = data
    ids = draw.draw(distinct_ids(len(rows)))
    most = min(3, 8 * rows.shape[1] - 1)
    index = la.BlockIndex(rows, most, ids=ids, compressed=draw.draw(st.booleans()))
    result = index.search(queries, k)
    expected_ids, expected_distances = oracle.search(rows, queries, k, ids)
    assert result.ids.tolist() == expected_ids
    assert result.distances.tolist() == expected_distances
    assert result.exact
    pairs = index.pairs(2)
    listed = zip(pairs.left.tolist(), pairs.right.tolist(), pairs.distances.tolist(), strict=True)
    assert list(listed) == oracle.pairs(rows, 2, ids)
    signatures, names = index.living()
    assert np.array_equal(signatures, rows)
    assert names.tolist() == (list(range(len(rows))) if ids is None else ids)


@given(st.integers(1, 64), st.data())
def test_whatever_differs_little_agrees_in_the_blocks_of_a_table(
    width: int, draw: st.DataObject
) -> None:
    bits = 8 * width
    blocks = draw.draw(st.integers(1, min(bits, 8)))
    lead = draw.draw(st.integers(1, blocks))
    choice = BlockChoice(bits, blocks, lead)
    widths = choice.widths()
    assert sum(widths) == bits
    assert max(widths) - min(widths) <= 1
    differing = draw.draw(st.sets(st.integers(0, bits - 1), max_size=choice.radius))
    headers = choice.headers(draw.draw(st.integers(0, 10**9)))
    assert len(headers) == choice.tables
    assert any(
        not any(start <= bit < start + width for start, width in runs for bit in differing)
        for runs in headers
    )


def test_the_parameters_of_the_paper() -> None:
    """Slides on SimHash: 64 bits in 5 blocks of 13, 13, 13, 13, 12; 2 of them lead 10 tables."""
    rows = oracle.collection(1000, 8, "uniform", 0)
    four, ten = la.BlockIndex(rows, 3, 4), la.BlockIndex(rows, 3, tables=10)
    assert (four.blocks, four.lead, four.tables, four.widest) == (4, 1, 4, 3)
    assert (ten.blocks, ten.lead, ten.tables, ten.widest) == (5, 2, 10, 3)
    assert ten.stats()["blocks"] == [13, 13, 13, 13, 12]
    assert {sum(w for _, w in runs) for runs in BlockChoice(64, 5, 2).headers(2**34)} == {25, 26}


def test_more_tables_that_are_slower_are_told() -> None:
    """16 tables are 16 blocks of 4 bits; the answers are the same."""
    rows = oracle.collection(3000, 8, "uniform", 5)
    expected = la.BlockIndex(rows, 3).within(rows[:20])
    with pytest.warns(la.LookalikeWarning) as told:
        slow = la.BlockIndex(rows, 3, tables=16)
    (warning,) = told
    assert warning.filename == __file__
    message = str(warning.message)
    assert "with 16 tables compares a query with 3,000 of 3,000 signatures" in message
    assert "tables=4, or the default, can be about" in message
    assert slow.stats()["header_bits"] == 4
    assert np.array_equal(slow.within(rows[:20]).ids, expected.ids)


def test_tables_are_not_told_off_without_need() -> None:
    """Warnings are errors here: good choices, few signatures, and what was said block by block."""
    rows = oracle.collection(3000, 8, "uniform", 5)
    assert [la.BlockIndex(rows, 3, tables=tables).tables for tables in (4, 10, 20)] == [4, 10, 20]
    assert la.BlockIndex(rows[:100], 3, tables=16).stats()["header_bits"] == 4
    assert la.BlockIndex(rows, 3, blocks=16, lead=1).widest == 15
    assert la.BlockIndex(rows, 15, tables=16).tables == 16


@given(
    st.integers(1, 10**8),
    st.integers(0, 8),
    st.sampled_from([8, 24, 64, 128]),
    st.integers(1, 20),
    st.data(),
)
def test_what_is_said_to_be_quicker_would_do(
    count: int, radius: int, bits: int, blocks: int, data: st.DataObject
) -> None:
    """As wide a radius, no more tables, and a tenth of the steps' cost."""
    lead = data.draw(st.integers(1, blocks))
    choice = BlockChoice(bits, radius + blocks, lead)
    if choice.blocks > bits or choice.tables > MOST_TABLES:
        return
    better = much_quicker(choice, count, radius)
    if better is not None:
        assert better.radius >= radius
        assert better.tables <= choice.tables
        assert 10 * better.usual_cost(count) < choice.usual_cost(count)
    else:
        own = choose_blocks(count, bits, radius, choice.tables, None, None, None)
        assert 10 * own.usual_cost(count) >= choice.usual_cost(count)


def test_memory_bounds_the_choice() -> None:
    free = choose_blocks(30_000_000, 64, 3, None, None, None, None)
    small = choose_blocks(30_000_000, 64, 3, None, None, None, 2 * 10**9)
    assert small.tables < free.tables
    assert small.bytes(30_000_000) <= 2 * 10**9 < free.bytes(30_000_000)
    rows = oracle.collection(3_000, 8, "uniform", 0)
    for tables, compressed in itertools.product((4, 10), (False, True)):
        index = la.BlockIndex(rows, 3, tables, memory=10**6, compressed=compressed)
        choice = BlockChoice(64, index.blocks, index.lead)
        assert index.memory_bytes == choice.bytes(3_000, compressed)
    with pytest.raises(
        la.errors.ArgumentError, match="memory is 1000 bytes; the tables .* at least"
    ):
        la.BlockIndex(rows, 3, memory=1000)


LARGE = [(200_000, 8, "uniform"), (60_000, 16, "clustered"), (50_000, 33, "equal")]


@pytest.mark.parametrize(("count", "width", "style"), LARGE)
def test_large_collections_are_the_same_for_any_thread_count(
    count: int, width: int, style: str
) -> None:
    rows = oracle.collection(count, width, style, 7)
    queries = rows[:: count // 50].copy()
    queries[::2, 0] ^= 0b101
    limit = 10**8
    expected = la.ScanIndex(rows).within(queries, 3, limit=limit)
    for threads, tables in itertools.product((1, 3), (4, 10)):
        index = la.BlockIndex(rows, 3, tables, threads=threads)
        matches = index.within(queries, threads=threads, limit=limit)
        assert np.array_equal(matches.ids, expected.ids)
        assert np.array_equal(matches.distances, expected.distances)
        one = index.within(queries, first=True, threads=1)
        two = index.within(queries, first=True, threads=4)
        assert np.array_equal(one.ids, two.ids)


@pytest.mark.parametrize("body", ["equal", "random", "near"])
def test_a_fifth_of_the_collection_in_one_bucket_is_not_quadratic(body: str) -> None:
    """All of that fifth ask: compared with each other they would be 1.6 billion comparisons."""
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 256, (200_000, 8), dtype=np.uint8)
    crowd = slice(0, 40_000)
    rows[crowd, :3] = rows[crowd, 6:] = 0  # blocks 0 and 3, and half of block 1
    if body == "equal":
        rows[crowd] = 7
    if body == "near":
        rows[crowd] = 7
        rows[crowd, 4] = rng.integers(0, 256, 40_000)
        rows[crowd, 5] = rng.integers(0, 2, 40_000)
    index = la.BlockIndex(rows, 3, 4, threads=1, compressed=body == "near")
    queries = np.repeat(rows[:1], 40_000, axis=0)
    queries[:, 3:6] = rng.integers(0, 256, (40_000, 3), dtype=np.uint8)  # near none of them
    start = time.process_time()
    matches = index.within(queries, threads=1)
    spent = time.process_time() - start
    few = np.arange(0, 40_000, 400)
    expected = la.ScanIndex(rows).within(queries[few], 3)
    assert found(index.within(queries[few])) == found(expected)
    assert len(matches) == 40_000
    assert spent < 20  # seconds; comparing them all takes minutes


def test_files_bring_back_the_same_index(tmp_path: Path) -> None:
    for width, ids in ((8, None), (20, list(range(500, 1000))[::-1])):
        rows = oracle.collection(500, width, "clustered", 1)
        index = la.BlockIndex(rows, 2, 3, ids=ids, compressed=ids is not None)
        index.save(tmp_path / "blocks")
        loaded = la.load_index(tmp_path / "blocks", verify=True)
        assert isinstance(loaded, la.BlockIndex)
        assert found(loaded.within(rows[:20])) == found(index.within(rows[:20]))
        assert {**loaded.stats(), "file": None} == index.stats()
        assert loaded.pairs(1).left.tolist() == index.pairs(1).left.tolist()


@pytest.mark.parametrize(
    "changes",
    [
        {"lead": 0},
        {"lead": 3},
        {"blocks": 5},
        {"blocks": "many"},
        {"blocks": 64, "lead": 32},
        {"bits": 128},
        {"signatures": 501},
        {"signatures": -1},
        {"radius": 9},
        {"1__rows": lambda rows: rows[:-1]},
        {"1__offsets": lambda offsets: offsets[:-1]},
        {"2__signatures": lambda rows: rows[:, :7]},
        {"2__signatures": lambda rows: rows[:-1]},
    ],
)
def test_a_file_that_cannot_be_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    la.BlockIndex(oracle.collection(500, 8, "uniform", 1), 3, 4).save(tmp_path / "blocks")
    damaged(tmp_path / "blocks", **changes)
    with pytest.raises(la.errors.CorruptIndexError):
        la.load_index(tmp_path / "blocks")


@pytest.mark.parametrize(
    "changes",
    [
        {"0__rows": lambda rows: rows + np.uint32(2**31)},
        {"0__offsets": lambda offsets: offsets + np.uint32(2**31)},
        {"0__offsets": lambda offsets: np.full_like(offsets, 2**32 - 1)},
    ],
)
def test_tables_that_point_outside_are_noticed_when_used(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    rows = oracle.collection(500, 8, "clustered", 1)
    la.BlockIndex(rows, 3, 4).save(tmp_path / "blocks")
    damaged(tmp_path / "blocks", **changes)
    index = la.load_index(tmp_path / "blocks")
    with pytest.raises(la.errors.CorruptIndexError, match="points outside|rebuild"):
        index.within(rows, 3)


def test_shards_of_blocks_answer_as_one() -> None:
    rows = oracle.collection(600, 8, "clustered", 4)
    shards = la.ShardedIndex([la.BlockIndex(part, 3, 4) for part in np.array_split(rows, 3)])
    whole = la.BlockIndex(rows, 3, 10)
    assert found(shards.within(rows[:40], 3)) == found(whole.within(rows[:40], 3))
    assert np.array_equal(shards.search(rows[:9], 4).ids, whole.search(rows[:9], 4).ids)
    assert np.array_equal(shards.pairs(3).left, whole.pairs(3).left)


def test_the_limit_is_exact() -> None:
    rows = oracle.collection(40, 8, "equal", 0)
    index = la.BlockIndex(rows)
    assert len(index.within(rows[:2], limit=80).ids) == 80
    with pytest.raises(
        la.errors.ResultTooLargeError, match="limit=79 matches within radius 3 of 2 que"
    ):
        index.within(rows[:2], limit=79)
    with pytest.raises(
        la.errors.ResultTooLargeError, match="limit=79 matches within radius 9 of 2 que"
    ):
        index.within(rows[:2], 9, limit=79)
    assert len(index.within(rows[:2], first=True, limit=2).ids) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"radius": 64}, "radius is 64 and signatures have 64 bits"),
        ({"radius": -1}, "radius is -1"),
        ({"radius": 3, "blocks": 3}, "blocks is 3: every block may have .* at least 4 blocks"),
        ({"radius": 3, "blocks": 65}, "blocks is 65 and signatures have 64 bits"),
        ({"radius": 3, "blocks": 5, "lead": 3}, "only 2 are sure to be without a difference"),
        ({"radius": 3, "tables": 7.5}, "tables is 7.5"),
        ({"radius": 3, "tables": 3}, "tables is 3: .* expected 4, 5, 6, 7, 8, 9 ..."),
        ({"radius": 3, "blocks": 20, "lead": 10}, "blocks is 20, lead is 10: .* at most 256"),
        ({"radius": 3, "tables": 0}, "tables is 0"),
        ({"radius": 3, "lead": 0}, "lead is 0"),
    ],
)
def test_parameters_that_make_no_sense_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(la.errors.ArgumentError, match=message):
        la.BlockIndex(oracle.collection(3, 8, "uniform", 0), **options)


def test_what_the_index_says_of_itself() -> None:
    rows = oracle.collection(1000, 8, "uniform", 0)
    index = la.BlockIndex(rows, 3, 4)
    assert repr(index) == "BlockIndex(1,000 signatures of 64 bits)"
    assert index.memory_bytes == 4 * (1000 * 12 + 4 * (2**9 + 1))
    assert index.stats() == {
        "index": "blocks",
        "signatures": 1000,
        "bits": 64,
        "memory_bytes": index.memory_bytes,
        "file": None,
        "parts": 1,
        "radius": 3,
        "widest": 3,
        "blocks": [16, 16, 16, 16],
        "lead": 1,
        "tables": 4,
        "compressed": False,
        "header_bits": 9,
    }
    with pytest.raises(la.errors.SignatureError, match="queries have 128 bits, the index has 64"):
        index.within(np.zeros((1, 16), np.uint8))


@pytest.mark.parametrize("count", [0, 1, 1 << 19, (1 << 19) + 1, 3_000_001])
def test_arrays_in_large_pages_are_arrays(count: int) -> None:
    array = empty_in_large_pages((count, 1), np.uint32)
    assert array.shape == (count, 1) and array.dtype == np.uint32
    assert array.flags.c_contiguous and array.flags.writeable
    array[:] = np.arange(count, dtype=np.uint32)[:, None]
    other = empty_in_large_pages((count, 1), np.uint32)
    other[:] = 7
    assert (array[:, 0] == np.arange(count)).all()


@pytest.mark.parametrize("blocks", [65, 257, 2**31, 2**63 - 1])
@pytest.mark.parametrize("lead", [None, 2**31])
def test_more_blocks_than_bits_are_refused_at_once(blocks: int, lead: int | None) -> None:
    with pytest.raises(
        la.errors.ArgumentError, match=f"blocks is {blocks} and signatures have 64 bits"
    ):
        la.BlockIndex(oracle.collection(3, 8, "uniform", 0), blocks=blocks, lead=lead)


def test_blocks_of_wide_signatures_are_chosen_at_once() -> None:
    """C(60000, 30000) has 18,000 digits, and there are as many such numbers as blocks may lead."""
    rows = oracle.collection(3, 8192, "uniform", 0)
    for lead in (None, 30_000):
        with pytest.raises(la.errors.ArgumentError, match="at most 256; expected 4, 5, 6"):
            la.BlockIndex(rows, 3, blocks=60_000, lead=lead)
    assert la.BlockIndex(rows, 0, blocks=60_000).lead == 60_000


def test_a_description_of_too_many_tables_is_refused_at_once(tmp_path: Path) -> None:
    index = la.BlockIndex(oracle.collection(3, 8192, "uniform", 0))
    for change in ({"blocks": 60_000, "lead": 30_000}, {"blocks": 2**62, "lead": 2**61}):
        index.save(tmp_path / "x")
        damaged(tmp_path / "x", **change)
        with pytest.raises(la.errors.CorruptIndexError, match="blocks lead"):
            la.load_index(tmp_path / "x")
