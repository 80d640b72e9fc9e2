"""Which slice values to look up, so that nothing within a radius can be missed.

The general pigeonhole principle: where slice p may differ in up to t_p bits (-1: it is not looked
at) and the t_p + 1 add up to more than the radius, a signature within the radius meets the
threshold of at least one slice: if it exceeded all, it would differ in at least the sum of t_p + 1
bits. Which thresholds are cheapest depends on how many signatures have the values that would be
looked up: on average count / 2**width, and for hot values as many as have been counted.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lookalike.collection.slicing import Slicing, flips

# Microseconds, roughly, in either database.
PROBE_COST = 3.0
CANDIDATE_COST = 2.0
SCAN_COST = 0.6
_LEAST_SCAN = 100.0
_MOST_VARIANTS = 100_000
_MOST_HOT = 10_000


class HotValues:
    """Values that many signatures have, as far as searches have met and counted them.

    Old counts make a search slower, never wrong, so nothing is done to keep them exact.
    """

    def __init__(self) -> None:
        self._counts: list[dict[int, int]] = []
        self._lock = threading.Lock()

    def note(self, keys: dict[int, int]) -> int:
        """Remember how many signatures have each of these keys; return how many are news."""
        news = 0
        with self._lock:
            for key, count in keys.items():
                position, value = key >> 32, key & 0xFFFFFFFF
                while len(self._counts) <= position:
                    self._counts.append({})
                known = self._counts[position]
                if len(known) >= _MOST_HOT:
                    known.clear()
                news += value not in known
                known[value] = count
        return news

    def around(self, position: int, value: int, most: int) -> list[int]:
        """Return how many signatures have hot values that differ from `value` in 0 to `most` bits.

        Each entry counts the signatures at exactly that many differing bits.
        """
        sums = [0] * (most + 1)
        with self._lock:
            for hot, count in self._counts[position].items() if self._counts[position:] else ():
                apart = (hot ^ value).bit_count()
                if apart <= most:
                    sums[apart] += count
        return sums

    def __len__(self) -> int:
        return sum(map(len, self._counts))


@dataclass(frozen=True)
class ProbePlan:
    """Thresholds and the keys they ask for."""

    thresholds: tuple[int, ...]
    cost: float
    """Microseconds expected."""
    candidates: float
    """Rows of the table of keys expected."""

    def keys(self, slicing: Slicing, values: list[int]) -> NDArray[np.int64]:
        """Return all keys to look up."""
        parts = [np.empty(0, np.int64)]
        for position, (most, width) in enumerate(zip(self.thresholds, slicing.widths, strict=True)):
            parts += [
                flips(width, ones) ^ values[position] | position << 32 for ones in range(most + 1)
            ]
        return np.concatenate(parts)


def plan_probes(
    slicing: Slicing, values: list[int], radius: int, count: int, hot: HotValues
) -> ProbePlan | None:
    """Return the cheapest thresholds that are complete for the radius.

    None if there are none that cost less than reading all `count` signatures.
    """
    hot_counts = []
    for position, width in enumerate(slicing.widths):
        most = len(_steps(width, radius, count)) - 1
        hot_counts.append(tuple(hot.around(position, values[position], most)))
    return _plan(slicing, radius, count, tuple(hot_counts))


@lru_cache(maxsize=256)
def _plan(
    slicing: Slicing, radius: int, count: int, hot_counts: tuple[tuple[int, ...], ...]
) -> ProbePlan | None:
    """Find the thresholds by dynamic programming over positions and steps taken so far.

    A threshold t takes t + 1 steps, and radius + 1 of them are enough.
    """
    enough = radius + 1
    best = {0: ProbePlan((), 0.0, 0.0)}
    for width, hot in zip(slicing.widths, hot_counts, strict=True):
        longer: dict[int, ProbePlan] = {}
        for taken, plan in best.items():
            cost, candidates = plan.cost, plan.candidates
            _offer(longer, taken, ProbePlan((*plan.thresholds, -1), cost, candidates))
            for most, (lists, average) in enumerate(_steps(width, radius, count)):
                candidates += lists * average + hot[most]
                cost += lists * (PROBE_COST + average * CANDIDATE_COST)
                cost += hot[most] * CANDIDATE_COST
                steps = min(enough, taken + most + 1)
                _offer(longer, steps, ProbePlan((*plan.thresholds, most), cost, candidates))
        best = longer
    cheapest = best.get(enough)
    affordable = max(count * SCAN_COST, _LEAST_SCAN)
    return cheapest if cheapest and cheapest.cost <= affordable else None


def _offer(plans: dict[int, ProbePlan], steps: int, plan: ProbePlan) -> None:
    if steps not in plans or plan.cost < plans[steps].cost:
        plans[steps] = plan


def _steps(width: int, radius: int, count: int) -> list[tuple[int, float]]:
    """Return, for 0, 1, ... differing bits, how many values there are and how many signatures each
    has on average; as far as looking them up costs less than a scan.
    """
    average = count / 2**width
    affordable = max(count * SCAN_COST, _LEAST_SCAN) / (PROBE_COST + average * CANDIDATE_COST)
    steps = []
    for ones in range(min(width, radius) + 1):
        lists = math.comb(width, ones)
        if lists > min(affordable, _MOST_VARIANTS):
            break
        steps.append((lists, average))
    return steps
