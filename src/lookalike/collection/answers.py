"""What searches of a collection find and return."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from lookalike.collection.documents import Row, decoded_metadata, decoded_text
from lookalike.parts.votes import PartMatch


@dataclass(frozen=True)
class Work:
    """What a search did."""

    way: str
    """`sql`, `native`, or `scan` where that was cheaper than looking up slices."""
    probes: int
    """Slice values that were looked up."""
    candidates: int
    """Signatures that were compared with the query."""
    thresholds: tuple[int, ...] = ()
    """For each slice, in how many bits a value could differ and still be looked up; -1: none was.
    Where they add up to more than the radius, counting each as one more, nothing can be missed."""
    hot: int = 0
    """Values known to be had by many signatures, which are looked up only if others cost more."""


class MaskedDistances:
    """Distances over some bits and over all, as one number that is ordered by both."""

    def __init__(self, bits: int) -> None:
        self._all = bits + 1

    def joined(self, masked: NDArray[np.int32], unmasked: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return a number for each pair of distances."""
        return masked.astype(np.int64) * self._all + unmasked

    def within(self, radius: int) -> int:
        """Return the largest number of a pair whose masked distance is at most the radius."""
        return radius * self._all + self._all - 1

    def apart(self, joined: int) -> tuple[int, int]:
        """Return the masked distance and that over all bits."""
        return divmod(joined, self._all)


@dataclass(slots=True)  # not frozen: that would take twice as long to make
class Level:
    """Every signature up to the distance `bound`, nearest first: they become documents later.

    Of a query with a mask, distances are those of `MaskedDistances`.
    Lists and not arrays: most searches find a handful, and become documents one by one.
    """

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
        """Return them sorted by distance."""
        order = np.argsort(distances, kind="stable")
        return cls(numbers[order].tolist(), distances[order].tolist(), bound, work)

    def without_last(self) -> Level:
        """Return the k nearest without those as far as the last, of which there may be more."""
        bound = self.distances[-1] - 1
        kept = bisect_right(self.distances, bound)
        return Level(self.numbers[:kept], self.distances[:kept], bound, self.work)


@dataclass(frozen=True)
class Match:
    """A document that was found; its metadata are decoded when they are first looked at."""

    id: str
    distance: int
    metadata: dict[str, Any]
    text: str | None = None
    differing_bits: tuple[int, ...] | None = None
    """Which bits differ from the query, if the search was asked to explain."""
    slice_distances: tuple[int, ...] | None = None
    """In how many bits each slice differs, if asked to explain; they add up to the distance."""
    slices: tuple[int, ...] | None = None
    """The positions of slices that led to it, if asked to explain; where no slices of the table
    were looked up, of those that are equal."""
    unmasked: int | None = None
    """In how many of all bits it differs, where only some were compared: `distance` is of those."""
    votes: int | None = None
    """Where documents have many parts: how many parts of the query voted for this one at one place;
    `distance` is then the sum of theirs."""
    offset: int | None = None
    """That place: position in the document minus position in the query, as the signer counts."""
    score: float | None = None
    """Votes as a share of the parts that were asked, from 0 to 1."""
    parts: tuple[tuple[int, int, int], ...] | None = None
    """(part of the query, part of the document, distance) of each vote, if asked to explain."""

    if not TYPE_CHECKING:  # for whom there are no other attributes than those above

        def __getattr__(self, name):
            """Decode metadata of which there is only what the table holds, and keep them."""
            row = vars(self).get("_row")
            if name != "metadata" or row is None:
                raise AttributeError(f"a Match has no attribute {name!r}")
            return vars(self).setdefault("metadata", decoded_metadata(row))


def match_of(row: Row, distance: int, unmasked: int | None = None) -> Match:
    """Return the match that a row of the table is at this distance."""
    match = object.__new__(Match)
    fields = vars(match)  # setting them one by one is what takes least
    fields["id"], fields["distance"], fields["_row"] = row.id, distance, row
    if row.text is not None:
        fields["text"] = decoded_text(row)
    if unmasked is not None:
        fields["unmasked"] = unmasked
    return match


def voted(row: Row, found: PartMatch, distance: int, explain: bool) -> Match:
    """Return the match that the parts of a query voted for."""
    match = match_of(row, distance)
    told = {"votes": found.votes, "offset": found.offset, "score": found.score}
    vars(match).update(told, **({"parts": tuple(found.parts)} if explain else {}))
    return match


def explained(
    match: Match, bits: tuple[int, ...], slice_distances: tuple[int, ...], slices: tuple[int, ...]
) -> Match:
    """Return the match with what an explanation tells of it."""
    whole = copy(match)
    vars(whole).update(differing_bits=bits, slice_distances=slice_distances, slices=slices)
    return whole


@dataclass(frozen=True)
class Pair:
    """Two documents within a radius of each other; `left` comes before `right` as text."""

    left: str
    right: str
    distance: int


class Answer(Sequence[Match]):
    """The documents that were found, sorted by (distance, id), and whether these are all.

    Those of a text that was masked are sorted by (distance, unmasked, id); those of documents of
    many parts by most votes, then by (distance, id).
    """

    __slots__ = ("_matches", "exact", "left_out", "masked", "version", "work")

    def __init__(
        self,
        matches: list[Match],
        *,
        version: int,
        exact: bool = True,
        work: Work | None = None,
        masked: bool = False,
        left_out: int = 0,
    ) -> None:
        self._matches = matches
        self.exact = exact
        """Whether nothing that should be here is missing; False only if `limit` cut it short."""
        self.version = version
        """The version of the collection that this is the answer for."""
        self.work = work
        """What the search did, if it was asked to explain."""
        self.masked = masked
        """Whether only bits were compared that the text's words decide; by these are distances."""
        self.left_out = left_out
        """Parts of the query that were not asked, because too many parts are near them."""

    @property
    def complete(self) -> bool:
        """The older name of `exact`."""
        return self.exact

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
        found = ", ".join(f"{match.id!r}: {match.distance}" for match in self._matches[:5])
        more = ", ..." if len(self) > 5 else ""
        return f"Answer({{{found}{more}}}, exact={self.exact})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Answer) and self._matches == other._matches

    __hash__ = None  # type: ignore[assignment]  # it holds dictionaries
