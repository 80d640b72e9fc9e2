"""The results of searches in a collection."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.collection.documents import Row, decoded_metadata, decoded_text
from lookalike.display import (
    Column,
    Displayed,
    Records,
    TableColumns,
    Tabular,
    record_columns,
    short,
)
from lookalike.parts.votes import PartMatch
from lookalike.signatures.estimates import estimated_pairs
from lookalike.signatures.signer import Signer


@dataclass(frozen=True, repr=False)
class Work(Displayed):
    """What a search did."""

    plan: str
    """`sql`, `native`, or `scan` if a scan was cheaper than looking up slices."""
    probes: int
    """Number of slice values that were looked up."""
    candidates: int
    """Number of signatures that were compared with the query."""
    thresholds: tuple[int, ...] = ()
    """For each slice, the largest number of differing bits of the values that were looked up; -1 if
    the slice was not used. If these numbers, each plus one, add up to more than the radius, no
    match is missed."""
    hot: int = 0
    """Number of slice values that are known to be frequent."""


def joined(
    distances: NDArray[np.int32], unmasked: NDArray[np.int32] | None, bits: int
) -> NDArray[np.int64]:
    """Return distances, each with the unmasked one in one number: `divmod(number, bits + 1)`."""
    numbers = distances.astype(np.int64)
    return numbers if unmasked is None else numbers * (bits + 1) + unmasked


def joined_bound(radius: int, masked: bool, bits: int) -> int:
    """Return the largest number of `joined` for distances up to the radius."""
    return radius * (bits + 1) + bits if masked else radius


@dataclass(slots=True)  # not frozen: that would take twice as long to make
class Level:
    """Every signature up to the distance `bound`, nearest first; distances are `joined`."""

    numbers: list[int]
    distances: list[int]
    bound: int
    work: Work | None = None

    @classmethod
    def of(
        cls,
        numbers: NDArray[np.int64],
        distances: NDArray[np.int32] | NDArray[np.int64],
        bound: int,
        work: Work | None = None,
    ) -> Level:
        """Return signatures sorted by distance."""
        order = np.argsort(distances, kind="stable")
        return cls(numbers[order].tolist(), distances[order].tolist(), bound, work)

    def without_last(self) -> Level:
        """Return the nearest without those as far as the last, of which there may be more."""
        bound = self.distances[-1] - 1
        kept = bisect_right(self.distances, bound)
        return Level(self.numbers[:kept], self.distances[:kept], bound, self.work)


@dataclass(frozen=True, repr=False)
class Match(Displayed):
    """A document that a search found."""

    id: str
    distance: int
    metadata: dict[str, Any]
    text: str | None = None
    differing_bits: tuple[int, ...] | None = None
    """Bits that differ from the query; only with `explain`."""
    slice_distances: tuple[int, ...] | None = None
    """Number of differing bits of each slice, which add up to the distance; only with `explain`."""
    slices: tuple[int, ...] | None = None
    """Positions of the slices by which it was found, or of equal slices if none were looked up;
    only with `explain`."""
    unmasked: int | None = None
    """Distance over all bits of a masked query; `distance` is over the bits that count."""
    votes: int | None = None
    """For documents of many parts: number of parts of the query that voted for it at one offset.
    `distance` is the sum of their distances."""
    offset: int | None = None
    """That offset: position in the document minus position in the query, in units of the signer."""
    start: int | None = None
    """For documents of many parts: where the stretch that matches begins in the document, in units
    of the signer (milliseconds, words), within the tolerance. The stretch reaches from the first
    part that votes to the last."""
    query_start: int | None = None
    """Where the same stretch begins in the query."""
    length: int | None = None
    """How long that stretch is in the query."""
    score: float | None = None
    """For documents of many parts: votes divided by the number of parts of the query that voted.
    By words: the share of the query's words that the document has, from 0 to 1. Rare words count
    more, as in the ranking. By vector: the cosine. By text and vector: the sum of 1 / (60 + rank).
    """
    parts: tuple[tuple[int, int, int], ...] | None = None
    """(part of the query, part of the document, distance) of each vote; only with `explain`."""
    words: tuple[str, ...] | None = None
    """By words: the words of the query that the document has. `distance` is what the score of the
    document (BM25) lacks of the largest score, in units of 1/65536. By vector, it is what the
    cosine lacks of 1, in the same units."""
    ranks: tuple[int, ...] | None = None
    """By text and vector: the rank by the text and that by the vector, from 1 on; 0 if it was not
    among the nearest."""

    @property
    def ones(self) -> int:
        """Number of set bits of the signatures of query and document, if the signer is sparse."""
        return int(vars(self).get("_ones", 0))

    def _values(self) -> dict[str, object]:
        """Return what the line shows; a distance only if it is one of signatures."""
        shown = super()._values()
        if self.score is not None and self.votes is None:
            del shown["distance"]
        return shown

    if not TYPE_CHECKING:  # type checkers need to know only the attributes above

        def __getattr__(self, name):
            """Decode the metadata of the row when it is first used."""
            row = vars(self).get("_row")
            if name != "metadata" or row is None:
                raise AttributeError(f"a Match has no attribute {name!r}")
            return vars(self).setdefault("metadata", decoded_metadata(row))


def match_of(row: Row, distance: int, unmasked: int | None = None) -> Match:
    """Return the match of a row of the table."""
    match = object.__new__(Match)
    fields = vars(match)  # the fastest way to set them
    fields["id"], fields["distance"], fields["_row"] = row.id, distance, row
    if row.text is not None:
        fields["text"] = decoded_text(row)
    if unmasked is not None:
        fields["unmasked"] = unmasked
    return match


def voted(
    row: Row, found: PartMatch, positions: NDArray[np.int64], length: int, explain: bool
) -> Match:
    """Return the match that parts of a query voted for, given their positions and their length."""
    match = match_of(row, int(found.distances.sum()))
    told: dict[str, Any] = {"votes": found.votes, "offset": found.offset, "score": found.score}
    first, last = int(positions.min()), int(positions.max())
    told |= {"start": first + found.offset, "query_start": first, "length": last - first + length}
    vars(match).update(told, **({"parts": tuple(found.parts)} if explain else {}))
    return match


def _listed(words: Sequence[str], most: int = 5) -> str:
    """Return words for a message, the first few of them."""
    shown = [short(word) for word in words[:most]]
    return " or ".join([*shown, *(["the others"] if len(words) > most else [])])


@dataclass(frozen=True, repr=False)
class Pair(Displayed):
    """Two documents within a radius of each other; `left` is the smaller id."""

    left: str
    right: str
    distance: int


def estimates(
    signer: Signer | None, bits: int, distances: ArrayLike, ones: ArrayLike
) -> list[float]:
    """Return the similarities of pairs that signatures estimate: without a signer, equal bits."""
    if signer is None:
        return [1 - distance / bits for distance in np.asarray(distances).tolist()]
    return [float(value) for value in estimated_pairs(signer, distances, bits, ones)]


def estimates_of(signer: Signer | None, bits: int, answer: Answer) -> list[float]:
    """Return the similarity of each match that signatures of `bits` bits estimate."""
    far = [one.distance if one.unmasked is None else one.unmasked for one in answer]
    return estimates(signer, bits, far, [one.ones for one in answer])


def _match_columns(matches: Sequence[Match], similarities: Sequence[float | None]) -> TableColumns:
    columns = record_columns(Match, matches)
    first = {"id": columns.pop("id"), "similarity": Column(similarities, float | None)}
    return {**first, "words": columns.pop("words"), **columns}


@dataclass(eq=False, repr=False, slots=True)
class Answer(Tabular, Sequence[Match]):
    """The matches of a query, sorted by (distance, id).

    Matches by words or by a vector are sorted by distance, equal ones in the order in which they
    were written. Matches by text and vector are sorted by (score, id), largest score first.
    Matches of masked texts are sorted by (distance, unmasked, id), documents of many parts by
    (votes, distance, id), most votes first.
    """

    _matches: list[Match]
    _: KW_ONLY
    version: int
    """The version of the collection that was searched."""
    exact: bool = True
    """Whether the answer is complete; False only if `limit` cut it short, or if `exact=False` was
    passed and not all vectors were compared."""
    work: Work | None = None
    """What the search did; only with `explain`."""
    masked: bool = False
    """Whether only the bits that the words of the text determine were compared."""
    left_out: int = 0
    """Number of parts of the query that did not vote, because too many parts are near them."""
    by: str = "similar"
    """How the documents were found: "similar" (by signatures), "words", "vector", or "fused" (by
    text and vector)."""
    unknown: tuple[str, ...] = ()
    """By words: the words of the query that no document has."""
    searched: int = 0
    """By words: number of different words that were searched for, at most 64."""
    chance_distance: int | None = None
    """Of similar documents without a radius: as many random signatures are all farther from the
    query than this, with a probability of at least 99%."""
    estimate: Callable[[Answer], Sequence[float]] | None = None
    """Returns the similarity that signatures estimate, for each match; only of similar documents.
    """

    @property
    def similarities(self) -> list[float | None]:
        """How similar each match is, from 0 to 1: what pages and commands show as a percentage.

        By words and by vector, and for documents of many parts, it is the `score`. Otherwise it is
        the similarity that signatures estimate, of all bits even if the query is masked. None for
        matches by text and vector.
        """
        if self.by == "fused":
            return [None] * len(self)
        if self.estimate is None or any(match.score is not None for match in self._matches):
            return [match.score for match in self._matches]
        return [*self.estimate(self)]

    @property
    def by_chance(self) -> bool:
        """Whether even the nearest match is as far away as random signatures."""
        reach = self.chance_distance
        return reach is not None and bool(self._matches) and self._matches[0].distance > reach

    @property
    def no_match(self) -> str:
        """Why nothing matches the query, in a sentence; empty if something does."""
        if self.by_chance:
            return "no match: the nearest documents are as far away as random signatures"
        if self._matches or self.by != "words":
            return ""
        if self.searched == 0:
            return "no match: the query has no words"
        if len(self.unknown) == self.searched:
            return f"no match: no document has {_listed(self.unknown)}"
        return "no match: no document that may be found has a word of the query"

    @property
    def ids(self) -> list[str]:
        """The ids of the documents."""
        return [match.id for match in self._matches]

    @property
    def distances(self) -> list[int]:
        """The distances of the documents."""
        return [match.distance for match in self._matches]

    def __len__(self) -> int:
        return len(self._matches)

    @overload
    def __getitem__(self, index: int) -> Match: ...
    @overload
    def __getitem__(self, index: slice) -> list[Match]: ...
    def __getitem__(self, index: int | slice) -> Match | list[Match]:
        return self._matches[index]

    def __iter__(self) -> Iterator[Match]:
        return iter(self._matches)

    def __repr__(self) -> str:
        first = Answer(self._matches[:5], version=self.version, by=self.by, estimate=self.estimate)
        pairs = zip(first, first.similarities, strict=True)
        found = ", ".join(
            f"{short(match.id)}: {match.distance if share is None else f'{share:.0%}'}"
            for match, share in pairs
        )
        more = ", ..." if len(self) > 5 else ""
        why = f", no_match={self.no_match!r}" if self.no_match else ""
        return f"Answer({{{found}{more}}}, exact={self.exact}{why})"

    def _columns(self, begin: int, end: int) -> TableColumns:
        return _match_columns(self._matches[begin:end], self.similarities[begin:end])

    def _row_count(self) -> int:
        return len(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Answer) and self._matches == other._matches


class Answers(Records[Answer]):
    """A list of answers, one for each query, that is also a table.

    The table has a row for each match: `query` (the position of the query) and the columns of an
    `Answer`.
    """

    def __init__(self, answers: Iterable[Answer] = ()) -> None:
        super().__init__(Answer, answers)

    def _columns(self, begin: int, end: int) -> TableColumns:
        every = (
            (query, match, share)
            for query, answer in enumerate(self)
            for match, share in zip(answer, answer.similarities, strict=True)
        )
        rows = list(islice(every, begin, end))
        query = np.array([query for query, _, _ in rows], np.int64)
        matches, shares = [match for _, match, _ in rows], [share for _, _, share in rows]
        return {"query": query, **_match_columns(matches, shares)}

    def _row_count(self) -> int:
        return sum(map(len, self))
