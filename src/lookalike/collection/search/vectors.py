"""Search by vectors: the documents whose vectors have the largest cosine; and fusion with texts."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lookalike.collection.answers import Answer, Level, Match, match_of
from lookalike.collection.query import Question
from lookalike.collection.search.answer import Budget, EntryFetcher, add_texts
from lookalike.collection.search.native import CachedIndex, Target
from lookalike.collection.stores.base import View
from lookalike.collection.stores.entries import Entries
from lookalike.collection.stores.schema import VECTORS, Numbers, State
from lookalike.collection.vectors import unpacked_vectors
from lookalike.errors import CollectionError
from lookalike.indexes.kinds import KINDS
from lookalike.operation import stop_if_canceled

_BITS = 64  # of signatures, which only `within` and `pairs` of an index need
_GROWTH = 8  # times as many documents, if those that were found do not suffice
_UNITS = 1 << 16  # of a distance
_RANK = 60
"""What reciprocal rank fusion adds to ranks: the larger, the less do the first ranks count."""
_LEAST_DEPTH = 100

Taken = TypeVar("Taken")


class VectorSearch(CachedIndex):
    """The vectors of a collection."""

    kind = "vectors"
    suffix = "-vectors"

    def _target(self, state: State) -> Target:
        return Target(state.vectors_digest, state.next_vectors - 1, state.vectors)

    def _removed(self, view: View) -> tuple[Numbers, NDArray[np.uint64]]:
        return view.removals_after(self._version, VECTORS.removals)

    def _added(self, view: View) -> Iterator[Entries]:
        return view.entries_after(VECTORS, self._last)

    def _fits(self, index: Any, state: State) -> bool:
        return bool(index.dimensions == state.dimensions)

    def _searchable(self, index: Any) -> Any:
        index.make_sketches()  # copies share them
        return copy.copy(index)

    def _built(self, view: View) -> Any:
        dimensions = view.state.dimensions
        rows = np.empty((view.state.vectors, dimensions), np.float32)
        numbers = np.empty(len(rows), np.int64)
        end = 0
        for batch in view.all_entries(VECTORS):
            begin, end = end, end + len(batch)
            if end <= len(rows):  # if there are more, the last one raises
                rows[begin:end] = unpacked_vectors(batch.values(), dimensions)
                numbers[begin:end] = batch.numbers
        return KINDS[self.kind].build(rows, numbers, bits=_BITS)

    def _add(self, index: Any, view: View, new: Entries) -> None:
        index.add(unpacked_vectors(new.values(), view.state.dimensions), new.numbers)

    def _remove(self, index: Any, numbers: Numbers) -> None:
        index.remove(numbers)

    def _outgrown(self, index: Any, state: State) -> bool:
        facts = index.stats()
        return bool(2 * (facts["removed"] + facts["added"]) > len(index))


class _VectorFetcher(EntryFetcher):
    """Fetches the documents of vectors."""

    kind = VECTORS


def answers_by_vectors(
    question: Question,
    vectors: NDArray[np.float32],
    search: CachedIndex,
    view: View,
    take: Callable[[int, Answer], Taken],
    budget: Budget,
) -> list[Taken]:
    """Return what `take` makes of the position of each query and its answer, in order."""
    if vectors.shape[1] != view.state.dimensions:
        raise CollectionError(
            "the collection was replaced by one with vectors of other dimensions; try again"
        )
    index = search.at(view)
    fetcher = _VectorFetcher(view, question, budget)
    results, count = [], 0
    for position, vector in enumerate(vectors):
        stop_if_canceled()
        levels = _Levels(index, vector, question)
        rows, _ = fetcher.first(levels)
        matches = []
        for rank, row in rows:
            match = match_of(row, round(_UNITS * (1 - levels.cosines[rank])))
            vars(match)["score"] = levels.cosines[rank]
            matches.append(match)
        answer = Answer(matches, version=view.state.version, exact=levels.exact, by="vector")
        count += len(answer)
        budget.check_matches(count)
        if question.text:
            add_texts(view, [answer], budget)
        results.append(take(position, answer))
        fetcher.trim()
    return results


class _Levels:
    """More and more of the nearest vectors, by their rank; those of equal cosines by number.

    Each level begins with those before it, so all but the first are exact if there is a condition.
    """

    def __init__(self, index: Any, vector: NDArray[np.float32], question: Question) -> None:
        self._index, self._vector, self._question = index, vector, question
        self.cosines: list[float]  # of the last level
        self.exact: bool

    def __iter__(self) -> Iterator[Level]:
        question, count = self._question, len(self._index)
        # Any number of documents may not meet a condition, so that one search may not suffice.
        every = question.exact or question.predicate is not None
        wanted = question.k + len(question.exclude)
        while True:
            wanted = min(wanted, count + 1)
            found = self._index.search(self._vector, wanted, exact=every, threads=question.threads)
            numbers, cosines = found[0]
            self.cosines, self.exact = cosines.tolist(), found.exact
            yield Level(numbers.tolist(), list(range(len(numbers))), len(numbers) - 1)
            if not every or len(numbers) < wanted:
                return
            wanted *= _GROWTH


# Fusion


def fusion_depth(k: int) -> int:
    """Return how many documents of each of two answers are fused into k."""
    return max(_LEAST_DEPTH, 2 * k)


def fused(
    question: Question, by_text: Answer, by_vector: Answer, view: View, budget: Budget
) -> Answer:
    """Return what two rankings give together.

    A document at rank r of an answer, from 1 on, gets 1 / (60 + r) from it (reciprocal rank
    fusion). Documents with equal sums are sorted by id.
    """
    ranks: dict[str, list[int]] = {}
    rows: dict[str, Match] = {}
    for side, answer in enumerate((by_text, by_vector)):
        for rank, match in enumerate(answer, 1):
            ranks.setdefault(match.id, [0, 0])[side] = rank
            rows[match.id] = match
    scores = {id: sum(1 / (_RANK + rank) for rank in both if rank) for id, both in ranks.items()}
    matches = []
    for id in sorted(scores, key=lambda id: (-scores[id], id))[: question.k]:
        row = vars(rows[id])["_row"]
        budget.spend(len(row.metadata))
        match = match_of(row, round(_UNITS * (2 / (_RANK + 1) - scores[id])))
        vars(match).update(score=scores[id], ranks=tuple(ranks[id]))
        matches.append(match)
    exact = by_text.exact and by_vector.exact
    found = Answer(matches, version=view.state.version, exact=exact, by="fused")
    if question.text:
        add_texts(view, [found], budget)
    return found
