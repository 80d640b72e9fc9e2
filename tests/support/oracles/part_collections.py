"""What a collection of parts must answer: a fresh `PartIndex` over the same documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lookalike as la

__all__ = ["Entry", "Kept", "expected", "told"]

Told = tuple[str, int, int, float, int, tuple[tuple[int, int, int], ...], tuple[int, int, int]]
"""Id, offset, votes, score, sum of distances, matched parts, and the stretch that matches."""


@dataclass(frozen=True)
class Entry:
    """A document as it was last written."""

    rows: NDArray[np.uint8]
    offsets: tuple[int, ...]
    metadata: dict[str, Any]

    @property
    def contents(self) -> tuple[bytes, tuple[int, ...]]:
        """What two documents have that are one item."""
        return self.rows.tobytes(), self.offsets


Kept = Mapping[str, Entry]


def expected(
    known: Kept, rows: NDArray[np.uint8], offsets: list[int] | None, bits: int, **asked: Any
) -> list[Told]:
    """Return what an index over these documents, by id, answers."""
    index = la.PartIndex(bits)
    index.add_many(
        sorted(known),
        [known[id].rows for id in sorted(known)],
        [known[id].offsets for id in sorted(known)],
    )
    positions = range(len(rows)) if offsets is None else offsets
    found = []
    for one in index.search(rows, offsets, **asked):
        voting = sorted(positions[part] for part, _, _ in one.parts)
        stretch = voting[0] + one.offset, voting[0], voting[-1] - voting[0] + 1
        distance = int(one.distances.sum())
        parts = tuple(one.parts)
        found.append((str(one.item), one.offset, one.votes, one.score, distance, parts, stretch))
    return found


def told(answer: la.results.Answer) -> list[Told]:
    """Return what a collection answered, asked to explain."""
    found = []
    for match in answer:
        assert match.offset is not None
        assert match.votes is not None
        assert match.score is not None
        assert match.parts is not None
        assert match.start is not None
        assert match.query_start is not None
        assert match.length is not None
        stretch = match.start, match.query_start, match.length
        found.append(
            (match.id, match.offset, match.votes, match.score, match.distance, match.parts, stretch)
        )
    return found
