"""Sketches: what they are, which candidates they propose, and what they prove."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import lookalike as la
from lookalike import _native
from lookalike.vectors.search import Store
from lookalike.vectors.sketches import Codes, Sketches
from support.oracles.vectors import by_sketches, sketch


def some_rows(count: int, width: int, seed: int, dtype: str = "f4") -> NDArray[Any]:
    """Return vectors around few centers, of any length, of which some are equal or zero."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(4, width))[rng.integers(0, 4, count)]
    rows = rows + rng.normal(size=rows.shape) * rng.choice([0, 0.01, 1], (count, 1))
    rows *= rng.choice([0, 1, 1, 1, 1e-3, 100], (count, 1))
    rows[rng.random(count) < 0.1] = rows[0] if count else 0
    made: NDArray[Any] = rows.astype(dtype)
    return made


def sketched(store: Store, groups: int, threads: int = 1) -> Sketches:
    return Sketches.build(store.native, store.shape, groups, 0, threads)


def values_of(blocks: NDArray[np.uint8], count: int, width: int) -> list[list[int]]:
    """Return the values that lie in blocks, one by one."""
    found = []
    for row in range(count):
        block = blocks[row // 16]
        found.append([int(block[at // 4, row % 16, at % 4]) - 128 for at in range(width)])
    return found


@pytest.mark.parametrize("dtype", ["f2", "f4"])
@pytest.mark.parametrize("width", [1, 3, 4, 5, 16, 31, 100])
def test_a_sketch_is_what_it_is_said_to_be(dtype: str, width: int, kernel: str) -> None:
    rows = some_rows(70, width, width, dtype)
    codes = Codes.of(Store(rows, rows[:0]).native, rows.shape, 0, 2)
    worst = 0.0
    for row, values, scale in zip(rows, codes.codes, codes.scales, strict=True):
        expected, step = sketch(row)
        assert values[:width].tolist() == [value + 128 for value in expected]
        assert (values[width:] == 128).all()
        assert scale == pytest.approx(step, rel=1e-6)
        wide = row.astype("f8")
        if wide.any():
            unit = wide / np.linalg.norm(wide)
            worst = max(worst, float(np.linalg.norm(unit - step * np.array(expected))))
    assert codes.error == pytest.approx(worst, rel=1e-9)


@pytest.mark.parametrize(
    ("count", "width", "groups"),
    [(1, 1, 1), (17, 3, 2), (150, 9, 7), (700, 33, 20), (1500, 4, 400)],
)
def test_candidates_are_those_of_the_slow_search(
    count: int, width: int, groups: int, kernel: str
) -> None:
    rows = some_rows(count, width, count)
    store = Store(rows, rows[:0])
    found = sketched(store, groups)
    assert found.groups == groups
    assert sorted(found.places.tolist()) == list(range(count))
    values = values_of(found.blocks, count, width)
    centers = values_of(found.centers, groups, width)
    queries = some_rows(6, width, 99)
    for query in queries:
        order = [
            group
            for _, group in by_sketches(
                query, list(zip(centers, found.center_scales[:groups], strict=True))
            )
        ]
        ranked = by_sketches(query, list(zip(values, found.scales[:count], strict=True)))
        for probe, candidates in ((1, 5), (3, 40), (groups, count)):
            read = {
                at for group in order[:probe] for at in range(*found.offsets[group : group + 2])
            }
            by_place = sorted(
                (-product, int(found.places[at])) for product, at in ranked if at in read
            )
            places = np.full((1, candidates), -1, np.int64)
            found.native.candidates(store.native, None, query[None], probe, 1, places)
            if not read:  # as many more groups as it takes to have one
                continue
            expected = [place for _, place in by_place[:candidates]]
            assert places[0, : len(expected)].tolist() == expected
            assert (places[0, len(expected) :] == -1).all()


@pytest.mark.parametrize("width", [66_052, 100_003, 1 << 17])
def test_sums_that_are_too_large_on_the_way(width: int, kernel: str) -> None:
    """Values are held with 128 added, so that sums exceed 32 bits before that is taken away."""
    rows = np.ones((5, width), np.float32)
    rows[1] *= -1
    rows[2, ::2] = -1
    rows[3, : width // 2] = -1
    rows[4, 0] = 0.5
    codes = Codes.of(_native.Vectors(rows, rows[:0], None), rows.shape, 0, 1)
    blocks, scales = codes.blocks()
    values = codes.codes.astype(np.int64) - 128
    labels, products = np.empty(5, np.int64), np.empty(5, np.float32)
    for count in (1, 5):  # one query at a time, or several together
        _native.nearest_sketches(blocks, scales, codes.codes[:count], 5, 1, labels[:count],
                                 products[:count])  # fmt: skip
        exact = (values[:count] @ values.T).astype(np.float32) * scales[:5]
        assert labels[:count].tolist() == exact.argmax(axis=1).tolist()
        assert products[:count].tolist() == exact.max(axis=1).tolist()


def test_the_nearest_sketch_is_the_first_of_the_largest(kernel: str) -> None:
    rows, others = some_rows(37, 10, 1), some_rows(101, 10, 2)
    centers = Codes.of(_native.Vectors(rows, rows[:0], None), rows.shape, 0, 1)
    codes = Codes.of(_native.Vectors(others, others[:0], None), others.shape, 0, 1)
    labels, products = np.empty(101, np.int64), np.empty(101, np.float32)
    blocks, scales = centers.blocks()
    for threads in (1, 3):
        _native.nearest_sketches(blocks, scales, codes.codes, 37, threads, labels, products)
        values = [sketch(row)[0] for row in rows]
        for other, label, product in zip(others, labels, products, strict=True):
            best = by_sketches(other, list(zip(values, centers.scales, strict=True)))[0]
            assert (best[1], best[0]) == (int(label), float(product))


@pytest.mark.hypothesis
@settings(max_examples=60, deadline=None)
@given(
    count=st.integers(1, 400),
    added=st.sampled_from([0, 0, 5]),
    width=st.integers(1, 40),
    groups=st.integers(1, 40),
    queries=st.integers(1, 9),
    k=st.integers(1, 20),
    seed=st.integers(0, 2**16),
    share=st.sampled_from([None, 0.3, 0.95]),
    dtype=st.sampled_from(["f2", "f4"]),
)
def test_what_sketches_rule_out_is_not_among_the_nearest(
    count: int,
    added: int,
    width: int,
    groups: int,
    queries: int,
    k: int,
    seed: int,
    share: float | None,
    dtype: str,
) -> None:
    """Ids and every bit of the cosines are those of the search that compares all."""
    rows = some_rows(count + added, width, seed, dtype)
    found = sketched(Store(rows[:count], rows[:0]), min(groups, count))
    store = Store(rows[:count], rows[count:])
    asked = np.concatenate([some_rows(queries, width, seed + 1), rows[:1].astype("f4")])
    rng = np.random.default_rng(seed)
    skip = None if share is None else (rng.random(count + added) < share).astype(np.uint8)
    truth = np.full((len(asked), k), -1), np.full((len(asked), k), np.nan)
    store.native.best_of_all(skip, asked, 1, *truth)
    for threads in (1, 3):
        ids, cosines = np.full((len(asked), k), -1), np.full((len(asked), k), np.nan)
        done = np.zeros((3, len(asked)), np.int64)
        found.native.best_of_all(store.native, skip, asked, threads, ids, cosines, done)
        assert np.array_equal(ids, truth[0])
        assert np.array_equal(cosines, truth[1], equal_nan=True)
        # So does the search of all groups for all candidates.
        ids, cosines = np.full((len(asked), k), -1), np.full((len(asked), k), np.nan)
        most = max(k, count)
        found.native.best(store.native, skip, asked, most, groups, threads, ids, cosines, done)
        assert np.array_equal(ids, truth[0])
        assert np.array_equal(cosines, truth[1], equal_nan=True)


def test_groups_are_read_until_there_are_enough() -> None:
    """Most rows are left out, and k are found all the same."""
    rows = some_rows(2000, 20, 5)
    index = la.VectorIndex(rows)
    among = np.arange(0, 2000, 20)
    found = index.search(rows[:50], 30, candidates=30, probe=1, among=among)
    assert (found.ids >= 0).all()
    assert np.isin(found.ids, among).all()


def test_sketches_of_added_vectors() -> None:
    """Added vectors are found at once, and get sketches when they are many."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(12_000, 24)).astype("f4")
    index = la.VectorIndex(rows[:9000])
    index.search(rows[:1], 1)
    assert index._parts.known is not None
    for start in range(9000, 12_000, 500):
        index.add(rows[start : start + 500])
        found = index.search(rows[start : start + 500], 1, probe=8)
        assert (found.ids[:, 0] == np.arange(start, start + 500)).all()
    known = index._parts.known
    assert known is not None
    assert 9000 < len(known) < 12_000
    assert sorted(known.places.tolist()) == list(range(len(known)))
    truth = index.search(rows[::100], 5, exact=True)
    again = la.VectorIndex(rows).search(rows[::100], 5, exact=True)
    assert np.array_equal(truth.ids, again.ids)
    index.add(rng.normal(size=(40_000, 24)))  # which asks for more groups
    assert index._parts.known is None
    assert (index.search(rows[::100], 1).ids[:, 0] == np.arange(0, 12_000, 100)).all()


def test_groups_do_not_depend_on_threads_or_kernel(kernel: str) -> None:
    rows = some_rows(900, 30, 8)
    store = Store(rows, rows[:0])
    one, two = sketched(store, 25), sketched(store, 25, threads=3)
    for name, array in one.arrays().items():
        assert np.array_equal(array, two.arrays()[name])
    before = _GROUPS.setdefault("arrays", one.arrays())
    assert all(np.array_equal(array, one.arrays()[name]) for name, array in before.items())


_GROUPS: dict[str, dict[str, NDArray[Any]]] = {}


def test_copies_of_one_vector_are_one_group() -> None:
    rows = np.repeat(some_rows(2, 12, 1), 3000, axis=0)
    index = la.VectorIndex(rows, bits=64)
    found = index.search(rows[:1], 5)
    assert (found.similarities == 1).all()
    assert index.search(rows[:1], 5, exact=True).ids.tolist() == [[0, 1, 2, 3, 4]]
