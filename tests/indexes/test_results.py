from __future__ import annotations

import sys

import numpy as np
import pytest

import lookalike as la

ROWS = np.array([[0b0000], [0b0001], [0b0111]], np.uint8)


@pytest.fixture
def index() -> la.ScanIndex:
    return la.ScanIndex(ROWS, ids=[10, 20, 30])


def test_neighbors(index: la.ScanIndex) -> None:
    result = index.search(ROWS[1:], k=4)
    assert repr(result) == "Neighbors(queries=2, k=4, exact=True)"
    assert [ids.tolist() for ids, _ in result] == [[20, 10, 30], [30, 20, 10]]
    assert result[-1][1].tolist() == [0, 2, 3]
    expected = {
        "query": [0, 0, 0, 1, 1, 1],
        "id": [20, 10, 30, 30, 20, 10],
        "distance": [0, 1, 2, 0, 2, 3],
    }
    assert result.to_arrow().to_pydict() == expected
    assert result.to_pandas().to_dict("list") == expected


def test_matches(index: la.ScanIndex) -> None:
    result = index.within(ROWS[::-1], radius=1)
    assert repr(result) == "Matches(queries=3, matches=5, exact=True)"
    assert result.offsets.tolist() == [0, 1, 3, 5]
    assert result[-1][0].tolist() == [10, 20]
    with pytest.raises(IndexError):
        result[3]
    expected = {"query": [0, 1, 1, 2, 2], "id": [30, 20, 10, 10, 20], "distance": [0, 0, 1, 0, 1]}
    assert result.to_arrow().to_pydict() == expected
    assert result.to_pandas().to_dict("list") == expected


def test_pairs(index: la.ScanIndex) -> None:
    result = index.pairs(radius=2)
    assert repr(result) == "Pairs(pairs=2, exact=True)"
    expected = {"left": [10, 20], "right": [20, 30], "distance": [1, 2]}
    assert result.to_arrow().to_pydict() == expected
    assert result.to_pandas().to_dict("list") == expected


def test_empty_results_have_the_same_columns() -> None:
    empty = la.ScanIndex(np.empty((0, 8), np.uint8))
    nothing = np.empty((0, 8), np.uint8)
    assert empty.search(nothing, 3).to_arrow().column_names == ["query", "id", "distance"]
    assert empty.within(np.zeros((2, 8), np.uint8), 3).offsets.tolist() == [0, 0, 0]
    assert len(empty.pairs(3).to_pandas()) == 0


def test_a_missing_package_is_named(index: la.ScanIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(la.errors.MissingDependencyError, match=r"pip install 'lookalike'"):
        index.pairs(1).to_arrow()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        la.errors.MissingDependencyError, match=r"pip install 'lookalike\[pandas\]'"
    ):
        index.pairs(1).to_pandas()
