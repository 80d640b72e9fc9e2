"""Searching in the database itself: always live, nothing kept in memory.

The keys of slices are looked up in the table, near values too, as `probing` says; what comes back
is compared with the query, all at once. Where that costs more than reading every
signature, or too many signatures share the values that would have to be looked up, all are read.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lookalike.cancellation import stop_if_cancelled
from lookalike.collection.answers import Work
from lookalike.collection.documents import damaged
from lookalike.collection.search.level import Level, MaskedDistances
from lookalike.collection.search.probing import HotValues, plan_probes
from lookalike.collection.stores.base import State, View
from lookalike.errors import ResultTooLargeError
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
        self,
        view: View,
        state: State,
        queries: NDArray[np.uint8],
        radius: int,
        masks: NDArray[np.uint8] | None,
        limit: int,
    ) -> list[Level]:
        """Return, for each query, every signature within the radius; those with masks are scanned.

        The table has the keys of whole slices, of which masked queries know parts. More than
        `limit` signatures in all raise `ResultTooLargeError`.
        """
        if masks is not None:
            return _scan_within(view, state, queries, radius, masks, limit)
        found: list[Level | None] = []
        for query in queries:
            stop_if_cancelled()
            found.append(self._probe(view, state, query, radius))
            limit -= 0 if found[-1] is None else len(found[-1].numbers)
            if limit < 0:
                raise ResultTooLargeError("more signatures are within the radius than the limit")
        scanned = [position for position, one in enumerate(found) if one is None]
        if scanned:
            scans = _scan_within(view, state, queries[scanned], radius, None, limit)
            for position, one in zip(scanned, scans, strict=True):
                found[position] = one
        return [one for one in found if one is not None]

    def levels(
        self,
        view: View,
        state: State,
        query: NDArray[np.uint8],
        k: int,
        mask: NDArray[np.uint8] | None = None,
    ) -> Iterator[Level]:
        """Yield ever more signatures, each time everything up to a larger distance."""
        count, wanted = state.slicing.count, k
        for radius in range(count - 1, state.bits if mask is None else 0, count):
            found = self._probe(view, state, query, min(radius, state.bits))
            if found is None:
                break
            yield found
            wanted = max(k, len(found.numbers))  # a scan for fewer would bring nothing new
        wanted += _MORE
        while True:
            found, everything = _scan_nearest(view, state, query, wanted, mask)
            yield found
            if everything:
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


def _scan_within(
    view: View,
    state: State,
    queries: NDArray[np.uint8],
    radius: int,
    masks: NDArray[np.uint8] | None,
    limit: int,
) -> list[Level]:
    """Read every signature once for all queries."""
    both = MaskedDistances(state.bits)
    numbers = [[np.empty(0, np.int64)] for _ in queries]
    distances = [[np.empty(0, np.int64)] for _ in queries]
    for batch in view.all_signatures(state):
        index = ScanIndex(batch.signatures, batch.numbers)
        matches = index.within(queries, radius, limit=limit, masks=masks)
        limit -= len(matches.ids)
        far = matches.distances.astype(np.int64)
        if matches.unmasked is not None:
            far = both.joined(matches.distances, matches.unmasked)
        for query in range(len(matches)):
            part = slice(matches.offsets[query], matches.offsets[query + 1])
            numbers[query].append(matches.ids[part])
            distances[query].append(far[part])
    work = Work("scan", 0, state.signatures)
    bound = radius if masks is None else both.within(radius)
    return [
        Level.of(np.concatenate(ids), np.concatenate(far), bound, work)
        for ids, far in zip(numbers, distances, strict=True)
    ]


def _scan_nearest(
    view: View,
    state: State,
    query: NDArray[np.uint8],
    k: int,
    mask: NDArray[np.uint8] | None = None,
) -> tuple[Level, bool]:
    """Read every signature and keep the k nearest; say whether these are all there are."""
    both = MaskedDistances(state.bits)
    numbers = np.empty(0, np.int64)
    distances = np.empty(0, np.int64)
    for batch in view.all_signatures(state):
        index = ScanIndex(batch.signatures, batch.numbers)
        neighbors = index.search(query, min(k, len(batch)), masks=mask)
        far = neighbors.distances[0].astype(np.int64)
        if neighbors.unmasked is not None:
            far = both.joined(neighbors.distances[0], neighbors.unmasked[0])
        numbers = np.concatenate([numbers, neighbors.ids[0]])
        distances = np.concatenate([distances, far])
        order = np.argsort(distances, kind="stable")[:k]
        numbers, distances = numbers[order], distances[order]
    bound = state.bits if mask is None else both.within(state.bits)
    found = Level.of(numbers, distances, bound, Work("scan", 0, state.signatures))
    return (found, True) if len(found.numbers) < k else (found.without_last(), False)
