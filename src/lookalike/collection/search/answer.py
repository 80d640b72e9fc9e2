"""The way of a query: signatures that are near, then the documents that have them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from lookalike.collection.answers import Answer, Match, explained
from lookalike.collection.query import Query
from lookalike.collection.search.fetch import DocumentFetcher
from lookalike.collection.search.level import Level
from lookalike.collection.search.native import NativeSearch, native_levels, native_within
from lookalike.collection.search.sql import SqlSearch
from lookalike.collection.stores.base import State, View


def answers(
    query: Query, view: View, state: State, native: NativeSearch, sql: SqlSearch
) -> list[Answer]:
    """Return the answer for each signature of the query, at the version of the view."""
    fetcher = DocumentFetcher(view, state, query)
    levels = _near(query, view, state, native, sql)
    if isinstance(levels, list):
        if len(levels) > 1:
            fetcher.prefetch(levels)
        levels = zip(levels)
    return [
        _answer(fetcher, signature, *fetcher.nearest(near))
        for signature, near in zip(query.signatures, levels, strict=True)
    ]


def _near(
    query: Query, view: View, state: State, native: NativeSearch, sql: SqlSearch
) -> list[Level] | Iterable[Iterable[Level]]:
    """Return what is within the radius of each signature; without a radius, ever more of it."""
    signatures, k, radius, threads = query.signatures, query.k, query.radius, query.threads
    if query.way == "sql":
        if radius is None:
            return (sql.levels(view, state, signature, k) for signature in signatures)
        return sql.within(view, state, signatures, radius)
    index = native.at(view, state)
    if radius is None:
        return (native_levels(index, signature, k, threads) for signature in signatures)
    return native_within(index, signatures, radius, threads, query.explain)


def _answer(
    fetcher: DocumentFetcher, signature: NDArray[np.uint8], matches: list[Match], found: Level
) -> Answer:
    """Return the answer for one signature."""
    query, version = fetcher.query, fetcher.state.version
    cut = query.limit is not None and len(matches) > query.limit
    if cut:
        matches = matches[: query.limit]
    if not query.explain:
        return Answer(matches, version=version, exact=not cut)
    told = _explained(fetcher, signature, matches, found)
    return Answer(told, version=version, exact=not cut, work=found.work)


def _explained(
    fetcher: DocumentFetcher, query: NDArray[np.uint8], matches: list[Match], found: Level
) -> list[Match]:
    """Add to each match the differing bits, those of each slice, and the slices that hit."""
    slicing = fetcher.state.slicing
    data = b"".join([fetcher.signatures[match.id] for match in matches])
    signatures = np.frombuffer(data, np.uint8).reshape(len(matches), len(query))
    thresholds = (found.work and found.work.thresholds) or (0,) * slicing.count
    apart = slicing.differing(query, signatures).tolist()
    bits = np.unpackbits(query ^ signatures, axis=1, bitorder="little")
    return [
        explained(
            match,
            tuple(np.flatnonzero(differs).tolist()),
            tuple(slices),
            tuple(p for p, most in enumerate(thresholds) if slices[p] <= most),
        )
        for match, differs, slices in zip(matches, bits, apart, strict=True)
    ]
