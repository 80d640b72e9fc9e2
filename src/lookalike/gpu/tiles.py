"""Signatures on the GPU, and where they come from."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.errors import ArgumentError, SignatureError
from lookalike.gpu.card import PIECE, Card, Layout
from lookalike.indexes.batch.signature_file import read_ahead
from lookalike.indexes.rows import Rows, Signatures, check_ids
from lookalike.progress import Progress, listener

_UPLOAD = 64 * 2**20  # bytes uploaded and sorted at a time; the card has them twice


class Tiles:
    """Signatures in the layout that kernels read; see tiles.cu.

    A slot is where a signature is stored, its position where it was in the input.
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
        progress: Progress | None = None,
    ) -> Tiles:
        """Return tiles of uint8[count, bytes]; `order` selects and orders the rows."""
        tiles = cls(card, layout, len(signatures) if order is None else len(order), base)
        step = max(1, _UPLOAD // (layout.bytes * PIECE)) * PIECE
        tell = listener(progress)
        for begin in range(0, tiles.count, step):
            end = min(tiles.count, begin + step)
            part = signatures[begin:end] if order is None else signatures[order[begin:end]]
            tiles.fill(begin, end, card.put(part))
            tell("copy", end / tiles.count)
        return tiles

    def fill(self, begin: int, end: int, signatures: Any) -> None:
        """Store signatures on the GPU at these positions, which start with a piece."""
        size, first, last = self.layout.tile_bytes, self.layout.tiles(begin), self.layout.tiles(end)
        memory, ones = self.memory[first * size : last * size], self.fewest_ones[first:last]
        kernels = self.card.kernels(self.layout)
        kernels.arrange(signatures, memory, self.places[begin:end], ones)

    @property
    def tiles(self) -> int:
        """Number of tiles."""
        return self.layout.tiles(self.count)

    @property
    def nbytes(self) -> int:
        """Bytes of GPU memory."""
        return int(self.memory.nbytes + self.places.nbytes + self.fewest_ones.nbytes)

    def positions(self, slots: Any) -> Any:
        """Return the positions of slots."""
        return slots // PIECE * PIECE + self.places[slots]

    def slots(self, begin: int, end: int) -> Any:
        """Return the slots of positions."""
        xp = self.card.xp
        first, last = begin // PIECE * PIECE, min(self.count, -(-end // PIECE) * PIECE)
        slots = xp.empty(last - first, xp.uint64)
        here = xp.arange(first, last, dtype=xp.uint64)
        slots[self.positions(here) - first] = here
        return slots[begin - first : end - first]

    def take(self, slots: Any) -> Any:
        """Return copies of the signatures in slots: uint8[count, stored]."""
        return self.card.kernels(self.layout).take(self.memory, slots)

    def chosen(self, positions: NDArray[np.int64]) -> Tiles:
        """Return tiles of the signatures at these ascending positions."""
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

    def download(self) -> Signatures:
        """Return all signatures in the order of positions."""
        signatures = np.empty((self.count, self.layout.bytes), np.uint8)
        step = max(1, _UPLOAD // (self.layout.stored * PIECE)) * PIECE
        for begin in range(0, self.count, step):
            end = min(self.count, begin + step)
            rows = self.take(self.slots(begin, end))
            signatures[begin:end] = self.card.host(rows)[:, : self.layout.bytes]
        return signatures


def refuse_too_many(card: Card, layout: Layout, count: int) -> None:
    """Raise if there is not enough GPU memory."""
    needed, free = layout.bytes_of(count) + 4 * _UPLOAD, card.free_bytes()
    if needed > free:
        raise ArgumentError(
            f"{count:,} signatures need {needed:,} bytes of GPU memory, and {free:,} are free "
            f"({card.name}). Use stream=True, or a ShardedIndex over several GPUs"
        )


_PASSING = 512 * 2**20  # bytes that pass through the card at a time, two parts at once


class Source:
    """Signatures and ids as given. On the GPU they are in the order of ids.

    Positions then break ties as ids do.
    """

    ascending = True  # whether `arrays` are in the order of ids

    def __init__(
        self, card: Card, rows: Any, ids: NDArray[np.int64] | None, ascending: bool
    ) -> None:
        self._card, self._rows, self.ids = card, rows, ids
        self._shape: tuple[int, int] = rows.shape
        self._tiles: Tiles | None = None
        self.order = None if ids is None or ascending else np.argsort(ids)
        """Row at each position; None if positions are rows."""

    @classmethod
    def of(cls, card: Card, signatures: Any, ids: ArrayLike | None) -> Source:
        """Return validated signatures; an array on the GPU stays there."""
        if isinstance(signatures, np.ndarray) or not hasattr(signatures, "__dlpack__"):
            rows = Rows.of(signatures, ids)
            return cls(card, rows.signatures, rows.ids, rows.ascending)
        with card:
            array = _on_card(card.xp, signatures)
        if ids is None:
            return cls(card, array, None, True)
        return cls(card, array, *check_ids(ids, len(array)))

    def __len__(self) -> int:
        return self._shape[0]

    @property
    def bits(self) -> int:
        """Number of bits of a signature."""
        return 8 * self._shape[1]

    @property
    def next_id(self) -> int:
        """One more than the largest id."""
        return len(self) if self.ids is None else int(self.ids.max(initial=-1)) + 1

    def all_ids(self) -> NDArray[np.int64]:
        """Return the ids in their original order."""
        return np.arange(len(self)) if self.ids is None else self.ids

    @cached_property
    def ids_in_order(self) -> NDArray[np.int64]:
        """Id at each position."""
        return self.all_ids() if self.order is None else self.all_ids()[self.order]

    def ids_at(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the ids at these positions; -1 is kept."""
        if self.ids is None:
            return positions
        return at_or_none(self.ids_in_order, positions)

    def signatures(self) -> Signatures:
        """Return the signatures in their original order."""
        if isinstance(self._rows, np.ndarray):
            return self._rows
        if self._tiles is None:
            copy: Signatures = self._card.host(self._rows)
            return copy
        ordered = self._tiles.download()
        if self.order is None:
            return ordered
        rows = np.empty_like(ordered)
        rows[self.order] = ordered
        return rows

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays to save, in the order of ids."""
        rows = self.signatures()
        if self.ids is None:
            return {"signatures": rows}
        ordered = rows if self.order is None else rows[self.order]
        return {"signatures": ordered, "ids": self.ids_in_order}

    def tiles(self, layout: Layout, progress: Progress | None = None) -> Tiles:
        """Return all signatures on the GPU."""
        tiles = Tiles.of(self._card, layout, self._rows, order=self.order, progress=progress)
        if not isinstance(self._rows, np.ndarray):  # a card need not hold them twice
            self._rows, self._tiles = None, tiles
        return tiles

    def only(self, layout: Layout, tiles: Tiles | None, places: NDArray[np.int64]) -> Tiles:
        """Return the signatures at these positions on the GPU."""
        if tiles is not None:
            return tiles.chosen(places)
        rows = places if self.order is None else self.order[places]
        return Tiles.of(self._card, layout, self._rows, order=rows)

    def passing(self, layout: Layout, begin: int = 0) -> Iterator[Tiles]:
        """Yield parts from this position on; the next is copied while one is searched."""
        step = max(1, _PASSING // (layout.stored * PIECE)) * PIECE
        starts = range(begin, len(self), step)
        coming = (self._part(layout, at, at + step) for at in starts)
        with read_ahead(coming, len(starts)) as parts:
            yield from parts

    def _part(self, layout: Layout, begin: int, end: int) -> Tiles:
        """Copy a part to the GPU in a separate stream."""
        with self._card, self._card.beside():
            part = slice(begin, min(end, len(self)))
            rows = self._rows[part] if self.order is None else self._rows[self.order[part]]
            return Tiles.of(self._card, layout, rows, part.start)


def at_or_none(values: NDArray[np.int64], places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the values at these positions; -1 for -1."""
    chosen = np.full(places.shape, -1)
    chosen[places >= 0] = values[places[places >= 0]]
    return chosen


def _on_card(xp: Any, signatures: Any) -> Any:
    """Return an array of another library on the GPU, as uint8[count, bytes]."""
    try:
        array = xp.from_dlpack(signatures) if not isinstance(signatures, xp.ndarray) else signatures
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise SignatureError(f"signatures cannot be read by DLPack: {error}") from error
    if array.dtype == xp.uint64 and array.ndim in (1, 2):
        array = xp.ascontiguousarray(array.reshape(len(array), -1)).view(xp.uint8)
    if array.dtype != xp.uint8 or array.ndim != 2 or not array.shape[1]:
        raise SignatureError(
            f"signatures on the GPU are {array.dtype} of shape {array.shape}; expected uint8 of "
            "(count, bits // 8), or uint64"
        )
    return xp.ascontiguousarray(array)
