"""Documents of many parts: an index over them, and what the parts of a query vote for.

Items of the index are the numbers of digests: documents with the same parts are one item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from lookalike.collection.answers import Answer, Level, voted
from lookalike.collection.query import Question
from lookalike.collection.search.answer import Budget, DocumentFetcher
from lookalike.collection.search.native import CachedIndex
from lookalike.collection.stores.base import View
from lookalike.collection.stores.schema import Numbered, Numbers
from lookalike.indexes.kinds import KINDS
from lookalike.parts.index import MOST_NEAR
from lookalike.parts.signer import SignedParts, VoteSettings
from lookalike.parts.votes import Ballot, Indexed, PartMatch, Reach, ballots

T = TypeVar("T")

_SPARE = 8
_TOGETHER = 1_000


class PartSearch(CachedIndex):
    """The index of a collection whose documents have many signatures each."""

    kind = "parts"
    save_after = 20  # documents; a recording has thousands of parts
    save_between = 2_000

    def _searchable(self, index: Any) -> tuple[Indexed, ...]:
        segments: tuple[Indexed, ...] = index.settled()
        return segments

    def _built(self, view: View) -> Any:
        index = KINDS[self.kind].cls(view.state.bits)
        for batch in view.all_signatures():
            self._add(index, view, batch)
        return index

    def _add(self, index: Any, view: View, new: Numbered) -> None:
        found = view.parts(new)
        while some := list(islice(found, _TOGETHER)):
            parts = [one for _, one in some]
            index.add_many(
                [number for number, _ in some],
                [one.signatures for one in parts],
                [one.offsets for one in parts],
            )

    def _remove(self, index: Any, numbers: Numbers) -> None:
        index.remove_many(numbers.tolist())


def answers_by_votes(
    question: Question,
    queries: Sequence[SignedParts],
    settings: VoteSettings,
    view: View,
    search: CachedIndex,
    take: Callable[[int, Answer], T],
    budget: Budget,
) -> list[T]:
    """Return what `take` makes of the answer for each query, at the version of the view.

    Settings are the defaults. See `Collection.answers_each`.
    """
    radius = settings.radius if question.radius is None else question.radius
    cast = ballots(
        search.at(view),
        [parts.signatures for parts in queries],
        [parts.offsets for parts in queries],
        Reach(min(radius, view.state.bits), None),
        MOST_NEAR,
        question.threads,
    )
    fetcher = DocumentFetcher(view, question, budget, question.text)
    result, matches = [], 0
    for place, (parts, ballot) in enumerate(zip(queries, cast, strict=True)):
        answer = _answer(fetcher, settings, ballot, parts)
        matches += len(answer)
        budget.check_matches(matches)
        result.append(take(place, answer))
        fetcher.trim()
    return result


def _answer(
    fetcher: DocumentFetcher, settings: VoteSettings, ballot: Ballot, parts: SignedParts
) -> Answer:
    found: dict[int, PartMatch] = {}
    rows, _ = fetcher.first(_levels(ballot, fetcher.question, settings, fetcher.view, found))
    matches = []
    for _, row in rows:
        one = found[row.signature]
        positions = parts.offsets[one.query_parts]
        matches.append(voted(row, one, positions, settings.length, fetcher.question.explain))
    left_out = ballot.query_parts - ballot.voters
    version = fetcher.view.state.version
    return Answer(matches, version=version, exact=ballot.exact, left_out=left_out)


def _levels(
    ballot: Ballot,
    question: Question,
    settings: VoteSettings,
    view: View,
    found: dict[int, PartMatch],
) -> Iterator[Level]:
    """Yield more and more items by (missing votes, distance) as one number; add them to `found`."""
    least = question.min_votes or settings.min_votes(ballot.query_parts)
    score = settings.least_score if question.min_score is None else question.min_score
    tolerance = settings.tolerance if question.tolerance is None else question.tolerance
    wanted, farthest = question.k + _SPARE, ballot.query_parts * view.state.bits + 1
    while True:
        answer = ballot.answer(tolerance, wanted, least, nearness=settings.nearness)
        numbers, ranks = [], []
        for match in answer:
            if match.score >= score:
                number = int(match.item)
                found[number] = match
                numbers.append(number)
                missing = ballot.query_parts - match.votes
                ranks.append(missing * farthest + int(match.distances.sum()))
        level = Level(numbers, ranks, ballot.query_parts * farthest)
        if len(answer) < wanted or len(numbers) < len(answer):
            yield level  # all there are, or all that reach the score
            return
        yield level.without_last()
        wanted *= _SPARE
