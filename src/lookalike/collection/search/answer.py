"""The way of a query: signatures that are near, then the documents that have them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from lookalike.cancellation import stop_if_cancelled
from lookalike.collection.answers import Answer, Match, explained
from lookalike.collection.query import Query
from lookalike.collection.search.bounds import (
    check_matches,
    held,
    hold,
    limits_matches,
    release,
    spend,
)
from lookalike.collection.search.fetch import DocumentFetcher
from lookalike.collection.search.kept import KeptIndex
from lookalike.collection.search.level import Level, MaskedDistances
from lookalike.collection.search.native import native_levels, native_within
from lookalike.collection.search.noted import note, noting
from lookalike.collection.search.sql import SqlSearch
from lookalike.collection.search.texts import add_texts
from lookalike.collection.stores.base import State, View
from lookalike.errors import ResultTooLargeError
from lookalike.indexes import SliceIndex

_FOUND_AT_ONCE = 1 << 18
"""Signatures within the radius that are in memory at once, for all queries together."""
_FOUND = 120
"""Bytes that each of them takes, at most."""
_TOGETHER = 1 << 12
"""Documents that become answers together."""
_MATCH = 350
"""Bytes that a match takes beside its document."""
_BIT = 40
"""Bytes that a differing bit takes in an explanation."""

Taken = TypeVar("Taken")
Near: TypeAlias = tuple[Sequence[int], list[Level] | list[Iterator[Level]]]
"""Positions of queries, and what is near each; ever more of it, where these are iterators."""


def answers(
    query: Query,
    view: View,
    state: State,
    native: KeptIndex[Any, SliceIndex],
    sql: SqlSearch,
    take: Callable[[int, Answer], Taken],
) -> list[Taken]:
    """Return the answer for each signature of the query, at the version of the view.

    More exactly, what `take` makes of its position and of it, in order: so nothing else of an
    answer stays in memory.
    """
    # Texts are read when it is known whose are wanted.
    fetcher = DocumentFetcher(view, state, replace(query, text=False) if query.text else query)
    both = MaskedDistances(state.bits)
    before, size, count = held(), 0, 0
    results: list[Taken] = []
    for positions, levels in _near(query, view, state, native, sql):
        found_bytes = _FOUND * sum(len(one.numbers) for one in levels if isinstance(one, Level))
        hold(found_bytes)
        for group in _groups(levels, query.k):
            known = [levels[place] for place in group]
            if len(known) > 1:
                fetcher.prefetch(one for one in known if isinstance(one, Level))
            found = []
            for place, near in zip(group, known, strict=True):
                stop_if_cancelled()
                mask = query.masks[positions[place]]
                matches, level = fetcher.nearest(
                    [near] if isinstance(near, Level) else near, None if mask is None else both
                )
                signature = query.signatures[positions[place]]
                found.append(_answer(fetcher, signature, mask, matches, level))
                count += len(found[-1])
                check_matches(count)
            if query.text:
                add_texts(view, state, found)
            for place, answer in zip(group, found, strict=True):
                taken = take(positions[place], answer)
                results.append(taken)
                size += len(taken) if isinstance(taken, bytes) else _MATCH * len(answer)
            del found
            fetcher.trim()
            release(held() - before - found_bytes - fetcher.held - size)
        release(found_bytes)
    return results


def _groups(levels: list[Level] | list[Iterator[Level]], k: int) -> Iterator[list[int]]:
    """Yield places of queries that are answered together: as many as have few documents."""
    group: list[int] = []
    size = 0
    for place, one in enumerate(levels):
        many = min(k, len(one.numbers)) if isinstance(one, Level) else k
        if group and size + many > _TOGETHER:
            yield group
            group, size = [], 0
        group.append(place)
        size += many
    if group:
        yield group


def _near(
    query: Query, view: View, state: State, native: KeptIndex[Any, SliceIndex], sql: SqlSearch
) -> Iterator[Near]:
    """Yield what is within the radius of the signatures, of as many as can be held at once.

    Without a radius, and where there is too much within it, ever more of what is nearest.
    """
    signatures, k, radius, threads = query.signatures, query.k, query.radius, query.threads
    counting = [mask for mask in query.masks if mask is not None]
    masks = np.stack(counting) if radius is not None and counting else None  # of all, or of none
    index = None if query.way == "sql" else native.at(view, state)
    counted = False

    def levels(position: int) -> Iterator[Level]:
        signature, mask = signatures[position], query.masks[position]
        if index is None:
            return sql.levels(view, state, signature, k, mask)
        return native_levels(index, signature, k, threads, mask)

    def within(some: slice, near: int) -> list[Level]:
        asked, masked = signatures[some], None if masks is None else masks[some]
        if index is None:
            return sql.within(view, state, asked, near, masked, _FOUND_AT_ONCE)
        explain = query.explain or noting()
        return native_within(index, asked, near, threads, explain, masked, _FOUND_AT_ONCE)

    def parts(begin: int, end: int, near: int) -> Iterator[Near]:
        try:
            found = within(slice(begin, end), near)
        except ResultTooLargeError:
            if end - begin > 1:
                if end - begin == len(signatures):
                    count_first(near)
                middle = (begin + end) // 2
                yield from parts(begin, middle, near)
                yield from parts(middle, end, near)
                return
        else:
            yield range(begin, end), found
            return
        farthest = near if masks is None else MaskedDistances(state.bits).within(near)
        yield [begin], [_cut(levels(begin), farthest)]

    def count_first(near: int) -> None:
        """Refuse what surely has too many matches, before any of them becomes a document."""
        nonlocal counted
        if counted or query.predicate is not None or not limits_matches():
            return
        counted, least = True, 0
        most = query.k if query.limit is None else query.limit
        for _, some in parts(0, len(signatures), near):
            for one in some:
                found = len(one.numbers) if isinstance(one, Level) else _FOUND_AT_ONCE
                least += max(0, min(most, found) - len(query.exclude))
            check_matches(least)

    every = range(len(signatures))
    if radius is None:
        yield every, [levels(position) for position in every]
    elif len(signatures):
        yield from parts(0, len(signatures), radius)


def _cut(levels: Iterator[Level], radius: int) -> Iterator[Level]:
    """Yield levels up to a radius."""
    for level in levels:
        if level.bound >= radius:
            end = bisect_right(level.distances, radius)
            yield Level(level.numbers[:end], level.distances[:end], radius, level.work)
            return
        yield level


def _answer(
    fetcher: DocumentFetcher,
    signature: NDArray[np.uint8],
    mask: NDArray[np.uint8] | None,
    matches: list[Match],
    found: Level,
) -> Answer:
    """Return the answer for one signature."""
    query, version = fetcher.query, fetcher.state.version
    hold(_MATCH * len(matches))
    note(found.work)
    cut = query.limit is not None and len(matches) > query.limit
    if cut:
        matches = matches[: query.limit]
    if not query.explain:
        return Answer(matches, version=version, exact=not cut, masked=mask is not None)
    told = _explained(fetcher, signature, mask, matches, found)
    masked = mask is not None
    return Answer(told, version=version, exact=not cut, work=found.work, masked=masked)


def _explained(
    fetcher: DocumentFetcher,
    query: NDArray[np.uint8],
    mask: NDArray[np.uint8] | None,
    matches: list[Match],
    found: Level,
) -> list[Match]:
    """Add to each match the differing bits, those of each slice, and the slices that hit.

    Bits that do not count do not differ, and slices of such bits alone do not hit.
    """
    slicing = fetcher.state.slicing
    spend(len(matches) * 8 * len(query))
    apart_in_all = sum(match.distance for match in matches)
    hold(len(matches) * 8 * len(query) + _BIT * (apart_in_all + len(matches) * slicing.count))
    data = b"".join([fetcher.signatures[match.id] for match in matches])
    signatures = np.frombuffer(data, np.uint8).reshape(len(matches), len(query))
    counting = [True] * slicing.count
    if mask is not None:
        query, signatures = query & mask, signatures & mask
        counting = (slicing.differing(np.zeros_like(mask), mask[None])[0] > 0).tolist()
    thresholds = (found.work and found.work.thresholds) or (0,) * slicing.count
    apart = slicing.differing(query, signatures).tolist()
    bits = np.unpackbits(query ^ signatures, axis=1, bitorder="little")
    return [
        explained(
            match,
            tuple(np.flatnonzero(differs).tolist()),
            tuple(slices),
            tuple(p for p, most in enumerate(thresholds) if slices[p] <= most and counting[p]),
        )
        for match, differs, slices in zip(matches, bits, apart, strict=True)
    ]
