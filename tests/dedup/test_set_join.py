"""The join of sets finds every pair that comparing all with all finds, and no other."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookalike import _native

ROUNDING = 1e-12
LARGE = 1 << 40

Weights = Mapping[int, float]
Found = dict[tuple[int, int], float]


def jaccard(a: Weights, b: Weights) -> float:
    return len(a.keys() & b.keys()) / len(a.keys() | b.keys())


def containment(a: Weights, b: Weights) -> float:
    return len(a.keys() & b.keys()) / min(len(a), len(b))


def cosine(a: Weights, b: Weights) -> float:
    product = sum(a[each] * b[each] for each in a.keys() & b.keys())
    lengths = (math.sqrt(sum(x * x for x in each.values())) for each in (a, b))
    return min(1.0, product / math.prod(lengths))


MEASURES: dict[str, Callable[[Weights, Weights], float]] = {
    "jaccard": jaccard,
    "containment": containment,
    "cosine": cosine,
}


def expected(
    documents: Sequence[Sequence[int]], measure: str, counted: bool, threshold: float, old: int
) -> Found:
    """Every pair, by comparing all with all."""
    bags: list[Weights] = [
        {each: float(bag.count(each)) if counted else 1.0 for each in bag} for bag in documents
    ]
    found = {}
    for left, right in combinations(range(len(bags)), 2):
        if right >= old and bags[left].keys() & bags[right].keys():
            similarity = MEASURES[measure](bags[left], bags[right])
            if similarity >= threshold - ROUNDING:
                found[left, right] = similarity
    return found


def source(documents: Sequence[Sequence[int]]) -> _native.Source:
    offsets = np.cumsum([0, *map(len, documents)], dtype=np.int64)
    features = np.array([each for bag in documents for each in bag], np.uint64)
    return _native.Source.of_features(offsets, features, np.ones(len(features)))


def join(
    documents: Sequence[Sequence[int]],
    measure: str,
    counted: bool,
    threshold: float,
    old: int = 0,
    *,
    threads: int = 1,
    parts: int = 1,
    postings: int = LARGE,
    most: int = LARGE,
) -> tuple[list[Any], _native.SetJoin]:
    kind = _native.WeightKind.count if counted else _native.WeightKind.uniform
    sets = _native.FeatureSets(kind, 100, LARGE)
    cuts = [len(documents) * part // parts for part in range(parts + 1)]
    sources = [source(documents[a:b]) for a, b in pairwise(cuts)]
    for each in sources:
        sets.observe(each, threads)
    for each in sources:
        sets.add(each, threads)
    chosen = getattr(_native.Measure, measure)
    marks = (np.arange(len(documents)) < old).astype(np.uint8)
    made = _native.SetJoin(sets, chosen, threshold, marks, postings, threads)
    found: list[Any] = []
    shares = [0.0]
    while not made.finished:
        columns = made.next(most, threads)
        assert len(columns[0]) <= most
        found += zip(*(column.tolist() for column in columns), strict=True)
        shares.append(made.share)
    assert shares == sorted(shares) and shares[-1] <= 1
    return found, made


@st.composite
def collections(draw: st.DrawFn) -> list[list[int]]:
    """Templates and their variants, hubs, copies in another order, nothing at all, and noise."""
    rng = random.Random(draw(st.integers(0, 2**32)))
    spread = draw(st.sampled_from([1, 2**20, 2**44]))  # callers' numbers need not be hashes
    vocabulary = draw(st.sampled_from([3, 12, 60, 1000]))
    found: list[list[int]] = []
    for _ in range(rng.randrange(1, 5)):
        template = [rng.randrange(vocabulary) for _ in range(rng.choice([1, 2, 7, 30, 33]))]
        for _ in range(rng.choice([1, 2, 5, 20])):
            variant = template.copy()
            for _ in range(rng.choice([0, 0, 1, 2, 10])):
                variant[rng.randrange(len(variant))] = rng.randrange(2 * vocabulary)
            rng.shuffle(variant)
            found.append(variant[: rng.choice([len(variant), len(variant), rng.randrange(20)])])
    found += [[] for _ in range(rng.randrange(3))]
    found += [rng.choices(each, k=len(each)) for each in rng.choices(found, k=3) if each]
    rng.shuffle(found)
    return [[each * spread for each in bag] for bag in found]


THRESHOLDS = [1e-9, 0.1, 0.25, 1 / 3, 0.5, 0.6, 2 / 3, 0.8, 0.9, 0.95, 1.0]


@settings(max_examples=150, deadline=None)
@given(
    collections(),
    st.sampled_from([*((each, False) for each in MEASURES), ("cosine", True)]),
    st.sampled_from(THRESHOLDS) | st.floats(1e-6, 1.0),
    st.integers(0, 70),
    st.integers(1, 3),
    st.integers(1, 4),
    st.sampled_from([1, 10, 100, LARGE]),
    st.sampled_from([1, 2, 7, LARGE]),
)
def test_every_pair_and_no_other(
    documents: list[list[int]],
    measured: tuple[str, bool],
    threshold: float,
    old: int,
    threads: int,
    parts: int,
    postings: int,
    most: int,
) -> None:
    old = min(old, len(documents)) if old > 35 else 0
    found, _ = join(
        documents,
        *measured,
        threshold,
        old,
        threads=threads,
        parts=parts,
        postings=postings,
        most=most,
    )
    assert len({pair[:2] for pair in found}) == len(found)
    truth = expected(documents, *measured, threshold, old)
    assert {(left, right): pytest.approx(far, abs=1e-14) for left, right, far in found} == truth


@pytest.mark.parametrize("measured", [("jaccard", False), ("containment", False), ("cosine", True)])
def test_order_does_not_depend_on_threads(measured: tuple[str, bool]) -> None:
    rng = random.Random(5)
    documents = [rng.choices(range(12), k=rng.randrange(20)) for _ in range(200)]
    found = [join(documents, *measured, 0.5, threads=threads)[0] for threads in (1, 2, 3)]
    assert len(found[0]) > 100
    assert found[0] == found[1] == found[2]


def test_equal_sets_are_compared_once() -> None:
    """A thousand copies are all paired, and only those that stand for them are looked at."""
    documents = [[1, 2, 3, 4], [4, 3, 2, 1, 1], [1, 2, 3, 5]] * 300
    found, made = join(documents, "jaccard", False, 0.6, most=1000)
    assert len(found) == 900 * 899 // 2
    assert made.candidates == made.compared == 1


def test_unlike_sets_with_common_ends_are_not_compared() -> None:
    """What all have in common brings nobody together at a high threshold."""
    documents = [[*range(10), *range(100 * each, 100 * each + 90)] for each in range(1, 200)]
    _, made = join(documents, "jaccard", False, 0.8)
    assert made.candidates == 0


def test_more_shared_features_than_there_is_room_for() -> None:
    sets = _native.FeatureSets(_native.WeightKind.uniform, 100, 499)
    documents = source([list(range(100))] * 5)
    sets.observe(documents, 1)
    with pytest.raises(_native.TooManyResults):
        sets.add(documents, 1)


def test_what_does_not_fit_is_a_mistake_of_ours() -> None:
    none = np.zeros(0, np.uint8)
    counted = _native.FeatureSets(_native.WeightKind.count, 10, 10)
    with pytest.raises(_native.BorderError, match="cosine"):
        _native.SetJoin(counted, _native.Measure.jaccard, 0.5, none, 10, 1)
    plain = _native.FeatureSets(_native.WeightKind.uniform, 10, 10)
    with pytest.raises(_native.BorderError, match="threshold"):
        _native.SetJoin(plain, _native.Measure.jaccard, 0.0, none, 10, 1)
    with pytest.raises(_native.BorderError, match="marks"):
        _native.SetJoin(plain, _native.Measure.jaccard, 0.5, np.ones(1, np.uint8), 10, 1)
    with pytest.raises(_native.BorderError, match="counts"):
        _native.FeatureSets(_native.WeightKind.tfidf, 10, 10)
