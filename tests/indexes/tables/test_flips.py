"""FlipIndex finds a part of what the scan finds, in a known order, and all with all flips."""

from __future__ import annotations

import copy
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import lookalike as la
from lookalike.indexes.tables.flip_sets import all_sets, flip_tuning
from lookalike.indexes.tuning import Option
from support.cases.strategies import collections, distinct_ids
from support.cases.tables import damaged, found, near_collections, threads_used
from support.oracles import flips as flip_oracle
from support.oracles import scan as oracle

Data = tuple[oracle.Signatures, oracle.Signatures]


def some_weights(seed: int, queries: int, bits: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=(queries, bits)).astype(np.float32)


@given(near_collections(), st.data(), threads_used)
def test_what_is_found_has_one_of_the_likeliest_headers(
    kernel: str, data: Data, draw: st.DataObject, threads: int | None
) -> None:
    rows, queries = data
    bits = 8 * rows.shape[1]
    header_bits = draw.draw(st.one_of(st.none(), st.integers(0, min(bits, 10))))
    ids = draw.draw(distinct_ids(len(rows)))
    names = list(range(len(rows))) if ids is None else ids
    index = la.FlipIndex(rows, header_bits, ids, threads=threads)
    radius = draw.draw(st.integers(0, min(bits, 5)))
    flips = draw.draw(st.one_of(st.integers(0, 20), st.integers(0, 200)))
    weights = some_weights(draw.draw(st.integers(0, 99)), len(queries), bits)
    if draw.draw(st.booleans()):
        weights = np.round(weights)  # many equal costs
    matches = index.within(queries, radius, weights=weights, flips=flips, threads=threads)
    first = index.within(queries, radius, weights=weights, flips=flips, first=True, threads=threads)
    start = min(bits, 64) - index.header_bits
    for query in range(len(queries)):
        steps = flip_oracle.steps_of(index.volatility, weights[query, start : min(bits, 64)])
        costs = [int(index.volatility.costs[step]) for step in steps]
        sets = flip_oracle.ordered_sets(costs, min(radius, len(costs)), steps)[:flips]
        expected = flip_oracle.flipped_within(rows, queries[query], radius, index.header_bits, sets)
        named = sorted((far, names[row]) for far, row in expected)
        assert found(matches)[query] == named
        one = found(first)[query]
        assert len(one) == min(1, len(named))
        assert set(one) <= set(named)
        if one:  # the header of what was found is the likeliest of those that find anything
            tried = [0, *sets]
            own = flip_oracle.header(queries[query], index.header_bits)
            attempts = [
                tried.index(flip_oracle.header(rows[row], index.header_bits) ^ own)
                for _, row in expected
            ]
            chosen = flip_oracle.header(rows[names.index(one[0][1])], index.header_bits) ^ own
            assert tried.index(chosen) == min(attempts)
    assert matches.exact == (flips >= all_sets(index.header_bits, radius))


@given(near_collections(), st.data(), threads_used)
def test_all_flips_equal_the_scan(
    kernel: str, data: Data, draw: st.DataObject, threads: int | None
) -> None:
    rows, queries = data
    bits = 8 * rows.shape[1]
    radius = draw.draw(st.integers(0, min(bits, 5)))
    ids = draw.draw(distinct_ids(len(rows)))
    index = la.FlipIndex(rows, draw.draw(st.one_of(st.none(), st.integers(0, 8))), ids)
    expected = oracle.within(rows, queries, radius, ids)
    weights = some_weights(1, len(queries), bits)
    for options in ({}, {"weights": weights, "recall": 1.0}, {"flips": 10**30}):
        matches = index.within(queries, radius, threads=threads, **options)
        assert found(matches) == expected
        assert matches.exact
    first = index.within(queries, radius, first=True)
    assert [len(each) for each in found(first)] == [min(1, len(each)) for each in expected]
    assert first.exact


