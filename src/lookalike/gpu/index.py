"""GpuIndex: exhaustive search on a GPU, with the results of `ScanIndex`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike import _native
from lookalike.checks import flag, whole_number
from lookalike.errors import ArgumentError
from lookalike.gpu.card import Layout, card
from lookalike.gpu.finding import (
    MOST_QUERIES,
    MOST_SIGNATURES,
    Found,
    Nearest,
    Part,
    Queries,
    allowed_bits,
    near_pairs,
    queries_at_once,
    within,
)
from lookalike.gpu.tiles import Source, Tiles, at_or_none, refuse_too_many
from lookalike.indexes.all_pairs import PairColumns, too_many_pairs
from lookalike.indexes.base import ExhaustiveIndex, Masks, RowsIndex
from lookalike.indexes.filters import Among, Chosen
from lookalike.indexes.results import Matches, Neighbors, merged_matches
from lookalike.indexes.rows import Rows, Signatures
from lookalike.progress import Progress, listener, shows_progress
from lookalike.storage.container import Container

_COPIED = 32  # if at most one signature in 32 is chosen, copies of them are searched


@dataclass(frozen=True)
class _Scope:
    """What is searched, from the start for every batch of queries."""

    parts: Callable[[], Iterable[Part]]
    places: NDArray[np.int64] | None = None
    """Positions of the signatures, if copies of some are searched."""

    def positions(self, found: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return positions among all signatures; -1 is kept."""
        return found if self.places is None else at_or_none(self.places, found)


