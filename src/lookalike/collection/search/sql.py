"""Searching in the database itself: always up to date, nothing kept in memory.

The keys of slices and of near values are looked up in the table, and the signatures found are
compared with the query. All signatures are read if that costs less, or if too many of them share
the values to look up.

Which values to look up, so that nothing within a radius can be missed, follows from the general
pigeonhole principle. Let slice p differ in up to t_p bits (-1: it is not used), and let the t_p + 1
add up to more than the radius. Then a signature within the radius meets the threshold of at least
one slice: if it exceeded all, it would differ in at least the sum of t_p + 1 bits. Which thresholds
are cheapest depends on how many signatures have the values to look up: on average count / 2**width,
and for hot values the number that was counted.
"""

from __future__ import annotations

import math
import threading
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lookalike.collection.answers import Level, Work, joined, joined_bound
from lookalike.collection.documents import damaged
from lookalike.collection.stores.base import View
from lookalike.collection.stores.schema import Numbers, Signatures, Slicing, flips
from lookalike.errors import ResultTooLargeError
from lookalike.indexes import ScanIndex
from lookalike.operation import stop_if_canceled

# Microseconds, roughly, in either database.
PROBE_COST = 3.0
CANDIDATE_COST = 2.0
SCAN_COST = 0.6
_LEAST_SCAN = 100.0
_MOST_VARIANTS = 100_000
_MOST_HOT = 10_000
_SPARE_CANDIDATES = 2_000
_MORE = 8
_HOT = 64


class FrequentValues:
    """Values that many signatures have; old counts make a search slower, never wrong."""

    def __init__(self) -> None:
        self._counts: defaultdict[int, dict[int, int]] = defaultdict(dict)
        self._lock = threading.Lock()
        self._uid = ""

    def belong_to(self, uid: str) -> None:
        """Forget the values of another collection."""
        with self._lock:
            if uid != self._uid:
                self._counts.clear()
                self._uid = uid

    def note(self, keys: dict[int, int]) -> int:
        """Remember how many signatures have each of these keys; return how many keys are new."""
        news = 0
        with self._lock:
            for key, count in keys.items():
                known, value = self._counts[key >> 32], key & 0xFFFFFFFF
                if len(known) >= _MOST_HOT:
                    known.clear()
                news += value not in known
                known[value] = count
        return news

    def around(self, position: int, value: int, most: int) -> list[int]:
        """Return the number of signatures with hot values that differ in 0, 1, ..., `most` bits."""
        sums = [0] * (most + 1)
        with self._lock:
            for hot, count in self._counts[position].items():
                apart = (hot ^ value).bit_count()
                if apart <= most:
                    sums[apart] += count
        return sums

    def __len__(self) -> int:
        return sum(map(len, self._counts.values()))


@dataclass(frozen=True)
class ProbePlan:
    """Thresholds and the keys they ask for."""

    thresholds: tuple[int, ...]
    cost: float  # microseconds expected
    candidates: float  # rows of the table of keys expected

    def keys(self, slicing: Slicing, values: list[int]) -> Numbers:
        """Return all keys to look up."""
        parts = [np.empty(0, np.int64)]
        for position, (most, width) in enumerate(zip(self.thresholds, slicing.widths, strict=True)):
            parts += [
                flips(width, ones) ^ values[position] | position << 32 for ones in range(most + 1)
            ]
        return np.concatenate(parts)


def plan_probes(
    slicing: Slicing, values: list[int], radius: int, count: int, hot: FrequentValues
) -> ProbePlan | None:
    """Return the cheapest thresholds that miss nothing; None if reading everything is cheaper."""
    hot_counts = []
    for position, width in enumerate(slicing.widths):
        most = len(_steps(width, radius, count)) - 1
        hot_counts.append(tuple(hot.around(position, values[position], most)))
    return _plan(slicing, radius, count, tuple(hot_counts))


