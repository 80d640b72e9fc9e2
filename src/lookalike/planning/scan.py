"""What a scan would cost for a question."""

from __future__ import annotations

import math

from lookalike.planning.machine import MachineCosts
from lookalike.planning.question import Option, Question

__all__ = ["match_cost", "pushes", "scan_cost", "scan_option"]


def scan_option(question: Question, costs: MachineCosts) -> Option:
    """Return the scan: every pair, or reading everything if few queries share that."""
    return Option("scan", 1e-3 * scan_cost(question, costs), 0.0, question.signature_bytes)


def scan_cost(question: Question, costs: MachineCosts) -> float:
    """Return the nanoseconds of one query of a scan."""
    byte = max(costs.scanned_byte, costs.reading_byte / question.batch)
    cost = costs.query + question.signature_bytes * byte
    if question.k is not None:
        cost += costs.nearest * pushes(question.count, question.k)
    return cost + match_cost(question, costs)


def match_cost(question: Question, costs: MachineCosts) -> float:
    """Return the nanoseconds of what a query finds within the radius; nothing if unknown."""
    if question.radius is None or question.sample is None:
        return 0.0
    return costs.match * question.sample.matches(question, question.radius)


def pushes(count: int, k: int) -> float:
    """Return how many of `count` in random order are among the k nearest when they come."""
    most = min(k, count)
    return most * (1 + math.log(max(1.0, count / most))) if most else 0.0
