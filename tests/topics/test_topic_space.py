"""Features and points of documents: the core beside NumPy."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lookalike import _native
from lookalike.topics.listed import is_among, places_of

HASHES = st.one_of(st.integers(0, 40), st.integers(0, 2**64 - 1))


@given(st.lists(HASHES, max_size=60), st.lists(HASHES, unique=True, max_size=30))
def test_places_of_features(features: list[int], some: list[int]) -> None:
    found = places_of(np.array(features, np.uint64), np.array(some, np.uint64))
    assert found.tolist() == [some.index(one) if one in some else -1 for one in features]
    among = is_among(np.array(features, np.uint64), np.array(some, np.uint64))
    assert among.tolist() == [one in some for one in features]


def test_places_of_a_part_of_an_array() -> None:
    every = np.arange(100, dtype=np.uint64)
    assert places_of(every[::-3], every[10:20]).tolist() == [
        one - 10 if 10 <= one < 20 else -1 for one in range(99, -1, -3)
    ]


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(0, 700), st.integers(1, 40), st.integers(0, 70))
def test_products_are_those_of_numpy(seed: int, rows: int, columns: int, width: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 6, rows) * rng.integers(0, 2, rows)  # also rows without entries
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])
    places = rng.integers(0, columns, offsets[-1])
    values = rng.standard_normal(offsets[-1]).astype(np.float32)
    matrix = rng.standard_normal((columns, width)).astype(np.float32)
    dense = np.zeros((rows, columns))
    np.add.at(dense, (np.repeat(np.arange(rows), counts), places), values)
    products = []
    for threads in (1, 3):
        product = np.full((rows, width), np.nan, np.float32)
        _native.multiply_rows(offsets, places, values, matrix, threads, product)
        np.testing.assert_allclose(product, dense @ matrix, rtol=1e-4, atol=1e-4)
        products.append(product)
    np.testing.assert_array_equal(products[0], products[1])
