"""BlockIndex: all matches within a small radius, by permuted sorted tables.

Signatures that differ in few bits agree in whole blocks (Manku, Jain and Das Sarma, 2007; called
BPHS by Sood and Loguinov). Each table is sorted by another choice of blocks, and a query is
compared only with signatures that have the same leading blocks.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, chain, combinations
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike import _native
from lookalike.checks import flag, thread_count, whole_number
from lookalike.errors import (
    ArgumentError,
    CorruptIndexError,
    LookalikeWarning,
    ResultTooLargeError,
    Said,
)
from lookalike.indexes.base import DEFAULT_LIMIT, Masks, described
from lookalike.indexes.filters import Among, Chosen, no_masks
from lookalike.indexes.results import NO_LIMIT, Matches, Neighbors, merged_matches, too_many_matches
from lookalike.indexes.rows import Signatures
from lookalike.indexes.tables.base import TabledIndex, only_chosen
from lookalike.indexes.tables.sorted_table import (
    Part,
    Runs,
    TableSteps,
    build_parts,
    header_width,
    part_count,
)
from lookalike.shown import counted
from lookalike.signatures import as_queries
from lookalike.storage.container import Container

MOST_TABLES = 256
_MOST_UNASKED = 20  # maximum number of tables by default
_MOST_BLOCKS = 64
_MUCH = 10.0  # warn if another choice is faster by this factor


@dataclass(frozen=True)
class BlockChoice:
    """`blocks` blocks of nearly equal width, of which `lead` lead each table.

    Signatures that differ in up to `blocks - lead` bits agree in `lead` blocks, so one of the
    C(blocks, lead) tables has them in the same bucket.
    """

    bits: int
    blocks: int
    lead: int

    @property
    def radius(self) -> int:
        """Largest radius for which the tables are complete."""
        return self.blocks - self.lead

    @property
    def tables(self) -> int:
        """Number of tables."""
        return math.comb(self.blocks, self.lead)

    @property
    def is_possible(self) -> bool:
        """Whether the numbers of blocks and tables are within their limits."""
        if not 1 <= self.lead <= self.blocks <= self.bits:
            return False
        # Of more blocks than tables, all lead or there are too many tables.
        few = self.blocks <= MOST_TABLES and self.tables <= MOST_TABLES
        return self.lead == self.blocks or few

    def widths(self) -> list[int]:
        """Return the bits of each block: 13, 13, 13, 13 and 12 for 64 bits in 5 blocks."""
        least, wider = divmod(self.bits, self.blocks)
        return [least + (block < wider) for block in range(self.blocks)]

    def headers(self, count: int) -> list[Runs]:
        """Return the bits that each table is looked up by."""
        widths = self.widths()
        starts = [0, *accumulate(widths)]
        headers: list[Runs] = []
        for leading in combinations(range(self.blocks), self.lead):
            left, runs = header_width(count), list[tuple[int, int]]()
            for block in leading:
                width = min(left, widths[block])
                if width:
                    runs.append((starts[block], width))
                left -= width
            headers.append(runs)
        return headers

    def header_bits(self, count: int) -> int:
        """Return the smallest number of header bits of a table."""
        return min(header_width(count), sum(sorted(self.widths())[: self.lead]))

    def steps(self, count: int) -> TableSteps:
        """Return the steps of a query."""
        whole = TableSteps.of(self.tables, count, self.header_bits(count))
        return replace(whole, buckets=part_count(count) * whole.buckets)

    def usual_cost(self, count: int, compressed: bool = False) -> float:
        """Return the nanoseconds of a query on a typical machine."""
        return self.steps(count).usual_cost(self.bits // 8, compressed)

    def bytes(self, count: int, compressed: bool = False) -> int:
        """Return the size of the tables in bytes."""
        offsets = sum(4 * ((1 << sum(w for _, w in runs)) + 1) for runs in self.headers(count))
        copies = 1 if compressed else self.tables
        return count * (copies * self.bits // 8 + self.tables * 4) + part_count(count) * offsets


def choose_blocks(
    count: int,
    bits: int,
    radius: int,
    tables: int | None,
    blocks: int | None,
    lead: int | None,
    memory: int | None,
    compressed: bool = False,
) -> BlockChoice:
    """Return the requested choice, or the fastest one within the memory."""
    if radius >= bits:
        raise ArgumentError(
            Said("radius"),
            f" is {radius} and signatures have {bits} bits; expected less than {bits}",
        )
    every = _choices(bits, radius, blocks, lead)
    choices = [choice for choice in every if tables is None or choice.tables == tables]
    if not choices:
        raise ArgumentError(*_impossible(bits, radius, tables, blocks, lead))
    if tables is None and blocks is None:
        choices = [each for each in choices if each.tables <= _MOST_UNASKED] or choices
    fitting = [
        each for each in choices if memory is None or each.bytes(count, compressed) <= memory
    ]
    if not fitting:
        least = min(each.bytes(count, compressed) for each in choices)
        raise ArgumentError(
            Said("memory"),
            f" is {memory} bytes; the tables of {count} signatures of {bits} bits for a "
            f"radius of {radius} take at least {least}",
        )
    return min(fitting, key=lambda each: (each.usual_cost(count, compressed), each.tables))


def much_quicker(choice: BlockChoice, count: int, radius: int) -> BlockChoice | None:
    """Return a choice that is much faster with no more tables, or None."""
    others = _choices(choice.bits, radius, None, None)
    fewer = (other for other in others if other.tables <= choice.tables)
    best = min(fewer, key=lambda other: other.usual_cost(count), default=choice)
    return best if _MUCH * best.usual_cost(count) < choice.usual_cost(count) else None


def _choices(bits: int, radius: int, blocks: int | None, lead: int | None) -> Iterator[BlockChoice]:
    most = min(bits, radius + _MOST_BLOCKS)
    for number in range(radius + 1, most + 1) if blocks is None else [min(blocks, bits + 1)]:
        # Of more blocks than there may be tables, only all can lead.
        possible = range(1, number + 1) if number <= MOST_TABLES else [number]
        for leading in possible if lead is None else [lead]:
            choice = BlockChoice(bits, number, leading)
            if leading <= number - radius and choice.is_possible:
                yield choice


def _impossible(
    bits: int, radius: int, tables: int | None, blocks: int | None, lead: int | None
) -> tuple[str | Said, ...]:
    if blocks is not None and blocks <= radius:
        said = f" is {blocks}: every block may have a difference; expected at least {radius + 1}"
        return (Said("radius"), f" is {radius} and ", Said("blocks"), f"{said} blocks")
    if blocks is not None and blocks > bits:
        said = f" is {blocks} and signatures have {bits} bits; expected at most {bits}"
        return (Said("blocks"), said)
    if lead is not None and blocks is not None and lead > blocks - radius:
        return (
            Said("lead"),
            f" is {lead} of {blocks} blocks: only {blocks - radius} are sure to be without a "
            f"difference within radius {radius}; expected at most that many",
        )
    possible = sorted({choice.tables for choice in _choices(bits, radius, None, None)})
    asked = (Said("blocks"), f" is {blocks}, ", Said("lead"), f" is {lead}")
    return (
        *(asked if tables is None else (Said("tables"), f" is {tables}")),
        f": with radius {radius} there are C(blocks, lead) tables, lead <= blocks - "
        f"{radius}, and at most {MOST_TABLES}; expected {', '.join(map(str, possible[:6]))} ...",
    )


_WORTH_A_LOOK = 1_000_000
_SOME = 256  # signatures that tell how long buckets are
_SURELY = 4


class BlockIndex(TabledIndex):
    """Find all matches within a radius that is known in advance; exact.

    Signatures are cut into blocks of equal width, and each table is sorted by `lead` of them. More
    tables are not always faster; a `LookalikeWarning` says if another number is 10 times faster.
    Each table takes n · (bits / 8 + 4) bytes. The caller's array is not kept.

    Args:
        signatures: Array `uint8[n, bits // 8]`; it is copied.
        radius: Radius that the tables are made for (default: 3).
        tables: Number of tables, such as 4 or 10 for 64 bits and radius 3 (default: the fastest
            within `memory`).
        ids: Ids of the signatures, distinct and at least 0 (default: their positions).
        blocks: Number of blocks, in place of `tables`.
        lead: Number of leading blocks that a table is sorted by, in place of `tables`.
        memory: Maximum size of the tables in bytes (default: no limit).
        compressed: Store row numbers only, n · 4 bytes per table, and use the signatures in place.
            Slow with fewer than 10 tables.
        threads: Number of threads (default: all cores).

    Examples:
        >>> signatures = np.array([0, 1, 255], np.uint64)
        >>> la.BlockIndex(signatures, radius=3).within(signatures[:1]).ids.tolist()
        [0, 1]
    """

    kind = "blocks"

    def __init__(
        self,
        signatures: ArrayLike,
        radius: SupportsIndex = 3,
        tables: SupportsIndex | None = None,
        ids: ArrayLike | None = None,
        *,
        blocks: SupportsIndex | None = None,
        lead: SupportsIndex | None = None,
        memory: SupportsIndex | None = None,
        compressed: bool = False,
        threads: SupportsIndex | None = None,
    ) -> None:
        rows = self._take_rows(signatures, ids)
        self.radius = whole_number("radius", radius, at_least=0)  # the default radius of `within`
        small = flag("compressed", compressed)
        self._choice = choose_blocks(
            len(rows),
            8 * rows.shape[1],
            self.radius,
            None if tables is None else whole_number("tables", tables, at_least=1),
            None if blocks is None else whole_number("blocks", blocks, at_least=1),
            None if lead is None else whole_number("lead", lead, at_least=1),
            None if memory is None else whole_number("memory", memory, at_least=0),
            small,
        )
        # A given number of blocks is taken as intended.
        if blocks is None and (quicker := much_quicker(self._choice, len(rows), self.radius)):
            warnings.warn(_slow(self._choice, quicker, len(rows)), stacklevel=2)
        workers = thread_count(threads)
        self._parts = build_parts(rows, self._choice.headers(len(rows)), workers, small)

    @property
    def widest(self) -> int:
        """Largest radius that the tables answer; `within` scans beyond it."""
        return self._choice.radius

    @property
    def compressed(self) -> bool:
        """Whether tables have row numbers in place of signatures."""
        return self._parts[0].tables[0].compressed

    @property
    def blocks(self) -> int:
        """Number of blocks of a signature."""
        return self._choice.blocks

    @property
    def lead(self) -> int:
        """Number of blocks that lead each table."""
        return self._choice.lead

    @property
    def tables(self) -> int:
        """Number of tables."""
        return len(self._parts[0].tables)

    def summary(self) -> str:
        """Return a one-line description of the index."""
        return f"{super().summary()}, {counted(self.tables, 'table')} for a radius of {self.radius}"

    def stats(self) -> dict[str, Any]:
        """Return facts about the index, fit for JSON."""
        return {
            **super().stats(),
            "radius": self.radius,
            "widest": self.widest,
            "blocks": self._choice.widths(),
            "lead": self.lead,
            "tables": self.tables,
            "compressed": self.compressed,
            "header_bits": self._choice.header_bits(len(self)),
        }

    def within(
        self,
        queries: ArrayLike,
        radius: SupportsIndex | None = None,
        *,
        first: bool = False,
        limit: SupportsIndex = DEFAULT_LIMIT,
        among: Among = None,
        masks: None = None,
        threads: SupportsIndex | None = None,
    ) -> Matches:
        """Return every signature within Hamming distance `radius` of each query; always exact.

        Scans if the radius is larger than `widest`, or if the buckets of a query are so large that
        a scan is faster.

        Args:
            queries: Signatures, `uint8[n, bits // 8]`, or a single signature.
            radius: Largest Hamming distance (default: the radius of the index).
            first: Stop each query at its first match, which is not always the nearest.
            limit: Maximum number of matches of all queries together.
            among: Ids to search, or a mask `bool[next_id]` (default: all ids).
            masks: Not supported; raises if given.
            threads: Number of threads (default: all cores).

        Raises:
            ResultTooLargeError: If there are more matches than `limit`.
        """
        no_masks(self, masks)
        rows = as_queries(queries, self.bits, signer=self.signer)
        most = whole_number("limit", limit, at_least=0)
        near = self.radius if radius is None else whole_number("radius", radius, at_least=0)
        one, workers = flag("first", first), thread_count(threads)
        chosen, reach = Chosen.of(among, self), min(near, self.bits)
        if chosen is not None and near <= self.widest:
            with suppress(ResultTooLargeError):
                return only_chosen(
                    self.within(rows, near, limit=most, threads=workers), chosen, one
                )
        if chosen is not None or near > self.widest:
            return self._scan_within(rows, reach, most, workers, chosen, one)
        # With one leading block, radius + 1 tables are enough: not all of them can differ.
        enough = near + 1 if self.lead == 1 else self.tables
        tables = {part: [table.native() for table in part.tables[:enough]] for part in self._parts}
        try:
            # A search for the first match seldom reads a bucket to its end.
            every = list(chain(*tables.values()))
            scanned = np.zeros(len(rows), bool) if one else self._long_buckets(every, rows)
            looked_up = rows[~scanned] if scanned.any() else rows

            def look_up(part: Part, names: Any, asked: Any, limit: int) -> tuple[Any, Any, Any]:
                queries, room = looked_up[asked], min(limit, NO_LIMIT)
                return _native.block_within(tables[part], names, queries, near, one, room, workers)

            offsets, ids, distances = self._ask_parts(len(looked_up), one, most, True, look_up)
        except _native.TooManyResults:
            raise too_many_matches(most, near, len(rows)) from None
        except _native.CorruptTable:
            raise self._damaged() from None
        matches = Matches(offsets, ids, distances, exact=True)
        if not scanned.any():
            return matches
        rest = self._scan_within(rows[scanned], near, most - len(ids), workers)
        parts = []
        for found, places in ((matches, ~scanned), (rest, scanned)):
            parts.append((np.flatnonzero(places)[found.query], found.ids, found.distances))
        return merged_matches(len(rows), parts, exact=True)

    def _long_buckets(self, tables: list[_native.Table], rows: Signatures) -> NDArray[np.bool_]:
        """Return which queries have such large buckets that a scan is faster."""
        width, size = self.bits // 8, self.bits // 8 * len(self)

        def steps(bucket_rows: float) -> TableSteps:
            return TableSteps(len(tables), bucket_rows)

        usual = steps(self._usual_rows).usual_cost(width, self.compressed)
        scan = _native.USUAL_COSTS.scan(size, max(1, len(rows)))
        if _SURELY * usual < scan:
            return np.zeros(len(rows), bool)
        every = _native.bucket_rows(tables, rows)
        return np.array([steps(n).usual_cost(width, self.compressed) > scan for n in every], bool)

    @cached_property
    def _usual_rows(self) -> float:
        """Mean number of rows in the buckets of a signature of the collection."""
        if not len(self):
            return 0.0
        some = np.random.default_rng(0).integers(0, len(self._parts[0]), _SOME)
        own = self._parts[0].tables[0].signatures[some]
        tables = [table.native() for part in self._parts for table in part.tables]
        return float(_native.bucket_rows(tables, own).mean())

    def _nearest(
        self, rows: Signatures, k: int, among: Among, masks: Masks, threads: int
    ) -> Neighbors:
        """Use the tables if k matches are within the radius, else scan."""
        chosen = Chosen.of(among, self)
        try:
            near = self.within(rows, limit=_WORTH_A_LOOK, among=chosen, threads=threads)
        except ResultTooLargeError:
            return self._scan_nearest(rows, k, threads, chosen)
        enough = np.diff(near.offsets) >= k
        ids, distances = np.empty((len(rows), k), np.int64), np.empty((len(rows), k), np.int32)
        places = near.offsets[:-1][enough][:, None] + np.arange(k)
        ids[enough], distances[enough] = near.ids[places], near.distances[places]
        if not enough.all():
            rest = self._scan_nearest(rows[~enough], k, threads, chosen)
            ids[~enough], distances[~enough] = rest.ids, rest.distances
        return Neighbors(ids, distances, exact=True)

    def _meta(self) -> dict[str, Any]:
        return {
            **super()._meta(),
            "radius": self.radius,
            "bits": self.bits,
            "blocks": self.blocks,
            "lead": self.lead,
            "signatures": len(self),
        }

    def _restore(self, container: Container) -> None:
        meta = container.meta
        with described(container, "tables"):
            self._choice = BlockChoice(int(meta["bits"]), int(meta["blocks"]), int(meta["lead"]))
            self.radius, count = int(meta["radius"]), int(meta["signatures"])
            if not self._choice.is_possible:
                raise ValueError(f"{self.lead} of {self.blocks} blocks lead")
            if count < 0 or not 0 <= self.radius <= self.widest:
                raise ValueError(f"a radius of {self.radius} and {count} signatures")
            runs = self._choice.headers(count)
        self._restore_tables(container, list(runs))
        if len(self) != count or self.bits != self._choice.bits:
            raise CorruptIndexError(
                f"{container.path} holds {len(self)} signatures of {self.bits} bits and describes "
                f"{count} of {self._choice.bits}; it is damaged"
            )


def _slow(choice: BlockChoice, quicker: BlockChoice, count: int) -> LookalikeWarning:
    """Return the warning for a slow choice."""
    times = choice.usual_cost(count) / quicker.usual_cost(count)
    return LookalikeWarning(
        f"BlockIndex with {choice.tables} tables compares a query with "
        f"{choice.steps(count).rows:,.0f} of {count:,} signatures. ",
        Said(f"tables={quicker.tables}", f"--tables {quicker.tables}"),
        f", or the default, can be about {times:,.0f} times as fast",
    )
