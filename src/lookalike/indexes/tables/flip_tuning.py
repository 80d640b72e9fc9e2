"""How many flips reach a recall: what is expected, and what `FlipIndex.tune_flips` finds out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.indexes.results import Matches
from lookalike.indexes.tables.flip_sets import all_sets

__all__ = ["ENOUGH", "MOST_FLIPS", "SAMPLE", "FlipTuning", "flips_expected"]

MOST_FLIPS = 2**63 - 1
SAMPLE = 5000
"""Queries that are tried with all flips unless told."""
ENOUGH = 50
"""Matches that a sample must have to be believed unasked."""

_FLIP_GROWTH = (
    (0.0, 0.0),
    (0.5, 0.8),
    (0.8, 1.8),
    (0.9, 2.5),
    (0.95, 3.1),
    (0.99, 4.0),
    (0.999, 5.2),
)
"""(recall, a): that share of matches is found with exp(a · radius · header bits / bits) flips.

Fitted to near-duplicates among 67,000 package descriptions and 120,000 abstracts, radius 1 to 6,
headers of 8 to 26 bits: off by less than half of what it says for a radius from 2 up.
"""


def flips_expected(bits: int, radius: int, header_bits: int, recall: float) -> int:
    """Return how many flips find a share of near-duplicates, as measured on text (k(t), (20))."""
    shares, growths = zip(*_FLIP_GROWTH, strict=True)
    misses = [-math.log1p(-share) for share in shares]
    growth = float(np.interp(-math.log1p(-min(recall, shares[-1])), misses, growths))
    flips = math.exp(growth * radius * header_bits / bits)
    return min(max(1, round(flips)), max(1, all_sets(header_bits, radius)))


@dataclass(frozen=True)
class FlipTuning:
    """How many flips it takes to find a share of what there is, measured on a sample."""

    radius: int
    first: bool
    """Whether a query has to find one match, and not all."""
    target: float
    """The share asked for."""
    flips: int
    """The least number that reaches it in the sample by two standard errors, so as to reach it for
    other queries too.
    """
    recall: float
    """The share that they find in the sample."""
    matches: int
    """What there is to be found: matches, or queries with a match."""
    queries: int
    """How many queries the sample had."""

    @property
    def key(self) -> tuple[int, bool, float]:
        """What was asked for."""
        return self.radius, self.first, self.target

    @classmethod
    def of(cls, attempts: Matches, radius: int, first: bool, target: float) -> FlipTuning:
        """Return what follows from which attempt finds each match; see `FlipIndex.attempts`."""
        needed = _least_of_each(attempts) if first else np.sort(attempts.ids)
        if not len(needed):
            return cls(radius, first, target, 0, 0.0, 0, len(attempts))
        # Matches of one query are found together, so that a query counts, and not each of them.
        asked = int((np.diff(attempts.offsets) > 0).sum())
        margin = 2 * math.sqrt(target * (1 - target) / asked)
        flips = int(needed[math.ceil(min(1.0, target + margin) * len(needed)) - 1])
        found = float(np.mean(needed <= flips))
        return cls(radius, first, target, flips, found, len(needed), len(attempts))

    @classmethod
    def restored(cls, saved: dict[str, Any]) -> FlipTuning:
        """Return what was saved as plain values; raises KeyError, TypeError or ValueError."""
        flips = int(saved["flips"])
        if not 0 <= flips <= MOST_FLIPS:
            raise ValueError(f"{flips} flips")
        return cls(
            int(saved["radius"]),
            bool(saved["first"]),
            float(saved["target"]),
            flips,
            float(saved["recall"]),
            int(saved["matches"]),
            int(saved["queries"]),
        )


def _least_of_each(attempts: Matches) -> NDArray[np.int64]:
    """Return, sorted, the first attempt of each query that finds anything."""
    begins = attempts.offsets[:-1][np.diff(attempts.offsets) > 0]
    return np.sort(np.minimum.reduceat(attempts.ids, begins)) if len(begins) else attempts.ids
