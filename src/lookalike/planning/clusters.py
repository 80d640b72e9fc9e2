"""What groups around majority centres would cost for a question."""

from __future__ import annotations

from collections.abc import Iterator

from lookalike.indexes.clusters.groups import group_count
from lookalike.indexes.clusters.majority import PER_CENTRE, ROUNDS
from lookalike.indexes.clusters.probing import least_probe
from lookalike.planning.machine import MachineCosts
from lookalike.planning.question import Option, Question
from lookalike.planning.scan import pushes, scan_cost

__all__ = ["BESIDE", "cluster_bytes", "cluster_options"]

_PARTS = (1 / 8, 1 / 4, 1 / 2, 1, 2, 4)
"""Of the usual number of groups that are read."""
BESIDE = 12
"""Bytes beside each signature: its id, and how far it is from the centre."""


def cluster_bytes(count: int, width: int, groups: int) -> int:
    """Return what an index takes, signatures included."""
    return count * (width + BESIDE) + groups * (width + 8)


def cluster_options(question: Question, costs: MachineCosts) -> Iterator[Option]:
    """Yield more and more groups that are read, for the nearest.

    Only where signatures were given: fair bits have no groups.
    """
    if question.k is None or question.sample is None:
        return
    count, width = question.count, question.width
    made = group_count(count)
    split, reached = question.sample.clusters(question)
    groups = round(made * split)
    trained = min(count, PER_CENTRE * made) * made * ROUNDS
    build = 1e-9 * width * costs.scanned_byte * (trained + count * made)
    for part in _PARTS:
        probe = max(1, min(groups, round(part * least_probe(groups))))
        share, recall = reached(probe / groups)
        rows = share * count
        # Queries of a batch share what is read of a group.
        sharing = max(1.0, question.batch * probe / groups)
        byte = max(costs.scanned_byte, costs.reading_byte / sharing)
        time = costs.query + groups * width * costs.scanned_byte + rows * width * byte
        time += costs.nearest * pushes(max(1, round(rows)), question.k)
        yield Option(
            "clusters",
            1e-3 * min(time, scan_cost(question, costs)),
            build,
            cluster_bytes(count, width, groups),
            min(recall, 1 - 1e-9),
            {"clusters": made},
            {"probe": probe},
        )