class GpuIndex(RowsIndex, ExhaustiveIndex):
    """Compare every query with every signature on a CUDA GPU; always exact.

    Returns the same results as `ScanIndex`. Signatures have 8 to 4096 bits; widths other than 64,
    128 and multiples of 256 take the memory of the next of these. `save` writes the file of a
    `ScanIndex`. For several GPUs, use a `ShardedIndex` of one `GpuIndex` each. `masks` are not
    supported, `threads` has no effect, and `pairs` is exact for any `recall`.

    Args:
        signatures: NumPy array, memory-mapped array, CuPy array, or any object with DLPack.
        ids: Ids of the signatures, distinct and at least 0 (default: their positions).
        device: Number of the GPU (default: 0).
        stream: Keep the signatures in main memory and copy them to the GPU for each search, for
            collections larger than GPU memory.
        progress: Called with "copy" and the share of signatures copied; True shows a bar.

    Examples:
        >>> index = la.GpuIndex(signatures)  # doctest: +SKIP
        >>> index.search(signatures[:1000], k=10)  # doctest: +SKIP
        Neighbors(queries=1000, k=10, exact=True)
    """

    kind: ClassVar[str] = "scan"  # of its files
    _rows: Source  # type: ignore[assignment]

    @shows_progress
    def __init__(
        self,
        signatures: Any,
        ids: ArrayLike | None = None,
        *,
        device: SupportsIndex = 0,
        stream: bool = False,
        progress: Progress | bool | None = None,
    ) -> None:
        self._card = card(whole_number("device", device, at_least=0))
        self._streaming = flag("stream", stream)
        source = Source.of(self._card, signatures, ids)
        self._place(source, listener(progress))

    def _place(self, source: Source, tell: Progress) -> None:
        """Copy the signatures to the GPU, unless they are streamed."""
        self._rows = source
        self._layout = Layout.of(source.bits)
        self._asking = threading.Lock()  # a card does one thing at a time; memory is for one, too
        if len(source) > MOST_SIGNATURES:
            raise ArgumentError(
                f"there are {len(source):,} signatures; a GPU takes up to {MOST_SIGNATURES:,}. "
                "Divide them over several GPUs"
            )
        self._tiles: Tiles | None = None
        if not self._streaming:
            with self._card:
                refuse_too_many(self._card, self._layout, len(source))
                self._tiles = source.tiles(self._layout, tell)

    def _living(self) -> tuple[Signatures, NDArray[np.int64]]:
        with self._card:
            return self._rows.signatures(), self._rows.all_ids()

    def _nearest(
        self, rows: Signatures, k: int, among: Among, masks: Masks, threads: int
    ) -> Neighbors:
        ids, far = np.full((len(rows), k), -1, np.int64), np.full((len(rows), k), -1, np.int32)
        with self._asking, self._card:
            scope = self._scope(among)
            step = queries_at_once(len(self), k)
            for begin in range(0, len(rows), step):
                some = Queries.of(self._card, self._layout, rows[begin : begin + step])
                found, far[begin : begin + step] = _nearest(scope, some, k)
                ids[begin : begin + step] = self._rows.ids_at(found)
        return Neighbors(ids, far, exact=True)

    def _within(
        self, rows: Signatures, radius: int, limit: int, among: Among, masks: Masks, threads: int
    ) -> Matches:
        parts: list[Found] = []
        with self._asking, self._card:
            scope = self._scope(among)
            for begin in range(0, len(rows), MOST_QUERIES):
                some = Queries.of(self._card, self._layout, rows[begin : begin + MOST_QUERIES])
                left = limit - sum(len(part[0]) for part in parts)
                for query, found, far in within(scope.parts(), some, radius, left):
                    own = scope.positions(found)
                    parts.append((query + begin, self._rows.ids_at(own), far))
        return merged_matches(len(rows), parts, exact=True)

    def _pairing(self, radius: int) -> dict[str, Any]:
        return {"compare": partial(self._compare, radius)}  # exact, whatever the recall

    def _compare(self, radius: int, skipped: NDArray[np.uint8] | None, limit: int) -> PairColumns:
        """Return pairs of rows that are not skipped."""
        order = self._rows.order
        wanted = None
        if skipped is not None:
            wanted = skipped == 0 if order is None else skipped[order] == 0
        columns = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int32))]
        room = limit
        with self._asking, self._card:
            try:
                for strips in self._whole():
                    for others in self._whole(strips):
                        for found in near_pairs(strips, others, radius, room, wanted):
                            room -= len(found[0])
                            columns.append(found)
            except _native.TooManyResults:
                raise too_many_pairs(limit, radius, len(self)) from None
        left, right, far = (np.concatenate(parts) for parts in zip(*columns, strict=True))
        return (left, right, far) if order is None else (order[left], order[right], far)

    def _whole(self, first: Tiles | None = None) -> Iterator[Tiles]:
        """Yield all parts, or one part and those after it."""
        if self._tiles is not None:
            yield self._tiles
            return
        if first is not None:
            yield first
        yield from self._rows.passing(
            self._layout, 0 if first is None else first.base + first.count
        )

    def _scope(self, among: Among) -> _Scope:
        """Return what a search reads; what can stay on the GPU is prepared once."""
        ids = Chosen.of(among, self)
        chosen = None if ids is None else ids.has(self._rows.ids_in_order)
        if chosen is not None and _COPIED * int(np.count_nonzero(chosen)) <= len(chosen):
            places = np.flatnonzero(chosen)
            copies = [(self._rows.only(self._layout, self._tiles, places), None)]
            return _Scope(lambda: copies, places)
        if self._streaming:
            return _Scope(lambda: self._allowed(chosen))
        ready = list(self._allowed(chosen))
        return _Scope(lambda: ready)

    def _allowed(self, chosen: NDArray[np.bool_] | None) -> Iterator[Part]:
        """Yield all parts, with a bit per position that may be found; None: all."""
        for tiles in self._whole():
            here = None if chosen is None else chosen[tiles.base : tiles.base + tiles.count]
            yield tiles, None if here is None else allowed_bits(self._card, here)

    @property
    def memory_bytes(self) -> int:
        """Bytes of GPU memory in use."""
        return 0 if self._tiles is None else self._tiles.nbytes

    def stats(self) -> dict[str, Any]:
        """Return facts about the index, fit for JSON."""
        return {
            **super().stats(),
            "index": "gpu",
            "card": self._card.name,
            "device": self._card.number,
            "stream": self._streaming,
            "tensor_instructions": self._card.has_tensors,
        }

    def __copy__(self) -> Self:
        return self  # nothing of it ever changes

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def _arrays(self) -> dict[str, NDArray[Any]]:
        with self._card:
            return self._rows.arrays()

    def _restore(self, container: Container) -> None:
        rows = Rows.restored(container, container.meta.get("ascending_ids") is not False)
        self._card, self._streaming = card(0), False
        self._place(Source(self._card, rows.signatures, rows.ids, rows.ascending), listener(None))


def _nearest(
    scope: _Scope, queries: Queries, k: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    nearest: Nearest | None = None
    for tiles, allowed in scope.parts():
        if nearest is None:
            nearest = Nearest(tiles, queries, k)
            nearest.sample(tiles, allowed)
        nearest.add(tiles, allowed)
    if nearest is None:
        return np.full((len(queries), k), -1), np.full((len(queries), k), -1, np.int32)
    found, far = nearest.result()
    return scope.positions(found), far
