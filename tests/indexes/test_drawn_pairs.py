"""Pairs that are found with a chance: no false ones, none twice, and as many as was said."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import lookalike as la
from lookalike import _native
from lookalike.indexes import all_pairs
from lookalike.indexes.all_pairs import Drawing, cheapest_drawing
from support.cases.strategies import collections, distinct_ids
from support.oracles import scan as oracle

Rows = NDArray[np.uint8]


def meet(one: Rows, two: Rows, drawing: Drawing, positions: NDArray[np.int32]) -> bool:
    """Return whether some key is the same for both, but for one bit at most of its first ones."""
    differ = np.unpackbits(one ^ two, bitorder="little")
    differing = differ[positions.reshape(-1, drawing.key_bits)]
    near = differing[:, : drawing.near_bits].sum(axis=1) <= 1
    return bool((near & ~differing[:, drawing.near_bits :].any(axis=1)).any())


@given(st.data(), collections(), st.sampled_from([1, 3]))
def test_pairs_are_those_that_meet_in_a_key(
    kernel: str, draw: st.DataObject, rows: oracle.Signatures, threads: int
) -> None:
    """Each once, whichever and however many keys they meet in."""
    bits = 8 * rows.shape[1]
    radius = draw.draw(st.integers(0, bits))
    key_bits = draw.draw(st.integers(1, min(bits, 24)))
    near_bits = draw.draw(st.integers(0, min(key_bits, 16)))
    drawing = Drawing(bits, key_bits, near_bits, draw.draw(st.integers(1, 4)))
    skipped = np.array([draw.draw(st.booleans()) for _ in rows], np.uint8)
    positions = drawing.positions(draw.draw(st.integers(0, 9)))
    expected = [
        (left, right, far)
        for left, right, far in oracle.pairs(rows, radius, None)
        if not (skipped[left] or skipped[right])
        and meet(rows[left], rows[right], drawing, positions)
    ]

    def found(most: float, limit: int) -> list[tuple[int, int, int]] | None:
        columns = _native.drawn_pairs(
            rows, skipped, positions, key_bits, near_bits, radius, most, limit, threads
        )
        if columns is None:
            return None
        return list(zip(*(column.tolist() for column in columns), strict=True))

    assert found(math.inf, len(expected)) == expected
    assert found(0.0, len(expected)) == ([] if not len(rows) else None)
    if expected:
        with pytest.raises(_native.TooManyResults):
            found(math.inf, len(expected) - 1)


def planted(bits: int, distance: int, count: int, seed: int) -> Rows:
    """Return random signatures, of which row i and row count + i differ in so many bits."""
    generator = np.random.default_rng(seed)
    first = generator.integers(0, 256, (count, bits // 8), dtype=np.uint8)
    flips = np.zeros((count, bits), np.uint8)
    flips[:, :distance] = 1
    flips = generator.permuted(flips, axis=1)
    return np.concatenate([first, first ^ np.packbits(flips, axis=1, bitorder="little")])


@pytest.mark.parametrize(
    ("bits", "radius", "recall"), [(128, 30, 0.9), (128, 36, 0.99), (64, 12, 0.5), (1024, 225, 0.9)]
)
def test_each_pair_is_found_as_often_as_was_said(bits: int, radius: int, recall: float) -> None:
    """Pairs are at the radius, the hardest of all; which are found is chance, by the draws."""
    rows = planted(bits, radius, 4000, 3)
    drawing = cheapest_drawing(rows, 40_000_000, radius, recall)
    assert drawing is not None
    fewer = replace(drawing, words=drawing.words - 1)
    assert drawing.chance(radius) >= recall > fewer.chance(radius)
    differ = np.unpackbits(rows[:4000] ^ rows[4000:], axis=1, bitorder="little")
    met = np.zeros(4000, bool)
    for key in drawing.positions().reshape(-1, drawing.key_bits):
        near, others = differ[:, key[: drawing.near_bits]], differ[:, key[drawing.near_bits :]]
        met |= (near.sum(axis=1) <= 1) & ~others.any(axis=1)
    expected = drawing.chance(radius)
    assert abs(met.mean() - expected) < 5 * math.sqrt(expected * (1 - expected) / 4000) + 1e-9
    nearer = [drawing.chance(distance) for distance in range(radius + 1)]
    assert nearer == sorted(nearer, reverse=True)


@pytest.mark.parametrize(
    "drawing",
    [Drawing(12, 4, 2, 1), Drawing(12, 3, 3, 1), Drawing(12, 5, 0, 1), Drawing(12, 6, 1, 2)],
)
def test_chances_are_those_of_all_ways_to_differ(drawing: Drawing) -> None:
    """Every way in which so many bits of a few can differ is counted, which is all of them."""
    positions = drawing.positions()
    assert len(positions) == drawing.words
    if drawing.words == 1:  # words of several orders are independent only as they are drawn
        for distance in range(drawing.bits + 1):
            ways = itertools.combinations(range(drawing.bits), distance)
            met = [
                meet(np.zeros(2, np.uint8), differing_in(way), drawing, positions) for way in ways
            ]
            assert drawing.chance(distance) == pytest.approx(np.mean(met), abs=1e-12)
    else:
        one = replace(drawing, words=1)
        for distance in range(drawing.bits + 1):
            expected = 1 - (1 - one.chance(distance)) ** drawing.words
            assert drawing.chance(distance) == pytest.approx(expected, abs=1e-12)


def differing_in(way: tuple[int, ...]) -> Rows:
    """Return 16 bits of which these are set."""
    bits = np.zeros(16, np.uint8)
    bits[list(way)] = 1
    return np.packbits(bits, bitorder="little")


def test_words_of_an_order_share_no_bit() -> None:
    drawing = Drawing(128, 15, 8, 5)
    assert drawing.words_of_an_order == 2
    positions = drawing.positions()
    assert positions.shape == (5, 60)
    for first in (0, 2):
        assert len(np.unique(positions[first : first + 2])) == 120
    whole = replace(drawing, words=2).chance(36)
    apart = 1 - (1 - replace(drawing, words=1).chance(36)) ** 2
    assert apart < whole < 1
    assert drawing.chance(36) == pytest.approx(
        1 - (1 - whole) ** 2 * (1 - replace(drawing, words=1).chance(36))
    )


def test_an_index_finds_them_in_less_than_all_comparisons() -> None:
    rows = planted(128, 30, 15_000, 5)
    index = la.ClusterIndex(rows, 40)
    whole, most = index.pairs(30), index.pairs(30, recall=0.95)
    assert whole.exact
    assert not most.exact
    everything = set(zip(whole.left.tolist(), whole.right.tolist(), strict=True))
    found = set(zip(most.left.tolist(), most.right.tolist(), strict=True))
    assert found < everything
    assert len(found) >= 0.94 * len(everything)
    one, three = (index.pairs(30, recall=0.95, threads=threads) for threads in (1, 3))
    assert one.to_arrow() == three.to_arrow()


@given(st.data(), collections(), st.sampled_from([None, 1, 3]))
def test_few_are_compared_all_whatever_the_recall(
    draw: st.DataObject, rows: oracle.Signatures, threads: int | None
) -> None:
    ids = draw.draw(distinct_ids(len(rows)))
    radius = draw.draw(st.integers(0, 8 * rows.shape[1]))
    pairs = la.ScanIndex(rows, ids).pairs(radius, recall=0.5, threads=threads)
    if pairs.exact:
        columns = (pairs.left.tolist(), pairs.right.tolist(), pairs.distances.tolist())
        assert list(zip(*columns, strict=True)) == oracle.pairs(rows, radius, ids)


@pytest.mark.parametrize("collapse", [False, True])
def test_equal_signatures_and_ids_of_their_own_are_as_always(collapse: bool) -> None:
    some = planted(128, 20, 8000, 8)
    rows = np.concatenate([some, some[:50], some[:50], some[7990:8010]])
    ids = np.random.default_rng(1).permutation(3 * len(rows))[: len(rows)]
    index = la.SliceIndex(rows, ids=ids)
    whole = index.pairs(20, collapse=collapse)
    most = index.pairs(20, collapse=collapse, recall=0.999)
    assert not most.exact
    everything = list(zip(whole.left, whole.right, whole.distances, strict=True))
    found = list(zip(most.left, most.right, most.distances, strict=True))
    assert set(found) <= set(everything)
    assert found == sorted(set(found))
    equal = [pair for pair in everything if pair[2] == 0]
    assert [pair for pair in found if pair[2] == 0] == equal
    assert len(found) >= 0.997 * len(everything)
    with pytest.raises(la.errors.ResultTooLargeError, match="pairs within radius 20"):
        index.pairs(20, collapse=collapse, recall=0.999, limit=len(found) - 1)


def test_signatures_that_all_agree_are_compared_each_with_each() -> None:
    """Draws put nearly all together: that is noticed, and all are found in the usual way."""
    rows = np.zeros((6000, 16), np.uint8)
    rows[:, 15] = np.arange(6000) & 255
    rows[:, 14] = np.arange(6000) >> 8
    drawing = Drawing(128, 12, 4, 20)
    with patch.object(all_pairs, "cheapest_drawing", return_value=drawing):
        pairs = la.ScanIndex(rows).pairs(1, recall=0.9)
    assert pairs.exact
    assert len(pairs) == len(la.ScanIndex(rows).pairs(1))


def test_all_are_found_where_that_is_as_quick() -> None:
    rows = planted(64, 3, 5000, 2)
    assert cheapest_drawing(rows, 10_000_000, 3, 0.9) is not None
    for radius, recall in ((36, 1.0), (64, 0.9), (31, 0.9)):
        assert cheapest_drawing(rows, 10_000_000, radius, recall) is None
    assert cheapest_drawing(rows, 20, 12, 0.9) is None


@pytest.mark.parametrize("recall", [0, 1.5, "most", float("nan")])
def test_a_recall_is_a_share(recall: object) -> None:
    with pytest.raises(la.errors.ArgumentError, match="recall is"):
        la.ScanIndex(planted(64, 3, 4, 2)).pairs(3, recall=recall)  # type: ignore[arg-type]
