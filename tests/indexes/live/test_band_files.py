"""Saved and opened again: the same index, whatever its keys; or an error that says why not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.errors import ArgumentError
from lookalike.storage.container import write_container
from lookalike.storage.strings import Strings

plain: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.binary(),
    st.text(),
    st.text(st.characters(categories=["Cs", "L"])),  # halves of characters
)
keys = st.recursive(plain, lambda part: st.lists(part, max_size=3).map(tuple))
lists = (
    st.lists(keys, max_size=8)
    | st.lists(st.integers(-(2**63), 2**63 - 1), max_size=8)
    | st.lists(st.text(), max_size=8)
)


@given(lists)
@settings(max_examples=60)
def test_every_plain_key_comes_back(tmp_path_factory: Any, several: list[Any]) -> None:
    distinct = list(dict.fromkeys(several))
    index = la.BandIndex(0.9, 8)
    index.insert_many(distinct, np.arange(8 * len(distinct), dtype=np.uint32).reshape(-1, 8))
    path = tmp_path_factory.mktemp("keys") / "index"
    index.save(path)
    again = la.BandIndex.load(path)
    assert again.keys() == distinct
    assert list(map(type, again.keys())) == list(map(type, distinct))
    assert all(np.array_equal(again[key], index[key]) for key in distinct)
    again.insert("one more \ud800", np.zeros(8, np.uint32))  # it lives on
    again.save(path)
    assert la.BandIndex.load(path).keys() == [*distinct, "one more \ud800"]


def saved(tmp_path: Path, changes: dict[str, Any], arrays: dict[str, Any]) -> Path:
    meta: dict[str, Any] = {
        "index": "bands",
        "threshold": 0.8,
        "permutations": 8,
        "recall": 0.99,
        "mark": None,
    }
    whole: dict[str, Any] = {"values": np.zeros((2, 8), np.uint32), "key_numbers": np.arange(2)}
    path = tmp_path / "hostile"
    write_container(path, {**meta, **changes}, {**whole, **arrays})
    return path


def test_hostile_files_are_refused(tmp_path: Path) -> None:
    """Files whose checksums fit, and whose contents do not."""
    assert len(la.BandIndex.load(saved(tmp_path, {}, {}))) == 2
    changes: list[dict[str, Any]] = [
        {"threshold": 7},
        {"threshold": "0.8"},
        {"permutations": 9},
        {"permutations": 2**70},
        {"recall": None},
        {"mark": "no JSON"},
        {"mark": "[]"},
        {"mark": '{"signer": "Nobody"}'},
        {"mark": '{"weights": 3}'},
        {"mark": 5},
    ]
    for change in changes:
        with pytest.raises((la.errors.CorruptIndexError, la.errors.FormatError)):
            la.BandIndex.load(saved(tmp_path, change, {}))
    arrays: list[dict[str, Any]] = [
        {"values": np.zeros((3, 8), np.uint32)},
        {"values": np.zeros((2, 8), np.uint8)},
        {"key_numbers": np.zeros(2, np.int64)},
        {"key_numbers": np.zeros(2, np.float64)},
    ]
    for text in ("{", "[[]", '{"bytes": "?"}', '{"bytes": 3}', '{"pickle": ""}', "{}", "[" * 10**5):
        values = Strings.of([text, "1"]).arrays("key_json")
        meta = {"index": "bands", "threshold": 0.8, "permutations": 8, "recall": 0.99}
        write_container(tmp_path / "x", meta, {**values, "values": np.zeros((2, 8), np.uint32)})
        with pytest.raises(la.errors.CorruptIndexError):
            la.BandIndex.load(tmp_path / "x")
    for array in arrays:
        with pytest.raises(la.errors.CorruptIndexError):
            la.BandIndex.load(saved(tmp_path, {}, array))


def test_keys_too_long_for_a_file_are_refused(tmp_path: Path) -> None:
    deep: object = 1
    for _ in range(5000):
        deep = (deep,)
    for key in (10**5000, deep):
        index = la.BandIndex(0.5, 64)
        index.insert(key, la.MinHash(64).sign(["some text"])[0])
        with pytest.raises(ArgumentError, match="cannot be saved"):
            index.save(tmp_path / "index.lookalike")
    assert not list(tmp_path.iterdir())
