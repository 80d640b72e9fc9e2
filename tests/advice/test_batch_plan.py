"""Steps that a plan predicts for batches are those that `match_batch` takes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import lookalike as la
from lookalike import _native
from lookalike.advice.planner import Prediction, Question
from lookalike.advice.predictions import batch_steps
from lookalike.indexes.batch import match as matching
from lookalike.indexes.batch.signature_file import RunReader
from lookalike.indexes.tables.sorted_table import SortedTable
from support.running.planned import COSTS

Rows = NDArray[np.uint8]
COUNT, QUERIES, RADIUS = 20_000, 1_500, 2


def uniform(count: int, seed: int) -> Rows:
    return np.random.default_rng(seed).integers(0, 256, (count, 8), dtype=np.uint8)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    la.match_batch(tmp_path / "runs", uniform(COUNT, 1), RADIUS)
    return tmp_path / "runs"


@pytest.fixture(params=[1 << 27, 1 << 15], ids=["one chunk", "chunks"])
def chunk_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(matching, "_CHUNK_BYTES", request.param)
    return int(request.param)


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts what `match_batch` reads, builds and looks up while it runs."""
    counts: Counter[str] = Counter()
    take, of_sorted = RunReader.take, SortedTable.of_sorted.__func__  # type: ignore[attr-defined]
    blocks, flips = la.BlockIndex.within, la.FlipIndex.within_checked
    built = la.BlockIndex.__init__

    def counted_take(self: RunReader, end: int) -> Any:
        signatures, ids = take(self, end)
        counts["bytes"] += signatures.nbytes + ids.nbytes
        counts["chunks"] += 1
        return signatures, ids

    def counted_sorted(cls: type[SortedTable], rows: Rows, runs: Any, threads: int) -> SortedTable:
        counts["headers"] += 1 << sum(width for _, width in runs)
        table: SortedTable = of_sorted(cls, rows, runs, threads)
        return table

    def counted_build(self: la.BlockIndex, rows: Rows, *given: Any, **named: Any) -> None:
        built(self, rows, *given, **named)
        counts["sorted"] += len(rows) * len(self._parts[0].tables)

    def counted_blocks(self: la.BlockIndex, rows: Rows, **given: Any) -> la.results.Matches:
        tables = [table.native() for table in self._parts[0].tables]
        counts["looked up"] += len(rows)
        counts["buckets"] += len(rows) * len(tables)
        counts["rows"] += int(_native.bucket_rows(tables, rows).sum())
        return blocks(self, rows, **given)

    def counted_flips(
        self: la.FlipIndex, rows: Rows, weights: Any, *given: Any
    ) -> la.results.Matches:
        """Every header within the radius of the query's own is looked up: count what is there."""
        radius, flips_allowed = given[0], given[1]
        shift = np.uint64(64 - self.header_bits)
        own, others = (
            part.view("<u8").ravel() >> shift
            for part in (rows, self._parts[0].tables[0].signatures)
        )
        near = np.bitwise_count(own[:, None] ^ others) <= radius
        counts["looked up"] += len(rows)
        counts["buckets"] += len(rows) * (1 + flips_allowed)
        counts["rows"] += int(near.sum())
        return flips(self, rows, weights, *given)

    monkeypatch.setattr(RunReader, "take", counted_take)
    monkeypatch.setattr(SortedTable, "of_sorted", classmethod(counted_sorted))
    monkeypatch.setattr(la.BlockIndex, "__init__", counted_build)
    monkeypatch.setattr(la.BlockIndex, "within", counted_blocks)
    monkeypatch.setattr(la.FlipIndex, "within_checked", counted_flips)
    return counts


def question(**more: Any) -> Question:
    return Question(COUNT, 64, RADIUS, None, 1.0, batch=QUERIES, **more)


@pytest.mark.parametrize("method", ["blocks", "flips"])
def test_steps_are_those_of_a_run(
    method: str, file: Path, chunk_bytes: int, done: Counter[str]
) -> None:
    done.clear()
    steps = batch_steps(question(), method)
    la.match_batch(file, uniform(QUERIES, 2), RADIUS, method=method, append=False, threads=1)
    assert steps.bytes_read == done["bytes"]
    assert steps.chunks == done["chunks"] == (1 if chunk_bytes > 1 << 20 else 5)
    assert steps.looked_up == done["looked up"]
    assert steps.buckets == done["buckets"]
    assert steps.headers == done["headers"]
    assert steps.rows == pytest.approx(done["rows"], rel=0.05)  # of uniform bits, on average
    if method == "blocks":
        assert steps.sorted == done["sorted"]
    else:
        assert steps.sorted == QUERIES  # which are sorted to be appended


def test_a_sample_tells_how_full_buckets_are(file: Path) -> None:
    """Half of all signatures have the same header: each look-up there compares with them."""
    rows = uniform(COUNT, 1)
    rows[::2] = rows[0]
    sampled = la.plan(
        signatures=rows, queries=rows[:200], radius=RADIUS, batch=QUERIES, costs=COSTS
    )
    blind = la.plan(count=COUNT, bits=64, radius=RADIUS, batch=QUERIES, costs=COSTS)
    for seen, fair in zip(sampled.options, blind.options, strict=True):
        assert seen.microseconds > 3 * fair.microseconds


def of(made: la.results.Tuning[Prediction], method: str) -> Prediction:
    return next(each for each in made.options if each.settings["method"] == method)


def planned(batch: int, count: int = 10**9, **more: Any) -> la.results.Tuning[Prediction]:
    return la.plan(count=count, bits=64, radius=3, batch=batch, costs=COSTS, **more)


def test_large_batches_are_for_blocks_and_small_ones_for_flips() -> None:
    """All flips cost the same for each query; what blocks look up does not depend on the batch."""
    small, large = planned(1_000), planned(10**6)
    assert small.search_settings == {"method": "flips"}
    assert large.search_settings == {"method": "blocks"}
    assert "match_batch by blocks: the quickest of 2" in large.reason
    assert "in batches of 1,000,000 from disk" in str(large)


def test_a_batch_takes_at_least_the_time_to_read_the_file() -> None:
    """(16) and (18): bytes read, times what a byte costs; reading goes on meanwhile."""
    one = planned(1, recall=0.5)
    reading = 10**9 * 16 * COSTS.disk_byte / 1e9
    assert of(one, "flips").microseconds / 1e6 == pytest.approx(reading, rel=0.2)
    assert all(each.microseconds / 1e6 >= reading for each in one.options)


def test_flips_with_weights_are_not_recommended_unmeasured() -> None:
    made = planned(10**6, recall=0.95)
    weighted = made.options[-1]
    assert weighted.settings == {"method": "flips", "recall": 0.95}
    assert weighted.recall is None
    assert weighted.obstacle == "recall not measured: it depends on weights"
    assert weighted.microseconds < made.chosen.microseconds
    assert made.chosen.exact


def test_memory_and_what_cannot_be_planned() -> None:
    made = planned(10**6)
    least = min(each.memory_bytes for each in made.options)
    assert planned(10**6, memory=least).chosen.memory_bytes == least
    with pytest.raises(la.errors.ArgumentError, match=f"takes at least {least}: allow that"):
        planned(10**6, memory=least - 1)
    with pytest.raises(la.errors.ArgumentError, match="batch goes with radius"):
        la.plan(count=10, bits=64, k=3, batch=5, costs=COSTS)
    with pytest.raises(la.errors.ArgumentError, match="batch is 0"):
        planned(0)
    with pytest.raises(la.errors.ArgumentError, match="builds no index"):
        made.build(np.zeros((3, 8), np.uint8))
