"""The options of a search, checked once.

Conditions on metadata, such as `where={"lang": "en", "year": {">=": 2020}}`:

    {"lang": "en"}                              equal, as JSON: 1 is not true, "1" is not 1
    {"year": {">=": 2020, "<": 2025}}           = != < <= > >=; numbers with numbers, text with text
    {"lang": {"in": ["en", "de"]}}              in, not in
    {"tags": {"has": "news"}}                   the list holds it, or the text contains it
    {"source": {"starts": "s3://"}}             the text begins with it
    {"draft": {"exists": False}}
    {"author.name": "Ada"}                      a dot goes one level down
    {"or": [{...}, {...}]}, {"and": [...]}, {"not": {...}}

All keys must hold. A missing key meets only `!=`, `not in` and `{"exists": False}`. A condition may
also be a function of the metadata. Conditions are evaluated here and not in SQL: they mean the same
on every database, and nothing in them can become SQL.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from typing import Any, Literal, SupportsFloat, SupportsIndex, TypeAlias, TypeVar, get_args

from lookalike.checks import flag, one_of, share, thread_count, whole_number
from lookalike.collection.documents import as_id
from lookalike.errors import ArgumentError, Said
from lookalike.parts.index import FARTHEST
from lookalike.shown import brief
from lookalike.signatures.bit_weights import Mask, as_mask

Plan: TypeAlias = Literal["native", "sql"]
By: TypeAlias = Literal["auto", "words", "similar"]
Where: TypeAlias = Mapping[str, Any] | Callable[[dict[str, Any]], object]
Predicate: TypeAlias = Callable[[dict[str, Any]], object]
T = TypeVar("T")

PLANS = get_args(Plan)
BY = get_args(By)
MOST_MATCHES = 10_000
_MORE_THAN_ALL = 1 << 40
"""The largest number that is asked of a database: more than there are documents."""
_ORDERINGS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_MISSING = object()
_MOST_LEVELS = 50


class Question:
    """What is asked about each of some queries, checked when it is made.

    The k nearest documents, within the radius if there is one; without k, everything within the
    radius, of which `limit` are returned. The options are those of `Collection.search`.
    """

    def __init__(
        self, *, k: SupportsIndex | None = None, radius: SupportsIndex | None = None,
        limit: SupportsIndex | None = MOST_MATCHES, where: Where | None = None,
        exclude: Iterable[str] = (), explain: bool = False, text: bool = False,
        mask: Mask = "auto", plan: Plan | None = None, threads: SupportsIndex | None = None,
        tolerance: SupportsIndex | None = None, min_votes: SupportsIndex | None = None,
        min_score: SupportsFloat | None = None, by: By = "auto", exact: bool = True,
    ) -> None:  # fmt: skip
        self.limit = how_many("limit", limit) if k is None else None
        """The largest number of documents to return; None: all that are found."""
        self.k = how_many("k", k) if self.limit is None else self.limit + 1
        """The number of documents to find: one above the limit shows that there are more."""
        self.radius = None if radius is None and k is not None else _whole("radius", radius, 0)
        """The largest distance; None: as large as needed to find k documents."""
        self.where, self.predicate = where, compile_where(where)
        self.exclude = frozenset(as_id(id) for id in listed("exclude", exclude))
        self.explain, self.text = flag("explain", explain), flag("text", text)
        self.exact = flag("exact", exact)
        self.mask: Mask = as_mask(mask)
        self.plan = None if plan is None else one_of("plan", plan, PLANS)
        one_of("by", by, BY)
        self.by: By = by
        if self.by == "words":
            self._refuse_distances()
        self.threads = thread_count(threads)
        self.tolerance = None if tolerance is None else _whole("tolerance", tolerance, 0, FARTHEST)
        self.min_votes = None if min_votes is None else _whole("min_votes", min_votes, 1)
        self.min_score = None if min_score is None else share("min_score", min_score)

    def _refuse_distances(self) -> None:
        """Refuse options that are for signatures."""
        for name, given in (("radius", self.radius is not None), ("mask", self.mask is True)):
            if given:
                raise ArgumentError(
                    Said(name), " is for signatures; leave it out to search by words or by a vector"
                )

    def check_vectors(self, alone: bool) -> None:
        """Refuse options that are not for vectors; those for texts, if vectors are alone."""
        if self.limit is not None:
            raise ArgumentError(
                "vectors find the nearest documents, so that ", Said("k"), " is needed"
            )
        if alone:
            self._refuse_distances()
        if alone and self.by != "auto":
            raise ArgumentError(Said("by"), f" is {brief(self.by)}, but there is only a vector")

    def deeper(self, k: int) -> Question:
        """Return the same question for k documents, without their texts."""
        twin = copy(self)
        twin.k, twin.text, twin.explain = k, False, False
        return twin

    def refuse_votes(self, name: str) -> None:
        """Refuse options that are for documents of many parts."""
        for option in ("tolerance", "min_votes", "min_score"):
            if getattr(self, option) is not None:
                raise ArgumentError(
                    Said(option),
                    f" is only for documents of many parts, and those of the collection {name!r} "
                    "have one signature each; leave it out",
                )

    def refuse_single(self, name: str, plan: str) -> None:
        """Refuse options that are for documents of one signature."""
        if self.limit is not None:
            raise no_single_signatures(name)
        if plan != "native":
            raise ArgumentError(
                Said("plan"),
                f" is {brief(plan)}, but votes of parts are counted only in memory; leave it out, "
                "or use 'native'",
            )
        if self.mask is True:
            raise ArgumentError(
                Said("mask"),
                Said("=True", " yes"),
                " is for documents of one signature; leave it out",
            )


def no_query() -> ArgumentError:
    """Return the error for a search for nothing."""
    return ArgumentError("there is no query; pass a text or a signature, a vector, or both")


def no_single_signatures(name: str) -> ArgumentError:
    """Return the error for a search that compares single signatures."""
    return ArgumentError(
        f"documents of the collection {name!r} have many signatures each, which vote; use search"
    )


def how_many(name: str, value: SupportsIndex | None, at_least: int = 1) -> int:
    """Return a number of documents, checked."""
    return min(_whole(name, value, at_least), _MORE_THAN_ALL)


def _whole(
    name: str, value: SupportsIndex | None, at_least: int, at_most: int | None = None
) -> int:
    return whole_number(name, value, at_least=at_least, at_most=at_most)  # type: ignore[arg-type]  # None is refused


def listed(name: str, values: Iterable[T]) -> list[T]:
    """Return the values as a list; refuse a string, which is a list of characters."""
    if isinstance(values, str | bytes):
        raise ArgumentError(f"{name} is a {type(values).__name__}; expected a list")
    try:
        return list(values)
    except TypeError:
        raise ArgumentError(f"{name} is of type {type(values).__name__}; expected a list") from None


# Conditions


def compile_where(where: Where | None, levels: int = _MOST_LEVELS) -> Predicate | None:
    """Return a function that says whether metadata meets the condition; None without one."""
    if where is None or callable(where):
        return where
    if not levels:
        raise ArgumentError(f"where is nested more than {_MOST_LEVELS} levels deep; simplify it")
    if not isinstance(where, Mapping):
        raise ArgumentError(
            f"where is of type {type(where).__name__}; expected a dict such as "
            '{"lang": "en", "year": {">=": 2020}}, or a function of the metadata'
        )
    parts = [_condition(key, value, levels) for key, value in where.items()]
    return lambda metadata: all(part(metadata) for part in parts)


def _condition(key: object, value: Any, levels: int) -> Predicate:
    if not isinstance(key, str):
        raise ArgumentError(f"where has the key {key!r}; expected the name of a metadata field")
    if key in ("and", "or"):
        if not isinstance(value, list | tuple):
            raise ArgumentError(f"{key!r} has {value!r}; expected a list of conditions")
        inner = [_nested(key, condition, levels) for condition in value]
        combine = all if key == "and" else any
        return lambda metadata: combine(part(metadata) for part in inner)
    if key == "not":
        negated = _nested(key, value, levels)
        return lambda metadata: not negated(metadata)
    path = key.split(".")
    operations = value if isinstance(value, Mapping) else {"=": value}
    tests = [_operation(key, name, operand) for name, operand in operations.items()]

    def meets(metadata: Any) -> bool:
        for name in path:
            if not isinstance(metadata, dict) or name not in metadata:
                metadata = _MISSING
                break
            metadata = metadata[name]
        return all(test(metadata) for test in tests)

    return meets


def _nested(key: str, condition: Any, levels: int) -> Predicate:
    inner = compile_where(condition, levels - 1) if isinstance(condition, Mapping) else None
    if inner is None:
        raise ArgumentError(f"{key!r} holds {condition!r}; expected a condition (a dict)")
    return inner


def _operation(key: str, name: object, operand: Any) -> Callable[[Any], bool]:
    match name:
        case "=" | "==":
            if isinstance(operand, float) and operand != operand:
                raise ArgumentError(f"the condition on {key!r} is NaN, which equals nothing")
            return lambda value: _equal(value, operand)
        case "!=":
            return lambda value: not _equal(value, operand)
        case "<" | "<=" | ">" | ">=":
            return _ordering(key, name, operand)
        case "in" | "not in":
            if not isinstance(operand, list | tuple | set | frozenset):
                raise ArgumentError(f"{name!r} of {key!r} has {operand!r}; expected a list")
            options, wanted = list(operand), name == "in"
            return lambda value: any(_equal(value, option) for option in options) is wanted
        case "has":
            return lambda value: _has(value, operand)
        case "starts":
            if not isinstance(operand, str):
                raise ArgumentError(f"'starts' of {key!r} has {operand!r}; expected a string")
            return lambda value: isinstance(value, str) and value.startswith(operand)
        case "exists":
            if not isinstance(operand, bool):
                raise ArgumentError(f"'exists' of {key!r} has {operand!r}; expected True or False")
            return lambda value: (value is not _MISSING) is operand
    raise ArgumentError(
        f"the condition on {key!r} has the operation {name!r}; expected one of = != < <= > >= in, "
        "not in, has, starts, exists"
    )


def _ordering(key: str, name: str, operand: Any) -> Callable[[Any], bool]:
    if not _is_number(operand) and not isinstance(operand, str):
        raise ArgumentError(f"{name!r} of {key!r} has {operand!r}; expected a number or a string")
    comparable = _is_number if _is_number(operand) else lambda value: isinstance(value, str)
    compare = _ORDERINGS[name]
    return lambda value: comparable(value) and bool(compare(value, operand))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _equal(value: Any, expected: Any) -> bool:
    """Compare as JSON does: true is not 1, and tuples are lists."""
    if isinstance(value, bool) is not isinstance(expected, bool):
        return False
    if isinstance(expected, list | tuple) and isinstance(value, list):
        return len(value) == len(expected) and all(map(_equal, value, expected))
    return bool(value == expected)


def _has(value: Any, operand: Any) -> bool:
    if isinstance(value, str):
        return isinstance(operand, str) and operand in value
    return isinstance(value, list) and any(_equal(item, operand) for item in value)
