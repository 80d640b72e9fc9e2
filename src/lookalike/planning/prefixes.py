"""What orders by random permutations of the bits would cost for a question."""

from __future__ import annotations

import math
from collections.abc import Iterator

from lookalike.indexes.tables.prefixes import KEY_BITS, examined
from lookalike.indexes.tables.sorted_table import header_width, part_count
from lookalike.planning.machine import MachineCosts
from lookalike.planning.question import Option, Question
from lookalike.planning.scan import scan_cost

__all__ = ["prefix_options", "share_examined"]

_ORDERS = (4, 8, 16, 32, 64)
_KEY_BIT = 0.7
"""Nanoseconds that a bit of a permuted key takes."""


def prefix_options(question: Question, costs: MachineCosts) -> Iterator[Option]:
    """Yield more and more orders, for the nearest."""
    if question.k is None:
        return
    count, examine = question.count, min(examined(question.k), question.count)
    header = header_width(count)
    obstacle = None
    if part_count(count) > 1:
        obstacle = "an order has at most 4,294,967,295 rows: make several and search them as one"
    for orders in _ORDERS:
        beside = orders * (12 * count + 4 * ((1 << header) + 1))
        expected = 1.0  # with a sample, a trial will tell
        if question.sample is None:
            expected = share_examined(question.bits, orders, count, examine, question.bits // 10)
        # Where a prefix begins, then the keys around it: each has to be known for the next.
        place = costs.bucket + _KEY_BIT * KEY_BITS + 3 * costs.missing_wait(beside)
        row = costs.top_candidate + question.lines * costs.missing(question.signature_bytes)
        time = costs.top_query + orders * place + examine * row
        key = costs.table_build + _KEY_BIT * KEY_BITS + 2 * costs.missing(8 * count)
        yield Option(
            "prefix",
            1e-3 * min(time, scan_cost(question, costs)),
            1e-9 * orders * count * key,
            question.signature_bytes + beside,
            1.0 if examine == count else None,
            {"orders": orders},
            obstacle=obstacle,
            expected=expected,
        )


def share_examined(bits: int, orders: int, count: int, examine: int, distance: int) -> float:
    """Return which share of signatures at a distance is examined, for fair and independent bits.

    Those that agree by chance in a prefix of that length, in all orders together, are as many as
    are examined; one at the distance agrees in it if none of its differences is there.
    """
    length = min(max(0.0, math.log2(orders * count / examine)), bits, KEY_BITS)
    if length > bits - distance:
        return 0.0
    agrees = math.exp(
        math.lgamma(bits - distance + 1)
        - math.lgamma(bits - distance - length + 1)
        - math.lgamma(bits + 1)
        + math.lgamma(bits - length + 1)
    )
    return 1 - (1 - min(1.0, agrees)) ** orders
