from __future__ import annotations

from typing import Any

import pytest

import lookalike as la
from lookalike.collection.query import compile_where

METADATA: dict[str, Any] = {
    "lang": "en", "year": 2021, "score": 0.5, "draft": False, "none": None,
    "tags": ["news", 1, True], "author": {"name": "Ada", "year": 1843}, "a.b": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({}, True),
        ({"lang": "en"}, True),
        ({"lang": "de"}, False),
        ({"lang": "en", "year": 2020}, False),
        ({"year": 2021.0}, True),
        ({"draft": False}, True),
        ({"draft": 0}, False),
        ({"year": True}, False),
        ({"none": None}, True),
        ({"missing": None}, False),
        ({"year": {">=": 2021, "<": 2022}}, True),
        ({"year": {">": 2021}}, False),
        ({"year": {"<=": 2020}}, False),
        ({"lang": {">": "de"}}, True),
        ({"lang": {">": 1}}, False),
        ({"year": {"<": "9999"}}, False),
        ({"draft": {"<": 1}}, False),
        ({"missing": {"<": 1}}, False),
        ({"lang": {"!=": "de"}}, True),
        ({"missing": {"!=": "de"}}, True),
        ({"lang": {"in": ["de", "en"]}}, True),
        ({"lang": {"not in": ["de", "en"]}}, False),
        ({"missing": {"in": ["x"]}}, False),
        ({"missing": {"not in": ["x"]}}, True),
        ({"tags": {"has": "news"}}, True),
        ({"tags": {"has": 1}}, True),
        ({"tags": {"has": "sport"}}, False),
        ({"lang": {"has": "n"}}, True),
        ({"year": {"has": 2}}, False),
        ({"lang": {"starts": "e"}}, True),
        ({"year": {"starts": "2"}}, False),
        ({"none": {"exists": True}}, True),
        ({"missing": {"exists": False}}, True),
        ({"author.name": "Ada"}, True),
        ({"author.year": {"<": 1900}}, True),
        ({"lang.name": "x"}, False),
        ({"author": {"=": {"name": "Ada", "year": 1843}}}, True),
        ({"tags": ["news", 1, True]}, True),
        ({"tags": ["news", True, 1]}, False),
        ({"or": [{"lang": "de"}, {"year": 2021}]}, True),
        ({"or": []}, False),
        ({"and": [{"lang": "en"}, {"year": 2020}]}, False),
        ({"not": {"lang": "de"}}, True),
        ({"not": {"or": [{"lang": "de"}, {"lang": "en"}]}}, False),
    ],
)
def test_conditions(where: dict[str, Any], expected: bool) -> None:
    predicate = compile_where(where)
    assert predicate is not None
    assert bool(predicate(METADATA)) is expected


@pytest.mark.parametrize(
    "where",
    [
        [], "lang", 7, {1: 2}, {"a": {"~": 1}}, {"a": {"<": None}}, {"a": {"<": [1]}},
        {"a": {"in": "abc"}}, {"a": {"starts": 1}}, {"a": {"exists": 1}}, {"or": {}},
        {"and": [1]}, {"not": []}, {"a": float("nan")},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_condition_is_refused(where: Any) -> None:
    with pytest.raises(la.errors.ArgumentError):
        compile_where(where)


def test_functions_are_conditions() -> None:
    predicate = compile_where(lambda metadata: metadata["year"] > 2000)
    assert predicate is not None
    assert predicate(METADATA)
    assert compile_where(None) is None


@pytest.mark.parametrize("join", ["not", "and", "or"])
def test_conditions_are_nested_up_to_a_depth(join: str) -> None:
    def condition(levels: int) -> Any:
        where: Any = {"lang": "en"}
        for _ in range(levels - 1):
            where = {join: where if join == "not" else [where]}
        return where

    predicate = compile_where(condition(50))
    assert predicate is not None
    assert predicate({"lang": "en"}) is (join != "not")
    for levels in (51, 400, 5_000):
        with pytest.raises(la.errors.ArgumentError, match="more than 50 levels"):
            compile_where(condition(levels))
