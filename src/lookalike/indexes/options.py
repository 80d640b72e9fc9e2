"""What each sort of index would cost for a question: the options that `plan` weighs.

Times are for one thread and queries asked in batches, of signatures whose bits are fair and
independent. Real ones have clusters: lists and runs are then longer for some queries.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from lookalike import _native
from lookalike.indexes.block_choice import MOST_TABLES, BlockChoice
from lookalike.indexes.cost_model import (
    StepCosts,
    block_cost,
    flip_cost,
    lists_near,
    most_flips,
    pushes,
    share_near,
)
from lookalike.indexes.costs import MachineCosts
from lookalike.indexes.slice_width import MOST_SLICE_BITS, list_bytes
from lookalike.indexes.sorted_table import MOST_ROWS, header_width

__all__ = [
    "BATCH",
    "MOST_ORDERED",
    "Option",
    "Question",
    "block_options",
    "flip_options",
    "flips_expected",
    "scan_option",
    "share_found",
    "slice_options",
    "slice_work",
]

BATCH = 1024
"""Queries that are asked at once, unless there are fewer in all."""
_MOST_EXPAND = 4
_RERANK = 1000
_CANDIDATES_SHARE = 32
"""Where more than this part of a collection are postings, all scores are looked at."""

MOST_ORDERED = 64
"""So many flips are put in order without a heap."""
_FEWER_HEADER_BITS = 5
_ASKED_BYTES = 96
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

# How native/search/slice_within.cpp weighs a list and a signature when it shares out thresholds.
_LIST_WEIGHT = 12.0
_ROW_WEIGHT, _BYTE_WEIGHT = 6.0, 0.12
_SCAN_WEIGHT = 0.03
"""A byte of the collection, if all of it is scanned in place of that."""


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


def slice_options(question: Question, costs: MachineCosts) -> Iterator[Option]:
    """Yield slices of every width, within a radius or for the nearest.

    Slices with more than about two values for each signature are left out: most lists are empty.
    """
    if question.bits >= 2**16:
        return  # more than SliceIndex takes
    widest = max(4, math.ceil(math.log2(question.count)) + 1)
    for slice_bits in range(4, min(widest, MOST_SLICE_BITS, question.bits) + 1):
        widths = _native.slice_widths(question.bits, slice_bits)
        memory = question.signature_bytes + list_bytes(question.count, question.bits, slice_bits)
        postings = question.count * len(widths)
        entry = costs.slice_build + costs.missing(4 * question.count)
        build = 1e-9 * postings * entry
        parameters = {"slice_bits": slice_bits}
        if question.radius is not None:
            time = 1e-3 * _slice_within_cost(question, widths, costs)
            yield Option("slices", time, build, memory, parameters=parameters)
            continue
        for expand in range(min(_MOST_EXPAND, slice_bits) + 1):
            time = 1e-3 * _slice_top_cost(question, widths, expand, costs)
            # Below 1 even where it is so near that it rounds to 1: nothing is proven.
            found = min(share_found(question.bits, widths, expand, question.bits // 10), 1 - 1e-9)
            settings = {"expand": expand}
            yield Option("slices", time, build, memory, found, parameters, settings)


def _slice_within_cost(question: Question, widths: list[int], costs: MachineCosts) -> float:
    """Return the nanoseconds of one query within a radius: lists and their signatures."""
    lists, rows = slice_work(question.count, question.width, widths, question.radius or 0)
    if not math.isfinite(lists):
        return scan_cost(question, costs)
    offsets = 4 * sum(1 << width for width in widths)
    postings = 4 * question.count * len(widths)
    looked_up = costs.within_list + costs.missing(offsets) + costs.missing(postings)
    lines = math.ceil(question.width / 64)
    compared = costs.within_row + costs.within_byte * question.width
    compared += lines * costs.missing(question.signature_bytes)
    cost = costs.within_query + lists * looked_up + rows * compared
    return min(cost, scan_cost(question, costs))  # the index scans where that is cheaper


def slice_work(count: int, width: int, widths: list[int], radius: int) -> tuple[float, float]:
    """Return how many lists are read, and how many signatures of them compared.

    Thresholds of the positions are raised radius + 1 times in all, always where that is cheapest,
    as the index does it. (inf, inf) where it scans in place of that.
    """
    row = _ROW_WEIGHT + _BYTE_WEIGHT * width
    scanning = _SCAN_WEIGHT * width * count

    def step(bits: int, ones: int) -> tuple[float, int, int]:
        """Return what one more differing bit weighs in a slice of so many bits."""
        lists = math.comb(bits, ones) if ones <= bits else math.inf
        return lists * (_LIST_WEIGHT + count / 2**bits * row), bits, ones

    slices = Counter(widths)
    steps = [step(bits, 0) for bits in slices]
    heapq.heapify(steps)
    left, weight, total_lists, total_rows = radius + 1, 0.0, 0.0, 0.0
    while left:
        each, bits, ones = steps[0]
        raised = min(left, slices[bits])
        weight += raised * each
        if weight > scanning:
            return math.inf, math.inf
        lists = raised * math.comb(bits, ones)
        total_lists += lists
        total_rows += lists * count / 2**bits
        left -= raised
        heapq.heapreplace(steps, step(bits, ones + 1))
    return total_lists, total_rows


def _slice_top_cost(
    question: Question, widths: list[int], expand: int, costs: MachineCosts
) -> float:
    """Return the nanoseconds of one query for nearest neighbours."""
    slices = Counter(widths)
    lists = sum(number * lists_near(width, expand) for width, number in slices.items())
    shares = {width: min(share_near(width, expand), 1 - 1e-12) for width in slices}
    postings = question.count * sum(slices[width] * share for width, share in shares.items())
    missed = sum(slices[width] * math.log1p(-share) for width, share in shares.items())
    candidates = question.count * -math.expm1(missed)
    reranked = min(max(_RERANK, 10 * (question.k or 1)), candidates)
    swept = postings > question.count / _CANDIDATES_SHARE
    list_memory = 4 * sum(1 << width for width in widths) + 4 * question.count * len(widths)
    lines = math.ceil(question.width / 64)
    return (
        costs.top_query
        + lists * (costs.top_list + 2 * costs.missing(list_memory))
        + postings * (costs.top_posting + costs.missing(2 * question.count))
        + (reranked if swept else candidates) * costs.top_candidate
        + reranked * lines * costs.missing(question.signature_bytes)
        + (question.count * costs.top_row if swept else 0.0)
    )


def share_found(bits: int, widths: list[int], expand: int, distance: int) -> float:
    """Return which share of signatures at a distance has a slice with at most `expand` errors.

    Exactly, for errors at random places. With each bit wrong by chance, those that have more in
    every slice and `distance` in all are counted slice by slice; given that total, all places are
    equally likely, whatever the chance was.
    """
    if not 0 < distance < bits:
        return 1.0 if distance <= 0 else float(min(widths) <= expand)
    chance = distance / bits
    # Numbers of errors are the coefficients of a product of polynomials, one for each slice.
    size = 1 << bits.bit_length()
    product = np.ones(size // 2 + 1, complex)
    for width, number in Counter(widths).items():
        ones = np.arange(width + 1)
        places = np.array([math.comb(width, one) for one in range(width + 1)], float)
        errors = places * chance**ones * (1 - chance) ** (width - ones)
        errors[: expand + 1] = 0
        product *= np.fft.rfft(errors, size) ** number
    missed = np.fft.irfft(product, size)[distance]
    total = math.exp(
        math.lgamma(bits + 1)
        - math.lgamma(distance + 1)
        - math.lgamma(bits - distance + 1)
        + distance * math.log(chance)
        + (bits - distance) * math.log1p(-chance)
    )
    return float(np.clip(1 - missed / total, 0.0, 1.0))


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
        looked_up = costs.block_table + (costs.block_wide if question.bits != 64 else 0.0)
        for compressed in (False, True):
            memory = choice.bytes(count, compressed)
            steps = _table_costs(question, costs, count / (1 << header), memory)
            # A signature that is elsewhere is a read at a random place.
            fetch = costs.block_fetch + costs.missing(question.signature_bytes)
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
            access=2 * steps.access + steps.permute + (0.0 if many else costs.flip_set),
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

    Where a bucket begins is asked for in time, and its first two lines of 64 bytes. A longer one
    is waited for, until the processor notices that it is read in order, and then read. Those of
    signatures that are no single words turned out to be waited for as well.
    """
    words, reading = math.ceil(question.width / 8), costs.reading_byte * question.width
    missing = costs.missing(memory)
    share = min(1.0, missing / max(costs.missing(costs.access[-1][0]), 1e-9))
    long = bucket * question.width > _ASKED_BYTES
    waits = 0.5 * long + (question.bits != 64)
    return StepCosts(
        access=missing,
        permute=share * costs.waiting * waits,
        scan=words * costs.block_word + (share * reading if long else 0.0),
    )


def _scattered(question: Question, costs: MachineCosts) -> float:
    """Return what writing a signature to its place in a table costs more than in the cache."""
    return 2 * costs.missing(question.signature_bytes)
