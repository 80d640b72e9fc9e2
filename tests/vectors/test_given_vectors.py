"""Vectors as they come: types, layouts, columns, and what is refused with which words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lookalike as la
from lookalike.vectors.given import as_vectors

ROWS = np.random.default_rng(0).normal(size=(6, 4)).astype("f4")


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f4", ">f2", "i8", "u1"])
def test_types(dtype: str) -> None:
    given = (ROWS * 10).astype(dtype)
    held = as_vectors(given)
    assert held.dtype == (np.float16 if dtype.endswith("f2") else np.float32)
    assert held.dtype.isnative
    assert np.array_equal(held, given)


def test_what_is_in_order_is_not_copied_and_what_is_not_is() -> None:
    assert np.shares_memory(as_vectors(ROWS), ROWS)
    for given in (
        ROWS[::2],
        ROWS[:, ::-1],
        np.asfortranarray(ROWS),
        np.broadcast_to(ROWS[0], (5, 4)),
    ):
        held = as_vectors(given)
        assert held.flags.c_contiguous
        assert np.array_equal(held, given)
    index = la.VectorIndex(ROWS[:, ::-1])
    assert index.search(ROWS[:, ::-1], 1).ids[:, 0].tolist() == list(range(6))


@pytest.mark.parametrize("inner", [pa.float16(), pa.float32(), pa.float64(), pa.int32()])
@pytest.mark.parametrize("kind", ["list", "large", "fixed"])
@pytest.mark.parametrize("chunked", [False, True])
def test_columns_of_lists(inner: Any, kind: str, chunked: bool) -> None:
    values = np.round(ROWS * 10).astype(inner.to_pandas_dtype())
    kinds = {"list": pa.list_(inner), "large": pa.large_list(inner), "fixed": pa.list_(inner, 4)}
    column: Any = pa.array(list(values), kinds[kind])
    if chunked:
        column = pa.chunked_array([column.slice(1, 2), column.slice(3)])
        values = values[1:]
    held = as_vectors(column)
    assert held.dtype == (np.float16 if inner == pa.float16() else np.float32)
    assert np.array_equal(held, values)


def test_empty_columns() -> None:
    assert as_vectors(pa.array([], pa.list_(pa.float32(), 4))).shape == (0, 4)
    assert as_vectors(pa.chunked_array([], pa.list_(pa.float32(), 4))).shape == (0, 4)
    with pytest.raises(la.errors.DocumentError, match="have no dimensions"):
        la.VectorIndex(pa.array([], pa.list_(pa.float32())))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (ROWS[0], r"vectors have shape \(4,\); expected \(count, dimensions\)"),
        (np.zeros((2, 2, 2)), r"have shape \(2, 2, 2\)"),
        (np.zeros((3, 0)), "have no dimensions"),
        (np.array([["a", "b"]]), "are <U1; expected float32 or float16"),
        (ROWS.astype("c8"), "are complex64"),
        (np.array([[0, 0], [1, np.nan]]), "vector 1 has a value that is infinite or not a number"),
        (np.array([[0, 0], [1, 2], [-np.inf, 0]]), "vector 2 has a value that is infinite"),
        (np.array([[0, 1], [1, -1e300]]), r"vector 1 has the value -1e\+300, beyond .* float32"),
        (pa.array([1.0, 2.0]), "are double; expected lists of numbers"),
        (pa.array([["a"]]), "are list<.*string>; expected lists of numbers"),
        (pa.array([[1.0], None]), "vector 1 is null"),
        (pa.array([[1.0, 2.0], [1.0, None]]), "vector 1 has a value that is null"),
        (pa.array([[1.0, 2.0], [1.0]]), "vector 1 has 1 dimensions, and vector 0 has 2"),
        (pa.table({"a": [[1.0]]}), "are a Table of pyarrow; expected one column"),
    ],
)
def test_what_is_refused(given: Any, message: str) -> None:
    with pytest.raises(la.errors.DocumentError, match=message):
        la.VectorIndex(given)


def test_queries_and_new_vectors_of_another_width() -> None:
    index = la.VectorIndex(ROWS)
    for call in (lambda: index.search(ROWS[:, :3], 1), lambda: index.add(ROWS[:, :3])):
        with pytest.raises(
            la.errors.DocumentError, match="have 3 dimensions; expected 4, as the index"
        ):
            call()
    with pytest.raises(
        la.errors.DocumentError, match="vector 1 has a value that is infinite or not"
    ):
        index.search(np.array([[0, 0, 0, 1], [np.nan, 0, 0, 0]]), 1)


def test_what_halves_cannot_hold_is_refused_and_nothing_is_added() -> None:
    index = la.VectorIndex(ROWS.astype("f2"))
    with pytest.raises(
        la.errors.DocumentError, match=r"vector 1 has the value 70000, beyond .* float16"
    ):
        index.add(np.array([[1.0, 0, 0, 0], [0, 70000, 0, 0]]))
    with pytest.raises(la.errors.DocumentError, match="vector 0 is too short for float16"):
        index.add(np.array([[1e-12, 0, 0, 0]]))
    assert len(index) == 6
    # A query is not held, so that it may be as large as it likes.
    assert index.search(ROWS * 1e30, 1).ids[:, 0].tolist() == list(range(6))


def test_lengths_at_the_ends_of_single_precision(kernel: str) -> None:
    """Cosines do not depend on lengths, be they subnormal or next to infinite."""
    usual = la.VectorIndex(ROWS, bits=64).search(ROWS, 6, exact=True)
    for scale in (np.float32(2.0**-120), np.float32(2.0**120)):
        rows = ROWS * scale
        for queries in (ROWS, rows):
            found = la.VectorIndex(rows, bits=64).search(queries, 6, exact=True)
            assert np.array_equal(found.ids, usual.ids)
            assert np.array_equal(found.similarities, usual.similarities)
    least = np.full((8, 4), np.float32(1e-45))
    assert (la.VectorIndex(least, bits=64).search(least, 2, exact=True).similarities == 1).all()


def test_zero_vectors_have_the_cosine_0_with_all() -> None:
    rows = np.concatenate([np.zeros((2, 4)), ROWS])
    index = la.VectorIndex(rows)
    found = index.search(np.zeros((5, 4)), 8)
    assert found.ids.tolist() == [list(range(8))] * 5
    assert (found.similarities == 0).all()
    assert index.within(np.zeros((1, 4)), 0.1).ids.tolist() == []
    assert index.within(ROWS[:1], 1.0).ids.tolist() == [2]
    assert (0, 1) not in {
        *zip(*[a.tolist() for a in (index.pairs(0.5).left, index.pairs(0.5).right)], strict=True)
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k is 0"),
        ({"candidates": 2}, "candidates is 2, fewer than k=3; expected 3 at least"),
        ({"candidates": 5, "recall": 0.9}, "recall excludes candidates and probe"),
        ({"probe": 0}, "probe is 0"),
        ({"recall": 1.5}, "recall is 1.5"),
        ({"among": [-1]}, "among: the smallest id is -1"),
        ({"among": np.ones(3, bool)}, r"among is a mask of shape \(3,\); expected \(6,\)"),
    ],
)
def test_wrong_settings(options: dict[str, Any], message: str) -> None:
    with pytest.raises(la.errors.ArgumentError, match=message):
        la.VectorIndex(ROWS).search(ROWS, **{"k": 3, **options})
    with pytest.raises(
        la.errors.ArgumentError, match="similarity is 1.1; expected a number from -1 to 1"
    ):
        la.VectorIndex(ROWS).within(ROWS, 1.1)


def test_ids_that_do_not_fit() -> None:
    with pytest.raises(la.errors.ArgumentError, match="the id 3 is given more than once"):
        la.VectorIndex(ROWS, ids=[1, 2, 3, 3, 4, 5])
    index = la.VectorIndex(ROWS, ids=[2**63 - 1, 2, 3, 4, 5, 6])
    with pytest.raises(la.errors.ArgumentError, match=r"ids must be less than 2\*\*63"):
        index.add(ROWS)
    with pytest.raises(la.errors.ArgumentError, match="the id 9 is not in the index"):
        index.vectors([2, 9])
    assert index.search(ROWS[:1], 1).ids.tolist() == [[2**63 - 1]]


def test_what_is_added_is_rounded_once() -> None:
    between = -5.751953125000001  # of float32 it is half-way between two numbers of float16
    assert np.float16(np.float32(between)) != np.float16(between)
    index = la.VectorIndex(np.ones((1, 1), np.float16))
    index.add([[between]])
    assert index.vectors(1)[0, 0] == np.float16(between)


def test_an_index_that_was_empty_is_tuned() -> None:
    index = la.VectorIndex(np.empty((0, 4), np.float32), bits=8)
    index.add(np.eye(4))
    assert index.tune(1, 0.9).recall == 1
    assert index.search(np.eye(4), 1, recall=0.9).ids[:, 0].tolist() == [0, 1, 2, 3]
