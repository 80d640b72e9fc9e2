"""The kernels for signatures of one width, each as a function of arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from lookalike.gpu.layout import PIECE, Layout
from lookalike.gpu.products import products

if TYPE_CHECKING:
    from lookalike.gpu.card import Card
    from lookalike.gpu.finding import Question

_SHARED_BYTES = 200 * 1024
"""Of a block's shared memory that tiles take; sm_90 has 227 KB."""


@dataclass(frozen=True)
class Shape:
    """How many rows of queries one block of `near_tiles` multiplies, and by how many."""

    groups: int
    blocks: int

    @classmethod
    def of(cls, rows: int, steps: int) -> Shape:
        """Return the smallest that takes all rows, or the largest there is."""
        if rows <= 64:
            return cls(1, 1)
        if rows <= 128 or steps > 8:  # more queries of that width do not fit into registers
            return cls(2, 1)
        return cls(2, 2)

    @property
    def rows(self) -> int:
        """Rows of queries."""
        return 64 * self.groups * self.blocks


class Kernels:
    """What is done on the card; `finding.py` and `tiles.py` know what for."""

    def __init__(self, card: Card, layout: Layout) -> None:
        self._card, self._layout = card, layout
        self._settings = {
            "STORED": layout.stored,
            "PACK": layout.pack,
            "STEPS": layout.steps,
            "COLUMNS": layout.columns,
            "PIECE": PIECE,
        }
        self._products: dict[Shape, Any] = {}

    def arrange(self, signatures: Any, tiles: Any, places: Any, fewest_ones: Any) -> None:
        """Sort uint8[count, bytes] in pieces and put them into tiles, which are zero before."""
        xp, count = self._card.xp, len(signatures)
        keys = xp.empty(count, xp.uint32)
        self._spread("sort_keys", count, signatures, np.uint64(count), keys)
        order = xp.argsort(keys, kind="stable").astype(xp.uint64)
        words = count * -(-self._layout.bytes // 4)
        arguments = signatures, np.uint64(count), order, keys, tiles, places, fewest_ones
        self._spread("arrange", words, *arguments)

    def take(self, tiles: Any, slots: Any) -> Any:
        """Return copies of the signatures in these slots: uint8[count, stored]."""
        xp, stored = self._card.xp, self._layout.stored
        signatures = xp.empty((len(slots), stored), xp.uint8)
        words = len(slots) * stored // 4
        self._spread("take", words, tiles, slots, np.uint64(len(slots)), signatures)
        return signatures

    def near(self, question: Question, found: Any, notes: Any, counts: Any) -> None:
        """Write all that is near into `found`, as much as there is room for.

        `counts`, zero before, get how many notes and how many hits there were.
        """
        if not question.span.count or not len(question.queries):
            return
        tiles, queries, span = question.tiles, question.queries, question.span
        asked = (
            tiles.memory, tiles.places, np.uint64(tiles.count), np.uint64(tiles.base),
            _or_null(question.allowed), queries.rows, question.cuts, _or_null(question.behind),
            found, np.uint64(found.size), counts[1:],
        )  # fmt: skip
        where = np.uint64(span.first), np.uint64(span.count), np.uint64(span.step)
        if len(queries) == 1 or not self._card.has_tensors:  # one is read for as quickly so
            beside = min(64, -(-len(queries) // 4))
            blocks = min(span.count, 16 * self._card.processors), beside
            every = self._rows.get_function("every_row")
            every(blocks, (self._layout.columns,), (*asked, *where, np.uint32(len(queries))))
            return
        self._note(question, where, notes, counts)
        near = self._rows.get_function("near_rows")
        grid = (8 * self._card.processors,)
        near(grid, (256,), (*asked, notes, np.uint64(notes.size), counts))

    def _note(self, question: Question, where: tuple[Any, ...], notes: Any, counts: Any) -> None:
        tiles, queries = question.tiles, question.queries
        rows = len(queries) * self._layout.pack
        shape = Shape.of(rows, self._layout.steps)
        beside = -(-rows // shape.rows)
        across = max(1, min(question.span.count, self._card.processors // beside))
        least = self._card.xp.where(question.cuts < 0, 1 << 24, queries.ones - question.cuts)
        kernel, shared = self._multiplying(shape)
        kernel(
            (across, beside), (128 * shape.groups,),
            (tiles.memory, tiles.fewest_ones, *where, queries.rows, np.uint32(len(queries)),
             least.astype(np.int32), notes, np.uint64(notes.size), counts),
            shared_mem=shared,
        )  # fmt: skip

    def _multiplying(self, shape: Shape) -> tuple[Any, int]:
        """Return `near_tiles` for that many queries, and the shared memory it takes."""
        stages = min(12, _SHARED_BYTES // self._layout.tile_bytes)
        shared = -(-stages * (self._layout.tile_bytes + 16) // 128) * 128
        if shape not in self._products:
            settings = {"GROUPS": shape.groups, "BLOCKS": shape.blocks, "STAGES": stages}
            module = self._card.compiled(
                "tensor.cu",
                self._settings | settings,
                PRODUCTS=products(self._layout.columns),
            )
            kernel = module.get_function("near_tiles")
            kernel.max_dynamic_shared_size_bytes = shared
            self._products[shape] = kernel
        return self._products[shape], shared

    @cached_property
    def _rows(self) -> Any:
        return self._card.compiled("rows.cu", self._settings)

    @cached_property
    def _tiles(self) -> Any:
        return self._card.compiled("tiles.cu", self._settings | {"BYTES": self._layout.bytes})

    def _spread(self, name: str, threads: int, *arguments: Any) -> None:
        """Run a kernel for so many things, of which a thread may do several."""
        if threads:
            grid = min(-(-threads // 256), 32 * self._card.processors)
            self._tiles.get_function(name)((grid,), (256,), arguments)


def _or_null(array: Any) -> Any:
    return np.uint64(0) if array is None else array
