"""Measuring what single steps cost: the searches themselves, timed on small collections.

How long a search takes is a sum of steps, each so many times its cost. Small searches that take the
steps in different proportions are timed, and the costs that explain the times best are their
solution. Memory is measured apart, at some sizes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import count
from time import process_time

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.indexes.clusters.groups import group_count
from lookalike.indexes.clusters.index import ClusterIndex
from lookalike.indexes.scan import ScanIndex
from lookalike.indexes.slices.index import SliceIndex
from lookalike.indexes.tables.blocks import BlockChoice, BlockIndex
from lookalike.planning.clusters import rows_assigned
from lookalike.planning.machine import Access, MachineCosts
from lookalike.planning.scan import pushes

__all__ = ["best_time", "explain_times", "measure_costs"]

Signatures = NDArray[np.uint8]

_SEED = 7
_MEMORY = 1 << 27
"""Bytes that are read at random places: more than caches hold."""
_SIZES = (*(1 << power for power in (17, 20, 22, 24, 25, 26)), _MEMORY)
_AHEAD = 8
_READS = 40_000
_COUNT = 1 << 14
"""Signatures of the small collections: few enough for the second-level cache."""
_QUERIES = 256


def best_time(run: Callable[[], object], runs: int = 3) -> float:
    """Return the shortest of some processor times, in nanoseconds: disturbances only add.

    Processor time, because a machine that is busy must not seem to be slow for ever.
    """
    times = []
    for _ in range(runs):
        start = process_time()
        run()
        times.append(process_time() - start)
    return 1e9 * min(times)


def explain_times(steps: Sequence[Sequence[float]], times: Sequence[float]) -> list[float]:
    """Return the costs, none below 0, that explain times as sums of steps best.

    Relative errors count, so that short searches are explained as well as long ones.
    """
    shares = np.asarray(steps, float) / np.asarray(times, float)[:, None]
    free = list(range(shares.shape[1]))
    costs = np.zeros(shares.shape[1])
    while free:
        found = np.linalg.lstsq(shares[:, free], np.ones(len(shares)))[0]
        if (found >= 0).all():
            costs[free] = found
            break
        del free[int(found.argmin())]
    return [float(cost) for cost in costs]


def measure_costs() -> MachineCosts:
    """Measure everything; takes about half a second and 128 MB."""
    generator = np.random.default_rng(_SEED)
    access, waiting, reading = _memory()
    query, scanned_byte = _scan(generator)
    within_list, within_sketch, row, row_byte = _slice_within(generator, query)
    top_query, top_list, top_posting, top_candidate, slice_build = _slice_nearest(generator)
    table_query, bucket, bucket_word = _blocks(generator)
    table_build, table_byte, table_sort = _table_builds(generator)
    centre, group, grouped_row, grouped_centre = _groups(generator, query, scanned_byte)
    return MachineCosts(
        access=access,
        waiting=waiting,
        reading_byte=reading,
        query=query,
        scanned_byte=scanned_byte,
        nearest=_nearest(generator, query, scanned_byte),
        match=_match(generator),
        row=row,
        row_byte=row_byte,
        within_list=within_list,
        within_sketch=within_sketch,
        top_query=top_query,
        top_list=top_list,
        top_posting=top_posting,
        top_candidate=top_candidate,
        slice_build=slice_build,
        table_query=table_query,
        bucket=bucket,
        bucket_word=bucket_word,
        table_build=table_build,
        table_byte=table_byte,
        table_sort=table_sort,
        centre=centre,
        group=group,
        grouped_row=grouped_row,
        grouped_centre=grouped_centre,
    )


def _memory() -> tuple[Access, Access, float]:
    """Return random reads by size, asked for and waited for, and reading a byte in order."""
    words = np.ones(_MEMORY // 8, np.uint64)
    places = count(step=_READS)  # others each time, or they would be in the cache from last time

    def read(size: int, ahead: int, reads: int) -> float:
        part = words[: size // 8]
        return best_time(lambda: _native.read_at_random(part, next(places), reads, ahead)) / reads

    def by_size(ahead: int, reads: int) -> Access:
        curve: list[tuple[float, float]] = []
        for size in _SIZES:
            # What fits into a cache is there when a search is not the first: read it all before.
            _native.read_all(words[: size // 8].view(np.uint8), 1)
            read(size, _AHEAD, _READS)
            # Larger is never quicker, whatever the machine was doing just then.
            curve.append((float(size), max(read(size, ahead, reads), curve[-1][1] if curve else 0)))
        return tuple(curve)

    reading = best_time(lambda: _native.read_all(words.view(np.uint8), 1), 2) / words.nbytes
    return by_size(_AHEAD, _READS), by_size(0, _READS // 8), reading


def _scan(generator: np.random.Generator) -> list[float]:
    """Time the scan of narrow and wide signatures, few and many: a query, a byte compared."""
    steps: list[list[float]] = []
    times: list[float] = []
    for width in (8, 32, 128):
        for size in (64, _COUNT // 4):
            index = ScanIndex(_uniform(generator, size, width))
            queries = _uniform(generator, _QUERIES, width)
            times.append(best_time(lambda: index.within(queries, 0, threads=1)) / _QUERIES)  # noqa: B023
            steps.append([1.0, float(size * width)])
    return explain_times(steps, times)


def _nearest(generator: np.random.Generator, query: float, scanned_byte: float) -> float:
    """Time a scan for the nearest: what is more than comparing is keeping them."""
    width, k = 8, 32
    index = ScanIndex(_uniform(generator, _COUNT, width))
    queries = _uniform(generator, _QUERIES, width)
    time = best_time(lambda: index.search(queries, k, threads=1)) / _QUERIES
    rest = time - query - _COUNT * width * scanned_byte
    return max(0.0, rest) / pushes(_COUNT, k)


def _match(generator: np.random.Generator) -> float:
    """Time a scan within a radius in which half of all are."""
    width = 8
    index = ScanIndex(_uniform(generator, _COUNT // 4, width))
    queries = _uniform(generator, _QUERIES // 4, width)
    found = len(index.within(queries, 4 * width, threads=1).ids)
    none = best_time(lambda: index.within(queries, 0, threads=1))
    return max(0.0, best_time(lambda: index.within(queries, 4 * width, threads=1)) - none) / found


def _slice_within(generator: np.random.Generator, query: float) -> list[float]:
    """Time searches within a radius: a list, a sketch, a signature and its bytes.

    With few lists, many lists, long lists, with sketches and without.
    """
    cases = [(8, 12, 0), (8, 12, 5), (8, 14, 7), (8, 16, 6), (8, 9, 3), (8, 4, 1), (8, 5, 2)]
    cases += [(16, 12, 7), (16, 14, 9), (32, 12, 10), (32, 8, 1), (128, 12, 30), (128, 10, 40)]
    cases += [(128, 6, 1), (128, 7, 2)]
    steps: list[list[float]] = []
    times: list[float] = []
    for width, slice_bits, radius in cases:
        size = 64 * _COUNT // max(width, 16)  # or it would be scanned
        index = SliceIndex(_uniform(generator, size, width), slice_bits, threads=1)
        queries = _uniform(generator, _QUERIES, width)
        work = index.within(queries, radius, explain=True, threads=1).explanation
        if work is None or not work.lists.all():
            continue  # it scanned: nothing to learn about lists
        time = best_time(lambda: index.within(queries, radius, threads=1)) / _QUERIES  # noqa: B023
        times.append(_beside(query, time))
        sketches = float(work.postings.mean()) if _native.has_sketches(8 * width) else 0.0
        rows = float(work.candidates.mean())
        steps.append([float(work.lists.mean()), sketches, rows, rows * width])
    return explain_times(steps, times)


def _slice_nearest(generator: np.random.Generator) -> list[float]:
    """Time searches for the nearest, with few postings and many, and building.

    Returns a query, a list, a posting, a candidate, and an entry of a list built.
    """
    cases = [(1, 128, 14, (0, 1, 2)), (1, 128, 18, (1,)), (1, 32, 14, (0, 1)), (1, 32, 12, (0,))]
    cases += [(1, 128, 10, (0, 1)), (1, 32, 10, (0, 1, 2)), (4, 32, 12, (0,))]
    steps: list[list[float]] = []
    times: list[float] = []
    build = 0.0
    for times_as_many, width, slice_bits, expands in cases:
        rows = _uniform(generator, times_as_many * _COUNT, width)
        index = SliceIndex(rows, slice_bits, threads=1)
        if not times:
            build = best_time(lambda: SliceIndex(rows, slice_bits, threads=1), 1)  # noqa: B023
            build /= index.slices * len(rows)
        queries = _uniform(generator, _QUERIES // 2, width)
        for expand in expands:
            found = index.search(queries, 10, expand=expand, explain=True, threads=1)
            work = found.explanation
            if work is None:
                continue
            time = best_time(lambda: index.search(queries, 10, expand=expand, threads=1), 2)  # noqa: B023
            times.append(time / len(queries))
            taken = (work.lists, work.postings, work.reranked)
            steps.append([1.0, *(float(each.mean()) for each in taken)])
    return [*explain_times(steps, times), build]


def _blocks(generator: np.random.Generator) -> list[float]:
    """Time few and many tables, short and long buckets, wide signatures.

    Returns a query, a bucket, and eight bytes of a signature in it.
    """
    cases = [(8, 0, 1, 1), (8, 3, 4, 1), (8, 3, 5, 2), (8, 4, 6, 2), (8, 7, 8, 1), (8, 11, 12, 1)]
    cases += [(16, 3, 5, 2), (16, 7, 8, 1), (32, 3, 5, 2)]
    steps: list[list[float]] = []
    times: list[float] = []
    for width, radius, blocks, lead in cases:
        rows = _uniform(generator, _COUNT // (width // 8), width)
        index = BlockIndex(rows, radius, blocks=blocks, lead=lead, threads=1)
        queries = _uniform(generator, 4 * _QUERIES, width)
        time = best_time(lambda: index.within(queries, radius, threads=1)) / len(queries)  # noqa: B023
        taken = BlockChoice(8 * width, blocks, lead).steps(len(rows))
        steps.append([1.0, taken.buckets, taken.rows * (width // 8)])
        times.append(time)
    return explain_times(steps, times)


def _table_builds(generator: np.random.Generator) -> tuple[float, float, float]:
    """Time building tables: a signature, a byte of it, and doubling those with its header."""

    def build(rows: Signatures) -> float:
        return best_time(lambda: BlockIndex(rows, 0, blocks=1, lead=1, threads=1), 2) / len(rows)

    new = best_time(lambda: np.ones(_MEMORY // 8, np.uint8), 2) / (_MEMORY // 8)
    wide, narrow = _uniform(generator, 4 * _COUNT, 64), _uniform(generator, _COUNT, 16)
    alike = narrow.copy()
    alike[:, :6] = alike[:, -6:] = 0  # one header for all, wherever it is
    alone = build(narrow)
    byte = max(0.0, build(wide) - alone) / (64 - 16)
    sort = max(0.0, build(alike) - alone) / math.log2(_COUNT)
    # Memory of large tables is new, which that of small ones is not.
    return max(0.0, alone - 16 * byte), byte + new, sort


def _groups(generator: np.random.Generator, query: float, scanned_byte: float) -> list[float]:
    """Time groups, few and many of them, read and built.

    Returns a centre and a group of a query, and a signature and a centre of building.
    """
    width, k = 32, 10
    steps: list[list[float]] = []
    times: list[float] = []
    assigned: list[list[float]] = []
    built: list[float] = []
    for size in (_COUNT // 4, _COUNT):
        rows = _uniform(generator, size, width)
        queries = _uniform(generator, _QUERIES, width)
        made = group_count(size)
        start = process_time()
        index = ClusterIndex(rows, made, threads=1)
        time = 1e9 * (process_time() - start) / rows_assigned(size, made, index.clusters)
        built.append(_beside(made * width * scanned_byte, time))
        assigned.append([1.0, float(made)])
        for probe in (4, 32, made // 2):
            found = index.search(queries, k, probe=probe, explain=True, threads=1)
            if found.explanation is None:
                continue
            compared = index.clusters + float(found.explanation.candidates.mean())
            time = best_time(lambda: index.search(queries, k, probe=probe, threads=1))  # noqa: B023
            times.append(_beside(query + compared * width * scanned_byte, time / _QUERIES))
            steps.append([float(index.clusters), float(probe)])
    return [*explain_times(steps, times), *explain_times(assigned, built)]


def _beside(known: float, time: float) -> float:
    """Return what is left of a time, beside steps whose cost is known; never nothing."""
    return max(time - known, 0.1 * time)


def _uniform(generator: np.random.Generator, count: int, width: int) -> Signatures:
    return generator.integers(0, 256, (count, width), dtype=np.uint8)
