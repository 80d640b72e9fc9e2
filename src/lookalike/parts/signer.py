"""Signers of parts: many signatures of one thing, each with its position in it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike.errors import DocumentError
from lookalike.signatures import Signer

__all__ = ["PartSigner", "SignedParts", "VoteSettings"]


class SignedParts(NamedTuple):
    """What `la.PartIndex.add` and `search` take."""

    signatures: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    """The position of each part."""


@dataclass(frozen=True)
class VoteSettings:
    """What suits the parts of a signer, where a search is not told otherwise."""

    radius: int
    """Bits in which parts may differ and still be taken for the same."""
    tolerance: int
    """How far differences of positions that count together may be apart."""
    least_votes: int
    """That an item needs; of a query of fewer parts, all of them."""
    least_score: float = 0.0
    """Of the parts that are asked, at one place of an item: fewer are chance."""

    def min_votes(self, parts: int) -> int:
        """Return how many votes a query of so many parts asks for, at least 1."""
        return max(1, min(self.least_votes, parts))


class PartSigner(Signer):
    """A signer of parts. Its signatures are many for one thing, which is found by their votes."""

    @property
    @abstractmethod
    def votes(self) -> VoteSettings:
        """What suits its parts."""

    @abstractmethod
    def sign_each(
        self, things: Sequence[str], *, threads: SupportsIndex | None = None
    ) -> Iterator[SignedParts | DocumentError]:
        """Yield the parts of each thing, or what is wrong with it."""

    @abstractmethod
    def sign_query(self, thing: Any, *, threads: SupportsIndex | None = None) -> SignedParts:
        """Return the parts of something that is looked for."""
