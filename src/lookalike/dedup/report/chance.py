"""The S-curve: how likely is it that signatures propose a pair of some similarity?"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lookalike.dedup.propose import least_found, sample_size
from lookalike.dedup.settings import DedupSettings
from lookalike.indexes.bands import choose_bands

__all__ = ["chance_of_bits", "proposal_chance", "similarity_of_chance"]

Chance = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def proposal_chance(settings: DedupSettings, documents: int) -> tuple[Chance, str]:
    """Return the chance by similarity, among so many documents, and in words what it comes from."""
    if settings.measure == "containment":
        size = sample_size(documents)
        least = least_found(size, settings.threshold)
        return (lambda similarity: _at_most(1 - similarity, size, size - least)), (
            f"{size:,} features of each document are looked up in larger ones; one that has "
            f"{least:,} of them is proposed (shorter documents: all features, none is missed)"
        )
    if settings.by_bands:
        layout = choose_bands(settings.permutations, settings.threshold)
        values = "value" if layout.rows == 1 else "values"
        bands = "band" if layout.bands == 1 else "bands"
        return layout.chance, (
            f"{layout.bands} {bands} of {layout.rows} MinHash {values}; a pair that agrees in a "
            "whole band is proposed"
        )
    bits, radius = settings.bits or 1, settings.radius or 0
    return (lambda similarity: chance_of_bits(similarity, bits, radius)), (
        f"signatures of {bits:,} bits; a pair that differs in at most {radius:,} of them is "
        "proposed (each bit taken to differ with chance acos(cosine) / π, on its own)"
    )


def similarity_of_chance(chance: Chance, wanted: float) -> float:
    """Return the similarity from which on the chance is at least this; chances must not fall."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        if chance(np.array([middle]))[0] < wanted:
            low = middle
        else:
            high = middle
    return high


def chance_of_bits(similarity: NDArray[np.float64], bits: int, radius: int) -> NDArray[np.float64]:
    """Return the chance that signatures of documents of this cosine differ in at most so many bits.

    Each bit differs with chance acos(similarity) / π, as if independently of the others.
    """
    return _at_most(np.arccos(np.clip(similarity, -1.0, 1.0)) / np.pi, bits, radius)


def _at_most(differ: NDArray[np.float64], bits: int, radius: int) -> NDArray[np.float64]:
    """Return the chance of at most `radius` in `bits`, each of which differs with this chance."""
    if radius >= bits:
        return np.ones_like(differ)
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, bits + 1)))])
    some = np.arange(radius + 1)
    ways = logs[bits] - logs[some] - logs[bits - some]
    found = np.ones_like(differ)
    for place, chance in enumerate(differ.tolist()):
        if 0 < chance < 1:
            terms = ways + some * np.log(chance) + (bits - some) * np.log1p(-chance)
            found[place] = min(1.0, float(np.exp(terms).sum()))
        elif chance == 1:
            found[place] = 0.0
    return found
