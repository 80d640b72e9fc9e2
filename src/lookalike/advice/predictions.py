"""Predicted cost of each kind of index: numbers of steps, times the cost of a step.

Steps follow Sood and Loguinov, and Chappell, Geva and Zuccon, for fair bits; with a sample they are
counted. Each function yields the options of one kind for `plan`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lookalike import _native
from lookalike.advice.machine import MachineCosts, pushes, rows_assigned
from lookalike.advice.planner import Prediction, Question
from lookalike.indexes.batch.match import batch_header_bits, chunk_rows
from lookalike.indexes.clusters.groups import group_count, least_probe
from lookalike.indexes.clusters.majority import LARGE
from lookalike.indexes.slices.lists import MOST_CHOSEN_BITS, list_bytes, number_bytes, slice_width
from lookalike.indexes.slices.search import usual_compared
from lookalike.indexes.tables.blocks import MOST_TABLES, BlockChoice, choose_blocks
from lookalike.indexes.tables.flip_sets import all_sets, flips_expected, upper_bits
from lookalike.indexes.tables.prefixes import KEY_BITS
from lookalike.indexes.tables.sorted_table import TableSteps, header_width, part_count

if TYPE_CHECKING:
    from lookalike.gpu.bench import Speed
    from lookalike.gpu.card import Card, Layout


# Scan


def scan_options(question: Question, costs: MachineCosts) -> Iterator[Prediction]:
    """Yield the scan."""
    yield Prediction(
        index="scan",
        microseconds=1e-3 * _scan_cost(question, costs),
        memory_bytes=question.signature_bytes,
    )


def _scan_cost(question: Question, costs: MachineCosts) -> float:
    """Return the nanoseconds of a query of a scan."""
    byte = max(costs.scanned_byte, costs.reading_byte / question.together)
    cost = costs.query + question.signature_bytes * byte
    if question.k is not None:
        cost += costs.nearest * pushes(question.count, question.k)
    return cost + _match_cost(question, costs)


def _match_cost(question: Question, costs: MachineCosts) -> float:
    """Return the nanoseconds of the matches of a query; 0 if unknown."""
    if question.radius is None or question.sample is None:
        return 0.0
    return costs.match * question.sample.matches(question, question.radius)


# Slices

_SWEPT_SHARE = 1 / 128  # postings beyond this share of all rows: each row gets a score
_MOST_EXPAND = 4
_AROUND = 4  # how many narrower and how many wider slices a sample is tried with
_MOST_BITS = 2**16 - 1


def slice_options(question: Question, costs: MachineCosts) -> Iterator[Prediction]:
    """Yield slices of every useful width, within a radius or for the nearest."""
    obstacle = None
    if question.bits > _MOST_BITS:
        obstacle = f"signatures have at most {_MOST_BITS} bits there"
    widest = max(4, math.ceil(math.log2(question.count)) + 1)
    widest = min(widest, MOST_CHOSEN_BITS, question.bits)
    least = 4
    if question.sample is not None:  # which takes a while for each
        usual = slice_width(question.count, question.bits)
        least, widest = max(4, usual - _AROUND), min(widest, usual + _AROUND)
    for slice_bits in range(min(least, widest), widest + 1):
        widths = _native.slice_widths(question.bits, slice_bits)
        memory = question.signature_bytes + list_bytes(question.count, question.bits, slice_bits)
        entry = costs.slice_build + costs.missing(4 * question.count)
        option = Prediction(
            index="slices",
            build_seconds=1e-9 * question.count * len(widths) * entry,
            memory_bytes=memory,
            parameters={"slice_bits": slice_bits},
            obstacle=obstacle,
        )
        if question.radius is not None:
            time = _within_cost(question, question.radius, slice_bits, costs)
            yield replace(option, microseconds=1e-3 * time)
            continue
        rerank = usual_compared(question.k or 1)
        for expand, steps in enumerate(_nearest_steps(question, slice_bits, rerank)):
            yield replace(
                option,
                microseconds=1e-3 * _top_cost(question, widths, steps, rerank, costs),
                recall=None,
                settings={"expand": expand},
                expected=steps.recall,
            )


def _within_cost(question: Question, radius: int, slice_bits: int, costs: MachineCosts) -> float:
    """Return the nanoseconds of a query within a radius."""
    matches = _match_cost(question, costs)
    scan = _scan_cost(question, costs) + matches  # which are put to those that lists have found
    if question.sample is None:
        sizes = question.bits, slice_bits, question.count, radius, question.together
        every = [_native.expected_work(*sizes)]
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
    """Steps of a search for nearest neighbors, and its recall."""

    lists: float
    postings: float
    candidates: float
    recall: float


def _nearest_steps(question: Question, slice_bits: int, rerank: int) -> list[_Nearest]:
    """Return the steps for each number of differing bits, from 0 on."""
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
    """Return the nanoseconds of a query for nearest neighbors."""
    count = question.count
    reranked = min(rerank, steps.candidates)
    numbers = sum(1 << width for width in widths) + count * len(widths)
    list_memory = number_bytes(count) * numbers
    cost: float = costs.top_query
    cost += steps.lists * (costs.top_list + 2 * costs.missing(list_memory))
    cost += steps.postings * costs.top_posting
    # A batch is re-ranked in the order of rows: at worst it reads all of them, once.
    fetched = reranked * question.lines * costs.missing(question.signature_bytes)
    read = costs.reading_byte * question.signature_bytes / question.together
    cost += reranked * costs.top_candidate + min(fetched, read)
    if steps.postings > count * _SWEPT_SHARE:  # they are added up in a table, which is then read
        cost += steps.postings * costs.missing(2 * count) + costs.reading_byte * 2 * count
    return cost


def share_found(bits: int, widths: list[int], expand: int, distance: int) -> float:
    """Return the share of signatures at a distance that have a slice with at most `expand` errors.

    Exact for errors at random positions.
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


