"""What is asked of a collection, checked once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, SupportsIndex, TypeAlias, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import flag, one_of, thread_count, whole_number
from lookalike.collection.documents import as_id
from lookalike.collection.search.filters import Predicate, Where, compile_where
from lookalike.errors import ArgumentError

Way: TypeAlias = Literal["native", "sql"]
T = TypeVar("T")

WAYS = get_args(Way)
_MORE_THAN_ALL = 1 << 40
"""Whoever asks for more gets this many: more than there can be, few enough for every database."""


@dataclass(frozen=True, eq=False)
class Query:
    """The same question for each of some signatures; everything in it is valid."""

    signatures: NDArray[np.uint8]
    """uint8[queries, bytes]"""
    radius: int | None
    """How far documents may be; None: as far as it takes to have k of them."""
    k: int
    """How many documents are wanted for each signature at most."""
    limit: int | None
    """How many of these are given out; with one more than that, it is known that there are more."""
    predicate: Predicate | None
    """What metadata must meet."""
    exclude: frozenset[str]
    explain: bool
    text: bool
    way: Way
    threads: int
    masks: tuple[NDArray[np.uint8] | None, ...]
    """Which bits of each signature count; None: all of them."""

    @classmethod
    def of(
        cls,
        signatures: NDArray[np.uint8],
        radius: SupportsIndex | None,
        *,
        k: SupportsIndex | None = None,
        limit: SupportsIndex | None = None,
        where: Where | None,
        exclude: Iterable[str],
        explain: bool,
        text: bool,
        way: Way,
        threads: SupportsIndex | None,
        masks: tuple[NDArray[np.uint8] | None, ...] | None = None,
    ) -> Query:
        """Return the query for the k nearest, those within the radius if there is one.

        Without k, for everything within the radius, of which `limit` are given out.
        """
        most = how_many("limit", limit) if k is None else None
        wanted = how_many("k", k) if most is None else most + 1
        near = None
        if radius is not None or k is None:
            near = whole_number("radius", radius, at_least=0)  # type: ignore[arg-type]  # not None
            near = min(near, 8 * signatures.shape[1])
        return cls(
            signatures,
            near,
            wanted,
            most,
            compile_where(where),
            frozenset(as_id(id) for id in listed("exclude", exclude)),
            flag("explain", explain),
            flag("text", text),
            one_of("way", way, WAYS),  # type: ignore[arg-type]
            thread_count(threads),
            (None,) * len(signatures) if masks is None else masks,
        )


def how_many(name: str, value: SupportsIndex | None, at_least: int = 1) -> int:
    """Return how many are wanted."""
    whole = whole_number(name, value, at_least=at_least)  # type: ignore[arg-type]  # not None
    return min(whole, _MORE_THAN_ALL)


def listed(name: str, values: Iterable[T]) -> list[T]:
    """Return the values as a list; one string is a mistake, and not many of one character."""
    if isinstance(values, str | bytes):
        raise ArgumentError(f"{name} are one {type(values).__name__}; expected a list")
    try:
        return list(values)
    except TypeError:
        raise ArgumentError(
            f"{name} are of type {type(values).__name__}; expected a list"
        ) from None
