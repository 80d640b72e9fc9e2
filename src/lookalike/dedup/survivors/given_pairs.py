"""Pairs that people already have, in whatever form: from ids to positions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.corpora import Corpus, Problems, open_corpus
from lookalike.corpora.columns import ID_GUESSES, TEXT_GUESSES
from lookalike.dedup.pairs.verify import VerifiedPairs, in_order
from lookalike.errors import ArgumentError, DocumentError
from lookalike.indexes.results import Pairs
from lookalike.shown import brief

__all__ = ["GivenPairs", "listed", "read_pairs"]

_SIMILARITIES = ("similarity", "estimate", "jaccard", "cosine", "score")
_DISTANCES = ("distance", "distances")
_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class GivenPairs:
    """Pairs of positions, and what documents are called."""

    ids: Sequence[Any]
    pairs: VerifiedPairs


def read_pairs(given: Any, ids: Iterable[Any] | None) -> GivenPairs:
    """Return pairs, each once, and all documents: `ids`, or those that occur.

    Without `ids`, numbers are in their order, others in that of their appearance.
    """
    left, right, similarity = _columns(given)
    if ids is None:
        known, both = _numbered(left, right)
    else:
        known, both = _positions(listed("ids", ids), left, right)
    one, two = np.split(both, 2)
    apart = one != two  # whoever is like itself is alone
    one, two, similarity = one[apart], two[apart], similarity[apart]
    lower, upper = np.minimum(one, two), np.maximum(one, two)
    order = np.lexsort((-similarity, upper, lower))
    pairs = VerifiedPairs(
        lower[order], upper[order], similarity[order], np.zeros(len(order), np.int32)
    )
    again = (np.diff(pairs.left, prepend=-1) == 0) & (np.diff(pairs.right, prepend=-1) == 0)
    return GivenPairs(known, in_order([pairs[~again]]))


def listed(name: str, values: Iterable[Any]) -> list[Any]:
    """Return values as a list, or raise."""
    try:
        return values.tolist() if isinstance(values, np.ndarray) and values.ndim else list(values)
    except TypeError:
        raise ArgumentError(f"{name} is {brief(values)}; expected several values") from None


def _columns(given: Any) -> tuple[Any, Any, NDArray[np.float64]]:
    """Return both ids of each pair, and how alike they are, as far as that is told."""
    if isinstance(given, Pairs):
        return given.left, given.right, -given.distances.astype(np.float64)
    if isinstance(given, VerifiedPairs):
        return given.left, given.right, given.similarity
    if isinstance(given, np.ndarray):
        if given.ndim != 2 or given.shape[1] != 2:
            raise ArgumentError(
                f"pairs is an array of the shape {given.shape}; expected (n, 2), two ids a pair"
            )
        return given[:, 0], given[:, 1], np.zeros(len(given))
    if isinstance(given, str | os.PathLike | Corpus) or _is_table(given):
        return _of_corpus(open_corpus(given))
    return _of_tuples(given)


def _is_table(given: Any) -> bool:
    known = ("__arrow_c_stream__", "__arrow_c_array__", "with_format", "iloc")
    mappings = isinstance(given, list) and bool(given) and isinstance(given[0], dict)
    return mappings or any(hasattr(given, name) for name in known)


def _of_tuples(given: Any) -> tuple[list[Any], list[Any], NDArray[np.float64]]:
    if not isinstance(given, Iterable) or isinstance(given, bytes | dict):
        raise ArgumentError(
            f"pairs is {brief(given)}; expected la.Pairs, pairs of ids, a table or a file with the "
            "columns left and right"
        )
    left, right = [], []
    for place, pair in enumerate(given):
        if isinstance(pair, str | bytes) or not isinstance(pair, Sequence | np.ndarray):
            raise ArgumentError(f"pair {place} is {brief(pair)}; expected two ids")
        if len(pair) != 2:
            raise ArgumentError(f"pair {place} has {len(pair)} elements; expected two ids")
        left.append(pair[0])
        right.append(pair[1])
    return left, right, np.zeros(len(left))


def _of_corpus(corpus: Corpus) -> tuple[list[Any], list[Any], NDArray[np.float64]]:
    """Read the columns `left` and `right`, or the only two that may be ids."""
    names = corpus.columns()
    if not names:
        return [], [], np.zeros(0)
    wanted = ["left", "right"] if {"left", "right"} <= set(names) else _only_ids(names)
    if len(wanted) != 2:
        raise ArgumentError(
            f"{corpus.name} has the columns {', '.join(names)}; expected left and right, the ids "
            "of each pair"
        )
    likeness = next((name for name in (*_SIMILARITIES, *_DISTANCES) if name in names), None)
    left: list[Any] = []
    right: list[Any] = []
    similarity: list[float] = []
    for batch in corpus.read([*wanted, *([likeness] if likeness else [])], Problems()):
        columns = [column.to_pylist() for column in batch.columns]
        left += columns[0]
        right += columns[1]
        similarity += map(_number, columns[2]) if likeness else [0.0] * len(batch)
    sign = -1.0 if likeness in _DISTANCES else 1.0
    if not corpus.typed:
        left, right = _as_numbers(left, right)
    return left, right, sign * np.array(similarity, float)


def _only_ids(names: Sequence[str]) -> list[str]:
    """Return the columns beside similarities; none if one is what documents have, not pairs."""
    left = [name for name in names if name not in (*_SIMILARITIES, *_DISTANCES)]
    of_documents = {*TEXT_GUESSES, *ID_GUESSES}
    return [] if any(name.lower() in of_documents for name in left) else left


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0  # it only says which of several is named


def _as_numbers(left: list[Any], right: list[Any]) -> tuple[list[Any], list[Any]]:
    """Return ids as whole numbers where a file without types has nothing else."""
    try:
        made = [[int(value) for value in side] for side in (left, right)]
    except (TypeError, ValueError):
        return left, right
    same = all(
        str(number) == value
        for numbers, values in zip(made, (left, right), strict=True)
        for number, value in zip(numbers, values, strict=True)
    )
    return (made[0], made[1]) if same else (left, right)


def _numbered(left: Any, right: Any) -> tuple[Sequence[Any], NDArray[np.int64]]:
    """Return the ids that occur, and both sides of pairs as positions among them."""
    whole = [_whole(side) for side in (left, right)]
    if whole[0] is not None and whole[1] is not None:
        known, both = np.unique(np.concatenate([whole[0], whole[1]]), return_inverse=True)
        return known.tolist(), both.reshape(-1)
    places: dict[Any, int] = {}
    one, two = [], []
    for a, b in zip(left, right, strict=True):
        one.append(places.setdefault(_hashable(a), len(places)))
        two.append(places.setdefault(_hashable(b), len(places)))
    return list(places), np.array(one + two, np.int64)


def _whole(side: Any) -> NDArray[np.int64] | None:
    """Return whole numbers as an array; None if there is anything else."""
    if isinstance(side, np.ndarray):
        whole = np.can_cast(side.dtype, np.int64) and side.dtype != bool
        return side.astype(np.int64) if whole else None
    if all(type(value) is int and _LEAST <= value <= _MOST for value in side):
        return np.array(side, np.int64)
    return None


def _positions(known: list[Any], left: Any, right: Any) -> tuple[Sequence[Any], NDArray[np.int64]]:
    places: dict[Any, int] = {}
    for place, id in enumerate(known):
        if places.setdefault(_hashable(id), place) != place:
            raise ArgumentError(f"ids has {brief(id)} twice; expected each document once")

    def found(side: Any) -> Iterator[int]:
        for id in side.tolist() if isinstance(side, np.ndarray) else side:
            place = places.get(_hashable(id))
            if place is None:
                raise ArgumentError(
                    f"a pair has {brief(id)} of type {type(id).__name__}, which is none of ids"
                )
            yield place

    return known, np.array([*found(left), *found(right)], np.int64)


def _hashable(id: Any) -> Any:
    try:
        hash(id)
    except TypeError:
        raise DocumentError(
            f"an id is {brief(id)} of type {type(id).__name__}, which cannot be looked up; "
            "expected numbers or text"
        ) from None
    if id is None or id != id:  # NaN is not even equal to itself
        raise DocumentError(f"a pair has {id!r} for an id; expected what tells documents apart")
    return id
