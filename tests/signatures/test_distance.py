from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lookalike as la
from support.cases.strategies import collections, collections_with_queries
from support.oracles import scan as oracle


@given(collections_with_queries(), st.sampled_from([1, 2, 5]))
def test_all_pairs_equal_the_oracle_with_every_kernel(
    kernel: str, data: tuple[oracle.Signatures, oracle.Signatures], threads: int
) -> None:
    rows, queries = data
    matrix = la.hamming(queries, rows, all_pairs=True, threads=threads)
    assert matrix.dtype == np.int32
    assert matrix.shape == (len(queries), len(rows))
    assert np.array_equal(matrix, oracle.distances(queries, rows))


@given(collections(), st.integers(0, 2**32 - 1))
def test_paired_equal_the_oracle_with_every_kernel(
    kernel: str, rows: oracle.Signatures, seed: int
) -> None:
    others = oracle.collection(len(rows), rows.shape[1], "uniform", seed)
    expected = [oracle.distance(a, b) for a, b in zip(rows, others, strict=True)]
    assert la.hamming(rows, others).tolist() == expected


def test_oracle_agrees_with_itself() -> None:
    rows = oracle.collection(9, 13, "uniform", 1)
    matrix = oracle.distances(rows, rows)
    for i in range(9):
        for j in range(9):
            assert matrix[i, j] == oracle.distance(rows[i], rows[j])


@pytest.mark.parametrize("width", [1, 4, 8, 16, 32, 64, 100, 128, 129, 992, 1024, 5000])
def test_all_bits_different_with_every_kernel(kernel: str, width: int) -> None:
    zeros = np.zeros((11, width), np.uint8)
    ones = np.full((11, width), 255, np.uint8)
    assert set(la.hamming(zeros, ones)) == {8 * width}
    assert (la.hamming(zeros, ones, all_pairs=True) == 8 * width).all()
    assert (la.ScanIndex(ones).search(zeros, 11).distances == 8 * width).all()


@pytest.mark.parametrize("offset", [1, 3, 7, 13])
def test_rows_at_odd_addresses(kernel: str, offset: int) -> None:
    for width in (4, 8, 16, 32, 64, 128, 24):
        buffer = oracle.collection(1, offset + 20 * width, "uniform", offset)[0]
        rows = buffer[offset:].reshape(20, width)
        assert np.array_equal(la.hamming(rows, rows, all_pairs=True), oracle.distances(rows, rows))


def test_pairing_unequal_numbers_says_what_to_do() -> None:
    a, b = np.zeros((3, 8), np.uint8), np.zeros((4, 8), np.uint8)
    with pytest.raises(
        la.errors.SignatureError, match="3 first signatures and 4 second.*all_pairs=True"
    ):
        la.hamming(a, b)


def test_unequal_widths_name_both() -> None:
    with pytest.raises(la.errors.SignatureError, match="64 bits, the second 128"):
        la.hamming(np.zeros((3, 8), np.uint8), np.zeros((3, 16), np.uint8))


def test_a_single_signature_is_compared_with_all() -> None:
    rows = oracle.collection(5, 16, "uniform", 0)
    expected = oracle.distances(rows[2:3], rows)[0]
    assert np.array_equal(la.hamming(rows[2], rows), expected)
    assert np.array_equal(la.hamming(rows, rows[2:3]), expected)
    assert la.hamming(rows[1], rows[3]).tolist() == [oracle.distance(rows[1], rows[3])]
    assert la.hamming(rows[:0], rows[1]).shape == (0,)
