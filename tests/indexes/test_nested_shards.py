from __future__ import annotations

import numpy as np
import pytest

import lookalike as la
from lookalike.errors import ArgumentError

RNG = np.random.default_rng(3)
ROWS = RNG.integers(0, 256, (900, 16), np.uint8)
QUERIES = RNG.integers(0, 256, (7, 16), np.uint8)


def nested(slice_bits: int = 16) -> la.ShardedIndex:
    inner = la.ShardedIndex([la.SliceIndex(ROWS[:300], 16), la.SliceIndex(ROWS[300:600], 16)])
    return la.ShardedIndex([inner, la.SliceIndex(ROWS[600:], slice_bits)])


@pytest.mark.parametrize("among", [None, np.arange(0, 900, 2)])
def test_settings_reach_shards_of_shards(among: np.ndarray | None) -> None:
    index, scan = nested(), la.ScanIndex(ROWS)
    expected = scan.search(QUERIES, 5, among=among)
    proven = index.search(QUERIES, 5, expand=0, exact=True, among=among)
    assert proven.exact
    np.testing.assert_array_equal(proven.ids, expected.ids)
    some = index.search(QUERIES, 5, expand=0, explain=True)
    assert some.explanation is not None
    # Eight slices of 16 bits in each of three indexes: only the query's own lists were read.
    assert some.explanation.lists.tolist() == [3 * 8] * len(QUERIES)
    assert not some.exact


def test_settings_are_refused_as_by_one_index() -> None:
    with pytest.raises(ArgumentError, match="rerank"):
        nested().search(QUERIES, 5, rerank=1)


def test_shards_of_shards_are_cut_alike() -> None:
    with pytest.raises(ArgumentError, match="one width"):
        nested(slice_bits=8)


def test_numbers_of_shards_end_where_int64_does() -> None:
    first, second = la.SliceIndex(ROWS[:20], 16), la.SliceIndex(ROWS[20:40], 16)
    index = la.ShardedIndex([first, second])
    first.add(ROWS[40:41], [2**63 - 21])
    assert index.search(ROWS[39:40], 1).ids.tolist() == [[2**63 - 1]]
    first.add(ROWS[41:42], [2**63 - 20])
    for ask in (index.search, index.within):
        with pytest.raises(ArgumentError, match="the ids of all shards end at 9223372036854775808"):
            ask(QUERIES, 1)


def test_shards_of_prefixes_are_exact_if_asked() -> None:
    rows = np.random.default_rng(5).integers(0, 256, (2600, 16), np.uint8)
    shards = [la.PrefixIndex(rows[:1300], 2), la.PrefixIndex(rows[1300:], 2)]
    index = la.ShardedIndex([la.ShardedIndex(shards[:1]), shards[1]])
    expected = la.ScanIndex(rows).within(~rows[:3], 48)
    assert not index.within(~rows[:3], 48).exact
    found = index.within(~rows[:3], 48, exact=True)
    assert found.exact
    np.testing.assert_array_equal(found.ids, expected.ids)
    assert len(found.ids)
