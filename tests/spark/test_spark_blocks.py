"""What runs inside Arrow batches, without Spark: packed rows, sets of rows, bands and blocks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lookalike.dedup.propose import LARGEST_GROUP
from lookalike.indexes.bands import BandedPairs, BandLayout
from lookalike.spark import bands
from lookalike.spark.collapse import EQUALS, distinct_entries
from lookalike.spark.packed import gathered, packed
from lookalike.spark.positions import Numbering, PositionSet, packed_positions, parts_of_batches

LAYOUT = BandLayout(4, 2)


class Sent:
    """What a worker has of a value that was sent."""

    def __init__(self, value: Any) -> None:
        self.value = value


@given(st.lists(st.integers(0, 5), max_size=300), st.integers(1, 40))
def test_packed_rows_come_back(buckets: list[int], most: int) -> None:
    records = np.arange(len(buckets), dtype=np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lookalike.spark.packed._BYTES_A_ROW", 8 * most)
        batches = list(packed(records, np.array(buckets, np.int64), 7))
    for bucket in set(buckets):
        mine = [batch.filter(pa.compute.equal(batch["bucket"], bucket)) for batch in batches]
        found = gathered(iter(mine), np.dtype(np.int64))[7]
        assert found.tolist() == [at for at, one in enumerate(buckets) if one == bucket]


@given(st.sets(st.integers(0, 200_000), max_size=50), st.booleans())
def test_positions_come_back(positions: set[int], crowded: bool) -> None:
    if crowded:
        positions |= set(range(65_530, 75_000))
    rows = pa.record_batch({"one": pa.array(sorted(positions), pa.int64())})
    parts = gathered(parts_of_batches(iter([rows, rows])), np.uint8)[0].tobytes()
    odd = packed_positions(np.array([at for at in positions if at % 2], np.int64))
    found = PositionSet.of([parts, odd], 200_001)
    assert set(found.positions().tolist()) == positions
    assert len(found) == len(positions)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2)), min_size=1, max_size=60), st.data()
)
def test_equal_texts_are_merged_in_any_parts(
    texts: list[tuple[int, int]], data: st.DataObject
) -> None:
    """Firsts, seconds and the best are those of all, however entries were merged before."""
    entries = np.zeros(len(texts), EQUALS)
    entries["low"] = [text for text, _ in texts]
    entries["first"] = entries["best"] = np.arange(len(texts))
    entries["value"] = entries["best_value"] = [value for _, value in texts]
    entries["second"], entries["count"] = -1, 1
    cut = data.draw(st.integers(0, len(texts)))
    halves = [distinct_entries(part)[0] for part in (entries[:cut], entries[cut:]) if len(part)]
    merged, _ = distinct_entries(np.concatenate(halves[::-1]))
    for entry in merged:
        same = [at for at, (text, _) in enumerate(texts) if text == entry["low"]]
        assert entry["first"] == same[0]
        assert entry["count"] == len(same)
        assert entry["second"] == (same[1] if len(same) > 1 else -1)
        assert entry["best"] == min(same, key=lambda at: (texts[at][1], at))


def test_pieces_are_numbered_by_path() -> None:
    counts = {("file:/b%20c", 0, 2): 3, ("file:/a", 64, 1): 5, ("file:/a", 0, 7): 2}
    numbering = Numbering.of(counts, {piece: 100 * piece[2] for piece in counts})
    assert numbering.keys_of(np.array([0, 1, 2, 6, 7, 9])).tolist() == [
        700,
        701,
        100,
        104,
        200,
        202,
    ]
    assert sum(numbering.counts.values()) == 10
    assert numbering.firsts == {
        ("file:/a", 0, 7): 0,
        ("file:/a", 64, 1): 2,
        ("file:/b%20c", 0, 2): 7,
    }
    with pytest.raises(Exception, match="has other rows than when it was read first"):
        numbering.first(("file:/a", 0, 7), 1, 2)


@pytest.mark.parametrize("block", [17, 64, 4096])
@pytest.mark.parametrize("at_a_time", [100, 250, 5000])
@pytest.mark.parametrize("first_new", [0, 9, 640, 1290])
def test_bands_of_workers_propose_what_the_local_ones_do(
    block: int, at_a_time: int, first_new: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With groups too large for a partition, groups too large only together, and small ones; ranks
    in any order, but for old rows, which are before the others.
    """
    monkeypatch.setattr(bands, "BLOCK", block)
    draw = np.random.default_rng(block + at_a_time)
    count = 1300
    values = draw.integers(0, 4, (count, 8)).astype(np.uint16)
    values[:700, :2] = 9  # one band of many
    values[200:900, 4:6] = 8
    values[:, 2:4] = draw.integers(0, 2, (count, 2))
    values[1000:] = draw.integers(0, 60, (300, 8))
    values = values[draw.permutation(count)]
    old, new = draw.permutation(first_new), draw.permutation(count - first_new)
    rank = np.concatenate([old, first_new + new])
    keys = np.empty((LAYOUT.bands, count), np.uint32)
    signatures = np.ascontiguousarray(values).view(np.uint8)
    local = BandedPairs(
        signatures, 2, LAYOUT, keys, most=LARGEST_GROUP, first_new=first_new, rank=rank, threads=1
    )
    local.fill_keys(lambda share: None)
    expected = {
        pair
        for band in range(LAYOUT.bands)
        for left, right in local.of_band(band)
        for pair in zip(left.tolist(), right.tolist(), strict=True)
    }
    assert local.large_groups > 4
    assert proposed(signatures, rank, at_a_time, first_new) == expected


