"""Slice indexes in files, and in memory, that are damaged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lookalike as la
from support.oracles import scan as oracle


@pytest.fixture
def path(tmp_path: Path) -> Path:
    index = la.SliceIndex(oracle.collection(60, 8, "clustered", 1), 7, ids=np.arange(60)[::-1])
    index.add(oracle.collection(9, 8, "uniform", 2))
    index.remove([5, 61])
    index.save(tmp_path / "index.lookalike")
    return tmp_path / "index.lookalike"


def test_a_saved_index_is_the_same(path: Path) -> None:
    loaded = la.load_index(path, verify=True)
    assert isinstance(loaded, la.SliceIndex)
    assert len(loaded) == 67
    queries = oracle.collection(60, 8, "clustered", 1)[:9]
    before = loaded.search(queries, 4, expand=1)
    assert loaded.add(queries[:1]).tolist() == [69]
    loaded.remove(69)
    loaded.save(path)
    again = la.load_index(path)
    assert np.array_equal(again.search(queries, 4, expand=1).ids, before.ids)


def test_damaged_lists_never_crash(path: Path) -> None:
    data = path.read_bytes()
    queries = oracle.collection(60, 8, "clustered", 1)[:9]
    rng = np.random.default_rng(0)
    used = np.flatnonzero(np.frombuffer(data, np.uint8))  # zeros may be between sections
    noticed = 0
    for turn in range(300):
        damaged = bytearray(data)
        for place in rng.choice(used[used >= 4096], 20):
            damaged[place] ^= rng.integers(1, 256)
        copy = path.with_name(f"{turn}.lookalike")  # the one before may still be mapped
        copy.write_bytes(damaged)
        try:
            index = la.load_index(copy)
            index.within(queries, 9)
            index.search(queries, 4, expand=3)
            index.pairs(2)
        except (la.errors.CorruptIndexError, la.errors.FormatError):
            noticed += 1
        with pytest.raises((la.errors.CorruptIndexError, la.errors.FormatError)):
            la.load_index(copy, verify=True)
    assert noticed > 50


@pytest.mark.parametrize("slice_bits", [4, 16])
@pytest.mark.parametrize("expand", [0, 2])
def test_a_row_that_is_listed_over_and_over_is_noticed(slice_bits: int, expand: int) -> None:
    rows = oracle.collection(3_000, 8, "uniform", 4)
    index = la.SliceIndex(rows, slice_bits)
    lists = index._segments[0].lists
    assert lists is not None
    lists[1][:] = 0
    with pytest.raises(la.errors.CorruptIndexError):
        index.search(rows[:50], 9, expand=expand)


def test_a_damaged_index_does_not_disturb_others() -> None:
    """Score tables are shared by all searches of a process, and must be clean after an error."""
    rows = oracle.collection(500, 8, "clustered", 4)
    good, bad = la.SliceIndex(rows, 8), la.SliceIndex(rows, 8)
    expected = good.search(rows[:5], 9, expand=1).ids
    lists = bad._segments[0].lists
    assert lists is not None
    lists[1][100:] = 2**32 - 1
    for _ in range(20):
        with pytest.raises(la.errors.CorruptIndexError):
            bad.search(rows[:5], 9, expand=1)
        assert np.array_equal(good.search(rows[:5], 9, expand=1).ids, expected)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("bits", 72),
        ("bits", "x"),
        ("slice_bits", 8),
        ("slice_bits", 0),
        ("segments", []),
        ("segments", [{"lists": "narrow"}] * 3),
        ("next_id", None),
        ("bits", float("inf")),
        ("index", []),
    ],
)
def test_a_description_that_does_not_fit_is_refused(path: Path, key: str, value: Any) -> None:
    from lookalike.storage.container import write_container

    index = la.load_index(path)
    write_container(path, {**index._meta(), key: value}, index._arrays())
    with pytest.raises((la.errors.CorruptIndexError, la.errors.FormatError)):
        la.load_index(path)