# Sorted tables

_FEWER_HEADER_BITS = 5
_ACCESSES = 2  # reads at random places that a bucket takes: where it begins, and what is there
_TWO_LINES = 128  # bytes of a bucket that come as one
_ASKED_BYTES = 192  # so much of a bucket is asked for in time


def block_options(question: Question, costs: MachineCosts) -> Iterator[Prediction]:
    """Yield sorted tables with 1, 2, ... leading blocks, each also compressed."""
    radius = question.radius
    if radius is None or radius >= question.bits:
        return  # not what tables are for, or everything is within the radius
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
            time = min(time + _match_cost(question, costs), _scan_cost(question, costs))
            parameters = {"radius": radius, "blocks": choice.blocks, "lead": lead}
            if compressed:
                parameters["compressed"] = True
            remark = f"{choice.tables} table{'' if choice.tables == 1 else 's'}{_in_parts(count)}"
            yield Prediction(
                index="blocks",
                microseconds=1e-3 * time,
                build_seconds=build,
                memory_bytes=memory,
                parameters=parameters,
                remark=remark,
                obstacle=f"at most {MOST_TABLES} are made" if choice.tables > MOST_TABLES else None,
            )
        if choice.header_bits(count) == header_width(count):
            return  # (15): more leading bits than signatures tell apart only add tables


