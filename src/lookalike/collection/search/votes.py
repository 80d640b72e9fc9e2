"""Documents of many parts: an index over them, and what the parts of a query vote for.

Items of the index are the numbers of digests: documents with the same parts are one item.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from lookalike.checks import share, whole_number
from lookalike.collection.answers import Answer, Level, voted
from lookalike.collection.query import Query, Question
from lookalike.collection.search.answer import Budget, DocumentFetcher
from lookalike.collection.search.native import KeptIndex
from lookalike.collection.stores.base import View
from lookalike.collection.stores.schema import Numbered, Numbers
from lookalike.indexes.kinds import KINDS
from lookalike.parts.index import FARTHEST, MOST_NEAR
from lookalike.parts.signer import SignedParts, VoteSettings
from lookalike.parts.votes import Ballot, Indexed, PartMatch, Reach, ballots

_SPARE = 8
_TOGETHER = 1_000


class PartSearch(KeptIndex[tuple[Indexed, ...]]):
    """The index of a collection whose documents have many signatures each."""

    kind = "parts"
    save_after = 20  # documents; a recording has thousands of parts
    save_between = 2_000

    def _asked(self, index: Any) -> tuple[Indexed, ...]:
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


@dataclass(frozen=True, eq=False)
class Votes:
    """Queries, what counts as a vote, and how many votes are needed; everything is valid."""

    queries: Sequence[SignedParts]
    radius: int
    tolerance: int
    min_votes: int | None
    """None: as the settings say."""
    min_score: float
    settings: VoteSettings

    @classmethod
    def of(
        cls, question: Question, queries: Sequence[SignedParts], bits: int, settings: VoteSettings
    ) -> Votes:
        """Return the question about these queries; the settings are the defaults."""
        radius, tolerance = settings.radius, settings.tolerance
        if question.radius is not None:
            radius = whole_number("radius", question.radius, at_least=0)
        if question.tolerance is not None:
            tolerance = whole_number("tolerance", question.tolerance, at_least=0, at_most=FARTHEST)
        least, score = None, settings.least_score
        if question.min_votes is not None:
            least = whole_number("min_votes", question.min_votes, at_least=1)
        if question.min_score is not None:
            score = share("min_score", question.min_score)
        return cls(queries, min(radius, bits), tolerance, least, score, settings)

    def least(self, ballot: Ballot) -> int:
        """Return how many votes a document needs."""
        if self.min_votes is not None:
            return self.min_votes
        return self.settings.min_votes(ballot.query_parts)


def answers_by_votes(
    query: Query, votes: Votes, view: View, search: KeptIndex[tuple[Indexed, ...]]
) -> list[Answer]:
    """Return the answer for each query, at the version of the view."""
    cast = ballots(
        search.at(view),
        [parts.signatures for parts in votes.queries],
        [parts.offsets for parts in votes.queries],
        Reach(votes.radius, None),
        MOST_NEAR,
        query.threads,
    )
    fetcher = DocumentFetcher(view, query, Budget(), query.text)
    return [_answer(fetcher, votes, ballot) for ballot in cast]


def _answer(fetcher: DocumentFetcher, votes: Votes, ballot: Ballot) -> Answer:
    query, state = fetcher.query, fetcher.view.state
    left_out = ballot.query_parts - ballot.voters
    found: dict[int, PartMatch] = {}
    rows, _ = fetcher.first(_levels(ballot, votes, query.k, state.bits, found))
    matches = []
    for _, row in rows:
        one = found[row.signature]
        matches.append(voted(row, one, int(one.distances.sum()), query.explain))
    return Answer(matches, version=state.version, exact=ballot.exact, left_out=left_out)


def _levels(
    ballot: Ballot, votes: Votes, k: int, bits: int, found: dict[int, PartMatch]
) -> Iterator[Level]:
    """Yield more and more items, each time all down to a number of votes and a sum of distances,
    and add them to `found`. Both are one number, smaller for what comes first.
    """
    least, wanted = votes.least(ballot), k + _SPARE
    farthest = ballot.query_parts * bits + 1
    while True:
        answer = ballot.answer(votes.tolerance, wanted, least)
        numbers, ranks = [], []
        for match in answer:
            if match.score >= votes.min_score:
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
