"""Search by words: the documents that have the words of a text, the best by BM25 first."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.collection.answers import Answer, Level, Match, match_of
from lookalike.collection.query import Question
from lookalike.collection.search.answer import Budget, EntryFetcher, add_texts
from lookalike.collection.search.native import CachedIndex, Target
from lookalike.collection.search.postings import (
    MOST_QUERY_WORDS,
    FoundWords,
    QueryWords,
    WordIndex,
)
from lookalike.collection.stores.base import View
from lookalike.collection.stores.entries import Entries
from lookalike.collection.stores.schema import WORDS, Numbers, State
from lookalike.errors import DocumentError
from lookalike.operation import stop_if_canceled

_SHORT = 32  # different words of a text that `by="auto"` searches for by words
_SHORT_TEXT = 2_000  # characters of such a text
_GROWTH = 8  # times as many documents, if those that were found do not suffice

Taken = TypeVar("Taken")


class WordSearch(CachedIndex):
    """The keyword index of a collection."""

    suffix = "-words"

    def _target(self, state: State) -> Target:
        return Target(state.words_digest, state.next_words - 1, state.documents)

    def _removed(self, view: View) -> tuple[Numbers, NDArray[np.uint64]]:
        return view.removals_after(self._version, WORDS.removals)

    def _added(self, view: View) -> Iterator[Entries]:
        return view.entries_after(WORDS, self._last)

    def _fits(self, index: WordIndex, state: State) -> bool:
        return True

    def _loaded(self, path: Path) -> WordIndex:
        return WordIndex.load(path)

    def _searchable(self, index: WordIndex) -> WordIndex:
        return copy.copy(index)

    def _built(self, view: View) -> WordIndex:
        return WordIndex.build(view.all_entries(WORDS))

    def _add(self, index: WordIndex, view: View, new: Entries) -> None:
        index.add(new)

    def _remove(self, index: WordIndex, numbers: Numbers) -> None:
        index.remove(numbers)


def words_of_query(text: str, kind: str) -> QueryWords:
    """Return the different words of a text; `kind` is one of `WORD_KINDS`."""
    try:
        query = _native.Documents.from_list([text], 0)
    except ValueError as error:  # half of a surrogate pair
        raise DocumentError(str(error)) from None
    return QueryWords(*_native.query_words(query, kind))


def is_short(text: str, kind: str) -> bool:
    """Return whether `by="auto"` searches for a text by its words."""
    whole = "plain" if kind == "trigram" else kind
    return len(text) <= _SHORT_TEXT and len(words_of_query(text, whole).words) <= _SHORT


def answers_by_words(
    question: Question,
    queries: Sequence[tuple[int, str]],
    index: WordIndex,
    view: View,
    take: Callable[[int, Answer], Taken],
    budget: Budget,
) -> list[Taken]:
    """Return what `take` makes of the position of each query and its answer, in order."""
    fetcher = _WordFetcher(view, question, budget)
    results = []
    count = 0
    for position, text in queries:
        stop_if_canceled()
        query = words_of_query(text, view.state.words)
        answer = _answer(fetcher, index, query)
        count += len(answer)
        budget.check_matches(count)
        if question.text:
            add_texts(view, [answer], budget)
        results.append(take(position, answer))
        fetcher.trim()
    return results


def _answer(fetcher: _WordFetcher, index: WordIndex, query: QueryWords) -> Answer:
    words = query.words[:MOST_QUERY_WORDS]
    levels = _Levels(index, query, fetcher.question.k)
    rows, _ = fetcher.first(levels)
    weights = levels.found.weights.tolist()
    whole, best = sum(weights), levels.found.best_score
    matches: list[Match] = []
    for rank, row in rows:
        has = int(levels.found.has[rank])
        shared = [place for place in range(len(words)) if has >> place & 1]
        match = match_of(row, best - int(levels.found.scores[rank]))
        vars(match)["words"] = tuple(words[place] for place in shared)
        vars(match)["score"] = sum(weights[place] for place in shared) / whole
        matches.append(match)
    frequencies = levels.found.frequencies.tolist()
    unknown = [word for word, often in zip(words, frequencies, strict=True) if not often]
    version = fetcher.view.state.version
    return Answer(matches, version=version, by="words", unknown=tuple(unknown), searched=len(words))


class _Levels:
    """More and more of the best documents, by their rank.

    Documents of equal scores have different ranks, in the order of their numbers. So no more than
    are wanted need to be read, even if all documents have the same score.
    """

    def __init__(self, index: WordIndex, query: QueryWords, k: int) -> None:
        self._index, self._query, self._k = index, query, k
        self.found: FoundWords  # of the last level, which has all documents of those before

    def __iter__(self) -> Iterator[Level]:
        wanted = self._k
        while True:
            wanted = min(wanted, len(self._index) + 1)
            self.found = found = self._index.search(self._query, wanted)
            count = len(found.numbers)
            yield Level(found.numbers.tolist(), list(range(count)), count - 1)
            if count < wanted:
                return
            wanted *= _GROWTH


class _WordFetcher(EntryFetcher):
    """Fetches the documents of entries of the keyword index."""

    kind = WORDS
