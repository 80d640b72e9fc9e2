from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookalike import _native


@given(st.lists(st.text(alphabet="ab\x00é", max_size=4)), st.sampled_from([1, 3]))
def test_the_first_equal_text_is_found(texts: list[str], threads: int) -> None:
    first = np.empty(len(texts), np.int64)
    _native.Documents.from_list(texts, 0).first_equal(threads, first)
    assert first.tolist() == [texts.index(text) for text in texts]


def test_a_million_equal_texts_take_no_longer_than_reading_them() -> None:
    texts = ["the same"] * 1_000_000
    first = np.empty(len(texts), np.int64)
    _native.Documents.from_list(texts, 0).first_equal(2, first)
    assert not first.any()


@given(st.lists(st.text(max_size=5), min_size=1), st.data())
def test_taken_documents_are_those_at_the_positions(texts: list[str], data: st.DataObject) -> None:
    positions = data.draw(st.lists(st.integers(0, len(texts) - 1)))
    taken = _native.Documents.from_list(texts, 0).take(np.array(positions, np.int64))
    features = _native.TextFeatures(True, [1], False, 1, [], False)
    expected = _native.Documents.from_list([texts[at] for at in positions], 0)
    offsets, found = features.extract(taken)
    wanted_offsets, wanted = features.extract(expected)
    assert offsets.tolist() == wanted_offsets.tolist() and found.tolist() == wanted.tolist()


def test_a_position_beyond_the_end_is_refused() -> None:
    with pytest.raises(_native.BorderError):
        _native.Documents.from_list(["a"], 0).take(np.array([1]))
