from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lookalike as la
from lookalike.signatures import as_queries, as_signatures
from lookalike.signatures.arrays import MAX_BITS
from support.oracles import scan as oracle


def test_contiguous_bytes_are_not_copied() -> None:
    rows = oracle.collection(5, 12, "uniform", 0)
    assert np.shares_memory(as_signatures(rows), rows)
    words = np.arange(10, dtype=np.uint64).reshape(5, 2)
    assert np.shares_memory(as_signatures(words), words)


def test_words_are_little_endian_bytes() -> None:
    words = np.array([1, 2**63], np.uint64)
    assert as_signatures(words).tolist() == [[1] + [0] * 7, [0] * 7 + [128]]
    assert np.array_equal(as_signatures(words), as_signatures(words[:, None]))
    assert np.array_equal(as_signatures(words), as_signatures(words.astype(">u8")))


def test_bit_order_is_that_of_packbits_little() -> None:
    bits = np.zeros((1, 24), bool)
    bits[0, 10] = True
    rows = as_signatures(np.packbits(bits, axis=1, bitorder="little"))
    assert rows.tolist() == [[0, 1 << 2, 0]]


@pytest.mark.parametrize(
    "view",
    [
        lambda rows: rows[::2],
        lambda rows: rows[::-1],
        lambda rows: rows[:, ::2],
        lambda rows: rows[:, 3:11],
        lambda rows: np.asfortranarray(rows),
        lambda rows: rows.T,
    ],
)
def test_any_memory_layout(view: Any) -> None:
    rows = view(oracle.collection(20, 16, "uniform", 3))
    expected = oracle.distances(rows, rows)
    assert np.array_equal(la.hamming(rows, rows, all_pairs=True), expected)
    nearest = la.ScanIndex(rows).search(rows, len(rows))
    assert np.array_equal(nearest.distances, np.sort(expected, axis=1))


def test_read_only_and_memory_mapped(tmp_path: Any) -> None:
    rows = oracle.collection(50, 16, "clustered", 3)
    expected = la.ScanIndex(rows).search(rows, 4).ids
    np.save(tmp_path / "rows.npy", rows)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    assert np.array_equal(la.ScanIndex(mapped).search(mapped, 4).ids, expected)
    rows.flags.writeable = False
    assert np.array_equal(la.ScanIndex(rows).search(rows, 4).ids, expected)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((3, 8), np.int64), r"int64; expected uint8 or uint64; .*view"),
        (np.zeros((3, 8), np.uint16), "uint16; expected uint8 or uint64"),
        (np.zeros((3, 8), np.float32), "float32; .*vectors must be turned into bits"),
        (np.zeros((3, 64), bool), "bool; .*packbits"),
        (np.zeros((3, 8), object), "object; expected"),
        (["ab", "cd"], "<U2; expected"),
        ([[1], [1, 2]], "cannot be read as an array"),
        (None, "object; expected"),
        (np.zeros(16, np.uint8), r"shape \(16,\).*one signature of 128 bits pass signatures\[None"),
        (np.zeros((2, 2, 2), np.uint8), r"shape \(2, 2, 2\); expected two dimensions"),
        (np.zeros((), np.uint64), r"shape \(\); expected two dimensions"),
        (np.zeros((3, 0), np.uint8), f"0 bits each; expected 8 to {MAX_BITS}"),
    ],
)
def test_what_is_not_signatures_is_named(array: Any, message: str) -> None:
    with pytest.raises(la.errors.SignatureError, match=message):
        la.ScanIndex(array)


def test_one_query_needs_no_first_axis() -> None:
    rows = oracle.collection(4, 16, "uniform", 0)
    assert np.array_equal(as_queries(rows[2], 128), rows[2:3])
    assert np.array_equal(as_queries(rows.view(np.uint64)[2], 128), rows[2:3])
    words = np.array([5, 6], np.uint64)  # two of 64 bits, never one of 128
    assert as_queries(words, 64).shape == (2, 8)


@pytest.mark.parametrize("query", [np.zeros((2, 8), np.uint8), np.zeros(3, np.uint64)])
def test_queries_of_another_width_name_both(query: Any) -> None:
    with pytest.raises(la.errors.SignatureError, match="queries have 64 bits, the index has 128"):
        as_queries(query, 128)
