"""Signatures within a radius, by slices and by blocks of workers: what one scan finds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from lookalike.dedup.propose import LARGEST_GROUP, NearbyRows
from lookalike.spark import nearby


def signatures(draw: np.random.Generator, crowd: int) -> NDArray[np.uint8]:
    """Distinct signatures: some alone, some in pairs, and a crowd of so many."""
    rows = draw.integers(0, 256, (300, 8)).astype(np.uint8)
    rows[100:200] = rows[:100]
    rows[100:200, 7] ^= draw.integers(1, 8, 100).astype(np.uint8)
    more = np.repeat(rows[-1:], crowd, axis=0)
    more[:, :2] = np.arange(crowd, dtype=np.uint16).view(np.uint8).reshape(-1, 2)
    return np.unique(np.concatenate([rows, more]), axis=0)


def as_batch(rows: NDArray[np.uint8], rank: NDArray[np.int64]) -> Any:
    return pa.record_batch(
        {
            "position": pa.array(np.arange(len(rows))),
            "value": pa.array(rank // 7),
            "best": pa.array(rank),
            "signature": pa.array([row.tobytes() for row in rows], pa.binary()),
        }
    )


def by_slices(batch: Any, radius: int, count: int) -> Iterator[Any]:
    bounds, buckets = nearby.slice_bounds(64, radius, count), 3
    assert bounds is not None
    dealt = pa.Table.from_batches(list(nearby.deal_slices(bounds, buckets, iter([batch]))))
    for task in range(buckets * (radius + 1)):
        mine = dealt.filter(pa.compute.equal(dealt["task"], task)).to_batches()
        yield from nearby.compare_slices(radius, bounds, buckets, LARGEST_GROUP, iter(mine))


def by_blocks(batch: Any, radius: int, count: int) -> Iterator[Any]:
    blocks = pa.array(np.arange(count) % 3, pa.int32())
    for one in range(3):
        for two in range(one, 3):
            task = pa.array(np.full(count, 3 * one + two), pa.int32())
            alone = pa.array(np.full(count, one == two))
            rows = pa.Table.from_batches([batch])
            for name, column in (("task", task), ("block", blocks), ("alone", alone)):
                rows = rows.append_column(name, column)
            mine = rows.filter(pa.compute.is_in(rows["block"], pa.array([one, two], pa.int32())))
            yield from nearby.compare_blocks(radius, LARGEST_GROUP, iter(mine.to_batches()))


@pytest.mark.parametrize("find", [by_slices, by_blocks])
@pytest.mark.parametrize("crowd", [150, 900])
def test_pairs_within_a_radius(find: Any, crowd: int) -> None:
    draw = np.random.default_rng(crowd)
    rows, radius = signatures(draw, crowd), 3 if find is by_slices else 9
    rank = draw.permutation(len(rows))
    matches = pa.Table.from_batches(list(find(as_batch(rows, rank), radius, len(rows))))
    local = NearbyRows(rows, rank, radius, most=LARGEST_GROUP, limit=1, threads=1)
    expected = {
        (min(pair), max(pair))
        for better, worse, _ in local.pairs(lambda share: None)
        for pair in zip(better.tolist(), worse.tolist(), strict=True)
    }
    merged = pa.Table.from_batches(list(nearby.merge_matches(iter(matches.to_batches()))))
    found = list(zip(merged["left"].to_pylist(), merged["right"].to_pylist(), strict=True))
    told = [-1 - left for left, _ in found if left < 0]
    pairs = [pair for pair in found if pair[0] >= 0]
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == expected
    assert told == [local.crowded]
    assert (local.crowded > 0) == (crowd > LARGEST_GROUP and find is by_blocks)


def test_slices_give_up_where_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearby, "_MOST_MATCHES", 5)
    rows = signatures(np.random.default_rng(0), 20)
    batches = list(by_slices(as_batch(rows, np.arange(len(rows))), 3, len(rows)))
    assert min(batch["found"].to_numpy().min(initial=0) for batch in batches) == -1


def test_slices_that_are_too_narrow_are_not_taken() -> None:
    assert nearby.slice_bounds(64, 3, 1 << 20) is not None
    assert nearby.slice_bounds(64, 3, 1 << 25) is None
    assert nearby.slice_bounds(128, 36, 100) is None
