"""What a look-up costs on paper: equations (8) to (23) of Sood and Loguinov, and slice lists.

Times are in whatever unit the costs are in. d is log2 of the number of signatures; fractions are
fine. The paper's names: G blocks of which g are chosen, T tables, t header bits, k flips, h radius,
b bits, m signatures in a batch, D the reading speed of a disk.

The paper finds a header by binary search, t accesses to memory; `accesses` is how many there are
where a table of headers replaces it. Equations (11) to (14) and (21) are (9) and (19) with values
put in; the tests hold that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

__all__ = [
    "StepCosts",
    "batch_rate",
    "block_batch_cost",
    "block_bytes",
    "block_cost",
    "block_header_bits",
    "disk_cost",
    "flip_batch_cost",
    "flip_bytes",
    "flip_cost",
    "flip_tables",
    "lists_near",
    "most_chosen_blocks",
    "most_flips",
    "pushes",
    "share_near",
]


@dataclass(frozen=True, slots=True)
class StepCosts:
    """What single steps cost, in one unit of time."""

    access: float
    """delta_R: one access to memory, here or there."""
    permute: float
    """delta_P: bringing the blocks of a query into the order of a table."""
    scan: float
    """delta_L: comparing the query with one signature of a run."""
    heap: float = 0.0
    """delta_V: one level of the heap that orders flips."""
    sort: float = 0.0
    """delta_S: one signature in one of the log2(m) rounds of sorting."""


# Blocks: permuted sorted tables (BPHS, sections 7.1 and 7.2)


def block_header_bits(d: float, bits: int, blocks: int, chosen: int) -> float:
    """Return how many leading bits are matched before the run is scanned (8)."""
    return min(chosen * bits / blocks, d)


def block_cost(
    d: float,
    bits: int,
    blocks: int,
    chosen: int,
    costs: StepCosts,
    accesses: float | None = None,
    header_bits: float | None = None,
) -> float:
    """Return the time of one look-up in all tables (9); (11) to (14) are cases of it.

    `header_bits` are those of (8) unless told: blocks have whole bits.
    """
    header = block_header_bits(d, bits, blocks, chosen) if header_bits is None else header_bits
    found = (header if accesses is None else accesses) * costs.access
    run = math.exp2(d - header) * costs.scan
    return math.comb(blocks, chosen) * (costs.permute + found + run)


def block_bytes(count: float, bits: int, blocks: int, chosen: int) -> float:
    """Return the bytes of all tables (10)."""
    return math.comb(blocks, chosen) * count * bits / 8


def most_chosen_blocks(d: float, bits: int, radius: int) -> float:
    """Return the g beyond which more tables no longer shorten runs (15), for G = g + h."""
    return math.inf if d >= bits else d * radius / (bits - d)


def disk_cost(count: float, bits: int, bytes_per_time: float) -> float:
    """Return the time to read a file of signatures (16)."""
    return count * bits / (8 * bytes_per_time)


def block_batch_cost(
    count: float,
    batch: float,
    bits: int,
    blocks: int,
    chosen: int,
    costs: StepCosts,
    accesses: float | None = None,
) -> float:
    """Return the processor time of matching a batch with a file (17): tables over the batch.

    The paper leaves out the unit of its log2(m), which is a round of sorting.
    """
    tables = math.comb(blocks, chosen)
    sorting = tables * batch * (costs.permute + costs.sort * math.log2(batch))
    return sorting + count * block_cost(math.log2(batch), bits, blocks, chosen, costs, accesses)


def batch_rate(batch: float, disk: float, processor: float) -> float:
    """Return queries in a unit of time where reading and computing overlap (18)."""
    return batch / max(disk, processor)


# Flips: one sorted copy, headers looked up in order of probability (PSM, sections 7.3 and 7.4)


def flip_cost(d: float, header_bits: float, flips: float, costs: StepCosts) -> float:
    """Return the time of one query (19); with header_bits = d it is (21)."""
    heap = costs.heap * math.log2(flips) if flips > 1 else 0.0
    run = math.exp2(max(d - header_bits, 0)) * costs.scan
    return flips * (heap + costs.access + run)


def most_flips(header_bits: int, radius: int) -> int:
    """Return how many sets of up to `radius` header bits there are to flip (20)."""
    return sum(math.comb(header_bits, ones) for ones in range(1, radius + 1))


def flip_bytes(d: float, header_bits: float, bits: int) -> float:
    """Return the bytes of a header table and one copy of the signatures (22)."""
    return (math.exp2(header_bits) + math.exp2(d)) * bits / 8


def flip_tables(d: float, header_bits: float) -> float:
    """Return the same in copies of the collection (26)."""
    return 1 + math.exp2(header_bits - d)


def flip_batch_cost(
    count: float, batch: float, header_bits: float, flips: float, costs: StepCosts
) -> float:
    """Return the processor time of matching a batch with a file (23), chunks as long as it.

    Each chunk has n/m of the file and is asked m times: n look-ups in all.
    """
    d = math.log2(batch)
    heap = batch * costs.heap * math.log2(flips) if flips > 1 else 0.0
    lookups = count * flip_cost(d, header_bits, flips, costs)
    return heap + lookups + batch * costs.sort * d


# Slices: inverted lists (Chappell, Geva and Zuccon, section 5)


@cache
def lists_near(width: int, expand: int) -> int:
    """Return how many values of a slice differ from a query's in at most `expand` bits."""
    return sum(math.comb(width, ones) for ones in range(min(expand, width) + 1))


def share_near(width: int, expand: int) -> float:
    """Return the share of a uniform collection that these lists hold, for one slice."""
    return lists_near(width, expand) / (1 << width)


# The nearest of all


def pushes(count: int, k: int) -> float:
    """Return how many of `count` in random order are among the k nearest when they come."""
    most = min(k, count)
    return most * (1 + math.log(max(1.0, count / most))) if most else 0.0