@lru_cache(maxsize=256)
def _plan(
    slicing: Slicing, radius: int, count: int, hot_counts: tuple[tuple[int, ...], ...]
) -> ProbePlan | None:
    """Find the thresholds by dynamic programming over positions and steps so far.

    A threshold t takes t + 1 steps, and radius + 1 steps are enough.
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
    """Return (values, signatures of each) for 0, 1, ... differing bits, while a scan costs more."""
    average = count / 2**width
    affordable = max(count * SCAN_COST, _LEAST_SCAN) / (PROBE_COST + average * CANDIDATE_COST)
    steps = []
    for ones in range(min(width, radius) + 1):
        lists = math.comb(width, ones)
        if lists > min(affordable, _MOST_VARIANTS):
            break
        steps.append((lists, average))
    return steps


@dataclass(frozen=True)
class SqlLevels:
    """Searches through the table of keys."""

    view: View
    hot: FrequentValues

    def within(
        self, queries: Signatures, radius: int, masks: Signatures | None, limit: int
    ) -> list[Level]:
        """Return every signature within the radius of each query; raise if there are too many."""
        if masks is not None:  # the table has the keys of whole slices
            return self._scan_within(queries, radius, masks, limit)
        found: list[Level | None] = []
        for query in queries:
            stop_if_canceled()
            found.append(self._probe(query, radius))
            limit -= 0 if found[-1] is None else len(found[-1].numbers)
            if limit < 0:
                raise ResultTooLargeError("more signatures are within the radius than the limit")
        scanned = [position for position, one in enumerate(found) if one is None]
        if scanned:
            scans = self._scan_within(queries[scanned], radius, None, limit)
            for position, one in zip(scanned, scans, strict=True):
                found[position] = one
        return [one for one in found if one is not None]

    def levels(self, query: Signatures, k: int, mask: Signatures | None) -> Iterator[Level]:
        """Yield more and more signatures, each time everything up to a larger distance."""
        state = self.view.state
        count, wanted = state.slicing.count, k
        for radius in range(count - 1, state.bits if mask is None else 0, count):
            found = self._probe(query, min(radius, state.bits))
            if found is None:
                break
            yield found
            wanted = max(k, len(found.numbers))  # a scan for fewer would bring nothing new
        wanted += _MORE
        while True:
            found, everything = self._scan_nearest(query, wanted, mask)
            yield found
            if everything:
                return
            wanted *= 2 * _MORE

    def _probe(self, query: Signatures, radius: int) -> Level | None:
        """Look up slices; None if a scan is cheaper."""
        view, hot, state = self.view, self.hot, self.view.state
        hot.belong_to(state.uid)
        slicing = state.slicing
        values = slicing.values(query[None])[:, 0].tolist()
        # Plans are made for powers of two, so that one serves many queries.
        count = 1 << max(0, state.signatures - 1).bit_length()
        spare = _SPARE_CANDIDATES
        while True:
            plan = plan_probes(slicing, values, radius, count, hot)
            if plan is None or plan.candidates + spare > state.signatures + _SPARE_CANDIDATES:
                return None
            keys = plan.keys(slicing, values)
            most = int(2 * plan.candidates) + spare
            rows = view.candidates(keys, most)
            if len(rows) < most:
                break
            # More than expected: some values are hot. Count them, and plan again.
            counted = view.count_keys(keys, _MORE * most)
            average = count >> min(slicing.widths)
            if not hot.note({k: n for k, n in counted.items() if n > max(_HOT, _MORE * average)}):
                spare *= _MORE  # no new ones: there are just more rows than usual
        numbers, first, hits = np.unique(rows.numbers, return_index=True, return_counts=True)
        apart = slicing.differing(query, rows.signatures[first])
        if ((apart <= np.array(plan.thresholds)).sum(axis=1) != hits).any():
            # All slices that are near enough must lead to a signature, not just one of them.
            raise damaged("the table of keys does not have the slices of every signature")
        distances = apart.sum(axis=1, dtype=np.int32)
        near = distances <= radius
        work = Work("sql", len(keys), len(first), plan.thresholds, len(hot))
        return Level.of(numbers[near], distances[near], radius, work)

    def _scan_within(
        self, queries: Signatures, radius: int, masks: Signatures | None, limit: int
    ) -> list[Level]:
        state = self.view.state
        numbers = [[np.empty(0, np.int64)] for _ in queries]
        distances = [[np.empty(0, np.int64)] for _ in queries]
        for batch in self.view.all_signatures():
            index = ScanIndex(batch.signatures, batch.numbers)
            matches = index.within(queries, radius, limit=limit, masks=masks)
            limit -= len(matches.ids)
            far = joined(matches.distances, matches.unmasked, state.bits)
            for query in range(len(matches)):
                part = slice(matches.offsets[query], matches.offsets[query + 1])
                numbers[query].append(matches.ids[part])
                distances[query].append(far[part])
        work = Work("scan", 0, state.signatures)
        bound = joined_bound(radius, masks is not None, state.bits)
        return [
            Level.of(np.concatenate(ids), np.concatenate(far), bound, work)
            for ids, far in zip(numbers, distances, strict=True)
        ]

    def _scan_nearest(
        self, query: Signatures, k: int, mask: Signatures | None
    ) -> tuple[Level, bool]:
        """Read every signature and keep the k nearest; return whether these are all."""
        state = self.view.state
        numbers, distances = np.empty(0, np.int64), np.empty(0, np.int64)
        for batch in self.view.all_signatures():
            index = ScanIndex(batch.signatures, batch.numbers)
            neighbors = index.search(query, min(k, len(batch)), masks=mask)
            unmasked = None if neighbors.unmasked is None else neighbors.unmasked[0]
            far = joined(neighbors.distances[0], unmasked, state.bits)
            numbers = np.concatenate([numbers, neighbors.ids[0]])
            distances = np.concatenate([distances, far])
            order = np.argsort(distances, kind="stable")[:k]
            numbers, distances = numbers[order], distances[order]
        bound = joined_bound(state.bits, mask is not None, state.bits)
        found = Level.of(numbers, distances, bound, Work("scan", 0, state.signatures))
        return (found, True) if len(found.numbers) < k else (found.without_last(), False)
