"""What each sort of index would cost for a question: the options that `plan` weighs.

Times are for one thread and queries asked in batches, of signatures whose bits are fair and
independent. Real ones have clusters: lists and runs are then longer for some queries.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from lookalike.indexes.tables.block_choice import MOST_TABLES, BlockChoice
from lookalike.indexes.tables.sorted_table import MOST_ROWS, header_width
from lookalike.planning.equations import (
    StepCosts,
    block_cost,
    flip_cost,
    most_flips,
    pushes,
)
from lookalike.planning.machine import MachineCosts

__all__ = [
    "BATCH",
    "MOST_ORDERED",
    "Option",
    "Question",
    "block_options",
    "flip_options",
    "flips_expected",
    "scan_cost",
    "scan_option",
]

BATCH = 1024
"""Queries that are asked at once, unless there are fewer in all."""
MOST_ORDERED = 64
"""So many flips are put in order without a heap."""
_FEWER_HEADER_BITS = 5
_ASKED_BYTES = 192
_SHORT_BUCKET = 28
"""Buckets up to so many 64-bit signatures are compared for many queries together."""
_FLIP_GROWTH = (
    (0.0, 0.0),
    (0.5, 0.8),
    (0.8, 1.8),
    (0.9, 2.5),
    (0.95, 3.1),
    (0.99, 4.0),
    (0.999, 5.2),
)
"""(recall, a): that share of matches is found with exp(a · radius · header bits / bits) flips.

Fitted to near-duplicates among 67,000 package descriptions and 120,000 abstracts, radius 1 to 6,
headers of 8 to 26 bits: off by less than half of what it says for a radius from 2 up.
"""


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be searched for, and in what."""

    count: int
    bits: int
    radius: int | None
    k: int | None
    recall: float
    memory: int | None = None
    queries: int | None = None

    @property
    def width(self) -> int:
        """Bytes of a signature."""
        return self.bits // 8

    @property
    def signature_bytes(self) -> int:
        """Bytes of all signatures."""
        return self.count * self.width

    @property
    def batch(self) -> int:
        """Queries that are asked at once."""
        return min(BATCH, self.queries or BATCH)


@dataclass(frozen=True, slots=True)
class Option:
    """One way to answer, and what it is expected to cost."""

    index: str
    """ "scan", "slices", "blocks" or "flips"."""
    microseconds: float
    """For one query."""
    build_seconds: float
    memory_bytes: int
    """Signatures included."""
    recall: float = 1.0
    """The share expected to be found; 1 only if the index guarantees it."""
    parameters: Mapping[str, int] = field(default_factory=dict)
    """What the index is built with."""
    settings: Mapping[str, float] = field(default_factory=dict)
    """What it is searched with."""
    remark: str = ""
    """What else there is to know."""
    obstacle: str | None = None
    """Why it cannot be chosen."""

    @property
    def exact(self) -> bool:
        """Whether everything is found, and known to be."""
        return self.recall == 1.0

    def total_seconds(self, queries: int | None) -> float:
        """Return what counts in the choice: building and all queries, or one if there is no end."""
        if queries is None:
            return 1e-6 * self.microseconds
        return self.build_seconds + 1e-6 * self.microseconds * queries


def scan_option(question: Question, costs: MachineCosts) -> Option:
    """Return the scan: every pair, or reading everything if few queries share that."""
    return Option("scan", 1e-3 * scan_cost(question, costs), 0.0, question.signature_bytes)


def scan_cost(question: Question, costs: MachineCosts) -> float:
    """Return the nanoseconds of one query of a scan."""
    comparing = question.count * (costs.pair + costs.pair_byte * question.width)
    reading = costs.reading_byte * question.signature_bytes / question.batch
    cost = costs.scan_query + max(comparing, reading)
    if question.k is not None:
        cost += costs.nearest * pushes(question.count, question.k)
    return cost


