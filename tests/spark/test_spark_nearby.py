"""Signatures within a radius, by tables and by blocks of workers: what one scan finds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lookalike import _native
from lookalike.dedup.propose import LARGEST_GROUP, NearbyRows
from lookalike.spark import nearby, tables
from lookalike.spark.packed import signatures_of
from support.oracles import scan as oracle


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


class Sent:
    """A value that every worker has."""

    def __init__(self, value: Any) -> None:
        self.value = value


def of_tables(batch: Any, found: tables.Tables, tasks: int = 3) -> Iterator[Any]:
    """Deal out and compare as workers do, a batch of 50 rows at a time."""
    parts = [batch.slice(begin, 50) for begin in range(0, len(batch), 50)]
    dealt = pa.Table.from_batches(list(nearby.deal_tables(Sent(found), tasks, iter(parts))))
    for task in range(tasks):
        mine = dealt.filter(pa.compute.equal(dealt["task"], task)).to_batches()
        yield from nearby.compare_tables(Sent(found), LARGEST_GROUP, iter(mine))


def chosen(rows: NDArray[np.uint8], radius: int, blocks: int = 1) -> tables.Tables:
    """Return the tables of choices of these blocks, whatever they cost, with hot keys divided."""
    every = np.arange(8 * rows.shape[1])
    *_, bits = islice(tables.block_choices(every, radius), blocks)
    sample = tables._Sample(rows, 1.0, 1.0)
    which = np.arange(len(rows))
    made = tuple(sample.divided(one, every, radius, which, True, 1) for one in bits)
    return tables.Tables(made, radius, len(every), sample.rows)


def by_tables(batch: Any, radius: int, count: int) -> Iterator[Any]:
    rows = signatures_of(batch.column("signature"))
    return of_tables(batch, chosen(rows, radius, 2))


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


@pytest.mark.parametrize("find", [by_tables, by_blocks])
@pytest.mark.parametrize("crowd", [150, 900])
def test_pairs_within_a_radius(find: Any, crowd: int) -> None:
    draw = np.random.default_rng(crowd)
    rows, radius = signatures(draw, crowd), 3 if find is by_tables else 9
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


def pairs_of(batches: Iterator[Any]) -> list[tuple[int, int]]:
    found = pa.Table.from_batches(list(batches))
    both = zip(found["worse"].to_pylist(), found["better"].to_pylist(), strict=True)
    return sorted((min(pair), max(pair)) for pair in both)


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    row_cost=st.sampled_from([0.01, 1500.0]),
    seed=st.integers(0, 10_000), width=st.sampled_from([2, 5, 8, 16]), radius=st.integers(0, 9),
    blocks=st.integers(1, 3), hot=st.sampled_from([4, 20, 1 << 15]), constant=st.booleans(),
    style=st.sampled_from(["near", "uniform", "zeros", "copies"]),
    limit=st.sampled_from([3, 40, 1 << 24]),
)  # fmt: skip
def test_every_pair_meets_once(
    seed: int, width: int, radius: int, blocks: int, hot: int, constant: bool, style: str,
    limit: int, row_cost: float,
) -> None:  # fmt: skip
    """Whatever the skew and the limits of a task: each pair within the radius, and each once."""
    draw = np.random.default_rng(seed)
    rows = draw.integers(0, 256, (150, width)).astype(np.uint8)
    if style == "near":
        rows[50:] = rows[draw.integers(0, 5, 100)] ^ (draw.random((100, width)) < 0.3)
    elif style == "zeros":
        rows &= draw.integers(0, 256, (150, width)).astype(np.uint8)
        rows[:, 1:] &= draw.integers(0, 256, (150, width - 1)).astype(np.uint8)
    elif style == "copies":
        rows[20:] = rows[draw.integers(0, 20, 130)]
    if constant:  # a hot block: all signatures begin alike
        rows[:, : width // 2] = 7
    rows = np.unique(rows, axis=0)
    if radius + blocks > 8 * width:
        return
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tables, "_HOT", hot)
        patched.setattr(tables, "_ROW_COST", row_cost)
        patched.setattr(tables, "_LEAST_SAMPLED", 2)
        patched.setattr(tables, "BLOCK", 7)
        patched.setattr(nearby, "_MOST_MATCHES", limit)
        patched.setattr(nearby, "_LARGE_KEY", 3)
        found = pairs_of(
            of_tables(as_batch(rows, draw.permutation(len(rows))), chosen(rows, radius, blocks))
        )
    assert found == sorted((one, two) for one, two, _ in oracle.pairs(rows, radius))


@pytest.mark.parametrize("constant", [False, True])
def test_a_hot_block_is_divided(constant: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """No group that a task compares is larger than the limit, although half of the bits agree."""
    monkeypatch.setattr(tables, "_HOT", 64)
    monkeypatch.setattr(tables, "_ROW_COST", 1.0)  # so that dealing out so few is worth it
    rows = np.random.default_rng(1).integers(0, 256, (6000, 8)).astype(np.uint8)
    if constant:
        rows[:, :4] = 7
    rows = np.unique(rows, axis=0)
    made = chosen(rows, 3)
    assert any(table.divided.size for table in made.tables) == constant
    sizes: dict[tuple[int, int, int], int] = {}
    for number, _, keys, block in made.dealt(rows, np.arange(len(rows))):
        for key, one in zip(keys.tolist(), block.tolist(), strict=True):
            sizes[number, key, one] = sizes.get((number, key, one), 0) + 1
    assert max(sizes.values()) <= 64
    assert made.rows >= sum(sizes.values()) * 0.99


def test_bits_that_all_share_are_not_in_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Signatures that begin alike meet by their other bits, and each pair is found once."""
    monkeypatch.setattr(tables, "_ROW_COST", 1.0)
    draw = np.random.default_rng(4)
    rows = draw.integers(0, 256, (3000, 8)).astype(np.uint8)
    rows[:, :4] = 7
    rows[2000:] = rows[:1000] ^ (draw.random((1000, 8)) < 0.15)
    rows = np.unique(rows, axis=0)
    made = tables.choose_tables(rows, len(rows), 3, may_draw=False)
    assert made is not None and made.is_exact
    assert all(len(table.bits) >= 8 and (table.bits >= 24).any() for table in made.tables)
    found = pairs_of(of_tables(as_batch(rows, draw.permutation(len(rows))), made))
    assert found == sorted((one, two) for one, two, _ in oracle.pairs(rows, 3)) and found


