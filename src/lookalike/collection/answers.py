"""What searches of a collection return."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from lookalike.collection.documents import Row, decoded_metadata, decoded_text

__all__ = ["Answer", "Match", "Pair", "Work"]


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


@dataclass(frozen=True)
class Match:
    """A document that was found."""

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


@dataclass(frozen=True)
class Pair:
    """Two documents within a radius of each other; `left` comes before `right` as text."""

    left: str
    right: str
    distance: int


class Answer(Sequence[Match]):
    """The documents that were found, sorted by (distance, id), and whether these are all.

    Metadata are decoded when a match is looked at.
    """

    __slots__ = ("_bits", "_rows", "complete", "distances", "version", "work")

    def __init__(
        self,
        rows: Sequence[Row],
        distances: list[int],
        *,
        version: int,
        complete: bool = True,
        work: Work | None = None,
        bits: Sequence[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]] | None = None,
    ) -> None:
        self._rows = rows
        self._bits = bits
        self.distances = distances
        self.complete = complete
        """Whether nothing that should be here is missing; False only if `limit` cut it short."""
        self.version = version
        """The version of the collection that this is the answer for."""
        self.work = work
        """What the search did, if it was asked to explain."""

    @property
    def ids(self) -> list[str]:
        """The ids of the documents."""
        return [row.id for row in self._rows]

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Match: ...
    @overload
    def __getitem__(self, index: slice) -> list[Match]: ...
    def __getitem__(self, index: int | slice) -> Match | list[Match]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        row = self._rows[index]
        match = (row.id, self.distances[index], decoded_metadata(row), decoded_text(row))
        return Match(*match) if self._bits is None else Match(*match, *self._bits[index])

    def __iter__(self) -> Iterator[Match]:
        return (self[index] for index in range(len(self)))

    def __repr__(self) -> str:
        found = ", ".join(f"{row.id!r}: {far}" for row, far in
                          zip(self._rows[:5], self.distances, strict=False))  # fmt: skip
        more = ", ..." if len(self) > 5 else ""
        return f"Answer({{{found}{more}}}, complete={self.complete})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Answer) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # it holds dictionaries


def differing_bits(query: NDArray[np.uint8], signature: NDArray[np.uint8]) -> tuple[int, ...]:
    """Return the positions of bits in which two signatures differ."""
    bits = np.unpackbits(query ^ signature, bitorder="little")
    return tuple(np.flatnonzero(bits).tolist())
