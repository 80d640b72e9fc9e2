"""Groups of given pairs, and which documents of each are kept."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np

from lookalike.checks import one_of, real_array, whole_number
from lookalike.corpora import Corpus, Problems, open_corpus
from lookalike.corpora.columns import ID_GUESSES, TEXT_GUESSES
from lookalike.dedup.decide import GroupChoices, decide, rank_by
from lookalike.dedup.pairs import Flags, Floats, Ints, VerifiedPairs, differing
from lookalike.dedup.settings import GROUPINGS, DedupSettings
from lookalike.display import Column, TableColumns, Tabular, id_kind
from lookalike.errors import ArgumentError, DocumentError
from lookalike.indexes.results import Pairs
from lookalike.shown import brief

KEEP_RULES = ("first", "last", "none", "max", "min")

_SIMILARITIES = ("similarity", "estimate", "jaccard", "cosine", "score")
_DISTANCES = ("distance", "distances")
_TABLES = ("__arrow_c_stream__", "__arrow_c_array__", "with_format", "iloc")
"""Attributes of tables."""
_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False, repr=False)
class PairGroups(Tabular):
    """Groups of documents, and which are kept; arrays have an element per document.

    The table has a row per document: `id`, `group_id`, `kept` and `duplicate_of`. `group_id` is the
    id of the first of its group, null for a document alone. `duplicate_of` is an id, null for a
    kept document.
    """

    ids: Sequence[Any]
    """The ids of the documents, in their order."""
    group_of: Ints
    """The position of the first document of each group; its own for a document alone."""
    duplicate_of: Ints
    """The position of the document that it is a duplicate of; -1 for kept documents."""
    warnings: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def keep(self) -> Flags:
        """Whether each document is kept."""
        return self.duplicate_of < 0

    def kept(self) -> list[Any]:
        """Return the ids of the kept documents."""
        return [self.ids[place] for place in np.flatnonzero(self.keep).tolist()]

    def groups(self) -> list[list[Any]]:
        """Return the ids of each group of two or more, by their first."""
        order = np.argsort(self.group_of, kind="stable")
        parts = np.split(order, np.flatnonzero(np.diff(self.group_of[order])) + 1)
        return [[self.ids[place] for place in part.tolist()] for part in parts if len(part) > 1]

    def _columns(self, begin: int, end: int) -> TableColumns:
        group_of, kind = self.group_of[begin:end], id_kind(self.ids)
        alone = np.bincount(self.group_of, minlength=len(self))[group_of] < 2

        def named(places: Ints) -> list[Any]:
            return [None if place < 0 else self.ids[place] for place in places.tolist()]

        return {
            "id": Column(self.ids[begin:end], kind),
            "group_id": Column(named(np.where(alone, -1, group_of)), kind | None),
            "kept": self.keep[begin:end],
            "duplicate_of": Column(named(self.duplicate_of[begin:end]), kind | None),
        }

    def _row_count(self) -> int:
        return len(self)

    def _values(self) -> dict[str, object]:
        groups = int(np.count_nonzero(np.bincount(self.group_of) > 1))
        return {"documents": len(self), "kept": int(self.keep.sum()), "groups": groups}


def group_pairs(
    pairs: Any,
    *,
    ids: Iterable[Any] | None = None,
    grouping: str = "star",
    keep: str | Callable[[list[Any]], Any] = "first",
    values: Iterable[Any] | None = None,
    max_group: SupportsIndex = 1000,
) -> PairGroups:
    """Group documents by pairs of near-duplicates, and choose which documents to keep.

    With "star", every dropped document is a pair with the kept one, and no two kept documents are a
    pair. With "components", one document is kept of all that pairs connect. With `keep="none"`,
    every document in a pair is dropped.

    Args:
        pairs: `la.results.Pairs`, an array (n, 2), pairs of ids of any type, a table, or the path
            of a file with the columns `left` and `right`. Order and repetition do not matter.
        ids: All documents in their order (default: those in pairs; numbers ascending, others in
            order of appearance).
        grouping: "star" or "components", as in `la.dedup`.
        keep: "first", "last", "max" or "min" of `values`, "none", or a function that is given the
            ids of a group and returns the one to keep.
        values: Numbers, one for each of `ids`.
        max_group: With components: split larger groups into stars.

    Examples:
        >>> import lookalike as la
        >>> found = la.group_pairs([("a", "b"), ("b", "c"), ("x", "y")])
        >>> found.groups(), found.kept()
        ([['a', 'b'], ['x', 'y']], ['a', 'c', 'x'])
    """
    one_of("grouping", grouping, GROUPINGS)
    most = whole_number("max_group", max_group, at_least=2)
    if not callable(keep):
        one_of("keep", keep, KEEP_RULES)
    if values is not None and ids is None:
        raise ArgumentError("values has a number for each of ids; give ids, too")
    if (values is not None) != (keep in ("max", "min")):
        raise ArgumentError('keep="max" and keep="min" go with values, and no other rule does')
    known, found = _read_pairs(pairs, ids)
    settings = DedupSettings(
        grouping=grouping, max_group=most, keep="none" if keep == "none" else "first"
    )
    choices = None
    if callable(keep):

        def rows(places: Ints) -> list[dict[str, Any]]:
            return [{"id": known[place]} for place in places.tolist()]

        choices = GroupChoices(_by_place(keep), settings, np.arange(len(known)), 0, rows)
    decision = decide(found, _rank(len(known), keep, values), settings, choices=choices)
    return PairGroups(known, decision.group_of, decision.duplicate_of, decision.warnings)


def _rank(count: int, keep: Any, values: Iterable[Any] | None) -> Ints:
    """Return the place of each document in the order in which they are kept."""
    own = np.arange(count)
    if keep == "last":
        return own[::-1].copy()
    if values is None:
        return own
    numbers = real_array("values", _listed("values", values))
    if numbers.shape != own.shape:
        raise ArgumentError(
            f"values has the shape {numbers.shape}; expected a number for each of {count:,} ids"
        )
    return rank_by(-numbers if keep == "max" else numbers)


def _by_place(keep: Callable[[list[Any]], Any]) -> Callable[[list[dict[str, Any]]], int]:
    """Return a function that returns the place of the id that `keep` chooses."""

    def choose(rows: list[dict[str, Any]]) -> int:
        ids = [row["id"] for row in rows]
        answer = keep(list(ids))
        for place, id in enumerate(ids):
            if type(id) is type(answer) and id == answer:
                return place
        raise ArgumentError(
            f"keep returned {brief(answer)} for a group of {len(ids):,}; expected one of the ids "
            "that it was given"
        )

    return choose


def _read_pairs(given: Any, ids: Iterable[Any] | None) -> tuple[Sequence[Any], VerifiedPairs]:
    """Return all documents (`ids`, or those in pairs), and pairs of their positions, each once."""
    left, right, similarity = _columns(given)
    if ids is None:
        known, both = _numbered(left, right)
    else:
        known, both = _positions(_listed("ids", ids), left, right)
    one, two = np.split(both, 2)
    apart = one != two  # a document is not a pair with itself
    one, two, similarity = one[apart], two[apart], similarity[apart]
    lower, upper = np.minimum(one, two), np.maximum(one, two)
    order = np.lexsort((-similarity, upper, lower))
    pairs = VerifiedPairs(lower, upper, similarity, np.zeros(len(lower), np.int32))[order]
    return known, pairs[differing(pairs.left, pairs.right)]


def _listed(name: str, values: Iterable[Any]) -> list[Any]:
    """Return values as a list, or raise."""
    try:
        return values.tolist() if isinstance(values, np.ndarray) and values.ndim else list(values)
    except TypeError:
        raise ArgumentError(f"{name} is {brief(values)}; expected several values") from None


def _columns(given: Any) -> tuple[Any, Any, Floats]:
    """Return both ids of each pair, and its similarity, 0 where it is not given."""
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
    mappings = isinstance(given, list) and bool(given) and isinstance(given[0], dict)
    is_table = mappings or any(hasattr(given, name) for name in _TABLES)
    if is_table or isinstance(given, str | os.PathLike | Corpus):
        return _of_corpus(open_corpus(given))
    return _of_tuples(given)


def _of_tuples(given: Any) -> tuple[list[Any], list[Any], Floats]:
    if not isinstance(given, Iterable) or isinstance(given, bytes | dict):
        raise ArgumentError(
            f"pairs is {brief(given)}; expected la.results.Pairs, pairs of ids, a table or a file "
            "with the columns left and right"
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


def _of_corpus(corpus: Corpus) -> tuple[list[Any], list[Any], Floats]:
    """Read the columns `left` and `right`, or the only two that may be ids."""
    names = corpus.columns()
    if not names:
        return [], [], np.zeros(0)
    wanted = [name for name in names if name not in (*_SIMILARITIES, *_DISTANCES)]
    of_documents = any(name.lower() in {*TEXT_GUESSES, *ID_GUESSES} for name in wanted)
    if {"left", "right"} <= set(names):
        wanted = ["left", "right"]
    elif len(wanted) != 2 or of_documents:
        raise ArgumentError(
            f"{corpus.name} has the columns {', '.join(names)}; expected left and right, the ids "
            "of each pair"
        )
    likeness = next((name for name in (*_SIMILARITIES, *_DISTANCES) if name in names), None)
    left, right, similarity = list[Any](), list[Any](), list[float]()
    for batch in corpus.read([*wanted, *([likeness] if likeness else [])], Problems()):
        columns = [column.to_pylist() for column in batch.columns]
        left += columns[0]
        right += columns[1]
        similarity += map(_number, columns[2]) if likeness else [0.0] * len(batch)
    sign = -1.0 if likeness in _DISTANCES else 1.0
    if not corpus.typed:
        left, right = _as_numbers(left, right)
    return left, right, sign * np.array(similarity, float)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0  # it only decides which of several documents is named


def _as_numbers(left: list[Any], right: list[Any]) -> tuple[list[Any], list[Any]]:
    """Return ids as whole numbers if a file without types has nothing else."""
    try:
        made = [[int(value) for value in side] for side in (left, right)]
    except (TypeError, ValueError):
        return left, right
    same = [[str(number) for number in side] for side in made] == [left, right]
    return (made[0], made[1]) if same else (left, right)


def _numbered(left: Any, right: Any) -> tuple[Sequence[Any], Ints]:
    """Return the ids in pairs, and both sides of the pairs as positions among them."""
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


def _whole(side: Any) -> Ints | None:
    """Return whole numbers as an array; None if there is anything else."""
    if isinstance(side, np.ndarray):
        whole = np.can_cast(side.dtype, np.int64) and side.dtype != bool
        return side.astype(np.int64) if whole else None
    if all(type(value) is int and _LEAST <= value <= _MOST for value in side):
        return np.array(side, np.int64)
    return None


def _positions(known: list[Any], left: Any, right: Any) -> tuple[Sequence[Any], Ints]:
    places: dict[Any, int] = {}
    for place, id in enumerate(known):
        if places.setdefault(_hashable(id), place) != place:
            raise ArgumentError(f"ids has {brief(id)} twice; expected each document once")

    def found(side: Any) -> Iterator[int]:
        for id in side.tolist() if isinstance(side, np.ndarray) else side:
            place = places.get(_hashable(id))
            if place is None:
                raise ArgumentError(
                    f"a pair has {brief(id)} of type {type(id).__name__}, which is not in ids"
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
        raise DocumentError(
            f"a pair has {id!r} for an id; expected a value that identifies a document"
        )
    return id
