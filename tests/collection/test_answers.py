"""What a search gives: matches that decode when they are looked at, and the truth about them."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import lookalike as la
from lookalike.collection import answers
from lookalike.collection.documents import decoded_metadata

METADATA: list[dict[str, Any]] = [{"x": 1, "deep": {"list": [1, "ä"]}}, {}, {"y": None}]


@pytest.fixture
def docs(url: str) -> Iterator[la.Collection]:
    signatures = np.array([[0] * 8, [1] + [0] * 7, [3] + [0] * 7], np.uint8)
    with la.open_collection(url, bits=64, cache=False) as collection:
        collection.add(
            ["a", "b", "c"], ["one", "two", "three"], signatures=signatures, metadata=METADATA
        )
        yield collection


@pytest.mark.parametrize("options", [{}, {"text": True}, {"explain": True}])
def test_a_match_is_the_dataclass_that_it_says_it_is(
    docs: la.Collection, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[str] = []

    def noting(row: Any) -> dict[str, Any]:
        decoded.append(row.id)
        return decoded_metadata(row)

    monkeypatch.setattr(answers, "decoded_metadata", noting)
    query = np.zeros(8, np.uint8)
    answer = docs.search(query, 3, **options)
    assert (answer.ids, answer.distances) == (["a", "b", "c"], [0, 1, 2])
    assert decoded == [], "nobody has looked"
    assert answer[1].metadata is answer[1].metadata
    assert decoded == ["b"]
    for match, metadata, text in zip(answer, METADATA, ["one", "two", "three"], strict=True):
        assert (match.metadata, match.text) == (metadata, text if "text" in options else None)
        assert (match.differing_bits is None) is ("explain" not in options)
        whole = la.results.Match(**dataclasses.asdict(match))
        fields = [field.name for field in dataclasses.fields(la.results.Match)]
        assert match == whole == copy.deepcopy(match)
        assert repr(match) == repr(whole)
        assert all(getattr(match, name) == getattr(whole, name) for name in fields)
        assert dataclasses.replace(match, distance=9).metadata == metadata
        with pytest.raises(dataclasses.FrozenInstanceError):
            match.distance = 1  # type: ignore[misc]
        with pytest.raises(AttributeError, match="Match has no attribute 'nothing'"):
            match.nothing  # type: ignore[attr-defined]  # noqa: B018
    fresh = docs.search(query, 3, **options)
    assert [pickle.loads(pickle.dumps(match)) for match in fresh] == list(answer)
    assert fresh == answer


@pytest.mark.parametrize("plan", ["native", "sql"])
def test_within_is_cut_at_the_limit_and_says_so_where_an_index_raises(
    docs: la.Collection, plan: Any
) -> None:
    query = np.zeros(8, np.uint8)
    for limit in (1, 2, 3, 4):
        answer = docs.within(query, 9, limit=limit, plan=plan)
        assert answer.ids == ["a", "b", "c"][:limit]
        assert answer.exact is (limit >= 3)
        assert repr(answer).endswith(f"exact={answer.exact})")
        assert docs.search(query, limit, plan=plan).exact, "the k nearest are what was asked for"
    index = la.ScanIndex(np.array([document.signature for document in docs]))
    with pytest.raises(la.errors.ResultTooLargeError, match="limit=2"):
        index.within(query, 9, limit=2)
