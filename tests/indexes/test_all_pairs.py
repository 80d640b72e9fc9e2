"""Pairs of every kind of index: the same question, and the same answer."""

from __future__ import annotations

import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lookalike as la
from support.cases.strategies import collections, distinct_ids
from support.oracles import scan as oracle

KINDS = ["scan", "slices", "blocks", "flips", "sharded"]
Found = list[tuple[int, int, int]]


def built(kind: str, rows: oracle.Signatures, ids: list[int] | None) -> la.Index:
    match kind:
        case "scan":
            return la.ScanIndex(rows, ids)
        case "slices":
            return la.SliceIndex(rows, 5, ids)
        case "blocks":
            return la.BlockIndex(rows, 1, ids=ids)
        case "flips":
            return la.FlipIndex(rows, ids=ids)
    half = len(rows) // 2
    first, second = (None, None) if ids is None else (ids[:half], ids[half:])
    return la.ShardedIndex(
        [la.ScanIndex(rows[:half], first), la.SliceIndex(rows[half:], 5, second)]
    )


def stars(rows: oracle.Signatures, radius: int, ids: list[int] | None) -> Found:
    """Return the pairs of firsts of their equals, and each other one with the first."""
    names = list(range(len(rows))) if ids is None else ids
    firsts: dict[bytes, int] = {}
    for row, name in zip(rows, names, strict=True):
        firsts[row.tobytes()] = min(name, firsts.get(row.tobytes(), name))
    of = {name: firsts[row.tobytes()] for row, name in zip(rows, names, strict=True)}
    return [
        (left, right, far)
        for left, right, far in oracle.pairs(rows, radius, ids)
        if (far and of[left] == left and of[right] == right) or (not far and of[right] == left)
    ]


def listed(pairs: la.results.Pairs) -> Found:
    assert pairs.exact
    columns = (pairs.left.tolist(), pairs.right.tolist(), pairs.distances.tolist())
    return list(zip(*columns, strict=True))


@pytest.mark.parametrize("kind", KINDS)
@given(st.data(), collections(), st.sampled_from([None, 1, 3]))
def test_pairs_equal_the_oracle_with_and_without_collapse(
    kind: str, draw: st.DataObject, rows: oracle.Signatures, threads: int | None
) -> None:
    ids = draw.draw(distinct_ids(len(rows)))
    bits = 8 * rows.shape[1]
    radius = draw.draw(st.one_of(st.sampled_from([0, bits, bits + 1]), st.integers(0, bits)))
    index = built(kind, rows, ids)
    for collapse, expected in (
        (False, oracle.pairs(rows, radius, ids)),
        (True, stars(rows, radius, ids)),
    ):
        assert listed(index.pairs(radius, collapse=collapse, threads=threads)) == expected
        count = len(expected)
        assert len(index.pairs(radius, limit=count, collapse=collapse)) == count
        if count:
            with pytest.raises(la.errors.ResultTooLargeError, match=f"limit={count - 1} pairs"):
                index.pairs(radius, limit=count - 1, collapse=collapse)


def test_pairs_are_asked_for_in_the_same_way_everywhere() -> None:
    kinds = (la.ScanIndex, la.SliceIndex, la.BlockIndex, la.FlipIndex, la.ShardedIndex)
    for kind in kinds:
        assert inspect.signature(kind.pairs) == inspect.signature(la.Index.pairs)