def test_a_crowd_is_compared_by_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Signatures that are all near each other cannot be divided by bits: tasks stay bounded."""
    monkeypatch.setattr(tables, "_HOT", 64)
    monkeypatch.setattr(tables, "BLOCK", 50)
    rows = np.zeros((1000, 8), np.uint8)
    rows[:, :2] = np.arange(1000, dtype=np.uint16).view(np.uint8).reshape(-1, 2)
    made = chosen(rows, 8)
    assert any(leaf.table.dense.size for leaf in made.leaves())
    sizes: dict[tuple[int, int], int] = {}
    for number, _, keys, _ in made.dealt(rows, np.arange(len(rows))):
        for key in keys.tolist():
            sizes[number, key] = sizes.get((number, key), 0) + 1
    assert max(sizes.values()) < 4 * 50


@pytest.mark.parametrize(("count", "radius", "expected"), [
    (100, 3, None), (3_000_000, 3, True), (100_000_000, 3, True), (3_000_000, 20, False),
])  # fmt: skip
def test_tables_are_chosen_by_cost(count: int, radius: int, expected: bool | None) -> None:
    sample = np.random.default_rng(2).integers(0, 256, (min(count, 20_000), 8)).astype(np.uint8)
    found = tables.choose_tables(sample, count, radius, may_draw=True)
    assert (None if found is None else found.is_exact) == expected
    if found is not None and expected:
        assert count * len(found.tables) == pytest.approx(found.rows)


def test_the_cost_of_a_signature_hardly_grows_with_their_number() -> None:
    """Keys become longer: 4,096 times as many signatures cost at most 16,384 times as much."""
    sample = np.random.default_rng(3).integers(0, 256, (1 << 17, 8)).astype(np.uint8)
    costs, widths = [], []
    for count in (1 << 20, 1 << 26, 1 << 32):
        found = tables.choose_tables(sample, count, 3, may_draw=False)
        assert found is not None
        scan = _native.USUAL_COSTS.scan(8, 1)
        met = sum(count / 2 ** len(table.bits) for table in found.tables)
        costs.append(len(found.tables) * tables._ROW_COST + met / 2 * scan)
        widths.append(len(found.tables[0].bits))
    assert widths == sorted(widths) and widths[-1] > widths[0]
    assert costs[-1] < 4 * costs[0]


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), radius=st.integers(6, 20))
def test_drawn_keys_find_nearly_all(seed: int, radius: int) -> None:
    draw = np.random.default_rng(seed)
    rows = draw.integers(0, 256, (400, 8)).astype(np.uint8)
    flips = np.argsort(draw.random((200, 64)), axis=1) < radius
    rows[200:] = rows[:200] ^ np.packbits(flips, axis=1, bitorder="little")
    rows = np.unique(rows, axis=0)
    (bits, *_) = tables._drawings(64, radius)
    made = tables.Tables(tuple(map(tables.Table, bits)), radius, 64, 0.0, False)
    found = pairs_of(of_tables(as_batch(rows, np.arange(len(rows))), made))
    expected = {(one, two) for one, two, _ in oracle.pairs(rows, radius)}
    assert len(found) == len(set(found)) and set(found) <= expected
    assert len(found) >= 0.9 * len(expected), "each is found with a chance of at least 99%"
