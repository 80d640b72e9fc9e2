"""Signers of parts: many signatures of one item, each with its position in it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike.errors import DocumentError
from lookalike.signatures import Signer


class SignedParts(NamedTuple):
    """What `la.PartIndex.add` and `search` take."""

    signatures: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    """The position of each part."""


@dataclass(frozen=True)
class VoteSettings:
    """The default settings of searches for the parts of a signer."""

    radius: int  # bits in which parts that vote may differ
    tolerance: int  # how far apart differences of positions may be that count together
    least_votes: int  # votes that an item needs; all parts of a query that has fewer
    least_score: float = 0.0  # share of the parts of the query that an item needs: fewer are chance
    length: int = 1  # how far a part extends from its position
    nearness: bool = False  # whether the nearest parts say where, not the most; see `PartIndex`

    def min_votes(self, parts: int) -> int:
        """Return how many votes an item needs for a query of this many parts, at least 1."""
        return max(1, min(self.least_votes, parts))


class PartSigner(Signer):
    """A signer of parts: items have many signatures, and are found by their votes."""

    unit: ClassVar[str] = "positions"
    """The unit of positions: "milliseconds", "words", or any other."""
    votes_decide: ClassVar[bool] = True
    """Whether the votes of parts are an answer; if not, a collection cannot have this signer."""

    @property
    @abstractmethod
    def votes(self) -> VoteSettings:
        """The default settings of searches."""

    @abstractmethod
    def sign_each(
        self, things: Sequence[str], *, threads: SupportsIndex | None = None
    ) -> Iterator[SignedParts | DocumentError]:
        """Yield the parts of each item, or what is wrong with it."""

    @abstractmethod
    def sign_query(self, thing: Any, *, threads: SupportsIndex | None = None) -> SignedParts:
        """Return the parts of a query."""
