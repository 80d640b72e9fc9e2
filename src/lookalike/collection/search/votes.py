"""Documents of many parts: a `PartIndex` over them, and what the parts of a query vote for.

Items of the index are the numbers of digests: documents that have the same parts are one item.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import share, whole_number
from lookalike.collection.answers import Answer, Level, voted
from lookalike.collection.query import Query
from lookalike.collection.search.answer import Budget, DocumentFetcher
from lookalike.collection.search.native import KeptIndex
from lookalike.collection.stores.base import View
from lookalike.collection.stores.schema import Numbered, State
from lookalike.parts import PartIndex, PartMatch
from lookalike.parts.index import FARTHEST, MOST_NEAR
from lookalike.parts.signer import SignedParts, VoteSettings
from lookalike.parts.votes import Ballot, Indexed, Reach, ballots

__all__ = ["PartSearch", "Votes", "answers_by_votes"]

_SPARE = 8
_TOGETHER = 1_000


class PartSearch(KeptIndex[PartIndex, tuple[Indexed, ...]]):
    """The index of a collection whose documents have many signatures each."""

    save_after = 20  # documents: of recordings, each has thousands of parts
    save_between = 2_000

    def _asked(self, index: PartIndex) -> tuple[Indexed, ...]:
        return index.settled()

    def _loaded(self, path: Path) -> PartIndex:
        return PartIndex.load(path)

    def _built(self, view: View, state: State) -> PartIndex:
        index = PartIndex(state.bits)
        for batch in view.all_signatures(state):
            self._add(index, view, state, batch)
        return index

    def _add(self, index: PartIndex, view: View, state: State, new: Numbered) -> None:
        found = view.parts(state, new)
        while some := list(islice(found, _TOGETHER)):
            parts = [one for _, one in some]
            index.add_many(
                [number for number, _ in some],
                [one.signatures for one in parts],
                [one.offsets for one in parts],
            )

    def _remove(self, index: PartIndex, numbers: NDArray[np.int64]) -> None:
        index.remove_many(numbers.tolist())


@dataclass(frozen=True, eq=False)
class Votes:
    """What counts as a vote, and how many it takes; everything in it is valid."""

    queries: Sequence[SignedParts]
    radius: int
    tolerance: int
    min_votes: int | None
    """None: as the settings say."""
    min_score: float
    settings: VoteSettings

    @classmethod
    def of(
        cls,
        queries: Sequence[SignedParts],
        bits: int,
        settings: VoteSettings,
        *,
        radius: SupportsIndex | None,
        tolerance: SupportsIndex | None,
        min_votes: SupportsIndex | None,
        min_score: SupportsFloat | None,
    ) -> Votes:
        """Return what is asked; what was not told is as the signer has it."""
        near = settings.radius if radius is None else whole_number("radius", radius, at_least=0)
        apart = settings.tolerance
        if tolerance is not None:
            apart = whole_number("tolerance", tolerance, at_least=0, at_most=FARTHEST)
        least = None if min_votes is None else whole_number("min_votes", min_votes, at_least=1)
        score = settings.least_score if min_score is None else share("min_score", min_score)
        return cls(queries, min(near, bits), apart, least, score, settings)

    def least(self, ballot: Ballot) -> int:
        """Return how many votes a document needs."""
        if self.min_votes is not None:
            return self.min_votes
        return self.settings.min_votes(ballot.query_parts)


def answers_by_votes(
    query: Query,
    votes: Votes,
    view: View,
    state: State,
    search: KeptIndex[Any, tuple[Indexed, ...]],
) -> list[Answer]:
    """Return the answer for each query, at the version of the view."""
    cast = ballots(
        search.at(view, state),
        [parts.signatures for parts in votes.queries],
        [parts.offsets for parts in votes.queries],
        Reach(votes.radius, None),
        MOST_NEAR,
        query.threads,
    )
    fetcher = DocumentFetcher(view, state, query, Budget())
    return [_answer(fetcher, votes, ballot) for ballot in cast]


def _answer(fetcher: DocumentFetcher, votes: Votes, ballot: Ballot) -> Answer:
    query, version = fetcher.query, fetcher.state.version
    left_out = ballot.query_parts - ballot.voters
    found: dict[int, PartMatch] = {}
    rows, _ = fetcher.first(_levels(ballot, votes, query.k, fetcher.state.bits, found))
    matches = []
    for _, row in rows:
        one = found[row.signature]
        matches.append(voted(row, one, int(one.distances.sum()), query.explain))
    return Answer(matches, version=version, exact=ballot.exact, left_out=left_out)


def _levels(
    ballot: Ballot, votes: Votes, k: int, bits: int, found: dict[int, PartMatch]
) -> Iterator[Level]:
    """Yield ever more items, each time all down to some votes and a sum of distances, and note
    what is found. Both are one number, less for what comes first.
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
