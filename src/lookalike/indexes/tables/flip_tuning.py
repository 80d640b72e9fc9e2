"""How many flips reach a recall: what `FlipIndex.tune_flips` finds out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.indexes.results import Matches

__all__ = ["MOST_FLIPS", "FlipTuning"]

MOST_FLIPS = 2**63 - 1


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
        margin = 2 * math.sqrt(target * (1 - target) / len(needed))
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
