from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lookalike as la
from lookalike.storage.container import open_container, write_container
from lookalike.storage.strings import Strings

lists = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), max_size=12)


@given(lists, lists)
def test_a_sequence_like_any_other(strings: list[str], others: list[str]) -> None:
    packed = Strings.of(strings)
    assert len(packed) == len(strings)
    assert packed == strings
    assert strings == packed
    assert (packed == others) is (strings == others)
    assert list(packed) == strings
    assert packed[1:] == strings[1:]
    assert packed[::-1] == strings[::-1]
    for position in range(-len(strings), len(strings)):
        assert packed[position] == strings[position]
    with pytest.raises(IndexError):
        packed[len(strings)]


@given(lists)
def test_through_a_file(tmp_path: Path, strings: list[str]) -> None:
    write_container(tmp_path / "file", {}, Strings.of(strings).arrays("id"))
    container = open_container(tmp_path / "file")
    assert Strings.restored(container, "id") == strings
    assert Strings.restored(container, "name") is None


@pytest.mark.parametrize("ends", [[-1, 3], [2, 1], [1, 99], [2**62, 2**62]])
def test_ends_from_a_file_are_not_trusted(tmp_path: Path, ends: list[int]) -> None:
    arrays = {"id_ends": np.array(ends), "id_bytes": np.frombuffer(b"abc", np.uint8)}
    write_container(tmp_path / "file", {}, arrays)
    strings = Strings.restored(open_container(tmp_path / "file"), "id")
    assert strings is not None
    with pytest.raises(la.errors.CorruptIndexError, match=r"file: the string \d is at bytes"):
        list(strings)


def test_what_is_no_string() -> None:
    with pytest.raises(la.errors.ArgumentError, match="item 1 is 7; expected a string"):
        Strings.of(["a", 7])  # type: ignore[list-item]
    with pytest.raises(la.errors.ArgumentError, match="item 0 is '.udc00'"):
        Strings.of(["\udc00"])
    assert Strings.of(["a", "b"]) != "ab"
    assert repr(Strings.of("abcd")) == "Strings(['a', 'b', 'c', ...])"