def proposed(
    signatures: NDArray[np.uint8], rank: NDArray[np.int64], at_a_time: int, old: int
) -> set[tuple[int, int]]:
    """Propose pairs by the functions that workers run, rows and buckets dealt out by hand."""
    keys = bands.band_keys(signatures, LAYOUT)
    positions = np.arange(len(signatures))
    buckets, sent = 3, []
    for begin in range(0, len(positions), at_a_time):
        part = slice(begin, begin + at_a_time)
        sent += list(bands.band_entries([positions[part]], [keys[:, part]], buckets))
    met = [
        batch for bucket in range(buckets)
        for batch in bands.meet_bands(buckets, old, iter(in_bucket(sent, bucket)))
    ]  # fmt: skip
    told = gathered(iter(met), {bands.PAIRS: bands.PAIR, bands.LARGE: bands.LARGE_KEY})
    large = bands.LargeGroups(told[bands.LARGE])
    group, row = large.members(keys)
    order = np.lexsort((rank[row], group))
    group, row = group[order], row[order]
    numbered: list[Any] = []
    for piece in np.array_split(np.arange(len(group)), 3):  # as Spark cuts sorted rows
        rows = pa.record_batch(
            {
                "partition": pa.array(np.full(len(piece), len(numbered), np.int32)),
                "group": pa.array(group[piece].astype(np.int32)),
                "position": pa.array(row[piece]),
                "keys": pa.array(
                    [
                        keys[: large.bands[one], at].tobytes()
                        for one, at in zip(group[piece], row[piece], strict=True)
                    ],
                    pa.binary(),
                ),
            }
        )
        halves = rows.slice(0, len(rows) // 2), rows.slice(len(rows) // 2)
        numbered.append(pa.Table.from_batches(list(bands.number_rows(iter(halves)))))
    before: dict[tuple[int, int], int] = {}
    seen: dict[int, int] = {}
    for number, table in enumerate(numbered):
        for one, many in zip(
            *np.unique(table["group"].to_numpy(), return_counts=True), strict=True
        ):
            before[number, int(one)] = seen.get(int(one), 0)
            seen[int(one)] = seen.get(int(one), 0) + int(many)
    assert [seen[one] for one in range(len(large))] == large.sizes.tolist()
    olds = np.bincount(group[row < old], minlength=len(large))
    place = partial(bands.send_blocks, Sent((before, large.sizes, olds)), buckets)
    placed = [batch for table in numbered for batch in place(iter(table.to_batches()))]
    pairing = partial(bands.pair_blocks, LAYOUT.bands, Sent(large), buckets, old)
    more = [
        batch for bucket in range(buckets) for batch in pairing(iter(in_bucket(placed, bucket)))
    ]
    pairs: set[tuple[int, int]] = set()
    for bucket in range(buckets):
        some = [batch for batch in [*met, *more] if batch["kind"][0].as_py() == bands.PAIRS]
        for batch in bands.distinct_pairs(buckets, iter(in_bucket(some, bucket))):
            records = gathered(iter([batch]), {bands.PAIRS: bands.PAIR, bands.NEEDED: np.uint8})
            found = [tuple(pair) for pair in records.get(bands.PAIRS, np.empty(0)).tolist()]
            assert not pairs & set(found) and len(set(found)) == len(found)
            pairs |= set(found)
    return pairs


def in_bucket(batches: list[Any], bucket: int) -> Iterator[Any]:
    for batch in batches:
        mine = batch.filter(pa.compute.equal(batch["bucket"], bucket))
        if len(mine):
            yield mine
