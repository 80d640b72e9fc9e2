"""Which bands, and how many equal values, make a promise of recall."""

from __future__ import annotations

import math

import numpy as np

from lookalike.errors import ArgumentError
from lookalike.indexes.bands import BandLayout, choose_bands

__all__ = ["bands_for", "least_equal"]


def bands_for(permutations: int, threshold: float, recall: float) -> BandLayout:
    """Return bands that miss a pair at the threshold in half of the cases that may be missed."""
    wanted = _each(recall)
    layout = choose_bands(permutations, threshold, wanted)
    reached = float(layout.chance(threshold))
    if reached < wanted:
        raise ArgumentError(
            f"with permutations={permutations}, pairs of similarity {threshold} share a band with "
            f"a chance of {reached:.3f}, and recall={recall} takes {wanted:.3f}; use more "
            "permutations, or a larger threshold"
        )
    return layout


def least_equal(permutations: int, threshold: float, recall: float) -> int:
    """Return how many values two rows at the threshold have in common, for the other half.

    That many are equal, or more, in all but the share of cases that may be missed: values agree
    independently, each with a chance that is the similarity, so their number is binomial.
    """
    if threshold == 1:
        return permutations
    counts = np.arange(permutations + 1)
    below = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, permutations + 1)))])
    ways = below[-1] - below - below[::-1]
    logs = ways + counts * math.log(threshold) + (permutations - counts) * math.log1p(-threshold)
    missed = np.cumsum(np.exp(logs))  # the chance of so many equal values or fewer
    return int(np.searchsorted(missed, 1 - _each(recall), side="right"))


def _each(recall: float) -> float:
    return 1 - (1 - recall) / 2
