"""A collection, or a part of one, on a card."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.errors import ArgumentError
from lookalike.gpu.card import Card
from lookalike.gpu.layout import PIECE, Layout

_UPLOAD = 64 * 2**20
"""Bytes that are uploaded, and sorted, at a time: the card keeps them twice meanwhile."""


class Tiles:
    """Signatures as kernels read them; tiles.cu tells how they lie.

    A slot is where a signature is, its position where it stood among those given.
    """

    def __init__(self, card: Card, layout: Layout, count: int, base: int = 0) -> None:
        xp, tiles = card.xp, layout.tiles(count)
        self.card, self.layout, self.count, self.base = card, layout, count, base
        self.memory = xp.zeros(tiles * layout.tile_bytes, xp.uint8)
        self.places = xp.zeros(count, xp.uint16)
        self.fewest_ones = xp.zeros(tiles, xp.int32)

    @classmethod
    def of(
        cls,
        card: Card,
        layout: Layout,
        signatures: Any,
        base: int = 0,
        order: NDArray[np.int64] | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> Tiles:
        """Return tiles of uint8[count, bytes], in memory, mapped or on the card.

        `order`: of these rows, in that order; otherwise of all.
        """
        tiles = cls(card, layout, len(signatures) if order is None else len(order), base)
        step = max(1, _UPLOAD // (layout.bytes * PIECE)) * PIECE
        for begin in range(0, tiles.count, step):
            end = min(tiles.count, begin + step)
            part = signatures[begin:end] if order is None else signatures[order[begin:end]]
            tiles.fill(begin, end, card.put(part))
            if progress is not None:
                progress(end, tiles.count)
        return tiles

    def fill(self, begin: int, end: int, signatures: Any) -> None:
        """Put signatures of the card at these positions, which begin with a piece."""
        size, first, last = self.layout.tile_bytes, self.layout.tiles(begin), self.layout.tiles(end)
        self.card.kernels(self.layout).arrange(
            signatures,
            self.memory[first * size : last * size],
            self.places[begin:end],
            self.fewest_ones[first:last],
        )

    @property
    def tiles(self) -> int:
        """How many tiles there are."""
        return self.layout.tiles(self.count)

    @property
    def nbytes(self) -> int:
        """Bytes of the card's memory."""
        return int(self.memory.nbytes + self.places.nbytes + self.fewest_ones.nbytes)

    def positions(self, slots: Any) -> Any:
        """Return the positions, from 0, of what is in these slots."""
        return slots // PIECE * PIECE + self.places[slots]

    def slots(self, begin: int, end: int) -> Any:
        """Return where the signatures at these positions are."""
        xp = self.card.xp
        first, last = begin // PIECE * PIECE, min(self.count, -(-end // PIECE) * PIECE)
        slots = xp.empty(last - first, xp.uint64)
        here = xp.arange(first, last, dtype=xp.uint64)
        slots[self.positions(here) - first] = here
        return slots[begin - first : end - first]

    def take(self, slots: Any) -> Any:
        """Return copies of what is in these slots: uint8[count, stored]."""
        return self.card.kernels(self.layout).take(self.memory, slots)

    def chosen(self, positions: NDArray[np.int64]) -> Tiles:
        """Return tiles of the signatures at these ascending positions alone."""
        xp = self.card.xp
        part = Tiles(self.card, self.layout, len(positions))
        step = max(1, _UPLOAD // (self.layout.stored * PIECE)) * PIECE
        everywhere = self.slots(0, self.count)
        for begin in range(0, len(positions), step):
            end = min(len(positions), begin + step)
            where = everywhere[xp.asarray(positions[begin:end])]
            rows = xp.ascontiguousarray(self.take(where)[:, : self.layout.bytes])
            part.fill(begin, end, rows)
        return part

    def download(self) -> NDArray[np.uint8]:
        """Return all signatures in the order of their positions."""
        signatures = np.empty((self.count, self.layout.bytes), np.uint8)
        step = max(1, _UPLOAD // (self.layout.stored * PIECE)) * PIECE
        for begin in range(0, self.count, step):
            end = min(self.count, begin + step)
            rows = self.take(self.slots(begin, end))
            signatures[begin:end] = self.card.host(rows)[:, : self.layout.bytes]
        return signatures


def refuse_too_many(card: Card, layout: Layout, count: int) -> None:
    """Say how many bytes are needed and how many are free, if there are too few."""
    needed, free = layout.bytes_of(count) + 4 * _UPLOAD, card.free_bytes()
    if needed > free:
        raise ArgumentError(
            f"{count:,} signatures need {needed:,} bytes on the card, and {free:,} are free there "
            f"({card.name}); give each of several cards a part (a ShardedIndex of one GpuIndex "
            "each), or leave them where they are with stream=True"
        )