def flip_options(question: Question, costs: MachineCosts) -> Iterator[Prediction]:
    """Yield one sorted table with headers of log2(n) bits and fewer, and all flips."""
    radius = question.radius
    if radius is None:
        return
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
        time = _match_cost(question, costs) + _table_time(question, steps, memory, costs)
        yield Prediction(
            index="flips",
            microseconds=1e-3 * time,
            build_seconds=_build_seconds(question, costs, alike),
            memory_bytes=memory,
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
    """Return the nanoseconds of a query that looks up tables of this size.

    The first lines of a bucket are prefetched. Longer buckets and scattered signatures cause waits.
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
    """Return the time to sort a table; `alike` signatures share a header."""
    row = costs.table_build + 2 * costs.missing(question.signature_bytes)
    row += costs.table_sort * math.log2(1 + alike)
    row += costs.table_byte * question.width if copied else 0.0
    return 1e-9 * question.count * row


def _in_parts(count: int) -> str:
    """Return a remark if the signatures need several parts."""
    parts = part_count(count)
    return f" in {parts} shards" if parts > 1 else ""


# Batches from disk


@dataclass(frozen=True, slots=True)
class BatchSteps:
    """Steps of `match_batch` for one batch and a file of one run."""

    method: str
    bytes_read: int  # bytes of signatures and ids that are read from disk
    chunks: int  # parts in which the file is read
    looked_up: int
    """Queries, each in each chunk (flips), or signatures of the file, each once (blocks)."""
    buckets: float  # buckets that are looked up, in all
    rows: float  # signatures in these buckets, each compared
    headers: int  # places of header tables that are written for the chunks
    sorted: int  # signatures that are sorted into tables, or to be appended
    flips: int = 0  # sets of flips that each query tries
    memory_bytes: int = 0
    """The batch, its tables, and two chunks: one is read while the other is matched."""


def batch_steps(question: Question, method: str, recall: float | None = None) -> BatchSteps:
    """Return the steps of a batch, for all flips or those expected to reach a recall."""
    count, bits, radius = question.count, question.bits, question.radius or 0
    queries = question.batch or 1
    size = min(chunk_rows(queries, bits), count)
    chunks = -(-count // size)
    read = count * (question.width + 8)
    memory = queries * question.width + min(2, chunks) * size * (question.width + 8)
    if method == "blocks":
        choice = choose_blocks(queries, bits, radius, None, None, None, None)
        rows = choice.steps(queries).rows
        if question.sample is not None:
            own = question.sample.bucket_rows(question, choice.headers(queries))
            rows = max(rows, queries * own / count)
        memory += choice.bytes(queries)
        tables = choice.tables
        return BatchSteps(
            method, read, chunks, count, float(count * tables), count * rows, 0,
            queries * tables, memory_bytes=memory,
        )  # fmt: skip
    sizes = [size] * (count // size) + ([count % size] if count % size else [])
    header = batch_header_bits(sizes, queries, bits, radius, recall)
    flips = all_sets(header, radius)
    if recall is not None:
        flips = flips_expected(bits, radius, header, recall)
    asked = queries * (1 + flips)
    rows = asked * count / 2.0**header
    if question.sample is not None:
        own = question.sample.bucket_rows(question, [upper_bits(bits, header)])
        rows = max(rows, min(float(queries) * count, asked * own))
    return BatchSteps(
        method, read, chunks, queries * chunks, float(asked * chunks), rows, chunks << header,
        queries, flips, memory + (4 << header),
    )  # fmt: skip


def batch_options(question: Question, costs: MachineCosts) -> list[list[Prediction]]:
    """Return tables over the batch, header tables over chunks, and these with fewer flips."""
    options = [_batch_option(question, batch_steps(question, "flips"), costs)]
    if question.radius is not None and question.radius < question.bits:
        options.insert(0, _batch_option(question, batch_steps(question, "blocks"), costs))
    if question.recall < 1:
        steps = batch_steps(question, "flips", question.recall)
        likely = replace(
            _batch_option(question, steps, costs, weighted=True),
            settings={"method": "flips", "recall": question.recall},
            recall=None,
            expected=question.recall,
            obstacle="recall not measured: it depends on weights",
        )
        options.append(likely)
    return [[option] for option in options]


def _batch_option(
    question: Question, steps: BatchSteps, costs: MachineCosts, weighted: bool = False
) -> Prediction:
    """Return the cost of a batch: (16) to (18) and (23)."""
    queries = question.batch or 1
    batch = replace(question, count=queries)
    each = TableSteps(steps.buckets / steps.looked_up, steps.rows / steps.looked_up)
    looked_up = steps.looked_up * _table_time(question, each, steps.memory_bytes, costs)
    sorting = steps.sorted / queries * 1e9 * _build_seconds(batch, costs, 1.0)
    indexed = 4 * steps.headers + (question.signature_bytes if steps.headers else 0)
    tables = costs.reading_byte * indexed
    choosing = queries * steps.flips * math.log2(1 + steps.flips) * costs.flip * weighted
    disk, processor = 1e-9 * steps.bytes_read * costs.disk_byte, looked_up + sorting + tables
    processor = 1e-9 * (processor + choosing + queries * _match_cost(question, costs))
    seconds = max(disk, processor) if steps.chunks > 1 else disk + processor
    return Prediction(
        index="batch",
        microseconds=1e6 * seconds / queries,
        memory_bytes=steps.memory_bytes,
        settings={"method": steps.method},
        remark=f"{seconds:.3g} s a batch: reading {disk:.3g}, matching {processor:.3g}",
    )


# Orders by permuted bits

_ORDERS = (4, 8, 16, 32, 64)
_KEY_BIT = 0.7  # nanoseconds that a bit of a permuted key takes


def prefix_options(question: Question, costs: MachineCosts) -> Iterator[Prediction]:
    """Yield increasing numbers of orders, for the nearest."""
    if question.k is None:
        return
    count, examine = question.count, min(usual_compared(question.k), question.count)
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
        yield Prediction(
            index="prefix",
            microseconds=1e-3 * min(time, _scan_cost(question, costs)),
            build_seconds=1e-9 * orders * count * key,
            memory_bytes=question.signature_bytes + beside,
            recall=1.0 if examine == count else None,
            parameters={"orders": orders},
            obstacle=obstacle,
            expected=expected,
        )


def share_examined(bits: int, orders: int, count: int, examine: int, distance: int) -> float:
    """Return the share of signatures at a distance that is examined, for fair bits."""
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


# Groups around centers

_BRANCHES = 9  # branches of a tree of centers that a signature is compared with
_PARTS = (1 / 8, 1 / 4, 1 / 2, 1, 2, 4)  # of the usual number of groups that are read
_BESIDE = 12  # bytes beside each signature: its id, and how far it is from the center


def cluster_bytes(count: int, width: int, groups: int) -> int:
    """Return the size of an index, including signatures."""
    return count * (width + _BESIDE) + groups * (width + 8)


def cluster_options(question: Question, costs: MachineCosts) -> Iterator[Prediction]:
    """Yield increasing numbers of groups to read, for the nearest; only with a sample."""
    if question.k is None or question.sample is None:
        return
    count, width = question.count, question.width
    made = group_count(count)
    option = Prediction(
        index="clusters", parameters={"clusters": made}, settings={"probe": 1}, recall=None
    )
    trial = question.sample.trial(question)
    tried = question.recall < 1 and trial.lacks("clusters") is None
    groups = trial.groups(option) if tried else made
    centers = made if made <= LARGE else _BRANCHES * round(math.sqrt(made))
    row = costs.grouped_row + centers * (costs.grouped_center + width * costs.scanned_byte)
    build = 1e-9 * rows_assigned(count, made, groups) * row
    for part in _PARTS:
        probe = max(1, min(groups, round(part * least_probe(groups))))
        option = replace(option, settings={"probe": probe})
        rows = count * (trial.tried(option).compared if tried else probe / groups)
        # Queries of a batch share what is read of a group.
        sharing = max(1.0, question.together * probe / groups)
        byte = max(costs.scanned_byte, costs.reading_byte / sharing)
        time = costs.query + groups * width * costs.scanned_byte + rows * width * byte
        time += groups * costs.center + probe * costs.group
        yield replace(
            option,
            microseconds=1e-3 * time,
            build_seconds=build,
            memory_bytes=cluster_bytes(count, width, groups),
        )


# GPU

_UPLOAD_BYTES = 5e9  # bytes a second that come to a card from ordinary memory, at least


def gpu_options(question: Question, costs: MachineCosts) -> Iterator[Prediction]:
    """Yield the scan on the first GPU."""
    if question.device != "gpu":
        return
    from lookalike.gpu.bench import QUERIES
    from lookalike.gpu.card import MOST_BITS, Layout, card

    here = card(0)
    scan = Prediction(
        index="gpu",
        microseconds=math.inf,
        build_seconds=question.signature_bytes / _UPLOAD_BYTES,
        memory_bytes=question.signature_bytes,
        remark=here.name,
        obstacle=f"takes up to {MOST_BITS} bits",
    )
    if question.bits > MOST_BITS:
        yield scan
        return
    layout = Layout.of(question.bits)
    needed, free = layout.bytes_of(question.count), here.free_bytes()
    known = _speed(here, layout)
    together = min(question.together, QUERIES)
    reading = question.count * layout.stored / known.bytes_read
    comparing = together * question.count / known.compared
    yield replace(
        scan,
        microseconds=1e6 * (known.overhead + max(reading, comparing)) / together,
        memory_bytes=needed,
        obstacle=f"{free:,} bytes of GPU memory are free" if needed > free else None,
    )


@cache
def _speed(here: Card, layout: Layout) -> Speed:
    from lookalike.gpu.bench import speed

    return speed(here, layout)
