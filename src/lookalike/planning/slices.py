"""What slices of every width would cost for a question."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lookalike import _native
from lookalike.indexes.slices.width import MOST_SLICE_BITS, list_bytes
from lookalike.planning.equations import lists_near, share_near
from lookalike.planning.machine import MachineCosts
from lookalike.planning.tables import Option, Question, scan_cost

__all__ = ["SliceWork", "share_found", "slice_options", "slice_work"]

_MOST_EXPAND = 4
_RERANK = 1000
_CANDIDATES_SHARE = 32
"""Where more than this part of a collection are postings, all scores are looked at."""

# How native/search/slice_within.cpp weighs a list and a signature when it shares out thresholds.
_LIST_WEIGHT = 12.0
_ROW_WEIGHT, _BYTE_WEIGHT = 6.0, 0.12
_SKETCH_WEIGHT, _SKETCH_BITS = 0.3, 16
_SCAN_WEIGHT = 0.03
"""A byte of the collection, if all of it is scanned in place of that."""


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
            time = 1e-3 * _slice_nearest_cost(question, widths, expand, costs)
            # Below 1 even where it is so near that it rounds to 1: nothing is proven.
            found = min(share_found(question.bits, widths, expand, question.bits // 10), 1 - 1e-9)
            settings = {"expand": expand}
            yield Option("slices", time, build, memory, found, parameters, settings)


def _slice_within_cost(question: Question, widths: list[int], costs: MachineCosts) -> float:
    """Return the nanoseconds of one query within a radius: lists and their signatures."""
    sketches = _native.has_sketches(question.bits)
    work = slice_work(question.count, question.width, widths, question.radius or 0, sketches)
    if not math.isfinite(work.lists):
        return scan_cost(question, costs)
    offsets = 4 * sum(1 << width for width in widths)
    postings = question.count * len(widths)
    lines = math.ceil(question.width / 64)
    compared = costs.within_row + costs.within_byte * question.width
    compared += lines * costs.missing(question.signature_bytes)
    looked_up = costs.within_list + costs.missing(offsets)
    if sketches:
        # Those of a list are read in order; the posting of one that is near is somewhere else.
        looked_up += costs.missing(2 * postings)
        compared += costs.missing(4 * postings)
        looked_at = costs.within_sketch + 2 * costs.reading_byte
    else:
        looked_up += costs.missing(4 * postings)
        looked_at = 0.0
    cost = costs.within_query + work.lists * looked_up
    cost += work.postings * looked_at + work.compared * compared
    return min(cost, scan_cost(question, costs))  # the index scans where that is cheaper


@dataclass(frozen=True, slots=True)
class SliceWork:
    """What a search within a radius does for one query."""

    lists: float
    postings: float
    compared: float
    """Signatures of these: all, or those whose sketches are near."""


def slice_work(count: int, width: int, widths: list[int], radius: int, sketches: bool) -> SliceWork:
    """Return how many lists are read, their entries, and how many signatures are compared.

    Thresholds of the positions are raised radius + 1 times in all, always where that is cheapest,
    as the index does it. Everything is inf where it scans in place of that.
    """
    row = _ROW_WEIGHT + _BYTE_WEIGHT * width
    if sketches:
        row = _SKETCH_WEIGHT + 2 * row * share_near(_SKETCH_BITS, radius)
    scanning = _SCAN_WEIGHT * width * count

    def step(bits: int, ones: int) -> tuple[float, int, int]:
        """Return what one more differing bit weighs in a slice of so many bits."""
        lists = math.comb(bits, ones) if ones <= bits else math.inf
        return lists * (_LIST_WEIGHT + count / 2**bits * row), bits, ones

    slices = Counter(widths)
    steps = [step(bits, 0) for bits in slices]
    heapq.heapify(steps)
    left, weight, all_lists, postings, compared = radius + 1, 0.0, 0.0, 0.0, 0.0
    while left:
        each, bits, ones = steps[0]
        raised = min(left, slices[bits])
        weight += raised * each
        if weight > scanning:
            return SliceWork(math.inf, math.inf, math.inf)
        lists = raised * math.comb(bits, ones)
        rows = lists * count / 2**bits
        all_lists += lists
        postings += rows
        compared += rows * (share_near(_SKETCH_BITS, radius - ones) if sketches else 1.0)
        left -= raised
        heapq.heapreplace(steps, step(bits, ones + 1))
    return SliceWork(all_lists, postings, compared)


def _slice_nearest_cost(
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
