"""Searching in memory: a `SliceIndex` over the signatures of the table."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lookalike.collection.answers import Work
from lookalike.collection.search.kept import KeptIndex
from lookalike.collection.search.level import Level, MaskedDistances
from lookalike.collection.stores.base import State, View
from lookalike.collection.stores.rows import Numbered
from lookalike.errors import FormatError
from lookalike.indexes import SliceIndex, load_index
from lookalike.indexes.slices.lists import MOST_SLICE_BITS, slice_width

_LEAST_COUNT = 1 << 16
_SPARE = 8


class NativeSearch(KeptIndex[SliceIndex, SliceIndex]):
    """The index of a collection whose documents have one signature each."""

    def _asked(self, index: SliceIndex) -> SliceIndex:
        # Changing an index replaces its parts, so a copy of the outside stays as it is.
        return copy.copy(index)

    def _loaded(self, path: Path) -> SliceIndex:
        index = load_index(path, verify=True)
        if not isinstance(index, SliceIndex):
            raise FormatError(f"{path} holds {index!r}; expected a SliceIndex")
        return index

    def _built(self, view: View, state: State) -> SliceIndex:
        found = view.whole_table(state)
        return SliceIndex(found.signatures, _width(len(found), state), found.numbers)

    def _add(self, index: SliceIndex, view: View, state: State, new: Numbered) -> None:
        index.add(new.signatures, new.numbers)

    def _remove(self, index: SliceIndex, numbers: NDArray[np.int64]) -> None:
        index.remove(numbers)

    def _outgrown(self, index: SliceIndex, state: State) -> bool:
        return _width(len(index), state) > index.slice_bits + 1


def _width(count: int, state: State) -> int:
    """Return how wide slices should be; a collection that has grown fourfold wants wider ones.

    Narrow signatures are searched by radius, for which two bits more than usual halve the time.
    """
    width = slice_width(max(count, _LEAST_COUNT), state.bits)
    return min(width + 2, MOST_SLICE_BITS, state.bits) if state.bits < 256 else width


def native_within(
    index: SliceIndex,
    queries: NDArray[np.uint8],
    radius: int,
    threads: int | None,
    explain: bool,
    masks: NDArray[np.uint8] | None,
    limit: int,
) -> list[Level]:
    """Return, for each query, every signature within the radius.

    More than `limit` in all raise `ResultTooLargeError`.
    """
    matches = index.within(
        queries, radius, limit=limit, masks=masks, explain=explain, threads=threads
    )
    offsets = matches.offsets.tolist()
    numbers, distances = matches.ids.tolist(), matches.distances.tolist()
    if matches.unmasked is not None:
        both = MaskedDistances(index.bits)
        distances = both.joined(matches.distances, matches.unmasked).tolist()
        radius = both.within(radius)
    done: list[Work | None] = [None] * len(queries)
    if matches.explanation:
        lists, verified = matches.explanation.lists, matches.explanation.candidates
        pairs = zip(lists.tolist(), verified.tolist(), strict=True)
        done = [Work("native", read, compared) for read, compared in pairs]
    return [
        Level(numbers[begin:end], distances[begin:end], radius, work)
        for begin, end, work in zip(offsets, offsets[1:], done, strict=False)
    ]


def native_levels(
    index: SliceIndex,
    query: NDArray[np.uint8],
    k: int,
    threads: int | None,
    mask: NDArray[np.uint8] | None = None,
) -> Iterator[Level]:
    """Yield ever more signatures, each time everything up to a larger distance."""
    all_and_more = len(index) + 1  # with which an answer shows that there is nothing else
    wanted = k + _SPARE
    both = MaskedDistances(index.bits)
    while True:
        wanted = min(wanted, all_and_more)
        neighbors = index.search(
            query, wanted, masks=mask, exact=True, explain=True, threads=threads
        )
        ids, distances = neighbors[0]
        reached, far = index.bits, distances.tolist()
        if neighbors.unmasked is not None:
            far = both.joined(distances, neighbors.unmasked[0][: len(ids)]).tolist()
            reached = both.within(index.bits)
        work = None
        if neighbors.explanation:
            lists, compared = neighbors.explanation.lists, neighbors.explanation.reranked
            work = Work("native", int(lists[0]), int(compared[0]))
        found = Level(ids.tolist(), far, reached, work)
        if len(ids) < wanted:
            yield found
            return
        yield found.without_last()
        wanted *= _SPARE
