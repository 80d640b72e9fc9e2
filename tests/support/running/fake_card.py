"""A card that is none: the kernels' definitions in NumPy, so that what calls them can be tested
everywhere. What the real ones write is compared with the scan where there is a card."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from lookalike import _native
from lookalike.gpu.card import PIECE, Layout
from lookalike.gpu.finding import DISTANCE, QUERY, Question


class FakeKernels:
    """What tiles.cu and rows.cu say, said slowly."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def _bytes(self, slots: Any) -> Any:
        """Return where in the memory of tiles each byte of what is in these slots lies."""
        layout = self.layout
        slots = np.asarray(slots).astype(np.int64)[:, None]
        byte = slots % layout.pack * layout.stored + np.arange(layout.stored)
        column, tile = slots // layout.pack % layout.columns, slots // layout.tile_signatures
        return (
            tile * layout.tile_bytes + byte // 16 * (16 * layout.columns) + column * 16 + byte % 16
        )

    def arrange(self, signatures: Any, tiles: Any, places: Any, fewest_ones: Any) -> None:
        ones = np.bitwise_count(signatures).sum(axis=1, dtype=np.int64)
        rows = np.arange(len(signatures))
        order = np.lexsort((ones, rows // PIECE))
        stored = np.zeros((len(signatures), self.layout.stored), np.uint8)
        stored[:, : self.layout.bytes] = signatures[order]
        tiles[self._bytes(rows)] = stored
        places[:] = order % PIECE
        for tile in range(len(fewest_ones)):
            begin = tile * self.layout.tile_signatures
            fewest_ones[tile] = ones[order[begin : begin + self.layout.tile_signatures]].min()

    def take(self, tiles: Any, slots: Any) -> Any:
        return tiles[self._bytes(slots)]

    def near(self, question: Question, found: Any, notes: Any, counts: Any) -> None:
        tiles, size = question.tiles, self.layout.tile_signatures
        numbers = question.span.first + np.arange(question.span.count) * question.span.step
        slots = (numbers[:, None] * size + np.arange(size)).ravel()
        slots = slots[slots < tiles.count]
        rows, positions = self.take(tiles.memory, slots), tiles.positions(slots)
        kept = []
        for query, signature in enumerate(question.queries.rows):
            far = np.bitwise_count(rows ^ signature).sum(axis=1, dtype=np.int64)
            near = far <= question.cuts[query]
            if question.allowed is not None:
                near &= (question.allowed[positions // 32] >> (positions % 32) & 1).astype(bool)
            place = positions.astype(np.uint64) + np.uint64(tiles.base)
            if question.behind is not None:
                near &= place > question.behind[query]
            key = np.uint64(query) << np.uint64(QUERY) | far.astype(np.uint64) << np.uint64(
                DISTANCE
            )
            kept.append((key | place)[near])
        hits = np.concatenate(kept)
        # Neither in order, nor all that there is no room for.
        hits = hits[np.random.default_rng(len(hits)).permutation(len(hits))]
        found[: len(hits)] = hits[: len(found)]
        counts[1] = len(hits)
        counts[0] = -(-len(hits) // 3)


class FakeCard:
    """Memory that is the machine's own."""

    xp = np
    name, number, processors, has_tensors = "no card", 0, 1, False

    def __init__(self, free: int = 2**40) -> None:
        self.free = free

    def __enter__(self) -> None: ...

    def __exit__(self, *exception: object) -> None: ...

    @contextmanager
    def beside(self) -> Iterator[None]:
        yield

    def synchronize(self) -> None: ...

    def free_bytes(self) -> int:
        return self.free

    def host(self, array: Any) -> Any:
        return np.array(array)

    def put(self, array: Any) -> Any:
        return np.array(array)

    def kernels(self, layout: Layout) -> FakeKernels:
        return FakeKernels(layout)

    def band_keys(self, rows: Any, band_bytes: int, bands: int) -> Any:
        keys = np.empty((bands, len(rows)), np.uint32)
        _native.band_keys(rows, band_bytes, 0, keys)
        return keys
