"""What slices of every width would cost for a question."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from lookalike import _native
from lookalike.indexes.slices.lists import MOST_SLICE_BITS, list_bytes, number_bytes, slice_width
from lookalike.indexes.slices.search import usual_rerank
from lookalike.planning.machine import MachineCosts
from lookalike.planning.question import Option, Question
from lookalike.planning.scan import match_cost, scan_cost

__all__ = ["share_found", "slice_options"]

_SWEPT_SHARE = 1 / 128
"""Where postings are more than this share of a collection, all rows get a score."""
_MOST_EXPAND = 4
_AROUND = 4
"""So many narrower and wider slices than the usual ones are weighed with a sample."""
_MOST_BITS = 2**16 - 1


def slice_options(question: Question, costs: MachineCosts) -> Iterator[Option]:
    """Yield slices of every width, within a radius or for the nearest.

    Slices with more than about two values for each signature are left out: most lists are empty.
    """
    obstacle = None
    if question.bits > _MOST_BITS:
        obstacle = f"signatures have at most {_MOST_BITS} bits there"
    widest = max(4, math.ceil(math.log2(question.count)) + 1)
    widest = min(widest, MOST_SLICE_BITS, question.bits)
    least = 4
    if question.sample is not None:  # which takes a while for each
        usual = slice_width(question.count, question.bits)
        least, widest = max(4, usual - _AROUND), min(widest, usual + _AROUND)
    for slice_bits in range(min(least, widest), widest + 1):
        widths = _native.slice_widths(question.bits, slice_bits)
        memory = question.signature_bytes + list_bytes(question.count, question.bits, slice_bits)
        entry = costs.slice_build + costs.missing(4 * question.count)
        option = Option(
            "slices",
            0.0,
            1e-9 * question.count * len(widths) * entry,
            memory,
            parameters={"slice_bits": slice_bits},
            obstacle=obstacle,
        )
        if question.radius is not None:
            time = _within_cost(question, question.radius, slice_bits, costs)
            yield replace(option, microseconds=1e-3 * time)
            continue
        rerank = usual_rerank(question.k or 1)
        for expand, steps in enumerate(_nearest_steps(question, slice_bits, rerank)):
            yield replace(
                option,
                microseconds=1e-3 * _top_cost(question, widths, steps, rerank, costs),
                recall=None,
                settings={"expand": expand},
                expected=steps.recall,
            )


def _within_cost(question: Question, radius: int, slice_bits: int, costs: MachineCosts) -> float:
    """Return the nanoseconds of one query within a radius: lists and their signatures."""
    matches = match_cost(question, costs)
    scan = scan_cost(question, costs) + matches  # which are put to those that lists have found
    if question.sample is None:
        every = [
            _native.expected_work(question.bits, slice_bits, question.count, radius, question.batch)
        ]
    else:
        every = question.sample.within(question, radius, slice_bits)
    widths = _native.slice_widths(question.bits, slice_bits)
    postings = question.count * len(widths)
    number = number_bytes(question.count)
    looked_up = costs.within_list + costs.missing(number * sum(1 << width for width in widths))
    row = costs.row + costs.row_byte * question.width
    row += question.lines * costs.missing(question.signature_bytes)
    if _native.has_sketches(question.bits):
        # Those of a list are read in order; the posting of one that is near is somewhere else.
        looked_up += costs.missing(2 * postings)
        row += costs.missing(number * postings)
        entry = costs.within_sketch + 2 * costs.reading_byte
    else:
        looked_up += costs.missing(number * postings)
        entry = 0.0
    known = costs.query + matches
    total = 0.0
    for work in every:  # None: the index scans, too
        lists, entries, compared = work or (math.inf, 0.0, 0.0)
        total += min(known + lists * looked_up + entries * entry + compared * row, scan)
    return total / len(every)


class _Nearest(NamedTuple):
    """Steps of a search for nearest neighbours, and the share that it finds."""

    lists: float
    postings: float
    candidates: float
    recall: float


def _nearest_steps(question: Question, slice_bits: int, rerank: int) -> list[_Nearest]:
    """Return the steps for each number of bits that may differ, from 0 on."""
    count, widths = question.count, _native.slice_widths(question.bits, slice_bits)
    slices, most = Counter(widths), min(_MOST_EXPAND, slice_bits)
    lists = [
        sum(number * _native.lists_near(width, expand) for width, number in slices.items())
        for expand in range(most + 1)
    ]
    if question.sample is not None:
        measured = question.sample.nearest(question, slice_bits, most, rerank)
        return [_Nearest(number, *each) for number, each in zip(lists, measured, strict=True)]
    steps = []
    for expand, number in enumerate(lists):
        shares = {
            width: min(_native.lists_near(width, expand) / 2**width, 1 - 1e-12) for width in slices
        }
        postings = count * sum(slices[width] * share for width, share in shares.items())
        missed = sum(slices[width] * math.log1p(-share) for width, share in shares.items())
        found = share_found(question.bits, widths, expand, question.bits // 10)
        steps.append(_Nearest(number, postings, count * -math.expm1(missed), found))
    return steps


def _top_cost(
    question: Question, widths: list[int], steps: _Nearest, rerank: int, costs: MachineCosts
) -> float:
    """Return the nanoseconds of one query for nearest neighbours."""
    count = question.count
    reranked = min(rerank, steps.candidates)
    numbers = sum(1 << width for width in widths) + count * len(widths)
    list_memory = number_bytes(count) * numbers
    cost: float = costs.top_query
    cost += steps.lists * (costs.top_list + 2 * costs.missing(list_memory))
    cost += steps.postings * costs.top_posting
    # A batch is re-ranked in the order of rows: at worst it reads all of them, once.
    fetched = reranked * question.lines * costs.missing(question.signature_bytes)
    read = costs.reading_byte * question.signature_bytes / question.batch
    cost += reranked * costs.top_candidate + min(fetched, read)
    if steps.postings > count * _SWEPT_SHARE:  # they are added up in a table, which is then read
        cost += steps.postings * costs.missing(2 * count) + costs.reading_byte * 2 * count
    return cost


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
