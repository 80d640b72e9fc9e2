"""What groups around majority centres would cost for a question."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from lookalike.indexes.clusters.groups import MOST_WORK, group_count
from lookalike.indexes.clusters.majority import LARGE, PER_CENTRE, ROUNDS
from lookalike.indexes.clusters.probing import least_probe
from lookalike.planning.machine import MachineCosts
from lookalike.planning.question import Option, Question

__all__ = ["BESIDE", "cluster_bytes", "cluster_options", "rows_assigned"]

BRANCHES = 9
"""Branches of a tree of centres that a signature is compared with, each with the root of all."""

_PARTS = (1 / 8, 1 / 4, 1 / 2, 1, 2, 4)
"""Of the usual number of groups that are read."""
BESIDE = 12
"""Bytes beside each signature: its id, and how far it is from the centre."""


def cluster_bytes(count: int, width: int, groups: int) -> int:
    """Return what an index takes, signatures included."""
    return count * (width + BESIDE) + groups * (width + 8)


def rows_assigned(count: int, made: int, groups: int) -> float:
    """Return how often a signature is given to a centre while groups are made and split."""
    trained = min(count, PER_CENTRE * made) * ROUNDS
    split = min(MOST_WORK, max(0.0, groups / made - 1.1))
    return trained + count * (1 + split)


def cluster_options(question: Question, costs: MachineCosts) -> Iterator[Option]:
    """Yield more and more groups that are read, for the nearest.

    Only where signatures were given: fair bits have no groups. How many signatures groups have
    that are near to queries is counted in a trial: more than others, where queries are as the
    signatures are.
    """
    if question.k is None or question.sample is None:
        return
    count, width = question.count, question.width
    made = group_count(count)
    option = Option(
        "clusters",
        0.0,
        0.0,
        0,
        None,
        {"clusters": made},
        {"probe": 1},
    )
    trial = question.sample.trial(question)
    tried = question.recall < 1 and trial.lacks("clusters") is None
    groups = trial.groups(option) if tried else made
    centres = made if made <= LARGE else BRANCHES * round(math.sqrt(made))
    row = costs.grouped_row + centres * (costs.grouped_centre + width * costs.scanned_byte)
    build = 1e-9 * rows_assigned(count, made, groups) * row
    for part in _PARTS:
        probe = max(1, min(groups, round(part * least_probe(groups))))
        option = replace(option, settings={"probe": probe})
        rows = count * (trial.tried(option).compared if tried else probe / groups)
        # Queries of a batch share what is read of a group.
        sharing = max(1.0, question.batch * probe / groups)
        byte = max(costs.scanned_byte, costs.reading_byte / sharing)
        time = costs.query + groups * width * costs.scanned_byte + rows * width * byte
        time += groups * costs.centre + probe * costs.group
        yield replace(
            option,
            microseconds=1e-3 * time,
            build_seconds=build,
            memory_bytes=cluster_bytes(count, width, groups),
        )
