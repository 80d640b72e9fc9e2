"""What sorted tables, by blocks or by flips, would cost for a question.

How many steps there are is for the indexes to say; see `indexes/tables/steps.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from lookalike.indexes.tables.blocks import MOST_TABLES, BlockChoice
from lookalike.indexes.tables.flip_sets import all_sets, upper_bits
from lookalike.indexes.tables.sorted_table import TableSteps, header_width, part_count
from lookalike.planning.machine import MachineCosts
from lookalike.planning.question import Option, Question
from lookalike.planning.scan import match_cost, scan_cost

__all__ = ["block_options", "flip_options"]

_FEWER_HEADER_BITS = 5
_ACCESSES = 2
"""Reads at random places that a bucket takes: where it begins, and what is there."""
_TWO_LINES = 128
"""Bytes of a bucket that come as one."""
_ASKED_BYTES = 192
"""So much of a bucket is asked for in time."""


def block_options(question: Question, costs: MachineCosts) -> Iterator[Option]:
    """Yield permuted sorted tables with 1, 2, ... leading blocks; radius + lead blocks are best.

    Each once with copies of the signatures in every table, and once compressed, with row numbers.
    """
    radius = question.radius
    if radius is None or radius >= question.bits:
        return  # not what tables are for, or everything is within the radius
    yield from _blocks(question, radius, costs)


def flip_options(question: Question, costs: MachineCosts) -> Iterator[Option]:
    """Yield one sorted table with headers of log2(n) bits and fewer, and all flips of them.

    With the weights of queries fewer flips find nearly all. How many that takes, and what share
    they find, depends on the weights, which a plan does not see: `tune_flips` measures it.
    """
    if question.radius is None:
        return
    yield from _flips(question, question.radius, costs)


def _blocks(question: Question, radius: int, costs: MachineCosts) -> Iterator[Option]:
    count = question.count
    for lead in range(1, question.bits - radius + 1):
        choice = BlockChoice(question.bits, radius + lead, lead)
        if choice.tables > MOST_TABLES and lead > 1:
            return
        steps = choice.steps(count)
        if question.sample is not None:
            rows = question.sample.bucket_rows(question, choice.headers(count))
            steps = replace(steps, rows=max(steps.rows, rows))
        for compressed in (False, True):
            alike = steps.rows / choice.tables
            build = choice.tables * _build_seconds(question, costs, alike, not compressed)
            memory = choice.bytes(count, compressed)
            time = _table_time(question, steps, memory, costs, scattered=compressed)
            time = min(time + match_cost(question, costs), scan_cost(question, costs))
            parameters = {"radius": radius, "blocks": choice.blocks, "lead": lead}
            if compressed:
                parameters["compressed"] = 1
            remark = f"{choice.tables} table{'' if choice.tables == 1 else 's'}{_in_parts(count)}"
            yield Option(
                "blocks",
                1e-3 * time,
                build,
                memory,
                parameters=parameters,
                remark=remark,
                obstacle=f"at most {MOST_TABLES} are made" if choice.tables > MOST_TABLES else None,
            )
        if choice.header_bits(count) == header_width(count):
            return  # (15): more leading bits than signatures tell apart only add tables


def _flips(question: Question, radius: int, costs: MachineCosts) -> Iterator[Option]:
    count = question.count
    widest, parts = min(header_width(count), question.bits), part_count(count)
    for header in range(widest, max(0, widest - _FEWER_HEADER_BITS) - 1, -1):
        flips = all_sets(header, radius)
        memory = count * (question.width + 4) + parts * (4 << header)
        # The query's own header is looked up first; flips follow.
        steps = TableSteps.of(1 + flips, count, header)
        steps = replace(steps, buckets=parts * steps.buckets)
        alike = count / 2**header
        if question.sample is not None:
            own = question.sample.bucket_rows(question, [upper_bits(question.bits, header)])
            alike = max(alike, own)
            steps = replace(steps, rows=max(steps.rows, min(count, (1 + flips) * own)))
        time = match_cost(question, costs) + _table_time(question, steps, memory, costs)
        yield Option(
            "flips",
            1e-3 * time,
            _build_seconds(question, costs, alike),
            memory,
            parameters={"header_bits": header},
            remark=f"all {flips} flip{'' if flips == 1 else 's'}{_in_parts(count)}, fewer with "
            "weights",
        )


def _table_time(
    question: Question,
    steps: TableSteps,
    memory: float,
    costs: MachineCosts,
    scattered: bool = False,
) -> float:
    """Return the nanoseconds of a query that looks up tables of so much memory in all.

    The first lines of a bucket are asked for in time. A longer one is waited for, every other
    time, until the processor notices that it is read in order, and then read. So are signatures
    elsewhere, whose rows have to be known first. Those that are no single words turned out to be
    waited for always.
    """
    bytes_ = question.width * steps.rows / steps.buckets
    missing = costs.missing(memory)
    wait = costs.missing_wait(memory)
    long = not scattered and bytes_ > _ASKED_BYTES
    waits = 1.0 if question.bits != 64 else 0.5 * (long or scattered)
    accesses = _ACCESSES + (0.0 if scattered else min(bytes_, _ASKED_BYTES) / _TWO_LINES)
    bucket = costs.bucket + accesses * missing + waits * wait
    if scattered:
        row = costs.row + costs.row_byte * question.width
    else:
        row = costs.bucket_word * math.ceil(question.width / 8)
        row += costs.reading_byte * question.width if long else 0.0
    return costs.table_query + steps.buckets * bucket + steps.rows * row


def _build_seconds(
    question: Question, costs: MachineCosts, alike: float, copied: bool = True
) -> float:
    """Return what sorting a table takes, by how many signatures share a header.

    Every signature, or its row, is written to a place of its own.
    """
    row = costs.table_build + 2 * costs.missing(question.signature_bytes)
    row += costs.table_sort * math.log2(1 + alike)
    row += costs.table_byte * question.width if copied else 0.0
    return 1e-9 * question.count * row


def _in_parts(count: int) -> str:
    """Return what to say of more signatures than a table has room for: they are in parts."""
    parts = part_count(count)
    return f" in {parts} shards" if parts > 1 else ""