@given(collections(width=8), st.integers(1, 80), st.data())
def test_search_and_pairs_equal_the_oracle(
    rows: oracle.Signatures, k: int, draw: st.DataObject
) -> None:
    ids = draw.draw(distinct_ids(len(rows)))
    index = la.FlipIndex(rows, ids=ids)
    result = index.search(rows[:3], k)
    assert result.ids.tolist() == oracle.search(rows, rows[:3], k, ids)[0]
    assert result.exact
    pairs = index.pairs(3)
    listed = zip(pairs.left.tolist(), pairs.right.tolist(), pairs.distances.tolist(), strict=True)
    assert list(listed) == oracle.pairs(rows, 3, ids)
    assert np.array_equal(index.living()[0], rows)


def edited(count: int, seed: int) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Return signatures with the weights they are the signs of."""
    weights = np.random.default_rng(seed).normal(size=(count, 64)).astype(np.float32)
    return np.packbits(weights >= 0, axis=1, bitorder="little"), weights


def near_duplicates(
    weights: NDArray[np.float32], spread: float
) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    change = np.random.default_rng(5).normal(0, spread, weights.shape).astype(np.float32)
    changed = weights + change
    return np.packbits(changed >= 0, axis=1, bitorder="little"), changed


def flips_of(tuning: la.results.Tuning[Option]) -> int:
    return int(tuning.search_settings["flips"])


def test_recall_is_measured_and_reached() -> None:
    rows, weights = edited(20_000, 0)
    queries, asked = near_duplicates(weights[:8000], 0.1)
    index = la.FlipIndex(rows)
    exact = index.within(queries, 3)
    tuning = index.tune_flips(queries, asked, 3, recall=0.95)
    few = index.within(queries, 3, weights=asked, recall=0.95)
    assert index.tunings == (tuning,)
    assert (tuning.radius, tuning.first, tuning.target) == (3, False, 0.95)
    assert (tuning.recall or 0) >= 0.95
    assert 0 < flips_of(tuning) < 60
    assert not few.exact
    assert 0.93 <= len(few.ids) / len(exact.ids) <= 1
    assert set(few.ids.tolist()) <= set(exact.ids.tolist())
    again = index.within(queries[:3], 3, weights=asked[:3])  # remembered, also for a few
    assert np.array_equal(again.ids, few.ids[: few.offsets[3]])
    one_fewer = index.within(queries, 3, weights=asked, flips=flips_of(tuning) - 1)
    assert len(one_fewer.ids) < len(few.ids)
    # Half precision in the weights changes next to nothing.
    units = index.within(
        queries, 3, weights=la.signatures.quantize_weights(asked), flips=flips_of(tuning)
    )
    assert abs(len(units.ids) - len(few.ids)) <= 0.005 * len(few.ids)
    first = index.tune_flips(queries, asked, 3, recall=0.9, first=True, sample=3000)
    assert (first.queries, first.first) == (3000, True)
    assert flips_of(first) <= flips_of(tuning)
    # Likely flips first: less flips than in the order of positions.
    with pytest.warns(la.LookalikeWarning, match="without weights, .* in a fixed order"):
        blind = index.within(queries, 3, flips=flips_of(tuning))
    assert len(blind.ids) < len(few.ids)


def test_a_query_with_many_matches_counts_once() -> None:
    """Matches of one query are found together: a thousand of one prove no more than one of it."""
    alone = np.arange(100)  # which attempt finds the match of each query
    many = np.concatenate([alone[:-1], np.repeat(3, 10_000)])
    offsets = np.concatenate([np.arange(100), [100 + 9_999]])
    one = la.results.Matches(np.arange(101), alone, np.zeros(100, np.int32), True)
    hub = la.results.Matches(offsets, many, np.zeros(len(many), np.int32), True)
    assert flips_of(flip_tuning(one, 3, False, 0.9)) == 95  # 90, and two standard errors
    # The last: 100 queries tell no more.
    assert flips_of(flip_tuning(hub, 3, False, 0.99)) == 98


def test_attempts_say_which_flip_finds_each_match() -> None:
    rows, weights = edited(3000, 1)
    queries, asked = near_duplicates(weights[:300], 0.1)
    index = la.FlipIndex(rows)
    attempts = index.attempts(queries, asked, 3)
    assert attempts.exact
    for flips in (0, 1, 5, 30, 64, 65):
        matches = index.within(queries, 3, weights=asked, flips=flips)
        assert len(matches.ids) == int((attempts.ids <= flips).sum())


def test_a_better_curve_needs_no_more_flips() -> None:
    rows, weights = edited(20_000, 2)
    queries, asked = near_duplicates(weights[:5000], 0.1)
    index = la.FlipIndex(rows)
    before = index.tune_flips(queries, asked, 3)
    index.fit_volatility(weights)
    assert index.tunings == ()
    random_pairs = index.tune_flips(queries, asked, 3)
    index.fit_volatility(weights[:2000], asked[:2000])
    near_pairs = index.tune_flips(queries, asked, 3)
    assert flips_of(near_pairs) <= min(flips_of(before), flips_of(random_pairs)) * 1.2


@pytest.mark.parametrize("body", ["equal", "random"])
def test_a_fifth_of_the_collection_in_one_bucket_is_not_quadratic(body: str) -> None:
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 256, (200_000, 8), dtype=np.uint8)
    crowd = slice(0, 40_000)
    rows[crowd, 5:] = 7
    if body == "equal":
        rows[crowd] = 7
    index = la.FlipIndex(rows)
    queries = np.repeat(rows[:1], 40_000, axis=0)
    queries[:, :5] = rng.integers(0, 256, (40_000, 5), dtype=np.uint8)
    weights = some_weights(0, 40_000, 64)
    start = time.process_time()
    index.within(queries, 3, weights=weights, flips=10, threads=1)
    assert time.process_time() - start < 20
    few = queries[::400]
    assert found(index.within(few, 3)) == found(la.ScanIndex(rows).within(few, 3))


@pytest.mark.parametrize("width", [8, 16, 5])
def test_large_collections_are_the_same_for_any_thread_count(width: int) -> None:
    rows = oracle.collection(100_000, width, "clustered", 7)[: 30_000 if width == 5 else None]
    rows[::2] = oracle.collection(len(rows[::2]), width, "uniform", 8)
    queries = rows[::501].copy()
    queries[:, min(8, width) - 1] ^= 0b110000  # in the header
    weights = some_weights(3, len(queries), 8 * width)
    index = la.FlipIndex(rows)
    expected = la.ScanIndex(rows).within(queries, 3)
    assert np.array_equal(index.within(queries, 3, threads=3).ids, expected.ids)
    for flips in (6, 100):
        one, two = (
            index.within(queries, 3, weights=weights, flips=flips, threads=threads)
            for threads in (1, 4)
        )
        assert np.array_equal(one.ids, two.ids)
        assert 0 < len(one.ids) < len(expected.ids)


def test_files_bring_back_the_same_index(tmp_path: Path) -> None:
    for width, ids in ((8, None), (20, list(range(500, 1000))[::-1])):
        rows = oracle.collection(500, width, "clustered", 1)
        weights = some_weights(0, 500, 8 * width)
        index = la.FlipIndex(rows, ids=ids)
        index.fit_volatility(weights)
        index.tune_flips(rows, weights, 2, recall=0.8)
        index.save(tmp_path / "flips")
        loaded = la.load_index(tmp_path / "flips", verify=True)
        assert isinstance(loaded, la.FlipIndex)
        assert loaded.tunings == index.tunings
        expected = index.within(rows[:9], 2, weights=weights[:9], recall=0.8)
        assert found(loaded.within(rows[:9], 2, weights=weights[:9], recall=0.8)) == found(expected)
        assert {**loaded.stats(), "file": None} == index.stats()


@pytest.mark.parametrize(
    "changes",
    [
        {"header_bits": -1},
        {"header_bits": 9},
        {"header_bits": 65},
        {"header_bits": None},
        {"volatility_scale": 0},
        {"volatility_scale": "much"},
        {"volatility": lambda costs: costs[:-1]},
        {"volatility": lambda costs: costs[::-1]},
        {"tunings": 3},
        {"tunings": [{}]},
        {"0__rows": lambda rows: rows[:-1]},
        {"0__offsets": lambda offsets: offsets[:-1]},
        {"0__signatures": lambda rows: rows[:-1]},
    ],
)
def test_a_file_that_cannot_be_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    la.FlipIndex(oracle.collection(1500, 8, "uniform", 1)).save(tmp_path / "flips")
    damaged(tmp_path / "flips", **changes)
    with pytest.raises(la.errors.CorruptIndexError):
        la.load_index(tmp_path / "flips")


@pytest.mark.parametrize(
    "changes",
    [
        {"0__rows": lambda rows: rows + np.uint32(2**31)},
        {"0__offsets": lambda offsets: offsets + np.uint32(2**31)},
        {"0__offsets": lambda offsets: np.full_like(offsets, 2**32 - 1)},
    ],
)
@pytest.mark.parametrize("flips", [5, 10**9])
def test_tables_that_point_outside_are_noticed_when_used(
    kernel: str, tmp_path: Path, changes: dict[str, Any], flips: int
) -> None:
    rows = oracle.collection(500, 8, "clustered", 1)
    la.FlipIndex(rows).save(tmp_path / "flips")
    damaged(tmp_path / "flips", **changes)
    index = la.load_index(tmp_path / "flips")
    assert isinstance(index, la.FlipIndex)
    with pytest.raises(la.errors.CorruptIndexError, match="points outside|rebuild"):
        index.within(rows, 3, weights=some_weights(0, 500, 64), flips=flips)


def test_shards_of_flips_answer_as_one() -> None:
    rows = oracle.collection(600, 8, "clustered", 4)
    shards = la.ShardedIndex([la.FlipIndex(part) for part in np.array_split(rows, 3)])
    matches = shards.within(rows[:40], 3)
    assert matches.exact
    assert found(matches) == found(la.ScanIndex(rows).within(rows[:40], 3))


@pytest.mark.parametrize("header_bits", [-1, 65, 31, 2.5])
def test_headers_that_cannot_be_are_named(header_bits: Any) -> None:
    with pytest.raises(
        la.errors.ArgumentError, match="header_bits is .* from 0 to 30|of type float"
    ):
        la.FlipIndex(oracle.collection(3, 8, "uniform", 0), header_bits)
    with pytest.raises(la.errors.ArgumentError, match="header_bits is 9; expected .* from 0 to 8"):
        la.FlipIndex(oracle.collection(3, 1, "uniform", 0), 9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": np.zeros((2, 64), np.float32)}, r"shape \(2, 64\); expected \(3, 64\)"),
        ({"weights": np.zeros((3, 32), np.float32)}, r"shape \(3, 32\); expected \(3, 64\)"),
        ({"weights": np.zeros((3, 64), np.int64)}, "weights are int64; expected float32, or int16"),
        ({"weights": np.full((3, 64), np.nan)}, r"weights of query [012] are not finite \(NaN"),
        ({"weights": np.full((3, 64), -np.inf), "flips": 9}, "query [012] are not finite"),
        ({"flips": -1}, "flips is -1"),
        ({"recall": 0}, "recall is 0; expected a number above 0 and at most 1"),
        ({"recall": 1.5}, "recall is 1.5"),
        ({"radius": -1}, "radius is -1"),
    ],
)
def test_arguments_that_make_no_sense_are_named(options: dict[str, Any], message: str) -> None:
    rows = oracle.collection(3, 8, "uniform", 0)
    with pytest.raises(la.errors.ArgumentError, match=message):
        la.FlipIndex(rows).within(rows, **{"radius": 3, **options})


def test_weights_are_checked_in_bits_outside_of_the_header_too() -> None:
    rows, weights = edited(1000, 0)
    index = la.FlipIndex(rows)
    weights[700, 0] = np.nan
    for flips in (None, 3, 200):
        with pytest.raises(la.errors.ArgumentError, match="weights of query 700 are not finite"):
            index.within(rows, 3, weights=weights, flips=flips)
    with pytest.raises(la.errors.ArgumentError, match="values that are not finite"):
        index.fit_volatility(weights)


def test_what_cannot_be_learned_from_is_named() -> None:
    rows, weights = edited(100, 0)
    index = la.FlipIndex(rows)
    with pytest.raises(la.errors.ArgumentError, match="none of the 100 queries tried has a match"):
        index.tune_flips(~rows, weights, 3)
    with pytest.raises(la.errors.ArgumentError, match="weights have 1 rows"):
        index.fit_volatility(weights[:1])
    with pytest.raises(la.errors.ArgumentError, match=r"others \(3, 64\); expected the same"):
        index.fit_volatility(weights, weights[:3])
    with pytest.raises(la.errors.ArgumentError, match="nothing to learn"):
        index.fit_volatility(np.ones((5, 64), np.float32))
    with pytest.raises(la.errors.ArgumentError, match=r"shape \(64,\)"):
        index.fit_volatility(weights[0])


def test_what_the_index_says_of_itself() -> None:
    index = la.FlipIndex(oracle.collection(1024, 8, "uniform", 0))
    assert repr(index) == "FlipIndex(1,024 signatures of 64 bits)"
    assert index.header_bits == 10
    assert index.memory_bytes == 1024 * 12 + 4 * (1024 + 1) + 2 * 1023
    assert index.stats()["tables"] == 2
    assert index.next_id == 1024
    assert not index.own_ids


def test_searching_does_not_change_the_index() -> None:
    """The same call has the same answer, whatever others have asked, also at the same time."""
    rows, weights = edited(20_000, 0)
    queries, asked = near_duplicates(weights[:3000], 0.2)
    index, fresh = la.FlipIndex(rows), la.FlipIndex(rows)

    def ask(index: la.FlipIndex, recall: float, first: bool) -> list[list[tuple[int, int]]]:
        return found(index.within(queries, 3, weights=asked, recall=recall, first=first))

    cases = [(recall, first) for recall in (0.5, 0.95, 0.99, 1.0) for first in (False, True)]
    expected = {case: ask(copy.copy(fresh), *case) for case in cases}
    with ThreadPoolExecutor(4) as pool:
        for order in (cases, cases[::-1]):
            answers = pool.map(lambda case: ask(index, *case), order)
            assert dict(zip(order, answers, strict=True)) == expected
    assert vars(index).keys() == vars(fresh).keys()
    assert index.tunings == ()
    # Fewer queries have the same matches, and the flips that are expected find what is expected.
    assert found(index.within(queries[:9], 3, weights=asked[:9])) == expected[0.95, False][:9]
    few, more, every = (sum(map(len, expected[r, False])) for r in (0.95, 0.99, 1.0))
    assert 0.95 * every <= few < more <= every


def test_an_index_that_was_tuned_by_many_at_once_remembers_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def slow_key(tuning: la.results.Tuning[Option]) -> tuple[object, ...]:
        time.sleep(0.001)  # another thread's turn, in the middle of remembering
        return tuning.k, tuning.radius, tuning.first, tuning.target

    monkeypatch.setattr(la.results.Tuning, "key", property(slow_key))
    rows, weights = edited(5000, 0)
    queries, asked = near_duplicates(weights[:1000], 0.1)
    index = la.FlipIndex(rows)
    recalls = [0.5 + i / 100 for i in range(24)]
    with ThreadPoolExecutor(8) as pool:
        tuned = list(pool.map(lambda r: index.tune_flips(queries, asked, 3, recall=r), recalls))
    assert sorted(index.tunings, key=lambda each: each.target or 0) == tuned