def block_options(question: Question, costs: MachineCosts) -> Iterator[Option]:
    """Yield permuted sorted tables with 1, 2, ... leading blocks; radius + lead blocks are best.

    Each once with copies of the signatures in every table, and once compressed, with row numbers.
    """
    radius, count = question.radius, question.count
    if radius is None or radius >= question.bits or count > MOST_ROWS:
        return
    for lead in range(1, question.bits - radius + 1):
        choice = BlockChoice(question.bits, radius + lead, lead)
        if choice.tables > MOST_TABLES:
            return
        header = choice.header_bits(count)
        build = 1e-9 * count * choice.tables * (costs.table_build + _scattered(question, costs))
        bucket = count / (1 << header)
        for compressed in (False, True):
            memory = choice.bytes(count, compressed)
            steps = _table_costs(question, costs, bucket, memory)
            # Many queries are asked together where buckets are short.
            together = question.bits == 64 and bucket <= _SHORT_BUCKET and not compressed
            looked_up = costs.block_table if together else costs.block_stream
            # A signature that is elsewhere takes reads at random places.
            far = costs.block_fetch_accesses * costs.missing(question.signature_bytes)
            fetch = costs.block_fetch + far
            steps = replace(
                steps,
                permute=looked_up + steps.permute,
                scan=steps.scan + (fetch if compressed else 0.0),
            )
            time = costs.block_query + block_cost(
                math.log2(count),
                question.bits,
                choice.blocks,
                lead,
                steps,
                accesses=costs.block_accesses,
                header_bits=header,
            )
            parameters = {"radius": radius, "blocks": choice.blocks, "lead": lead}
            if compressed:
                parameters["compressed"] = 1
            remark = f"{choice.tables} table{'' if choice.tables == 1 else 's'}"
            yield Option("blocks", 1e-3 * time, build, memory, parameters=parameters, remark=remark)
        if header == header_width(count):
            return  # (15): more leading bits than signatures tell apart only add tables


def flip_options(question: Question, costs: MachineCosts) -> Iterator[Option]:
    """Yield one sorted table with headers of log2(n) bits and fewer, and flips of them."""
    radius, count = question.radius, question.count
    if radius is None or count > MOST_ROWS:
        return
    recall = min(question.recall, 0.95) if question.recall == 1 else question.recall
    widest = min(header_width(count), question.bits)
    for header in range(widest, max(0, widest - _FEWER_HEADER_BITS) - 1, -1):
        flips = flips_expected(question.bits, radius, header, recall)
        memory = count * (question.width + 4) + (4 << header)
        steps = _table_costs(question, costs, count / (1 << header), memory)
        # The query's own header is looked up first; flips follow.
        many = flips > MOST_ORDERED
        looked_up = replace(
            steps,
            access=costs.missing(4 << header)
            + steps.access
            + steps.permute
            + (0.0 if many else costs.flip_set),
            heap=costs.flip_heap if many else 0.0,
        )
        time = costs.flip_query + flip_cost(math.log2(count), header, 1 + flips, looked_up)
        yield Option(
            "flips",
            1e-3 * time,
            1e-9 * count * (costs.table_build + _scattered(question, costs)),
            memory,
            recall,
            {"header_bits": header},
            {"recall": recall},
            f"about {flips} flip{'' if flips == 1 else 's'}, needs weights",
        )


def flips_expected(bits: int, radius: int, header_bits: int, recall: float) -> int:
    """Return how many flips find a share of near-duplicates, as measured on text (k(t), (20))."""
    shares, growths = zip(*_FLIP_GROWTH, strict=True)
    misses = [-math.log1p(-share) for share in shares]
    growth = float(np.interp(-math.log1p(-min(recall, shares[-1])), misses, growths))
    flips = math.exp(growth * radius * header_bits / bits)
    return min(max(1, round(flips)), max(1, most_flips(header_bits, radius)))


def _table_costs(
    question: Question, costs: MachineCosts, bucket: float, memory: float
) -> StepCosts:
    """Return the steps of looking up sorted tables that take so much memory in all.

    Where a bucket begins is asked for in time, and its first lines of 64 bytes, of which two come
    as one. A longer one is waited for, until the processor notices that it is read in order, and
    then read. Those of signatures that are no single words turned out to be waited for as well.
    """
    words, reading = math.ceil(question.width / 8), costs.reading_byte * question.width
    missing = costs.missing(memory)
    share = min(1.0, missing / max(costs.missing(costs.access[-1][0]), 1e-9))
    long = bucket * question.width > _ASKED_BYTES
    waits = 0.5 * long + (question.bits != 64)
    short = question.bits == 64 and bucket <= _SHORT_BUCKET
    word = costs.block_word if short else costs.block_stream_word
    return StepCosts(
        access=missing,
        permute=share * costs.waiting * waits,
        scan=words * word + (share * reading if long else missing * question.width / 128),
    )


def _scattered(question: Question, costs: MachineCosts) -> float:
    """Return what writing a signature to its place in a table costs more than in the cache."""
    return 2 * costs.missing(question.signature_bytes)
