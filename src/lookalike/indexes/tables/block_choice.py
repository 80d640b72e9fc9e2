"""How signatures are cut into blocks, and which blocks lead a table (Manku, Jain, Das Sarma)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate, combinations

from lookalike.errors import ArgumentError, Said
from lookalike.indexes.tables.sorted_table import Runs, header_width, part_count
from lookalike.indexes.tables.steps import TableSteps

__all__ = ["MOST_TABLES", "BlockChoice", "choose_blocks", "much_quicker"]

MOST_TABLES = 256
_MOST_UNASKED = 20
"""Tables that are made at most when nobody says how many."""
_MOST_BLOCKS = 64
_MUCH = 10.0
"""So many times as slow as it could be is worth a warning."""


@dataclass(frozen=True)
class BlockChoice:
    """`blocks` blocks of as equal widths as can be, of which each table has `lead` in front.

    Whatever differs in up to `blocks - lead` bits has `lead` blocks without a difference, so one
    of the C(blocks, lead) tables has it in the query's own bucket.
    """

    bits: int
    blocks: int
    lead: int

    @property
    def radius(self) -> int:
        """The largest radius that the tables are complete for."""
        return self.blocks - self.lead

    @property
    def tables(self) -> int:
        """How many tables there are."""
        return math.comb(self.blocks, self.lead)

    @property
    def is_possible(self) -> bool:
        """Whether so many blocks can be cut and lead, without more tables than are ever made.

        Quick for any numbers: of more blocks than tables, all lead or there are too many tables.
        """
        if not 1 <= self.lead <= self.blocks <= self.bits:
            return False
        return self.lead == self.blocks or (
            self.blocks <= MOST_TABLES and self.tables <= MOST_TABLES
        )

    def widths(self) -> list[int]:
        """Return how many bits each block has: 13, 13, 13, 13 and 12 for 64 bits in 5 blocks."""
        least, wider = divmod(self.bits, self.blocks)
        return [least + (block < wider) for block in range(self.blocks)]

    def headers(self, count: int) -> list[Runs]:
        """Return the bits that each table is looked up by: no more than `count` signatures need.

        Bits of leading blocks beyond that would only leave most buckets empty.
        """
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
        """Return the least number of header bits of a table."""
        return min(header_width(count), sum(sorted(self.widths())[: self.lead]))

    def steps(self, count: int) -> TableSteps:
        """Return what a query takes: a bucket of each table, of each part."""
        whole = TableSteps.of(self.tables, count, self.header_bits(count))
        return replace(whole, buckets=part_count(count) * whole.buckets)

    def usual_cost(self, count: int, compressed: bool = False) -> float:
        """Return what a query costs on a usual machine, in nanoseconds."""
        return self.steps(count).usual_cost(self.bits // 8, compressed)

    def bytes(self, count: int, compressed: bool = False) -> int:
        """Return what the tables take."""
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
    """Return the choice that was asked for, or the quickest one within the memory."""
    if radius >= bits:
        raise ArgumentError(
            Said("radius"),
            f" is {radius} and signatures have {bits} bits: everything is within it; expected a "
            "radius of less than the bits",
        )
    choices = [
        choice
        for choice in _choices(bits, radius, blocks, lead)
        if tables is None or choice.tables == tables
    ]
    if not choices:
        raise ArgumentError(*_impossible(bits, radius, tables, blocks, lead))
    if tables is None and blocks is None:
        choices = [each for each in choices if each.tables <= _MOST_UNASKED] or choices
    fitting = [
        each for each in choices if memory is None or each.bytes(count, compressed) <= memory
    ]
    if not fitting:
        least = min(choice.bytes(count, compressed) for choice in choices)
        raise ArgumentError(
            Said("memory"),
            f" is {memory} bytes; the tables of {count} signatures of {bits} bits for a "
            f"radius of {radius} take at least {least}",
        )
    return min(fitting, key=lambda each: (each.usual_cost(count, compressed), each.tables))


def much_quicker(choice: BlockChoice, count: int, radius: int) -> BlockChoice | None:
    """Return what should be many times as quick with no more tables, if there is such a choice."""
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
        return (
            Said("radius"),
            f" is {radius} and ",
            Said("blocks"),
            f" is {blocks}: every block may have a difference; expected at least {radius + 1}",
            " blocks",
        )
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
