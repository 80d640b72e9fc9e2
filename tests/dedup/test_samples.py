"""Samples of the smaller document propose what is in a larger one, whatever the size of that."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike import _native
from lookalike.dedup.propose import LARGEST_SAMPLE, MISSED, SAMPLE, least_found, sample_size

MANY = 1 << 20
Sets = Sequence[set[int]]


def source(sets: Sequence[Sequence[int] | set[int]]) -> _native.Source:
    lists = [list(each) for each in sets]
    offsets = np.cumsum([0, *map(len, lists)], dtype=np.int64)
    features = np.array([each for bag in lists for each in bag], np.uint64)
    return _native.Source.of_features(offsets, features, np.ones(len(features)))


def proposed(
    sets: Sets,
    needed: Sequence[int],
    *,
    old: int = 0,
    group: int = MANY,
    leaders: int = MANY,
    parts: int = 1,
    threads: int = 2,
) -> set[tuple[int, int]]:
    """Pairs as (smaller, larger), found part by part."""
    made = _native.Samples(len(needed) - 1, group, leaders)
    bounds = np.linspace(0, len(sets), parts + 1).astype(int).tolist()
    for read in (made.observe, made.look_up):
        for begin, end in pairwise(bounds):
            # Repetitions are no features of their own.
            read(source([[*each, *each] for each in sets[begin:end]]), threads)
    found = [
        made.pairs(begin, end, np.array(needed, np.float64), old, threads)
        for begin, end in pairwise(bounds)
    ]
    pairs = [pair for some in found for pair in zip(*(side.tolist() for side in some), strict=True)]
    assert len(pairs) == len(set(pairs))
    return set(pairs)


small_sets = st.lists(st.sets(st.integers(0, 12), max_size=9), max_size=12)


@settings(max_examples=100)
@given(small_sets, st.sampled_from([0.3, 0.5, 0.8, 1.0]), st.integers(0, 5), st.integers(1, 3))
def test_of_documents_no_larger_than_a_sample_all_pairs_are_found(
    sets: Sets, threshold: float, old: int, parts: int
) -> None:
    needed = [max(1, int(np.ceil(size * threshold - 1e-9))) for size in range(13)]
    expected = set()
    for left, right in combinations(range(len(sets)), 2):
        smaller, larger = (left, right) if len(sets[left]) <= len(sets[right]) else (right, left)
        common = len(sets[smaller] & sets[larger])
        new = max(left, right) >= old
        if new and common and common / len(sets[smaller]) >= threshold - 1e-9:
            expected.add((smaller, larger))
    assert proposed(sets, needed, old=old, parts=parts) == expected
    assert proposed(sets, needed, old=old, threads=1) == expected


@settings(max_examples=50)
@given(small_sets, st.integers(1, 4), st.integers(1, 3))
def test_in_large_groups_the_largest_are_compared_with_all(
    sets: Sets, group: int, leaders: int
) -> None:
    """Whoever shares a feature with the largest document that has it is compared with that one."""
    needed = [1] * 13
    found = proposed(sets, needed, group=group, leaders=leaders)
    assert found <= proposed(sets, needed)
    order = sorted(range(len(sets)), key=lambda each: (len(sets[each]), each))
    for feature in set().union(*sets):
        having = [each for each in order if feature in sets[each]]
        assert {(each, having[-1]) for each in having[:-1]} <= found
        if len(having) <= group:
            assert set(combinations(having, 2)) <= found


def test_a_feature_of_a_large_group_counts_as_found() -> None:
    """Common features that are not looked up do not hide what documents have beside them."""
    common = set(range(20))
    sets = [common | {100 + each} for each in range(30)]
    small, large = common | {1000, 1001}, common | {1000, 1001} | set(range(2000, 2010))
    sets += [small, large, large | set(range(3000, 3010))]
    needed = [22] * 65
    assert (30, 31) in proposed(sets, needed, group=5, leaders=1)
    assert (30, 31) in proposed(sets, needed)


@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.8, 0.95])
@pytest.mark.parametrize("ratio", [1, 10, 200])
def test_the_chance_is_kept_whatever_the_sizes(threshold: float, ratio: int) -> None:
    """3,000 pairs exactly at the threshold: some 0.1% of them may be missing, by a bound."""
    rng = random.Random(round(threshold * 1000) + ratio)
    large = [rng.getrandbits(64) for _ in range(100 * ratio)]
    inside = round(100 * threshold)
    smalls = [
        {*rng.sample(large, inside), *(rng.getrandbits(64) for _ in range(100 - inside))}
        for _ in range(3000)
    ]
    needed = [MANY] * SAMPLE + [least_found(SAMPLE, threshold)]
    found = len(proposed([*smalls, {*large, 1}], needed, old=3000))
    assert found >= 3000 * (1 - MISSED)


def test_what_has_to_be_found_is_a_good_part_of_what_is_expected() -> None:
    """So few would do that the chance is kept, but not so few that everything is proposed."""
    for size, share in ((SAMPLE, 1 / 3), (LARGEST_SAMPLE, 2 / 3)):
        for threshold in (0.3, 0.5, 0.8, 0.9, 0.99):
            assert threshold * size * share < least_found(size, threshold) < threshold * size
        assert least_found(size, 1.0) == size
        assert least_found(size, 1e-6) == 1
    assert [sample_size(count) for count in (0, 1, 20_000, 10**9)] == [512, 512, 209, 64]


def test_short_documents_in_long_ones_are_found_without_exact() -> None:
    rng = random.Random(5)
    longs = [[f"w{rng.randrange(10**7)}" for _ in range(5000)] for _ in range(12)]
    texts = [" ".join(words) for words in longs]
    for words in longs:
        begin = rng.randrange(4000)
        texts.append(" ".join(words[begin : begin + rng.choice([20, 100, 900])]))
    order = list(range(len(texts)))
    rng.shuffle(order)
    result = la.dedup([texts[each] for each in order], measure="containment", threshold=0.9)
    assert sorted(order[row] for row in np.flatnonzero(result.keep)) == list(range(12))
    assert la.dedup(texts).counts.kept == len(texts)
    exact = la.dedup([texts[each] for each in order], measure="containment", exact=True)
    assert exact.keep.tolist() == result.keep.tolist()
