"""Where buckets are so long that a scan is quicker, blocks scan: the answers are the same."""

from __future__ import annotations

import numpy as np
import pytest

import lookalike as la


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("width", [8, 32])
def test_of_one_batch_some_are_scanned(width: int, compressed: bool) -> None:
    generator = np.random.default_rng(2)
    rows = np.packbits(generator.random((20_000, 8 * width)) < 0.02, axis=1)
    rows[::2] = generator.integers(0, 256, (10_000, width), dtype=np.uint8)
    ids = generator.permutation(50_000)[: len(rows)]
    index = la.BlockIndex(rows, 3, ids=ids, blocks=4, lead=1, compressed=compressed)
    queries = rows[:200]
    tables = [table.native() for table in index._parts[0].tables]
    scanned = index._long_buckets(tables, queries)
    assert scanned[1::2].mean() > 0.5
    assert not scanned[::2].any()
    true = la.ScanIndex(rows, ids)
    for radius in (0, 2, 3):
        found, expected = index.within(queries, radius), true.within(queries, radius)
        assert found.exact
        for name, column in expected.to_numpy().items():
            assert (found.to_numpy()[name] == column).all()
    some = index.within(queries, 3, first=True)
    has = np.diff(true.within(queries, 3).offsets) > 0
    assert (np.diff(some.offsets) == has).all()
    assert (some.distances <= 3).all()
    many = len(true.within(queries, 3).ids)
    with pytest.raises(la.errors.ResultTooLargeError):
        index.within(queries, 3, limit=many - 1)
    assert len(index.within(queries, 3, limit=many).ids) == many


def test_fair_bits_are_never_scanned() -> None:
    rows = np.random.default_rng(1).integers(0, 256, (30_000, 8), dtype=np.uint8)
    index = la.BlockIndex(rows, 3)
    tables = [table.native() for table in index._parts[0].tables]
    assert not index._long_buckets(tables, rows[:100]).any()
