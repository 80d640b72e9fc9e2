"""What a slice index does not take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lookalike as la
from support.oracles import scan as oracle

W56 = np.zeros((1, 7), np.uint8)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda r: la.ShardedIndex([]), "no shards"),
        (lambda r: la.ShardedIndex([la.ScanIndex(r), la.ScanIndex(r[:, :2])]), "bits; expected"),
        (lambda r: la.ShardedIndex([la.SliceIndex(r, 4), la.SliceIndex(r, 5)]), "one width"),
        (lambda r: la.ShardedIndex([la.ScanIndex(r), la.ScanIndex(r, range(5))]), "some shards"),
        (lambda r: la.ShardedIndex([la.ScanIndex(r)] * 1001).save("x"), "save each by itself"),
        (lambda r: la.ShardedIndex([la.ScanIndex(r, range(5))] * 2), "id 0 is in more than one"),
        (lambda r: la.SliceIndex.merge([]), "no indexes to merge"),
        (lambda r: la.SliceIndex.merge([la.SliceIndex(r, 4), la.SliceIndex(r, 5)]), "slice_bits"),
        (
            lambda r: la.SliceIndex.merge(
                [la.SliceIndex(r, 4, range(5)), la.SliceIndex(r, 4, range(4, 9))]
            ),
            "id 4 is given more than once",
        ),
        (lambda r: la.SliceIndex(r, 0), "slice_bits is 0; expected .* from 1 to 32"),
        (lambda r: la.SliceIndex(r, 33), "slice_bits is 33"),
        (lambda r: la.SliceIndex(np.zeros((1, 8192), np.uint8)), "less than 65536"),
        (lambda r: la.SliceIndex(r).search(r, 0), "k is 0"),
        (
            lambda r: la.SliceIndex(r).search(r, 5, rerank=4),
            "rerank is 4; expected at least k=5",
        ),
        (lambda r: la.SliceIndex(r).search(r, 5, expand=-1), "expand is -1"),
        (lambda r: la.SliceIndex(W56, 28).search(W56, 1, expand=14), "use a smaller expand"),
        (lambda r: la.SliceIndex(r).add(r, range(5)), "id 0 is in the index already"),
        (lambda r: la.SliceIndex(r).remove([3, 9]), "id 9 is not in the index; nothing was rem"),
    ],
)
def test_bad_arguments_are_named(make: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(la.errors.ArgumentError, match=message):
        make(oracle.collection(5, 4, "uniform", 0))


def test_signatures_of_another_width_are_refused() -> None:
    index = la.SliceIndex(oracle.collection(5, 4, "uniform", 0))
    for act in (index.add, lambda rows: index.search(rows, 1), lambda rows: index.within(rows, 1)):
        with pytest.raises(la.errors.SignatureError, match="have 16 bits, the index has 32"):
            act(np.zeros((2, 2), np.uint8))


def test_numbers_that_run_out_are_named() -> None:
    index = la.SliceIndex(oracle.collection(2, 4, "uniform", 0), ids=[1, 2**63 - 1])
    with pytest.raises(la.errors.ArgumentError, match="largest id is 9223372036854775807"):
        index.add(oracle.collection(1, 4, "uniform", 1))
    assert index.add(oracle.collection(1, 4, "uniform", 1), ids=[7]).tolist() == [7]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([1.9], "ids are float64"),
        (["3"], "ids are <U1"),
        ([-1000], "smallest id is -1000"),
        ([2**63], "largest id is 9223372036854775808"),
        ([2**70], "ids are object"),
        ([[1]], "one dimension"),
    ],
)
def test_ids_to_remove_are_checked(ids: Any, message: str) -> None:
    index = la.SliceIndex(oracle.collection(5, 4, "uniform", 0))
    index.remove(0)
    with pytest.raises(la.errors.ArgumentError, match=message):
        index.remove(ids)
