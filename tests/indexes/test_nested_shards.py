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
