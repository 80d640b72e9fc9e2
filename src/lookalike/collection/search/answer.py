"""The way of a query: signatures that are near, then the documents that have them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.collection.answers import Answer, Match, explained
from lookalike.collection.query import Query
from lookalike.collection.search.bounds import spend
from lookalike.collection.search.fetch import DocumentFetcher
from lookalike.collection.search.kept import KeptIndex
from lookalike.collection.search.level import Level, MaskedDistances
from lookalike.collection.search.native import native_levels, native_within
from lookalike.collection.search.noted import note, noting
from lookalike.collection.search.sql import SqlSearch
from lookalike.collection.search.texts import add_texts
from lookalike.collection.stores.base import State, View
from lookalike.indexes import SliceIndex


def answers(
    query: Query, view: View, state: State, native: KeptIndex[Any, SliceIndex], sql: SqlSearch
) -> list[Answer]:
    """Return the answer for each signature of the query, at the version of the view."""
    # Texts are read when it is known whose are wanted.
    fetcher = DocumentFetcher(view, state, replace(query, text=False) if query.text else query)
    both = MaskedDistances(state.bits)
    levels = _near(query, view, state, native, sql)
    if isinstance(levels, list):
        if len(levels) > 1:
            fetcher.prefetch(levels)
        levels = zip(levels)
    found = [
        _answer(fetcher, signature, mask, *fetcher.nearest(near, None if mask is None else both))
        for signature, mask, near in zip(query.signatures, query.masks, levels, strict=True)
    ]
    if query.text:
        add_texts(view, state, found)
    return found


def _near(
    query: Query, view: View, state: State, native: KeptIndex[Any, SliceIndex], sql: SqlSearch
) -> list[Level] | Iterable[Iterable[Level]]:
    """Return what is within the radius of each signature; without a radius, ever more of it."""
    signatures, k, radius, threads = query.signatures, query.k, query.radius, query.threads
    asked = list(zip(signatures, query.masks, strict=True))
    counting = [mask for mask in query.masks if mask is not None]
    masks = np.stack(counting) if radius is not None and counting else None  # of all, or of none
    if query.way == "sql":
        if radius is None:
            return (sql.levels(view, state, signature, k, mask) for signature, mask in asked)
        return sql.within(view, state, signatures, radius, masks)
    index = native.at(view, state)
    if radius is None:
        return (native_levels(index, signature, k, threads, mask) for signature, mask in asked)
    return native_within(index, signatures, radius, threads, query.explain or noting(), masks)


def _answer(
    fetcher: DocumentFetcher,
    signature: NDArray[np.uint8],
    mask: NDArray[np.uint8] | None,
    matches: list[Match],
    found: Level,
) -> Answer:
    """Return the answer for one signature."""
    query, version = fetcher.query, fetcher.state.version
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
