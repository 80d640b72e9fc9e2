"""Inverted signature slice lists on a machine with much memory: `python -m papers.large_machine`.

The paper searches 500 million signatures, which need more memory than most machines have. This
program builds and searches as many as are asked for, in memory, and prints one JSON object. It
needs nothing but NumPy (and CuPy for the GPU). `large_machine.json` has what it printed, and the
section "500 million" of the page shows that.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.advice.measures import cumulative_distance_ratio
from lookalike.errors import LookalikeError
from lookalike.indexes import ScanIndex, SliceIndex
from lookalike.indexes.slices.lists import slice_width
from papers.issl_large import BITS, EXPAND, QUERIES, K, made

__all__ = ["main"]

_BATCH = 1000
_SCANNED = 5
_CHUNK = 500_000
_SEED = 31

Rows = NDArray[np.uint8]


class Record:
    """Figures by name, printed as they come and written to a file after each."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.figures: dict[str, Any] = {}

    def add(self, **figures: Any) -> None:
        """Add figures, print them, and write all so far."""
        self.figures |= figures
        print(json.dumps(figures), file=sys.stderr, flush=True)
        if self.path:
            self.path.write_text(json.dumps(self.figures, indent=2) + "\n", encoding="utf-8")


def timed(run: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return what `run` returns, its seconds by the clock, and processor seconds of all threads."""
    start, worked = perf_counter(), process_time()
    result = run()
    return result, perf_counter() - start, process_time() - worked


def generate(bases: Rows, count: int, threads: int) -> Rows:
    """Return signatures made from others, each chunk from a seed of its own."""
    rows = np.empty((count, BITS // 8), np.uint8)

    def fill(begin: int) -> None:
        size = min(_CHUNK, count - begin)
        generator = np.random.default_rng((_SEED, begin))
        rows[begin : begin + size] = made(bases, size, generator)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(fill, range(0, count, _CHUNK)))
    return rows


def alone(search: Callable[[Rows], Any], queries: Rows) -> Callable[[], list[Any]]:
    """Return a function that asks one query after the other."""
    return lambda: [search(query) for query in queries]


def measure(record: Record, bases: Rows, count: int, threads: int, gpu: bool) -> None:
    """Build and search, and add each figure to the record."""
    rows, seconds, _ = timed(lambda: generate(bases, count, threads))
    record.add(count=count, generate_seconds=seconds)
    queries = made(bases, _BATCH, np.random.default_rng(_SEED), near=True)
    few = queries[:QUERIES]
    width = slice_width(count, BITS)
    index, seconds, worked = timed(lambda: SliceIndex(rows, width, threads=threads))
    record.add(
        slice_bits=width,
        bytes=index.memory_bytes,
        build_seconds=seconds,
        build_processor_seconds=worked,
    )
    settings: dict[str, Any] = {"k": K, "expand": EXPAND}
    _, seconds, _ = timed(alone(lambda one: index.search(one, threads=1, **settings), few))
    record.add(first_milliseconds=1e3 * seconds / len(few))
    found, seconds, worked = timed(alone(lambda one: index.search(one, threads=1, **settings), few))
    record.add(milliseconds=1e3 * worked / len(few), wall_milliseconds=1e3 * seconds / len(few))
    _, seconds, _ = timed(alone(lambda one: index.search(one, threads=threads, **settings), few))
    record.add(all_threads_milliseconds=1e3 * seconds / len(few))
    _, seconds, worked = timed(lambda: index.search(queries, threads=threads, **settings))
    record.add(
        batch=len(queries),
        batch_queries_per_second=len(queries) / seconds,
        batch_processor_milliseconds=1e3 * worked / len(queries),
    )
    scan = ScanIndex(rows)
    some = few[:_SCANNED]
    _, _, worked = timed(alone(lambda one: scan.search(one, K, threads=1), some))
    record.add(scan_milliseconds=1e3 * worked / len(some))
    _, seconds, _ = timed(alone(lambda one: scan.search(one, K, threads=threads), some))
    record.add(scan_all_threads_milliseconds=1e3 * seconds / len(some))
    exact, seconds, worked = timed(lambda: scan.search(few, K, threads=threads))
    distances = np.concatenate([one.distances for one in found])
    record.add(
        scan_batch=len(few),
        scan_batch_queries_per_second=len(few) / seconds,
        scan_batch_processor_milliseconds=1e3 * worked / len(few),
        cdr=float(cumulative_distance_ratio(distances, exact.distances).mean()),
    )
    if gpu:
        measure_gpu(record, rows, queries, exact.distances)


def measure_gpu(record: Record, rows: Rows, queries: Rows, true: NDArray[np.int32]) -> None:
    """Search the same signatures on a GPU, exactly; `true` are distances of the first queries."""
    from lookalike.gpu import GpuIndex

    index, seconds, _ = timed(lambda: GpuIndex(rows))
    record.add(gpu_load_seconds=seconds)
    few, batch = queries[:20], queries[:256]
    index.search(batch, K)  # compiles and allocates
    found, seconds, _ = timed(alone(lambda one: index.search(one, K), few))
    same = np.array_equal(np.concatenate([one.distances for one in found]), true[: len(few)])
    record.add(gpu_milliseconds=1e3 * seconds / len(few), gpu_equals_scan=bool(same))
    _, seconds, _ = timed(lambda: index.search(batch, K))
    record.add(gpu_batch=len(batch), gpu_batch_queries_per_second=len(batch) / seconds)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print one JSON object, and return 0; 1 for an error."""
    parser = argparse.ArgumentParser(
        prog="python -m papers.large_machine",
        description="Build and search many signatures of 1024 bits in memory, and print figures.",
    )
    parser.add_argument(
        "--count", type=int, default=250_000_000, help="signatures (default: 250 million)"
    )
    parser.add_argument(
        "--bases",
        type=Path,
        metavar="FILE",
        help="array of 1024-bit signatures to change bits of (default: random bits)",
    )
    parser.add_argument("--machine", default="", help="name of the machine, for the page")
    parser.add_argument("--gpu", action="store_true", help="search them on a GPU, too")
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="where to write what is printed"
    )
    options = parser.parse_args(arguments)
    threads = os.cpu_count() or 1
    record = Record(options.output)
    try:
        bases = (
            np.load(options.bases)
            if options.bases
            else np.random.default_rng(_SEED).integers(0, 256, (100_000, BITS // 8), np.uint8)
        )
        record.add(machine=options.machine, threads=threads, date=str(date.today()))
        measure(record, bases, options.count, threads, options.gpu)
    except LookalikeError as error:
        print(f"large_machine: {error}", file=sys.stderr)
        return 1
    print(json.dumps(record.figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
