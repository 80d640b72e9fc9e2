"""Inverted signature slice lists (Chappell, Geva and Zuccon, 2015): 500 million on one machine.

As many signatures as there is room for are built into a file by `SliceIndex.build` and searched
there. What that gives for 500 million is told by the cost model of `la.plan`, and marked as such.
Beside them is what `papers.large_machine` measured on a machine with more memory.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.advice.machine import MachineCosts, machine_costs
from lookalike.advice.measures import cumulative_distance_ratio
from lookalike.advice.planner import Prediction, Question
from lookalike.advice.plots import short_count
from lookalike.advice.predictions import scan_options, slice_options
from lookalike.indexes import ScanIndex, SliceIndex
from lookalike.indexes.slices.lists import list_bytes, slice_width
from papers.issl import TABLE_2
from papers.page import Section, Verdict
from papers.shared import World

__all__ = ["MEASURED", "as_many_as_fit", "made", "model", "run"]

MEASURED = Path(__file__).with_name("large_machine.json")
"""What `papers.large_machine` printed on a machine with much memory."""

PAPER_COUNT = 500_000_000
PAPER_WIDTH = 25
BITS = 1024
K = 10
EXPAND = 3
QUERIES = 100
SMALLER = 20
"""A collection so many times smaller is measured, too, to see what the model is worth."""
MOST_DISK = 25 << 30
BUILD_MEMORY = 2 << 30
_CHUNK = 500_000
_BASES = 100_000
_NEAR = (0.07, 0.03)
"""Shares of signatures of which an eighth and a sixteenth of the bits are changed; a quarter is of
the others."""
_SEED = 30

Rows = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Measured:
    """What building and searching took."""

    count: int
    slice_bits: int
    bytes: int
    """Signatures and lists."""
    build_seconds: float
    build_processor_seconds: float
    """Of all threads."""
    first_milliseconds: float
    """For a query, the first time, what was read from disk included."""
    milliseconds: float
    """The second time: processor time."""
    batch_milliseconds: float
    """For each of all queries, searched together: processor time of one thread."""
    scan_milliseconds: float
    scan_batch_milliseconds: float
    cdr: float


_SCANNED = 20


def made(bases: Rows, count: int, generator: np.random.Generator, near: bool = False) -> Rows:
    """Return signatures made from others by changing bits at random; with `near`, fewer bits.

    A quarter of the bits are changed, an eighth of some, a sixteenth of a few: neighbors at many
    distances, and each of `bases` has a number of them that grows with the collection.
    """
    words = np.ascontiguousarray(bases).view(np.uint64)
    shape = (count, words.shape[1])
    changed = generator.integers(0, 2**64, shape, np.uint64)
    changed &= generator.integers(0, 2**64, shape, np.uint64)
    eighth, sixteenth = (0.5, 0.5) if near else _NEAR
    drawn = generator.random(count)
    for least in (eighth + sixteenth, sixteenth):
        some = np.flatnonzero(drawn < least)
        changed[some] &= generator.integers(0, 2**64, (len(some), shape[1]), np.uint64)
    changed ^= words[generator.integers(len(words), size=count)]
    return changed.view(np.uint8)


def as_many_as_fit(wanted: int, free: int) -> int:
    """Return how many signatures can be built into a file: half of the disk is left to others."""
    count, room = wanted, min(MOST_DISK, free // 2)
    while count > 1000 and _disk(count) > room:
        count = count * 9 // 10
    return count


def _disk(count: int) -> int:
    """Return what building takes: signatures twice, in a file of their own and in the index."""
    return 2 * count * BITS // 8 + list_bytes(count, BITS, slice_width(count, BITS))


def model(count: int, slice_bits: int, costs: MachineCosts) -> tuple[Prediction, Prediction]:
    """Return what the cost model says of slices and of the scan, for queries asked alone."""
    question = Question(count, BITS, None, K, 0.9, queries=1)
    slices = next(
        option
        for option in slice_options(question, costs)
        if option.parameters["slice_bits"] == slice_bits and option.settings["expand"] == EXPAND
    )
    return slices, next(scan_options(question, costs))


def run(world: World) -> Iterator[Section]:
    """Build what fits, and tell the rest by the model."""
    bases = world.topsig.sign(world.abstracts.first(_BASES).texts)
    with tempfile.TemporaryDirectory() as folder:
        free = shutil.disk_usage(folder).free
        largest = as_many_as_fit(world.scale.built, free)
        measured = [
            _build_and_search(Path(folder), bases, count) for count in (largest // SMALLER, largest)
        ]
    costs = machine_costs()
    lines, ratios = [_paper_line()], []
    for one in measured:
        slices, scan = model(one.count, one.slice_bits, costs)
        lines += [_measured_line(one), _model_line(one.count, one.slice_bits, slices, scan)]
        ratios.append(one.milliseconds / (1e-3 * slices.microseconds))
    before = slices.microseconds
    slices, scan = model(PAPER_COUNT, PAPER_WIDTH, costs)
    lines.append(_model_line(PAPER_COUNT, PAPER_WIDTH, slices, scan))
    large = read_measured()
    if large:
        lines.append(_large_line(large))
    last = measured[-1]
    paper = TABLE_2[PAPER_WIDTH]
    memory = slices.memory_bytes / 1e6
    yield Section(
        "500 million: one machine, as far as it goes",
        f"Measured up to {short_count(last.count)} signatures of {BITS} bits. The index takes "
        f"{last.bytes / 1e9:.1f} GB, building it needs another {last.count * BITS // 8 / 1e9:.1f} "
        f"GB of disk for the signatures, and {MOST_DISK >> 30} GB were available. Signatures are "
        "made from real ones (TopSig of abstracts) by changing random bits. `SliceIndex.build` "
        f"has {BUILD_MEMORY >> 30} GB of memory for lists and two threads on a machine with other "
        f"load. {QUERIES} queries, one thread, {EXPAND} bits of expansion. They run one by one: "
        "the first time, lists and signatures are read from disk; the second time is processor "
        "time. Then all run in one call, where the scan reads each signature once for many "
        "queries; this is the time of one of them. The paper's times have 20 threads. Lines marked "
        "model are not measured. They are predictions of `la.plan`, from counted steps and their "
        "cost on this machine, for uniform, independent bits; measured times are "
        f"{ratios[0]:.1f} and {ratios[1]:.1f} times the "
        f"prediction.{_less(last, slices.microseconds < before)} Memory is computed, and exact. "
        "The paper's has 92 GB of signatures (64 GB of bits) and 84 GB of lists; ours has "
        f"{PAPER_COUNT * BITS // 8 / 1e9:.0f} GB and "
        f"{memory / 1e3 - PAPER_COUNT * BITS // 8 / 1e9:.0f} GB. The CDR depends on the "
        f"collection, in the paper and here.{_large_text(large)}",
        (
            "signatures, slice bits",
            "MB",
            "build s",
            "of one core",
            "first time ms",
            "ms, a query alone",
            "ms, in a batch",
            "CDR@10",
            "scan ms, alone",
            "scan ms, in a batch",
            "times quicker, alone",
        ),
        lines,
        verdict=Verdict.of(
            [abs(memory / paper[1] - 1) < 0.2, last.count >= PAPER_COUNT],
            f"Built and searched up to {short_count(last.count)}; 500 million need "
            f"{memory / 1e3:.0f} GB (paper {paper[1] / 1e3:.0f} GB), more than this machine has. "
            f"The model predicts {1e-3 * slices.microseconds:.0f} ms per query with one thread, "
            f"which was not measured. At {short_count(last.count)}, a query took {ratios[-1]:.1f} "
            f"times the prediction.{_large_verdict(large)}",
        ),
    )


def read_measured(path: Path = MEASURED) -> dict[str, Any]:
    """Return what was measured on the machine with much memory, or nothing."""
    if not path.exists():
        return {}
    figures = json.loads(path.read_text(encoding="utf-8"))
    return figures if "cdr" in figures else {}


def _large_line(one: dict[str, Any]) -> tuple[str, ...]:
    return (
        f"{short_count(one['count'])}, {one['slice_bits']}, measured in memory",
        f"{one['bytes'] / 1e6:,.0f}",
        f"{one['build_seconds']:,.0f}",
        f"{one['build_processor_seconds']:,.0f}",
        "",
        f"{one['milliseconds']:.1f}",
        f"{one['batch_processor_milliseconds']:.1f}",
        f"{one['cdr']:.3f}",
        f"{one['scan_milliseconds']:,.1f}",
        f"{one['scan_batch_processor_milliseconds']:,.1f}",
        f"{one['scan_milliseconds'] / one['milliseconds']:.0f}",
    )


def _large_text(one: dict[str, Any]) -> str:
    """Say what was measured with all threads, and on the GPU."""
    if not one:
        return ""
    text = (
        f" The last line is of another machine ({one['machine']}, {one['date']}; `python -m "
        f"papers.large_machine`), all in memory. With {one['threads']} threads, a query alone "
        f"takes {one['all_threads_milliseconds']:.1f} ms there, and the scan "
        f"{one['scan_all_threads_milliseconds']:,.0f} ms; in a batch, the lists answer "
        f"{one['batch_queries_per_second']:,.0f} queries a second, and the scan "
        f"{one['scan_batch_queries_per_second']:,.0f}."
    )
    if "gpu_milliseconds" in one:
        text += (
            f" On its GPU, the exact scan of the same signatures takes "
            f"{one['gpu_milliseconds']:.1f} ms for a query, and answers "
            f"{one['gpu_batch_queries_per_second']:,.0f} a second in batches of {one['gpu_batch']}."
        )
    return text


def _large_verdict(one: dict[str, Any]) -> str:
    if not one:
        return ""
    return (
        f" On a machine with more memory, {short_count(one['count'])} were built in "
        f"{one['build_seconds']:,.0f} s. A query alone takes {one['milliseconds']:.0f} ms with one "
        f"thread, {one['scan_milliseconds'] / one['milliseconds']:.0f} times less than the scan "
        f"(paper 43 times). In batches, the scan takes "
        f"{one['scan_batch_processor_milliseconds'] / one['batch_processor_milliseconds']:.1f} "
        "times as long as the lists."
    )


def _less(last: Measured, less: bool) -> str:
    """Say why the model expects less time for more signatures, where it does."""
    if not less:
        return ""
    few, most = (
        sum(_native.lists_near(width, EXPAND) / 2**width for width in widths)
        for widths in (
            _native.slice_widths(BITS, PAPER_WIDTH),
            _native.slice_widths(BITS, last.slice_bits),
        )
    )
    return (
        f" It predicts less for 500M than for {short_count(last.count)}, because the lists contain "
        f"{most:.1%} of the {short_count(last.count)} and {few:.1%} of the 500M. Above 1 in 128, "
        "scores are added up in a table of all signatures; below, the rows are sorted."
    )


def _build_and_search(folder: Path, bases: Rows, count: int) -> Measured:
    generator = np.random.default_rng(_SEED)
    plain, target = folder / "signatures.npy", folder / f"{count}.lookalike"
    rows = np.lib.format.open_memmap(plain, "w+", np.uint8, (count, BITS // 8))
    for begin in range(0, count, _CHUNK):
        size = min(_CHUNK, count - begin)
        rows[begin : begin + size] = made(bases, size, generator)
    rows.flush()
    queries = made(bases, QUERIES, generator, near=True)
    start, worked = perf_counter(), process_time()
    width = slice_width(count, BITS)
    index = SliceIndex.build(target, rows, width, memory=BUILD_MEMORY)
    built, worked = perf_counter() - start, process_time() - worked
    scan = ScanIndex(rows)
    start = process_time()
    true = scan.search(queries, K, threads=1).distances
    together = 1e3 * (process_time() - start) / len(queries)
    few = queries[:_SCANNED]  # asked alone, as those of the lists are
    start = process_time()
    for one in few:
        scan.search(one, K, threads=1)
    scanned = 1e3 * (process_time() - start) / len(few)
    del scan
    del rows
    plain.unlink()

    def ask(clock: Callable[[], float]) -> tuple[float, NDArray[np.int32]]:
        start = clock()
        found = [index.search(one, K, expand=EXPAND, threads=1).distances for one in queries]
        return 1e3 * (clock() - start) / len(queries), np.concatenate(found)

    first, _ = ask(perf_counter)
    again, found = ask(process_time)
    start = process_time()
    index.search(queries, K, expand=EXPAND, threads=1)
    batch = 1e3 * (process_time() - start) / len(queries)
    cdr = float(cumulative_distance_ratio(found, true).mean())
    size = target.stat().st_size
    result = Measured(
        count, width, size, built, worked, first, again, batch, scanned, together, cdr
    )
    target.unlink()
    return result


def _paper_line() -> tuple[str, ...]:
    ms, memory, cdr = TABLE_2[PAPER_WIDTH]
    scan = TABLE_2[None][0]
    return (
        f"500M, {PAPER_WIDTH}, paper",
        f"{memory:,.0f}",
        "",
        "under 10,800",
        "",
        f"{ms:.1f}",
        "",
        f"{cdr:.3f}",
        f"{scan:,.1f}",
        "",
        f"{scan / ms:.0f}",
    )


def _measured_line(one: Measured) -> tuple[str, ...]:
    return (
        f"{short_count(one.count)}, {one.slice_bits}, measured",
        f"{one.bytes / 1e6:,.0f}",
        f"{one.build_seconds:,.0f}",
        f"{one.build_processor_seconds:,.0f}",
        f"{one.first_milliseconds:.1f}",
        f"{one.milliseconds:.1f}",
        f"{one.batch_milliseconds:.1f}",
        f"{one.cdr:.3f}",
        f"{one.scan_milliseconds:,.1f}",
        f"{one.scan_batch_milliseconds:,.1f}",
        f"{one.scan_milliseconds / one.milliseconds:.0f}",
    )


def _model_line(
    count: int, slice_bits: int, slices: Prediction, scan: Prediction
) -> tuple[str, ...]:
    return (
        f"{short_count(count)}, {slice_bits}, model",
        f"{slices.memory_bytes / 1e6:,.0f}",
        "",
        f"{slices.build_seconds:,.0f}",
        "",
        f"{1e-3 * slices.microseconds:.1f}",
        "",
        "",
        f"{1e-3 * scan.microseconds:,.1f}",
        "",
        f"{scan.microseconds / slices.microseconds:.0f}",
    )
