"""Measuring what single steps cost: the searches themselves, timed on small collections.

How long a search takes is a sum of steps, each so many times its cost. Small searches that take the
steps in different proportions are timed, and the costs that explain the times best are their
solution. Memory is measured apart, at some sizes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from time import process_time

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.indexes.scan import ScanIndex
from lookalike.indexes.slices.index import SliceIndex
from lookalike.indexes.tables.blocks import BlockIndex
from lookalike.indexes.tables.flips import FlipIndex
from lookalike.planning.equations import pushes
from lookalike.planning.machine import Access, MachineCosts, access_time
from lookalike.planning.tables import MOST_ORDERED

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
    scan = _scan(generator)
    within = _slice_within(generator)
    top, build = _slice_nearest(generator)
    block, table_build = _blocks(generator)
    accesses = _block_accesses(generator, access, block)
    flip = _flips(generator)
    return MachineCosts(
        access=access,
        waiting=waiting,
        reading_byte=reading,
        sorting=_sorting(generator),
        pair=scan.pair,
        pair_byte=scan.pair_byte,
        scan_query=scan.query,
        nearest=scan.nearest,
        within_query=within[0],
        within_list=within[1],
        within_sketch=within[2],
        within_row=within[3],
        within_byte=within[4],
        top_query=top[0],
        top_list=top[1],
        top_posting=top[2],
        top_candidate=top[3],
        top_row=top[4],
        slice_build=build,
        block_query=block.query,
        block_table=block.table,
        block_word=block.word,
        block_stream=block.stream,
        block_stream_word=block.stream_word,
        block_accesses=accesses,
        block_fetch=block.fetch,
        block_fetch_accesses=_fetch_accesses(generator, access, block, accesses),
        flip_query=flip[0],
        flip_set=flip[1],
        flip_heap=flip[2],
        table_build=table_build,
    )


def _memory() -> tuple[Access, float, float]:
    """Return random reads by size, a read that is waited for, and reading a byte in order."""
    words = np.ones(_MEMORY // 8, np.uint64)
    places = count(step=_READS)  # others each time, or they would be in the cache from last time

    def read(size: int, ahead: int, reads: int = _READS) -> float:
        part = words[: size // 8]
        return best_time(lambda: _native.read_at_random(part, next(places), reads, ahead)) / reads

    access: list[tuple[float, float]] = []
    for size in _SIZES:
        read(size, _AHEAD)
        # Larger is never quicker, whatever the machine was doing just then.
        access.append((float(size), max(read(size, _AHEAD), access[-1][1] if access else 0.0)))
    waiting = read(_MEMORY, 0, _READS // 8)
    reading = best_time(lambda: _native.read_all(words.view(np.uint8), 1), 2) / words.nbytes
    return tuple(access), waiting, reading


def _sorting(generator: np.random.Generator) -> float:
    keys = generator.integers(0, 2**63, 1 << 16, dtype=np.uint64)
    return best_time(lambda: np.sort(keys)) / (len(keys) * math.log2(len(keys)))


@dataclass(frozen=True, slots=True)
class _ScanCosts:
    pair: float
    pair_byte: float
    query: float
    nearest: float


def _scan(generator: np.random.Generator) -> _ScanCosts:
    """Time the scan of narrow and wide signatures, of few and many, within a radius and for k."""
    steps: list[list[float]] = []
    times: list[float] = []
    for width in (8, 32, 128):
        for size in (64, _COUNT // 4):
            index = ScanIndex(_uniform(generator, size, width))
            queries = _uniform(generator, _QUERIES, width)
            times.append(best_time(lambda: index.within(queries, 0, threads=1)))  # noqa: B023
            pairs = float(size * _QUERIES)
            steps.append([pairs, pairs * width, float(_QUERIES)])
    pair, pair_byte, query = explain_times(steps, times)
    width, k = 8, 32
    index = ScanIndex(_uniform(generator, _COUNT, width))
    queries = _uniform(generator, _QUERIES, width)
    time = best_time(lambda: index.search(queries, k, threads=1)) / _QUERIES
    rest = time - _COUNT * (pair + pair_byte * width) - query
    return _ScanCosts(pair, pair_byte, query, max(0.0, rest) / pushes(_COUNT, k))


def _slice_within(generator: np.random.Generator) -> list[float]:
    """Time searches within a radius: few lists, many lists, long lists, with sketches and not."""
    cases = [(8, 12, 0), (8, 12, 5), (8, 14, 7), (8, 9, 3), (8, 7, 5), (8, 4, 1), (8, 5, 2)]
    cases += [(16, 12, 7), (128, 12, 30), (128, 9, 60)]
    steps: list[list[float]] = []
    times: list[float] = []
    for width, slice_bits, radius in cases:
        size = _COUNT if slice_bits < 8 else _COUNT // 4  # few lists have to be long
        index = SliceIndex(_uniform(generator, size, width), slice_bits, threads=1)
        queries = _uniform(generator, _QUERIES, width)
        work = index.within(queries, radius, explain=True, threads=1).explanation
        if work is None or not work.lists.all():
            continue  # it scanned: nothing to learn about lists
        times.append(best_time(lambda: index.within(queries, radius, threads=1)))  # noqa: B023
        sketches = float(work.postings.sum()) if _native.has_sketches(8 * width) else 0.0
        rows = float(work.candidates.sum())
        steps.append([float(_QUERIES), float(work.lists.sum()), sketches, rows, rows * width])
    return explain_times(steps, times)


def _slice_nearest(generator: np.random.Generator) -> tuple[list[float], float]:
    """Time searches for nearest neighbours, and building; few postings and many."""
    cases = [(128, 14, (0, 1, 2)), (32, 14, (0, 1)), (128, 10, (0, 1)), (32, 10, (0, 1, 2))]
    steps: list[list[float]] = []
    times: list[float] = []
    build = 0.0
    for width, slice_bits, expands in cases:
        rows = _uniform(generator, _COUNT, width)
        index = SliceIndex(rows, slice_bits, threads=1)
        if not times:
            build = best_time(lambda: SliceIndex(rows, slice_bits, threads=1), 1)  # noqa: B023
            build /= index.slices * _COUNT
        queries = _uniform(generator, _QUERIES // 2, width)
        for expand in expands:
            found = index.search(queries, 10, expand=expand, explain=True, threads=1)
            work = found.explanation
            if work is None:
                continue
            times.append(
                best_time(lambda: index.search(queries, 10, expand=expand, threads=1), 2)  # noqa: B023
            )
            postings = float(work.postings.sum())
            swept = postings / len(queries) > _COUNT / 32
            chosen = work.reranked if swept else work.candidates
            steps.append(
                [
                    float(len(queries)),
                    float(work.lists.sum()),
                    postings,
                    float(chosen.sum()),
                    float(swept) * _COUNT * len(queries),
                ]
            )
    return explain_times(steps, times), build


@dataclass(frozen=True, slots=True)
class _BlockCosts:
    query: float
    table: float
    word: float
    stream: float
    stream_word: float
    fetch: float


def _blocks(generator: np.random.Generator) -> tuple[_BlockCosts, float]:
    """Time few and many tables, short and long buckets, wide signatures; and building."""
    rows = _uniform(generator, _COUNT, 8)
    build = best_time(lambda: BlockIndex(rows, 0, blocks=1, lead=1, threads=1), 2) / _COUNT

    def search(
        width: int, radius: int, blocks: int, lead: int, compressed: bool = False
    ) -> tuple[float, float, float, float]:
        """Return queries, tables looked up, signatures compared, and how long that took."""
        rows = _uniform(generator, _COUNT // (width // 8), width)
        index = BlockIndex(rows, radius, blocks=blocks, lead=lead, compressed=compressed, threads=1)
        queries = _uniform(generator, 4 * _QUERIES, width)
        time = best_time(lambda: index.within(queries, radius, threads=1))
        looked_up = float(len(queries) * index.tables)
        bucket = len(rows) / 2.0 ** index.stats()["header_bits"]
        return float(len(queries)), looked_up, looked_up * bucket, time

    short = [search(8, *case) for case in ((0, 1, 1), (3, 4, 1), (3, 5, 2), (5, 6, 1), (4, 6, 2))]
    query, table, word = explain_times([each[:3] for each in short], [each[3] for each in short])
    long = [(8, 7, 8, 1), (8, 11, 12, 1), (16, 3, 5, 2), (16, 7, 8, 1), (32, 3, 5, 2)]
    steps: list[list[float]] = []
    times: list[float] = []
    for width, radius, blocks, lead in long:
        asked, looked_up, compared, time = search(width, radius, blocks, lead)
        steps.append([looked_up, compared * (width // 8)])
        times.append(max(time - query * asked, 0.1 * time))
    stream, stream_word = explain_times(steps, times)
    # The same with row numbers in place of copies: what is more is fetching signatures.
    asked, looked_up, compared, time = search(8, 3, 6, 3, compressed=True)
    rest = time - query * asked - stream * looked_up
    fetch = max(0.0, rest / compared)
    return _BlockCosts(query, table, word, stream, stream_word, fetch), build


def _block_accesses(generator: np.random.Generator, access: Access, block: _BlockCosts) -> float:
    """Time tables that no second-level cache holds, and return how many random reads one takes."""
    index = BlockIndex(_uniform(generator, 8 * _COUNT, 8), 3, blocks=6, lead=3, threads=1)
    a_table = _table_time(generator, index, block) - block.table - block.word
    return float(np.clip(a_table / _missing(access, index.memory_bytes), 3.0, 8.0))


def _fetch_accesses(
    generator: np.random.Generator, access: Access, block: _BlockCosts, accesses: float
) -> float:
    """The same for the signatures of a compressed table, several to a bucket."""
    rows = _uniform(generator, 32 * _COUNT, 8)
    index = BlockIndex(rows, 1, blocks=2, lead=1, compressed=True, threads=1)
    bucket = len(rows) / 2.0 ** index.stats()["header_bits"]
    a_table = _table_time(generator, index, block) - block.stream
    a_table -= accesses * _missing(access, index.memory_bytes)
    far = (a_table / bucket - block.fetch) / _missing(access, rows.nbytes)
    return float(np.clip(far, 1.0, 6.0))


def _table_time(generator: np.random.Generator, index: BlockIndex, block: _BlockCosts) -> float:
    """Return what looking up one table takes."""
    # Others each time: what the last ones needed is in the cache.
    batches = [_uniform(generator, 8 * _QUERIES, 8) for _ in range(4)]
    time = min(best_time(lambda: index.within(one, 1, threads=1), 1) for one in batches)  # noqa: B023
    return (time / len(batches[0]) - block.query) / index.tables


def _missing(access: Access, size: float) -> float:
    return max(access_time(access, size) - access[0][1], 1e-9)


def _flips(generator: np.random.Generator) -> list[float]:
    """Time few flips, and more than are ordered without a heap."""
    index = FlipIndex(_uniform(generator, _COUNT, 8), threads=1)
    queries = _uniform(generator, 2 * _QUERIES, 8)
    weights = generator.normal(size=(len(queries), 64)).astype(np.float32)

    def time(flips: int) -> float:
        found = best_time(lambda: index.within(queries, 3, weights=weights, flips=flips, threads=1))
        return found / len(queries)

    few = (0, 4, 8, 16, 24)
    query, one = explain_times([[1.0, float(flips)] for flips in few], [time(k) for k in few])
    many = 2 * MOST_ORDERED
    return [query, one, max(one / math.log2(many), (time(many) - query) / (many * math.log2(many)))]


def _uniform(generator: np.random.Generator, count: int, width: int) -> Signatures:
    return generator.integers(0, 256, (count, width), dtype=np.uint8)
