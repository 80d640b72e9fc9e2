"""Searching in the database itself: always live, nothing kept in memory.

The keys of slices are looked up in the table, near values too, as `probing` says; what comes back
is compared with the query, all at once. Where that costs more than reading every
signature, or too many signatures share the values that would have to be looked up, all are read.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lookalike.collection.answers import Work
from lookalike.collection.documents import damaged
from lookalike.collection.search.level import Level
from lookalike.collection.search.probing import HotValues, plan_probes
from lookalike.collection.stores.base import State, View
from lookalike.indexes import ScanIndex

_SPARE_CANDIDATES = 2_000
_MORE = 8
_HOT = 64


class SqlSearch:
    """Complete searches through the table of keys."""

    def __init__(self) -> None:
        self._hot = HotValues()
        self._uid = ""

    def within(
        self, view: View, state: State, queries: NDArray[np.uint8], radius: int
    ) -> list[Level]:
        """Return, for each query, every signature within the radius."""
        found = [self._probe(view, state, query, radius) for query in queries]
        scanned = [position for position, one in enumerate(found) if one is None]
        if scanned:
            scans = _scan_within(view, state, queries[scanned], radius)
            for position, one in zip(scanned, scans, strict=True):
                found[position] = one
        return [one for one in found if one is not None]

    def levels(self, view: View, state: State, query: NDArray[np.uint8], k: int) -> Iterator[Level]:
        """Yield ever more signatures, each time everything up to a larger distance."""
        count, wanted = state.slicing.count, k
        for radius in range(count - 1, state.bits, count):
            found = self._probe(view, state, query, min(radius, state.bits))
            if found is None:
                break
            yield found
            wanted = max(k, len(found.numbers))  # a scan for fewer would bring nothing new
        wanted += _MORE
        while True:
            found = _scan_nearest(view, state, query, wanted)
            yield found
            if found.bound >= state.bits:
                return
            wanted *= 2 * _MORE

    def _probe(
        self, view: View, state: State, query: NDArray[np.uint8], radius: int
    ) -> Level | None:
        """Look up slices; None if a scan is cheaper."""
        if state.uid != self._uid:
            self._hot, self._uid = HotValues(), state.uid
        hot = self._hot
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
            rows = view.candidates(state, keys, most)
            if len(rows) < most:
                break
            # More than expected: some values are hot. Count them, and share out again.
            counted = view.count_keys(state, keys, _MORE * most)
            average = count >> min(slicing.widths)
            if not hot.note({k: n for k, n in counted.items() if n > max(_HOT, _MORE * average)}):
                spare *= _MORE  # nothing new: there is just more than usual
        numbers, first, hits = np.unique(rows.numbers, return_index=True, return_counts=True)
        apart = slicing.differing(query, rows.signatures[first])
        if ((apart <= np.array(plan.thresholds)).sum(axis=1) != hits).any():
            # What one slice leads to, others must lead to as well, if they are near enough.
            raise damaged("the table of keys does not have the slices of every signature")
        distances = apart.sum(axis=1, dtype=np.int32)
        near = distances <= radius
        work = Work("sql", len(keys), len(first), plan.thresholds, len(hot))
        return Level.of(numbers[near], distances[near], radius, work)


def _scan_within(view: View, state: State, queries: NDArray[np.uint8], radius: int) -> list[Level]:
    """Read every signature once for all queries."""
    numbers = [[np.empty(0, np.int64)] for _ in queries]
    distances = [[np.empty(0, np.int32)] for _ in queries]
    for batch in view.all_signatures(state):
        matches = ScanIndex(batch.signatures, batch.numbers).within(queries, radius)
        for query, (ids, far) in enumerate(matches):
            numbers[query].append(ids)
            distances[query].append(far)
    work = Work("scan", 0, state.signatures)
    return [
        Level.of(np.concatenate(ids), np.concatenate(far), radius, work)
        for ids, far in zip(numbers, distances, strict=True)
    ]


def _scan_nearest(view: View, state: State, query: NDArray[np.uint8], k: int) -> Level:
    """Read every signature and keep the k nearest."""
    numbers = np.empty(0, np.int64)
    distances = np.empty(0, np.int32)
    for batch in view.all_signatures(state):
        ids, far = ScanIndex(batch.signatures, batch.numbers).search(query, min(k, len(batch)))[0]
        numbers = np.concatenate([numbers, ids])
        distances = np.concatenate([distances, far])
        order = np.argsort(distances, kind="stable")[:k]
        numbers, distances = numbers[order], distances[order]
    found = Level.of(numbers, distances, state.bits, Work("scan", 0, state.signatures))
    return found if len(found.numbers) < k else found.without_last()
