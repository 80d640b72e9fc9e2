"""What an index of parts answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

__all__ = ["PartAnswer", "PartMatch"]


@dataclass(frozen=True, eq=False, repr=False)
class PartMatch:
    """An item that parts of the query voted for, and the place in it that they agree on."""

    item: str | int
    offset: int
    """Position in the item minus position in the query, as most of the votes have it."""
    votes: int
    """Parts of the query that are near a part of the item at this offset, within the tolerance."""
    score: float
    """Votes as a share of the parts that were asked, from 0 to 1."""
    query_parts: NDArray[np.int64]
    """int64[votes]: which parts of the query voted, ascending, counted from 0."""
    item_parts: NDArray[np.int64]
    """int64[votes]: the part of the item that each of them is near, counted from 0."""
    distances: NDArray[np.int32]
    """int32[votes]"""

    @property
    def parts(self) -> list[tuple[int, int, int]]:
        """The matched parts: (part of the query, part of the item, distance)."""
        columns = self.query_parts.tolist(), self.item_parts.tolist(), self.distances.tolist()
        return list(zip(*columns, strict=True))

    def __repr__(self) -> str:
        return (
            f"PartMatch(item={self.item!r}, offset={self.offset}, votes={self.votes}, "
            f"score={self.score:.3f})"
        )


@dataclass(frozen=True, eq=False, repr=False)
class PartAnswer(Sequence[PartMatch]):
    """Items by votes, most first; of equals that with the smallest sum of distances, then that
    which was added first.
    """

    matches: tuple[PartMatch, ...]
    query_parts: int
    """Parts of the query."""
    left_out: int
    """Of these, those that were not asked, because too many parts are near them."""
    exact: bool
    """Whether no near part is missing of those that were asked."""

    def __len__(self) -> int:
        return len(self.matches)

    @overload
    def __getitem__(self, index: int) -> PartMatch: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[PartMatch]: ...
    def __getitem__(self, index: int | slice) -> PartMatch | Sequence[PartMatch]:
        return self.matches[index]

    def __iter__(self) -> Iterator[PartMatch]:
        return iter(self.matches)

    def __repr__(self) -> str:
        return (
            f"PartAnswer({len(self)} items, query_parts={self.query_parts}, "
            f"left_out={self.left_out}, exact={self.exact})"
        )
