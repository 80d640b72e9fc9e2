"""The searches of a collection: by one signature each, or by the votes of many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, SupportsFloat, SupportsIndex, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from lookalike.collection.answers import Answer
from lookalike.collection.part_signing import (
    PartsAsked,
    PartSigning,
    no_single_signatures,
    refuse_votes,
    refuse_ways,
)
from lookalike.collection.query import Query, Way
from lookalike.collection.search.answer import answers
from lookalike.collection.search.filters import Where
from lookalike.collection.search.kept import KeptIndex
from lookalike.collection.search.native import NativeSearch
from lookalike.collection.search.sql import SqlSearch
from lookalike.collection.search.votes import PartSearch, Votes, answers_by_votes
from lookalike.collection.signing import Signing
from lookalike.collection.stores.base import State, Store
from lookalike.collection.versions import Versions
from lookalike.images.decode import ImageSource
from lookalike.signatures.bit_weights import Mask

__all__ = ["MOST_MATCHES", "SearchedDocuments"]

T = TypeVar("T")

MOST_MATCHES = 10_000


class SearchedDocuments:
    """What is near what? `Collection` is this, and writes, reads and keeps them well."""

    def __init__(self, store: Store, state: State, *, way: Way, cache: Path | None) -> None:
        self._store = store
        self._name = state.name
        self._opened = state
        self._way: Way = way
        self._sql = SqlSearch()
        self._native: KeptIndex[Any, Any]
        self._native = PartSearch(cache) if state.parts else NativeSearch(cache)
        self._versions = Versions(store, state, self._native)
        self._signing = (PartSigning if state.parts else Signing)(self._versions)

    @property
    def bits(self) -> int:
        """How many bits each signature has."""
        return self._opened.bits

    @property
    def parts(self) -> bool:
        """Whether documents have many signatures, and are found by the votes of these."""
        return self._opened.parts

    def search(
        self,
        query: str | ArrayLike | ImageSource | PartsAsked,
        k: SupportsIndex = 10,
        *,
        radius: SupportsIndex | None = None,
        where: Where | None = None,
        exclude: Iterable[str] = (),
        explain: bool = False,
        text: bool = False,
        mask: Mask = "auto",
        way: Way | None = None,
        threads: int | None = None,
        tolerance: SupportsIndex | None = None,
        min_votes: SupportsIndex | None = None,
        min_score: SupportsFloat | None = None,
    ) -> Answer:
        """Return the k nearest documents to a text or signature, by (distance, id); exact. Where
        the signer is `la.ImageHash`, to an image; where it is `la.Projection`, to a vector.

        Only those within `radius`, if given, which makes the search in the database cheap; only
        those that meet `where` and are not in `exclude`. `text=True` brings their texts,
        `explain=True` the bits and slices in which they differ and what the search did. `way` is
        `"native"` (an index in memory) or `"sql"` (in the database); the answers are the same.

        `mask=True` compares only the bits that the text's words decide, by (distance, distance over
        all bits, id); `"auto"` does so for short texts if the signer is TopSig and there is no
        radius. `masked` of the answer says so.

        Where documents have many parts, the k that most parts of the query vote for, with the place
        in them: parts within `radius` bits vote, differences of positions within `tolerance` of
        each other count together, and documents with fewer than `min_votes`, or less than
        `min_score` of the parts asked, are left out. The signer says so, unless told here.
        """
        return self.search_many(
            self._signing.one(query), k, radius=radius, where=where, exclude=exclude,
            explain=explain, text=text, mask=mask, way=way, threads=threads,
            tolerance=tolerance, min_votes=min_votes, min_score=min_score,
        )[0]  # fmt: skip

    def search_many(
        self,
        queries: Sequence[str] | Sequence[ImageSource] | Sequence[PartsAsked] | ArrayLike,
        k: SupportsIndex = 10,
        *,
        radius: SupportsIndex | None = None,
        where: Where | None = None,
        exclude: Iterable[str] = (),
        explain: bool = False,
        text: bool = False,
        mask: Mask = "auto",
        way: Way | None = None,
        threads: int | None = None,
        tolerance: SupportsIndex | None = None,
        min_votes: SupportsIndex | None = None,
        min_score: SupportsFloat | None = None,
    ) -> list[Answer]:
        """Return what `search` returns for each of many queries, at one version."""
        ways = self._way if way is None else way
        if isinstance(self._signing, PartSigning):
            refuse_ways(ways, mask)
            votes = Votes.of(
                self._signing.asked_parts(queries), self.bits, self._signing.votes, radius=radius,
                tolerance=tolerance, min_votes=min_votes, min_score=min_score,
            )  # fmt: skip
            query = Query.of(
                np.empty((0, self.bits // 8), np.uint8), None, k=k, where=where, exclude=exclude,
                explain=explain, text=text, way=ways, threads=threads,
            )  # fmt: skip
            return self._versions.read(
                lambda view, state: answers_by_votes(query, votes, view, state, self._native)
            )
        refuse_votes(self._name, tolerance=tolerance, min_votes=min_votes, min_score=min_score)
        signatures, masks = self._signing.asked(queries, mask, whole=radius is not None)
        query = Query.of(
            signatures, radius, k=k, where=where, exclude=exclude, explain=explain, text=text,
            way=ways, threads=threads, masks=masks,
        )  # fmt: skip
        return self._answers(query, _whole)

    def within(
        self,
        query: str | ArrayLike | ImageSource,
        radius: SupportsIndex,
        *,
        limit: SupportsIndex = MOST_MATCHES,
        where: Where | None = None,
        exclude: Iterable[str] = (),
        explain: bool = False,
        text: bool = False,
        way: Way | None = None,
        threads: int | None = None,
    ) -> Answer:
        """Return every document at distance `radius` or less, by (distance, id).

        At most `limit` of them, the nearest; where there are more, nothing is raised, as indexes
        do, but `exact` of the answer is False. For the rest see `search`.
        """
        self._refuse_parts()
        return self.within_many(
            self._signing.query(query), radius, limit=limit, where=where, exclude=exclude,
            explain=explain, text=text, way=way, threads=threads,
        )[0]  # fmt: skip

    def within_many(
        self,
        queries: Sequence[str] | Sequence[ImageSource] | ArrayLike,
        radius: SupportsIndex,
        *,
        limit: SupportsIndex = MOST_MATCHES,
        where: Where | None = None,
        exclude: Iterable[str] = (),
        explain: bool = False,
        text: bool = False,
        way: Way | None = None,
        threads: int | None = None,
    ) -> list[Answer]:
        """Return what `within` returns for each of many queries, at one version.

        `limit` is for each of them.
        """
        self._refuse_parts()
        query = Query.of(
            self._signing.queries(queries), radius, limit=limit, where=where, exclude=exclude,
            explain=explain, text=text, way=self._way if way is None else way, threads=threads,
        )  # fmt: skip
        return self._answers(query, _whole)

    def _answers(self, query: Query, take: Callable[[int, Answer], T]) -> list[T]:
        return self._versions.read(
            lambda view, state: answers(query, view, state, self._native, self._sql, take)
        )

    def _refuse_parts(self) -> None:
        if self.parts:
            raise no_single_signatures(self._name)


def _whole(position: int, answer: Answer) -> Answer:
    return answer
